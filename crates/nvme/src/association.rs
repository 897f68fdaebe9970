//! One host's controller: its queues, keep-alive time, registers, and the events owed to it.
//!
//! ```text
//!            enable             host shuts down
//!  Disabled -------> Enabled ------------------> ShutDown
//!     ^  |              |                           |
//!     |  +--bad values--|--> Failed                 |
//!     +-----------------+-------+----disable--------+
//! ```

use core::net::IpAddr;

use openraid_units::{Instant, Nanos};

use crate::async_events::OwedEvents;
use crate::limits::{IO_QUEUES_MAX, KEEP_ALIVE_UNIT};
use crate::nqn::Nqn;
use crate::subsystem::PortId;
use crate::target::ConnectionId;

/// The name of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssociationKey {
    pub index: usize,
    /// A number that no other association of the target has had.
    pub serial: u64,
}

/// The subsystem of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssociationSubject {
    /// The list of the others.
    Discovery,
    /// An array, by its place in the target's table.
    Array(usize),
}

/// The state of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    Disabled,
    Enabled,
    ShutDown,
    Failed,
}

/// The place of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePlace {
    pub connection: ConnectionId,
    pub port: PortId,
    /// The address of this machine that the host chose.
    pub local: IpAddr,
}

/// Names of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostNames {
    pub nqn: Nqn,
    pub id: [u8; 16],
}

/// One host's controller.
#[derive(Clone, Debug)]
pub struct Association {
    pub serial: u64,
    /// The controller's number, which no other association has.
    pub controller: u16,
    pub subject: AssociationSubject,
    pub host: HostNames,
    pub admin: QueuePlace,
    io: [Option<ConnectionId>; IO_QUEUES_MAX as usize],
    /// I/O queues that the host may use.
    pub granted: u16,
    pub power: Power,
    /// The register "controller configuration".
    pub configuration: u32,
    /// The longest silence that the host announced.
    keep_alive: Option<Nanos>,
    pub heard_at: Instant,
    pub events: OwedEvents,
    /// The owner of the connection knows that there are events to send.
    pub is_announced: bool,
}

impl Association {
    pub fn new(
        key: AssociationKey,
        controller: u16,
        subject: AssociationSubject,
        host: HostNames,
        admin: QueuePlace,
    ) -> Self {
        Self {
            serial: key.serial,
            controller,
            subject,
            host,
            admin,
            io: [None; IO_QUEUES_MAX as usize],
            granted: IO_QUEUES_MAX,
            power: Power::Disabled,
            configuration: 0,
            keep_alive: None,
            heard_at: Instant::ZERO,
            events: OwedEvents::default(),
            is_announced: false,
        }
    }

    /// The keep-alive time in milliseconds, as the feature and Connect have it.
    pub fn keep_alive_ms(&self) -> u32 {
        let ms = self.keep_alive.map_or(0, |time| time.get() / Nanos::from_millis(1).get());
        u32::try_from(ms).unwrap_or(u32::MAX)
    }

    /// Set the keep-alive time, rounded up to its unit. 0 is no limit.
    pub fn set_keep_alive(&mut self, ms: u32) {
        let unit = KEEP_ALIVE_UNIT.get();
        let time = Nanos::from_millis(u64::from(ms)).get().next_multiple_of(unit);
        self.keep_alive = (ms > 0).then_some(Nanos(time));
    }

    /// The end of the host's silence: the time that it announced, and as much again for a busy host.
    pub fn deadline(&self) -> Option<Instant> {
        self.keep_alive.map(|time| self.heard_at + time + time)
    }

    fn place(&mut self, queue: u16) -> Option<&mut Option<ConnectionId>> {
        self.io.get_mut(usize::from(queue).checked_sub(1)?)
    }

    /// Take the place of an I/O queue; false if it is taken or does not exist.
    pub fn join(&mut self, queue: u16, connection: ConnectionId) -> bool {
        let is_granted = queue <= self.granted;
        match self.place(queue) {
            Some(place) if is_granted && place.is_none() => {
                *place = Some(connection);
                true
            }
            _ => false,
        }
    }

    /// An I/O queue is gone.
    pub fn leave(&mut self, queue: u16, connection: ConnectionId) {
        if let Some(place) = self.place(queue) {
            if *place == Some(connection) {
                *place = None;
            }
        }
    }

    /// The host disabled the controller: what the host has set is gone, and no request waits.
    pub fn reset(&mut self) {
        self.power = Power::Disabled;
        self.granted = IO_QUEUES_MAX;
        self.events = OwedEvents::default();
    }

    pub fn has_io_queues(&self) -> bool {
        self.io.iter().any(Option::is_some)
    }

    /// Take all connections of I/O queues out.
    pub fn take_io_queues(&mut self) -> impl Iterator<Item = ConnectionId> {
        core::mem::take(&mut self.io).into_iter().flatten()
    }
}
