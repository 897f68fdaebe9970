//! The names of all events and alarms, one to a line: the level follows from the name, and so does the message of openraid's Redfish
//! registry. The page docs/events.md is written from this table.

use crate::alarm::Severity;

macro_rules! events {
    ($($name:ident $level:ident $about:literal)*) => {
        /// The name of an event or alarm: mdadm's if mdadm has one.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum EventName {
            $(#[doc = $about] $name,)*
        }

        impl EventName {
            /// All names, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word in documents.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Its level, if the state has no other one, as [`EventName::about`] says.
            #[must_use]
            pub const fn level(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$level,)*
                }
            }

            /// Its meaning, in a sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$name => $about,)*
                }
            }
        }
    };
}

events! {
    AlarmAcknowledged Info "A user has acknowledged an alarm."
    AlarmSummary Info "Several alarms began at once. Only programs of sinks get it."
    ArrayReturned Info "A failed array works again: its members were only out of reach."
    CacheVolatile Warning "The write cache of an array is volatile: writes that were not flushed are lost with the power or the server."
    CapacityLimited Info "An administrator has made an array smaller for hosts, or let hosts have all of it again."
    CertificateExpires Warning "A certificate of the server is not valid, or ends soon. Critical in its last 3 days, and after them."
    Changed Info "A user has changed something, or the change was refused."
    CheckFinished Info "A check or repair has finished."
    CheckStarted Info "A check or repair has begun."
    CheckStopped Warning "A check or repair ended early."
    ConfigurationRead Info "The configuration file was read again."
    ConfigurationRefused Warning "The configuration file, or a new certificate, has mistakes; nothing was changed."
    DegradedArray Warning "An array lacks members. Critical if the loss of one more member loses data."
    DeviceDisappeared Critical "A remembered array is not served."
    DirtyLost Critical "Acknowledged writes could not be written to the members."
    DriveAnswers Info "An idle drive that could not be read can be read again."
    DriveErrorsGrow Warning "A drive counts more bad sectors or errors than when it was first seen (SMART)."
    DriveHot Warning "A drive is too warm."
    DrivePredictiveFailure Critical "A drive reports that it is failing (SMART). A warning if only an attribute is below its threshold."
    DriveShingled Info "A drive is shingled: it is slow at random writes and rebuilds."
    DriveSilent Warning "An idle drive cannot be read."
    DriveSlow Warning "A drive is much slower than the other members."
    DriveWorn Warning "A large part of a drive's rated writes is used. Critical if all of it is."
    ErrorBudget Warning "A member has half of the media errors with which it fails."
    EventsLost Warning "Events could not be written to the log, or not be read from it at a start."
    Fail Critical "A member has failed. The alarm is a warning when the array is optimal again."
    FailSpare Warning "A spare has failed."
    FailedArray Critical "The data of an array cannot be read."
    FlushFailed Critical "A flush failed on a member that the array needs."
    ForcedStart Critical "An array was started by force."
    HealthUnknown Info "The health of a drive, or of all drives, is not known (SMART)."
    HostsAdmitted Critical "Acknowledged writes of an array may be lost after a power cut, and its hosts are served (after-power-cut=admit)."
    HostsRefused Critical "Acknowledged writes of an array may be lost after a crash: hosts are refused until serve --after-loss."
    JournalAway Warning "A device of the journal cannot be used again."
    JournalBack Info "A device of the journal can be used again."
    JournalDegraded Warning "One device of the journal does not work."
    JournalFull Critical "The journal is full of entries that their array cannot take."
    JournalLost Critical "No device of the journal works."
    JournalMirrored Info "Both devices of the journal are up to date again."
    JournalTableFull Warning "The journal's table of arrays is full."
    JournalUnreadable Warning "A part of the journal cannot be read, or a device of it had lost entries."
    LeftOut Warning "An array was started without a member."
    LightFailed Info "The light of a drive's bay could not be set."
    MachineRefused Warning "A virtual machine was refused, or its guest broke a rule."
    MemberDisplaced Critical "A drive that is served is not at its path any more: it was deleted, replaced or unmounted. A warning for a spare."
    MemberReturned Info "A former member was plugged in again and was added."
    MemberStaysOut Warning "A former member has returned and is not added automatically."
    MismatchesFound Warning "The last check has left mismatches."
    NewArray Info "An array was started, or a failed one started again, because its drives are there."
    NoRoom Critical "The storage of a member is full: writes that need room are refused."
    NotProtected Warning "The journal does not protect an array although its policy asks for it."
    NoticesLost Warning "More notices came than could be recorded."
    PatrolFound Warning "A patrol read found places that cannot be read."
    PolicyChanged Info "Settings of an array were changed, by a user or by the adaptive policy."
    RebuildFinished Info "A rebuild has finished."
    RebuildStarted Info "A rebuild has begun."
    RebuildStopped Warning "A rebuild ended early."
    Recovered Info "An array was not clean at its start; it is consistent again."
    RemoteBack Info "The connection to a remote member is back."
    RemoteLost Info "The connection to a remote member is lost."
    ReshapeBegun Info "An array begins to change its shape."
    ReshapeCancelled Info "A change of shape is cancelled: what has moved moves back."
    ReshapeContinued Info "A change of shape that was paused goes on."
    ReshapeFinished Info "An array has its new shape."
    ReshapeHeld Warning "The next step of a change of shape cannot begin."
    ReshapePaused Warning "A change of shape is paused: it stands still until it is resumed."
    ReshapeStill Warning "A change of shape has not moved for ten minutes."
    ResyncFinished Info "A resync has finished."
    ResyncStarted Info "A resync has begun."
    ResyncStopped Warning "A resync ended early."
    RoomAgain Info "There is room on a member again."
    RowCorrected Info "Members that did not match were corrected."
    RowMismatch Warning "Members do not match."
    Schedule Info "A schedule has started, paused or ended a check."
    SectorLost Critical "Sectors of a member cannot be read or restored. The alarm is a warning if the other members have the data."
    SectorRepaired Info "A sector could not be read and was rewritten from redundancy."
    ServerStarted Info "The server has started."
    ServerStopped Info "The server has ended."
    SinkBack Info "A sink accepts alarms again."
    SinkFailed Warning "A sink does not accept alarms."
    SpareActive Info "A spare has become a full member."
    SpareRefused Warning "A spare cannot be used."
    SpareTaken Info "A spare was added to an array."
    SparesMissing Warning "A spare of the configuration file is not in its array."
    StartProblem Warning "Something could not be started as configured. The alarm is critical for the registry, the console, users and tokens."
    StateUnwritable Warning "Alarms, settings, members or marks of arrays cannot be stored. Critical if writes wait for that."
    StoodStill Warning "The server did not run for some time."
    StopFailed Critical "An array could not be stopped."
    TestMessage Info "A test of the sinks."
    Timeout Warning "A drive did not answer in time."
}

impl EventName {
    /// The event with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_found_again() {
        assert!(
            EventName::ALL.windows(2).all(|pair| pair[0].word() < pair[1].word()),
            "in alphabetical order, once each"
        );
        assert!(EventName::ALL.iter().all(|name| EventName::named(name.word()) == Some(*name)));
        assert_eq!(EventName::named("FlushInDoubt"), None);
    }
}
