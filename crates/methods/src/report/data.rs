//! The parts of a report: plain data, independent of the way in which the results were measured.
//!
//! A measurement or simulation fills in these parts; [`super::render`] and [`super::terminal_text`] read nothing else. Numbers
//! are in the unit of their axis or column. A number that is not finite is shown as missing and never drawn. Nothing is
//! checked here: a string may contain any characters, and is escaped when it is written.

use crate::cell;
use core::fmt;
pub use openraid_models::ArrayLevel as Level;

/// The contents of one report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    /// Heading of the page.
    pub title: String,
    /// The results in sentences, one for each question. They come directly after the heading unless there is a brief.
    /// May be empty.
    pub summary: Vec<String>,
    /// The whole review in a few sentences: the order of arrays, the best array for each use, and doubtful results. May
    /// be empty.
    pub brief: Vec<String>,
    /// Arrays by scenario, best first.
    pub standings: Option<ReportTable>,
    /// Scenarios, and the verdict on each. May be empty.
    pub verdicts: Vec<Fact>,
    /// Test bed: drives, bus, cache, firmware or commit, chunk, seed, simulated or real.
    pub bed: Vec<Fact>,
    /// Questions and results, in the order of the report.
    pub sections: Vec<ReportSection>,
    /// Results as files next to the report: a description, and the name relative to the report.
    pub files: Vec<Fact>,
    /// Words that readers may not know, with their meanings.
    pub glossary: Vec<Fact>,
}

/// A name and its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// For instance `bus`.
    pub name: String,
    /// For instance `PCIe 1.0 x4, 700 to 800 MB/s`.
    pub value: String,
}

impl Fact {
    /// Makes a fact from both parts.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// The results of one method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportSection {
    /// The method by number and name: `M01 Database`.
    pub method: String,
    /// The question that the section answers; it is the heading of the section.
    pub question: String,
    /// The answer as a sentence. If it is empty, none is shown.
    pub answer: String,
    /// The method of measurement; shown after the results.
    pub how: Vec<String>,
    /// Charts.
    pub panels: Vec<Panel>,
    /// Tables that belong to no chart.
    pub tables: Vec<ReportTable>,
    /// Sentences that explain the results.
    pub findings: Vec<ReportFinding>,
    /// Parts without a result, with the reasons.
    pub absent: Vec<Absent>,
    /// Files next to the report with more data: a description, and the name relative to the report.
    pub links: Vec<Fact>,
}

/// A part that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// For instance `RAID 6, 4 drives`.
    pub what: String,
    /// For instance `the 9650SE asks for five drives`.
    pub reason: String,
}

/// A chart with its question and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The question that this chart answers; it is the title of the chart.
    pub question: String,
    /// The answer as a sentence above the chart. If it is empty, it is made from the data.
    pub answer: String,
    /// Panels of one section with the same group have the same range of y. Empty: no group.
    pub group: String,
    pub chart: Chart,
    /// Sentences that explain the results; [`super::findings::explain`] adds to them.
    pub findings: Vec<ReportFinding>,
}

impl Panel {
    /// A chart whose answer and findings are made from its data.
    pub fn new(question: impl Into<String>, chart: Chart) -> Self {
        let question = question.into();
        Self { question, answer: String::new(), group: String::new(), chart, findings: Vec::new() }
    }
}

/// A kind of chart, with its data.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines over a numeric axis.
    Lines(LineChart),
    /// Horizontal bars.
    Bars(Bars),
    /// Shares by two axes.
    Heat(Heat),
}

/// Lines over a numeric axis. More than [`super::LINES_MAX`] series are shown as several charts side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// The varied value.
    pub x: ChartAxis,
    /// The measured value.
    pub y: ChartAxis,
    /// One line each.
    pub series: Vec<Series>,
    /// Thin lines for comparison: ideal scaling, limits.
    pub guides: Vec<Guide>,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartAxis {
    /// The name of the axis. Sentences write it after numbers that have no unit of their own, and after percentages.
    /// Good names are `outstanding` ("at 16 outstanding") and `reads` ("at 40 % reads").
    pub name: String,
    /// The format of its numbers.
    pub unit: Unit,
    /// The scale of its numbers.
    pub scale: Scale,
    /// The better end, if there is one.
    pub better: Better,
}

