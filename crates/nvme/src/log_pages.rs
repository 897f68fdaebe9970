//! Log pages.

use crate::association::{Association, AssociationKey, AssociationSubject};
use crate::async_events::HostNotice;
use crate::capsule::SubmissionEntry;
use crate::identify::{NAMESPACE, PATH_GROUP};
use crate::limits::LOG_BYTES_MAX;
use crate::status::Status;
use crate::target::{NvmeTarget, OfferedArray};
use crate::wire::{narrow, put, put_text};
use crate::{admin_commands, discovery, io_commands};

const SUPPORTED: u8 = 0x00;
const ERRORS: u8 = 0x01;
const HEALTH: u8 = 0x02;
const FIRMWARE: u8 = 0x03;
pub const CHANGED_NAMESPACES: u8 = 0x04;
const EFFECTS: u8 = 0x05;
pub const PATHS: u8 = 0x0c;
pub const DISCOVERY: u8 = 0x70;

/// Logs of the two kinds of controllers.
const OF_ARRAYS: [u8; 7] = [SUPPORTED, ERRORS, HEALTH, FIRMWARE, CHANGED_NAMESPACES, EFFECTS, PATHS];
const OF_DISCOVERY: [u8; 3] = [SUPPORTED, ERRORS, DISCOVERY];

/// What a host asks for.
struct LogRequest {
    log: u8,
    /// A field whose meaning depends on the log.
    specific: u8,
    /// The event about the log stays as it is.
    is_event_kept: bool,
    len: u32,
    offset: u64,
}

fn asked(entry: SubmissionEntry<'_>) -> Result<LogRequest, Status> {
    let [log, flags, low, high] = entry.dword(10).to_le_bytes();
    let [upper_low, upper_high, _, _] = entry.dword(11).to_le_bytes();
    let words = u64::from(u32::from_le_bytes([low, high, upper_low, upper_high])) + 1;
    let len = u32::try_from(4 * words).ok().filter(|len| *len <= LOG_BYTES_MAX).ok_or(Status::INVALID_FIELD)?;
    let offset = entry.quad(12);
    if !offset.is_multiple_of(4) {
        return Err(Status::INVALID_FIELD);
    }
    Ok(LogRequest { log, specific: flags & 0x7f, is_event_kept: flags & 0x80 != 0, len, offset })
}

/// The part of the log that the command asks for; zeroes after the log's end.
pub fn part(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<Vec<u8>, Status> {
    let asked = asked(entry)?;
    entry.expects(asked.len)?;
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?.clone();
    let whole = match association.subject {
        AssociationSubject::Discovery => of_discovery(&asked, &association, target)?,
        AssociationSubject::Array(index) => of_array(&asked, &association, target.at(index), target)?,
    };
    let start = usize::try_from(asked.offset).map_err(|_| Status::INVALID_FIELD)?;
    let rest = whole.get(start..).ok_or(Status::INVALID_FIELD)?;
    let mut part = vec![0; crate::wire::wide(asked.len)];
    let count = rest.len().min(part.len());
    part[..count].copy_from_slice(&rest[..count]);
    if !asked.is_event_kept {
        let notices = [HostNotice::Namespace, HostNotice::Paths, HostNotice::Discovery];
        if let Some(notice) = notices.into_iter().find(|notice| notice.log() == asked.log) {
            target.association(key).ok_or(Status::COMMAND_SEQUENCE)?.events.read(notice);
        }
    }
    Ok(part)
}

fn of_discovery(asked: &LogRequest, association: &Association, target: &NvmeTarget) -> Result<Vec<u8>, Status> {
    match asked.log {
        SUPPORTED => Ok(supported(&OF_DISCOVERY)),
        // No entry.
        ERRORS => Ok(vec![0; 64]),
        DISCOVERY => Ok(discovery::log(association, target)),
        _ => Err(Status::INVALID_LOG_PAGE),
    }
}

fn of_array(
    asked: &LogRequest,
    association: &Association,
    offered: &OfferedArray,
    target: &NvmeTarget,
) -> Result<Vec<u8>, Status> {
    match asked.log {
        SUPPORTED => Ok(supported(&OF_ARRAYS)),
        // No entry.
        ERRORS => Ok(vec![0; 64]),
        HEALTH => Ok(health(offered)),
        FIRMWARE => Ok(firmware(&target.settings().version)),
        CHANGED_NAMESPACES => {
            let mut page = vec![0; 4096];
            if association.events.is_unread(HostNotice::Namespace) {
                put(&mut page, 0, &NAMESPACE.to_le_bytes());
            }
            Ok(page)
        }
        EFFECTS => Ok(effects()),
        PATHS => Ok(paths(asked, association, offered)),
        _ => Err(Status::INVALID_LOG_PAGE),
    }
}

fn supported(logs: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 1024];
    for log in logs {
        page[4 * usize::from(*log)] = 1;
    }
    page
}

fn health(offered: &OfferedArray) -> Vec<u8> {
    const READ_ONLY: u8 = 1 << 3;
    let mut page = vec![0; 512];
    page[0] = if offered.subsystem.is_read_only { READ_ONLY } else { 0 };
    // Available spare, in percent. There is none to use up.
    page[3] = 100;
    page
}

fn firmware(version: &str) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = 1;
    put_text(&mut page, (8, 8), version, b' ');
    page
}

fn effects() -> Vec<u8> {
    const SUPPORTED: u32 = 1 << 0;
    const CHANGES_CONTENT: u32 = 1 << 1;
    let mut page = vec![0; 4096];
    for opcode in admin_commands::OPCODES {
        put(&mut page, 4 * usize::from(opcode), &SUPPORTED.to_le_bytes());
    }
    for opcode in io_commands::OPCODES {
        let changes = if io_commands::is_writing(opcode) { CHANGES_CONTENT } else { 0 };
        put(&mut page, 1024 + 4 * usize::from(opcode), &(SUPPORTED | changes).to_le_bytes());
    }
    page
}

/// The states of paths: one group, with the one namespace.
fn paths(asked: &LogRequest, association: &Association, offered: &OfferedArray) -> Vec<u8> {
    const GROUPS_ONLY: u8 = 1;
    let namespaces: &[u32] = if asked.specific & GROUPS_ONLY != 0 { &[] } else { &[NAMESPACE] };
    let mut page = vec![0; 48];
    put(&mut page, 0, &offered.path_changes.to_le_bytes());
    put(&mut page, 8, &1_u16.to_le_bytes());
    put(&mut page, 16, &PATH_GROUP.to_le_bytes());
    put(&mut page, 20, &narrow(namespaces.len()).to_le_bytes());
    put(&mut page, 24, &offered.path_changes.to_le_bytes());
    page[32] = offered.paths[association.admin.port.index()].code();
    page.extend(namespaces.iter().flat_map(|namespace| namespace.to_le_bytes()));
    page
}
