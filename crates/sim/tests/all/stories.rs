//! The steps of requests that the engine reports: every wait is included, with its beginning and its end.

use crate::support::journalled::Journalled;
use openraid_core::actions::{DriveOp, JobKind};
use openraid_core::events::RequestKind;
use openraid_core::reason::Reason;
use openraid_core::request_steps::{Step, StepEvent, StepSubject};
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::Sectors;

const WRITE: RequestKind = RequestKind::Write { fua: false };

/// All steps of one write of 4 KiB at a byte.
fn take_steps(rig: &mut Rig, at: u64) -> Vec<Step> {
    rig.world.keep_steps(1000);
    rig.session.ask(&mut rig.world, WRITE, at..at + 4096);
    rig.session.drain(&mut rig.world);
    rig.world.controller().steps().copied().collect()
}

fn position(steps: &[Step], is_it: impl Fn(&StepEvent) -> bool) -> usize {
    steps.iter().position(|step| is_it(&step.event)).unwrap_or_else(|| panic!("it is not there: {steps:#?}"))
}

fn gives(reason: Reason) -> impl Fn(&StepEvent) -> bool {
    move |event| matches!(event, StepEvent::Reason { reason: told, .. } if *told == reason)
}

#[test]
fn a_write_tells_its_record_in_the_partial_parity_log_and_its_wait_for_the_one_before() {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let mut rig = Rig::new(shape, RigOptions { cuts: false, ppl: true, ..RigOptions::new(1) });
    rig.rest();
    // The parity of stripe 1 has another log. From this write on the array is marked active.
    take_steps(&mut rig, 48 << 10);
    for (turn, at) in [0, 4096].into_iter().enumerate() {
        let mut steps = take_steps(&mut rig, at);
        let planned = position(&steps, |event| matches!(event, StepEvent::Planned { .. }));
        let op = steps[planned].subject;
        assert!(matches!(op, StepSubject::Op(_)));
        steps.retain(|step| step.subject == op);
        let sum = position(&steps, |event| matches!(event, StepEvent::Computing { kind: JobKind::Checksum, .. }));
        let summed = sum + position(&steps[sum..], |event| *event == StepEvent::Computed);
        let logged = position(&steps, gives(Reason::PartialParityLogged));
        let durable = position(&steps, |event| *event == StepEvent::Durable);
        let written = position(&steps, |event| matches!(event, StepEvent::Asked { op: DriveOp::Write { .. }, .. }));
        let at = |place: usize| steps[place].at;
        assert!(summed < logged && logged < durable && durable < written, "{steps:#?}");
        assert!(at(logged) < at(durable), "the log takes its time: {steps:#?}");
        assert_eq!(at(durable), at(written), "{steps:#?}");
        let waits: Vec<usize> =
            (0..steps.len()).filter(|place| gives(Reason::WaitedForPartialParityLog)(&steps[*place].event)).collect();
        match turn {
            // The log is free.
            0 => assert_eq!((waits.len(), at(summed)), (0, at(logged)), "{steps:#?}"),
            // The members must be flushed before the log entry of the first write may be overwritten.
            _ => {
                assert_eq!((waits.len(), waits[0] + 1), (1, logged), "{steps:#?}");
                assert!(at(summed) == at(waits[0]) && at(waits[0]) < at(logged), "{steps:#?}");
            }
        }
    }
    rig.judge();
}

#[test]
fn the_first_write_after_quiet_tells_its_wait_for_the_journal() {
    let mut machine = Journalled::new(ArrayShape::raid5(4, Sectors::kib(16)), 1, false, 1);
    let count = |rig: &Rig| {
        let reasons = rig.status().reasons;
        reasons.iter().find(|(counted, _)| *counted == Reason::WaitedForJournalStart).map_or(0, |(_, count)| *count)
    };
    let steps = take_steps(&mut machine.rig, 0);
    let wait = position(&steps, gives(Reason::WaitedForJournalStart));
    let cached = position(&steps, |event| matches!(event, StepEvent::Cached { .. }));
    assert_eq!((wait + 1, steps[wait].subject), (cached, steps[cached].subject), "{steps:#?}");
    // Members are flushed; then the superblocks of the journal and of the members are written.
    assert!(steps[wait].at < steps[cached].at, "{steps:#?}");
    assert_eq!(count(&machine.rig), 1, "however often it was looked at");
    let steps = take_steps(&mut machine.rig, 4096);
    assert!(!steps.iter().any(|step| gives(Reason::WaitedForJournalStart)(&step.event)), "{steps:#?}");
    assert_eq!(count(&machine.rig), 1);
    machine.rig.rest();
    machine.rig.judge();
}
