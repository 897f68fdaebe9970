//! The meaning of a call: the load and every axis, completed from the claim's workload and the load's own defaults.
//!
//! The claim's workload gives block size, depth, direction and clients to its own pattern only. So a metric with a
//! load of its own (FC-Test, transfer graph, applications, latency) does not use them, nor does a check that names
//! another pattern. A pattern also uses only the axes that have a meaning for it; the others describe the test. An axis
//! that a check gives must keep its meaning, and must never be ignored.

use crate::axis_arguments::{Axis, AxisValue, AxisValues};
use crate::language::names::{RND, SEQ};
use crate::metric::{Metric, MetricCall, MetricTarget, NotApplicable};
use crate::subject::{Level, Subject};
use crate::workload::{ClaimLoad, STATIC};
use openraid_methods::cell::{self, Direction, Pattern};

/// A load and its axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Aim {
    /// The load; none for a property of the array.
    pub load: Option<ClaimLoad>,
    /// Whether latencies are measured: the RST load, with a time for every request.
    latency: bool,
    pub axes: AxisValues,
    /// If given, only requests in this direction count, of a load with reads and writes.
    pub part: Option<Direction>,
    /// Axes that the check itself gave.
    given: AxisValues,
}

/// Axes that belong to a pattern, not to the array.
const OF_A_PATTERN: [Axis; 13] = [
    Axis::Bs,
    Axis::Qd,
    Axis::Oio,
    Axis::Rd,
    Axis::Op,
    Axis::Th,
    Axis::Workers,
    Axis::Users,
    Axis::Secs,
    Axis::WarmS,
    Axis::Zone,
    Axis::Set,
    Axis::App,
];

/// Bytes of a request of the metric M4.
const M4_BLOCK: u64 = 4096;
/// Greatest depth of a load of an RST method, for each worker.
const RST_DEPTH_MOST: u64 = 64;

impl Aim {
    /// The aim of a call.
    ///
    /// # Errors
    /// The metric has no meaning for the claim's load.
    pub fn of(call: &MetricCall) -> Result<Self, NotApplicable> {
        let named = call.axes.text(Axis::Pat).and_then(ClaimLoad::of_pat);
        let of_metric = match call.metric {
            Metric::Fct => Some(ClaimLoad::from(Pattern::FcTest)),
            Metric::Lin => Some(ClaimLoad::from(Pattern::TransferGraph)),
            Metric::Score | Metric::Gain => Some(ClaimLoad::from(Pattern::Application)),
            Metric::M4 | Metric::MeanUs | Metric::PctlUs => Some(ClaimLoad::from(Pattern::SsdRandom)),
            _ => None,
        };
        if let (Some((named, _)), Some(load)) = (&named, &of_metric) {
            if named != load {
                let (metric, load) = (call.metric.name(), load.name());
                let reason = format!("{metric} is always measured by {load}; leave pat out, or ask for another metric");
                return Err(NotApplicable::new(reason));
            }
        }
        let (load, direction) = match (named, of_metric) {
            (Some((load, direction)), None) => (Some(load), direction),
            (_, Some(load)) => (Some(load), None),
            (None, None) => (call.workload.load.clone(), None),
        };
        if load.is_none() && call.metric != Metric::Capacity {
            let reason = format!("{} needs a load: name one with pat", call.metric.name());
            return Err(NotApplicable::new(reason));
        }
        let latency = matches!(call.metric, Metric::MeanUs | Metric::PctlUs);
        let pattern = load.as_ref().map(|load| &load.pattern);
        let rst = matches!(pattern, Some(Pattern::SsdSequential | Pattern::SsdRandom));
        if let Some(load) = &load {
            meaningless(call, load)?;
        }
        let (given, part) = part(call, pattern);
        let mut aim = Self { load, latency, axes: AxisValues::new(), part, given };
        let defaults = aim.defaults(call, direction);
        aim.axes = aim.given.or(&defaults);
        if !aim.axes.has(Axis::Rd) && !aim.axes.has(Axis::Op) {
            if let Some(direction) = direction.or(aim.load.as_ref().and_then(|load| load.direction)) {
                aim.set(Axis::Rd, reads_of(direction).into());
            }
        }
        // The processor time of a load is known for the request size of the pattern.
        if call.metric == Metric::Cpu && rst && !aim.axes.has(Axis::Qd) && !aim.axes.has(Axis::Oio) {
            aim.set(Axis::Qd, RST_DEPTH_MOST);
        }
        Ok(aim)
    }

