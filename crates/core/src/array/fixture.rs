//! Metadata for tests that need no engine.

use alloc::vec::Vec;
use openraid_format::{MdLevel, MinorVersion, SetName, Timestamp, Uuid};
use openraid_units::{Bytes, DriveId, Sectors};

use super::metadata::Metadata;
use super::new_array::{plan, CreateSpec, NewDrive};

/// The superblocks of a new mirror.
pub(crate) fn metadata() -> Metadata {
    let capacity = Bytes::mib(16).sectors_floor();
    let drive = |number| NewDrive { drive: DriveId(number), capacity, uuid: Uuid([number.to_le_bytes()[0] + 1; 16]) };
    let spec = CreateSpec {
        uuid: Uuid([9; 16]),
        name: SetName::new(None, "wave").unwrap(),
        created: Timestamp::new(0, 0),
        level: MdLevel::Raid1,
        layout: 0,
        chunk: Sectors::ZERO,
        minor: MinorVersion::V1_2,
        slots: [0, 1].map(|number| Some(drive(number))).to_vec(),
        spares: Vec::new(),
        size: None,
        assume_clean: true,
        bitmap: false,
        ppl: false,
    };
    Metadata::new(plan(&spec).unwrap().common)
}
