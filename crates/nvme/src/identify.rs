//! Pages about controllers and namespaces.

use crate::association::{Association, AssociationKey, AssociationSubject};
use crate::capsule::SubmissionEntry;
use crate::features::events_of;
use crate::limits::{
    EVENT_REQUESTS_MAX, IN_CAPSULE_BYTES_MAX, KEEP_ALIVE_UNIT, LOG_BYTES_MAX, PATH_CHANGE_TIME_MAX, QUEUE_ENTRIES_MAX,
    RANGES_MAX, RANGE_BYTES_MAX, READY_TIME_MAX, TRANSFER_PAGES_LOG2,
};
use crate::nqn::{DISCOVERY_NQN, NQN_FIELD_BYTES};
use crate::registers::VERSION;
use crate::status::Status;
use crate::subsystem::Subsystem;
use crate::target::NvmeTarget;
use crate::wire::{put, put_text};

/// Bytes of each page.
pub const PAGE_BYTES: u32 = 4096;
/// The one namespace of a subsystem.
pub const NAMESPACE: u32 = 1;
/// The number that stands for all namespaces.
pub const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// The group of paths that the namespace is in.
pub const PATH_GROUP: u32 = 1;
/// The model that hosts see.
const MODEL: &str = "openraid";

/// Kinds of pages.
const NAMESPACE_PAGE: u8 = 0x00;
const CONTROLLER_PAGE: u8 = 0x01;
const NAMESPACES: u8 = 0x02;
const DESCRIPTORS: u8 = 0x03;
const NAMESPACE_OF_SET: u8 = 0x05;
const CONTROLLER_OF_SET: u8 = 0x06;
const NAMESPACES_OF_SET: u8 = 0x07;
const NAMESPACE_OF_ANY_SET: u8 = 0x08;

