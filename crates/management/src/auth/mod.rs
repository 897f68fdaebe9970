//! Users, roles, sessions, tokens and one-time links.

pub mod password;
mod private_file;
pub mod secret;
pub mod sessions;
pub mod sign_in_turns;
pub mod tokens;
pub mod users;
