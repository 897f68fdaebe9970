//! The advice of a plan: which level is faster, which part is the limit, and whether caches pay.

use openraid_methods::cell::{Level, PartName};
use openraid_methods::plan::{CacheSize, Gain, Lead, LevelPlan, Planned};
use openraid_models::{DriveKind, DriveProfile};
use openraid_sim::machine::MachineSpec;
use openraid_units::Bytes;

use super::level_tables::chance;
use super::Comparison;
use crate::shared_parts::least_certain as least;
use openraid::quantity::{figure, sold};

/// Minimum effect of the write cache on the requests per second, in percent, to be mentioned.
const CACHE_PAYS: f64 = 5.0;
/// A part with a higher load than this is called the limit.
const LIMIT_BUSY: f64 = 0.9;
/// Minimum effect of another cache size on the requests per second, in percent, to be mentioned.
const CACHE_SIZE_PAYS: f64 = 5.0;

/// Compares the fastest level that survives a failure with every other such level.
pub(super) fn comparisons(levels: &[Planned]) -> Vec<Comparison> {
    let safe: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let Some(best) = safe.iter().max_by(|one, two| one.merit().total_cmp(&two.merit())) else {
        return Vec::new();
    };
    let against = |other: &&LevelPlan| {
        let lead = best.lead_over(other).filter(|_| other.array != best.array)?;
        Some(Comparison { faster: best.array, than: other.array, lead })
    };
    let mut found: Vec<Comparison> = safe.iter().filter_map(against).collect();
    found.sort_by(|one, two| one.lead.gain.percent.total_cmp(&two.lead.gain.percent));
    found
}

/// The figure by which levels are compared.
pub(super) fn speed_of(plan: &LevelPlan) -> String {
    let requests = format!("{} requests/s", figure(plan.healthy.iops));
    match (plan.by_latency, plan.by_throughput) {
        (true, _) => format!("{} ms in the mean", figure(plan.healthy.mean_ms)),
        (false, true) => format!("{} MB/s, {requests}", figure(plan.healthy.mbps)),
        (false, false) => requests,
    }
}

/// The size of a gain, and its uncertainty.
pub(super) fn gained(gain: &Gain) -> String {
    let signed = |percent: f64| format!("{:+.0}", percent.round() + 0.0);
    match (gain.low_percent, gain.high_percent) {
        (Some(low), Some(high)) => format!("{} % (95 %: {} to {})", signed(gain.percent), signed(low), signed(high)),
        _ => format!("{} % in one run", signed(gain.percent)),
    }
}

/// The fastest level, and the certainty of its lead.
fn fastest(safe: &[&LevelPlan], comparisons: &[Comparison]) -> Vec<String> {
    let Some(best) = safe.iter().max_by(|one, two| one.merit().total_cmp(&two.merit())) else {
        return Vec::new();
    };
    let (apart, level): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.iter().partition(|comparison| is_told_apart(&comparison.lead));
    let alike = |plan: &&&LevelPlan| level.iter().any(|comparison| comparison.than == plan.array);
    let with_speed = |plan: &LevelPlan| format!("{} ({})", plan.array, speed_of(plan));
    let mut first = vec![with_speed(best)];
    first.extend(safe.iter().filter(alike).map(|plan| with_speed(plan)));
    let mut lines = vec![match first.len() {
        1 => format!("fastest that survives a failure: {}", first[0]),
        _ => format!("fastest that survive a failure, with no difference that these runs show: {}", first.join(", ")),
    }];
    for Comparison { than, lead, .. } in apart {
        let known = gained(&lead.gain);
        lines.push(match &lead.most {
            _ if lead.clear => format!("  against {than}: {known}"),
            Some((value, percent)) => {
                format!("  against {than}: {known}; with {value} at the end of its range {percent:+.0} %")
            }
            None => format!("  against {than}: {known}; estimated values may change that"),
        });
    }
    lines
}

/// Is one level faster than the other by more than chance?
pub(super) fn is_told_apart(lead: &Lead) -> bool {
    lead.clear || lead.gain.is_above(0.0)
}

