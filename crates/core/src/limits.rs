//! Every limit of the engine, by name.

/// Members that one redundancy set can have: the width of [`crate::slots::SlotSet`].
pub const MEMBERS_MAX: u16 = 128;
