//! Answers. An error is a document of RFC 9457, `application/problem+json`: the cause, and what to do.

use openraid_status::Exit;
use serde::Serialize;
use serde_json::json;

use crate::controller::Refusal;

/// An answer.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    /// A document.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_else(|error| panic!("bug: no JSON: {error}"));
        Self { status, headers: vec![("content-type", "application/json".into())], body }
    }

    /// A text of this type.
    pub fn text(kind: &str, text: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: vec![("content-type", kind.into())], body: text.into() }
    }

    /// Nothing but a status.
    pub const fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same with one header more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub status: u16,
    /// A word for programs: the type is `urn:openraid:problem:WORD`.
    pub word: &'static str,
    pub text: String,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// Arguments of its message in Redfish.
    pub arguments: Vec<String>,
    /// The property of the body that it is about.
    pub property: Option<String>,
}

impl Problem {
    /// A problem.
    pub fn new(status: u16, word: &'static str, text: impl Into<String>) -> Self {
        Self { status, word, text: text.into(), headers: Vec::new(), arguments: Vec::new(), property: None }
    }
    /// The request makes no sense.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(400, "bad-request", text)
    }
    /// There is no such thing.
    pub fn missing(text: impl Into<String>) -> Self {
        Self::new(404, "not-found", text)
    }
    /// The same with a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As an answer.
    pub fn reply(&self) -> HttpReply {
        let document = json!({
            "type": format!("urn:openraid:problem:{}", self.word),
            "title": title(self.status),
            "status": self.status,
            "detail": self.text,
        });
        let body = serde_json::to_vec(&document).unwrap_or_else(|error| panic!("bug: no JSON: {error}"));
        let mut headers = vec![("content-type", "application/problem+json".to_owned())];
        headers.extend(self.headers.iter().cloned());
        HttpReply { status: self.status, headers, body }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, word) = match refusal.exit {
            Exit::Usage => (400, "bad-request"),
            Exit::CannotTell => (503, "unavailable"),
            Exit::Error => (500, "failed"),
            _ => (409, "refused"),
        };
        Self::new(status, word, refusal.text)
    }
}

const fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad request",
        401 => "Not signed in",
        403 => "Forbidden",
        404 => "Not found",
        405 => "Method not allowed",
        406 => "Not acceptable",
        408 => "Too slow",
        409 => "Refused",
        412 => "The state has changed",
        413 => "Too large",
        415 => "Wrong type of content",
        421 => "Wrong host",
        428 => "Confirmation needed",
        429 => "Too many requests",
        431 => "Head too large",
        500 => "Failed",
        501 => "Not implemented",
        503 => "Unavailable",
        _ => "Problem",
    }
}
