//! Levels 1 and 10.

use super::{equal, mirror, CHUNK};
use openraid_core::geometry::{Fragment, Geometry, GeometryError, Level, Mirror, SetSpec};
use openraid_core::slot_set::SlotSet;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};
use std::collections::BTreeMap;

/// A number of rows that no small number of copies divides.
const ROWS: u64 = 25;

/// md's number of a layout; `sets` is 0 for one far set, 1 for the old kind, 2 for the new kind.
fn layout(near: u32, far: u32, offset: bool, sets: u32) -> u32 {
    near | far << 8 | u32::from(offset) << 16 | sets << 17
}

/// Every layout of two copies and more on 2 to 8 members that md takes.
fn layouts() -> Vec<(u16, u32)> {
    let mut all = Vec::new();
    for members in 2..=8_u16 {
        for near in 1..=u32::from(members) {
            for far in 1..=u32::from(members) / near {
                for kind in 0..6 {
                    all.extend((near * far > 1).then_some((members, layout(near, far, kind % 2 == 1, kind / 2))));
                }
            }
        }
    }
    all
}

/// The members' chunks as lines, one per row: which chunk of the set each holds.
fn draw(set: &Mirror, rows: u64) -> Vec<String> {
    let mut cells = BTreeMap::new();
    for number in 0..set.capacity() / CHUNK {
        for copy in set.copies(SetLba(number * CHUNK.0)) {
            cells.insert((copy.lba.0 / CHUNK.0, copy.slot.0), char::from(b'A' + u8::try_from(number).unwrap()));
        }
    }
    let cell = |row, slot| cells.get(&(row, slot)).copied().unwrap_or('.');
    (0..rows).map(|row| (0..set.members()).map(|slot| cell(row, slot)).collect()).collect()
}

fn assert_drawn(members: u16, layout: u32, drawn: &[&str]) {
    let rows = drawn.len() as u64;
    assert_eq!(draw(&mirror(Level::Raid10, members, layout, CHUNK * rows), rows), drawn, "layout {layout:#x}");
}

#[test]
fn near_far_and_offset_copies_stand_as_drawn() {
    assert_drawn(4, 0x102, &["AABB", "CCDD"]);
    assert_drawn(3, 0x102, &["AAB", "BCC", "DDE", "EFF"]);
    assert_drawn(3, 0x102, &["AAB", "BCC", "DD."]);
    assert_drawn(5, 0x103, &["AAABB", "BCCCD", "DDEEE"]);
    assert_drawn(4, 0x201, &["ABCD", "EFGH", "DABC", "HEFG"]);
    assert_drawn(3, 0x201, &["ABC", "DEF", "CAB", "FDE", "..."]);
    assert_drawn(4, 0x301, &["ABCD", "DABC", "CDAB"]);
    assert_drawn(4, 0x10201, &["ABCD", "DABC", "EFGH", "HEFG"]);
    assert_drawn(3, 0x10201, &["ABC", "CAB", "DEF", "FDE", "..."]);
    assert_drawn(4, 0x202, &["AABB", "CCDD", "BBAA", "DDCC"]);
    assert_drawn(5, 0x202, &["AABBC", "CDDEE", "BCAAB", "EECDD"]);
}

#[test]
fn far_sets_turn_within_their_members() {
    assert_drawn(4, layout(1, 2, false, 2), &["ABCD", "EFGH", "BADC", "FEHG"]);
    assert_drawn(6, layout(1, 2, false, 1), &["ABCDEF", "CABFDE"]);
    assert_drawn(5, layout(1, 2, false, 2), &["ABCDE", "BAECD"]);
    assert_drawn(4, layout(1, 2, true, 2), &["ABCD", "BADC", "EFGH", "FEHG"]);
}

/// The two steps of md: members to usable chunks, these to the rows of a far copy, and back to the size.
fn md_sizes(members: u64, near: u64, far: u64, member_size: u64) -> (u64, u64) {
    let chunks_of = |size: u64| size / CHUNK.0 / far * members / near;
    let used = (chunks_of(member_size) * near * far).div_ceil(members) * CHUNK.0;
    (chunks_of(used) * CHUNK.0, used)
}

