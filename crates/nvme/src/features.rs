//! Features that a host reads and sets.

use crate::association::{AssociationKey, AssociationSubject};
use crate::async_events::HostNotice;
use crate::capsule::SubmissionEntry;
use crate::limits::IO_QUEUES_MAX;
use crate::status::Status;
use crate::target::NvmeTarget;

const ARBITRATION: u8 = 0x01;
const POWER_MANAGEMENT: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
const QUEUES: u8 = 0x07;
const ATOMIC_WRITES: u8 = 0x0a;
const EVENTS: u8 = 0x0b;
const KEEP_ALIVE: u8 = 0x0f;

/// The host wants a value to outlive the association.
const SAVE: u32 = 1 << 31;

/// Events that hosts of such a subsystem can get.
pub fn events_of(subject: AssociationSubject) -> u32 {
    match subject {
        AssociationSubject::Discovery => HostNotice::Discovery.bit(),
        AssociationSubject::Array(_) => HostNotice::Namespace.bit() | HostNotice::Paths.bit(),
    }
}

fn feature(entry: SubmissionEntry<'_>) -> u8 {
    entry.dword(10).to_le_bytes()[0]
}

fn queues(count: u16) -> u32 {
    u32::from(count - 1) | u32::from(count - 1) << 16
}

/// The current value. There are no saved or default values to choose from.
pub fn get(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<u32, Status> {
    if entry.dword(10) >> 8 & 0b111 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?;
    match (feature(entry), association.subject) {
        (EVENTS, _) => Ok(association.events.enabled),
        (KEEP_ALIVE, _) => Ok(association.keep_alive_ms()),
        (QUEUES, AssociationSubject::Array(_)) => Ok(queues(association.granted)),
        (WRITE_CACHE, AssociationSubject::Array(index)) if target.at(index).subsystem.has_volatile_cache => Ok(1),
        (
            ARBITRATION | POWER_MANAGEMENT | TEMPERATURE | ERROR_RECOVERY | ATOMIC_WRITES,
            AssociationSubject::Array(_),
        ) => Ok(0),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Set a value; the result.
pub fn set(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<u32, Status> {
    if entry.dword(10) & SAVE != 0 {
        return Err(Status::NOT_SAVEABLE);
    }
    let value = entry.dword(11);
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?;
    match (feature(entry), association.subject) {
        (EVENTS, subject) => {
            association.events.enabled = value & events_of(subject);
            Ok(0)
        }
        (KEEP_ALIVE, _) => {
            target.set_keep_alive(key, value);
            Ok(0)
        }
        (QUEUES, AssociationSubject::Array(_)) => {
            let (submission, completion) = (value & 0xffff, value >> 16);
            if submission == 0xffff || completion == 0xffff {
                return Err(Status::INVALID_FIELD);
            }
            if association.has_io_queues() {
                return Err(Status::COMMAND_SEQUENCE);
            }
            // A connection is both queues.
            let wanted = u16::try_from(submission.min(completion) + 1).expect("below 0xffff");
            association.granted = wanted.min(IO_QUEUES_MAX);
            Ok(queues(association.granted))
        }
        (
            ARBITRATION | POWER_MANAGEMENT | TEMPERATURE | ERROR_RECOVERY | ATOMIC_WRITES | WRITE_CACHE,
            AssociationSubject::Array(_),
        ) => Err(Status::NOT_CHANGEABLE),
        _ => Err(Status::INVALID_FIELD),
    }
}
