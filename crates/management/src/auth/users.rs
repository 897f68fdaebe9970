//! The file of users: mode 0600, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::password;
use super::role::Role;
use crate::limits::{USERS_FILE_BYTES_MAX, USERS_MAX};

const SCHEMA: &str = "openraid/users/1";

/// A user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The hash of the password.
    pub password: String,
    /// The user may not come in.
    #[serde(default)]
    pub locked: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    schema: String,
    users: Vec<User>,
}

/// The users of a server.
#[derive(Debug)]
pub struct Users {
    path: PathBuf,
    /// One change at a time.
    changing: Mutex<()>,
}

impl Users {
    /// The users in this file, which need not be there yet.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, changing: Mutex::default() }
    }

    /// All users.
    ///
    /// # Errors
    /// The file cannot be read, is none of users, or others may read it.
    pub fn all(&self) -> Result<Vec<User>, String> {
        let wrong = |why: String| format!("the file of users {}: {why}", self.path.display());
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(|error| wrong(error.to_string()))?,
        };
        let mode = file.metadata().map_err(|error| wrong(error.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(wrong(format!("its mode is {mode:03o}, so that others may read or change it; chmod 600 it")));
        }
        let mut text = String::new();
        let read = file.take(USERS_FILE_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| wrong(error.to_string()))?;
        let content: Content = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if content.schema != SCHEMA {
            return Err(wrong(format!("its format is {:?}, not {SCHEMA:?}", content.schema)));
        }
        Ok(content.users)
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
        self.write(&Content { schema: SCHEMA.into(), users })
            .map_err(|error| format!("the file of users {} cannot be written: {error}", self.path.display()))?;
        Ok(result)
    }

    fn write(&self, content: &Content) -> std::io::Result<()> {
        let folder = self.path.parent().ok_or(ErrorKind::NotFound)?;
        fs::create_dir_all(folder)?;
        let fresh = self.path.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        serde_json::to_writer_pretty(&mut file, content)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        File::open(folder)?.sync_all()
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