impl ChartAxis {
    /// An axis without a better end.
    pub fn new(name: impl Into<String>, unit: Unit, scale: Scale) -> Self {
        Self { name: name.into(), unit, scale, better: Better::Neither }
    }

    /// The same axis with a better end.
    #[must_use]
    pub fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }
}

/// The formats of the numbers on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Without unit: depths, counts, ratios.
    None,
    /// Bytes, written in B, KiB, MiB.
    Bytes,
    /// Percent; 100 is the whole.
    Percent,
    /// The unit after the number: `MB/s`, `IOPS`, `ms`.
    Named(String),
}

impl Unit {
    /// A unit by its name.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Named(name.into())
    }
}

/// The scales of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear. A y axis begins at zero.
    Linear,
    /// By powers of two: depths, block sizes.
    Log2,
    /// By powers of ten: latencies.
    Log10,
    /// Percentiles by their number of nines: the distances between 0, 90, 99 and 99.9 are equal.
    Nines,
}

/// The better end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// No end is better.
    Neither,
}

impl ReportFinding {
    /// Makes a finding of this kind.
    pub fn new(kind: FindingKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// The measured array, and its difference from others of the same level and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSubject {
    /// Level; it determines the colour everywhere in a report.
    pub level: Level,
    /// Number of members.
    pub members: u16,
    /// The difference from similar arrays. Often empty.
    pub variant: Variant,
    /// The name of a real target, which has no level. Mostly empty.
    pub name: String,
}

impl ReportSubject {
    /// An array without a variant.
    #[must_use]
    pub const fn new(level: Level, members: u16) -> Self {
        Self { level, members, variant: Variant(Vec::new()), name: String::new() }
    }

    /// The same array with a variant.
    #[must_use]
    pub fn variant(self, variant: impl Into<Variant>) -> Self {
        Self { variant: variant.into(), ..self }
    }

    /// The same array with another difference.
    #[must_use]
    pub fn different(mut self, difference: impl Into<String>) -> Self {
        self.variant.add(difference);
        self
    }

    /// The same array without its write cache among the differences.
    #[must_use]
    pub fn without_cache(&self) -> Self {
        Self { variant: self.variant.without_cache(), ..self.clone() }
    }

    /// The same array with a name of its own.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Number of drives that hold data for a host: all except the parity drives. In RAID 50 each span has one parity
    /// drive, in RAID 60 two. Two spans are assumed, as in the reviews.
    #[must_use]
    pub const fn data_drives(&self) -> u16 {
        let parities = match self.level {
            Level::Raid4 | Level::Raid5 => 1,
            Level::Raid6 | Level::Raid50 => 2,
            Level::Raid60 => 4,
            _ => 0,
        };
        self.members.saturating_sub(parities)
    }
}

/// The write cache of an array, in a report with several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportCache {
    /// A write is answered when it is in the cache.
    Back,
    /// A write is answered when it is on the drives.
    Through,
    /// A write is answered when it is in the journal.
    Journal,
}

impl ReportCache {
    /// In the order of their charts.
    pub const ALL: [Self; 3] = [Self::Back, Self::Through, Self::Journal];

    /// As a difference of an array.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Back => "write-back",
            Self::Through => "write-through",
            Self::Journal => "journal",
        }
    }
}

/// The differences of an array from similar ones, in the order in which they are written: `degraded`, `write-through`,
/// `measured`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant(Vec<String>);

impl Variant {
    /// Has the array no difference?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a difference, unless it has no words.
    pub fn add(&mut self, difference: impl Into<String>) {
        self.0.extend([difference.into()].into_iter().filter(|words| !words.is_empty()));
    }

    /// The write cache, if it is one of the differences.
    #[must_use]
    pub fn cache(&self) -> Option<ReportCache> {
        let is_named = |cache: &ReportCache| self.differences().any(|words| words == cache.words());
        ReportCache::ALL.into_iter().find(is_named)
    }

    /// The differences other than the write cache.
    #[must_use]
    pub fn without_cache(&self) -> Self {
        let is_other = |words: &&String| ReportCache::ALL.iter().all(|cache| cache.words() != words.as_str());
        Self(self.0.iter().filter(is_other).cloned().collect())
    }

