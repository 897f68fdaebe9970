//! All limits of the service, by name. The engine's own limits are in [`openraid_core::limits`], the protocol's in
//! [`openraid_nbd::limits`].
//!
//! The memory that a client or a remote member can make this process hold is a sum of these numbers.

use openraid_units::{Nanos, Sectors};

/// How long a shard polls for the next request of a client that waits for each answer, before it sleeps. Waking a
/// sleeping thread takes 5 to 20 us on a virtual machine, and such a client sends its next request within that time.
pub const LOOK_TIME: Nanos = Nanos::from_micros(30);
/// Weight of a poll that found a request against polls that found none: polling pays off if one poll in five finds one.
pub const LOOK_HIT: u32 = 4;
/// Maximum credit of polling.
pub const LOOK_CREDIT_MAX: u32 = 64;
/// A shard whose polls have no credit left polls once in this number of rounds.
pub const LOOK_PAUSE: u32 = 16;
/// Maximum sleep of a shard that has a deadline, so that it notices if the process was stopped during the sleep.
pub const LOOP_WAIT_MAX: Nanos = Nanos::from_secs(1);
/// A round of a shard that takes this much longer than planned is a standstill: the process was stopped, or the machine
/// was suspended. At most this much of a standstill counts against a time limit. On a busy machine a thread gets its
/// turn within a tenth of that.
pub const STANDSTILL_MIN: Nanos = Nanos::from_millis(500);
/// Minimum length of a standstill that is reported: time limits of seconds would have passed in it.
pub const STANDSTILL_TOLD_MIN: Nanos = Nanos::from_secs(2);
/// Minimum number of small reads from one connection in a batch after which the shard rests.
pub const REST_BATCH_MIN: u32 = 4;
/// `REST_BATCH_MIN` of a batch with writes: their payload occupies the client longer, and fills the socket sooner.
pub const REST_WRITES_MIN: u32 = 10;
/// Maximum length of a request in such a batch: several of them fit into the receive buffer.
pub const SMALL_REQUEST_BYTES_MAX: u64 = 32 << 10;
/// Rest for each request of the batch: shorter than clients need to read an answer and send the next request.
pub const REST_TIME: Nanos = Nanos::from_micros(2);
/// Maximum rest.
pub const REST_MAX: Nanos = Nanos::from_micros(100);
/// Maximum number of connections. A further one is accepted and closed, so that its client learns it at once. The limit
/// is lower if the process may not have this many descriptors.
pub const CONNECTIONS_MAX: usize = 1024;
/// Connections whose clients have not chosen an export, at most: for one more, the oldest of them is closed. So they never hold
/// more of the [`CONNECTIONS_MAX`] places, and no client is kept out by them. It is half of the places if there are fewer.
pub const NEGOTIATING_MAX: usize = 128;
/// Number of descriptors kept free for members and other uses.
pub const DESCRIPTORS_KEPT: usize = 192;
/// Maximum time from the accept of a connection to the choice of an export, or to the first message of a virtual machine.
pub const HANDSHAKE_TIME_MAX: Nanos = Nanos::from_secs(30);
/// A client that reads no answer, or sends no byte of an announced payload, for this long is disconnected.
pub const STALL_TIME_MAX: Nanos = Nanos::from_secs(30);
/// `STALL_TIME_MAX` while stalled clients together hold more than half of the frames or requests: other clients can
/// continue.
pub const STALL_TIME_PRESSED_MAX: Nanos = Nanos::from_millis(250);
/// `STALL_TIME_PRESSED_MAX` of a client that reads or sends bytes all the time, but slowly.
pub const SLOW_TIME_PRESSED_MAX: Nanos = Nanos::from_secs(2);
/// Interval of the search for stalled clients.
pub const STALL_LOOK_INTERVAL: Nanos = Nanos::from_millis(100);
/// Pause of a listener after descriptors or memory ran out.
pub const ACCEPT_PAUSE: Nanos = Nanos::from_millis(200);
/// Maximum number of connections accepted from one listener in one round, so that many new connections do not delay
/// others.
pub const ACCEPTS_PER_ROUND_MAX: usize = 64;

/// Maximum number of virtual machines. For a further one the oldest that has said nothing is disconnected, or else the further one.
pub const MACHINES_MAX: usize = 128;
/// The same of one array.
pub const MACHINES_PER_ARRAY_MAX: usize = 32;
/// Maximum number of descriptors and mappings of all virtual machines, until each is closed. It is lower if the process may
/// not have this many, down to [`MACHINE_FILES_MIN`]. A machine that exceeds it is disconnected.
pub const MACHINE_FILES_MAX: usize = 8192;
/// See [`MACHINE_FILES_MAX`].
pub const MACHINE_FILES_MIN: usize = 96;
/// The same of one array: five machines with as many queues as possible.
pub const MACHINE_FILES_PER_ARRAY_MAX: usize = 1024;
/// Maximum number of refusals of virtual machines that are told within [`REFUSALS_TOLD_TIME`]. Further ones are counted.
pub const REFUSALS_TOLD_MAX: u32 = 20;
/// See [`REFUSALS_TOLD_MAX`].
pub const REFUSALS_TOLD_TIME: Nanos = Nanos::from_secs(60);
/// Maximum number of messages of one virtual machine in one round.
pub const MACHINE_MESSAGES_PER_ROUND_MAX: usize = 64;
/// Maximum number of requests of one virtual machine in one round.
pub const MACHINE_STEPS_PER_ROUND_MAX: usize = 256;