    /// The workload's values for axes that neither the check nor the direction of its pattern gives.
    fn defaults(&self, call: &MetricCall, direction: Option<Direction>) -> AxisValues {
        let given = &self.given;
        let mut defaults = call.workload.defaults.clone();
        if self.load != call.workload.load {
            defaults = OF_A_PATTERN.into_iter().fold(defaults, AxisValues::without);
        }
        defaults = useful(defaults, &self.pattern());
        // A direction from the check excludes a share of reads from the workload, and the reverse.
        if given.has(Axis::Op) || direction.is_some() {
            defaults = defaults.without(Axis::Rd);
        }
        if given.has(Axis::Rd) || direction.is_some() {
            defaults = defaults.without(Axis::Op);
        }
        if given.has(Axis::Qd) || given.has(Axis::Oio) {
            defaults = defaults.without(Axis::Qd).without(Axis::Oio);
        }
        // Each client is a worker, so only one of the two numbers is used. The pattern's own name for it has precedence.
        if given.has(Axis::Th) || (defaults.has(Axis::Th) && !given.has(Axis::Workers)) {
            defaults = defaults.without(Axis::Workers);
        } else if given.has(Axis::Workers) {
            defaults = defaults.without(Axis::Th);
        }
        if call.metric == Metric::M4 {
            // Regardless of the workload's block size.
            defaults = defaults.number(Axis::Bs, M4_BLOCK);
        }
        defaults
    }

    fn set(&mut self, axis: Axis, value: u64) {
        self.axes = self.axes.clone().number(axis, value);
    }

    /// The same aim with a number for another axis.
    #[must_use]
    pub fn at(mut self, axis: Axis, value: u64) -> Self {
        // Either of the two axes gives the depth of a load.
        match axis {
            Axis::Oio => self.axes = self.axes.without(Axis::Qd),
            Axis::Qd => self.axes = self.axes.without(Axis::Oio),
            _ => {}
        }
        self.axes = self.axes.number(axis, value);
        self
    }

    /// The same aim with a word for another axis.
    #[must_use]
    pub fn word(mut self, axis: Axis, value: &str) -> Self {
        self.axes = self.axes.word(axis, value);
        self
    }

    /// The same aim without a chosen or slow member: for the single drive with which an array is compared.
    #[must_use]
    pub fn of_regular_drive(mut self) -> Self {
        self.axes = self.axes.without(Axis::Member).without(Axis::Slow);
        self
    }

    /// All aims among which a peak is searched: the block sizes of the pattern. An RST pattern has one block size, so the
    /// depths are used.
    pub fn peak_aims(&self, rst_depths: &[u64]) -> Vec<Self> {
        let pattern = self.pattern();
        let sizes: &[u64] = match pattern {
            Pattern::Sequential => &SEQ,
            Pattern::Random => &RND,
            _ => &[],
        };
        let deep = self.axes.has(Axis::Qd) || self.axes.has(Axis::Oio);
        match pattern {
            _ if self.given.has(Axis::Bs) => vec![self.clone()],
            Pattern::SsdSequential | Pattern::SsdRandom if !deep => {
                rst_depths.iter().map(|depth| self.clone().at(Axis::Qd, *depth)).collect()
            }
            _ if sizes.is_empty() => vec![self.clone()],
            _ => sizes.iter().map(|size| self.clone().at(Axis::Bs, *size)).collect(),
        }
    }

