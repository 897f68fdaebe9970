//! Is a drive suitable for an array: its logical block, and its room for data and bitmap? At a start the chunk must be whole
//! blocks of all members.

use alloc::format;
use openraid_format::{BitmapHeader, Superblock};
use openraid_units::{BlockSize, Sectors};

use super::metadata::Metadata;
use super::set::Set;
use crate::admin_answer::AdminError;
use crate::array::new_array::NewMember;
use crate::events::DriveInfo;

/// Is the drive suitable as a member: its blocks, the room for data, the room for the bitmap?
pub(crate) fn check_suits(set: &Set, new: &NewMember, info: DriveInfo) -> Result<(), AdminError> {
    if info.block > set.block() {
        return Err(AdminError::LargerBlock { drive: info.block, array: set.block() });
    }
    // Linux md writes a size into all superblocks; without redundancy it has no meaning.
    let common = set.metadata.as_ref().map(Metadata::common).filter(|common| common.level.is_redundant());
    let need = common.map_or(Sectors::ZERO, |common| common.size);
    if new.superblock.data_size < need {
        let offset = new.superblock.data_offset;
        return Err(AdminError::TooSmallMember { have: new.superblock.data_size, need, offset });
    }
    let header = set.bitmap.as_ref().and_then(|bitmap| BitmapHeader::decode(bitmap.header()).ok());
    let room = new.superblock.bitmap_room(info.capacity).map_or(Sectors::ZERO, |(_, room)| room);
    match header.map(|header| header.geometry().sectors()).filter(|need| *need > room) {
        Some(need) => Err(AdminError::BitmapTooLarge { have: room, need }),
        None => Ok(()),
    }
}

/// No stripe may end within a block: the block would lie on two members, and a member with such blocks could not write
/// its part.
pub(crate) fn check_chunk(common: &Superblock, block: BlockSize) -> Result<(), AdminError> {
    if common.level.is_striped() && !(common.chunk % block.sectors()).is_zero() {
        return Err(AdminError::Refused(format!(
            "the array's logical block is {} bytes, and its chunk of {} bytes is not a multiple of it: Linux refuses such an \
             array too; copy its data to a new one with a larger chunk",
            block.bytes().get(),
            common.chunk.bytes().get()
        )));
    }
    Ok(())
}
