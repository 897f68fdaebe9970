//! Maximum use by clients.

use std::time::Duration;

/// Connections at once whose clients have signed in: a request had a session. For one more, the connection that waits for its
/// client longest is closed.
pub const CONNECTIONS_MAX: usize = 96;
/// Connections besides, without a request that had a session: in a handshake, for example. For one more, the oldest is closed.
pub const GUESTS_MAX: usize = 96;
/// Maximum number of event streams; each needs a connection.
pub const STREAMS_MAX: usize = 24;
/// The head of a request: its line and its headers.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Headers of a request.
pub const HEADERS_MAX: usize = 64;
/// The body of a request.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum time to receive a head, and of silence between two requests; then the connection ends.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(8);
/// Maximum time to receive a body.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(8);
/// Maximum time of a TLS handshake.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// NBD clients over TLS at once. One more is closed when its handshake is done. They are more than the clients that the server lets
/// choose an export at once, so those never hold all places.
pub const TUNNELS_MAX: u32 = 256;
/// Connections besides that have not done their TLS handshake. For one more, the oldest is closed.
pub const TUNNEL_STRANGERS_MAX: usize = 128;
/// Bytes of an NBD client over TLS that wait in one direction.
pub const TUNNEL_BYTES: usize = 128 << 10;
/// Options of an NBD client before TLS.
pub const TUNNEL_OPTIONS_MAX: u32 = 32;
/// Maximum time of an NBD client until its TLS handshake is done.
pub const TUNNEL_HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time at the end for the last bytes of NBD clients over TLS.
pub const TUNNEL_END_TIME_MAX: Duration = Duration::from_secs(1);
/// A client that reads nothing of an answer for this long is disconnected.
pub const STALL_TIME_MAX: Duration = Duration::from_secs(10);
/// Requests that are worked on at once; the others wait.
pub const WORKERS_MAX: usize = 6;
/// Requests a second, over a longer time, of one session, or of one address without a session.
pub const REQUESTS_A_SECOND: u32 = 100;
/// The same in a burst.
pub const REQUESTS_BURST: u32 = 400;
/// Maximum number of addresses with counted requests; the one that was quiet for longest is dropped.
pub const ADDRESSES_MAX: usize = 1024;
/// Sessions at once; the one that was idle for longest ends.
pub const SESSIONS_MAX: usize = 64;
/// Maximum idle time of a session.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// A session lasts no longer.
pub const SESSION_TIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// The idle times of sessions are saved when they are this old: a restart takes an idle session up at most this much too long.
pub const SESSIONS_SAVE_INTERVAL: Duration = Duration::from_secs(60);
/// One-time links at once.
pub const LINKS_MAX: usize = 8;
/// Maximum age of a one-time link.
pub const LINK_TIME_MAX: Duration = Duration::from_secs(15 * 60);
pub const USERS_MAX: usize = 64;
/// Tokens that last.
pub const TOKENS_MAX: usize = 64;
/// Wrong passwords of one user from one address before it has to wait.
pub const WRONG_PASSWORDS_MAX: u32 = 5;
/// How long it has to wait.
pub const WRONG_PASSWORD_WAIT: Duration = Duration::from_secs(60);
/// Sign-ins over the loopback that wait for their turn after too many wrong passwords. Each has a connection, so no more wait.
pub const TURNS_MAX: usize = GUESTS_MAX + CONNECTIONS_MAX;
/// Time between two of these turns.
pub const TURN_INTERVAL: Duration = Duration::from_millis(200);
/// Characters of a password, at least.
pub const PASSWORD_CHARACTERS_MIN: usize = 10;
/// Bytes of a password, at most.
pub const PASSWORD_BYTES_MAX: usize = 256;
/// Events of one answer.
pub const EVENTS_MAX: usize = 1000;
/// The largest number of an event: the OpenAPI document says that numbers have 63 bits.
pub const EVENT_NUMBER_MAX: u64 = u64::MAX >> 1;
/// Settings of one request.
pub const SETTINGS_MAX: usize = 64;
/// Members of one request.
pub const MEMBERS_MAX: usize = 256;
/// Stories of requests in one answer.
pub const STORIES_MAX: u64 = 20;
/// Subscriptions to which Redfish pushes events; each has a thread.
pub const SUBSCRIPTIONS_MAX: usize = 4;
/// Test events of Redfish that are kept for slow listeners.
pub const TEST_EVENTS_MAX: usize = 16;
/// A push that failed is tried again after this time.
pub const PUSH_INTERVAL: Duration = Duration::from_secs(30);
/// Tasks that Redfish shows; the oldest one that has ended is forgotten.
pub const TASKS_MAX: usize = 64;
/// Entries of the log that Redfish shows, the newest ones.
pub const LOG_ENTRIES_MAX: usize = 256;
/// How old a state may be that several readers share.
pub const SNAPSHOT_AGE_MAX: Duration = Duration::from_millis(200);
/// How often a stream of events looks for something new.
pub const STREAM_INTERVAL: Duration = Duration::from_secs(1);