#[test]
fn sizes_are_those_of_md() {
    for (members, layout) in layouts() {
        for member_size in (64..400).step_by(5) {
            let (near, far) = (layout & 0xff, layout >> 8 & 0xff);
            let Ok(Geometry::Mirror(set)) = equal(Level::Raid10, members, layout, Sectors(member_size)) else {
                continue;
            };
            let (capacity, used) = md_sizes(members.into(), near.into(), far.into(), member_size);
            assert_eq!((set.capacity(), set.member_extent()), (Sectors(capacity), Sectors(used)), "{layout:#x}");
        }
    }
}

#[test]
fn every_copy_has_its_own_place_and_leads_back() {
    let mut accepted = 0;
    for (members, layout) in layouts() {
        let set = match equal(Level::Raid10, members, layout, CHUNK * ROWS + Sectors(5)) {
            Ok(Geometry::Mirror(set)) => set,
            Err(GeometryError::Overlap { .. }) => continue,
            other => panic!("{members} members, layout {layout:#x}: {other:?}"),
        };
        accepted += 1;
        let mut places = BTreeMap::new();
        for number in 0..set.capacity() / CHUNK {
            let start = SetLba(number * CHUNK.0);
            let copies: Vec<Fragment> = set.copies(start).collect();
            assert_eq!(copies.len(), usize::from(set.copy_count()));
            assert_eq!(set.copies(start).len(), copies.len());
            for copy in copies {
                assert_eq!(copy.len, CHUNK);
                assert!(copy.lba.offset() + copy.len <= set.member_extent());
                let other = places.insert((copy.slot, copy.lba), start);
                assert_eq!(other, None, "{members} members, layout {layout:#x}: {copy:?} twice");
            }
        }
        // What was not found to hold anything holds nothing, and what was holds that.
        for slot in (0..members).map(Slot) {
            for row in 0..ROWS + 2 {
                let at = MemberLba(row * CHUNK.0);
                let expected = places.get(&(slot, at)).map(|start| (*start, CHUNK));
                assert_eq!(set.inverse(slot, at), expected, "{members} members, layout {layout:#x}");
            }
        }
    }
    assert!(accepted > 200, "only {accepted} layouts were accepted");
}

#[test]
fn within_a_chunk_copies_move_in_step() {
    let set = mirror(Level::Raid10, 5, 0x202, CHUNK * ROWS);
    for at in 0..set.capacity().0 {
        let whole: Vec<Fragment> = set.copies(SetLba(at / CHUNK.0 * CHUNK.0)).collect();
        for (part, whole) in set.copies(SetLba(at)).zip(whole) {
            let within = Sectors(at % CHUNK.0);
            assert_eq!(part, Fragment { slot: whole.slot, lba: whole.lba + within, len: CHUNK - within });
            assert_eq!(set.inverse(part.slot, part.lba), Some((SetLba(at), CHUNK - within)));
        }
    }
}

/// Does walking over all chunks of all copies by brute force find two of them at one place?
fn overlaps(members: u16, layout: u32) -> bool {
    let (near, far) = (u64::from(layout & 0xff), u64::from(layout >> 8 & 0xff));
    let (offset, members) = (layout >> 16 & 1 == 1, u64::from(members));
    let set_size = match layout >> 17 {
        0 => members,
        1 => members / far,
        _ => near * far,
    };
    let last_start = (members / set_size - 1) * set_size;
    let stride = ROWS / far;
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..stride * members / near {
        for n in 0..near {
            // md counts the row of the whole chunk, multiplies it, and only then runs over the edge.
            let first = number * near;
            let mut slot = first % members + n;
            let mut row = first / members * if offset { far } else { 1 };
            (slot, row) = if slot >= members { (slot - members, row + 1) } else { (slot, row) };
            for _ in 0..far {
                if !seen.insert((slot, row)) {
                    return true;
                }
                let set = slot / set_size;
                slot += near;
                if members % set_size != 0 && slot > last_start {
                    slot = (slot - last_start) % (set_size + members % set_size) + last_start;
                } else {
                    slot = slot % set_size + set * set_size;
                }
                row += if offset { 1 } else { stride };
            }
        }
    }
    false
}

#[test]
fn layouts_are_refused_exactly_where_chunks_meet() {
    let mut refused = 0;
    for (members, layout) in layouts() {
        let found = equal(Level::Raid10, members, layout, CHUNK * ROWS);
        assert_eq!(found.is_err(), overlaps(members, layout), "{members} members, layout {layout:#x}: {found:?}");
        refused += usize::from(found.is_err());
    }
    assert!(refused > 5, "only {refused} were refused");
}

