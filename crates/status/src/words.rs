//! The words of closed sets in the models. Documents have the word; programs compare the value.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }
        impl $name {
            /// Each value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The value with this word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
            /// The word in documents.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// The access of hosts to an array.
    #[derive(Default)]
    AccessWord {
        /// The array is not served, so no access is known.
        #[default]
        Unknown = "",
        /// Reads and writes.
        ReadWrite = "read-write",
        /// Reads; a write is refused.
        ReadOnly = "read-only",
        /// None: the array has no export.
        Blocked = "blocked",
    }
}
words! {
    /// How NVMe hosts reach an array by the addresses of a server.
    #[derive(Default)]
    PathWord {
        /// The array is not served.
        #[default]
        Unknown = "",
        /// Well.
        Optimized = "optimized",
        /// Other paths are better.
        NonOptimized = "non-optimized",
        /// Not now: they wait, or take other paths.
        Inaccessible = "inaccessible",
    }
}
words! {
    /// The method that makes an array consistent after a crash.
    PolicyWord {
        /// Everything is read and made equal.
        Resync = "resync",
        /// Regions that a write-intent bitmap marks are read and made equal.
        Bitmap = "bitmap",
        /// Partial parity is logged on the members.
        Ppl = "ppl",
        /// Acknowledged writes are repeated from the controller's journal.
        ControllerJournal = "controller-journal",
    }
}
words! {
    /// The state of the journal's session for an array.
    SessionWord {
        /// The journal has nothing of the array.
        Off = "off",
        /// Operations that the journal does not know end first.
        Settling = "settling",
        /// The journal records the beginning.
        Entering = "entering",
        /// The members record that the journal has writes of the array.
        Marking = "marking",
        /// The journal acknowledges writes.
        On = "on",
        /// The members get all writes of the journal.
        Leaving = "leaving",
        /// The members record that the journal has no writes of the array.
        Unmarking = "unmarking",
    }
}
words! {
    /// The state of a journal.
    JournalWord {
        /// No server uses it.
        Unused = "unused",
        /// It is being opened.
        Opening = "opening",
        /// It works.
        Live = "live",
        /// It is being closed.
        Closing = "closing",
        /// No device of it works.
        Lost = "lost",
        /// It is full of entries that their array cannot take.
        Full = "full",
        /// Another server uses its devices.
        InUse = "in-use",
    }
}
words! {
    /// The journal's record of an array.
    JournalArrayWord {
        /// The array uses the journal.
        Live = "live",
        /// The array failed, and its entries are kept until it is back.
        Preserved = "preserved",
        /// An administrator gave its entries up.
        Discarded = "discarded",
    }
}
words! {
    /// A part of an array that may limit it.
    #[derive(Default)]
    LimitPart {
        /// A member.
        Member = "member",
        /// A device of the journal.
        Journal = "journal",
        /// The memory of requests and operations.
        Memory = "memory",
        /// The cache.
        Cache = "cache",
        /// The processor.
        Processor = "processor",
        /// The redo of the journal.
        Redo = "redo",
        /// Requests that wait for each other on the same rows.
        Locks = "locks",
        /// The clients: they send too few requests at once.
        Clients = "clients",
        /// Nothing: no client sends requests.
        Nothing = "nothing",
        /// It is not known yet.
        #[default]
        Unknown = "unknown",
    }
}
words! {
    /// The class of a drive.
    DriveClass {
        /// Disks that rotate.
        Rotating = "rotating",
        /// Flash.
        Ssd = "ssd",
    }
}
words! {
    /// The kind of a sink of alarms.
    SinkWord {
        /// A program.
        Exec = "exec",
        /// An HTTP server.
        Webhook = "webhook",
        /// A mail server.
        Mail = "mail",
        /// The journal of systemd.
        Journald = "journald",
    }
}
words! {
    /// The task of a schedule.
    ScheduleWord {
        /// Members are read and compared.
        Check = "check",
        /// Each drive is read by itself.
        Patrol = "patrol",
    }
}
words! {
    /// The verdict on a member that is not served.
    VerdictWord {
        /// A member with current data.
        Member = "member",
        /// A member that is partly filled.
        Rebuilding = "rebuilding",
        /// The replacement of a member, partly filled.
        Replacement = "replacement",
        /// A spare.
        Spare = "spare",
        /// It lacks writes of the other members.
        Stale = "stale",
        /// The other members record that it failed.
        Failed = "failed",
        /// Another drive has its slot.
        Replaced = "replaced",
        /// It belongs to the other half of a split array.
        Split = "split",
        /// Another member has the same slot.
        Duplicate = "duplicate",
        /// It is stale and taken by force.
        Forced = "forced",
        /// It belongs to no array.
        Stranger = "stranger",
        /// It cannot be opened.
        Unreadable = "unreadable",
        /// Its superblock is not accepted.
        Refused = "refused",
    }
}
words! {
    /// The direction of a change of shape.
    DirectionWord {
        /// From the start of the array.
        Forwards = "forwards",
        /// From the end of the array.
        Backwards = "backwards",
    }
}
