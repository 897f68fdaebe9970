//! Superblocks: their content, and writing it in two waves.
//!
//! A change of state requests a new generation. Generations are written one after the other; requests that arrive while
//! one is being written become one generation. The members are written in two waves, the second after the first is
//! durable, so that a power cut cannot tear all superblocks at once. All members get the same content, which is fixed
//! when the first wave begins.
//!
//! A power cut between the waves leaves members that are one event behind. These are brought up first, by a generation
//! that does not raise `events`. Otherwise a second cut, in the next generation, would leave them two events behind,
//! which means that they missed writes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use openraid_format::{DeviceRole, FeatureMap, SetName, Superblock};

use super::append_drive::Joining;
use crate::planted::{Flaw, Planted};
use openraid_format::RoleTable;

/// Number of generations after the first that leave out a failed member. That member has at most the events of the
/// others.
const STEPS_FAILED: u8 = 1;
/// `STEPS_FAILED` of an absent member. It may have seen one generation more than the present members: the power was
/// cut in the first wave of that generation.
const STEPS_ABSENT: u8 = 2;

/// The progress of a generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wave {
    /// Nothing is being written.
    Idle,
    /// The bitmap's header, which has the same event count and must not be older.
    Header,
    /// The drive that joins with a slot.
    Joining,
    /// The first half of the members.
    First,
    /// The second half of the members.
    Second,
}

/// The superblocks of a set.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The common part of the superblocks of all members, as it is now.
    pub(super) common: Box<Superblock>,
    /// The same part as it was when the present generation began.
    pub(super) snapshot: Box<Superblock>,
    /// Generations: the last one that was requested, the one that is being written, the last durable one.
    pub(super) wanted: u64,
    pub(super) writing: u64,
    pub(super) durable: u64,
    pub(super) wave: Wave,
    /// Number of outstanding member writes of this wave.
    pub(super) pending: u32,
    /// The members from this one on are written in the second wave.
    pub(super) second_from: usize,
    /// The generation that records the last failure of a member.
    pub(super) failure: u64,
    /// Number of generations that come before the next one. Each of them raises `events` by one.
    steps: u8,
    /// The next generation brings up members that are one event behind. It has these marks.
    catch_up: Option<FeatureMap>,
    /// Marks that only the superblocks that are being written have.
    marks: FeatureMap,
    /// Numbers of absent devices that are to be recorded as faulty.
    absent: Vec<u32>,
    /// A drive that joins with a slot.
    pub(super) joining: Option<Joining>,
    pub(super) planted: Planted,
}

impl Metadata {
    pub(crate) fn new(common: Superblock) -> Self {
        Self {
            snapshot: Box::new(common.clone()),
            common: Box::new(common),
            wanted: 0,
            writing: 0,
            durable: 0,
            wave: Wave::Idle,
            pending: 0,
            second_from: 0,
            failure: 0,
            steps: 0,
            catch_up: None,
            marks: FeatureMap(0),
            absent: Vec::new(),
            joining: None,
            planted: Planted::default(),
        }
    }

    /// The common part of the superblocks of all members, as it is now.
    pub(crate) fn common(&self) -> &Superblock {
        &self.common
    }

    /// The last generation that was asked for.
    pub(crate) const fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Marks that only the superblocks that are being written have.
    pub(crate) const fn marks(&self) -> FeatureMap {
        self.marks
    }

    /// The common part of the superblocks that are being written.
    pub(crate) fn being_written(&self) -> Option<&Superblock> {
        (self.wave != Wave::Idle).then_some(&*self.snapshot)
    }

    /// Is the superblock of a drive that joins the only one that is being written?
    pub(super) fn is_joining(&self) -> bool {
        self.wave == Wave::Joining
    }

    /// Make room in the role table for the device with this number.
    pub(crate) fn grow_roles(&mut self, number: u32) {
        self.common.roles = grow_roles(&self.common.roles, number);
    }

    /// Set the name of the set, for the next generation; false if it has that name already.
    pub(crate) fn rename(&mut self, name: SetName) -> bool {
        let is_new = self.common.set_name != name;
        if is_new {
            self.common.set_name = name;
            self.request();
        }
        is_new
    }

    /// The last generation that is durable.
    #[inline]
    pub(crate) const fn durable(&self) -> u64 {
        self.durable
    }

    /// Is the first generation durable, or was none requested?
    pub(crate) fn is_begun(&self) -> bool {
        self.durable >= self.wanted.min(1)
    }