    /// The pattern of its cells. A property of the array is the same for each pattern.
    pub fn pattern(&self) -> Pattern {
        match &self.load {
            _ if self.latency => Pattern::Latency,
            Some(load) => load.pattern.clone(),
            None => Pattern::Database,
        }
    }

    /// The axes in the form of the laboratory.
    ///
    /// # Errors
    /// A value that the laboratory does not accept.
    pub fn cell_axes(&self) -> Result<cell::Axes, NotApplicable> {
        let mut cell = cell::Axes::default();
        for (axis, value) in self.axes.iter() {
            match (axis, value) {
                // The load, and what a metric asks of its cells.
                (Axis::Pat | Axis::Op | Axis::Pos | Axis::Member | Axis::N | Axis::K | Axis::P, _) => {}
                (Axis::WarmS | Axis::Secs, AxisValue::Number(seconds)) if seconds.fract() != 0.0 => {
                    let reason = format!("{axis}={seconds}: the laboratory measures whole seconds; give 1 or more");
                    return Err(NotApplicable::new(reason));
                }
                (Axis::Ctl, AxisValue::Word(name)) => cell.ctl = Some(name.to_ascii_lowercase()),
                (Axis::HostSpeed, AxisValue::Number(factor)) => cell.host_speed_percent = Some(percent(*factor)),
                _ => {
                    let unknown = |_| NotApplicable::new(format!("the laboratory has no {axis} {value}"));
                    cell.set(axis, value).map_err(unknown)?;
                }
            }
        }
        cell.slow = cell.slow.filter(|slow| *slow);
        self.direction(&mut cell)?;
        // The reviews tested new SSDs: their method has no preconditioning (M33 is a proposal).
        if matches!(self.pattern(), Pattern::SsdSequential | Pattern::SsdRandom | Pattern::Latency) {
            cell.fresh = Some(true);
        }
        Ok(cell)
    }

    /// `op` is a direction, or a step of FC-Test.
    fn direction(&self, cell: &mut cell::Axes) -> Result<(), NotApplicable> {
        let op = self.axes.text(Axis::Op);
        if self.pattern() == Pattern::FcTest {
            let word = if op == Some("write") { Some("create") } else { op };
            cell.step = word.and_then(cell::FileStep::from_word);
            return Ok(());
        }
        match op {
            None => {}
            Some(word) => match Direction::from_word(word) {
                Some(direction) if cell.rd.is_some_and(|rd| rd != reads_of(direction)) => {
                    return Err(NotApplicable::new("op and rd contradict each other; give one of them"));
                }
                Some(direction) => cell.rd = Some(reads_of(direction)),
                None => {
                    let load = self.load.as_ref().map_or(STATIC, ClaimLoad::name);
                    let reason = format!("op='{word}' is a step of FC-Test, and this is {load}");
                    return Err(NotApplicable::new(reason));
                }
            },
        }
        Ok(())
    }
}

/// The workload's values with a meaning for a pattern. The others describe the test, and the laboratory refuses axes
/// without a meaning for a pattern.
fn useful(defaults: AxisValues, pattern: &Pattern) -> AxisValues {
    let files = matches!(pattern, Pattern::FcTest | Pattern::Application);
    let taken = cell::load_axes(pattern);
    let unused = |axis: &Axis| match axis {
        // The file system describes the formatting of the target: it stays for every pattern with files.
        Axis::Fs => !files,
        Axis::Set => *pattern != Pattern::FcTest,
        Axis::App => *pattern != Pattern::Application,
        // The field `streams` is for a sequential load of several clients only.
        Axis::Th => *pattern != Pattern::MultiThreaded,
        // Steps of FC-Test are not directions.
        Axis::Op if *pattern != Pattern::FcTest => {
            let direction = defaults.text(Axis::Op).and_then(Direction::from_word);
            direction.is_none() || !taken.contains(&Axis::Op)
        }
        axis => !taken.contains(axis),
    };
    let unused: Vec<Axis> = OF_A_PATTERN.into_iter().chain([Axis::Fs]).filter(unused).collect();
    unused.into_iter().fold(defaults, AxisValues::without)
}

