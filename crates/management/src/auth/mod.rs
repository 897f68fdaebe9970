//! Users, roles, sessions, tokens and one-time links.

pub mod password;
mod private;
pub mod sessions;
pub mod token;
pub mod tokens;
pub mod turns;
pub mod users;
