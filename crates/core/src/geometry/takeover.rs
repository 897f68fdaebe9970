//! Changes of level without a move of data: the same bytes at the same places mean the same data in another level.
//!
//! One superblock of each member says the new level. The table is md's, so that either may do it:
//!
//! | from, to | condition | slots |
//! | --- | --- | --- |
//! | 0 to 4, 5 | equal members | one more, empty: the parity, last |
//! | 4, 5 to 0 | parity last and missing; a bitmap goes with it | the parity's goes |
//! | 4 to 5, 5 to 4 | parity last | the same |
//! | 1 to 5 | two slots, whole pages | the same |
//! | 5 to 1 | two slots | the same |
//! | 5 to 5 | two slots: any layout | the same |
//! | 5 to 6 | at least three slots, at most one missing | one more, empty: Q, last |
//! | 6 to 5 | Q last, at most one of the others missing | Q's goes |
//! | 0 to 10 | equal members | twice as many: after each member an empty one |
//! | 10 to 0 | near-2, one member of each pair missing | half as many |
//! | 1 to 0 | all but one missing, whole pages | one |

use super::{Level, Rotation, SetSpec, CHUNK_MIN};
use crate::slot_set::SlotSet;
use core::fmt;
use openraid_units::{Sectors, Slot};

/// md's number for two near copies.
const NEAR_2: u32 = 0x102;
/// The chunk that md gives a mirror which becomes another level, halved until the set is whole chunks.
const CHUNK_OF_MIRROR: Sectors = Sectors::kib(64);

/// A set as far as a takeover asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Levelled {
    level: Level,
    members: u16,
    chunk: Sectors,
    layout: u32,
    /// Sectors used of each member; for RAID 0 those of the smallest one.
    member_size: Sectors,
}

impl Levelled {
    fn of(spec: &SetSpec<'_>) -> Self {
        let SetSpec { level, members, chunk, layout, member_size, member_sizes } = *spec;
        let smallest = member_sizes.iter().min().filter(|_| level == Level::Raid0);
        Self { level, members, chunk, layout, member_size: smallest.copied().unwrap_or(member_size) }
    }
}

/// The state of a set as far as a takeover asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    missing: SlotSet,
    /// RAID 0: do all members have the same number of chunks?
    members_are_equal: bool,
}

/// Where the members of the slots come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotMoves {
    /// The slots below this number keep their members; other ones are empty, and a member without a slot is a spare.
    Kept(u16),
    /// The member of slot n is in slot 2n, and an empty slot follows it.
    Doubled,
    /// The only member of each pair of slots gets the pair's number.
    Halved,
    /// This member gets slot 0; there is no other one.
    Only(Slot),
}

/// The result of a takeover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takeover {
    /// The set after it.
    to: Levelled,
    moves: SlotMoves,
}

impl Takeover {
    /// The set after it. `sizes` are the data areas of its members, which only RAID 0 needs.
    pub(crate) const fn spec<'a>(&self, sizes: &'a [Sectors]) -> SetSpec<'a> {
        let Levelled { level, members, chunk, layout, member_size } = self.to;
        SetSpec { level, members, chunk, layout, member_size, member_sizes: sizes }
    }
    /// The sectors that are used of each member after it.
    pub(crate) const fn member_size(&self) -> Sectors {
        self.to.member_size
    }
    /// The slot that the member of a slot had before; `None` for an empty slot. `missing` is the state before.
    pub(crate) fn source(&self, slot: Slot, missing: SlotSet) -> Option<Slot> {
        match self.moves {
            SlotMoves::Kept(count) => (slot.0 < count).then_some(slot),
            SlotMoves::Doubled => slot.0.is_multiple_of(2).then_some(Slot(slot.0 / 2)),
            SlotMoves::Halved => [Slot(2 * slot.0), Slot(2 * slot.0 + 1)].into_iter().find(|it| !missing.contains(*it)),
            SlotMoves::Only(member) => Some(member),
        }
    }

    /// A mirror with another number of copies.
    pub(crate) fn of_mirror(from: &SetSpec<'_>, members: u16) -> Self {
        let to = Levelled { members, ..Levelled::of(from) };
        Self { to, moves: SlotMoves::Kept(from.members) }
    }
}

