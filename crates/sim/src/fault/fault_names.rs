//! The faults of runs by name: the rows by which the table of many runs counts them.
//!
//! A run counts a fault when it begins; the effect on a drive is in `drive/drive_faults.rs`.

use std::fmt;

use super::enum_words::worded;

worded! {
    /// A fault in a run, as a line of the table.
    Fault
    /// No fault.
    None = "none";
    /// Power cut of all parts while hosts worked.
    Cut = "power cut";
    /// Power cut of the host and some drives.
    CutInPart = "power cut of some drives";
    /// Power cut while the array was being assembled.
    CutInAssembly = "power cut in assembly";
    /// Power cut while a member was being filled.
    CutInRebuild = "power cut in rebuild";
    /// Power cut in a resync.
    CutInResync = "power cut in resync";
    /// Power cut in a check or repair.
    CutInScrub = "power cut in scrub";
    /// Power cut while superblocks, bitmap pages or logs of members were being written.
    CutInMetadata = "power cut in metadata";
    /// The process was killed.
    Kill = "killed";
    /// A member failed by order.
    Failed = "member failed by order";
    /// A drive was pulled.
    Pulled = "drive pulled";
    /// A drive lost its power alone.
    Vanished = "drive lost its power";
    /// A drive refused writes.
    ReadOnly = "drive takes no writes";
    /// A drive stopped answering for good.
    Hanging = "drive hangs";
    /// Flushes failed, and the writes that they covered were dropped.
    FlushFailed = "flush fails";
    /// A drive returned stale.
    Stale = "drive back, stale";
    /// A drive answered late, or not at all for a while.
    Late = "late answers";
    /// Latent sector errors.
    Latent = "latent sector errors";
    /// Sectors that cannot be read or written.
    Dead = "dead sectors";
    /// Flipped bits in data.
    Flip = "bit flips in data";
    /// Members became full.
    NoRoom = "members full";
    /// The storage of full members kept writes for a time.
    RoomWait = "full storage keeps writes";
    /// A member of an earlier moment was there at a start.
    OlderMember = "member of an earlier moment";
    /// A journal of an earlier moment was there at a start.
    OlderJournal = "journal of an earlier moment";
    /// The superblocks at a start were those of an older version.
    OlderVersion = "superblocks of an older version";
    /// A server read from members that it did not write.
    StartReading = "start for reading only";
    /// The data of a member was copied in part.
    HalfCopied = "member copied in part";
    /// A drive was given to two arrays.
    SpareShared = "spare given to two arrays";
    /// Flipped bits in a superblock.
    FlipSuperblock = "bit flips in superblock";
    /// A write that was lost.
    LostWrite = "lost write";
    /// A write that was written to another place.
    Misdirected = "misdirected write";
    /// A read that returned the data of another place.
    Misread = "misdirected read";
    /// A read with a bit that flipped on the way.
    FlipOnTheWay = "bit flips on the way";
    /// A drive refused one write.
    Refused = "write refused once";
    /// A drive refused discards.
    DiscardRefused = "discards refused";
    /// The connection to a drive was away, and commands were repeated.
    Reconnected = "drive reconnected";
    /// A start without some drives.
    StartWithout = "start without some drives";
    /// A check of a degraded array that can still compare.
    CheckDegraded = "check of a degraded array";
    /// A device of the journal joined again.
    JournalJoined = "journal device joins";
    /// Power cut of all parts, and a member was lost for good.
    CutAndLoss = "power cut with a member";
    /// Power cut while a journal was replayed.
    CutInReplay = "power cut in replay";
    /// A device of the journal failed.
    JournalLost = "journal device lost";
    /// A lost journal returned.
    JournalBack = "journal back";
    /// A sector of a journal was damaged.
    JournalHurt = "damaged journal";
    /// Power cut while a device of the journal was brought up to date.
    CutInMirrorResync = "power cut in journal resync";
    /// A change of shape was begun.
    Reshaped = "change of shape";
    /// A change of shape turned around.
    ReshapeCancelled = "change of shape cancelled";
    /// Power cut in a change of shape.
    CutInReshape = "power cut in change of shape";
}
