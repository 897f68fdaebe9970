//! What all connections share: subsystems, ports, associations, and the connections that need attention.

use core::fmt;
use core::ops::RangeInclusive;
use std::collections::VecDeque;

use openraid_parity::Kernels;
use openraid_units::{ArrayId, Bytes, Instant};

use crate::association::{Association, AssociationKey, AssociationSubject, HostNames, Power, QueuePlace};
use crate::async_events::HostNotice;
use crate::limits::{ASSOCIATIONS_MAX, HOSTS_MAX, PORTS_MAX, SUBSYSTEMS_MAX};
use crate::nqn::Nqn;
use crate::subsystem::{AllowedHosts, PathState, Port, PortId, Subsystem};

/// The caller's name for a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// Something to do at a connection that is not the present one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errand {
    /// Call [`crate::HostQueue::deliver`], and send the output.
    Deliver(ConnectionId),
    /// Close the connection: its association has ended.
    Close(ConnectionId),
}

/// The constants of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetSettings {
    /// Addresses.
    pub ports: Vec<Port>,
    /// Numbers of controllers. Servers that share an array have ranges without a common number.
    pub controllers: RangeInclusive<u16>,
    /// The version that hosts see; eight ASCII characters of it.
    pub version: String,
}

/// Settings that no target can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NvmeTargetError {
    /// No port, or too many; the number.
    Ports(usize),
    /// The numbers of controllers are none, or have one above `ffefh`.
    Controllers,
    /// The version is not ASCII.
    Version,
}

impl fmt::Display for NvmeTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports(count) => write!(f, "{count} addresses for NVMe/TCP; 1 to {PORTS_MAX} are possible"),
            Self::Controllers => f.write_str("the range of controller numbers must lie between 0 and 0xffef"),
            Self::Version => f.write_str("the version for NVMe hosts must be printable ASCII"),
        }
    }
}

impl std::error::Error for NvmeTargetError {}

/// An array that cannot be a subsystem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubsystemError {
    /// The table is full.
    TooMany,
    /// The array, or its UUID, is offered already.
    Taken,
    /// The size is zero, or no multiple of the block.
    Size,
    /// The list of hosts is too long.
    Hosts,
    /// No such array.
    Unknown,
    /// No such port.
    NoPort,
}

impl fmt::Display for SubsystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "{SUBSYSTEMS_MAX} arrays are offered by NVMe/TCP, which is the maximum"),
            Self::Taken => f.write_str("an array with this UUID is offered by NVMe/TCP already"),
            Self::Size => f.write_str("the size of the array is no multiple of its block, or zero"),
            Self::Hosts => write!(f, "more than {HOSTS_MAX} hosts are listed for the array"),
            Self::Unknown => f.write_str("the array is not offered by NVMe/TCP"),
            Self::NoPort => f.write_str("NVMe/TCP has no such address"),
        }
    }
}

impl std::error::Error for SubsystemError {}

/// A host that has an association, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttachedHost<'a> {
    /// The host.
    pub host: &'a Nqn,
    /// The controller's number.
    pub controller: u16,
    /// Through which port.
    pub port: PortId,
}

/// An offered array.
#[derive(Clone, Debug)]
pub(crate) struct OfferedArray {
    pub subsystem: Subsystem,
    pub nqn: Nqn,
    /// One state for each port.
    pub paths: Vec<PathState>,
    /// Number of changes of these states.
    pub path_changes: u64,
}

/// The controller and array of an I/O command.
pub(crate) struct IoView<'a> {
    pub is_enabled: bool,
    pub offered: &'a OfferedArray,
    pub path: PathState,
}

/// All shared state.
#[derive(Debug)]
pub struct NvmeTarget {
    settings: TargetSettings,
    kernels: Kernels,
    subsystems: Vec<Option<OfferedArray>>,
    associations: Vec<Option<Association>>,
    errands: VecDeque<Errand>,
    /// Number of changes of the discovery log.
    changes: u64,
    /// Arrays may be missing because they start.
    is_starting: bool,
    next_controller: u16,
    next_serial: u64,
    /// No association's time ends before.
    next_look: Option<Instant>,
}

/// The highest number of a controller.
const CONTROLLER_MAX: u16 = 0xffef;

