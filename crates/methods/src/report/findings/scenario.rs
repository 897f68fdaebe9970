//! The best array for each use, in sentences: the order, the lead, the cause that the counters show, and reasons to
//! doubt the result.

use super::super::data::{
    Effect, Evidence, Heading, MachinePart, Point, ReportCell, ReportRow, ReportSubject, ReportTable, Unit,
};
use super::super::format::{capital, fixed, list, percent, value};
use super::compare::times;
use super::{busiest, cause, TIE};
use std::collections::BTreeMap;

/// A smaller difference in decisions per request explains nothing.
const RATE_LEAST: f64 = 0.1;
/// Maximum number of decisions in one comparison.
const RATES_TOLD: usize = 2;
/// Maximum number of unsteady arrays that are named; of more, the number is given.
const UNSTEADY_TOLD: usize = 4;
/// Maximum number of arrays in the sentence about all scenarios; the table has all of them.
const RANKED_TOLD: usize = 6;

/// A use of arrays, with the result of each array. More is better.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadScenario {
    /// `File server`.
    pub name: String,
    /// The meaning of the figure: `rating R1`, `4 streams read`.
    pub what: String,
    /// Unit of the figure.
    pub unit: Unit,
    /// One entry for each array.
    pub entries: Vec<ScenarioEntry>,
}

/// An array in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioEntry {
    pub subject: ReportSubject,
    /// Its figure.
    pub value: Point,
    /// The results from which the figure is computed: the load as text, and the result. Arrays are compared at equal
    /// loads.
    pub places: Vec<(String, Point)>,
    /// Number of these results that caches or a ceiling distort.
    pub flagged: usize,
}

impl LoadScenario {
    /// The entries, the best first.
    fn sorted(&self) -> Vec<&ScenarioEntry> {
        let mut all: Vec<&ScenarioEntry> = self.entries.iter().filter(|entry| entry.value.y.is_finite()).collect();
        all.sort_by(|a, b| b.value.y.total_cmp(&a.value.y));
        all
    }

    /// The scenario without the arrays whose results were not steady. None if one of these may be the best, or if fewer
    /// than two arrays are left.
    fn settled(&self) -> Option<Self> {
        let best = |unsteady: bool| {
            let of_kind = self.entries.iter().filter(|entry| entry.value.unsteady == unsteady);
            of_kind.map(|entry| entry.value.y).fold(f64::NEG_INFINITY, f64::max)
        };
        let entries: Vec<ScenarioEntry> = self.entries.iter().filter(|entry| !entry.value.unsteady).cloned().collect();
        (best(false) >= best(true) && (entries.len() > 1 || entries.len() == self.entries.len()))
            .then(|| Self { entries, ..self.clone() })
    }

    /// The arrays that are equal to the best, and the others, the best first.
    fn split(&self) -> (Vec<&ScenarioEntry>, Vec<&ScenarioEntry>) {
        let all = self.sorted();
        let top = all.first().map_or(0.0, |entry| entry.value.y);
        all.into_iter().partition(|entry| top - entry.value.y <= TIE * top)
    }

    fn figure(&self, entry: &ScenarioEntry) -> String {
        value(&self.unit, entry.value.y)
    }
}

/// The arrays that were not steady: their names, or their number if they are many.
fn unsteady_names(names: &[String], all: usize) -> String {
    match names.len() {
        few if few <= UNSTEADY_TOLD => list(names),
        many if many == all => "all arrays".into(),
        many => format!("{many} of {all} arrays"),
    }
}

fn names(entries: &[&ScenarioEntry]) -> String {
    list(&entries.iter().map(|entry| entry.subject.to_string()).collect::<Vec<_>>())
}

/// The verdict on a scenario. Arrays whose results were not steady have no place in it.
#[must_use]
pub fn verdict(scenario: &LoadScenario) -> String {
    let (unsteady, steady): (Vec<_>, Vec<_>) = scenario.entries.iter().cloned().partition(|entry| entry.value.unsteady);
    if unsteady.is_empty() {
        return of_steady(scenario);
    }
    let left_out: Vec<String> = unsteady.iter().map(|entry| entry.subject.to_string()).collect();
    let left_out = unsteady_names(&left_out, scenario.entries.len());
    if scenario.settled().is_none() {
        return format!("No order: results of {left_out} were not steady.");
    }
    let words = of_steady(&LoadScenario { entries: steady, ..scenario.clone() });
    format!("{words} Left out: {left_out}, whose results were not steady.")
}

