//! The command Connect: a host begins an association, or adds an I/O queue to one.

use openraid_units::{ArrayId, Instant};

use crate::association::{AssociationKey, AssociationSubject, HostNames, Power, QueuePlace};
use crate::capsule::Capsule;
use crate::connection_rules::ConnectionRules;
use crate::limits::QUEUE_ENTRIES_MAX;
use crate::nqn::{Nqn, DISCOVERY_NQN, NQN_FIELD_BYTES};
use crate::status::Status;
use crate::target::NvmeTarget;
use crate::wire::u16_at;

/// Bytes of the data of Connect.
const DATA_BYTES: usize = 1024;
const CONTROLLER_AT: usize = 16;
const SUBSYSTEM_AT: usize = 256;
const HOST_AT: usize = 512;
/// Fields of the command itself.
const FORMAT_AT: usize = 40;
const QUEUE_AT: usize = 42;
const ENTRIES_AT: usize = 44;
const ATTRIBUTES_AT: usize = 46;
const KEEP_ALIVE_DWORD: usize = 12;
/// Attribute: the place in the submission queue is not reported.
const NO_HEAD: u8 = 1 << 2;
/// The number of a controller that the host leaves to the target.
const ANY_CONTROLLER: u16 = 0xffff;
/// In the result of a refusal: the offset is one of the data.
const IN_DATA: u32 = 1 << 16;

/// The queue that a connection has become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connected {
    Admin(AssociationKey, AssociationSubject),
    Io(AssociationKey, ArrayId),
}

/// A refusal, and its result: the place of the field that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectRefusal {
    pub status: Status,
    pub result: u32,
}

impl ConnectRefusal {
    fn for_now(self) -> Self {
        Self { status: self.status.for_now(), ..self }
    }
}

impl From<Status> for ConnectRefusal {
    fn from(status: Status) -> Self {
        Self { status, result: 0 }
    }
}

fn in_command(at: usize) -> ConnectRefusal {
    ConnectRefusal { status: Status::CONNECT_PARAMETERS, result: crate::wire::narrow(at) }
}

fn in_data(at: usize) -> ConnectRefusal {
    ConnectRefusal { status: Status::CONNECT_PARAMETERS, result: crate::wire::narrow(at) | IN_DATA }
}

struct Request {
    queue: u16,
    controller: u16,
    subsystem: Nqn,
    host: HostNames,
    keep_alive_ms: u32,
}

/// Take the command. The line gets the queue's rules; the result is the queue, and the number of the controller.
pub fn connect(
    capsule: &Capsule<'_>,
    (target, line): (&mut NvmeTarget, &mut ConnectionRules),
    place: QueuePlace,
    now: Instant,
) -> Result<(Connected, u16), ConnectRefusal> {
    let entry = capsule.entry;
    if entry.u16_at(FORMAT_AT) != 0 {
        return Err(Status::CONNECT_FORMAT.into());
    }
    let entries = entry.u16_at(ENTRIES_AT);
    if entries == 0 || entries >= QUEUE_ENTRIES_MAX {
        return Err(in_command(ENTRIES_AT));
    }
    let data = capsule.required()?;
    if data.len() != DATA_BYTES {
        return Err(Status::DATA_LENGTH_INVALID.into());
    }
    let name = |at: usize| Nqn::from_field(&data[at..at + NQN_FIELD_BYTES]).map_err(|_| in_data(at));
    let mut id = [0; 16];
    id.copy_from_slice(&data[..16]);
    let request = Request {
        queue: entry.u16_at(QUEUE_AT),
        controller: u16_at(data, CONTROLLER_AT),
        subsystem: name(SUBSYSTEM_AT)?,
        host: HostNames { nqn: name(HOST_AT)?, id },
        keep_alive_ms: entry.dword(KEEP_ALIVE_DWORD),
    };
    let done = match request.queue {
        0 => admin(request, target, place, now)?,
        // A new server may have taken the place of the one with the admin queue: the host begins again.
        _ => io(&request, target, place, now).map_err(ConnectRefusal::for_now)?,
    };
    line.become_queue(entry.u16_at(QUEUE_AT), entries + 1, entry.0[ATTRIBUTES_AT] & NO_HEAD == 0);
    Ok(done)
}

fn admin(
    request: Request,
    target: &mut NvmeTarget,
    place: QueuePlace,
    now: Instant,
) -> Result<(Connected, u16), ConnectRefusal> {
    if request.controller != ANY_CONTROLLER {
        return Err(in_data(CONTROLLER_AT));
    }
    let subject = subject(&request, target)?;
    let key = target.begin(subject, request.host, place).ok_or(Status::CONNECT_BUSY)?;
    let association = target.association(key).ok_or(Status::CONNECT_BUSY)?;
    association.heard_at = now;
    let controller = association.controller;
    target.set_keep_alive(key, request.keep_alive_ms);
    Ok((Connected::Admin(key, subject), controller))
}

fn subject(request: &Request, target: &NvmeTarget) -> Result<AssociationSubject, ConnectRefusal> {
    if request.subsystem.as_str() == DISCOVERY_NQN {
        return Ok(AssociationSubject::Discovery);
    }
    match target.find(&request.subsystem) {
        Some(index) if target.at(index).subsystem.hosts.has(&request.host.nqn) => Ok(AssociationSubject::Array(index)),
        Some(_) => Err(Status::CONNECT_HOST.into()),
        None if target.is_starting() => Err(Status::CONNECT_BUSY.into()),
        // An array that waits for its members, or was stopped, is served later: its host tries again.
        None => Err(in_data(SUBSYSTEM_AT).for_now()),
    }
}

fn io(
    request: &Request,
    target: &mut NvmeTarget,
    place: QueuePlace,
    now: Instant,
) -> Result<(Connected, u16), ConnectRefusal> {
    let key = target.by_controller(request.controller).ok_or(in_data(CONTROLLER_AT))?;
    let index = target.find(&request.subsystem).ok_or(in_data(SUBSYSTEM_AT))?;
    let array = target.at(index).subsystem.array;
    let association = target.association(key).ok_or(in_data(CONTROLLER_AT))?;
    if association.subject != AssociationSubject::Array(index) || association.admin.port != place.port {
        return Err(in_data(CONTROLLER_AT));
    }
    if association.host.nqn != request.host.nqn {
        return Err(in_data(HOST_AT));
    }
    if association.host.id != request.host.id {
        return Err(in_data(0));
    }
    if association.power != Power::Enabled {
        return Err(Status::COMMAND_SEQUENCE.into());
    }
    if !association.join(request.queue, place.connection) {
        return Err(in_command(QUEUE_AT));
    }
    association.heard_at = now;
    Ok((Connected::Io(key, array), request.controller))
}