/// Why there is no such takeover, with the nearest change that is possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoTakeover {
    /// It is this level already.
    AlreadyThere,
    /// No takeover connects the levels.
    Levels {
        /// Level of the array.
        from: Level,
        /// Requested level.
        to: Level,
    },
    /// RAID 0 over members of unequal size.
    UnequalMembers,
    /// The parity is not on the last member.
    ParityMoves {
        /// Level of the array.
        from: Level,
        /// Requested level.
        to: Level,
    },
    /// Q is not alone on the last member.
    QMoves,
    /// RAID 4 or 5 to 0: the parity member is still there, or another one is missing.
    ParityNotMissing {
        /// The slot of the parity.
        parity: Slot,
    },
    /// Another number of slots is needed.
    Slots {
        /// Level of the array.
        from: Level,
        /// Requested level.
        to: Level,
        /// Number of slots.
        members: u16,
    },
    /// More members are missing than the takeover allows.
    Missing,
    /// RAID 10 to 0: the layout is not near-2 over an even number of members.
    NotPairs,
    /// RAID 10 to 0: not exactly one of each pair is missing.
    PairsNotHalved,
    /// RAID 1 to 0: not all but one are missing.
    MirrorsLeft,
    /// The size of the members is not a multiple of 4 KiB.
    NoChunk(Sectors),
    /// The chunk of a RAID 0 that levels with parity or copies cannot have.
    Chunk(Sectors),
    /// The takeover gives another layout than the requested one.
    Layout {
        /// The one that the takeover gives.
        given: u32,
    },
}

impl fmt::Display for NoTakeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AlreadyThere => f.write_str("the array has this level and layout already"),
            Self::Levels { from, to } => write!(f, "{from} does not become {to} by itself: {}", Detour { from, to }),
            Self::UnequalMembers => f.write_str(
                "RAID 0 over members of unequal size keeps its level: copy the data to a new array, or give members of one size",
            ),
            Self::ParityMoves { from, to } => {
                write!(f, "{from} becomes {to} only if all parity is on the last member: change the layout to parity-last first")
            }
            Self::QMoves => f.write_str(
                "RAID 6 becomes RAID 5 only if Q is alone on the last member: change the layout first, for example to \
                 left-symmetric-6",
            ),
            Self::ParityNotMissing { parity } => write!(
                f,
                "the set becomes RAID 0 when the parity member in slot {parity} is removed, and only this one: remove it first"
            ),
            Self::Slots { from, to, members } => {
                let needed = match (from, to) {
                    (Level::Raid5, Level::Raid6) => "at least 3",
                    _ => "exactly 2",
                };
                write!(f, "{from} becomes {to} with {needed} members, and there are {members}: change their number first")
            }
            Self::Missing => f.write_str("too many members are missing: add and rebuild them first"),
            Self::NotPairs => f.write_str(
                "RAID 10 becomes RAID 0 only with the layout n2 and an even number of members: change them first, or copy the \
                 data to a new array",
            ),
            Self::PairsNotHalved => {
                f.write_str("RAID 10 becomes RAID 0 when exactly one member of each pair is missing: remove the others first")
            }
            Self::MirrorsLeft => {
                f.write_str("RAID 1 becomes RAID 0 when only one member is left: remove the others first")
            }
            Self::NoChunk(size) => write!(
                f,
                "{size} of each member are used, which is not a multiple of 4 KiB, the smallest chunk: make the used size \
                 smaller first"
            ),
            Self::Chunk(chunk) => write!(
                f,
                "a chunk of {chunk} is possible in RAID 0 only (others need a power of two of at least 4 KiB): copy the data to \
                 a new array"
            ),
            Self::Layout { given } => write!(
                f,
                "without a move of data the layout is {given} ({given:#x}): change the level to that one first, the layout after"
            ),
        }
    }
}

impl core::error::Error for NoTakeover {}

/// The detour from a level to another one that no takeover connects.
struct Detour {
    from: Level,
    to: Level,
}

impl fmt::Display for Detour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.from, self.to) {
            (Level::Raid1 | Level::Raid4, Level::Raid6) => "change it to RAID 5 first, and then to RAID 6",
            (Level::Raid6, Level::Raid1 | Level::Raid4) => "change it to RAID 5 first",
            (Level::Raid1, Level::Raid4) | (Level::Raid4, Level::Raid1) | (Level::Raid6, Level::Raid0) => {
                "change it to RAID 5 first"
            }
            _ => "make a new array, and copy the data",
        })
    }
}

