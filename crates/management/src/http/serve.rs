//! A request from its head to its answer.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use tokio::time::timeout;

use super::body::ReplyPayload;
use super::connection_places::ConnectionPlace;
use super::rate_limit::RateClient;
use super::reply::{HttpReply, Problem};
use super::request::HttpRequest;
use super::request_checks::{check_host, check_origin, path_of, query_of};
use super::route::{allowed, find, Need, Route};
use crate::api::{stream, ROUTES};
use crate::auth::sessions::UserSession;
use crate::auth::sign_in_turns::is_loopback;
use crate::limits::{BODY_BYTES_MAX, BODY_TIME_MAX};
use crate::redfish;
use crate::shared_state::ApiState;

/// The cookie of a session.
pub const COOKIE: &str = "openraid-session";

/// Headers of every answer, for browsers.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Answer a request.
pub async fn serve(
    request: hyper::Request<Incoming>,
    peer: IpAddr,
    state: Arc<ApiState>,
    place: Arc<ConnectionPlace>,
) -> Result<Response<ReplyPayload>, Infallible> {
    let is_head = *request.method() == Method::HEAD;
    let is_redfish = redfish::is_own(request.uri().path());
    let answer = match answer(request, peer, &state, &place).await {
        Ok(answer) => answer,
        Err(problem) if is_redfish => Answer::Whole(redfish::error(&problem)),
        Err(problem) => Answer::Whole(problem.reply()),
    };
    if matches!(answer, Answer::Whole(_)) {
        place.waits();
    }
    Ok(response(answer, is_head))
}

/// The answer to a request.
enum Answer {
    Whole(HttpReply),
    Stream(tokio::sync::mpsc::Receiver<Bytes>),
}

async fn answer(
    request: hyper::Request<Incoming>,
    peer: IpAddr,
    state: &Arc<ApiState>,
    place: &ConnectionPlace,
) -> Result<Answer, Problem> {
    let (head, body) = request.into_parts();
    let mut session = session(state, &head.headers);
    let admitted = admit(state, peer, session.as_ref());
    check_host(&head.headers, &state.names)?;
    check_origin(&head.method, &head.headers, state.is_tls)?;
    let path = path_of(head.uri.path())?;
    let query = query_of(head.uri.query().unwrap_or_default())?;
    let is_redfish = redfish::is_own(&format!("/{}", path.join("/")));
    let routes = if is_redfish { redfish::ROUTES } else { ROUTES };
    let found = find(routes, &head.method, &path);
    let signs_in = matches!(&found, Ok((route, _)) if head.method == Method::POST && route.need == Need::Nothing);
    if admitted.is_err() && !(signs_in && is_loopback(peer)) {
        return Err(admitted.expect_err("just seen"));
    }
    let (route, parts) = found?;
    let has_basic = is_redfish || route.need == Need::Scrape;
    if has_basic && session.is_none() && route.need != Need::Nothing {
        session = basic(state, peer, &head.headers).await?;
    }
    permit(&route, session.as_ref(), state).map_err(|problem| if has_basic { challenged(problem) } else { problem })?;
    if session.is_some() {
        place.is_known();
        if state.sessions.is_due() {
            let state = Arc::clone(state);
            tokio::task::spawn_blocking(move || state.sessions.save());
        }
    }
    let body = read_body(&head.method, &head.headers, body).await?;
    place.is_answered();
    if signs_in && (admitted.is_err() || state.sessions.must_wait(peer)) {
        wait_for_turn(state).await?;
    }
    let state = Arc::clone(state);
    let request = HttpRequest { state, parts, query, headers: head.headers, body, peer, session };
    if is_redfish {
        redfish::check(&request)?;
    } else {
        request.know(route.query)?;
    }
    if route.path == stream::PATH {
        return stream::begin(request).map(Answer::Stream);
    }
    if route.path == redfish::events::STREAM {
        return redfish::events::begin(&request).map(Answer::Stream);
    }
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let known = request.header("if-none-match").filter(|_| is_redfish && is_read).map(str::to_owned);
    let work = tokio::task::spawn_blocking(move || {
        let state = Arc::clone(&request.state);
        let is_conditional = !is_read && request.headers.contains_key("if-match");
        let _one_at_a_time = is_conditional.then(|| state.conditional.lock().unwrap_or_else(PoisonError::into_inner));
        (route.handler)(&request)
    });
    let done = work.await.map_err(|_| Problem::new(500, "failed", "the request could not be carried out"))?;
    let reply = redfish::unless_known(done?, known.as_deref());
    Ok(Answer::Whole(if is_redfish && is_read { reply.with("allow", allowed(routes, &path)) } else { reply }))
}

/// Has the client asked for too much? Requests without a session do not count for sessions.
fn admit(state: &ApiState, peer: IpAddr, session: Option<&UserSession>) -> Result<(), Problem> {
    let of = |session: &UserSession| RateClient::Session(session.user.clone(), session.number);
    if state.rates.admit(session.map_or(RateClient::Address(peer), of)) {
        return Ok(());
    }
    let text = "more requests came from this client than are answered; wait a second";
    Err(Problem::new(429, "too-many-requests", text).with("retry-after", "1"))
}