/// The gain of a larger cache, or the note that a smaller one is sufficient. Differences within chance are left out.
fn cache_size(plan: &LevelPlan) -> Option<String> {
    let words = |size: &CacheSize| {
        let gain = size.gain.filter(|_| size.steady)?;
        let more = size.cache_mib > plan.cache_mib;
        let worth = match more {
            true if gain.is_above(CACHE_SIZE_PAYS) => "worth it",
            true if gain.is_below(CACHE_SIZE_PAYS) => "not worth it",
            false if gain.is_above(-CACHE_SIZE_PAYS) => "enough",
            false if gain.is_below(-CACHE_SIZE_PAYS) => "too little",
            _ => "these runs do not show it",
        };
        let instead = if more { format!(" instead of {}", plan.cache_mib) } else { String::new() };
        Some(format!("of {} MiB{instead}: {}: {worth}", size.cache_mib, gained(&gain)))
    };
    // The gain of a larger cache comes first, the cost of a smaller one after it.
    let sentences: Vec<String> = plan.cache_sizes.iter().rev().filter_map(words).collect();
    (!sentences.is_empty()).then(|| format!("{}: a cache {}", plan.array, sentences.join("; one ")))
}

pub(super) fn possible(levels: &[Planned]) -> impl Iterator<Item = &LevelPlan> {
    levels.iter().filter_map(|planned| match planned {
        Planned::Possible(plan) => Some(&**plan),
        Planned::Impossible { .. } => None,
    })
}

/// The largest cause of uncertainty of a healthy figure, if it is large enough to mention.
fn least_certain(plan: &LevelPlan) -> Option<String> {
    least(&plan.uncertain, plan.chance_percent).map(|words| format!("{}: {words}", plan.array))
}

/// The sentence about drives with shingled recording.
fn shingled(drives: &[DriveProfile]) -> Option<String> {
    let of_drive = |drive: &DriveProfile| match &drive.kind {
        DriveKind::Disk(disk) => Some((drive.head.name.clone(), disk.shingled.as_ref()?.cache.value)),
        _ => None,
    };
    let (name, cache) = drives.iter().find_map(of_drive)?;
    Some(format!(
        "SHINGLED: {name} keeps writes in {} of its disks and moves them later; when that is full, it makes a few random writes \
         each second: take it for archives that are written once, and not for an array",
        sold(cache)
    ))
}

pub(super) fn advice(levels: &[Planned], comparisons: &[Comparison], machine: &MachineSpec) -> Vec<String> {
    let safe: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let mut advice: Vec<String> = shingled(&machine.drives).into_iter().collect();
    advice.extend(fastest(&safe, comparisons));
    if let Some(most) = safe.iter().max_by_key(|plan| plan.capacity) {
        advice.push(format!("most room that survives a failure: {}, {}", most.array, sold(Bytes(most.capacity))));
    }
    advice.extend(exchange(levels));
    advice.extend(scratch(levels, &safe));
    for plan in possible(levels) {
        if let Some(part) =
            plan.bottleneck.as_ref().filter(|part| part.busy >= LIMIT_BUSY && part.part != PartName::Members)
        {
            let remedy = match part.part {
                PartName::Journal => "a faster device for it brings more; more or faster drives bring nothing",
                _ => "more or faster drives bring nothing",
            };
            advice.push(format!("{}: the {} is the limit; {remedy}", plan.array, part.part));
        }
        advice.extend(plan.weakest.as_ref().map(|(drive, busy)| {
            format!("{}: of its drives {drive} sets the pace: busy for {:.0} % of the time", plan.array, busy * 100.0)
        }));
        advice.extend(write_cache(plan));
        advice.extend(journal(plan));
        advice.extend(cache_size(plan));
        advice.extend(least_certain(plan));
    }
    advice
}

/// The gain of a level without redundancy, if it is large enough to mention. Servers need redundancy, scratch space of
/// a workstation may not.
fn scratch(levels: &[Planned], safe: &[&LevelPlan]) -> Option<String> {
    let fastest = safe.iter().max_by(|one, two| one.merit().total_cmp(&two.merit()))?;
    let bare = possible(levels).filter(|plan| plan.survives.0 == 0);
    let bare = bare.max_by(|one, two| one.merit().total_cmp(&two.merit()))?;
    let percent = (bare.merit() / fastest.merit() - 1.0) * 100.0;
    (percent >= CACHE_PAYS).then(|| {
        format!(
            "only for data that may be lost, such as scratch space: {} is {percent:.0} % faster than {}; the first drive that \
             fails takes all",
            bare.array, fastest.array
        )
    })
}