fn of_steady(scenario: &LoadScenario) -> String {
    let (leaders, others) = scenario.split();
    let Some(first) = leaders.first() else { return String::new() };
    let mut parts = vec![order(scenario, &leaders, &others)];
    let safe = |entry: &&&ScenarioEntry| entry.subject.level.redundant();
    if !leaders.iter().any(|entry| entry.subject.level.redundant()) {
        if let Some(best) = others.iter().find(safe) {
            let (name, figure) = (&best.subject, scenario.figure(best));
            let of_them = survival(&leaders);
            parts.push(format!("{of_them}; {name} is the best that does, with {figure}."));
        }
    }
    if let Some(second) = others.first() {
        parts.push(why(first, second));
        // Most users will buy the best array with redundancy, so the sentence also gives the cause of its distance.
        let bought = others.iter().find(safe).filter(|entry| !std::ptr::eq(**entry, *second));
        if let Some(bought) = bought.filter(|_| !first.subject.level.redundant()) {
            parts.push(why(first, bought));
        }
    }
    let compared: Vec<&ScenarioEntry> = leaders.iter().chain(others.first()).copied().collect();
    parts.extend(doubts(&compared));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The leaders survive no loss of a drive; of a target that existed before the review this is not known.
fn survival(leaders: &[&ScenarioEntry]) -> String {
    let existing: Vec<&ScenarioEntry> =
        leaders.iter().copied().filter(|entry| !entry.subject.name.is_empty()).collect();
    match (existing.len(), leaders.len()) {
        (0, 1) => "It survives no loss of a drive".into(),
        (0, _) => "These survive no loss of a drive".into(),
        (1, _) => format!("Whether {} survives the loss of a drive is not known", names(&existing)),
        _ => format!("Whether {} survive the loss of a drive is not known", names(&existing)),
    }
}

fn order(scenario: &LoadScenario, leaders: &[&ScenarioEntry], others: &[&ScenarioEntry]) -> String {
    let what = &scenario.what;
    let first = leaders[0];
    let top = scenario.figure(first);
    let against = |other: &ScenarioEntry| times(first.value.y / other.value.y);
    match (leaders, others) {
        ([one], []) => format!("{}: {top} ({what}); there is nothing to compare it with.", one.subject),
        (many, []) => format!("{} are level with {top} ({what}).", names(many)),
        ([one], [second, rest @ ..]) => {
            let single = rest.iter().find(|entry| entry.subject == single());
            let single = single.map_or_else(String::new, |entry| format!(" and {} the single drive", against(entry)));
            let (next, times) = (&second.subject, against(second));
            format!("{} is best with {top} ({what}), {times} {next} in second place{single}.", one.subject)
        }
        (many, [next, ..]) => {
            let (name, figure) = (&next.subject, scenario.figure(next));
            format!("{} are level with {top} ({what}); {name} follows with {figure}.", names(many))
        }
    }
}

const fn single() -> ReportSubject {
    ReportSubject::new(super::super::data::Level::Single, 1)
}

/// The cause of one array's lead over another, from the counters of both at the load with the largest difference.
fn why(first: &ScenarioEntry, second: &ScenarioEntry) -> String {
    let pair = first.places.iter().filter_map(|(place, point)| {
        let (_, other) = second.places.iter().find(|(known, _)| known == place)?;
        (point.y / other.y).is_finite().then_some((place, point, other))
    });
    let Some((place, point, other)) = pair.max_by(|a, b| (a.1.y / a.2.y).total_cmp(&(b.1.y / b.2.y))) else {
        return String::new();
    };
    let (a, b) = (&first.subject, &second.subject);
    let mut words = Vec::new();
    if let (Some(of_a), Some(of_b)) = (&point.evidence, &other.evidence) {
        words.extend(rates(a, of_a, b, of_b));
        words.extend(limits((a, point, of_a), (b, other, of_b)));
    }
    if words.is_empty() {
        let existing = [b, a].into_iter().find(|subject| !subject.name.is_empty());
        return match existing {
            Some(target) => {
                format!("Why {b} is slower is not known: {target} has no counters that this program can read.")
            }
            None => String::new(),
        };
    }
    let begin = match first.places.len() {
        1 => capital(place),
        _ => format!("{b} lags most {place} ({} slower)", times(point.y / other.y)),
    };
    format!("{begin}: {}.", words.join("; "))
}

/// The costs for each request that differ most: commands to drives, and decisions of the engine that cost time. An array
/// without any count was not run by this engine.
fn rates(a: &ReportSubject, of_a: &Evidence, b: &ReportSubject, of_b: &Evidence) -> Option<String> {
    if of_a.rates.is_empty() || of_b.rates.is_empty() {
        return None;
    }
    let of = |evidence: &Evidence, what: &str| {
        evidence.rates.iter().find(|rate| rate.what == what).map_or(0.0, |rate| rate.per_request)
    };
    let mut kinds: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    // More of a cost explains why an array is slower. Less of a gain does if not every request has it: the number for
    // each request of several stripes follows from the shape of the array.
    let explains = |effect: Effect, x: f64, y: f64| match effect {
        Effect::Gain | Effect::CachedWrite => x > y && y < 1.0,
        Effect::Cost => y > x,
        Effect::Routine | Effect::Free => false,
    };
    for rate in of_a.rates.iter().chain(&of_b.rates) {
        let (x, y) = (of(of_a, &rate.what), of(of_b, &rate.what));
        if (x - y).abs() >= RATE_LEAST && explains(rate.effect, x, y) {
            kinds.insert(&rate.what, (x, y));
        }
    }
    let mut found: Vec<(&str, (f64, f64))> = kinds.into_iter().collect();
    found.sort_by(|one, two| (two.1 .0 - two.1 .1).abs().total_cmp(&(one.1 .0 - one.1 .1).abs()));
    if let (Some(x), Some(y)) = (of_a.commands, of_b.commands) {
        if y - x >= RATE_LEAST {
            found.insert(0, ("commands to drives", (x, y)));
        }
    }
    let many = |count: f64, none: &str| if count < 0.005 { none.to_owned() } else { fixed(count, 2) };
    let largest = found.into_iter().take(RATES_TOLD);
    let words: Vec<String> =
        largest.map(|(what, (x, y))| format!("{} {what} ({a} {})", many(y, "no"), many(x, "none"))).collect();
    (!words.is_empty()).then(|| format!("each request of {b} takes {}", list(&words)))
}

/// The limits of both.
fn limits(
    (a, x, of_a): (&ReportSubject, &Point, &Evidence),
    (b, y, of_b): (&ReportSubject, &Point, &Evidence),
) -> Option<String> {
    let (one, two) = (busiest(of_a)?, busiest(of_b)?);
    if one.part == two.part {
        let (least, most) = (one.busy.min(two.busy).min(1.0), one.busy.max(two.busy).min(1.0));
        let busy = super::super::format::percent_range(least, most);
        return Some(match one.part {
            MachinePart::Drives if most - least >= RATE_LEAST => {
                let share = |busy: f64| percent(busy.min(1.0));
                format!("the busiest drive works {} of the time, that of {a} {}", share(two.busy), share(one.busy))
            }
            MachinePart::Drives => format!("the busiest drive of each works {busy} of the time"),
            _ => format!("the busiest part of both is {} ({busy})", one.part),
        });
    }
    Some(format!("{a}: {}; {b}: {}", cause(x)?, cause(y)?))
}

/// Reasons to doubt the order.
fn doubts(compared: &[&ScenarioEntry]) -> Vec<String> {
    let flagged: Vec<&ScenarioEntry> = compared.iter().copied().filter(|entry| entry.flagged > 0).collect();
    let mut found = Vec::new();
    if !flagged.is_empty() {
        found.push(format!("Distrust: caches have a part in results of {}.", names(&flagged)));
    }
    if let [first, .., second] = compared {
        if first.value.runs > 1 && second.value.high >= first.value.low {
            found.push("Their runs overlap, so the order is not certain.".into());
        }
    }
    found
}

/// The scenarios that have an order, without results that were not steady.
fn settled(scenarios: &[LoadScenario]) -> Vec<LoadScenario> {
    scenarios.iter().filter_map(LoadScenario::settled).collect()
}

/// Arrays that have a figure in all scenarios, by the geometric mean of their shares of the best figure, with these
/// shares.
#[must_use]
pub fn standings(scenarios: &[LoadScenario]) -> Vec<(ReportSubject, f64, Vec<f64>)> {
    let Some(first) = scenarios.first() else { return Vec::new() };
    let shares = |subject: &ReportSubject| -> Option<Vec<f64>> {
        let share = |scenario: &LoadScenario| {
            let best = scenario.sorted().first()?.value.y;
            let value = scenario.entries.iter().find(|entry| entry.subject == *subject)?.value.y;
            Some(value / best).filter(|share| share.is_finite() && *share > 0.0)
        };
        scenarios.iter().map(share).collect()
    };
    let mean = |shares: &[f64]| (shares.iter().map(|share| share.ln()).sum::<f64>() / shares.len() as f64).exp();
    let mut found: Vec<(ReportSubject, f64, Vec<f64>)> = first
        .entries
        .iter()
        .filter_map(|entry| {
            let shares = shares(&entry.subject)?;
            Some((entry.subject.clone(), mean(&shares), shares))
        })
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// The shares of the best figure as a table, the best array first. Measured and simulated arrays have groups of their
/// own, in each of which shares are of its best array. `None` if there is only one scenario or one array.
#[must_use]
pub fn table(groups: &[ScenarioGroup]) -> Option<ReportTable> {
    let mut names: Vec<&str> = Vec::new();
    for scenario in groups.iter().flat_map(|group| &group.scenarios).filter(|scenario| scenario.settled().is_some()) {
        if !names.contains(&scenario.name.as_str()) {
            names.push(&scenario.name);
        }
    }
    let mut rows = Vec::new();
    for group in groups {
        let scenarios = settled(&group.scenarios);
        let judged: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        for (subject, mean, shares) in standings(&scenarios) {
            let share = |name: &&str| {
                let place = judged.iter().position(|known| known == name);
                ReportCell::Text(place.map_or_else(|| "-".into(), |place| percent(shares[place])))
            };
            let cells = std::iter::once(ReportCell::Text(percent(mean))).chain(names.iter().map(share)).collect();
            rows.push(ReportRow { head: subject.to_string(), level: Some(subject.level), cells });
        }
    }
    if names.len() < 2 || rows.len() < 2 {
        return None;
    }
    let kind = if groups.len() > 1 { "of its kind" } else { "array" };
    Some(ReportTable {
        caption: format!("Share of the best {kind} in each scenario"),
        corner: "array".into(),
        columns: std::iter::once("all").chain(names).map(Heading::from).collect(),
        rows,
        formula: "all = geometric mean of the shares".into(),
        notes: Vec::new(),
    })
}

/// Arrays that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioGroup {
    /// `measured` or `simulated` if a report has both, otherwise empty.
    pub kind: String,
    /// The scenarios with these arrays alone.
    pub scenarios: Vec<LoadScenario>,
}

/// The order of the arrays of a group over all scenarios, and the best array in each.
#[must_use]
pub fn brief(group: &ScenarioGroup) -> Vec<String> {
    let scenarios = &settled(&group.scenarios)[..];
    let kind = if group.kind.is_empty() { String::new() } else { format!(" {}", group.kind) };
    let mut lines = Vec::new();
    let order = standings(scenarios);
    if scenarios.len() > 1 && order.len() > 1 {
        let ranked = order.iter().take(RANKED_TOLD).map(|(subject, mean, _)| format!("{subject} {}", percent(*mean)));
        let ranked: Vec<String> = ranked.collect();
        let more = order.len().saturating_sub(RANKED_TOLD);
        let more = if more > 0 { format!(", {more} more in the table") } else { String::new() };
        lines.push(format!(
            "Order of the{kind} arrays over {} scenarios, by the mean share of the best: {}{more}.",
            scenarios.len(),
            ranked.join(", ")
        ));
    }
    lines.extend(wins(&group.scenarios, &format!("Best{kind} array of each scenario"), |_| true));
    let unsafe_wins = scenarios.iter().any(|scenario| {
        let (leaders, others) = scenario.split();
        !leaders.iter().any(|entry| entry.subject.level.redundant())
            && others.iter().any(|entry| entry.subject.level.redundant())
    });
    lines.extend(unordered(&group.scenarios, &order, &kind));
    if unsafe_wins {
        let what = format!("Best{kind} array that survives the loss of a drive");
        lines.extend(wins(&group.scenarios, &what, |entry| entry.subject.level.redundant()));
    }
    lines
}

/// The scenarios and arrays that have no place in the order, because their results were not steady.
fn unordered(scenarios: &[LoadScenario], order: &[(ReportSubject, f64, Vec<f64>)], kind: &str) -> Option<String> {
    let open = scenarios.iter().filter(|scenario| scenario.settled().is_none() && scenario.entries.len() > 1);
    let open: Vec<String> = open.map(|scenario| small(&scenario.name)).collect();
    let (mut absent, mut all): (Vec<String>, Vec<&ReportSubject>) = (Vec::new(), Vec::new());
    for entry in scenarios.iter().flat_map(|scenario| &scenario.entries) {
        if !all.contains(&&entry.subject) {
            all.push(&entry.subject);
        }
    }
    for entry in scenarios.iter().flat_map(|scenario| &scenario.entries).filter(|entry| entry.value.unsteady) {
        let name = entry.subject.to_string();
        if !order.iter().any(|(subject, ..)| *subject == entry.subject) && !absent.contains(&name) {
            absent.push(name);
        }
    }
    let mut words = Vec::new();
    words.extend((!open.is_empty()).then(|| format!("no{kind} order for {}", list(&open))));
    words.extend((!absent.is_empty()).then(|| format!("no place for {}", unsteady_names(&absent, all.len()))));
    (!words.is_empty()).then(|| format!("Not steady when measured: {}.", words.join("; ")))
}

/// The best array in each scenario, among the arrays that count.
fn wins(scenarios: &[LoadScenario], what: &str, counts: fn(&ScenarioEntry) -> bool) -> Option<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for scenario in scenarios {
        let entries = scenario.entries.iter().filter(|entry| counts(entry)).cloned().collect();
        let Some(of_these) = (LoadScenario { entries, ..scenario.clone() }).settled() else { continue };
        if of_these.entries.is_empty() || scenario.entries.len() < 2 {
            continue;
        }
        let winners = names(&of_these.split().0);
        let name = small(&scenario.name);
        match found.iter_mut().find(|(known, _)| *known == winners) {
            Some((_, uses)) => uses.push(name),
            None => found.push((winners, vec![name])),
        }
    }
    let words: Vec<String> = found.iter().map(|(who, uses)| format!("{who} ({})", list(uses))).collect();
    (!words.is_empty()).then(|| format!("{what}: {}.", words.join("; ")))
}

