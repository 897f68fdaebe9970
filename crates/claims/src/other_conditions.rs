//! Evaluation of claims for conditions that no review measured: other numbers of drives, block sizes and seeds.
//!
//! A finding for four drives must also hold for three, five, six and eight drives, unless there is a reason against it.
//! A reason follows from the claim alone, before any measurement, or is the laboratory's own (a controller that refuses
//! an array). A reason must never be a verdict in disguise: a measured change counts.

use crate::axis_arguments::{Axis, AxisValue};
use crate::claim::{Claim, StatementKind};
use crate::evaluate::{evaluate_changed, ClaimOutcome, ClaimVerdict};
use crate::fold::Mechanism;
use crate::metric::{Metric, MetricCall, MetricTarget, Metrics};
use crate::run::{each, RunOptions};
use crate::subject::{Level, Subject};
use crate::workload::ClaimLoad;
use openraid_methods::cell::Pattern;
use std::collections::BTreeSet;
use std::fmt;

/// A change in all calls of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Perturbation {
    /// Drives of the widest arrays.
    Drives(u16),
    /// Blocks are half as large.
    HalfBlocks,
    /// Blocks are twice as large.
    DoubleBlocks,
    /// All random choices are drawn again.
    Chance(u64),
    /// Several of these at once, drawn for each claim from the changes that its reasons allow.
    Together {
        /// Drives of the widest arrays.
        drives: Option<u16>,
        /// Whether blocks are twice as large, or half as large.
        double: Option<bool>,
        /// All random choices are drawn again.
        chance: u64,
    },
}

/// The changes: numbers of drives, two block sizes and two seeds.
const CHANGES: [Perturbation; 8] = [
    Perturbation::Drives(3),
    Perturbation::Drives(5),
    Perturbation::Drives(6),
    Perturbation::Drives(8),
    Perturbation::HalfBlocks,
    Perturbation::DoubleBlocks,
    Perturbation::Chance(101),
    Perturbation::Chance(102),
];
/// Numbers by which several changes at once are drawn.
const DRAWS: [u64; 2] = [201, 202];

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drives(drives) => write!(f, "{drives} drives"),
            Self::HalfBlocks => f.write_str("half the block size"),
            Self::DoubleBlocks => f.write_str("twice the block size"),
            Self::Chance(_) => f.write_str("another seed"),
            Self::Together { .. } => {
                let parts: Vec<String> = self.parts().into_iter().flatten().map(|part| part.to_string()).collect();
                f.write_str(&parts.join(", "))
            }
        }
    }
}

impl Perturbation {
    /// The single changes of this one.
    const fn parts(self) -> [Option<Self>; 3] {
        let Self::Together { drives, double, chance } = self else { return [Some(self), None, None] };
        let drives = match drives {
            Some(drives) => Some(Self::Drives(drives)),
            None => None,
        };
        let blocks = match double {
            Some(true) => Some(Self::DoubleBlocks),
            Some(false) => Some(Self::HalfBlocks),
            None => None,
        };
        [drives, blocks, Some(Self::Chance(chance))]
    }
}

/// Several changes at once, drawn by a number and the claim's id from those with an effect and without a reason against
/// them. None if only chance is left, which is a change by itself.
fn together(claim: &Claim, calls: &[MetricCall], number: u64) -> Option<Perturbation> {
    // FNV-1a of id and number.
    let bytes = claim.id.bytes().map(u64::from).chain([number]);
    let drawn = bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| (sum ^ byte).wrapping_mul(0x0100_0000_01b3));
    let may = |change: &Perturbation| changes(*change, calls) && excuse(claim, *change, calls).is_none();
    let draw = |list: &[Perturbation], drawn: u64| {
        let list: Vec<Perturbation> = list.iter().copied().filter(may).collect();
        let index = drawn.checked_rem(list.len() as u64)?;
        usize::try_from(index).ok().map(|index| list[index])
    };
    let drives = match draw(&CHANGES[..4], drawn >> 32) {
        Some(Perturbation::Drives(drives)) => Some(drives),
        _ => None,
    };
    let double = draw(&CHANGES[4..6], drawn >> 16).map(|blocks| blocks == Perturbation::DoubleBlocks);
    (drives.is_some() || double.is_some()).then_some(Perturbation::Together { drives, double, chance: number })
}

