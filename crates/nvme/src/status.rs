//! Status of completions, and the engine's outcomes as hosts are told.

use crate::engine_command::CommandKind;

/// Status code type and code, with the bit "do not retry".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(u16);

/// The bit "do not retry", before the shift by the phase bit.
const FINAL: u16 = 1 << 14;

impl Status {
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_OPCODE: Self = Self::refused(0x01);
    pub const INVALID_FIELD: Self = Self::refused(0x02);
    pub const COMMAND_ID_CONFLICT: Self = Self::refused(0x03);
    pub const INVALID_NAMESPACE: Self = Self::refused(0x0b);
    pub const COMMAND_SEQUENCE: Self = Self::refused(0x0c);
    pub const DATA_LENGTH_INVALID: Self = Self::refused(0x0f);
    pub const DESCRIPTOR_INVALID: Self = Self::refused(0x11);
    pub const OFFSET_INVALID: Self = Self::refused(0x16);
    pub const WRITE_PROTECTED: Self = Self::refused(0x20);
    /// A data digest was wrong. The host sends the command again.
    pub const TRANSIENT_TRANSPORT: Self = Self(0x22);
    pub const LBA_RANGE: Self = Self::refused(0x80);
    pub const CAPACITY_EXCEEDED: Self = Self::refused(0x81);
    pub const EVENT_LIMIT: Self = Self::refused(0x105);
    pub const INVALID_LOG_PAGE: Self = Self::refused(0x109);
    pub const NOT_SAVEABLE: Self = Self::refused(0x10d);
    pub const NOT_CHANGEABLE: Self = Self::refused(0x10e);
    pub const CONNECT_FORMAT: Self = Self::refused(0x180);
    /// Not now: the host tries again.
    pub const CONNECT_BUSY: Self = Self(0x181);
    pub const CONNECT_PARAMETERS: Self = Self::refused(0x182);
    pub const CONNECT_HOST: Self = Self::refused(0x184);
    pub const WRITE_FAULT: Self = Self::refused(0x280);
    pub const READ_ERROR: Self = Self::refused(0x281);
    pub const PATH_LOST: Self = Self(0x301);
    pub const PATH_INACCESSIBLE: Self = Self(0x302);

    const fn refused(code: u16) -> Self {
        Self(code | FINAL)
    }

    /// The same status, and the host may try again.
    pub const fn for_now(self) -> Self {
        Self(self.0 & !FINAL)
    }

    /// The status field of a completion, the phase bit included.
    pub const fn field(self) -> u16 {
        self.0 << 1
    }
}

/// How the engine ended a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandOutcome {
    /// The command is done.
    Done,
    /// The data is unavailable, and will stay so.
    Lost,
    /// Beyond the end of the array.
    OutOfRange,
    /// The array refuses writes.
    ReadOnly,
    /// The storage of a member is full.
    NoSpace,
    /// The array is stopped. Hosts wait for another path, or for this one.
    Offline,
}

impl CommandOutcome {
    pub(crate) const fn status(self, kind: CommandKind) -> Status {
        match self {
            Self::Done => Status::SUCCESS,
            Self::Lost => match kind {
                CommandKind::Read => Status::READ_ERROR,
                CommandKind::Write { .. }
                | CommandKind::Flush
                | CommandKind::Deallocate
                | CommandKind::WriteZeroes { .. } => Status::WRITE_FAULT,
            },
            Self::OutOfRange => Status::LBA_RANGE,
            Self::ReadOnly => Status::WRITE_PROTECTED,
            Self::NoSpace => Status::CAPACITY_EXCEEDED,
            Self::Offline => Status::PATH_INACCESSIBLE,
        }
    }
}