/// The check's axes without a direction that selects requests of a mixed load, and that direction.
fn part(call: &MetricCall, pattern: Option<&Pattern>) -> (AxisValues, Option<Direction>) {
    let whole = (call.axes.clone(), None);
    let direction = match (call.metric, call.axes.text(Axis::Op)) {
        (Metric::Lat | Metric::Count, Some("read")) => Direction::Read,
        (Metric::Lat | Metric::Count, Some("write")) => Direction::Write,
        _ => return whole,
    };
    let mixed = call.axes.whole(Axis::Rd).is_some_and(|reads| (1..100).contains(&reads));
    let mix = matches!(pattern, Some(Pattern::FileServer | Pattern::WebServer | Pattern::Workstation));
    if mixed || mix {
        (call.axes.clone().without(Axis::Op), Some(direction))
    } else {
        whole
    }
}

/// Reject axes of the check without a meaning for the load or the metric, and arrays on which the load cannot run.
fn meaningless(call: &MetricCall, load: &ClaimLoad) -> Result<(), NotApplicable> {
    use Pattern::{Application, FcTest, TransferGraph};
    let (name, pattern) = (load.name(), &load.pattern);
    let metric = call.metric.name();
    let given = |axis: Axis| call.axes.has(axis);
    if call.metric == Metric::Capacity {
        return Ok(());
    }
    for (axis, patterns) in [
        (Axis::Pos, &[TransferGraph][..]),
        (Axis::Set, &[FcTest]),
        (Axis::App, &[Application]),
        (Axis::Fs, &[FcTest, Application]),
    ] {
        if given(axis) && !patterns.contains(pattern) {
            let loads: Vec<ClaimLoad> = patterns.iter().cloned().map(ClaimLoad::from).collect();
            let names = loads.iter().map(ClaimLoad::name).collect::<Vec<_>>().join(" and ");
            let reason = format!("{} means nothing to {name}: it belongs to {names}; leave it out", axis.word());
            return Err(NotApplicable::new(reason));
        }
    }
    let fixed: &[(Axis, &str)] = match call.metric {
        Metric::Rating => &[(Axis::Qd, "the depths of its scheme"), (Axis::Oio, "the depths of its scheme")],
        Metric::M4 => &[(Axis::Qd, "every load of OIO"), (Axis::Oio, "every load of OIO")],
        Metric::Gain => &[(Axis::CacheMib, "256 and 128 MiB")],
        Metric::Wbwt => &[(Axis::Cache, "both settings")],
        _ => &[],
    };
    if let Some((axis, over)) = fixed.iter().find(|(axis, _)| given(*axis)) {
        let reason = format!("{metric} is made over {over}; leave {} out, or ask for another metric", axis.word());
        return Err(NotApplicable::new(reason));
    }
    let is_jbod = matches!(call.target, MetricTarget::Subject(Subject::Array { level: Level::Jbod, .. }));
    if is_jbod && matches!(pattern, FcTest | TransferGraph | Application) {
        let reason = format!("{name} is of one array, and these are drives side by side; ask for single");
        return Err(NotApplicable::new(reason));
    }
    Ok(())
}

/// Percentage of reads for a direction.
const fn reads_of(direction: Direction) -> u8 {
    match direction {
        Direction::Read => 100,
        Direction::Write => 0,
    }
}

