//! Names of the parts that may be the limit of a run: parts of a machine, and parts of a member.

use super::axes::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words! {
    /// A part of a machine.
    PartName {
        /// The busiest member.
        Members = "members",
        /// The host bus.
        Bus = "bus",
        /// The controller's own data path.
        DataPath = "data path",
        /// The controller's processors.
        Controller = "controller",
        /// The engine that computes parity.
        Xor = "xor",
        /// All processors of the host.
        Host = "host",
        /// The busiest thread of the host.
        Worker = "worker",
        /// The busiest link to the members.
        Channel = "channel",
        /// The memory of the controller's cache.
        Memory = "memory of the controller",
        /// The devices of a journal.
        Journal = "journal",
        /// The stripes that the controller puts together at once.
        OpenStripes = "open stripes",
        /// The load generator.
        Generator = "generator",
    }
}
words! {
    /// A part of a member. If a model does not distinguish parts, all work is that of the medium.
    MemberPart {
        /// Arm and platters, or the mean of the dies.
        Medium = "medium",
        /// The processor that handles commands.
        Firmware = "firmware",
        /// The data path of its controller.
        Path = "path",
        /// The link to the host.
        Link = "link",
    }
}