/// Maximum number of unanswered requests of one connection, or of one virtual machine.
pub const CONNECTION_REQUESTS_MAX: u32 = 512;
/// Maximum payload bytes of one connection in each direction. A single request may exceed it.
pub const CONNECTION_BYTES_MAX: u64 = 8 << 20;
/// Maximum bytes of waiting replies, without payload, above which no requests of the connection are read.
pub const REPLIES_WAITING_MAX: usize = 16 << 10;
/// Capacity of a connection's reply buffer that is kept while it is empty.
pub const REPLIES_KEPT: usize = 4 << 10;

/// Maximum bytes received from one connection in one call: about the capacity of a unix socket.
pub const RECEIVE_BYTES_MAX: usize = 256 << 10;
/// `RECEIVE_BYTES_MAX` while many connections have unread requests: one small write with its header.
pub const RECEIVE_BYTES_SCARCE: usize = 36 << 10;
/// The receive buffer that all connections of a shard share.
pub const INBOX_BYTES: usize = 1 << 20;
/// Unread requests of all connections together above which each may keep only [`RECEIVE_BYTES_SCARCE`].
pub const TAILS_BYTES_MAX: usize = 8 << 20;
/// Maximum payload outside the receive buffer that waits for frames; above it no requests are read.
pub const STASH_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes received directly into frames for one connection in one round, so that others get their turn.
pub const STREAM_BYTES_PER_ROUND_MAX: u64 = 4 << 20;
/// Maximum length of a read that the engine does in several pieces and that is gathered, because its answer must be in
/// one piece. A longer one has its connection alone, and its pieces are sent as they come.
pub const GATHERED_READ_BYTES_MAX: u64 = 256 << 10;
/// Size of the kernel's buffers requested for each socket, in both directions. The kernel may give less.
pub const SOCKET_BUFFER_BYTES: u32 = 1 << 20;

/// Maximum number of parts of an array in an answer to a request for block status.
pub const STATUS_PARTS_MAX: usize = 128;
/// Maximum number of sectors that are searched for zeroes for such an answer: 1 MiB is compared in less than 100 us.
pub const STATUS_SEARCH_MAX: Sectors = Sectors(2048);
/// Maximum age of a status that answers a client's request for block status.
pub const STATUS_AGE_MAX: Nanos = Nanos::from_millis(100);
/// Maximum time that a stopping service waits for clients to read their last answers.
pub const STOP_TIME_MAX: Nanos = Nanos::from_secs(20);
/// Maximum number of notices kept for listeners; the oldest are dropped.
pub const NOTICES_KEPT_MAX: usize = 4096;

/// Maximum time to open and probe one member: a drive that hangs, an address that never answers.
pub const PROBE_TIME_MAX: Nanos = Nanos::from_secs(10);
/// Maximum time to retry a member that another process holds: a service that releases it still holds it for a moment.
pub const HELD_TIME_MAX: Nanos = Nanos::from_secs(2);
/// The same if that process was killed: the kernel releases its files after the writes that are under way. It is
/// shorter than [`PROBE_TIME_MAX`], so that the reason is reported.
pub const LEAVING_HELD_TIME_MAX: Nanos = Nanos::from_secs(9);
/// The pause between such attempts.
pub const HELD_PAUSE: Nanos = Nanos::from_millis(50);
/// Attempts to reach a remote member again: the first at once, then with pauses that double up to the last.
pub const RECONNECT_PAUSE_MIN: Nanos = Nanos::from_millis(100);
/// See [`RECONNECT_PAUSE_MIN`].
pub const RECONNECT_PAUSE_MAX: Nanos = Nanos::from_secs(5);
/// Maximum time to connect to a remote member and negotiate.
pub const CONNECT_TIME_MAX: Nanos = Nanos::from_secs(5);
/// Maximum number of requests outstanding at one remote member; further commands wait here.
pub const REMOTE_REQUESTS_MAX: usize = 256;
/// Largest range of one TRIM or WRITE_ZEROES to a remote member, in bytes; the protocol has 32 bits for it.
pub const REMOTE_RANGE_BYTES_MAX: u64 = 1 << 30;
/// Maximum memory for copies of writes that one remote member has answered and not flushed. The member is flushed when
/// half of it is used. When all of it is used, writes wait for the flush. Writes that are already under way come on
/// top.
pub const REMOTE_KEPT_BYTES_MAX: usize = 32 << 20;
/// Overhead of each of these copies, in addition to its bytes.
pub const REMOTE_KEPT_ENTRY_BYTES: usize = 64;
/// Maximum number of writes that are repeated at once after a remote member has come back.
pub const REMOTE_REPEATS_MAX: usize = 64;
/// Maximum memory for the writes to one member of an array that is only tried.
pub const OVERLAY_BYTES_MAX: usize = 64 << 20;
/// Maximum memory for the content of one paced member without a file.
pub const PACED_MEMORY_MAX: u64 = 1 << 30;
/// A device of a journal that answers nothing for this long while it is opened and read is silent. The time of the
/// whole read depends on the journal's size.
pub const JOURNAL_SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Interval of attempts to bring back a lost journal or one of its devices.
pub const JOURNAL_RETRY_PAUSE: Nanos = Nanos::from_secs(3);
/// Maximum number of these intervals before a device that comes and goes is tried again: three minutes.
pub const JOURNAL_RETRY_LOOKS_MAX: u32 = 64;
/// Pause before a drive command is tried again for which the kernel had no resources.
pub const BUSY_PAUSE: Nanos = Nanos::from_millis(10);

const _: () = assert!(RECEIVE_BYTES_MAX > RECEIVE_BYTES_SCARCE && INBOX_BYTES >= RECEIVE_BYTES_MAX);
