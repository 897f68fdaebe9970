//! How long things take: models of what the engine's actions do to time, without any payload.
//!
//! The engine is the one that serves; here its actions meet models of drives, links and processors instead of
//! devices. Time is whole nanoseconds, chance comes from seeded generators, and the same seed is the same run.

pub mod drive;
pub mod machine;