#[test]
fn a_mirror_survives_if_every_chunk_has_a_copy_left() {
    for (members, layout) in layouts() {
        for rows in [4, 8, ROWS] {
            let Ok(set) = equal(Level::Raid10, members, layout, CHUNK * rows) else { continue };
            let Geometry::Mirror(mirror) = &set else { panic!("a mirror") };
            let chunks = set.capacity() / CHUNK;
            let groups: Vec<Vec<Slot>> = (0..chunks)
                .map(|number| mirror.copies(SetLba(number * CHUNK.0)).map(|copy| copy.slot).collect())
                .collect();
            let mut least = u32::from(members);
            for bits in 0..1_u32 << members {
                let lost = |slot: &Slot| bits >> slot.0 & 1 == 1;
                let missing: SlotSet = (0..members).map(Slot).filter(|slot| lost(slot)).collect();
                let alive = groups.iter().all(|group| !group.iter().all(lost));
                assert_eq!(set.survives(missing), alive, "{members} members, layout {layout:#x}, {missing:?}");
                if !alive {
                    least = least.min(missing.len());
                }
            }
            assert_eq!(u32::from(set.losses_survived()) + 1, least, "{members} members, layout {layout:#x}");
        }
    }
}

#[test]
fn raid1_holds_everything_on_every_member() {
    let size = Sectors(1_234_567);
    let set = mirror(Level::Raid1, 3, 0, size);
    assert_eq!((set.capacity(), set.member_extent(), set.chunk()), (size, size, None));
    let expected: Vec<Fragment> =
        (0..3).map(|slot| Fragment { slot: Slot(slot), lba: MemberLba(7), len: Sectors(size.0 - 7) }).collect();
    assert_eq!(set.copies(SetLba(7)).collect::<Vec<_>>(), expected);
    assert_eq!(set.copies(SetLba(7)).len(), 3);
    assert_eq!(set.inverse(Slot(2), MemberLba(7)), Some((SetLba(7), Sectors(size.0 - 7))));
    assert_eq!(set.inverse(Slot(2), MemberLba(size.0)), None);
    assert!(set.survives([Slot(0), Slot(2)].into_iter().collect()));
    assert!(!set.survives(SlotSet::first_n(3)));
    let mut iter = set.copies(SetLba(0));
    assert_eq!(iter.by_ref().count(), 3);
    assert_eq!((iter.next(), iter.len()), (None, 0), "the end stays the end");
}

#[test]
fn beyond_two_tib_nothing_wraps() {
    for (members, layout) in [(4, 0x102), (5, 0x201), (4, 0x10201), (5, 0x103), (8, 0x202)] {
        let set = mirror(Level::Raid10, members, layout, Sectors(1 << 34));
        for boundary in [1_u64 << 32, 1 << 33, set.capacity().0 - 20] {
            for at in boundary - 20..boundary + 20 {
                for copy in set.copies(SetLba(at)) {
                    assert_eq!(set.inverse(copy.slot, copy.lba), Some((SetLba(at), copy.len)));
                    assert_eq!(copy.lba.0 % CHUNK.0, at % CHUNK.0);
                }
            }
        }
    }
    // Near 2 on 4: two chunks in a row, worked out by hand.
    let set = mirror(Level::Raid10, 4, 0x102, Sectors(1 << 34));
    let found: Vec<Fragment> = set.copies(SetLba((1 << 33) + 8 + 3)).collect();
    let copy = |slot| Fragment { slot: Slot(slot), lba: MemberLba((1 << 32) + 3), len: Sectors(5) };
    assert_eq!(found, [copy(2), copy(3)]);
}

#[test]
fn preferred_sizes_are_those_of_md() {
    let unit = |members, layout| {
        let set = equal(Level::Raid10, members, layout, CHUNK * ROWS).unwrap();
        (set.io_min() / CHUNK, set.full_stripe() / CHUNK)
    };
    assert_eq!(unit(4, 0x102), (1, 2));
    assert_eq!(unit(5, 0x102), (1, 5));
    assert_eq!(unit(4, 0x201), (1, 4));
}

#[test]
fn one_member_is_a_mirror_of_one() {
    let spec = SetSpec {
        level: Level::Raid1,
        members: 1,
        chunk: Sectors::ZERO,
        layout: 0,
        member_size: Sectors(99),
        member_sizes: &[],
    };
    let set = Geometry::new(&spec).unwrap();
    assert_eq!(set.capacity(), Sectors(99));
    assert!(!set.survives(SlotSet::one(Slot(0))));
    assert_eq!(set.losses_survived(), 0);
}