/// The takeover of a set to a level, and to a layout if one is wanted. `missing` are the slots without a member in sync.
///
/// # Errors
/// There is none; the text says the nearest possible change.
pub(crate) fn takeover(
    from: &SetSpec<'_>,
    missing: SlotSet,
    to_level: Level,
    to_layout: Option<u32>,
) -> Result<Takeover, NoTakeover> {
    let mut chunks = from.member_sizes.iter().map(|size| size.get().checked_div(from.chunk.get()));
    let first = chunks.next();
    let state = State { missing, members_are_equal: chunks.all(|count| Some(count) == first) };
    look_up(&Levelled::of(from), &state, to_level, to_layout)
}

fn look_up(from: &Levelled, state: &State, to_level: Level, to_layout: Option<u32>) -> Result<Takeover, NoTakeover> {
    let takeover = match (from.level, to_level) {
        (Level::Raid5, Level::Raid5) => return two_slots_of_parity(from, to_layout),
        (level, to) if level == to => return Err(NoTakeover::AlreadyThere),
        (Level::Raid0, Level::Raid4 | Level::Raid5) => striped_to_parity(from, state, to_level),
        (Level::Raid4 | Level::Raid5, Level::Raid0) => parity_to_striped(from, state),
        (Level::Raid4, Level::Raid5) | (Level::Raid5, Level::Raid4) => parity_last(from, to_level),
        (Level::Raid1, Level::Raid5) => mirror_to_parity(from, state),
        (Level::Raid5, Level::Raid1) => parity_to_mirror(from, state),
        (Level::Raid5, Level::Raid6) => parity_to_double(from, state),
        (Level::Raid6, Level::Raid5) => double_to_parity(from, state),
        (Level::Raid0, Level::Raid10) => striped_to_pairs(from, state),
        (Level::Raid10, Level::Raid0) => pairs_to_striped(from, state),
        (Level::Raid1, Level::Raid0) => mirror_to_striped(from, state),
        (from, to) => Err(NoTakeover::Levels { from, to }),
    }?;
    match to_layout {
        Some(wanted) if has_layouts(to_level) && wanted != takeover.to.layout => {
            Err(NoTakeover::Layout { given: takeover.to.layout })
        }
        _ => Ok(takeover),
    }
}

/// Does a layout number of this level mean anything for the places of equal members?
const fn has_layouts(level: Level) -> bool {
    matches!(level, Level::Raid5 | Level::Raid6 | Level::Raid10)
}

const PARITY_LAST: u32 = Rotation::ParityLast.md_number();
const FIRST_APART: u32 = Rotation::LeftAsymmetric6.md_number();

/// The layout of RAID 6 with the data and P of a layout of RAID 5, and Q on one more member.
pub(crate) const fn with_q_apart(layout: u32) -> u32 {
    if layout == PARITY_LAST {
        layout
    } else {
        layout + FIRST_APART
    }
}

/// The layout of RAID 5 from which this layout of RAID 6 is made by [`with_q_apart`].
pub(crate) fn five_of(layout: u32) -> Option<u32> {
    (0..=PARITY_LAST).find(|five| with_q_apart(*five) == layout)
}

fn is_parity_last(from: &Levelled) -> bool {
    from.level == Level::Raid4 || from.layout == PARITY_LAST
}

/// A chunk that only RAID 0 can have is refused.
fn striped_chunk(from: &Levelled, state: &State) -> Result<(), NoTakeover> {
    if !state.members_are_equal {
        return Err(NoTakeover::UnequalMembers);
    }
    if !from.chunk.get().is_power_of_two() || from.chunk < CHUNK_MIN {
        return Err(NoTakeover::Chunk(from.chunk));
    }
    Ok(())
}

/// The chunk of a mirror that becomes another level.
fn mirror_chunk(from: &Levelled) -> Result<Sectors, NoTakeover> {
    let divides = |chunk: &Sectors| (from.member_size % *chunk).is_zero();
    let halves =
        (0..).map(|halvings| Sectors(CHUNK_OF_MIRROR.get() >> halvings)).take_while(|chunk| *chunk >= CHUNK_MIN);
    halves.into_iter().find(divides).ok_or(NoTakeover::NoChunk(from.member_size))
}

