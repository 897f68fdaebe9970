//! Arrays as subsystems, the ports through which hosts reach them, and the hosts that may.

use core::net::IpAddr;

use openraid_units::{ArrayId, BlockSize, Bytes};

use crate::nqn::{uuid_text, Nqn};

/// A listening address, by its place in the list of a target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u16);

impl PortId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A listening address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The address; `None` is every address of the machine.
    pub address: Option<IpAddr>,
    /// The TCP port.
    pub service: u16,
}

/// The hosts that may use a subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllowedHosts {
    /// All.
    Any,
    /// The hosts with these names.
    Listed(Vec<Nqn>),
}

impl AllowedHosts {
    pub(crate) fn has(&self, host: &Nqn) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(hosts) => hosts.contains(host),
        }
    }
}

/// How an array is reached through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// The best path.
    Optimized,
    /// A path that serves when there is no better one.
    NonOptimized,
    /// No commands for now. Hosts wait, or use another path.
    Inaccessible,
    /// No commands on this path for good.
    Lost,
}

impl PathState {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Optimized => 1,
            Self::NonOptimized => 2,
            Self::Inaccessible => 3,
            Self::Lost => 4,
        }
    }
}

/// Sizes that are efficient, for hosts that ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preferred {
    /// Unit and alignment of writes.
    pub write: Bytes,
    /// The best size of a request, such as a stripe.
    pub optimal: Bytes,
}

/// An array that hosts see as one disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subsystem {
    /// Number of the array.
    pub array: ArrayId,
    /// Its UUID. The names that hosts see come from it.
    pub uuid: [u8; 16],
    /// Its size: a multiple of the block.
    pub size: Bytes,
    /// The logical block.
    pub block: BlockSize,
    /// Sizes that are efficient.
    pub preferred: Preferred,
    /// Is writing refused?
    pub is_read_only: bool,
    /// May answered writes be lost until a flush?
    pub has_volatile_cache: bool,
    /// The hosts that may use it.
    pub hosts: AllowedHosts,
}

impl Subsystem {
    /// The serial number: the first 20 digits of the UUID, the same on every server.
    pub(crate) fn serial(&self) -> String {
        let mut digits = uuid_text(self.uuid).replace('-', "");
        digits.truncate(20);
        digits
    }

    /// Number of logical blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.size / self.block.bytes()
    }
}
