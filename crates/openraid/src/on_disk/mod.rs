//! What stands on members that are not served: the sets that they form, and signs that something in it is wrong.

pub mod bad_blocks;
#[cfg(test)]
pub mod hostile;
pub mod kernels_before_6_19;
pub mod lockless;
pub mod sets;
pub mod split_brain;
pub mod unused_journals;
