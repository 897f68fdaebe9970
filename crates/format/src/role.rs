//! The role of each device of a set: the role table.

use openraid_units::Slot;

/// The most entries in a role table: the room of a 4096-byte superblock after its 256-byte header.
pub const ROLES_MAX: usize = (4096 - 256) / 2;

/// The role of a device in its set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It holds, or is being given, the data of this slot.
    Active(Slot),
    /// It waits for a slot.
    Spare,
    /// It failed; its content is stale.
    Faulty,
    /// It is the set's journal.
    Journal,
}

impl Role {
    const SPARE: u16 = 0xffff;
    const FAULTY: u16 = 0xfffe;
    const JOURNAL: u16 = 0xfffd;

    /// The role a 16-bit entry stands for. Numbers that no set can have as a slot are still slots here; bounds
    /// are checked against the set's member count by [`crate::Superblock::decode`].
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            Self::SPARE => Self::Spare,
            Self::FAULTY => Self::Faulty,
            Self::JOURNAL => Self::Journal,
            slot => Self::Active(Slot(slot)),
        }
    }
    /// The entry that stands for this role.
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleTable {
    codes: [u16; ROLES_MAX],
    len: usize,
}

impl RoleTable {
    /// A table of `len` entries that are all [`Role::Spare`], which is md's mark for an unused number.
    ///
    /// # Panics
    /// `len` above [`ROLES_MAX`].
    #[must_use]
    pub fn new(len: usize) -> Self {
        assert!(len <= ROLES_MAX, "a role table has at most {ROLES_MAX} entries");
        let mut codes = [0; ROLES_MAX];
        codes[..len].fill(Role::SPARE);
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
    /// Role of a device number; [`Role::Spare`] for a number beyond the table, as md has it.
    #[must_use]
    pub fn get(&self, dev_number: u32) -> Role {
        let code = usize::try_from(dev_number).ok().and_then(|at| self.codes[..self.len].get(at));
        code.map_or(Role::Spare, |&code| Role::from_code(code))
    }
    /// Set the role of a device number.
    ///
    /// # Panics
    /// A number beyond the table.
    pub fn set(&mut self, dev_number: usize, role: Role) {
        assert!(dev_number < self.len, "device number {dev_number} is beyond the role table");
        self.codes[dev_number] = role.code();
    }
    /// All roles in the order of device numbers.
    pub fn iter(&self) -> impl Iterator<Item = Role> + '_ {
        self.codes[..self.len].iter().map(|&code| Role::from_code(code))
    }
}
