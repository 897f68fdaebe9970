//! Tokens that last until they are revoked: scripts and a remote Prometheus keep theirs over restarts of the server.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use openraid_status::Role;
use serde::{Deserialize, Serialize};

use super::private_file::PrivateFile;
use super::secret::{digest, is_same, secret};
use super::sessions::clock;
use super::users::check_name;
use crate::limits::TOKENS_MAX;

/// The beginning of each token, by which scanners for secrets know it.
const PREFIX: &str = "openraid_";

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionToken {
    pub name: String,
    /// The role of its holder.
    pub role: Role,
    /// Seconds since 1970 at which it was made.
    pub since_seconds: u64,
    /// SHA-256 of the secret, in hexadecimal digits.
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    tokens: Vec<SessionToken>,
}

/// The tokens of a server.
#[derive(Debug)]
pub struct Tokens {
    file: PrivateFile,
    /// One change at a time.
    changing: Mutex<()>,
}

impl Tokens {
    /// The tokens in this file, which need not be there yet.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { file: PrivateFile::at(path, "tokens", "openraid/tokens/1"), changing: Mutex::default() }
    }

    /// All tokens, in the order of their names.
    ///
    /// # Errors
    /// The file cannot be read, has another format, or others may read it.
    pub fn all(&self) -> Result<Vec<SessionToken>, String> {
        Ok(self.file.read::<Content>()?.map_or_else(Vec::new, |content| content.tokens))
    }

    /// The token with this secret.
    pub fn find(&self, secret: &str) -> Option<SessionToken> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        let digest = digest(secret);
        self.all().ok()?.into_iter().find(|token| is_same(&token.digest, &digest))
    }

    /// Make a token. Returns its secret, which is stored nowhere, and its public part.
    ///
    /// # Errors
    /// The name is taken or is no name, there are too many tokens, or the file cannot be written.
    pub fn make(&self, name: &str, role: Role) -> Result<(String, SessionToken), String> {
        check_name(name).map_err(|_| "the name of a token has 1 to 64 letters, digits or any of - . _ @".to_owned())?;
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.all()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(format!("there is a token named {name} already; revoke it first"));
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(format!("at most {TOKENS_MAX} tokens are possible; revoke one first"));
        }
        let secret = format!("{PREFIX}{}", secret());
        let token = SessionToken { name: name.into(), role, since_seconds: clock(), digest: digest(&secret) };
        tokens.push(token.clone());
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        self.file.write(Content { tokens })?;
        Ok((secret, token))
    }

    /// Revoke a token; its holder is refused from now on.
    ///
    /// # Errors
    /// There is no token of this name, or the file cannot be written.
    pub fn revoke(&self, name: &str) -> Result<(), RevokeError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.all().map_err(RevokeError::File)?;
        let Some(nth) = tokens.iter().position(|token| token.name == name) else {
            return Err(RevokeError::Unknown(tokens.into_iter().map(|token| token.name).collect()));
        };
        tokens.remove(nth);
        self.file.write(Content { tokens }).map_err(RevokeError::File)
    }
}

/// Why a token was not revoked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RevokeError {
    /// There is no token of this name; the names that there are.
    Unknown(Vec<String>),
    /// The file cannot be read or written.
    File(String),
}

impl std::fmt::Display for RevokeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(names) if names.is_empty() => f.write_str("there is no token"),
            Self::Unknown(names) => write!(f, "there is no token of this name; there are: {}", names.join(", ")),
            Self::File(why) => f.write_str(why),
        }
    }
}