fn striped_to_parity(from: &Levelled, state: &State, level: Level) -> Result<Takeover, NoTakeover> {
    striped_chunk(from, state)?;
    let layout = if level == Level::Raid5 { PARITY_LAST } else { 0 };
    let member_size = from.member_size.round_down(from.chunk);
    let to = Levelled { level, members: from.members + 1, layout, member_size, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Kept(from.members) })
}

fn parity_to_striped(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    if !is_parity_last(from) {
        return Err(NoTakeover::ParityMoves { from: from.level, to: Level::Raid0 });
    }
    let parity = Slot(from.members - 1);
    if state.missing & SlotSet::first_n(from.members) != SlotSet::one(parity) {
        return Err(NoTakeover::ParityNotMissing { parity });
    }
    let to = Levelled { level: Level::Raid0, members: from.members - 1, layout: 0, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Kept(from.members) })
}

fn parity_last(from: &Levelled, level: Level) -> Result<Takeover, NoTakeover> {
    if !is_parity_last(from) {
        return Err(NoTakeover::ParityMoves { from: from.level, to: level });
    }
    let layout = if level == Level::Raid5 { PARITY_LAST } else { 0 };
    Ok(Takeover { to: Levelled { level, layout, ..*from }, moves: SlotMoves::Kept(from.members) })
}

/// Two slots, and at most one of them is missing.
fn two_slots(from: &Levelled, state: &State, to: Level) -> Result<(), NoTakeover> {
    if from.members != 2 {
        return Err(NoTakeover::Slots { from: from.level, to, members: from.members });
    }
    if (state.missing & SlotSet::first_n(2)).len() > 1 {
        return Err(NoTakeover::Missing);
    }
    Ok(())
}

fn mirror_to_parity(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    two_slots(from, state, Level::Raid5)?;
    let layout = Rotation::LeftSymmetric.md_number();
    let to = Levelled { level: Level::Raid5, chunk: mirror_chunk(from)?, layout, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Kept(from.members) })
}

fn parity_to_mirror(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    two_slots(from, state, Level::Raid1)?;
    let member_size = from.member_size.round_down(from.chunk);
    let to = Levelled { level: Level::Raid1, chunk: Sectors::ZERO, layout: 0, member_size, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Kept(from.members) })
}

/// Two members of RAID 5 are a mirror in any layout.
fn two_slots_of_parity(from: &Levelled, to_layout: Option<u32>) -> Result<Takeover, NoTakeover> {
    let Some(layout) = to_layout.filter(|layout| *layout != from.layout) else { return Err(NoTakeover::AlreadyThere) };
    if from.members != 2 || Rotation::from_md(Level::Raid5, layout).is_none() {
        return Err(NoTakeover::Layout { given: from.layout });
    }
    Ok(Takeover { to: Levelled { layout, ..*from }, moves: SlotMoves::Kept(from.members) })
}

fn parity_to_double(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    if from.members < 3 {
        return Err(NoTakeover::Slots { from: from.level, to: Level::Raid6, members: from.members });
    }
    if (state.missing & SlotSet::first_n(from.members)).len() > 1 {
        return Err(NoTakeover::Missing);
    }
    let layout = with_q_apart(from.layout);
    Ok(Takeover {
        to: Levelled { level: Level::Raid6, members: from.members + 1, layout, ..*from },
        moves: SlotMoves::Kept(from.members),
    })
}

fn double_to_parity(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    let layout = five_of(from.layout).ok_or(NoTakeover::QMoves)?;
    let members = from.members - 1;
    if (state.missing & SlotSet::first_n(members)).len() > 1 {
        return Err(NoTakeover::Missing);
    }
    Ok(Takeover {
        to: Levelled { level: Level::Raid5, members, layout, ..*from },
        moves: SlotMoves::Kept(from.members),
    })
}

fn striped_to_pairs(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    striped_chunk(from, state)?;
    let member_size = from.member_size.round_down(from.chunk);
    let to = Levelled { level: Level::Raid10, members: 2 * from.members, layout: NEAR_2, member_size, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Doubled })
}

