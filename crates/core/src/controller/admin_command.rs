//! The administrator's commands.

use crate::array::assemble::Assembly;
use crate::array::new_array::NewMember;
use crate::array::used_size::UsedSize;
use crate::check_results::ScrubMode;
use crate::events::DriveInfo;
use crate::journal::found_journal::FoundJournal;
use crate::settings::Policy;
use alloc::vec::Vec;
use openraid_format::{SetName, ShapeFields, Superblock, Uuid};
use openraid_units::{ArrayId, DriveId, Sectors, Slot};

/// A command of the administrator.
#[allow(clippy::large_enum_variant)] // commands are rare and moved a few times
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminCommand {
    /// A drive is there.
    AttachDrive {
        /// The number the driver gives it.
        drive: DriveId,
        /// What it is.
        info: DriveInfo,
    },
    /// A drive that no set uses is gone, its number is free again.
    DetachDrive {
        /// Number of the drive.
        drive: DriveId,
    },
    /// Start a set that [`crate::array::assemble`] or [`crate::array::new_array`] has planned. Answer:
    /// [`AdminOutcome::Started`](crate::admin::AdminOutcome::Started) when the set takes requests.
    StartSet(Assembly),
    /// Start the outer stripe of a nested array (50, 60) over sets that run.
    StartStriped {
        /// The spans in order of their role in the outer array.
        spans: Vec<ArrayId>,
        /// The outer superblock of each span, in the same order.
        superblocks: Vec<Superblock>,
    },
    /// Start a drive as it is, without metadata.
    StartPassthrough {
        /// Number of the drive.
        drive: DriveId,
    },
    /// Stop an array: finish what runs, flush, mark clean. Answer when done.
    Stop {
        /// Number of the array.
        array: ArrayId,
    },
    /// Fail a member.
    Fail {
        /// Number of the array.
        array: ArrayId,
        /// Number of the member's drive.
        drive: DriveId,
        /// Also if rows that are not in sync yet need it.
        unsynced: bool,
    },
    /// A member that was out of reach answers again, and has everything that it acknowledged. If its array failed for
    /// lack of such members, it works again when enough of them are back.
    Return {
        /// Number of the array.
        array: ArrayId,
        /// Number of the member's drive.
        drive: DriveId,
    },
    /// A drive is gone. The set or the journal that uses it goes on without it, as after a command that the drive
    /// answered with [`DriveError::Gone`](crate::events::DriveError::Gone). Said twice, it changes nothing.
    Lose {
        /// Number of the drive.
        drive: DriveId,
    },
    /// Take a faulty member or a spare out of the array.
    Remove {
        /// Number of the array.
        array: ArrayId,
        /// Number of the member's drive.
        drive: DriveId,
    },
    /// Add a device: it becomes a spare and takes over a missing slot by itself.
    Add {
        /// Number of the array.
        array: ArrayId,
        /// The device.
        member: NewMember,
    },
    /// Copy a working member to a spare, then put the spare in its place.
    Replace {
        /// Number of the array.
        array: ArrayId,
        /// The member that leaves.
        slot: Slot,
        /// The spare that takes its place; any spare if `None`.
        with: Option<DriveId>,
    },
    /// Read everything and compare.
    Scrub {
        /// Number of the array.
        array: ArrayId,
        /// What may be changed.
        mode: ScrubMode,
    },
    /// Hold rebuild, resync and scrub of an array where they are.
    Pause {
        /// Number of the array.
        array: ArrayId,
    },
    /// Go on after [`AdminCommand::Pause`].
    Resume {
        /// Number of the array.
        array: ArrayId,
    },
    /// End a running check or repair.
    StopScrub {
        /// Number of the array.
        array: ArrayId,
    },
    /// Take a journal into use.
    AttachJournal(FoundJournal),
    /// Detach the journal.
    DetachJournal,
    /// A device joins a journal that runs with one of two: it is brought up to date, and works then.
    JoinJournal {
        /// The drive, attached before.
        drive: DriveId,
        /// The highest generation that its superblock tells of, if it has one.
        generation: u64,
        /// The highest epoch.
        epoch: u64,
    },
    /// Release the journal's device that was dropped.
    ReleaseJournalDevice,
    /// Discard the journal's data for an array that does not run.
    DiscardJournalled {
        /// Which: identity of its set.
        set_uuid: Uuid,
    },
    /// Change the settings of an array.
    SetPolicy {
        /// Number of the array.
        array: ArrayId,
        /// The new settings.
        policy: Policy,
    },
    /// Reset the adaptive policy of an array: it follows the settings until it has measured the load again.
    ResetAdaptive {
        /// Number of the array.
        array: ArrayId,
    },
    /// Turn the change of an array's shape around: what has moved moves back. Answered at once; the notice comes when the
    /// superblocks say so.
    CancelReshape {
        /// Number of the array.
        array: ArrayId,
    },
    /// Let hosts have no more than the first part of an array; nothing of the rest is lost, and a restart forgets it. Answer when
    /// no request is in work beyond it.
    LimitCapacity {
        /// Number of the array.
        array: ArrayId,
        /// The sectors that hosts have; all if there is none.
        to: Option<Sectors>,
    },
    /// Use this size of each member. Answer when the superblocks say so; then a resync makes parity or copies of a new part agree.
    /// Hosts must have no more already than the part that is left of a smaller array.
    Resize {
        /// Number of the array.
        array: ArrayId,
        /// Sectors of each member.
        to: UsedSize,
    },
    /// Give a linear array this drive at its end. Answer when hosts have its room.
    Append {
        /// Number of the array.
        array: ArrayId,
        /// The drive, which is no member yet.
        member: NewMember,
    },
    /// Change the shape of an array to this one. Spares become members. Answer when the superblocks say so; then the
    /// data moves.
    Reshape {
        /// Number of the array.
        array: ArrayId,
        /// The shape after the change.
        new: ShapeFields,
    },
    /// Give a set another name, in the superblocks of all members.
    Rename {
        /// Number of the array.
        array: ArrayId,
        /// The new name.
        name: SetName,
    },
    /// Requests until now came from the driver, which read the content of an array. Requests of hosts, and their hits in
    /// the cache, are counted from here.
    CountHosts {
        /// Number of the array.
        array: ArrayId,
    },
}
