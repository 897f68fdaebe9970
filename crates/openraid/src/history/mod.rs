//! What happened to arrays earlier, kept next to the registry: checks and repairs, patrol reads, members that left.

pub mod departures;
pub mod last_checks;
pub mod past_checks;
pub mod patrols;
