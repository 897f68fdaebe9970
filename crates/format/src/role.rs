//! The role table: the role of each device of a set.

use openraid_units::Slot;

/// Maximum number of entries in a role table: a 4096-byte superblock has this room after its 256-byte header.
pub const ROLES_MAX: usize = (4096 - 256) / 2;

/// The role of a device in its set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceRole {
    /// The device holds the data of this slot, or is being rebuilt with them.
    Active(Slot),
    /// The device is a spare.
    Spare,
    /// The device failed; its content is stale.
    Faulty,
    /// The device is the set's journal.
    Journal,
}

impl DeviceRole {
    const SPARE: u16 = 0xffff;
    const FAULTY: u16 = 0xfffe;
    const JOURNAL: u16 = 0xfffd;

    /// The role for a 16-bit entry. A number that is too high for any slot is still decoded as a slot;
    /// [`crate::Superblock::decode`] checks it against the member count of the set.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            Self::SPARE => Self::Spare,
            Self::FAULTY => Self::Faulty,
            Self::JOURNAL => Self::Journal,
            slot => Self::Active(Slot(slot)),
        }
    }
    /// The entry for this role.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Spare => Self::SPARE,
            Self::Faulty => Self::FAULTY,
            Self::Journal => Self::JOURNAL,
            Self::Active(slot) => slot.0,
        }
    }
}

/// Roles by device number: entry `n` belongs to the member with `dev_number == n` in its superblock.
#[derive(Clone, PartialEq, Eq)]
pub struct RoleTable {
    codes: [u16; ROLES_MAX],
    len: usize,
}

impl core::fmt::Debug for RoleTable {
    /// The entries in use only.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl RoleTable {
    /// A table of `len` entries with the role [`DeviceRole::Spare`], which md uses for unused numbers.
    ///
    /// # Panics
    /// `len` is above [`ROLES_MAX`].
    #[must_use]
    pub fn new(len: usize) -> Self {
        assert!(len <= ROLES_MAX, "a role table has at most {ROLES_MAX} entries");
        let mut codes = [0; ROLES_MAX];
        codes[..len].fill(DeviceRole::SPARE);
        Self { codes, len }
    }
    /// Number of entries, md's `max_dev`.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }
    /// Has the table no entry?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Role of a device number. As in md, a number past the end of the table has the role [`DeviceRole::Spare`].
    #[must_use]
    pub fn get(&self, dev_number: u32) -> DeviceRole {
        let code = usize::try_from(dev_number).ok().and_then(|at| self.codes[..self.len].get(at));
        code.map_or(DeviceRole::Spare, |&code| DeviceRole::from_code(code))
    }
    /// Sets the role of a device number.
    ///
    /// # Panics
    /// The number is past the end of the table.
    pub fn set(&mut self, dev_number: usize, role: DeviceRole) {
        assert!(dev_number < self.len, "device number {dev_number} is beyond the role table");
        self.codes[dev_number] = role.code();
    }
    /// All roles in the order of device numbers.
    pub fn iter(&self) -> impl Iterator<Item = DeviceRole> + '_ {
        self.codes[..self.len].iter().map(|&code| DeviceRole::from_code(code))
    }
}
