//! Commands on the admin queue.

use crate::association::{AssociationKey, AssociationSubject, Power};
use crate::capsule::SubmissionEntry;
use crate::status::Status;
use crate::target::NvmeTarget;
use crate::{features, identify, log_pages, registers};

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0a;
const EVENT_REQUEST: u8 = 0x0c;
const KEEP_ALIVE: u8 = 0x18;

/// All admin opcodes of the target.
pub const OPCODES: [u8; 7] = [GET_LOG_PAGE, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT_REQUEST, KEEP_ALIVE];

/// The end of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminAnswer {
    /// Success with this result.
    Done(u64),
    /// Success with this data.
    Data(Vec<u8>),
    /// The answer comes when there is news.
    Held,
}

/// Do a command of an association that exists.
pub fn handle(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<AdminAnswer, Status> {
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?;
    if entry.is_fused() {
        return Err(Status::INVALID_FIELD);
    }
    if association.events.has(entry.id()) {
        return Err(Status::COMMAND_ID_CONFLICT);
    }
    if entry.opcode() == registers::OPCODE {
        return match entry.fabrics_type() {
            registers::PROPERTY_GET => registers::get(entry, association).map(AdminAnswer::Done),
            registers::PROPERTY_SET => registers::set(entry, target, key).map(|()| AdminAnswer::Done(0)),
            registers::CONNECT => Err(Status::COMMAND_SEQUENCE),
            _ => Err(Status::INVALID_OPCODE),
        };
    }
    if association.power != Power::Enabled && entry.opcode() != KEEP_ALIVE {
        return Err(Status::COMMAND_SEQUENCE);
    }
    match (entry.opcode(), association.subject) {
        (KEEP_ALIVE, _) => Ok(AdminAnswer::Done(0)),
        (IDENTIFY, _) => identify::page(entry, target, key).map(AdminAnswer::Data),
        (GET_LOG_PAGE, _) => log_pages::part(entry, target, key).map(AdminAnswer::Data),
        (GET_FEATURES, _) => features::get(entry, target, key).map(|value| AdminAnswer::Done(u64::from(value))),
        (SET_FEATURES, _) => features::set(entry, target, key).map(|value| AdminAnswer::Done(u64::from(value))),
        (EVENT_REQUEST, _) => association.events.hold(entry.id()).map(|()| AdminAnswer::Held),
        // The command to abort is done already, or cannot be stopped.
        (ABORT, AssociationSubject::Array(_)) => Ok(AdminAnswer::Done(1)),
        _ => Err(Status::INVALID_OPCODE),
    }
}