impl NvmeTarget {
    /// A target without arrays. Arrays count as starting until [`NvmeTarget::set_starting`] says otherwise.
    ///
    /// # Errors
    /// Settings that are not possible.
    pub fn new(settings: TargetSettings) -> Result<Self, NvmeTargetError> {
        if settings.ports.is_empty() || settings.ports.len() > PORTS_MAX {
            return Err(NvmeTargetError::Ports(settings.ports.len()));
        }
        if settings.controllers.is_empty() || *settings.controllers.end() > CONTROLLER_MAX {
            return Err(NvmeTargetError::Controllers);
        }
        if !settings.version.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NvmeTargetError::Version);
        }
        Ok(Self {
            next_controller: *settings.controllers.start(),
            settings,
            kernels: Kernels::detect(),
            subsystems: Vec::new(),
            associations: Vec::new(),
            errands: VecDeque::new(),
            changes: 1,
            is_starting: true,
            next_serial: 0,
            next_look: None,
        })
    }

    /// Are there arrays that will be offered soon? Until then no host is told to give up.
    pub fn set_starting(&mut self, is_starting: bool) {
        self.is_starting = is_starting;
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.is_starting
    }

    pub(crate) fn kernels(&self) -> Kernels {
        self.kernels
    }

    pub(crate) fn settings(&self) -> &TargetSettings {
        &self.settings
    }

    /// The number of changes of the discovery log.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Offer an array through all ports.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn offer(&mut self, subsystem: Subsystem) -> Result<(), SubsystemError> {
        check_size(&subsystem, subsystem.size)?;
        check_hosts(&subsystem.hosts)?;
        let is_same =
            |other: &OfferedArray| other.subsystem.array == subsystem.array || other.subsystem.uuid == subsystem.uuid;
        if self.offered().any(is_same) {
            return Err(SubsystemError::Taken);
        }
        let free = self.subsystems.iter().position(Option::is_none);
        if free.is_none() && self.subsystems.len() == SUBSYSTEMS_MAX {
            return Err(SubsystemError::TooMany);
        }
        let nqn = Nqn::of_uuid(subsystem.uuid);
        let paths = vec![PathState::Optimized; self.settings.ports.len()];
        let offered = Some(OfferedArray { subsystem, nqn, paths, path_changes: 0 });
        match free {
            Some(index) => self.subsystems[index] = offered,
            None => self.subsystems.push(offered),
        }
        self.discovery_changed();
        Ok(())
    }

    /// Offer an array no longer. Its associations end.
    ///
    /// # Errors
    /// The array is not offered.
    pub fn withdraw(&mut self, array: ArrayId) -> Result<(), SubsystemError> {
        let index = self.index_of(array)?;
        self.subsystems[index] = None;
        self.end_each(|association| association.subject == AssociationSubject::Array(index));
        self.discovery_changed();
        Ok(())
    }

    /// An array has another size.
    ///
    /// # Errors
    /// The array is not offered, or cannot have this size.
    pub fn set_size(&mut self, array: ArrayId, size: Bytes) -> Result<(), SubsystemError> {
        let index = self.index_of(array)?;
        let subsystem = &mut self.at_mut(index).subsystem;
        check_size(subsystem, size)?;
        if subsystem.size != size {
            subsystem.size = size;
            self.note_each(HostNotice::Namespace, |association| {
                association.subject == AssociationSubject::Array(index)
            });
        }
        Ok(())
    }

    /// Refuse writing from the next command on, or allow it again.
    ///
    /// # Errors
    /// The array is not offered.
    pub fn set_read_only(&mut self, array: ArrayId, is_read_only: bool) -> Result<(), SubsystemError> {
        let index = self.index_of(array)?;
        let subsystem = &mut self.at_mut(index).subsystem;
        if subsystem.is_read_only != is_read_only {
            subsystem.is_read_only = is_read_only;
            self.note_each(HostNotice::Namespace, |association| {
                association.subject == AssociationSubject::Array(index)
            });
        }
        Ok(())
    }

    /// Change the list of hosts. Associations of other hosts end.
    ///
    /// # Errors
    /// The array is not offered, or the list is too long.
    pub fn set_hosts(&mut self, array: ArrayId, hosts: AllowedHosts) -> Result<(), SubsystemError> {
        let index = self.index_of(array)?;
        check_hosts(&hosts)?;
        let offered = self.at_mut(index);
        if offered.subsystem.hosts != hosts {
            offered.subsystem.hosts = hosts.clone();
            self.end_each(|association| {
                association.subject == AssociationSubject::Array(index) && !hosts.has(&association.host.nqn)
            });
            self.discovery_changed();
        }
        Ok(())
    }

    /// Change how an array is reached through a port.
    ///
    /// # Errors
    /// No such array or port.
    pub fn set_path(&mut self, array: ArrayId, port: PortId, state: PathState) -> Result<(), SubsystemError> {
        let index = self.index_of(array)?;
        let offered = self.at_mut(index);
        let path = offered.paths.get_mut(port.index()).ok_or(SubsystemError::NoPort)?;
        if *path != state {
            *path = state;
            offered.path_changes += 1;
            self.note_each(HostNotice::Paths, |association| {
                association.subject == AssociationSubject::Array(index) && association.admin.port == port
            });
        }
        Ok(())
    }

    /// Is the array offered?
    #[must_use]
    pub fn has(&self, array: ArrayId) -> bool {
        self.index_of(array).is_ok()
    }

    /// Number of ports: their ids count from 0.
    #[must_use]
    pub fn ports(&self) -> u16 {
        u16::try_from(self.settings.ports.len()).expect("few ports")
    }

    /// The hosts of an array.
    pub fn hosts(&self, array: ArrayId) -> impl Iterator<Item = AttachedHost<'_>> {
        let index = self.index_of(array).ok();
        self.associations.iter().flatten().filter_map(move |association| {
            let is_of_array = index.is_some_and(|index| association.subject == AssociationSubject::Array(index));
            let Association { host, controller, admin, .. } = association;
            is_of_array.then_some(AttachedHost { host: &host.nqn, controller: *controller, port: admin.port })
        })
    }

    /// Number of associations.
    #[must_use]
    pub fn associations(&self) -> usize {
        self.associations.iter().flatten().count()
    }

    /// The time of the next call of [`NvmeTarget::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.next_look
    }

    /// End the associations of hosts that were silent for too long. What hosts have sent until now is to be parsed first.
    pub fn on_time(&mut self, now: Instant) {
        if self.next_look.is_some_and(|at| at <= now) {
            self.end_each(|association| association.deadline().is_some_and(|deadline| deadline <= now));
            self.next_look = self.associations.iter().flatten().filter_map(Association::deadline).min();
        }
    }

    /// The next connection that needs attention, until there is none.
    pub fn next_errand(&mut self) -> Option<Errand> {
        self.errands.pop_front()
    }

    pub(crate) fn offered(&self) -> impl Iterator<Item = &OfferedArray> {
        self.subsystems.iter().flatten()
    }

    /// The place of the subsystem with this name.
    pub(crate) fn find(&self, nqn: &Nqn) -> Option<usize> {
        self.subsystems.iter().position(|entry| entry.as_ref().is_some_and(|offered| offered.nqn == *nqn))
    }

    pub(crate) fn at(&self, index: usize) -> &OfferedArray {
        self.subsystems[index].as_ref().expect("associations of an array end before the array leaves the table")
    }

    fn at_mut(&mut self, index: usize) -> &mut OfferedArray {
        self.subsystems[index].as_mut().expect("the caller has found the array")
    }

    fn index_of(&self, array: ArrayId) -> Result<usize, SubsystemError> {
        let is_it =
            |entry: &Option<OfferedArray>| entry.as_ref().is_some_and(|offered| offered.subsystem.array == array);
        self.subsystems.iter().position(is_it).ok_or(SubsystemError::Unknown)
    }

    #[inline]
    pub(crate) fn association(&mut self, key: AssociationKey) -> Option<&mut Association> {
        self.associations[key.index].as_mut().filter(|association| association.serial == key.serial)
    }

    /// The association with this number of its controller.
    pub(crate) fn by_controller(&self, controller: u16) -> Option<AssociationKey> {
        let index = self
            .associations
            .iter()
            .position(|entry| entry.as_ref().is_some_and(|association| association.controller == controller))?;
        let serial = self.associations[index].as_ref()?.serial;
        Some(AssociationKey { index, serial })
    }

    /// A command came. What it is about; `None` if the association has ended.
    #[inline]
    pub(crate) fn io_view(&mut self, key: AssociationKey, now: Instant) -> Option<IoView<'_>> {
        let association = self.associations[key.index].as_mut().filter(|entry| entry.serial == key.serial)?;
        association.heard_at = now;
        let AssociationSubject::Array(index) = association.subject else { return None };
        let offered = self.subsystems[index].as_ref()?;
        let path = offered.paths[association.admin.port.index()];
        Some(IoView { is_enabled: association.power == Power::Enabled, offered, path })
    }

    /// Begin an association; `None` if there is no room.
    pub(crate) fn begin(
        &mut self,
        subject: AssociationSubject,
        host: HostNames,
        admin: QueuePlace,
    ) -> Option<AssociationKey> {
        let free = self.associations.iter().position(Option::is_none);
        if free.is_none() && self.associations.len() == ASSOCIATIONS_MAX {
            return None;
        }
        let controller = self.free_controller()?;
        let key = AssociationKey { index: free.unwrap_or(self.associations.len()), serial: self.next_serial };
        self.next_serial += 1;
        let association = Some(Association::new(key, controller, subject, host, admin));
        match free {
            Some(index) => self.associations[index] = association,
            None => self.associations.push(association),
        }
        Some(key)
    }

    /// A number that is not taken; the one that was freed last comes last.
    fn free_controller(&mut self) -> Option<u16> {
        let numbers = self.settings.controllers.clone();
        let tries = self.associations.len() + 1;
        let mut number = self.next_controller;
        for _ in 0..tries.min(numbers.len()) {
            let next = if number == *numbers.end() { *numbers.start() } else { number + 1 };
            if self.by_controller(number).is_none() {
                self.next_controller = next;
                return Some(number);
            }
            number = next;
        }
        None
    }

    /// Set an association's keep-alive time, and watch it.
    pub(crate) fn set_keep_alive(&mut self, key: AssociationKey, ms: u32) {
        let Some(association) = self.association(key) else { return };
        association.set_keep_alive(ms);
        let deadline = association.deadline();
        self.next_look = match (self.next_look, deadline) {
            (Some(look), Some(deadline)) => Some(look.min(deadline)),
            (look, deadline) => look.or(deadline),
        };
    }

    /// The connections of I/O queues are to be closed: the controller was disabled.
    pub(crate) fn close_io_queues(&mut self, key: AssociationKey) {
        let Some(association) = self.associations[key.index].as_mut().filter(|entry| entry.serial == key.serial) else {
            return;
        };
        self.errands.extend(association.take_io_queues().map(Errand::Close));
    }

    /// The admin connection is gone, and its association with it.
    pub(crate) fn leave_admin(&mut self, key: AssociationKey) {
        if self.association(key).is_some() {
            self.close_io_queues(key);
            self.associations[key.index] = None;
        }
    }

    fn end_each(&mut self, is_to_end: impl Fn(&Association) -> bool) {
        for entry in &mut self.associations {
            if let Some(mut association) = entry.take_if(|association| is_to_end(association)) {
                self.errands.push_back(Errand::Close(association.admin.connection));
                self.errands.extend(association.take_io_queues().map(Errand::Close));
            }
        }
    }

    fn note_each(&mut self, notice: HostNotice, is_concerned: impl Fn(&Association) -> bool) {
        for association in self.associations.iter_mut().flatten().filter(|association| is_concerned(association)) {
            association.events.note(notice);
            if association.events.is_due() && !association.is_announced {
                association.is_announced = true;
                self.errands.push_back(Errand::Deliver(association.admin.connection));
            }
        }
    }

    fn discovery_changed(&mut self) {
        self.changes += 1;
        self.note_each(HostNotice::Discovery, |association| association.subject == AssociationSubject::Discovery);
    }
}

fn check_size(subsystem: &Subsystem, size: Bytes) -> Result<(), SubsystemError> {
    let is_whole = size.round_down(subsystem.block.bytes()) == size;
    if size.is_zero() || !is_whole {
        return Err(SubsystemError::Size);
    }
    Ok(())
}

fn check_hosts(hosts: &AllowedHosts) -> Result<(), SubsystemError> {
    match hosts {
        AllowedHosts::Listed(list) if list.len() > HOSTS_MAX => Err(SubsystemError::Hosts),
        AllowedHosts::Listed(_) | AllowedHosts::Any => Ok(()),
    }
}
