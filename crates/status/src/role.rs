//! Roles, as DMTF names them.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The rights of a user. Each role includes the roles before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
pub enum Role {
    /// Read everything but users.
    ReadOnly,
    /// Change settings and members, run checks, acknowledge events and alarms.
    Operator,
    /// Make and stop arrays, change users.
    Administrator,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Role {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Administrator, Self::Operator, Self::ReadOnly];

    /// The word in documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::Operator => "Operator",
            Self::Administrator => "Administrator",
        }
    }

    /// Read a role.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word().eq_ignore_ascii_case(text))
    }
}
