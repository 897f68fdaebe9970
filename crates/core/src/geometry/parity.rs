//! RAID 4, 5 and 6: stripes of data columns with P, or P and Q.
//!
//! A *stripe* is one chunk on every member, a *column* one data chunk of it, counted in the order of the array. The
//! places of columns and parity repeat after at most as many stripes as there are members, so the constructor writes
//! one period into tables, and a query costs one remainder and one look-up.

use super::divisor::Divisor;
use super::{check_capacity, GeometryError, Level, Rotation, SetSpec, Split};
use crate::slot_set::SlotSet;
use alloc::vec::Vec;
use openraid_units::{MemberLba, Sectors, SetLba, Slot, StripeIndex};

/// The content of a member in one stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripeRole {
    /// The data column of this number.
    Data(u16),
    /// The XOR of the data columns.
    P,
    /// The weighted sum of the data columns.
    Q,
}

/// Marks in the table of roles, above every column.
const ROLE_P: u8 = 254;
const ROLE_Q: u8 = 255;

/// RAID 4, 5 or 6.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parity {
    level: Level,
    rotation: Rotation,
    members: u16,
    data_columns: u16,
    chunk: Sectors,
    shift: u32,
    stripes: u64,
    /// Stripes after which the pattern repeats.
    period: Divisor,
    by_columns: Divisor,
    /// `[phase * members + place]`: the slots of the data columns in order, then of P, then of Q.
    slots: Vec<u8>,
    /// `[phase * members + slot]`: the column in that slot, or a mark for P or Q.
    roles: Vec<u8>,
    /// `[phase * members + column]`: the exponent of the column in Q.
    weights: Vec<u8>,
}

