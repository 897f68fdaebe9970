//! The logical block in superblocks, and its effect on older Linux kernels.
//!
//! Linux 6.19 stores the logical block of an array at offset 224 of each superblock. Older kernels require zeroes there
//! and refuse the array ("does not have a valid v1.2 superblock").

use openraid_runtime::member::ProbedMember;
use openraid_status::shell_quoting::command;
use openraid_units::BlockSize;

use crate::on_disk::sets::SetPlan;

/// The field's effect on older kernels.
pub const REFUSED_BEFORE_6_19: &str = "kernels before 6.19 refuse a superblock that names it";

/// The logical block in the superblocks of a set: the largest.
pub fn logical_block(set: &SetPlan, members: &[ProbedMember]) -> Option<BlockSize> {
    set.members.iter().filter_map(|place| members[*place].look.superblock.as_ref()?.logical_block()).max()
}

/// The largest logical block of a set's drives, which is what older kernels give the array.
pub fn drives_block(set: &SetPlan, members: &[ProbedMember]) -> BlockSize {
    set.members.iter().map(|place| members[*place].info.block).max().unwrap_or(BlockSize::B512)
}

/// The same as text, with the remedy.
pub fn note(set: &SetPlan, members: &[ProbedMember]) -> Option<String> {
    let (named, drives) = (logical_block(set, members)?, drives_block(set, members));
    let what = format!(
        "logical block: its superblocks name {} bytes, as Linux 6.19 and later write it; kernels before 6.19 refuse the array \
         (\"does not have a valid v1.2 superblock\")",
        named.bytes().get()
    );
    let names: Vec<&str> = set.members.iter().map(|place| members[*place].spec.text.as_str()).collect();
    let update = command("update --for-kernels-before 6.19", names);
    Some(if named <= drives {
        format!("{what}; to use it with one of them: {update}")
    } else {
        format!(
            "{what}; the drives have logical blocks of {} bytes, which is what those kernels would give the array: see \
             `{update}`",
            drives.bytes().get()
        )
    })
}