/// A changed claim with its result.
#[derive(Clone, PartialEq, Debug)]
pub struct PerturbedClaim {
    /// The claim, by its index in the list of all claims.
    pub claim: usize,
    pub change: Perturbation,
    pub ended: PerturbedResult,
}

/// The result of a changed claim.
#[derive(Clone, PartialEq, Debug)]
pub enum PerturbedResult {
    /// The claim holds.
    Holds,
    /// The claim does not hold; with its values.
    Fails(ClaimOutcome),
    /// The claim need not hold, for this reason.
    Excused(String),
}

/// Numbers of changed claims by result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerturbedShares {
    /// Claims that hold.
    pub held: usize,
    /// Claims that do not hold.
    pub fell: usize,
    /// Claims that need not hold.
    pub excused: usize,
}

impl PerturbedShares {
    /// Count some of the changed claims.
    pub fn of<'a>(asked: impl Iterator<Item = &'a PerturbedClaim>) -> Self {
        asked.fold(Self::default(), |mut shares, asked| {
            match asked.ended {
                PerturbedResult::Holds => shares.held += 1,
                PerturbedResult::Fails(_) => shares.fell += 1,
                PerturbedResult::Excused(_) => shares.excused += 1,
            }
            shares
        })
    }

    /// The share of claims that hold, of all claims that must hold, in tenths of a percent.
    #[must_use]
    pub fn share(&self) -> Option<usize> {
        (self.held * 1000).checked_div(self.held + self.fell)
    }
}

/// Evaluate every claim that holds and measures something again, with changes. `ended` gets the number of changed
/// claims that were evaluated, and how many will be in all; excused ones are not evaluated.
pub fn perturb(
    claims: &[Claim],
    outcomes: &[ClaimOutcome],
    metrics: &dyn Metrics,
    options: RunOptions,
    ended: &(dyn Fn(usize, usize) + Sync),
) -> Vec<PerturbedClaim> {
    let mut list: Vec<(usize, Perturbation)> = Vec::new();
    for (index, (claim, outcome)) in claims.iter().zip(outcomes).enumerate() {
        let measures = !matches!(Mechanism::of(claim), Mechanism::Arithmetic | Mechanism::Applications);
        if outcome.verdict == ClaimVerdict::Pass && measures {
            let calls = &outcome.asked;
            let single = CHANGES.iter().copied().filter(|change| changes(*change, calls));
            let several = DRAWS.iter().filter_map(|number| together(claim, calls, *number));
            list.extend(single.chain(several).map(|change| (index, change)));
        }
    }
    let excuses: Vec<Option<String>> =
        list.iter().map(|(index, change)| excuse(&claims[*index], *change, &outcomes[*index].asked)).collect();
    // An excused change takes no time: progress counts the others, and the time left is theirs.
    let to_run: Vec<(usize, Perturbation)> =
        list.iter().zip(&excuses).filter(|(_, excuse)| excuse.is_none()).map(|(one, _)| *one).collect();
    let one = |(index, change): &(usize, Perturbation)| ask(&claims[*index], *change, &outcomes[*index].asked, metrics);
    let mut ran = each(&to_run, options, one, &|count, _| ended(count, to_run.len())).into_iter();
    let asked = |((claim, change), excuse): ((usize, Perturbation), Option<String>)| {
        let ended = excuse.map_or_else(|| ran.next().expect("each of the others ran"), PerturbedResult::Excused);
        PerturbedClaim { claim, change, ended }
    };
    list.into_iter().zip(excuses).map(asked).collect()
}

fn ask(claim: &Claim, change: Perturbation, calls: &[MetricCall], metrics: &dyn Metrics) -> PerturbedResult {
    let widths = Widths::of(calls);
    let outcome = evaluate_changed(claim, metrics, &|call| changed(call, change, widths));
    match outcome.verdict {
        ClaimVerdict::Pass => PerturbedResult::Holds,
        ClaimVerdict::NotApplicable => PerturbedResult::Excused(outcome.reason),
        ClaimVerdict::Fail => PerturbedResult::Fails(outcome),
    }
}