impl Parity {
    pub(super) fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        let SetSpec { level, members, chunk, layout, .. } = *spec;
        let rotation = Rotation::from_md(level, layout).ok_or(GeometryError::Layout { level, layout })?;
        let shift = spec.check_chunk_power()?;
        spec.check_member_size(chunk)?;
        let data_columns = members - if level == Level::Raid6 { 2 } else { 1 };
        let stripes = spec.member_size.0 >> shift;
        check_capacity(Sectors(stripes << shift) * u64::from(data_columns))?;
        let period = rotation.period(members);
        let mut parity = Self {
            level,
            rotation,
            members,
            data_columns,
            chunk,
            shift,
            stripes,
            period: Divisor::new(period.into()),
            by_columns: Divisor::new(data_columns.into()),
            slots: Vec::with_capacity(usize::from(period * members)),
            roles: Vec::with_capacity(usize::from(period * members)),
            weights: Vec::with_capacity(usize::from(period * members)),
        };
        for phase in 0..period {
            parity.fill(phase);
        }
        Ok(parity)
    }

    /// Append one stripe of the period to the tables.
    fn fill(&mut self, phase: u16) {
        let byte = |number: u16| u8::try_from(number).expect("members are fewer than 254");
        let place = self.rotation.place(self.members, self.level == Level::Raid6, phase);
        let start = self.roles.len();
        self.roles.resize(start + usize::from(self.members), ROLE_P);
        for (column, slot) in (0..).zip(place.columns()) {
            self.slots.push(byte(slot));
            self.roles[start + usize::from(slot)] = byte(column);
            self.weights.push(byte(place.weight(slot)));
        }
        self.slots.push(byte(place.p));
        if let Some(q) = place.q {
            self.slots.push(byte(q));
            self.roles[start + usize::from(q)] = ROLE_Q;
        }
        assert!(self.slots.len() == self.roles.len(), "every slot has one role");
        self.weights.resize(self.roles.len(), 0);
    }

    /// Size of the set.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        self.chunk * (self.stripes * u64::from(self.data_columns))
    }
    /// Level 4, 5 or 6.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }
    /// The slots that have parity in all stripes.
    pub(crate) fn slots_without_data(&self) -> SlotSet {
        let roles = |slot: &Slot| self.roles.iter().skip(slot.index()).step_by(usize::from(self.members));
        (0..self.members).map(Slot).filter(|slot| roles(slot).all(|role| *role >= ROLE_P)).collect()
    }
    /// The layout.
    #[must_use]
    pub const fn rotation(&self) -> Rotation {
        self.rotation
    }
    /// Number of slots.
    #[must_use]
    pub const fn members(&self) -> u16 {
        self.members
    }
    /// The chunk, a power of two.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        self.chunk
    }
    /// Number of stripes.
    #[must_use]
    pub const fn stripes(&self) -> u64 {
        self.stripes
    }
    /// Data columns of a stripe.
    #[must_use]
    pub const fn data_columns(&self) -> u16 {
        self.data_columns
    }
    /// Parity columns of a stripe: 1 or 2.
    #[must_use]
    pub const fn parities(&self) -> u16 {
        self.members - self.data_columns
    }
    /// The data of one stripe.
    #[must_use]
    pub fn full_stripe(&self) -> Sectors {
        self.chunk * u64::from(self.data_columns)
    }
    /// Length of the used part of each member.
    #[must_use]
    pub fn member_extent(&self) -> Sectors {
        self.chunk * self.stripes
    }

    /// Stripe, column, and place within the column's chunk.
    #[must_use]
    pub fn locate(&self, at: SetLba) -> (StripeIndex, u16, Sectors) {
        let chunk = at.0 >> self.shift;
        let (stripe, column) = self.by_columns.divide(chunk);
        assert!(stripe < self.stripes, "{at:?} is outside a parity set of {}", self.capacity());
        let column = u16::try_from(column).expect("a remainder by the columns");
        (StripeIndex(stripe), column, Sectors(at.0 & (self.chunk.0 - 1)))
    }
    /// The inverse of [`Parity::locate`].
    #[must_use]
    pub fn set_lba(&self, stripe: StripeIndex, column: u16, within: Sectors) -> SetLba {
        assert!(stripe.0 < self.stripes && column < self.data_columns && within < self.chunk);
        let chunk = stripe.0 * u64::from(self.data_columns) + u64::from(column);
        SetLba((chunk << self.shift) + within.0)
    }
    /// The first sector of a stripe in the set.
    #[inline(always)]
    #[must_use]
    pub fn stripe_start(&self, stripe: StripeIndex) -> SetLba {
        assert!(stripe.0 < self.stripes, "{stripe:?} is after the last of {} stripes", self.stripes);
        SetLba((stripe.0 * u64::from(self.data_columns)) << self.shift)
    }
    /// The first sector of the stripe of an address.
    #[inline(always)]
    #[must_use]
    pub fn stripe_start_of(&self, at: SetLba) -> SetLba {
        let chunk = at.0 >> self.shift;
        let (stripe, column) = self.by_columns.divide(chunk);
        assert!(stripe < self.stripes, "{at:?} is outside a parity set of {}", self.capacity());
        SetLba((chunk - column) << self.shift)
    }
    /// The place of a row of a stripe on every member. `within` may be the chunk, for the end of the stripe.
    #[must_use]
    pub fn member_lba(&self, stripe: StripeIndex, within: Sectors) -> MemberLba {
        assert!(stripe.0 < self.stripes && within <= self.chunk);
        MemberLba((stripe.0 << self.shift) + within.0)
    }
    /// The stripe and row of a place on a member; `None` after the last stripe.
    #[must_use]
    pub fn stripe_at(&self, at: MemberLba) -> Option<(StripeIndex, Sectors)> {
        let stripe = at.0 >> self.shift;
        (stripe < self.stripes).then_some((StripeIndex(stripe), Sectors(at.0 & (self.chunk.0 - 1))))
    }

    /// The first sector, on each member, of the stripe of `at` and of all later ones; `None` at the end of the set.
    pub(super) fn used_from(&self, at: SetLba) -> Option<MemberLba> {
        (at.0 < self.capacity().0).then(|| MemberLba(at.0 / self.full_stripe().0 * self.chunk.0))
    }
    /// The sector, on each member, after the last stripe that begins before `at`.
    pub(super) fn used_until(&self, at: SetLba) -> MemberLba {
        MemberLba(at.0.div_ceil(self.full_stripe().0).min(self.stripes) * self.chunk.0)
    }
    /// The end of the stripes that are before `limit` on each member.
    pub(super) fn ends_before(&self, limit: MemberLba) -> SetLba {
        SetLba((limit.0 / self.chunk.0).min(self.stripes) * self.full_stripe().0)
    }
    /// The start of the stripes that are not before `limit` on each member.
    pub(super) fn begins_from(&self, limit: MemberLba) -> SetLba {
        SetLba(limit.0.div_ceil(self.chunk.0).min(self.stripes) * self.full_stripe().0)
    }

    /// The arrangement of one stripe: cheaper than asking the geometry several times.
    #[must_use]
    pub fn row(&self, stripe: StripeIndex) -> Row<'_> {
        assert!(stripe.0 < self.stripes, "{stripe:?} is after the last of {} stripes", self.stripes);
        let phase = usize::try_from(self.period.divide(stripe.0).1).expect("a remainder by the members");
        Row { parity: self, start: phase * usize::from(self.members) }
    }
    /// Slot of a data column.
    #[must_use]
    pub fn slot_of(&self, stripe: StripeIndex, column: u16) -> Slot {
        self.row(stripe).slot_of(column)
    }
    /// Slot of P.
    #[must_use]
    pub fn p_slot(&self, stripe: StripeIndex) -> Slot {
        self.row(stripe).p_slot()
    }
    /// Slot of Q; `None` for levels 4 and 5.
    #[must_use]
    pub fn q_slot(&self, stripe: StripeIndex) -> Option<Slot> {
        self.row(stripe).q_slot()
    }
    /// The content of a member.
    #[must_use]
    pub fn role_of(&self, stripe: StripeIndex, slot: Slot) -> StripeRole {
        self.row(stripe).role_of(slot)
    }
    /// Exponent of the generator for a data column in Q. Without meaning for levels 4 and 5.
    #[must_use]
    pub fn coefficient(&self, stripe: StripeIndex, column: u16) -> u8 {
        self.row(stripe).coefficient(column)
    }

    /// Split the extent of `len` from `at` into pieces in which every row has the same columns, each with at most
    /// `rows_max` rows: at most three for each stripe before that limit, one if the extent lies in one chunk.
    #[must_use]
    pub fn split(&self, at: SetLba, len: Sectors, rows_max: Sectors) -> Split {
        assert!(
            at.0 <= self.capacity().0 && len.0 <= self.capacity().0 - at.0,
            "{len} from {at:?} are outside a parity set of {}",
            self.capacity()
        );
        Split::new(self.shift, self.data_columns, at, len, rows_max)
    }
}