    /// All differences.
    pub fn differences(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// One difference, or none if the text is empty.
impl<T: Into<String>> From<T> for Variant {
    fn from(difference: T) -> Self {
        let mut variant = Self::default();
        variant.add(difference);
        variant
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Drives with names of their own are single drives too; a variant names them.
impl From<cell::Subject> for ReportSubject {
    fn from(subject: cell::Subject) -> Self {
        match subject {
            cell::Subject::Array { level, members } => Self::new(level, members),
            _ => Self::new(Level::Single, 1),
        }
    }
}

impl fmt::Display for ReportSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            _ if !self.name.is_empty() => write!(f, "{}", self.name)?,
            Level::Single => write!(f, "single")?,
            level => write!(f, "{} x{}", level.title(), self.members)?,
        }
        self.variant.differences().try_for_each(|difference| write!(f, ", {difference}"))
    }
}

/// The form in which a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through its points, with the spread as a band.
    Line,
    /// Only points, with the spread as whiskers: measured values over predicted ones.
    Points,
}

/// The results of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The subject of the line.
    pub subject: ReportSubject,
    /// The form in which it is drawn.
    pub mark: Mark,
    /// In rising order of x.
    pub points: Vec<Point>,
    /// Positions without a result, with the reason.
    pub absent: Vec<AbsentPoint>,
}

impl Series {
    /// A line through points.
    #[must_use]
    pub const fn line(subject: ReportSubject, points: Vec<Point>) -> Self {
        Self { subject, mark: Mark::Line, points, absent: Vec::new() }
    }
}

/// A position of a series without a result.
#[derive(Clone, Debug, PartialEq)]
pub struct AbsentPoint {
    /// Position.
    pub x: f64,
    pub reason: String,
}

/// One result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Position.
    pub x: f64,
    /// Median of the runs.
    pub y: f64,
    /// Lowest run, or the lower end of the interval.
    pub low: f64,
    /// Highest run, or the upper end of the interval.
    pub high: f64,
    /// Number of runs.
    pub runs: u32,
    /// Was at least one run not yet steady when it was measured?
    pub unsteady: bool,
    /// The activity of the machine during the measurement, if it is known.
    pub evidence: Option<Evidence>,
}

impl Point {
    /// A result of one run, without spread.
    #[must_use]
    pub const fn exact(x: f64, y: f64) -> Self {
        Self { x, y, low: y, high: y, runs: 1, unsteady: false, evidence: None }
    }

    /// A result of several runs.
    #[must_use]
    pub const fn spread(x: f64, y: f64, low: f64, high: f64, runs: u32) -> Self {
        Self { x, y, low, high, runs, unsteady: false, evidence: None }
    }

    /// The same result with the activity of the machine.
    #[must_use]
    pub fn with(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }
}

/// The activity of a machine during the measurement of a result. Sentences about causes use only this.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The load of each part.
    pub loads: Vec<PartLoad>,
    /// Numbers of events per host request: `read-modify-write` 0.97, `read-ahead hit` 0.5.
    pub rates: Vec<DecisionRate>,
    /// Commands that the drives completed per host request, if they were counted.
    pub commands: Option<f64>,
}

/// The load of a part of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct PartLoad {
    pub part: MachinePart,
    /// Share of the time, 0 to 1.
    pub busy: f64,
}

/// A part of a machine that can be the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachinePart {
    /// The busiest member drive.
    Drives,
    /// A bus or link by its name.
    Bus(String),
    /// The controller's processor.
    ControllerCpu,
    /// The parity engine.
    Parity,
    /// The controller's own data path, without the bus.
    DataPath,
    /// Stripes that the controller collects: share of the time in which all of them were in use.
    OpenStripes,
    /// The busiest thread of the host.
    Worker,
    /// The host's processor.
    HostCpu,
    /// The load generator itself. Then the generator limits the result, and not the array.
    Generator,
}

impl fmt::Display for MachinePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drives => f.write_str("the busiest drive"),
            Self::Bus(name) => f.write_str(name),
            Self::ControllerCpu => f.write_str("the controller's processor"),
            Self::Parity => f.write_str("the parity engine"),
            Self::DataPath => f.write_str("the controller's data path"),
            Self::OpenStripes => f.write_str("the number of stripes that the controller puts together at once"),
            Self::Worker => f.write_str("a thread of the host"),
            Self::HostCpu => f.write_str("the host's processor"),
            Self::Generator => f.write_str("the load generator"),
        }
    }
}

