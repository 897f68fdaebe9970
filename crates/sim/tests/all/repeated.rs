//! A host that waited too long sends a write again while the first copy may still be in the engine: the copy, and every later write
//! to the same place, must come after it on every member, however late and in whatever order the members answer.

use openraid_core::actions::DriveCommand;
use openraid_core::events::RequestKind;
use openraid_core::limits::Limits;
use openraid_sim::drive::null::NullMachine;
use openraid_sim::ArrayShape;
use openraid_units::Sectors;

const CHUNK: Sectors = Sectors::kib(64);
const WRITE: RequestKind = RequestKind::Write { fua: false };
/// Turns after which everything that needs no answer of a member has happened.
const TURNS: u32 = 2000;

/// The writes that members have now, which were not there before.
fn new_writes(machine: &mut NullMachine) -> Vec<DriveCommand> {
    (0..TURNS).for_each(|_| machine.turn());
    machine.held.as_mut().map(std::mem::take).unwrap_or_default()
}

fn meets(a: &DriveCommand, b: &DriveCommand) -> bool {
    a.drive == b.drive && a.lba < b.lba + b.len && b.lba < a.lba + a.len
}

/// The first write, its copy, and a later write in other bounds.
const WRITES: [(u64, u64); 3] = [(4096, 8192), (4096, 8192), (0, 16_384)];

fn follow(shape: &ArrayShape) {
    let (mut machine, array) = NullMachine::with_array(shape, &Limits::default(), Sectors::mib(64));
    machine.held = Some(Vec::new());
    machine.submit(array, WRITE, WRITES[0].0, WRITES[0].1).unwrap();
    let mut out = new_writes(&mut machine);
    assert!(!out.is_empty(), "{shape}: the first write is on its way");
    for (at, len) in &WRITES[1..] {
        machine.submit(array, WRITE, *at, *len).unwrap();
    }
    // The members answer one after the other, the last one first.
    for nth in 0.. {
        let later = new_writes(&mut machine);
        for (a, b) in later.iter().flat_map(|a| out.iter().map(move |b| (a, b))) {
            assert!(!meets(a, b), "{shape}, after {nth} answers: {a:?} is sent while {b:?} is not answered");
        }
        out.extend(later);
        let Some(command) = out.pop() else { break };
        machine.carry_out(&command);
    }
    assert_eq!((machine.ended, machine.inside), (3, 0), "{shape}: all are answered");
}

#[test]
fn a_repeated_write_and_a_later_one_come_after_the_first_copy_on_every_member() {
    let shapes = [
        ArrayShape::raid1(3),
        ArrayShape::raid10(0x102, 4, CHUNK),
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid6(5, CHUNK),
    ];
    shapes.iter().for_each(follow);
}