/// Number of members of a subject, if another number is possible.
const fn width(subject: Subject) -> Option<u16> {
    match subject {
        Subject::Array { members, .. } => Some(members),
        _ => None,
    }
}

fn widths(calls: &[MetricCall]) -> impl Iterator<Item = u16> + '_ {
    calls.iter().filter_map(|call| call.subject().ok().and_then(width))
}

fn widest(calls: &[MetricCall]) -> u16 {
    widths(calls).max().unwrap_or(0)
}

/// The widths that a change of drives concerns.
#[derive(Clone, Copy)]
struct Widths {
    widest: u16,
    /// RAID 10 is compared with RAID 0 of half as many drives: of each pair one drive has the data once. No other RAID 0 is
    /// compared. Then both get other numbers of drives.
    halved: bool,
}

impl Widths {
    fn of(calls: &[MetricCall]) -> Self {
        let widest = widest(calls);
        let of = |wanted: Level| {
            let subjects = calls.iter().filter_map(|call| call.subject().ok());
            let members = subjects.filter_map(move |subject| match subject {
                Subject::Array { level, members } if level == wanted => Some(members),
                _ => None,
            });
            members.collect::<BTreeSet<u16>>()
        };
        let halved = of(Level::Raid10) == BTreeSet::from([widest]) && of(Level::Raid0) == BTreeSet::from([widest / 2]);
        Self { widest, halved }
    }
}

/// Whether this change has an effect on these calls.
fn changes(change: Perturbation, calls: &[MetricCall]) -> bool {
    let widths = Widths::of(calls);
    match change {
        Perturbation::Drives(drives) => widths.widest > 0 && drives != widths.widest,
        _ => calls.iter().any(|call| changed(call, change, widths) != *call),
    }
}

/// The reason for which a claim need not hold after a change.
fn excuse(claim: &Claim, change: Perturbation, calls: &[MetricCall]) -> Option<String> {
    let figure = |of: String| format!("its figure is one of {of}");
    match change {
        // The parts of several changes were chosen without a reason against them.
        Perturbation::Chance(_) | Perturbation::Together { .. } => None,
        Perturbation::Drives(drives) => {
            let widest = widest(calls);
            let narrower = widths(calls).filter(|width| *width < widest).max().unwrap_or(0);
            if widest == 2 {
                Some("it is about two drives".into())
            } else if drives <= narrower {
                Some(format!("it compares arrays of {widest} drives with one of {narrower}"))
            } else if claim.kind == StatementKind::Numeric
                || numbers(&claim.check).any(|number| number == widest.to_string())
            {
                Some(figure(format!("{widest} drives")))
            } else {
                None
            }
        }
        Perturbation::HalfBlocks | Perturbation::DoubleBlocks => {
            if claim.quirk_param.as_deref().is_some_and(|quirk| quirk.ends_with("_kib")) {
                Some("its cause is a length".into())
            } else if claim.kind == StatementKind::Numeric {
                Some(figure("this block size".into()))
            } else {
                None
            }
        }
    }
}