/// The effect of a decision on the time of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It takes time.
    Cost,
    /// It saves time.
    Gain,
    /// It saves time, and every write of an array with a write cache has it.
    CachedWrite,
    /// Every request of its kind has it, so it explains nothing.
    Routine,
    /// It takes no time: no host waits for it, or the level of the array implies it.
    Free,
}

impl Effect {
    /// Does every request of its kind have it?
    #[must_use]
    pub const fn is_routine(self) -> bool {
        matches!(self, Self::Routine | Self::CachedWrite)
    }
}

/// The frequency of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRate {
    /// The decision as a noun: `read-modify-write`.
    pub what: String,
    pub effect: Effect,
    /// Times per host request.
    pub per_request: f64,
}

impl Guide {
    /// The beginning of the label of an ideal, before the words for it.
    pub const IDEAL: &str = "ideal: ";
}

/// A thin line for comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Guide {
    /// Its label: `ideal: 4 single drives`, `PCI 64/66: 528 MB/s`.
    pub label: String,
    pub kind: GuideKind,
    /// The subject of the ideal, for the sentence that says which share of the ideal was reached.
    pub subject: Option<ReportSubject>,
    /// Corners in rising order of x. One corner means a horizontal line over the whole chart.
    pub corners: Vec<(f64, f64)>,
}

/// The kinds of guides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideKind {
    /// The result of perfect scaling.
    Ideal,
    /// The ceiling of a part.
    Limit,
}

/// Horizontal bars, sorted from best to worst when they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The measured value.
    pub value: ChartAxis,
    /// One bar each.
    pub bars: Vec<Bar>,
    /// The formula of the value if it is a rating; shown below the bars. Often empty.
    pub formula: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The subject of the bar.
    pub subject: ReportSubject,
    /// The value; `x` is not used.
    pub value: Point,
}

/// Shares by two axes: the distribution of latencies for each load.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Name of the horizontal axis.
    pub x: String,
    /// Name of the vertical axis.
    pub y: String,
    /// Labels of the columns.
    pub columns: Vec<Heading>,
    /// Labels of the rows, lowest first.
    pub rows: Vec<String>,
    /// `shares[row][column]`, percent.
    pub shares: Vec<Vec<f64>>,
}

/// The heading of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// A name, which is not broken over two lines if it is short.
    pub name: String,
    /// Words after it: a variant, a unit. Often empty.
    pub more: String,
}

impl<T: Into<String>> From<T> for Heading {
    fn from(name: T) -> Self {
        Self { name: name.into(), more: String::new() }
    }
}

impl Heading {
    /// The heading for a subject.
    #[must_use]
    pub fn of(subject: &ReportSubject) -> Self {
        let plain = ReportSubject { variant: Variant::default(), ..subject.clone() };
        Self { name: plain.to_string(), more: subject.variant.to_string() }
    }
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.more.is_empty() { "" } else { ", " };
        write!(f, "{}{comma}{}", self.name, self.more)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportTable {
    pub caption: String,
    /// Heading of the first column.
    pub corner: String,
    /// Headings of the other columns.
    pub columns: Vec<Heading>,
    pub rows: Vec<ReportRow>,
    /// The formula of the numbers. Often empty.
    pub formula: String,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRow {
    /// Heading of the row.
    pub head: String,
    /// The level whose colour marks the row.
    pub level: Option<Level>,
    /// One cell for each column.
    pub cells: Vec<ReportCell>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportCell {
    Number(f64),
    /// A number with its lowest and highest run.
    Spread {
        /// Median.
        value: f64,
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
    },
    /// A number from a load that was not steady, with its lowest and highest run.
    Unsteady {
        /// Median.
        value: f64,
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
    },
    /// A ratio to 1: above is better (blue, triangle upwards), below is worse (red, triangle downwards).
    Ratio(f64),
    /// A ratio of which at least one side was not steady.
    UnsteadyRatio(f64),
    /// A change in percent, with its sign.
    Change(f64),
    Text(String),
    /// No result, with the reason.
    NotApplicable(String),
}

/// A sentence that explains a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFinding {
    pub kind: FindingKind,
    /// The sentence.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// The result may be misleading: noise, a cache, the generator.
    Warning,
    /// The part that limits the speed.
    Limit,
    /// The cause of a line's shape.
    Shape,
    /// A comparison of results.
    Comparison,
}
