//! Drives are claimed for a set, and released.

use crate::admin::AdminError;
use crate::array::assemble::Assembly;
use crate::array::start::check_chunk;
use crate::io::state::channel::Channels;
use crate::limits::Limits;
use openraid_units::{BlockSize, DriveId};

impl Channels {
    /// The logical block of a set, and the maximum number of rows of one of its operations. The block is the largest of
    /// its members' blocks and of the block in its superblock (Linux 6.19 and later).
    pub(crate) fn block_and_rows_of(
        &self,
        limits: &Limits,
        assembly: &Assembly,
        drives: &[DriveId],
    ) -> Result<(BlockSize, u32), AdminError> {
        let channels = drives.iter().filter_map(|d| self.get(*d));
        let largest = channels.map(|channel| channel.info().block).max();
        let largest = largest.ok_or(AdminError::NotPossible("the array has no member"))?;
        let block = assembly.common.logical_block().map_or(largest, |asked| asked.max(largest));
        check_chunk(&assembly.common, block)?;
        Ok((block, assembly.rows_max(limits, block)?))
    }
}
