//! Sessions, and requests that bring a name and a password by themselves.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{json, Value};
use utoipa::ToSchema;

use super::time;
use super::{collection, found, link, resource, with};
use crate::api::sign_in::{by_password, verified};
use crate::auth::sessions::UserSession;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::shared_state::ApiState;

/// The collection of sessions.
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A name and a password.
#[derive(Deserialize, ToSchema)]
pub struct Credentials {
    /// The user's name.
    #[serde(rename = "UserName")]
    name: String,
    /// The password.
    #[serde(rename = "Password")]
    password: String,
}

/// The session service.
pub fn service(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let document = resource("/redfish/v1/SessionService", "SessionService", "SessionService", "Sessions");
    Ok(found(&with(
        document,
        json!({
            "ServiceEnabled": true,
            "SessionTimeout": crate::limits::SESSION_IDLE_MAX.as_secs(),
            "Status": {"State": "Enabled", "Health": "OK"},
            "Sessions": link(SESSIONS),
        }),
    )))
}

/// Sessions that the client may see: its own, and all of them for an administrator.
fn visible(request: &HttpRequest) -> Vec<UserSession> {
    let session = request.session.as_ref();
    let is_seen = |other: &UserSession| {
        session.is_some_and(|session| {
            session.role == openraid_status::Role::Administrator || session.number == other.number
        })
    };
    request.state.sessions.all().into_iter().filter(is_seen).collect()
}

/// All sessions.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> = visible(request).iter().map(|session| format!("{SESSIONS}/{}", session.number)).collect();
    Ok(found(&collection(SESSIONS, "SessionCollection", "Sessions", &paths)))
}

fn document(session: &UserSession) -> Value {
    let (path, id) = (format!("{SESSIONS}/{}", session.number), session.number.to_string());
    let more = json!({
        "UserName": session.user,
        "Password": null,
        "CreatedTime": time::text(session.since_seconds),
        "Roles": [session.role.word()],
    });
    with(resource(&path, "Session", &id, "A session"), more)
}

/// One session.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].clone();
    let known = visible(request).into_iter().find(|session| session.number.to_string() == id);
    let known = known.ok_or_else(|| Problem::missing(format!("there is no session {id}")))?;
    Ok(found(&document(&known)))
}

/// Sign in.
pub fn begin(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let Credentials { name, password } = request.input()?;
    let (secret, session) = by_password(request, &name, &password)?;
    let reply = HttpReply::json(201, &document(&session)).with("odata-version", "4.0");
    Ok(reply.with("x-auth-token", secret).with("location", format!("{SESSIONS}/{}", session.number)))
}

/// Sign out.
pub fn end(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].clone();
    let known = visible(request).into_iter().find(|session| session.number.to_string() == id);
    let known = known.ok_or_else(|| Problem::missing(format!("there is no session {id}")))?;
    request.state.sessions.end(known.number);
    Ok(HttpReply::empty(204).with("odata-version", "4.0"))
}

/// Does basic authentication with these words have a session?
pub fn is_known(state: &ApiState, header: &str) -> bool {
    header.split_once(' ').is_some_and(|(_, coded)| state.sessions.of_basic(coded.trim()).is_some())
}

/// The session of a request with basic authentication: one for each name and password, so that not every request costs a hash.
/// Nothing if the header is of another kind.
///
/// # Errors
/// Name and password do not fit.
pub fn basic(state: &ApiState, peer: IpAddr, header: &str) -> Result<Option<UserSession>, Problem> {
    let Some((kind, coded)) = header.split_once(' ') else { return Ok(None) };
    if !kind.eq_ignore_ascii_case("basic") {
        return Ok(None);
    }
    if let Some(known) = state.sessions.of_basic(coded.trim()) {
        return Ok(Some(known));
    }
    let text = decoded(coded.trim()).and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = text.as_deref().and_then(|text| text.split_once(':'));
    let (name, password) =
        pair.ok_or_else(|| Problem::bad("Authorization: Basic has no name and password in base64"))?;
    let user = verified(state, peer, name, password)?;
    Ok(Some(state.sessions.begin_basic(coded.trim(), &user.name, user.role)))
}

/// Base64 as RFC 4648 has it.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = ((bits << 6 | u32::from(value)) & 0xff_ffff, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn base64_is_that_of_the_standards_examples() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for bad in ["Z", "Zg===", "Zm9v!", "Zm 9v"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
