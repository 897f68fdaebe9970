//! Errors of a service, in words that name the object and the remedy.

use std::fmt;

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::AdminError;
use openraid_core::array::assemble::AssembleError;
use openraid_core::array::new_array::CreateError;
use openraid_format::PlacementError;
use openraid_sys::NetError;

use crate::shard::{OrderError, ShardError};

/// Why the service did not carry out an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServiceError {
    /// It cannot listen at this address.
    Net(NetError),
    /// It cannot start.
    Shard(ShardError),
    /// The system has no room for a thread.
    Thread(String),
    /// It has ended.
    Ended,
    /// The service refuses.
    Order(OrderError),
    /// The engine refuses.
    Admin(AdminError),
    /// A request failed.
    Request(ReplyStatus),
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(error) => write!(f, "{error}"),
            Self::Shard(error) => write!(f, "{error}"),
            Self::Thread(error) => write!(f, "the service gets no thread: {error}"),
            Self::Ended => write!(f, "the service has ended"),
            Self::Order(error) => write!(f, "{error}"),
            Self::Admin(error) => write!(f, "{error}"),
            Self::Request(ReplyStatus::Ok) => write!(f, "the request succeeded"),
            Self::Request(ReplyStatus::IoError) => write!(f, "the array has lost these data, or cannot reach them"),
            Self::Request(ReplyStatus::OutOfRange) => write!(f, "the request reaches beyond the end of the array"),
            Self::Request(ReplyStatus::NoSpace) => write!(f, "the storage of a member is full"),
            Self::Request(ReplyStatus::ReadOnly) => write!(f, "the array does not take writes"),
            Self::Request(ReplyStatus::Offline) => write!(f, "the array is stopped"),
        }
    }
}
impl std::error::Error for ServiceError {}

impl From<NetError> for ServiceError {
    fn from(error: NetError) -> Self {
        Self::Net(error)
    }
}
impl From<OrderError> for ServiceError {
    fn from(error: OrderError) -> Self {
        match error {
            OrderError::Refused(error) => Self::Admin(error),
            other => Self::Order(other),
        }
    }
}
impl From<AdminError> for ServiceError {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

/// Why an array does not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartError {
    /// The service refuses.
    Service(ServiceError),
    /// The members do not form an array.
    Assemble(AssembleError),
    /// The array cannot be made.
    Create(CreateError),
    /// The outer stripe does not fit on a span.
    Placement(PlacementError),
    /// A member has no superblock that can be used; its name and why.
    NotAMember(String, String),
    /// An outer array is not complete: the spans that are missing.
    SpansMissing {
        /// Spans that are there.
        have: usize,
        /// Number of spans needed.
        need: usize,
    },
    /// The file system of a member has no space for its metadata; the member and why, in words.
    NoSpace(String),
    /// A name that does not fit into a superblock.
    Name(openraid_format::SetNameError),
    NoMembers,
}

impl StartError {
    /// The fault, without the remedy.
    #[must_use]
    pub fn fault(&self) -> String {
        match self {
            Self::Service(error) => error.to_string(),
            Self::Assemble(error) => error.fault(),
            Self::Create(error) => error.to_string(),
            Self::Placement(error) => format!("outer stripe: {error}"),
            Self::NotAMember(member, why) => format!("{member}: {why}"),
            Self::SpansMissing { have, need } => {
                format!("only {have} of the {need} spans of the nested array are there")
            }
            Self::NoSpace(why) => why.clone(),
            Self::Name(error) => error.to_string(),
            Self::NoMembers => "no members were given".into(),
        }
    }

    /// What to do about it, if this can be said.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Assemble(error) => error.remedy(),
            Self::SpansMissing { .. } => Some("name the members of all spans".into()),
            Self::NoMembers => Some("name the drives".into()),
            Self::Service(_) | Self::Create(_) | Self::Placement(_) | Self::NotAMember(..) => None,
            Self::NoSpace(_) | Self::Name(_) => None,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}
impl std::error::Error for StartError {}

impl From<ServiceError> for StartError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}
