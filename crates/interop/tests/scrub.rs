//! Check and repair compared with md's: md counts the same mismatches as the engine, and finds none after the engine's
//! repair.

use std::time::Duration;

use openraid_core::admin::AdminCommand;
use openraid_core::check_results::{ScrubMode, ScrubOutcome};
use openraid_interop::{dump_all, stamp_array, Folder};
use openraid_oracle::{answer, Guest};
use openraid_sim::oracle::Members;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{MemberLba, Sectors, Slot};

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const SEED: u64 = 17;
const CHUNK: Sectors = Sectors::kib(16);
/// md compares blocks of 4 KiB: a block in which one sector differs counts as eight.
const MD_BLOCK: u64 = 8;

fn scrub(rig: &mut Rig, mode: ScrubMode) -> ScrubOutcome {
    rig.world.admin(AdminCommand::Scrub { array: rig.array, mode }).expect("it is taken");
    rig.rest();
    rig.status().last_scrub.expect("it ended").outcome
}

/// Spoil sectors of a member: of each block of 4 KiB in this range of the data area, this many.
fn spoil(rig: &mut Rig, slot: Slot, blocks: std::ops::Range<u64>, sectors: u64) {
    for at in blocks.flat_map(|block| (0..sectors).map(move |sector| MemberLba(block * MD_BLOCK + sector))) {
        let (drive, lba) = Members::of(&rig.world, rig.array).place(slot, at).expect("it belongs to the map");
        rig.world.drive_mut(drive).flip(lba, 77, 0x10);
    }
}

#[test]
fn md_counts_what_a_check_counts_and_finds_nothing_after_a_repair_that_trusts_the_data() {
    let folder = Folder::new("engine-scrub");
    let mut guest = Guest::new();
    let cases = [
        (
            "raid4",
            ArrayShape { level: openraid_core::geometry::Level::Raid4, layout: 0, ..ArrayShape::raid5(4, CHUNK) },
        ),
        ("raid5", ArrayShape::raid5(4, CHUNK)),
        ("raid6", ArrayShape::raid6(5, CHUNK)),
        ("raid1", ArrayShape::raid1(2)),
        ("raid10", ArrayShape::raid10(0x102, 4, CHUNK)),
    ];
    for (key, shape) in cases {
        let mut rig = Rig::new(shape, RigOptions::new(SEED));
        rig.rest();
        stamp_array(&mut rig.world, rig.array, SEED);
        rig.rest();
        // 10 whole blocks, and one sector in each of 6 others.
        spoil(&mut rig, Slot(1), 40..50, MD_BLOCK);
        spoil(&mut rig, Slot(1), 64..70, 1);
        assert_eq!(scrub(&mut rig, ScrubMode::Check), ScrubOutcome::Mismatches { count: 86, repaired: 0 }, "{key}");
        let before = guest.images(&dump_all(&rig.world, &format!("{key}-before"), &folder));
        let repaired = scrub(&mut rig, ScrubMode::TrustData);
        assert_eq!(repaired, ScrubOutcome::Mismatches { count: 86, repaired: 86 }, "{key}");
        assert_eq!(scrub(&mut rig, ScrubMode::Check), ScrubOutcome::Clean, "{key}");
        rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("it stops");
        rig.world.run_until_idle();
        let after = guest.images(&dump_all(&rig.world, &format!("{key}-after"), &folder));
        for (name, members) in [("before", &before), ("after", &after)] {
            let name = format!("{key}{name}");
            guest.script(&format!("assemble {name} {}\ncheck {name}\nstop {name}\n", members.join(" ")));
        }
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (key, _) in cases {
        let counted = output.text(&format!("{key}before.mismatch_cnt"));
        let counted: u64 = counted.parse().unwrap_or_else(|_| panic!("{key}: {counted}"));
        // By blocks of 4 KiB; a mirror is compared in larger stretches.
        if key.starts_with("raid1") {
            assert!(counted >= 86, "{key}: {counted}");
        } else {
            assert_eq!(counted, 16 * MD_BLOCK, "{key}");
        }
        assert_eq!(output.text(&format!("{key}after.mismatch_cnt")), "0", "{key}");
    }
}
