//! The exit code for each error of the service.

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::AdminError;
use openraid_core::array::assemble::AssembleError;
use openraid_core::array::new_array::CreateError;
use openraid_format::{JournalError, PlacementError};
use openraid_runtime::member::remote::RemoteError;
use openraid_runtime::member::OpenError;
use openraid_runtime::service::journal::JournalStartError;
use openraid_runtime::service::{AttachError, OrderError, ServiceError, ShardError, StartError};
use openraid_sys::{MemberError, NetError};

use crate::failure::{Exit, Failure};

/// An error with the exit code of a command that meets it, and the parts of its text: `NAME: FAULT; REMEDY`.
pub trait Cause: std::fmt::Display {
    /// The exit code.
    fn exit(&self) -> Exit;

    /// The thing that the text names first.
    fn name(&self) -> Option<String> {
        None
    }

    /// The fault, without that name and the remedy.
    fn fault(&self) -> String {
        self.to_string()
    }

    /// What to do about it.
    fn remedy(&self) -> Option<String> {
        None
    }
}

impl<T: Cause> From<T> for Failure {
    fn from(cause: T) -> Self {
        Self::of_cause(&cause)
    }
}

impl Cause for ServiceError {
    fn exit(&self) -> Exit {
        match self {
            Self::Net(error) => error.exit(),
            Self::Thread(_) | Self::Ended => Exit::Error,
            Self::Shard(ShardError::Pool(_) | ShardError::System(_)) => Exit::Error,
            Self::Order(OrderError::Attach(AttachError::Exhausted(_))) => Exit::Error,
            Self::Request(ReplyStatus::ReadOnly | ReplyStatus::Offline) => Exit::Refused,
            Self::Request(_) => Exit::Error,
            Self::Admin(AdminError::NotComparable(_)) => Exit::NotComparable,
            Self::Shard(ShardError::Limits(_) | ShardError::Addresses(_)) | Self::Order(_) | Self::Admin(_) => {
                Exit::Refused
            }
        }
    }
}

impl Cause for NetError {
    fn exit(&self) -> Exit {
        match self {
            Self::Failed { .. } => Exit::Error,
            Self::InUse { .. } | Self::NotASocket { .. } | Self::PathTooLong { .. } => Exit::Refused,
        }
    }
}

impl Cause for StartError {
    fn exit(&self) -> Exit {
        match self {
            Self::Service(error) => error.exit(),
            Self::Assemble(error) => error.exit(),
            Self::Create(error) => error.exit(),
            Self::SpansMissing { .. } => Exit::Failed,
            Self::NoSpace(_) => Exit::Error,
            Self::Placement(_) | Self::NotAMember(..) | Self::Name(_) | Self::NoMembers => Exit::Refused,
        }
    }

    fn fault(&self) -> String {
        self.fault()
    }

    fn remedy(&self) -> Option<String> {
        self.remedy()
    }
}

impl Cause for AssembleError {
    fn exit(&self) -> Exit {
        match self {
            Self::Nothing => Exit::Refused,
            _ => Exit::Failed,
        }
    }

    fn fault(&self) -> String {
        self.fault()
    }

    fn remedy(&self) -> Option<String> {
        self.remedy()
    }
}

impl Cause for CreateError {
    fn exit(&self) -> Exit {
        match self {
            Self::Geometry(_) | Self::NoUse(_) | Self::TooManyMembers(_) | Self::TooManyMissing(_) => Exit::Usage,
            Self::Placement { error: PlacementError::BadChunk { .. }, .. } => Exit::Usage,
            Self::Placement { .. } | Self::SpareTooSmall { .. } | Self::SizeTooLarge { .. } | Self::Bitmap(_) => {
                Exit::Refused
            }
        }
    }
}

impl Cause for MemberError {
    fn exit(&self) -> Exit {
        match self {
            Self::Failed { .. } => Exit::Error,
            _ => Exit::Refused,
        }
    }

    fn name(&self) -> Option<String> {
        Some(self.path().display().to_string())
    }

    fn fault(&self) -> String {
        self.fault()
    }

    fn remedy(&self) -> Option<String> {
        self.remedy()
    }
}

impl Cause for RemoteError {
    fn exit(&self) -> Exit {
        match self {
            Self::ReadOnly | Self::NoFlush | Self::BlockSize(_) | Self::Empty | Self::Changed | Self::Another => {
                Exit::Refused
            }
            _ => Exit::Error,
        }
    }

    fn fault(&self) -> String {
        self.fault()
    }

    fn remedy(&self) -> Option<String> {
        self.remedy()
    }
}

impl Cause for OpenError {
    fn exit(&self) -> Exit {
        match self {
            Self::Local(error) => error.exit(),
            Self::Remote { error, .. } => error.exit(),
            Self::Model { .. } => Exit::Usage,
            Self::Twice { .. } => Exit::Refused,
            Self::Silent { .. } | Self::Probe { .. } | Self::Exhausted { .. } => Exit::Error,
        }
    }

    fn name(&self) -> Option<String> {
        Some(self.member())
    }

    fn fault(&self) -> String {
        self.fault()
    }

    fn remedy(&self) -> Option<String> {
        self.remedy()
    }
}

impl Cause for JournalStartError {
    fn exit(&self) -> Exit {
        match self {
            Self::Open(error) => error.exit(),
            Self::Service(error) | Self::JoinRefused { error, .. } => error.exit(),
            Self::Device { error: JournalError::Unreadable, .. }
            | Self::Io { .. }
            | Self::Silent(..)
            | Self::Hangs(_)
            | Self::Panicked(_)
            | Self::LostAtOnce => Exit::Error,
            _ => Exit::Refused,
        }
    }
}
