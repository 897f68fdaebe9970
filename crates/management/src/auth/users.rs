//! Users and their passwords, in a file.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use openraid_status::Role;
use serde::{Deserialize, Serialize};

use super::password;
use super::private_file::PrivateFile;
use crate::limits::USERS_MAX;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub name: String,
    pub role: Role,
    /// The hash of the password.
    pub password: String,
    /// The user may not come in.
    #[serde(default)]
    pub locked: bool,
}

#[derive(Serialize, Deserialize)]
struct Content {
    users: Vec<User>,
}

/// The users of a server.
#[derive(Debug)]
pub struct Users {
    file: PrivateFile,
    /// One change at a time.
    changing: Mutex<()>,
}

impl Users {
    /// The users in this file, which need not be there yet.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { file: PrivateFile::at(path, "users", "openraid/users/1"), changing: Mutex::default() }
    }

    /// All users.
    ///
    /// # Errors
    /// The file cannot be read, is none of users, or others may read it.
    pub fn all(&self) -> Result<Vec<User>, String> {
        Ok(self.file.read::<Content>()?.map_or_else(Vec::new, |content| content.users))
    }

    /// The user with this name and password.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check(&self, name: &str, secret: &str) -> Result<Option<User>, String> {
        let found = self.all()?.into_iter().find(|user| user.name == name && !user.locked);
        Ok(password::fits(secret, found.as_ref().map(|user| user.password.as_str())).then_some(found).flatten())
    }

    /// Change the list of users.
    ///
    /// # Errors
    /// The change is refused, the file cannot be read or written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<User>) -> Result<T, String>) -> Result<T, String> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut users = self.all()?;
        let result = change(&mut users)?;
        if users.len() > USERS_MAX {
            return Err(format!("at most {USERS_MAX} users are possible"));
        }
        self.file.write(Content { users })?;
        Ok(result)
    }
}

/// Check the name of a new user.
///
/// # Errors
/// The text says which names are allowed.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        return Err("the name of a user has 1 to 64 letters, digits or any of - . _ @".into());
    }
    Ok(())
}
