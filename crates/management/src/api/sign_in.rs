//! Signing in and out.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::sessions::UserSession;
use crate::auth::users::User;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::http::serve::COOKIE;
use crate::limits::{SESSION_TIME_MAX, WRONG_PASSWORD_WAIT};
use crate::shared_state::ApiState;
use openraid_status::Role;

/// How a client signs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// Secret of a link that signs in once.
    #[serde(default)]
    one_time: Option<String>,
    /// Name of the user.
    #[serde(default)]
    name: Option<String>,
    /// Password of the user.
    #[serde(default)]
    password: Option<String>,
}

/// A session.
#[derive(Serialize, ToSchema)]
pub struct SessionModel {
    /// Name of the user.
    pub user: String,
    /// Role of the user.
    pub role: Role,
    /// Did the session begin with a one-time link?
    pub by_link: bool,
    /// Name of the machine.
    pub host: String,
    /// Has no user a password yet?
    pub first: bool,
    /// Secret of a new session, to be sent as `Authorization: Bearer TOKEN`; null later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

fn model(request: &HttpRequest, session: &UserSession, token: Option<String>) -> SessionModel {
    let first = request.state.users.all().is_ok_and(|users| users.is_empty());
    let host = request.state.machine.host.clone().unwrap_or_default();
    SessionModel { user: session.user.clone(), role: session.role, by_link: session.by_link, host, first, token }
}

/// The user with this name and password.
///
/// # Errors
/// They do not fit, or too many of this user from this address did not.
pub fn verified(state: &ApiState, peer: IpAddr, name: &str, password: &str) -> Result<User, Problem> {
    let sessions = &state.sessions;
    if !sessions.may_try(peer, name) {
        let wait = WRONG_PASSWORD_WAIT.as_secs();
        let text = format!("too many wrong passwords for this user came from this address; wait {wait} s");
        return Err(Problem::new(429, "too-many-requests", text).with("retry-after", wait.to_string()));
    }
    let found = state.users.check(name, password).map_err(|why| Problem::new(500, "failed", why))?;
    sessions.tried(peer, name, found.is_some());
    found.ok_or_else(|| {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        state.controller.audit(None, format!("HTTP: {shown:?} at {peer} did not sign in"));
        Problem::new(401, "wrong-password", "the name or the password is wrong")
    })
}

/// Begin a session with a name and a password.
///
/// # Errors
/// The name or the password is wrong, or too many attempts failed.
pub fn by_password(request: &HttpRequest, name: &str, password: &str) -> Result<(String, UserSession), Problem> {
    let user = verified(&request.state, request.peer, name, password)?;
    Ok(request.state.sessions.begin(&user.name, user.role, false))
}

/// Sign in.
pub fn begin(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let input: SignIn = request.input()?;
    let (secret, session) = match (&input.one_time, &input.name, &input.password) {
        (Some(once), None, None) => {
            let role = request.state.sessions.take_link(once).ok_or_else(|| {
                Problem::new(401, "used-link", "this link was used, or is too old; `openraid login` prints another one")
            })?;
            request.state.sessions.begin(role.word(), role, true)
        }
        (None, Some(name), Some(password)) => by_password(request, name, password)?,
        _ => return Err(Problem::bad("give one_time alone, or name and password")),
    };
    let text = format!("HTTP: {} ({}) at {} has signed in", session.user, session.role.word(), request.peer);
    request.state.controller.audit(None, text);
    let secure = if request.state.is_tls { "; Secure" } else { "" };
    let age = SESSION_TIME_MAX.as_secs();
    let cookie = format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
    Ok(HttpReply::json(201, &model(request, &session, Some(secret))).with("set-cookie", cookie))
}

/// The session of the client.
pub fn current(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let session = request.session.as_ref().ok_or_else(|| Problem::new(401, "not-signed-in", "sign in first"))?;
    Ok(HttpReply::json(200, &model(request, session, None)))
}

/// Sign out.
pub fn end(request: &HttpRequest) -> Result<HttpReply, Problem> {
    if let Some(session) = &request.session {
        request.state.sessions.end(session.number);
    }
    Ok(HttpReply::empty(204).with("set-cookie", format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")))
}
