//! The layouts of RAID 4, 5 and 6: the places of P, Q and the data columns in each stripe.
//!
//! All fourteen result from three choices. P moves *left* (from the last slot down), *right* (from slot 0 up) or not at
//! all. Q follows P, precedes it, or has the last slot for itself (the `-6` layouts: a RAID 5 with an added Q, so P
//! moves over the other slots only). The data columns begin *after the parity* and wrap around (symmetric), or are in
//! the order of slots, skipping the parity (asymmetric).
//!
//! The weight of a column in Q is independent of that. md assigns the exponents in the order of slots, beginning after
//! Q and without P; that equals the order of columns only if these begin after Q too. The DDF layouts use the slot's
//! own number as exponent, as if the parity slots were data of zeroes.

use super::Level;
use core::fmt;

/// A layout of RAID 5 or 6, with md's number. RAID 4 is [`Rotation::ParityLast`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Rotation {
    /// P walks left, columns in the order of slots.
    LeftAsymmetric = 0,
    /// P walks right, columns in the order of slots.
    RightAsymmetric = 1,
    /// P walks left, columns begin after the parity: md's default.
    LeftSymmetric = 2,
    /// P walks right, columns begin after the parity.
    RightSymmetric = 3,
    /// P (and Q) on the first slots.
    ParityFirst = 4,
    /// P (and Q) on the last slots.
    ParityLast = 5,
    /// RAID 6 of DDF: right asymmetric with DDF's weights.
    DdfZeroRestart = 8,
    /// RAID 6 of DDF: left asymmetric, one stripe ahead, with DDF's weights.
    DdfNRestart = 9,
    /// RAID 6 of DDF: left symmetric with Q before P, with DDF's weights.
    DdfNContinue = 10,
    /// RAID 5 left asymmetric with Q on the last slot.
    LeftAsymmetric6 = 16,
    /// RAID 5 right asymmetric with Q on the last slot.
    RightAsymmetric6 = 17,
    /// RAID 5 left symmetric with Q on the last slot.
    LeftSymmetric6 = 18,
    /// RAID 5 right symmetric with Q on the last slot.
    RightSymmetric6 = 19,
    /// P on the first slot, Q on the last.
    ParityFirst6 = 20,
}

/// How P moves from stripe to stripe.
enum Walk {
    Left,
    Right,
    First,
    Last,
}

impl Rotation {
    /// Every layout, in the order of md's numbers.
    pub const ALL: [Self; 14] = [
        Self::LeftAsymmetric,
        Self::RightAsymmetric,
        Self::LeftSymmetric,
        Self::RightSymmetric,
        Self::ParityFirst,
        Self::ParityLast,
        Self::DdfZeroRestart,
        Self::DdfNRestart,
        Self::DdfNContinue,
        Self::LeftAsymmetric6,
        Self::RightAsymmetric6,
        Self::LeftSymmetric6,
        Self::RightSymmetric6,
        Self::ParityFirst6,
    ];

