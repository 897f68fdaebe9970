//! Registers of a controller, which a host reads and sets by commands.

use crate::association::{Association, AssociationKey, AssociationSubject, Power};
use crate::capsule::SubmissionEntry;
use crate::limits::{QUEUE_ENTRIES_MAX, READY_TIME_MAX};
use crate::status::Status;
use crate::target::NvmeTarget;

/// The opcode of all commands of fabrics.
pub const OPCODE: u8 = 0x7f;
/// Types of these commands.
pub const PROPERTY_SET: u8 = 0x00;
pub const CONNECT: u8 = 0x01;
pub const PROPERTY_GET: u8 = 0x04;

/// The version of the base specification: 2.0.
pub const VERSION: u32 = 0x0002_0000;

const CAPABILITIES_AT: u32 = 0x00;
const VERSION_AT: u32 = 0x08;
const CONFIGURATION_AT: u32 = 0x14;
const STATUS_AT: u32 = 0x1c;
const READY_TIMES_AT: u32 = 0x68;

/// Bits of the configuration.
const ENABLE: u32 = 1;
const SHUTDOWN_MASK: u32 = 0b11 << 14;
/// Command set, page size, arbitration: all zero.
const FORMS_MASK: u32 = 0b111 << 4 | 0b1111 << 7 | 0b111 << 11;
/// Sizes of queue entries, and the only values of an I/O controller: 64 and 16 bytes.
const ENTRY_SIZES_MASK: u32 = 0b1111 << 16 | 0b1111 << 20;
const ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;

/// The time until a controller is ready, in units of 500 ms.
fn ready_time() -> u8 {
    u8::try_from(READY_TIME_MAX.get() / 500_000_000).expect("below 128 seconds")
}

/// Queue entries less one; contiguous queues; ready time; the NVM command set; ready when media are.
fn capabilities() -> u64 {
    u64::from(QUEUE_ENTRIES_MAX - 1) | 1 << 16 | u64::from(ready_time()) << 24 | 1 << 37 | 1 << 59
}

fn status(association: &Association) -> u32 {
    const READY: u32 = 1;
    const FATAL: u32 = 1 << 1;
    const SHUTDOWN_COMPLETE: u32 = 0b10 << 2;
    match association.power {
        Power::Disabled => 0,
        Power::Enabled => READY,
        Power::ShutDown => SHUTDOWN_COMPLETE | (association.configuration & ENABLE),
        Power::Failed => FATAL,
    }
}

/// The value of a register.
pub fn get(entry: SubmissionEntry<'_>, association: &Association) -> Result<u64, Status> {
    let is_long = match entry.0[40] & 0b111 {
        0 => false,
        1 => true,
        _ => return Err(Status::INVALID_FIELD),
    };
    match (entry.dword(11), is_long) {
        (CAPABILITIES_AT, true) => Ok(capabilities()),
        (VERSION_AT, false) => Ok(u64::from(VERSION)),
        (CONFIGURATION_AT, false) => Ok(u64::from(association.configuration)),
        (STATUS_AT, false) => Ok(u64::from(status(association))),
        (READY_TIMES_AT, false) => Ok(u64::from(ready_time())),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Set a register: only the configuration can be set.
pub fn set(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<(), Status> {
    let is_long = entry.0[40] & 0b111 != 0;
    if is_long || entry.dword(11) != CONFIGURATION_AT {
        return Err(Status::INVALID_FIELD);
    }
    let value = entry.dword(12);
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?;
    association.configuration = value;
    let is_on = value & ENABLE != 0;
    if value & SHUTDOWN_MASK != 0 {
        association.power = Power::ShutDown;
        return Ok(());
    }
    match (association.power, is_on) {
        (Power::Disabled, true) => {
            let is_io = association.subject != AssociationSubject::Discovery;
            let is_known = value & FORMS_MASK == 0 && (!is_io || value & ENTRY_SIZES_MASK == ENTRY_SIZES);
            association.power = if is_known { Power::Enabled } else { Power::Failed };
        }
        (Power::Disabled, false) | (Power::Enabled | Power::ShutDown | Power::Failed, true) => {}
        (Power::Enabled | Power::ShutDown | Power::Failed, false) => {
            association.reset();
            target.close_io_queues(key);
        }
    }
    Ok(())
}