/// Whole numbers of a check that are separate words: not a part of a name, and not the value of an axis.
fn numbers(check: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c == '_' || c == '.' || c.is_ascii_alphanumeric();
    check.split(move |c: char| !is_word(c) && c != '=').filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The call after a change.
fn changed(call: &MetricCall, change: Perturbation, widths: Widths) -> MetricCall {
    let Widths { widest, halved } = widths;
    let mut call = call.clone();
    match change {
        Perturbation::Together { .. } => {
            return change.parts().into_iter().flatten().fold(call, |call, part| changed(&call, part, widths));
        }
        Perturbation::Drives(drives) => match &mut call.target {
            MetricTarget::Subject(Subject::Array { members, .. }) if *members == widest => {
                *members = drives;
            }
            MetricTarget::Subject(Subject::Array { level: Level::Raid0, members }) if halved => *members = drives / 2,
            _ => {}
        },
        Perturbation::HalfBlocks | Perturbation::DoubleBlocks => {
            if let Some(block) = block(&call) {
                let block = if change == Perturbation::HalfBlocks { block / 2 } else { block * 2 };
                if (SECTOR..=BLOCK_MAX).contains(&block) {
                    call.axes = call.axes.with(Axis::Bs, AxisValue::Number(block as f64));
                }
            }
        }
        Perturbation::Chance(number) => {
            let rep = call.axes.whole(Axis::Rep).unwrap_or(0) + number;
            call.axes = call.axes.with(Axis::Rep, AxisValue::Number(rep as f64));
        }
    }
    call
}

const SECTOR: u64 = 512;
/// The largest block of the axis.
const BLOCK_MAX: u64 = 16 << 20;

/// The block size of a call, if another one is possible.
fn block(call: &MetricCall) -> Option<u64> {
    if !matches!(call.metric, Metric::Iops | Metric::Mbps | Metric::Lat | Metric::Wbwt | Metric::Count | Metric::Util) {
        return None;
    }
    let load = match call.axes.text(Axis::Pat) {
        Some(pat) => ClaimLoad::of_pat(pat).map(|(load, _)| load),
        None => call.workload.load.clone(),
    };
    let usual = match &load.as_ref()?.pattern {
        Pattern::Database => 8 << 10,
        Pattern::Sequential | Pattern::MultiThreaded => 64 << 10,
        Pattern::Random | Pattern::SsdRandom => 4 << 10,
        Pattern::SsdSequential => 128 << 10,
        Pattern::ResponseTime => SECTOR,
        _ => return None,
    };
    let of_workload = || call.workload.defaults.whole(Axis::Bs).filter(|_| load == call.workload.load);
    Some(call.axes.whole(Axis::Bs).or_else(of_workload).unwrap_or(usual))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{MetricValue, NotApplicable};
    use crate::read;
    use std::sync::Mutex;

    /// A law for tests: speed increases with the drives, but eight are as fast as six. The time of a block depends on
    /// its length.
    struct Law(Mutex<Vec<String>>);

    impl Metrics for Law {
        fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
            self.0.lock().expect("no thread failed").push(call.to_string());
            let members = call.subject()?.members();
            if members == 5 {
                return Err(NotApplicable::new("the card has no array of five"));
            }
            let block = call.axes.whole(Axis::Bs).unwrap_or(8192) as f64;
            Ok(MetricValue::Number(f64::from(members.min(6)) * 1e6 / (1e4 + block)))
        }
    }

    fn ends(kind: &str, quirk: Option<&str>, check: &str) -> (Vec<(String, String)>, Vec<String>) {
        let text = serde_json::json!([{ "id": "x", "system": "s", "kind": kind, "quirk_param": quirk,
            "check": check, "workload": { "pattern": "database" } }]);
        let claims = read(&text.to_string()).expect("a claim").claims;
        let law = Law(Mutex::default());
        let outcomes = crate::run(&claims, &law, RunOptions { jobs: 1 }, &|_, _| {});
        assert_eq!(outcomes[0].verdict, ClaimVerdict::Pass, "{}", outcomes[0].reason);
        law.0.lock().expect("no thread failed").clear();
        let progress = Mutex::default();
        let note = |count, all| *progress.lock().expect("no thread failed") = (count, all);
        let asked = perturb(&claims, &outcomes, &law, RunOptions { jobs: 1 }, &note);
        // The law excuses after an evaluation, which takes time; progress counts that.
        let by_law = |asked: &&PerturbedClaim| matches!(&asked.ended, PerturbedResult::Excused(why) if why.contains("the card has"));
        let is_excused = |asked: &&PerturbedClaim| matches!(asked.ended, PerturbedResult::Excused(_)) && !by_law(asked);
        let evaluated = asked.len() - asked.iter().filter(is_excused).count();
        assert_eq!(progress.into_inner().expect("no thread failed"), (evaluated, evaluated));
        let word = |asked: &PerturbedClaim| match &asked.ended {
            PerturbedResult::Holds => "holds".to_owned(),
            PerturbedResult::Fails(_) => "fails".to_owned(),
            PerturbedResult::Excused(reason) => reason.clone(),
        };
        let ends = asked.iter().map(|asked| (asked.change.to_string(), word(asked))).collect();
        (ends, law.0.into_inner().expect("no thread failed"))
    }

    #[test]
    fn the_widest_arrays_get_other_numbers_and_the_law_decides() {
        // Twice as fast as three drives: that is true for six, not for eight, and the law refuses five.
        let (ends, calls) = ends("order", None, "iops(raid0x7, rd=0) >= 1.9 * iops(raid0x3, rd=0)");
        let of = |change: &str| ends.iter().find(|(name, _)| name == change).map(|(_, word)| word.as_str());
        assert_eq!(of("3 drives"), Some("it compares arrays of 7 drives with one of 3"));
        assert!(of("5 drives").is_some_and(|word| word.contains("no array of five")));
        assert_eq!((of("6 drives"), of("8 drives")), (Some("holds"), Some("holds")));
        assert_eq!((of("half the block size"), of("twice the block size")), (Some("holds"), Some("holds")));
        assert!(calls.contains(&"iops(raid0x8, rd=0)".to_owned()), "{calls:?}");
        assert!(calls.contains(&"iops(raid0x3, rd=0, bs=4096)".to_owned()), "{calls:?}");
    }

    #[test]
    fn raid_0_of_half_as_many_drives_as_raid_10_stays_half_as_wide() {
        let (ends, calls) = ends("equality", None, "iops(raid10x4, rd=0) == 2 * iops(raid0x2, rd=0)");
        let of = |change: &str| ends.iter().find(|(name, _)| name == change).map(|(_, word)| word.as_str());
        // Six are twice three. Eight are only as fast as six by the law, and count.
        assert_eq!((of("6 drives"), of("8 drives")), (Some("holds"), Some("fails")));
        assert!(calls.contains(&"iops(raid0x3, rd=0)".to_owned()), "{calls:?}");
        // With another RAID 0 in the claim only the widest arrays change.
        let check = "iops(raid10x4, rd=0) == 2 * iops(raid0x2, rd=0) and iops(raid0x3, rd=0) > 0";
        let (_, calls) = self::ends("equality", None, check);
        assert!(calls.iter().all(|call| !call.starts_with("iops(raid0x4")), "{calls:?}");
    }

    #[test]
    fn a_claim_that_does_not_hold_any_more_is_counted_and_not_excused() {
        let (ends, _) = ends("order", None, "iops(raid0x4, rd=0) < 250");
        let fell = ends.iter().filter(|(name, word)| word == "fails" && !name.contains(", "));
        let fell: Vec<&str> = fell.map(|(name, _)| name.as_str()).collect();
        assert_eq!(fell, ["6 drives", "8 drives", "half the block size"]);
    }

    #[test]
    fn several_changes_at_once_leave_out_what_a_claim_has_a_reason_against() {
        let several = |kind, quirk, check| -> Vec<(String, String)> {
            ends(kind, quirk, check).0.into_iter().filter(|(name, _)| name.contains(", ")).collect()
        };
        let check = "iops(raid0x7, rd=0) > iops(raid0x2, rd=0)";
        let all = several("order", None, check);
        assert_eq!(all.len(), DRAWS.len(), "{all:?}");
        assert!(all
            .iter()
            .all(|(name, _)| name.contains(" drives, ") && name.ends_with("the block size, another seed")));
        assert_eq!(all, several("order", None, check), "a claim gets the same changes each time");
        let blocks = several("order", Some("mirror_split_min_kib"), check);
        assert!(blocks.len() == DRAWS.len() && blocks.iter().all(|(name, _)| !name.contains("block")), "{blocks:?}");
        assert!(several("numeric", None, "iops(raid0x4, rd=0) < 250").is_empty());
        // By the law eight drives with blocks of half the size exceed what four did.
        let falls = several("order", None, "iops(raid0x4, rd=0) < 220");
        assert!(falls.iter().any(|(_, word)| word == "fails"), "{falls:?}");
    }

    #[test]
    fn figures_and_lengths_are_reasons() {
        let (ends, _) = ends("numeric", Some("mirror_split_min_kib"), "iops(raid0x4, rd=0) < 250");
        assert!(ends[0].1.contains("its figure is one of 4 drives") && ends[4].1.contains("a length"), "{ends:?}");
        let named: Vec<&str> = numbers("all([approx(iops(raid0x4, qd=4) / 3.4, n4, 4) for q in [8, 16]])").collect();
        assert_eq!(named.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>(), ["4", "8", "16"]);
    }
}
