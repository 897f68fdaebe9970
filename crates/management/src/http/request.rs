//! A request as handlers see it: all of it has been read, checked and bounded.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::HeaderMap;
use serde::de::DeserializeOwned;

use super::reply::Problem;
use crate::auth::sessions::UserSession;
use crate::shared_state::ApiState;

pub struct HttpRequest {
    /// What all requests share.
    pub state: Arc<ApiState>,
    /// The parts of the path that the route names.
    pub parts: Vec<String>,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The client's address.
    pub peer: IpAddr,
    /// The session, if the client has one.
    pub session: Option<UserSession>,
}

impl HttpRequest {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A value of the query.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number of the query.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let parse = |text: &str| text.parse().map_err(|_| Problem::bad(format!("{name}={text}: use a whole number")));
        self.asked(name).map(parse).transpose()
    }

    /// Unknown keys of the query are errors.
    ///
    /// # Errors
    /// There is one.
    pub fn know(&self, names: &[&str]) -> Result<(), Problem> {
        match self.query.iter().find(|(key, _)| !names.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) if names.is_empty() => Err(Problem::bad(format!("{key}: this path takes no query"))),
            Some((key, _)) => Err(Problem::bad(format!("{key}: not known here; use {}", names.join(", ")))),
        }
    }

    /// The body as a document.
    ///
    /// # Errors
    /// It is none, or another one.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body).map_err(|error| Problem::bad(format!("the body: {error}")))
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        self.session.as_ref().map_or("anonymous", |session| &session.user)
    }
}
