//! Every limit of the service, by name. The engine's own are in [`openraid_core::limits`], the protocol's in
//! [`openraid_nbd::limits`].
//!
//! Whatever a client or a remote member can make this process hold is a sum of these numbers.

use openraid_units::Nanos;

/// How long a shard looks for the next request of a client that waits for each answer, before it sleeps. Waking a
/// sleeper takes 5 to 20 us on a virtual machine, and such a client comes back within that time.
pub const LOOK_TIME: Nanos = Nanos::from_micros(30);
/// What one look that found something counts against looks that found nothing: looking pays while one in five does.
pub const LOOK_HIT: u32 = 4;
/// The most that looks can have to their credit.
pub const LOOK_CREDIT_MAX: u32 = 64;
/// A shard whose looks have no credit left looks once in this many rounds.
pub const LOOK_PAUSE: u32 = 16;
/// A shard that has any deadline sleeps no longer than this at once, so that it notices when it was stopped meanwhile.
pub const LOOP_WAIT_MAX: Nanos = Nanos::from_secs(1);
/// A round of a shard that takes this much longer than it was to take is a standstill: the process was stopped, or the
/// machine paused. At most this much of a standstill counts against any time limit. A machine that is merely busy gives a
/// thread its turn within a tenth of that.
pub const STANDSTILL_MIN: Nanos = Nanos::from_millis(500);
/// A standstill of this length is reported: time limits of seconds would have passed in it.
pub const STANDSTILL_TOLD_MIN: Nanos = Nanos::from_secs(2);
/// A batch of at least this many small reads from one connection is followed by a rest.
pub const REST_BATCH_MIN: u32 = 4;
/// The same for a batch with writes among them: their payload keeps the client longer, and fills the socket sooner.
pub const REST_WRITES_MIN: u32 = 10;
/// The rest for each request of the batch: less than clients need to take an answer and send the next request.
pub const REST_TIME: Nanos = Nanos::from_micros(2);
/// The longest rest.
pub const REST_MAX: Nanos = Nanos::from_micros(100);
/// Connections served at once; one more is accepted and closed, so that its client learns it at once. Fewer if the
/// process may not have this many descriptors.
pub const CONNECTIONS_MAX: usize = 1024;
/// Descriptors that connections leave to members and everything else.
pub const DESCRIPTORS_KEPT: usize = 192;
/// A client must have chosen an export this long after it was accepted.
pub const HANDSHAKE_TIME_MAX: Nanos = Nanos::from_secs(30);
/// A client that takes no answer, or gives no byte of an announced payload, for this long is disconnected.
pub const STALL_TIME_MAX: Nanos = Nanos::from_secs(30);
/// The same while such clients together hold more than half of the frames or requests, so that others go on.
pub const STALL_TIME_PRESSED_MAX: Nanos = Nanos::from_millis(250);
/// The same for a client that takes or gives bytes all the time, but has been slow for this long.
pub const SLOW_TIME_PRESSED_MAX: Nanos = Nanos::from_secs(2);
/// How often stalled clients are looked for, while there are any.
pub const STALL_LOOK_INTERVAL: Nanos = Nanos::from_millis(100);
/// How long a listener rests after descriptors or memory ran out.
pub const ACCEPT_PAUSE: Nanos = Nanos::from_millis(200);
/// Connections taken from one listener in one round, so that a flood of them does not hold up connected clients.
pub const ACCEPTS_PER_ROUND_MAX: usize = 64;

/// Requests of one connection that are not answered yet.
pub const CONNECTION_REQUESTS_MAX: u32 = 512;
/// Payload bytes of one connection under way, in each direction. One request may exceed it alone.
pub const CONNECTION_BYTES_MAX: u64 = 8 << 20;
/// Bytes of replies, payload aside, that wait for a client to take them before its requests are read no more.
pub const REPLIES_WAITING_MAX: usize = 16 << 10;
/// Capacity of a connection's reply buffer that is kept while it is empty.
pub const REPLIES_KEPT: usize = 4 << 10;