/// The arrangement of one stripe.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    parity: &'a Parity,
    /// Its start in the tables.
    start: usize,
}

impl Row<'_> {
    /// Slot of a data column.
    #[must_use]
    pub fn slot_of(&self, column: u16) -> Slot {
        assert!(column < self.parity.data_columns);
        Slot(u16::from(self.parity.slots[self.start + usize::from(column)]))
    }
    /// Slot of P.
    #[must_use]
    pub fn p_slot(&self) -> Slot {
        Slot(u16::from(self.parity.slots[self.start + usize::from(self.parity.data_columns)]))
    }
    /// Slot of Q; `None` for levels 4 and 5.
    #[must_use]
    pub fn q_slot(&self) -> Option<Slot> {
        let behind_p = self.start + usize::from(self.parity.data_columns) + 1;
        (self.parity.parities() == 2).then(|| Slot(u16::from(self.parity.slots[behind_p])))
    }
    /// The content of a member.
    #[must_use]
    pub fn role_of(&self, slot: Slot) -> StripeRole {
        assert!(slot.0 < self.parity.members);
        match self.parity.roles[self.start + slot.index()] {
            ROLE_P => StripeRole::P,
            ROLE_Q => StripeRole::Q,
            column => StripeRole::Data(u16::from(column)),
        }
    }
    /// Exponent of the generator for a data column in Q. Without meaning for levels 4 and 5.
    #[must_use]
    pub fn coefficient(&self, column: u16) -> u8 {
        assert!(column < self.parity.data_columns);
        self.parity.weights[self.start + usize::from(column)]
    }
}