/// A factor between a hundredth and a hundred.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn percent(factor: f64) -> u32 {
    (factor * 100.0).round().clamp(1.0, 10_000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ClaimWorkload;
    use openraid_methods::cell::CellSpec;
    use serde_json::json;

    fn call(metric: Metric, workload: serde_json::Value, axes: AxisValues) -> MetricCall {
        let workload = ClaimWorkload::from_fields(workload.as_object().expect("an object")).expect("a method");
        let target = MetricTarget::Subject(Subject::Array { level: Level::Raid5, members: 4 });
        MetricCall { system: "x".into(), metric, target, axes, workload }
    }

    fn aim(metric: Metric, workload: serde_json::Value, axes: AxisValues) -> (Pattern, cell::Axes) {
        let aim = Aim::of(&call(metric, workload, axes)).expect("an aim");
        (aim.pattern(), aim.cell_axes().expect("axes"))
    }

    #[test]
    fn the_claims_own_pattern_takes_the_workloads_values() {
        let load = json!({"pattern": "database", "block": 8192, "read_pct": 40, "qd": 16, "streams": 1, "cache": "wb"});
        let (pattern, axes) = aim(Metric::Iops, load.clone(), AxisValues::new());
        assert_eq!(pattern, Pattern::Database);
        assert_eq!((axes.bs, axes.rd, axes.qd, axes.th), (Some(8192), Some(40), Some(16), None));
        let (_, axes) = aim(Metric::Iops, load.clone(), AxisValues::new().number(Axis::Rd, 0).number(Axis::Oio, 8));
        assert_eq!((axes.rd, axes.qd, axes.oio), (Some(0), None, Some(8)));
        // Another pattern has its own axes; the axes of the array stay.
        let (pattern, axes) = aim(Metric::PeakMbps, load, AxisValues::new().word(Axis::Pat, "sw"));
        assert_eq!(pattern, Pattern::Sequential);
        assert_eq!((axes.bs, axes.rd, axes.qd, axes.cache), (None, Some(0), None, Some(cell::CacheMode::WriteBack)));
    }

    #[test]
    fn directions_of_the_check_win_over_shares_of_the_workload() {
        let load = json!({"pattern": "response-time", "block": 512, "read_pct": 100, "qd": 1, "duration_s": 600});
        let (_, axes) = aim(Metric::Lat, load.clone(), AxisValues::new().word(Axis::Op, "write"));
        assert_eq!((axes.rd, axes.secs), (Some(0), Some(600)));
        let both = AxisValues::new().word(Axis::Op, "write").number(Axis::Rd, 100);
        let aimed = Aim::of(&call(Metric::Lat, load, both)).expect("an aim");
        assert!(aimed.cell_axes().is_err());
        let random = json!({"pattern": "random-write-by-block", "read_pct": 0});
        assert_eq!(aim(Metric::Mbps, random, AxisValues::new().number(Axis::Bs, 4096)).1.rd, Some(0));
        let mix = json!({"pattern": "file-server", "block": "512..64K mix", "read_pct": 80, "qd": "1..256"});
        assert_eq!(aim(Metric::Iops, mix, AxisValues::new().number(Axis::Qd, 4)).1.rd, None);
    }

    #[test]
    fn metrics_with_a_method_of_their_own_use_it() {
        let load =
            json!({"pattern": "multithreaded", "block": 65536, "read_pct": 0, "qd": 1, "cycle": 2, "streams": 3});
        let (pattern, axes) = aim(Metric::Mbps, load.clone(), AxisValues::new());
        assert_eq!((pattern, axes.th, axes.cyc), (Pattern::MultiThreaded, Some(3), Some(cell::Cycle::Second)));
        let (pattern, axes) = aim(Metric::Lin, load.clone(), AxisValues::new().word(Axis::Pos, "end"));
        assert_eq!((pattern, axes.bs, axes.th), (Pattern::TransferGraph, None, None));
        let copy = AxisValues::new().word(Axis::Op, "copy_same").word(Axis::Set, "iso");
        let (pattern, axes) = aim(Metric::Fct, load.clone(), copy);
        assert_eq!((pattern, axes.step, axes.rd), (Pattern::FcTest, Some(cell::FileStep::CopySame), None));
        let (pattern, _) = aim(Metric::PctlUs, load.clone(), AxisValues::new());
        assert_eq!(pattern, Pattern::Latency);
        let (pattern, axes) = aim(Metric::M4, load, AxisValues::new().number(Axis::Rd, 100));
        assert_eq!((pattern, axes.rd, axes.fresh), (Pattern::SsdRandom, Some(100), Some(true)));
        let files = json!({"pattern": "fc-test", "fs": "fat32", "set": "iso", "op": "create", "users": 4});
        let (pattern, axes) = aim(Metric::Score, files.clone(), AxisValues::new().word(Axis::App, "winmark99"));
        assert_eq!((pattern, axes.fs, axes.set), (Pattern::Application, Some(cell::FileSystem::Fat32), None));
        assert_eq!((axes.users, axes.rd), (None, None), "a score creates no files");
        let (pattern, axes) = aim(Metric::Mbps, files, AxisValues::new().word(Axis::Pat, "sr"));
        assert_eq!((pattern, axes.fs, axes.set, axes.rd), (Pattern::Sequential, None, None, Some(100)));
        let still = json!({"pattern": "static-property"});
        assert!(Aim::of(&call(Metric::Iops, still.clone(), AxisValues::new())).is_err());
        assert!(Aim::of(&call(Metric::Capacity, still, AxisValues::new())).is_ok());
    }

    #[test]
    fn a_value_that_the_method_of_a_claim_does_not_use_describes_the_test_and_is_no_axis() {
        let all = json!({
            "block": 65536, "op": "read", "read_pct": 100, "streams": 3, "workers": 3, "users": 2, "duration_s": 60,
            "warm_s": 5, "zone": "full", "set": "iso", "fs": "ntfs", "app": "business", "cache": "wb", "cache_mib": 64,
            "cycle": 1, "rep": 2,
        });
        let metric = |load: ClaimLoad| match load.pattern {
            Pattern::FcTest => Metric::Fct,
            Pattern::TransferGraph => Metric::Lin,
            Pattern::Application => Metric::Score,
            _ => Metric::Iops,
        };
        for (name, ..) in Pattern::CLAIM_LOADS {
            for (depth, op) in [("qd", "read"), ("oio", "copy_same")] {
                let mut load = all.clone();
                (load["pattern"], load[depth], load["op"]) = (json!(name), json!(4), json!(op));
                let metric = metric(ClaimLoad::of(name).expect("a load"));
                // Like the metric `score` with a total, which is for several applications.
                let call = call(metric, load, AxisValues::new());
                let aim = Aim::of(&call).expect(name).word(Axis::App, "winmark99");
                let subject = "raid5x4".parse().expect("an array");
                let spec = CellSpec::new("3ware-9650se", subject, aim.pattern()).with(aim.cell_axes().expect(name));
                spec.check().unwrap_or_else(|error| panic!("{name}, {depth}: {error}"));
                // Values of the machine stay, for every method.
                assert_eq!((spec.axes.cache_mib, spec.axes.rep), (Some(64), Some(2)), "{name}");
            }
        }
        // A value that the check gives is not ignored: the laboratory reports that it has no meaning.
        let graph = json!({"pattern": "winbench99-transfer-graph", "block": 65536});
        let (pattern, axes) = aim(Metric::Lin, graph, AxisValues::new().number(Axis::Bs, 512));
        assert_eq!(axes.bs, Some(512));
        let spec = CellSpec::new("3ware-9650se", "single".parse().expect("one"), pattern).with(axes);
        assert!(spec.check().is_err());
        // One number of clients: the one of the check, or the one with the method's own name.
        let load = json!({"pattern": "multithreaded", "streams": 3, "workers": 2});
        let clients = |axes: AxisValues| {
            let (_, axes) = aim(Metric::Mbps, load.clone(), axes);
            (axes.th, axes.workers)
        };
        assert_eq!(clients(AxisValues::new()), (Some(3), None));
        assert_eq!(clients(AxisValues::new().number(Axis::Th, 4)), (Some(4), None));
        assert_eq!(clients(AxisValues::new().number(Axis::Workers, 2)), (None, Some(2)));
    }

    #[test]
    fn a_direction_picks_requests_of_a_load_that_reads_and_writes() {
        let load = json!({"pattern": "database", "block": 8192, "qd": 16});
        let of = |metric, axes: AxisValues| Aim::of(&call(metric, load.clone(), axes)).expect("an aim");
        let op = |word: &str| AxisValues::new().word(Axis::Op, word);
        let mixed = of(Metric::Lat, op("write").number(Axis::Rd, 50));
        assert_eq!((mixed.part, mixed.cell_axes().expect("axes").rd), (Some(Direction::Write), Some(50)));
        let web = of(Metric::Count, op("read").word(Axis::Pat, "web"));
        assert_eq!((web.part, web.cell_axes().expect("axes").rd), (Some(Direction::Read), None));
        // If the load has one direction, that direction counts.
        let plain = of(Metric::Lat, op("write"));
        assert_eq!((plain.part, plain.cell_axes().expect("axes").rd), (None, Some(0)));
        assert!(of(Metric::Iops, op("write").number(Axis::Rd, 50)).cell_axes().is_err());
    }

    #[test]
    fn a_value_without_meaning_is_reported() {
        let jbod = MetricTarget::Subject(Subject::Array { level: Level::Jbod, members: 4 });
        let load = json!({"pattern": "database", "fs": "ntfs"});
        let refused = |metric, target: &MetricTarget, axes: AxisValues| {
            Aim::of(&MetricCall { target: target.clone(), ..call(metric, load.clone(), axes) }).is_err()
        };
        let array = MetricTarget::Subject(Subject::Array { level: Level::Raid5, members: 4 });
        for (metric, axes) in [
            (Metric::Mbps, AxisValues::new().word(Axis::Pos, "end")),
            (Metric::Iops, AxisValues::new().word(Axis::Set, "iso")),
            (Metric::Iops, AxisValues::new().word(Axis::Fs, "ntfs")),
            (Metric::Iops, AxisValues::new().word(Axis::App, "winmark99")),
            (Metric::Score, AxisValues::new().word(Axis::Set, "iso")),
            (Metric::Rating, AxisValues::new().number(Axis::Qd, 16)),
            (Metric::M4, AxisValues::new().number(Axis::Oio, 16)),
            (Metric::Gain, AxisValues::new().number(Axis::CacheMib, 64)),
            (Metric::Wbwt, AxisValues::new().word(Axis::Cache, "wt")),
        ] {
            assert!(refused(metric, &array, axes.clone()), "{metric:?} {axes}");
        }
        assert!(!refused(Metric::Lin, &array, AxisValues::new().word(Axis::Pos, "end")));
        assert!(!refused(Metric::Score, &array, AxisValues::new().word(Axis::Fs, "ntfs")));
        for metric in [Metric::Lin, Metric::Fct, Metric::Score, Metric::Gain] {
            assert!(
                refused(metric, &jbod, AxisValues::new()) && !refused(metric, &array, AxisValues::new()),
                "{metric:?}"
            );
        }
        assert!(!refused(Metric::Iops, &jbod, AxisValues::new()));
        let short = call(Metric::Iops, load.clone(), AxisValues::new().with(Axis::Secs, AxisValue::Number(0.25)));
        assert!(Aim::of(&short).expect("an aim").cell_axes().is_err());
    }

    #[test]
    fn peaks_are_looked_for_among_sizes_or_depths() {
        let of = |pattern: &str, axes: AxisValues| {
            Aim::of(&call(Metric::PeakMbps, json!({"pattern": pattern, "qd": "1..64"}), axes))
                .expect("an aim")
                .peak_aims(&[1, 2])
        };
        assert_eq!(of("sequential", AxisValues::new()).len(), 12);
        assert_eq!(of("random-read-by-block", AxisValues::new()).len(), 13);
        assert_eq!(of("sequential", AxisValues::new().number(Axis::Bs, 4096)).len(), 1);
        assert_eq!(of("rst-sequential", AxisValues::new()).len(), 2);
        assert_eq!(of("rst-sequential", AxisValues::new().number(Axis::Qd, 4)).len(), 1);
        assert_eq!(of("file-server", AxisValues::new()).len(), 1);
    }
}