    /// Is everything that was requested durable, and nothing being written?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.durable == self.wanted && self.wave == Wave::Idle
    }

    /// The next generation records a failure or a range that must not be trusted. Work that depends on the record waits
    /// for this generation.
    pub(crate) fn request_distrust(&mut self) {
        self.failure = self.request();
    }

    /// For tests: the last failure is in this generation.
    #[cfg(test)]
    pub(crate) fn set_failure(&mut self, generation: u64) {
        self.failure = generation;
    }

    /// For tests: this generation, which was requested, is durable.
    #[cfg(test)]
    pub(crate) fn make_durable(&mut self, generation: u64) {
        assert!(self.wanted >= generation && generation > self.durable);
        self.durable = generation;
    }

    /// Some members lack one event: bring them up to date before anything else is recorded. Their superblocks have these marks,
    /// because the others would lose them before these know what they mean.
    pub(crate) fn request_catch_up(&mut self, marks: FeatureMap) {
        assert_eq!(self.wanted, 0, "the first generation brings members up");
        self.catch_up = Some(marks);
        self.wanted = 1;
    }

    /// The state has changed and must be written. Returns the generation that records it.
    pub(crate) fn request(&mut self) -> u64 {
        let next = self.writing + 1 + u64::from(self.catch_up.is_some()) + u64::from(self.steps);
        self.wanted = self.wanted.max(next);
        self.wanted
    }

    /// Begin the next generation. Returns the number by which it raises `events`.
    pub(crate) fn begin(&mut self) -> u64 {
        self.wave = Wave::Header;
        let catch_up = self.catch_up.take();
        self.marks = catch_up.unwrap_or(FeatureMap(0));
        if catch_up.is_some() {
            self.writing += 1;
            return u64::from(self.planted.has(Flaw::CatchUpCounted));
        }
        if self.steps > 0 {
            self.steps -= 1;
            self.writing += 1;
            return 1;
        }
        self.writing = self.wanted;
        1
    }

    /// A member has failed. A member that misses this generation must be at least two events behind, because md takes
    /// members that are one event behind as up to date. So two generations are written, one after the other: a cut
    /// between them leaves no good member two events behind.
    pub(crate) fn request_failure(&mut self) -> u64 {
        self.steps = self.steps.max(STEPS_FAILED - u8::from(self.planted.has(Flaw::FailedOneBehind)));
        self.failure = self.request();
        self.failure
    }

    /// The set works again after it had failed. The generation that was being written then may be on some members only,
    /// so members are brought up first.
    pub(crate) fn go_on(&mut self) {
        assert_eq!(self.pending, 0, "no superblock is being written");
        self.wave = Wave::Idle;
        self.catch_up = Some(FeatureMap(0));
        self.request_distrust();
    }

    /// Devices that superblocks call members are absent. The next record leaves them at least two events behind, so
    /// that they are not taken for members when they return. Only the last generation marks them as faulty. If the
    /// power fails before that one, the next start sees that they are absent and counts again.
    pub(crate) fn note_absence(&mut self, absent: Vec<u32>) {
        self.absent = absent;
        self.steps = self.steps.max(STEPS_ABSENT - u8::from(self.planted.has(Flaw::AbsentTwoBehind)));
    }

    /// If the generation that has begun is the last one for an absence, its roles say so.
    pub(crate) fn record_absence(&mut self) {
        if self.steps > 0 || self.writing < self.wanted {
            return;
        }
        for number in self.absent.drain(..) {
            self.common.roles.set(number as usize, DeviceRole::Faulty);
        }
    }

    /// Is an absence not recorded yet?
    pub(crate) fn steps(&self) -> bool {
        self.steps > 0
    }

    /// Is every requested generation durable?
    pub(crate) fn is_all_durable(&self) -> bool {
        self.wanted <= self.durable
    }

    /// Is the last failure of a member durable on the others?
    pub(crate) fn failures_recorded(&self) -> bool {
        self.failure <= self.durable
    }

    /// Is there something to write, and nothing being written?
    pub(crate) fn may_begin(&self) -> bool {
        self.wave == Wave::Idle && self.wanted > self.writing
    }
}

/// Its state, for a list of all work in progress.
impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wanted, {} writing, {} durable, ", self.wanted, self.writing, self.durable)?;
        write!(f, "failure in {}, {:?}, {} pending", self.failure, self.wave, self.pending)
    }
}

/// A role table with room for `number`.
pub(crate) fn grow_roles(roles: &RoleTable, number: u32) -> RoleTable {
    let need = number as usize + 1;
    if need <= roles.len() {
        return roles.clone();
    }
    let mut grown = RoleTable::new(openraid_format::role_table_len(need));
    for (index, role) in roles.iter().enumerate() {
        grown.set(index, role);
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::fixture::metadata;

    /// Write all requested generations. Returns for each the number by which it raises `events`.
    fn write(metadata: &mut Metadata) -> Vec<u64> {
        let mut raised = Vec::new();
        while metadata.may_begin() {
            raised.push(metadata.begin());
            (metadata.wave, metadata.durable) = (Wave::Idle, metadata.writing);
        }
        raised
    }

    #[test]
    fn changes_that_come_while_a_generation_is_written_become_one() {
        let mut metadata = metadata();
        assert_eq!(metadata.request(), 1);
        assert_eq!(metadata.begin(), 1);
        assert!(!metadata.may_begin(), "one is being written");
        assert_eq!((metadata.request(), metadata.request()), (2, 2));
        (metadata.wave, metadata.durable) = (Wave::Idle, 1);
        assert_eq!(write(&mut metadata), [1]);
        assert!(metadata.is_all_durable());
    }

    #[test]
    fn a_member_that_failed_is_two_events_short_and_an_absent_one_three() {
        let mut failed = metadata();
        assert_eq!(failed.request_failure(), 2);
        assert!(!failed.failures_recorded());
        assert_eq!(write(&mut failed), [1, 1]);
        assert!(failed.failures_recorded());
        let mut absent = metadata();
        absent.note_absence(alloc::vec![1]);
        absent.request();
        assert_eq!(write(&mut absent), [1, 1, 1]);
        assert!(!absent.steps());
    }

    #[test]
    fn members_that_lack_an_event_are_brought_up_without_another_one() {
        let mut metadata = metadata();
        metadata.request_catch_up(FeatureMap(0));
        assert_eq!(metadata.request(), 2, "what is asked for comes after it");
        assert_eq!(write(&mut metadata), [0, 1]);
    }
}
