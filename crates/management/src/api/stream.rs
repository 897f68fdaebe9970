//! Server-sent events: events of the log as they are written, and the state of all arrays every second.
//!
//! ```text
//!  id: 17                      a client that lost its connection sends Last-Event-ID: 17
//!  event: log                  and gets all events since
//!  data: {"number":17,...}
//!
//!  event: status               has no id: the next one replaces it
//!  data: {"arrays":[...]}
//! ```
//!
//! If events between the client's last one and the oldest of the log are gone, `event: gap` says so first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::arrays::ArraysModel;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{STALL_TIME_MAX, STREAMS_MAX, STREAM_INTERVAL};
use crate::shared_state::ApiState;

pub const PATH: &str = "/api/v1/stream";

/// A place among the streams, given back when the stream ends.
pub struct StreamPlace(Arc<ApiState>);

impl StreamPlace {
    /// Take one, if one is free.
    pub fn take(state: &Arc<ApiState>) -> Option<Self> {
        let count: &AtomicUsize = &state.streams;
        let place = Self(Arc::clone(state));
        (count.fetch_add(1, Ordering::Relaxed) < STREAMS_MAX).then_some(place)
    }

    /// None is free.
    pub fn problem() -> Problem {
        let text = format!("{STREAMS_MAX} streams of events are open; close one");
        Problem::new(503, "unavailable", text).with("retry-after", "10")
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream is no document.
pub fn unreachable(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Err(Problem::new(406, "stream", "this path is a stream of events"))
}

/// Begin a stream.
///
/// # Errors
/// There are too many.
pub fn begin(request: HttpRequest) -> Result<Receiver<Bytes>, Problem> {
    let from_header = request.header("last-event-id").map(str::parse::<u64>);
    let after = match from_header {
        Some(Ok(number)) => Some(number),
        Some(Err(_)) => return Err(Problem::bad("Last-Event-ID is not the number of an event")),
        None => request.number("after")?,
    };
    let place = StreamPlace::take(&request.state).ok_or_else(StreamPlace::problem)?;
    let (sender, receiver) = channel(16);
    tokio::spawn(feed(request, place, after, sender));
    Ok(receiver)
}

/// Until the client disconnects or stops reading, or its session ends.
async fn feed(request: HttpRequest, place: StreamPlace, after: Option<u64>, sender: Sender<Bytes>) {
    let mut last = after;
    let request = Arc::new(request);
    loop {
        let (work, state, from) = (Arc::clone(&request), Arc::clone(&place.0), last);
        let Ok(Some((text, newest))) = tokio::task::spawn_blocking(move || round(&work, &state, from)).await else {
            return;
        };
        last = Some(newest);
        if !matches!(timeout(STALL_TIME_MAX, sender.send(Bytes::from(text))).await, Ok(Ok(()))) {
            return;
        }
        sleep(STREAM_INTERVAL).await;
    }
}

/// New events and the state; nothing when the session or the server has ended.
fn round(request: &HttpRequest, state: &ApiState, last: Option<u64>) -> Option<(String, u64)> {
    if !state.is_signed_in(request.session.as_ref()?) {
        return None;
    }
    let events = state.controller.events().ok()?;
    let newest = events.last().map_or(0, |event| event.number);
    let from = last.unwrap_or(newest);
    let mut text = String::new();
    if events.first().is_some_and(|first| first.number > from + 1) && last.is_some() {
        text.push_str(&format!("event: gap\ndata: {{\"after\":{from}}}\n\n"));
    }
    for event in events.iter().filter(|event| event.number > from) {
        let data = serde_json::to_string(event).ok()?;
        text.push_str(&format!("id: {}\nevent: log\ndata: {data}\n\n", event.number));
    }
    let arrays = Arc::unwrap_or_clone(state.arrays().ok()?);
    let data = serde_json::to_string(&ArraysModel { arrays }).ok()?;
    text.push_str(&format!("event: status\ndata: {data}\n\n"));
    Some((text, newest.max(from)))
}