    /// The layout with this md number on this level; `None` if there is none.
    #[must_use]
    pub fn from_md(level: Level, layout: u32) -> Option<Self> {
        match level {
            Level::Raid4 => Some(Self::ParityLast), // md does not look at the number
            Level::Raid5 | Level::Raid6 => {
                Self::ALL.into_iter().find(|r| r.md_number() == layout && (level == Level::Raid6 || !r.only_raid6()))
            }
            _ => None,
        }
    }
    /// md's number.
    #[must_use]
    pub const fn md_number(self) -> u32 {
        self as u32
    }
    /// mdadm's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftAsymmetric => "left-asymmetric",
            Self::RightAsymmetric => "right-asymmetric",
            Self::LeftSymmetric => "left-symmetric",
            Self::RightSymmetric => "right-symmetric",
            Self::ParityFirst => "parity-first",
            Self::ParityLast => "parity-last",
            Self::DdfZeroRestart => "ddf-zero-restart",
            Self::DdfNRestart => "ddf-N-restart",
            Self::DdfNContinue => "ddf-N-continue",
            Self::LeftAsymmetric6 => "left-asymmetric-6",
            Self::RightAsymmetric6 => "right-asymmetric-6",
            Self::LeftSymmetric6 => "left-symmetric-6",
            Self::RightSymmetric6 => "right-symmetric-6",
            Self::ParityFirst6 => "parity-first-6",
        }
    }
    /// Does the layout exist on RAID 6 only?
    #[must_use]
    pub const fn only_raid6(self) -> bool {
        self.md_number() > Self::ParityLast.md_number()
    }

    const fn walk(self) -> Walk {
        match self {
            Self::LeftAsymmetric
            | Self::LeftSymmetric
            | Self::DdfNRestart
            | Self::DdfNContinue
            | Self::LeftAsymmetric6
            | Self::LeftSymmetric6 => Walk::Left,
            Self::RightAsymmetric
            | Self::RightSymmetric
            | Self::DdfZeroRestart
            | Self::RightAsymmetric6
            | Self::RightSymmetric6 => Walk::Right,
            Self::ParityFirst | Self::ParityFirst6 => Walk::First,
            Self::ParityLast => Walk::Last,
        }
    }
    /// Q has the last slot for itself, and P moves over the others.
    const fn q_apart(self) -> bool {
        self.md_number() >= Self::LeftAsymmetric6.md_number()
    }
    const fn symmetric(self) -> bool {
        matches!(
            self,
            Self::LeftSymmetric
                | Self::RightSymmetric
                | Self::DdfNContinue
                | Self::LeftSymmetric6
                | Self::RightSymmetric6
        )
    }
    const fn weights_of_ddf(self) -> bool {
        matches!(self, Self::DdfZeroRestart | Self::DdfNRestart | Self::DdfNContinue)
    }
    /// Number of slots over which P moves.
    const fn ring(self, members: u16) -> u16 {
        if self.q_apart() {
            members - 1
        } else {
            members
        }
    }
    /// Stripes after which the pattern repeats.
    pub(super) const fn period(self, members: u16) -> u16 {
        match self.walk() {
            Walk::Left | Walk::Right => self.ring(members),
            Walk::First | Walk::Last => 1,
        }
    }
    /// Slots of P and Q in stripe number `phase` of a period, and the slots of the data columns in order.
    /// Without `with_q` the second is `None`.
    pub(super) fn place(self, members: u16, with_q: bool, phase: u16) -> Placement {
        assert!(phase < self.period(members) && (with_q || !self.only_raid6()));
        let ring = self.ring(members);
        let p = match self.walk() {
            Walk::Left if matches!(self, Self::DdfNRestart) => ring - 1 - (phase + 1) % ring,
            Walk::Left => ring - 1 - phase,
            Walk::Right => phase,
            Walk::First => 0,
            Walk::Last if with_q => ring - 2,
            Walk::Last => ring - 1,
        };
        let q = with_q.then(|| match self {
            _ if self.q_apart() => members - 1,
            Self::DdfNContinue => (p + members - 1) % members,
            _ => (p + 1) % members,
        });
        // Both orders skip P and Q, so they may begin on one.
        let first = if self.symmetric() { p } else { 0 };
        let weights_from = if self.weights_of_ddf() { 0 } else { q.unwrap_or(0) };
        Placement { members, ring, p, q, first, weights_from, count_parity: self.weights_of_ddf() }
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One stripe of a layout.
pub(super) struct Placement {
    members: u16,
    ring: u16,
    /// Slot of P.
    pub p: u16,
    /// Slot of Q.
    pub q: Option<u16>,
    first: u16,
    weights_from: u16,
    count_parity: bool,
}

impl Placement {
    fn is_parity(&self, slot: u16) -> bool {
        slot == self.p || Some(slot) == self.q
    }
    /// The slots of the data columns, in the order of the array.
    pub fn columns(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.ring).map(|step| (self.first + step) % self.ring).filter(|slot| !self.is_parity(*slot))
    }
    /// The exponent of the generator for the data of `slot` in Q.
    pub fn weight(&self, slot: u16) -> u16 {
        let before = (slot + self.members - self.weights_from) % self.members;
        let round = (0..before).map(|step| (self.weights_from + step) % self.members);
        let skipped = round.filter(|slot| self.is_parity(*slot)).count();
        match self.count_parity {
            true => before,
            false => before - u16::try_from(skipped).expect("at most two"),
        }
    }
}