fn pairs_to_striped(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    if from.layout != NEAR_2 || !from.members.is_multiple_of(2) {
        return Err(NoTakeover::NotPairs);
    }
    let members = from.members / 2;
    let pair = |number: u16| SlotSet::one(Slot(2 * number)).with(Slot(2 * number + 1));
    if (0..members).any(|number| (state.missing & pair(number)).len() != 1) {
        return Err(NoTakeover::PairsNotHalved);
    }
    let to = Levelled { level: Level::Raid0, members, layout: 0, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Halved })
}

fn mirror_to_striped(from: &Levelled, state: &State) -> Result<Takeover, NoTakeover> {
    let present = SlotSet::first_n(from.members).minus(state.missing);
    let only = present.first().filter(|_| present.len() == 1).ok_or(NoTakeover::MirrorsLeft)?;
    let to = Levelled { level: Level::Raid0, members: 1, chunk: mirror_chunk(from)?, layout: 0, ..*from };
    Ok(Takeover { to, moves: SlotMoves::Only(only) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, StripeRole};
    use alloc::collections::BTreeMap;
    use alloc::vec;
    use alloc::vec::Vec;
    use openraid_units::{MemberLba, SetLba, StripeIndex};

    /// Whole chunks of 64 KiB, so that all levels use everything.
    const SIZE: Sectors = Sectors(512);
    const NONE_MISSING: State = State { missing: SlotSet::EMPTY, members_are_equal: true };

    fn set(level: Level, members: u16, chunk: u64, layout: u32) -> Levelled {
        Levelled { level, members, chunk: Sectors(chunk), layout, member_size: SIZE }
    }

    fn without(slots: &[u16]) -> State {
        State { missing: slots.iter().map(|slot| Slot(*slot)).collect(), ..NONE_MISSING }
    }

    fn geometry(set: &Levelled) -> Geometry {
        let sizes = vec![set.member_size; usize::from(set.members)];
        let Levelled { level, members, chunk, layout, member_size } = *set;
        let spec = SetSpec { level, members, chunk, layout, member_size, member_sizes: &sizes };
        Geometry::new(&spec).expect("a possible set")
    }

    /// The content of a sector of a member: the XOR of these addresses of the set, or Q of them.
    type Content = (Vec<u64>, bool);

    /// The content of every used sector.
    fn contents(geometry: &Geometry) -> BTreeMap<(u16, u64), Content> {
        let mut contents = BTreeMap::new();
        for at in 0..geometry.capacity().0 {
            let mut hold = |slot: Slot, lba: MemberLba| contents.insert((slot.0, lba.0), (vec![at], false));
            match geometry {
                Geometry::Striped(striped) => {
                    let place = striped.map(SetLba(at));
                    hold(place.slot, place.lba);
                }
                Geometry::Mirror(mirror) => {
                    for copy in mirror.copies(SetLba(at)) {
                        hold(copy.slot, copy.lba);
                    }
                }
                Geometry::Parity(parity) => {
                    let (stripe, column, within) = parity.locate(SetLba(at));
                    hold(parity.slot_of(stripe, column), parity.member_lba(stripe, within));
                }
                _ => unreachable!("not a level of these tests"),
            }
        }
        if let Geometry::Parity(parity) = geometry {
            for stripe in (0..parity.stripes()).map(StripeIndex) {
                for slot in (0..parity.members()).map(Slot) {
                    let is_q = parity.role_of(stripe, slot) == StripeRole::Q;
                    if !is_q && parity.role_of(stripe, slot) != StripeRole::P {
                        continue;
                    }
                    for row in (0..parity.chunk().0).map(Sectors) {
                        let row_of = |column| parity.set_lba(stripe, column, row).0;
                        let all = (0..parity.data_columns()).map(row_of).collect();
                        contents.insert((slot.0, parity.member_lba(stripe, row).0), (all, is_q));
                    }
                }
            }
        }
        contents
    }

    /// Does it, and compares each sector of each member that stays.
    fn take(from: &Levelled, state: &State, level: Level, layout: Option<u32>) -> Takeover {
        let takeover = look_up(from, state, level, layout).expect("in the table");
        let (old, new) = (geometry(from), geometry(&takeover.to));
        assert_eq!(old.capacity(), new.capacity(), "{from:?} {takeover:?}");
        let before = contents(&old);
        let mut same = 0;
        for ((slot, lba), content) in contents(&new) {
            if let Some(source) = takeover.source(Slot(slot), state.missing) {
                assert_eq!(
                    before.get(&(source.0, lba)),
                    Some(&content),
                    "{from:?} {takeover:?} slot {slot} sector {lba}"
                );
                same += 1;
            }
        }
        assert!(same >= new.capacity().0);
        takeover
    }

    #[test]
    fn every_takeover_finds_the_same_bytes_at_the_same_places() {
        for members in 1..=4 {
            let striped = set(Level::Raid0, members, 16, 2);
            let five = take(&striped, &NONE_MISSING, Level::Raid5, None).to;
            let four = take(&striped, &NONE_MISSING, Level::Raid4, Some(7)).to;
            let ten = take(&striped, &NONE_MISSING, Level::Raid10, Some(NEAR_2)).to;
            assert_eq!((five.members, four.members, ten.members), (members + 1, members + 1, 2 * members));
            take(&five, &without(&[members]), Level::Raid0, None);
            take(&four, &without(&[members]), Level::Raid0, None);
            take(&four, &NONE_MISSING, Level::Raid5, Some(PARITY_LAST));
            take(&five, &NONE_MISSING, Level::Raid4, None);
            let gone: Vec<u16> = (0..members).map(|pair| 2 * pair + pair % 2).collect();
            take(&ten, &without(&gone), Level::Raid0, None);
        }
        for (layout, apart) in [(0, 16), (1, 17), (2, 18), (3, 19), (4, 20), (5, 5)] {
            for members in 3..=6 {
                let six = take(&set(Level::Raid5, members, 8, layout), &without(&[1]), Level::Raid6, Some(apart)).to;
                assert_eq!((six.members, six.layout), (members + 1, apart));
                let five = take(&six, &without(&[0, members]), Level::Raid5, Some(layout)).to;
                assert_eq!(five, set(Level::Raid5, members, 8, layout));
            }
            let two = set(Level::Raid5, 2, 32, layout);
            let mirror = take(&two, &NONE_MISSING, Level::Raid1, None).to;
            take(&mirror, &without(&[1]), Level::Raid5, None);
            for other in (0..=5).filter(|other| *other != layout) {
                take(&two, &NONE_MISSING, Level::Raid5, Some(other));
            }
        }
        let only = take(&set(Level::Raid1, 3, 0, 0), &without(&[0, 2]), Level::Raid0, None);
        assert_eq!(only.moves, SlotMoves::Only(Slot(1)));
    }

    #[test]
    fn a_raid_0_is_judged_by_the_chunks_of_its_members() {
        let striped = |sizes| {
            let spec = SetSpec {
                level: Level::Raid0,
                members: 3,
                chunk: Sectors(16),
                layout: 2,
                member_size: Sectors::ZERO,
                member_sizes: sizes,
            };
            takeover(&spec, SlotSet::EMPTY, Level::Raid10, None)
        };
        let ten = striped(&[Sectors(170), Sectors(160), Sectors(175)]).expect("ten chunks each");
        let spec = ten.spec(&[]);
        assert_eq!((spec.level, spec.members, spec.layout), (Level::Raid10, 6, NEAR_2));
        assert_eq!((spec.chunk, spec.member_size, ten.moves), (Sectors(16), Sectors(160), SlotMoves::Doubled));
        assert_eq!(striped(&[Sectors(176), Sectors(160), Sectors(160)]), Err(NoTakeover::UnequalMembers));
    }

    #[test]
    fn a_mirror_gets_the_largest_chunk_that_divides_it() {
        for (size, chunk) in [(512, 128), (64, 64), (1024 + 32, 32), (1024 + 8, 8)] {
            let from = Levelled { member_size: Sectors(size), ..set(Level::Raid1, 2, 0, 0) };
            let to = look_up(&from, &NONE_MISSING, Level::Raid5, None).expect("in the table").to;
            assert_eq!((to.chunk, to.layout), (Sectors(chunk), 2), "{size}");
        }
        let odd = Levelled { member_size: Sectors(1028), ..set(Level::Raid1, 2, 0, 0) };
        assert_eq!(refused(&odd, &NONE_MISSING, Level::Raid5, None), NoTakeover::NoChunk(Sectors(1028)));
        assert_eq!(refused(&odd, &without(&[0]), Level::Raid0, None), NoTakeover::NoChunk(Sectors(1028)));
    }

    fn refused(from: &Levelled, state: &State, level: Level, layout: Option<u32>) -> NoTakeover {
        let reason = look_up(from, state, level, layout).expect_err("refused");
        assert!(!alloc::format!("{reason}").is_empty());
        reason
    }

    #[test]
    fn what_the_table_does_not_have_is_refused_with_its_reason() {
        use Level::{Linear, Raid0, Raid1, Raid10, Raid4, Raid5, Raid6};
        let none = &NONE_MISSING;
        let striped = set(Raid0, 3, 16, 2);
        let unequal = State { members_are_equal: false, ..*none };
        assert_eq!(refused(&striped, &unequal, Raid5, None), NoTakeover::UnequalMembers);
        assert_eq!(refused(&striped, &unequal, Raid10, None), NoTakeover::UnequalMembers);
        assert_eq!(refused(&set(Raid0, 3, 24, 2), none, Raid4, None), NoTakeover::Chunk(Sectors(24)));
        assert_eq!(refused(&striped, none, Raid5, Some(2)), NoTakeover::Layout { given: PARITY_LAST });
        let five = set(Raid5, 4, 16, 2);
        assert_eq!(refused(&five, none, Raid5, None), NoTakeover::AlreadyThere);
        assert_eq!(refused(&five, none, Raid5, Some(3)), NoTakeover::Layout { given: 2 });
        assert_eq!(refused(&five, none, Raid4, None), NoTakeover::ParityMoves { from: Raid5, to: Raid4 });
        assert_eq!(refused(&five, &without(&[3]), Raid0, None), NoTakeover::ParityMoves { from: Raid5, to: Raid0 });
        assert_eq!(refused(&five, none, Raid1, None), NoTakeover::Slots { from: Raid5, to: Raid1, members: 4 });
        assert_eq!(refused(&five, &without(&[0, 1]), Raid6, None), NoTakeover::Missing);
        assert_eq!(refused(&five, none, Raid6, Some(2)), NoTakeover::Layout { given: 18 });
        let two = set(Raid5, 2, 16, 2);
        assert_eq!(refused(&two, none, Raid6, None), NoTakeover::Slots { from: Raid5, to: Raid6, members: 2 });
        assert_eq!(refused(&two, &without(&[0, 1]), Raid1, None), NoTakeover::Missing);
        let last = set(Raid4, 4, 16, 0);
        for missing in [&[][..], &[0], &[2, 3]] {
            let parity = NoTakeover::ParityNotMissing { parity: Slot(3) };
            assert_eq!(refused(&last, &without(missing), Raid0, None), parity);
        }
        assert_eq!(refused(&set(Raid6, 5, 16, 2), none, Raid5, None), NoTakeover::QMoves);
        assert_eq!(refused(&set(Raid6, 5, 16, 18), &without(&[0, 1]), Raid5, None), NoTakeover::Missing);
        let mirror = set(Raid1, 3, 0, 0);
        assert_eq!(refused(&mirror, none, Raid5, None), NoTakeover::Slots { from: Raid1, to: Raid5, members: 3 });
        assert_eq!(refused(&mirror, &without(&[0]), Raid0, None), NoTakeover::MirrorsLeft);
        let ten = set(Raid10, 4, 16, NEAR_2);
        assert_eq!(refused(&ten, none, Raid0, None), NoTakeover::PairsNotHalved);
        assert_eq!(refused(&ten, &without(&[0, 1]), Raid0, None), NoTakeover::PairsNotHalved);
        assert_eq!(refused(&set(Raid10, 4, 16, 0x201), &without(&[0, 2]), Raid0, None), NoTakeover::NotPairs);
        assert_eq!(refused(&set(Raid10, 5, 16, NEAR_2), &without(&[0, 2]), Raid0, None), NoTakeover::NotPairs);
        for (from, to) in [(striped, Raid6), (last, Raid1), (five, Raid10), (ten, Raid5), (mirror, Linear)] {
            assert_eq!(refused(&from, none, to, None), NoTakeover::Levels { from: from.level, to });
        }
    }
}
