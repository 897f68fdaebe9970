//! Pure maps from array addresses to member addresses.