/// A sign-in over the loopback after too many wrong passwords, or too many requests, is answered when its turn comes.
async fn wait_for_turn(state: &ApiState) -> Result<(), Problem> {
    if state.turns.wait().await {
        return Ok(());
    }
    let text = "too many sign-ins of this machine wait for their turn; try again";
    Err(Problem::new(503, "busy", text).with("retry-after", "1"))
}

/// The session of a client that brings name and password with each request: a Redfish client, or a Prometheus. Without encryption only a client of
/// this machine may.
async fn basic(state: &Arc<ApiState>, peer: IpAddr, headers: &HeaderMap) -> Result<Option<UserSession>, Problem> {
    let Some(words) = headers.get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned) else {
        return Ok(None);
    };
    if !state.is_tls && !state.is_loopback {
        return Ok(None);
    }
    if state.sessions.must_wait(peer) && !redfish::sessions::is_known(state, &words) {
        wait_for_turn(state).await?;
    }
    let state = Arc::clone(state);
    let work = tokio::task::spawn_blocking(move || redfish::sessions::basic(&state, peer, &words));
    work.await.map_err(|_| Problem::new(500, "failed", "the request could not be carried out"))?
}

/// A client that may bring name and password with each request learns so.
fn challenged(mut problem: Problem) -> Problem {
    if problem.status == 401 {
        problem.headers = vec![("www-authenticate", "Basic realm=\"openraid\"".into())];
    }
    problem
}

/// The session of a request, by its secret in a cookie, a bearer token, or Redfish's header.
fn session(state: &ApiState, headers: &HeaderMap) -> Option<UserSession> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
    let token = bearer.or_else(|| text("x-auth-token"));
    let cookies = || text("cookie").into_iter().flat_map(|all| all.split(';'));
    let cookie = || cookies().find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    let secret = token.or_else(cookie)?;
    let lasting = || state.tokens.find(secret).map(|token| UserSession::of_token(&token));
    state.sessions.find(secret).or_else(lasting)
}

fn permit(route: &Route, session: Option<&UserSession>, state: &ApiState) -> Result<(), Problem> {
    let needed = match route.need {
        Need::Nothing => return Ok(()),
        Need::Scrape if state.is_loopback => return Ok(()),
        Need::Scrape => openraid_status::Role::ReadOnly,
        Need::Role(role) => role,
    };
    let Some(session) = session else {
        let text =
            "sign in first: open the link that `openraid login` prints, or send a token that `openraid login --token` \
                    prints as Authorization: Bearer TOKEN";
        return Err(Problem::new(401, "not-signed-in", text).with("www-authenticate", "Bearer"));
    };
    if session.role < needed {
        let text = format!("this needs the role {}; {} has {}", needed.word(), session.user, session.role.word());
        return Err(Problem::new(403, "forbidden", text));
    }
    Ok(())
}

async fn read_body(method: &Method, headers: &HeaderMap, body: Incoming) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::new(413, "too-large", format!("the body has more than {BODY_BYTES_MAX} bytes"));
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_BYTES_MAX as u64) {
        return Err(too_large().with("connection", "close"));
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if reads && body.is_end_stream() {
        return Ok(Vec::new());
    }
    let collect = Limited::new(body, BODY_BYTES_MAX).collect();
    let bytes = match timeout(BODY_TIME_MAX, collect).await {
        Err(_) => {
            let text = format!("the body did not come within {} s", BODY_TIME_MAX.as_secs());
            return Err(Problem::new(408, "too-slow", text).with("connection", "close"));
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large().with("connection", "close")),
        Ok(Err(_)) => return Err(Problem::bad("the body broke off").with("connection", "close")),
        Ok(Ok(collected)) => collected.to_bytes().to_vec(),
    };
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !reads && !bytes.is_empty() && !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(415, "wrong-type", format!("Content-Type {kind:?}: send application/json")));
    }
    Ok(bytes)
}

fn response(answer: Answer, is_head: bool) -> Response<ReplyPayload> {
    let (status, headers, payload) = match answer {
        Answer::Whole(reply) => {
            let body = Some(Bytes::from(reply.body)).filter(|body| !body.is_empty() && !is_head);
            (reply.status, reply.headers, ReplyPayload::Whole(body))
        }
        Answer::Stream(receiver) => {
            (200, vec![("content-type", "text/event-stream".to_owned())], ReplyPayload::Stream(receiver))
        }
    };
    let mut response = Response::new(payload);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let sent = response.headers_mut();
    for (name, value) in HEADERS {
        if !headers.iter().any(|(other, _)| *other == name) {
            sent.insert(name, HeaderValue::from_static(value));
        }
    }
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            sent.append(HeaderName::from_static(name), value);
        }
    }
    response
}
