//! Users, roles, sessions and one-time links.

pub mod password;
pub mod role;
pub mod sessions;
pub mod token;
pub mod users;
