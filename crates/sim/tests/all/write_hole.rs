//! The write hole: the power is cut while stripes are being written, and a member is lost for good with it. The journal
//! closes it on any level with parity. md's partial parity log closes it on RAID 5 and spans of it. No acknowledged
//! data is lost, and no other data changes.

use std::sync::Mutex;

use crate::support::{seeds, soak, two_at_a_time};
use openraid_core::admin::{Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_sim::fault::scenario::{Action, ControllerEnd, JournalSpec, ScenarioLoad, ScenarioStep};
use openraid_sim::fault::{report, Fault, Mode, Scenario, Verdict};
use openraid_sim::random::Random;
use openraid_sim::ArrayShape;
use openraid_units::{BlockSize, Bytes, Sectors};

/// Number of runs of each level, in the slice and in the long run, and the least number of them that lose a member. In
/// the other runs the first promised write was still on its way.
const SLICE: (u64, u64) = (12, 9);
const WHOLE: (u64, u64) = (1_200, 1_000);
/// Sectors of a member of a span: the outer superblock and the area before the data need room.
const SPAN_DATA: Sectors = Sectors::mib(1);

/// A row of the table: a level, and the protection that closes its write hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protection {
    Raid5,
    Raid6,
    Raid50,
    Raid60,
    /// With a partial parity log instead of the journal.
    Raid5Log,
    /// A partial parity log on each span.
    Raid50Log,
}

/// One cut with the loss of a member during writes, a read of the array without the member, more writes and another
/// cut, a new member.
fn scenario(level: Protection, seed: u64) -> Scenario {
    let mut random = Random::derived(seed, 77);
    let between = |random: &mut Random, least, most| u16::try_from(random.between(least, most)).expect("few");
    let chunk = *random.pick(&[4, 8, 16, 32, 64].map(Sectors::kib));
    let (mut shape, spans) = match level {
        Protection::Raid5 | Protection::Raid5Log => (ArrayShape::raid5(between(&mut random, 3, 6), chunk), 1),
        Protection::Raid6 => (ArrayShape::raid6(between(&mut random, 4, 7), chunk), 1),
        Protection::Raid50 | Protection::Raid50Log => {
            (ArrayShape::raid5(between(&mut random, 3, 4), chunk), between(&mut random, 2, 3))
        }
        Protection::Raid60 => (ArrayShape::raid6(between(&mut random, 4, 5), chunk), between(&mut random, 2, 3)),
    };
    shape.data = if spans > 1 { SPAN_DATA } else { Sectors(chunk.get() * random.between(3, 12)).max(Sectors::kib(96)) };
    let drawn = Scenario::draw(seed);
    let (cache, journal) = (*random.pick(&[Bytes::kib(128), Bytes::kib(512), Bytes::mib(2)]), Bytes::kib(256));
    let pool = Limits::small().pool + cache + journal;
    let ppl = matches!(level, Protection::Raid5Log | Protection::Raid50Log);
    let again = random.chance(1, 4).then(|| random.below(40));
    let actions = [
        Action::Ask(random.between(1, 120)),
        Action::Happen(random.between(1, 60)),
        Action::CutAndLose(again),
        Action::Look,
        Action::Ask(random.between(1, 60)),
        Action::Happen(random.between(1, 60)),
        Action::End(ControllerEnd::Cut, None),
        Action::Look,
        Action::Add,
        Action::Ask(random.between(1, 60)),
    ];
    Scenario {
        mode: Mode::Bounded,
        shape,
        spans,
        bitmap: false,
        ppl,
        junk: false,
        spares: 0,
        policy: Policy { write_cache: if ppl { WriteCache::Through } else { WriteCache::Journal }, ..drawn.policy },
        journal: (!ppl).then_some(JournalSpec {
            mirrors: *random.pick(&[1, 2]),
            ring: Sectors::mib(4),
            spins: false,
            block: BlockSize::B512,
            volatile: true,
        }),
        limits: Limits { pool, cache, journal, ..drawn.limits },
        load: ScenarioLoad { depth: 1 + random.index(16), mix: [1, 8, 1, 0, 1], ..drawn.load },
        steps: actions.map(|action| ScenarioStep { seed: random.bits(), action }).to_vec(),
        ..drawn
    }
}

/// The results of many runs.
#[derive(Default, Debug)]
struct Figures {
    runs: u64,
    /// The runs that lost a member with the power while the journal had acknowledged data.
    with_loss: u64,
    cuts: u64,
    requests: u64,
    lost: Vec<String>,
}

fn run_all(level: Protection) -> Figures {
    let seeds = seeds(SLICE.0, WHOLE.0);
    let figures = Mutex::new(Figures::default());
    two_at_a_time(seeds, |seed| {
        let scenario = scenario(level, seed);
        let report = report(&scenario, None);
        let mut figures = figures.lock().unwrap();
        figures.runs += 1;
        figures.with_loss += u64::from(report.counts.faults.contains_key(&Fault::CutAndLoss));
        figures.cuts += report.counts.cuts;
        figures.requests += report.counts.requests;
        if report.verdict != Verdict::Survived {
            let story = report.story.join("\n");
            figures.lost.push(format!("{scenario}\n{story}\n{:?}", report.verdict));
        }
    });
    figures.into_inner().unwrap()
}

fn closed(level: Protection) {
    let figures = run_all(level);
    let Figures { runs, with_loss, cuts, requests, lost } = &figures;
    println!("{level:?}: {runs} runs, {with_loss} lost a member with the power, {cuts} cuts, {requests} requests");
    assert!(lost.is_empty(), "{level:?}: {} of {runs} runs lost something; the first:\n{}", lost.len(), lost[0]);
    let least = if soak() { WHOLE.1 } else { SLICE.1 };
    assert!(*with_loss >= least, "too few runs lost a member: {figures:?}");
}

#[test]
fn a_cut_and_a_member_cost_raid_5_nothing() {
    closed(Protection::Raid5);
}

#[test]
fn a_cut_and_a_member_cost_raid_6_nothing() {
    closed(Protection::Raid6);
}

#[test]
fn a_cut_and_a_member_of_a_span_cost_raid_50_nothing() {
    closed(Protection::Raid50);
}

#[test]
fn a_cut_and_a_member_of_a_span_cost_raid_60_nothing() {
    closed(Protection::Raid60);
}

#[test]
fn a_cut_and_a_member_cost_raid_5_with_a_partial_parity_log_nothing() {
    closed(Protection::Raid5Log);
}

#[test]
fn a_cut_and_a_member_of_a_span_cost_raid_50_with_a_partial_parity_log_nothing() {
    closed(Protection::Raid50Log);
}
