//! The ring does not fill up by itself: whatever was promised finds room for its redo records, after crashes too, so that the
//! journal gives up for want of room only where somebody who is not there needs that.

mod support;

use openraid_core::actions::NoticeKind;
use openraid_core::admin::JournalState;
use openraid_sim::oracle::session::Workload;
use openraid_sim::Shape;
use openraid_units::{Bytes, Sectors};
use support::journalled::Journalled;
use support::{seeds, Case};

const CHUNK: Sectors = Sectors::kib(32);

fn is_never_full(machine: &mut Journalled) {
    let notices = machine.rig.world.take_notices();
    let full = notices.iter().any(|notice| matches!(notice.kind, NoticeKind::JournalFull));
    assert!(!full, "nothing has failed, and the journal is full\n{}", machine.rig.world.dump());
    assert_eq!(machine.rig.world.journal().map(|own| own.state), Some(JournalState::Live));
}

/// Writes into the cache and past it, in whole blocks and in parts of lines, until the ring has little room; the power goes
/// again and again before what is dirty is on the members, and each time all of it is back in the cache.
#[test]
fn what_was_promised_finds_room_after_every_crash() {
    for seed in seeds(8, 200) {
        for shape in [Shape::raid5(4, CHUNK), Shape::raid6(6, CHUNK)] {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::with_cache(shape, seed, Bytes::mib(2));
            let align = if seed % 2 == 0 { 512 } else { 4096 };
            let capacity = machine.rig.session.capacity();
            let load = Workload { len_max: 24 << 10, align, mix: [1, 12, 0, 0, 3], ..Workload::mixed(capacity) };
            for turn in 0..10 {
                machine.rig.session.run_on(&mut machine.rig.world, &load, 40 + 60 * (turn % 4));
                is_never_full(&mut machine);
                machine.cut();
            }
            machine.rig.session.run(&mut machine.rig.world, &load, 200);
            is_never_full(&mut machine);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}