/// RAID 50 against RAID 6. With two spans both have the same capacity, so the choice is between speed and safety.
fn exchange(levels: &[Planned]) -> Option<String> {
    let of = |level: Level| possible(levels).find(|plan| plan.array.level() == Some(level));
    let (fifty, six) = (of(Level::Raid50)?, of(Level::Raid6)?);
    let speed = |plan: &LevelPlan| match (plan.by_latency, plan.by_throughput) {
        (true, _) => format!("{} ms", figure(plan.healthy.mean_ms)),
        (false, true) => figure(plan.healthy.mbps),
        (false, false) => figure(plan.healthy.iops),
    };
    let what = match (fifty.by_latency, fifty.by_throughput) {
        (true, _) => "in the mean",
        (false, true) => "MB/s",
        (false, false) => "requests/s",
    };
    let safety = fifty.loss.as_ref().zip(six.loss.as_ref()).map_or_else(String::new, |(a, b)| {
        let array = (chance(a.array_five_years[0]), chance(b.array_five_years[0]));
        let sector = (chance(a.sector_five_years[0]), chance(b.sector_five_years[0]));
        format!(
            "; loses the array within five years in {} against {} % of cases, sectors in {} against {} %",
            array.0, array.1, sector.0, sector.1
        )
    });
    let survives = |plan: &LevelPlan| match plan.survives {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    Some(format!(
        "{} against {}: {} against {} {what}; survives {} against {} failures{safety}; a small write takes 4 against 6 \
         commands to drives",
        fifty.array,
        six.array,
        speed(fifty),
        speed(six),
        survives(fifty),
        survives(six)
    ))
}

/// The effect of a write-back cache, if it exceeds chance.
fn write_cache(plan: &LevelPlan) -> Option<String> {
    let gain = plan.write_back?;
    if gain.is_below(-CACHE_PAYS) {
        Some(format!("{}: write-through is faster here: write-back {}", plan.array, gained(&gain)))
    } else if gain.is_above(CACHE_PAYS) {
        let known = gained(&gain);
        Some(format!("{}: a write-back cache pays: {known}; it needs a battery or a journal", plan.array))
    } else {
        None
    }
}

/// The effect of a journal, and the reason why it is not larger.
fn journal(plan: &LevelPlan) -> Option<String> {
    let effect = plan.journal?;
    let gain = effect.gain?;
    let word = if gain.is_above(CACHE_PAYS) {
        "the journal pays"
    } else if gain.is_below(-CACHE_PAYS) {
        "the journal costs speed"
    } else {
        "the journal changes little"
    };
    let limit = plan.bottleneck.as_ref().filter(|part| part.busy >= LIMIT_BUSY);
    let reason = match limit.map(|part| part.part) {
        Some(PartName::Journal) => {
            format!("the limit is its device, which works for {:.0} % of the time", effect.busy * 100.0)
        }
        Some(PartName::Members) => format!(
            "the limit is the drives, which take no more of its data; its device works for {:.0} % of the time",
            effect.busy * 100.0
        ),
        Some(part) => format!("the limit is the {part}"),
        None => format!("its device works for {:.0} % of the time", effect.busy * 100.0),
    };
    Some(format!("{}: {word}: {}; {reason}", plan.array, gained(&gain)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_methods::plan::{PlanRequest, StandIns};

    #[test]
    fn advice_names_another_cache_size_with_its_gain_and_ignores_noise() {
        let request = PlanRequest {
            system: "3ware-9650se".into(),
            drive: None,
            drives: 2,
            levels: vec![Level::Raid1],
            pattern: openraid_methods::cell::Pattern::ResponseTime,
            axes: openraid_methods::cell::Axes::default(),
            effort: openraid_methods::cell::Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: true,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        let planned = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan").remove(0);
        let Planned::Possible(plan) = planned else { panic!("a mirror can be") };
        assert_eq!((plan.cache_mib, plan.cache_sizes.len()), (256, 2));
        let advice = |less: f64, more: f64, half: f64, steady: bool| {
            let mut cache_sizes = plan.cache_sizes.clone();
            for (size, percent) in cache_sizes.iter_mut().zip([less, more]) {
                let (low_percent, high_percent) = (Some(percent - half), Some(percent + half));
                let gain = Some(Gain { percent, low_percent, high_percent, pairs: 3 });
                *size = CacheSize { gain, steady, ..*size };
            }
            let mut plan = plan.clone();
            plan.cache_sizes = cache_sizes;
            cache_size(&plan)
        };
        assert_eq!(
            advice(-0.3, 3.2, 1.0, true).as_deref(),
            Some(
                "raid1x2: a cache of 1024 MiB instead of 256: +3 % (95 %: +2 to +4): not worth it; \
                 one of 64 MiB: +0 % (95 %: -1 to +1): enough"
            )
        );
        let large = advice(-22.4, 41.0, 1.0, true).expect("a sentence");
        assert!(large.contains(": worth it") && large.ends_with(": too little"), "{large}");
        // A difference within chance is never advice, in either direction.
        let noise = advice(-8.0, 8.0, 9.0, true).expect("a sentence");
        assert_eq!(noise.matches("these runs do not show it").count(), 2, "{noise}");
        assert_eq!(advice(0.0, 60.0, 1.0, false), None, "what was not steady is no advice");
        let mut none = plan.clone();
        none.cache_sizes.clear();
        assert_eq!(cache_size(&none), None);
    }

    #[test]
    fn shingled_drives_have_one_sentence() {
        let library = openraid_models::Library::builtin();
        let drives = |name: &str| vec![library.drive(name).expect("a profile").clone()];
        let said = shingled(&drives("st8000as0002")).expect("it is shingled");
        assert!(said.starts_with("SHINGLED: st8000as0002 keeps writes in 20.0 GB"), "{said}");
        assert!(said.ends_with("archives that are written once, and not for an array"), "{said}");
        assert_eq!(shingled(&drives("exos_x18_18tb")), None);
    }

    #[test]
    fn levels_whose_difference_is_chance_are_not_ranked() {
        let request = PlanRequest {
            system: "openraid".into(),
            drive: None,
            drives: 4,
            levels: vec![Level::Raid10, Level::Raid5, Level::Raid6],
            pattern: openraid_methods::cell::Pattern::ResponseTime,
            axes: openraid_methods::cell::Axes::default(),
            effort: openraid_methods::cell::Effort { requests: 50, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: false,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        let mut plans = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan");
        for (plan, iops) in plans.iter_mut().zip([719.0, 717.0, 440.0]) {
            let Planned::Possible(plan) = plan else { panic!("each can be") };
            plan.healthy.iops = iops;
        }
        let safe: Vec<&LevelPlan> = possible(&plans).collect();
        let against = |than: &str, percent: f64, half: f64| {
            let (low_percent, high_percent) = (Some(percent - half), Some(percent + half));
            let gain = Gain { percent, low_percent, high_percent, pairs: 3 };
            let lead = Lead { gain, clear: false, most: None };
            Comparison { faster: "raid10x4".parse().unwrap(), than: than.parse().unwrap(), lead }
        };
        let lines = fastest(&safe, &[against("raid5x4", 0.3, 2.0), against("raid6x4", 63.0, 4.0)]);
        assert_eq!(
            lines,
            [
                "fastest that survive a failure, with no difference that these runs show: raid10x4 (719 requests/s), \
                 raid5x4 (717 requests/s)",
                "  against raid6x4: +63 % (95 %: +59 to +67); estimated values may change that"
            ]
        );
        let lines = fastest(&safe, &[against("raid5x4", 9.0, 2.0), against("raid6x4", 63.0, 4.0)]);
        assert_eq!((lines.len(), lines[0].as_str()), (3, "fastest that survives a failure: raid10x4 (719 requests/s)"));
    }
}