/// Bytes received from one connection in one call: about what a unix socket holds.
pub const RECEIVE_BYTES_MAX: usize = 256 << 10;
/// The same while many connections have unread requests: one small write with its header.
pub const RECEIVE_BYTES_SCARCE: usize = 36 << 10;
/// The receive buffer that all connections of a shard share.
pub const INBOX_BYTES: usize = 1 << 20;
/// Unread requests of all connections together above which each may keep only [`RECEIVE_BYTES_SCARCE`].
pub const TAILS_BYTES_MAX: usize = 8 << 20;
/// Payload that waits for frames outside the receive buffer; above it no requests are read.
pub const STASH_BYTES_MAX: usize = 16 << 20;
/// Bytes received straight into frames for one connection in one round, so that others get their turn.
pub const STREAM_BYTES_PER_ROUND_MAX: u64 = 4 << 20;
/// A read whose answer must be in one piece is gathered here if the engine works on it in several, up to this
/// length; a longer one has its connection for itself and is passed on as it comes.
pub const GATHERED_READ_BYTES_MAX: u64 = 256 << 10;
/// Kernel buffers asked for at each socket, both ways. The kernel may give less.
pub const SOCKET_BUFFER_BYTES: u32 = 1 << 20;

/// How long a status is reused for answers to clients that ask for block status.
pub const STATUS_AGE_MAX: Nanos = Nanos::from_millis(100);
/// How long a stopping service waits for clients to take their last answers.
pub const STOP_TIME_MAX: Nanos = Nanos::from_secs(20);
/// Notices kept for listeners; the oldest are dropped.
pub const NOTICES_KEPT_MAX: usize = 4096;

/// How long opening and looking at one member may take: a drive that hangs, an address that never answers.
pub const PROBE_TIME_MAX: Nanos = Nanos::from_secs(10);
/// A member that another process holds is asked for again this long: a service that gives it up still holds it for a
/// moment.
pub const HELD_TIME_MAX: Nanos = Nanos::from_secs(2);
/// The same if that process was killed: the kernel lets go of its files after the writes that are under way. Less than
/// [`PROBE_TIME_MAX`], so that the reason is told.
pub const LEAVING_HELD_TIME_MAX: Nanos = Nanos::from_secs(9);
/// The pause between such attempts.
pub const HELD_PAUSE: Nanos = Nanos::from_millis(50);
/// Attempts to reach a remote member again: the first at once, then with pauses that double up to the last.
pub const RECONNECT_PAUSE_MIN: Nanos = Nanos::from_millis(100);
/// See [`RECONNECT_PAUSE_MIN`].
pub const RECONNECT_PAUSE_MAX: Nanos = Nanos::from_secs(5);
/// An attempt to connect and negotiate with a remote member may take this long.
pub const CONNECT_TIME_MAX: Nanos = Nanos::from_secs(5);
/// Requests outstanding at one remote member; further commands wait here.
pub const REMOTE_REQUESTS_MAX: usize = 256;
/// Largest range of one TRIM or WRITE_ZEROES to a remote member, in bytes; the protocol has 32 bits for it.
pub const REMOTE_RANGE_BYTES_MAX: u64 = 1 << 30;
/// Memory for copies of writes that one remote member has answered and not flushed. The member is flushed when half of
/// it is used. When all of it is used, writes wait for the flush. Writes that are under way then come on top.
pub const REMOTE_KEPT_BYTES_MAX: usize = 32 << 20;
/// Overhead that each of these copies counts for, in addition to its bytes.
pub const REMOTE_KEPT_ENTRY_BYTES: usize = 64;
/// Writes that are repeated at once after a remote member has come back.
pub const REMOTE_REPEATS_MAX: usize = 64;
/// Memory for what would have been written to one member of an array that is only tried out.
pub const OVERLAY_BYTES_MAX: usize = 64 << 20;
/// Memory for the content of one paced member that has no file.
pub const PACED_MEMORY_MAX: u64 = 1 << 30;
/// A device of a journal that answers nothing for this long while it is opened and read is silent. How long all of it takes
/// is a matter of the journal's size.
pub const JOURNAL_SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// A journal that is lost, or one of its devices, is looked for again this often.
pub const JOURNAL_RETRY_PAUSE: Nanos = Nanos::from_secs(3);
/// One that comes and goes is brought back after this many of these pauses at most: three minutes.
pub const JOURNAL_RETRY_LOOKS_MAX: u32 = 64;
/// A drive command that the kernel had no resources for is tried again after this long.
pub const BUSY_PAUSE: Nanos = Nanos::from_millis(10);

const _: () = assert!(RECEIVE_BYTES_SCARCE > openraid_nbd::limits::INLINE_PAYLOAD_MAX as usize + 28);
const _: () = assert!(RECEIVE_BYTES_MAX > RECEIVE_BYTES_SCARCE && INBOX_BYTES >= RECEIVE_BYTES_MAX);