/// The page that the command asks for.
pub fn page(entry: SubmissionEntry<'_>, target: &mut NvmeTarget, key: AssociationKey) -> Result<Vec<u8>, Status> {
    entry.expects(PAGE_BYTES)?;
    let association = target.association(key).ok_or(Status::COMMAND_SEQUENCE)?.clone();
    let mut page = vec![0; crate::wire::wide(PAGE_BYTES)];
    let kind = entry.dword(10).to_le_bytes()[0];
    let index = match association.subject {
        AssociationSubject::Discovery if kind == CONTROLLER_PAGE => {
            discovery_controller(&association, target, &mut page);
            return Ok(page);
        }
        AssociationSubject::Discovery => return Err(Status::INVALID_FIELD),
        AssociationSubject::Array(index) => index,
    };
    let subsystem = &target.at(index).subsystem;
    let is_nvm = entry.dword(11) >> 24 == 0;
    match kind {
        CONTROLLER_PAGE => controller(&association, index, target, &mut page),
        CONTROLLER_OF_SET if is_nvm => controller_of_set(subsystem, &mut page),
        NAMESPACES => namespaces(entry.namespace(), &mut page)?,
        NAMESPACES_OF_SET if is_nvm => namespaces(entry.namespace(), &mut page)?,
        NAMESPACE_PAGE | DESCRIPTORS | NAMESPACE_OF_SET | NAMESPACE_OF_ANY_SET if entry.namespace() != NAMESPACE => {
            return Err(Status::INVALID_NAMESPACE);
        }
        NAMESPACE_PAGE => namespace(subsystem, &mut page),
        DESCRIPTORS => descriptors(subsystem, &mut page),
        // The NVM command set adds nothing that is used here.
        NAMESPACE_OF_SET if is_nvm => {}
        NAMESPACE_OF_ANY_SET => namespace_of_any_set(subsystem, &mut page),
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(page)
}

/// What controllers of both kinds say.
fn common(association: &Association, (name, serial): (&str, &str), target: &NvmeTarget, page: &mut [u8]) {
    put_text(page, (4, 20), serial, b' ');
    put_text(page, (24, 40), MODEL, b' ');
    put_text(page, (64, 8), &target.settings().version, b' ');
    put(page, 78, &association.controller.to_le_bytes());
    put(page, 80, &VERSION.to_le_bytes());
    put(page, 92, &events_of(association.subject).to_le_bytes());
    // Host identifiers of 128 bits; any command is a sign of life.
    put(page, 96, &(1_u32 | 1 << 6).to_le_bytes());
    page[259] = u8::try_from(EVENT_REQUESTS_MAX - 1).expect("few");
    // The log pages can be read in parts.
    page[261] = 1 << 2;
    let unit = u16::try_from(KEEP_ALIVE_UNIT.get() / 100_000_000).expect("in units of 100 ms");
    put(page, 320, &unit.to_le_bytes());
    put(page, 514, &QUEUE_ENTRIES_MAX.to_le_bytes());
    // Descriptors of data instead of PRP, also with an offset into the capsule.
    put(page, 536, &(1_u32 | 1 << 20).to_le_bytes());
    put_text(page, (768, NQN_FIELD_BYTES), name, 0);
    put(page, 1792, &((64 + IN_CAPSULE_BYTES_MAX) / 16).to_le_bytes());
    put(page, 1796, &1_u32.to_le_bytes());
    page[1803] = 1;
}

fn discovery_controller(association: &Association, target: &NvmeTarget, page: &mut [u8]) {
    common(association, (DISCOVERY_NQN, MODEL), target, page);
    page[77] = u8::try_from((LOG_BYTES_MAX / 4096).ilog2()).expect("a logarithm");
    page[111] = 2;
}

fn controller(association: &Association, index: usize, target: &NvmeTarget, page: &mut [u8]) {
    let offered = target.at(index);
    let subsystem = &offered.subsystem;
    common(association, (offered.nqn.as_str(), &subsystem.serial()), target, page);
    // More than one port, more than one controller, states of paths.
    page[76] = 1 << 0 | 1 << 1 | 1 << 3;
    page[77] = TRANSFER_PAGES_LOG2;
    let ready = u32::try_from(READY_TIME_MAX.as_secs()).expect("seconds") * 1_000_000;
    put(page, 84, &ready.to_le_bytes());
    put(page, 88, &ready.to_le_bytes());
    page[111] = 1;
    // One firmware slot, read-only.
    page[260] = 1 << 0 | 1 << 1;
    // The effects of commands can be read, too.
    page[261] |= 1 << 1;
    page[342] = u8::try_from(PATH_CHANGE_TIME_MAX.as_secs()).expect("seconds");
    // Optimized, non-optimized, inaccessible, lost, changing; a namespace stays in its group.
    page[343] = 0b1_1111 | 1 << 6;
    put(page, 344, &PATH_GROUP.to_le_bytes());
    put(page, 348, &1_u32.to_le_bytes());
    page[512] = 0x66;
    page[513] = 0x44;
    put(page, 516, &NAMESPACE.to_le_bytes());
    // Deallocation, Write Zeroes.
    put(page, 520, &(1_u16 << 2 | 1 << 3).to_le_bytes());
    // A cache if there is one; Flush may name all namespaces.
    page[525] = 0b110 | u8::from(subsystem.has_volatile_cache);
    put(page, 540, &NAMESPACE.to_le_bytes());
}

fn controller_of_set(subsystem: &Subsystem, page: &mut [u8]) {
    // The number 256 does not fit the field, and 255 serves as well.
    page[3] = u8::try_from(RANGES_MAX.min(255)).expect("at most 255");
    let blocks = RANGE_BYTES_MAX / subsystem.block.bytes().get();
    put(page, 4, &u32::try_from(blocks).expect("a range is below 4 Gi blocks").to_le_bytes());
}

/// Namespaces with a larger number than `after`.
fn namespaces(after: u32, page: &mut [u8]) -> Result<(), Status> {
    if after >= ALL_NAMESPACES - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    if after < NAMESPACE {
        put(page, 0, &NAMESPACE.to_le_bytes());
    }
    Ok(())
}

/// A number of blocks less one, for a field of 16 bits.
fn blocks_less_one(bytes: openraid_units::Bytes, subsystem: &Subsystem) -> [u8; 2] {
    let blocks = bytes / subsystem.block.bytes();
    u16::try_from(blocks.saturating_sub(1)).unwrap_or(u16::MAX).to_le_bytes()
}

fn namespace(subsystem: &Subsystem, page: &mut [u8]) {
    for at in [0, 8, 16] {
        put(page, at, &subsystem.blocks().to_le_bytes());
    }
    // The fields about efficient sizes hold.
    page[24] = 1 << 4;
    page[30] = shared();
    let write = blocks_less_one(subsystem.preferred.write, subsystem);
    for at in [64, 66, 68, 70] {
        put(page, at, &write);
    }
    put(page, 72, &blocks_less_one(subsystem.preferred.optimal, subsystem));
    put(page, 92, &PATH_GROUP.to_le_bytes());
    page[99] = u8::from(subsystem.is_read_only);
    put(page, 104, &subsystem.uuid);
    page[130] = u8::try_from(subsystem.block.bytes().get().ilog2()).expect("a logarithm");
}

/// More than one controller can have the namespace.
const fn shared() -> u8 {
    1
}

fn namespace_of_any_set(subsystem: &Subsystem, page: &mut [u8]) {
    page[1] = shared();
    put(page, 4, &PATH_GROUP.to_le_bytes());
    page[8] = u8::from(subsystem.is_read_only);
    // Ready.
    page[14] = 1;
}

/// The namespace's names: NGUID, UUID, and the NVM command set.
fn descriptors(subsystem: &Subsystem, page: &mut [u8]) {
    const NGUID: u8 = 2;
    const UUID: u8 = 3;
    const COMMAND_SET: u8 = 4;
    put(page, 0, &[NGUID, 16]);
    put(page, 4, &subsystem.uuid);
    put(page, 20, &[UUID, 16]);
    put(page, 24, &subsystem.uuid);
    put(page, 40, &[COMMAND_SET, 1]);
}