/// A name within a sentence: only its first letter changes, because units keep theirs.
fn small(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::data::{DecisionRate, PartLoad};
    use super::*;

    fn entry(name: &str, y: f64, rmw: f64) -> ScenarioEntry {
        let rates = vec![DecisionRate { what: "read-modify-writes".into(), effect: Effect::Cost, per_request: rmw }];
        // A read-modify-write of one block takes four commands in place of one.
        let commands = Some(1.0 + 3.0 * rmw);
        let evidence = Evidence { loads: vec![PartLoad { part: MachinePart::Drives, busy: 0.97 }], rates, commands };
        let point = Point::exact(0.0, y).with(evidence);
        let places = vec![("at 16 outstanding".to_owned(), point.clone())];
        ScenarioEntry {
            subject: ReportSubject::from(name.parse::<crate::cell::Subject>().unwrap()),
            value: point,
            places,
            flagged: 0,
        }
    }

    fn scenario(name: &str, entries: Vec<ScenarioEntry>) -> LoadScenario {
        LoadScenario { name: name.into(), what: "rating R1".into(), unit: Unit::named("IOPS"), entries }
    }

    #[test]
    fn a_verdict_has_the_order_the_reason_and_the_safe_choice() {
        let entries = vec![entry("single", 100.0, 0.0), entry("raid5x4", 200.0, 0.2), entry("raid0x4", 400.0, 0.0)];
        assert_eq!(
            verdict(&scenario("File server", entries)),
            "RAID 0 x4 is best with 400 IOPS (rating R1), 2.0 times RAID 5 x4 in second place and 4.0 times the single \
             drive. It survives no loss of a drive; RAID 5 x4 is the best that does, with 200 IOPS. At 16 outstanding: \
             each request of RAID 5 x4 takes 1.60 commands to drives (RAID 0 x4 1.00) and 0.20 read-modify-writes (RAID 0 x4 \
             none); the busiest drive of each works 97 % of the time."
        );
    }

    #[test]
    fn a_unit_in_the_name_of_a_scenario_stays_as_it_is() {
        assert_eq!(small("Applications with 256 MiB of cache"), "applications with 256 MiB of cache");
    }

    #[test]
    fn only_what_costs_the_slower_array_time_is_its_reason() {
        let reason = |slow: &[(&str, f64)], fast: &[(&str, f64)]| {
            let of = |name: &str, y: f64, rates: &[(&str, f64)]| {
                let mut one = entry(name, y, 0.0);
                let effect = |what: &str| match what {
                    "reads from the cache" => Effect::Gain,
                    "writes into the cache" => Effect::CachedWrite,
                    "writes to one place" => Effect::Routine,
                    "destage full" | "read primary" | "read least pending" => Effect::Free,
                    _ => Effect::Cost,
                };
                let rate = |(what, per_request): &(&str, f64)| DecisionRate {
                    what: (*what).into(),
                    effect: effect(what),
                    per_request: *per_request,
                };
                let evidence = Evidence { rates: rates.iter().map(rate).collect(), loads: vec![], commands: None };
                one.places[0].1.evidence = Some(evidence);
                one
            };
            verdict(&scenario("File server", vec![of("raid6x4", 100.0, slow), of("raid10x4", 200.0, fast)]))
        };
        let (more, less) = ([("reconstruct-writes", 0.5)], [("reconstruct-writes", 0.1)]);
        let text = reason(&more, &less);
        assert!(text.ends_with("each request of RAID 6 x4 takes 0.50 reconstruct-writes (RAID 10 x4 0.10)."), "{text}");
        let none = "RAID 10 x4 is best with 200 IOPS (rating R1), 2.0 times RAID 6 x4 in second place.";
        assert_eq!(reason(&less, &more), none);
        let text = reason(&[("reads from the cache", 0.1)], &[("reads from the cache", 0.9), ("destage full", 8.0)]);
        assert!(
            text.ends_with("each request of RAID 6 x4 takes 0.10 reads from the cache (RAID 10 x4 0.90)."),
            "{text}"
        );
        let text = reason(&[("writes into the cache", 4.5)], &[("writes into the cache", 16.0)]);
        assert_eq!(text, none, "each request is cached in pieces");
        let text = reason(&[("read primary", 0.9), ("writes to one place", 1.0)], &[("read least pending", 0.9)]);
        assert_eq!(text, none);
    }

    #[test]
    fn results_that_were_not_steady_have_no_place_in_the_order() {
        let all = |unsteady: &[&str]| {
            let mut entries =
                vec![entry("raid0x4", 400.0, 0.0), entry("raid10x4", 300.0, 0.0), entry("raid5x4", 200.0, 0.0)];
            for entry in &mut entries {
                entry.places.clear();
                entry.value.unsteady = unsteady.contains(&entry.subject.to_string().as_str());
            }
            scenario("File server", entries)
        };
        let told = |unsteady: &[&str]| {
            let one = all(unsteady);
            (verdict(&one), brief(&ScenarioGroup { kind: String::new(), scenarios: vec![one] }))
        };
        let (text, lines) = told(&["RAID 5 x4"]);
        assert!(text.starts_with("RAID 0 x4 is best with 400 IOPS (rating R1), 1.3 times RAID 10 x4"), "{text}");
        assert!(text.ends_with("Left out: RAID 5 x4, whose results were not steady."), "{text}");
        let wanted = [
            "Best array of each scenario: RAID 0 x4 (file server).",
            "Not steady when measured: no place for RAID 5 x4.",
        ];
        assert_eq!(lines[..2], wanted);
        // The best one there is may be the one that was not steady.
        let (text, lines) = told(&["RAID 0 x4"]);
        assert_eq!(text, "No order: results of RAID 0 x4 were not steady.");
        assert_eq!(lines, ["Not steady when measured: no order for file server; no place for RAID 0 x4."]);
        assert_eq!(standings(&settled(&[all(&["RAID 0 x4"])])), []);
    }

    #[test]
    fn no_reason_is_invented() {
        let mut entries = vec![entry("raid10x4", 300.0, 0.0), entry("raid5x4", 200.0, 0.0)];
        for entry in &mut entries {
            entry.places[0].1.evidence = None;
        }
        let text = verdict(&scenario("File server", entries.clone()));
        assert_eq!(text, "RAID 10 x4 is best with 300 IOPS (rating R1), 1.5 times RAID 5 x4 in second place.");
        // A target that exists has no counters, and what it survives is not known.
        entries[0].subject = ReportSubject::from(crate::cell::Subject::Single).named("md");
        let text = verdict(&scenario("File server", entries));
        let wanted =
            "Whether md survives the loss of a drive is not known; RAID 5 x4 is the best that does, with 200 IOPS. \
                      Why RAID 5 x4 is slower is not known: md has no counters that this program can read.";
        assert!(text.contains(wanted), "{text}");
        let level = vec![entry("raid10x4", 300.0, 0.0), entry("raid5x4", 298.0, 0.0)];
        let text = verdict(&scenario("File server", level));
        assert_eq!(text, "RAID 10 x4 and RAID 5 x4 are level with 300 IOPS (rating R1).");
    }

    #[test]
    fn arrays_are_ranked_by_the_mean_share_of_the_best() {
        let all = [
            scenario("File server", vec![entry("raid0x4", 400.0, 0.0), entry("raid5x4", 100.0, 0.0)]),
            scenario("Video server", vec![entry("raid0x4", 50.0, 0.0), entry("raid5x4", 50.0, 0.0)]),
        ];
        // RAID 5 has a quarter in one scenario and the whole in the other: the geometric mean is a half.
        let means: Vec<f64> = standings(&all).iter().map(|(_, mean, _)| *mean).collect();
        assert!((means[0] - 1.0).abs() < 1e-12 && (means[1] - 0.5).abs() < 1e-12, "{means:?}");
        let group =
            |kind: &str, scenarios: &[LoadScenario]| ScenarioGroup { kind: kind.into(), scenarios: scenarios.to_vec() };
        assert_eq!(
            brief(&group("", &all)),
            [
                "Order of the arrays over 2 scenarios, by the mean share of the best: RAID 0 x4 100 %, RAID 5 x4 50 %.",
                "Best array of each scenario: RAID 0 x4 (file server); RAID 0 x4 and RAID 5 x4 (video server).",
                "Best array that survives the loss of a drive: RAID 5 x4 (file server and video server).",
            ]
        );
        assert_eq!(table(&[group("", &all)]).unwrap().rows[1].cells[0], ReportCell::Text(percent(0.5)));
        assert_eq!(table(&[group("", &all[..1])]), None);
        // Measured and simulated arrays are ranked apart, each by the best of its kind.
        let one = [scenario("File server", vec![entry("raid0x4", 40_000.0, 0.0), entry("raid5x4", 20_000.0, 0.0)])];
        let both = [group("measured", &one), group("simulated", &all)];
        let rows: Vec<_> = table(&both).unwrap().rows.into_iter().map(|row| row.cells).collect();
        let text = |words: &str| ReportCell::Text(words.into());
        assert_eq!(rows[1], [text("50 %"), text("50 %"), text("-")]);
        assert_eq!(rows[2], [text("100 %"), text("100 %"), text("100 %")]);
        assert_eq!(
            brief(&both[0]),
            [
                "Best measured array of each scenario: RAID 0 x4 (file server).",
                "Best measured array that survives the loss of a drive: RAID 5 x4 (file server).",
            ]
        );
    }
}
