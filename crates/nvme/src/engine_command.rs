//! Commands for the engine.

use core::ops::Range;

use openraid_units::{ArrayOffset, Bytes};

/// The target's name for a command under way. It is part of each answer of the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u64);

/// Kind of a command for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    /// A read.
    Read,
    /// Write; with `fua` the data is durable before the answer.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Make durable what was answered.
    Flush,
    /// The host needs the content of the range no longer.
    Deallocate,
    /// Make the range read as zero.
    WriteZeroes {
        /// Force unit access.
        fua: bool,
        /// The range may be deallocated for it.
        may_deallocate: bool,
    },
}

/// The place of a command's payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PayloadSource {
    /// There is none from the host.
    None,
    /// All of it, in this range of the input.
    Received(Range<usize>),
    /// At the host, which sends the parts that it is asked for.
    Asked,
}

/// A command for the engine. A deallocation of several ranges comes as several commands with one name, and has as many ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NvmeCommand {
    /// The target's name for it.
    pub id: CommandId,
    /// Kind of the command.
    pub kind: CommandKind,
    /// First byte.
    pub offset: ArrayOffset,
    /// Length in bytes.
    pub len: Bytes,
    /// Payload.
    pub payload: PayloadSource,
}
