//! The service for other threads: start, queries, orders, news, stop.
//!
//! ```text
//!  Service::start --thread--> Shard
//!       |                       ^ |
//!  ServiceHandle --orders-------+ +--news--> Service::events
//! ```
//!
//! A [`ServiceHandle`] may be cloned and sent to other threads. Each of its calls waits for the shard's answer, which
//! comes within a round unless the engine has to wait for members.

mod arrays;
mod create;
mod error;
pub mod journal;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{mpsc, Arc, Mutex};
use std::thread::{self, JoinHandle};

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome};
use openraid_core::array::reshape_plan::{ReshapeGoal, ReshapePlan};
use openraid_core::limits::Limits;
use openraid_core::reason::TraceEntry;
use openraid_core::request_steps::Step;
use openraid_format::{Superblock, Uuid};
pub use openraid_nvme::{AllowedHosts, Nqn, PathState};
use openraid_sys::{
    listen_patiently, EngineOptions, HugePages, InheritedListener, ListenPlace, Listener, PoolOptions, Signals, Waker,
};
use openraid_units::{ArrayId, BlockSize, Bytes, DriveId};

pub use arrays::{AssembleRequest, Nesting, Started, StartedArray};
pub use create::{random_uuid, CreateRequest, NestedRequest};
pub use error::{ServiceError, StartError};

use crate::engine_recorder::Recorder;
pub use crate::export::OfferError;
use crate::export::{Offer, Protocol};
use crate::limits::NOTICES_KEPT_MAX;
use crate::member::OpenedMember;
pub use crate::shard::{ArrayView, AttachError, DriveView, OrderError, ServiceEvent, ServiceStatus, ShardError};
use crate::shard::{Order, OwnRequest, Shard, ShardConfig};
pub use crate::vhost::VhostPlace;

/// Maximum bytes of one request of the service itself.
const OWN_REQUEST_BYTES_MAX: u64 = 1 << 20;
/// Maximum preferred size that is announced to clients, a power of two.
const PREFERRED_BYTES_MAX: u32 = 32 << 20;

/// Addresses to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Does a listener of this place listen here?
    fn is(&self, place: &ListenPlace) -> bool {
        match (self, place) {
            (Self::Tcp(address), ListenPlace::Tcp(other)) => address == other,
            (Self::Unix(path), ListenPlace::Unix(other)) => path == other,
            _ => false,
        }
    }
}

/// From when on clients are accepted. Before that they wait in the queues of the listeners.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Accept {
    /// From the start on.
    #[default]
    AtOnce,
    /// From [`ServiceHandle::accept`] on.
    WhenTold,
}

/// How to start.
pub struct ServiceConfig {
    /// Sizes of the engine's tables.
    pub limits: Limits,
    /// The kernel's engine for members.
    pub engine: EngineOptions,
    /// The kind of pages to request.
    pub huge: HugePages,
    /// Touch all frames before service begins.
    pub touch: bool,
    /// Addresses to listen on; the list may be empty.
    pub listen: Vec<Listen>,
    /// TCP addresses to listen on for NVMe/TCP; port 0 takes a free one.
    pub nvme: Vec<SocketAddr>,
    /// Where the sockets for virtual machines are: each array has one in each of these places.
    pub vhost: Vec<VhostPlace>,
    /// Listeners for some of these addresses, which another process keeps.
    pub kept: Vec<InheritedListener>,
    /// From when on clients are accepted.
    pub accept: Accept,
    /// Stores the stream of events.
    pub recorder: Option<Box<dyn Recorder>>,
    /// Signals that stop the service; the caller blocked them before any thread was made.
    pub signals: Option<Signals>,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            engine: EngineOptions::default(),
            huge: HugePages::Advise,
            touch: false,
            listen: Vec::new(),
            nvme: Vec::new(),
            vhost: Vec::new(),
            kept: Vec::new(),
            accept: Accept::default(),
            recorder: None,
            signals: None,
        }
    }
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    handle: ServiceHandle,
    events: mpsc::Receiver<ServiceEvent>,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    nvme_addresses: Vec<SocketAddr>,
}

/// A way to ask a running service.
#[derive(Clone, Debug)]
pub struct ServiceHandle {
    orders: mpsc::Sender<Order>,
    waker: Waker,
    limits_pool: Bytes,
    hanging: journal::Hanging,
    /// Held while the journal is opened again, so that it is not inspected during that time.
    reopening: Arc<Mutex<()>>,
}

impl Service {
    /// Start a service without arrays.
    ///
    /// # Errors
    /// An address that is taken, no memory, limits that do not fit together.
    pub fn start(config: ServiceConfig) -> Result<Self, ServiceError> {
        let mut all_kept = config.kept;
        let mut open = |place: &Listen| {
            let kept = all_kept.iter().position(|kept| place.is(&kept.place));
            match (kept, place) {
                (Some(kept), _) => Ok(all_kept.swap_remove(kept).listener),
                (None, Listen::Tcp(address)) => listen_patiently(|| Listener::tcp(*address)),
                (None, Listen::Unix(path)) => listen_patiently(|| Listener::unix_of_folder(path)),
            }
        };
        let nbd = config.listen.iter().map(&mut open).collect::<Result<Vec<_>, _>>()?;
        let nvme = config.nvme.iter().map(|address| open(&Listen::Tcp(*address))).collect::<Result<Vec<_>, _>>()?;
        let tcp = |listeners: &[Listener]| listeners.iter().filter_map(Listener::tcp_address).collect::<Vec<_>>();
        let (addresses, nvme_addresses) = (tcp(&nbd), tcp(&nvme));
        let nbd = nbd.into_iter().map(|listener| (listener, Protocol::Nbd));
        let listeners = nbd.chain(nvme.into_iter().map(|listener| (listener, Protocol::Nvme))).collect();
        let (orders, order_queue) = mpsc::channel();
        let (news, events) = mpsc::sync_channel(NOTICES_KEPT_MAX);
        let (ready, is_ready) = mpsc::channel();
        let waker = Waker::new().map_err(|error| ServiceError::Shard(ShardError::System(error)))?;
        let hanging = journal::Hanging::default();
        let (limits_pool, reopening) = (config.limits.pool, Arc::default());
        let handle = ServiceHandle { orders, waker: waker.clone(), limits_pool, hanging, reopening };
        let shard = ShardConfig {
            pool: PoolOptions { len: config.limits.pool, huge: config.huge, touch: config.touch },
            limits: config.limits,
            engine: config.engine,
            listeners,
            vhost: config.vhost,
            vhost_kept: all_kept,
            accept: config.accept,
            recorder: config.recorder,
            signals: config.signals,
            orders: order_queue,
            waker,
            news,
        };
        let spawned = thread::Builder::new().name("shard".into()).spawn(move || match Shard::new(shard) {
            Ok(shard) => {
                let _ = ready.send(Ok(()));
                shard.run();
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        });
        let thread = spawned.map_err(|error| ServiceError::Thread(error.to_string()))?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Self { handle, events, thread: Some(thread), addresses, nvme_addresses }),
            Ok(Err(error)) => Err(ServiceError::Shard(error)),
            Err(_) => Err(ServiceError::Ended),
        }
    }

    /// A way to ask it, for this thread or another.
    #[must_use]
    pub fn handle(&self) -> ServiceHandle {
        self.handle.clone()
    }

    /// The TCP addresses for clients of NBD.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses of NVMe/TCP.
    #[must_use]
    pub fn nvme_addresses(&self) -> &[SocketAddr] {
        &self.nvme_addresses
    }

    /// News, oldest first; ends with [`ServiceEvent::Stopped`].
    #[must_use]
    pub fn events(&self) -> &mpsc::Receiver<ServiceEvent> {
        &self.events
    }

    /// Stop all arrays cleanly and wait for the end.
    ///
    /// # Panics
    /// The shard's thread has panicked.
    pub fn stop(mut self) {
        self.handle.begin_stop();
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.thread.is_some() && !thread::panicking() {
            self.handle.begin_stop();
            self.join();
        }
    }
}

/// How an array is exported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportRequest {
    pub array: ArrayId,
    /// The name for clients.
    pub name: String,
    /// A description; may be empty.
    pub description: String,
    /// Refuse writing.
    pub read_only: bool,
    /// Why every client is refused, if that is so.
    pub refused: Option<String>,
    /// Its identity for NVMe hosts, which outlives renames; without one it is not offered to them.
    pub identity: Option<Uuid>,
    /// The NVMe hosts that may use it.
    pub hosts: AllowedHosts,
    /// How NVMe hosts reach it.
    pub path: PathState,
}

impl ExportRequest {
    /// An export for all clients of NBD.
    #[must_use]
    pub fn named(array: ArrayId, name: &str) -> Self {
        let (description, refused, identity) = (String::new(), None, None);
        let (hosts, path) = (AllowedHosts::Any, PathState::Optimized);
        Self { array, name: name.into(), description, read_only: false, refused, identity, hosts, path }
    }
}

impl ServiceHandle {
    fn order<T>(&self, order: impl FnOnce(mpsc::Sender<T>) -> Order) -> Result<T, ServiceError> {
        let (sender, answer) = mpsc::channel();
        self.orders.send(order(sender)).map_err(|_| ServiceError::Ended)?;
        self.waker.wake();
        answer.recv().map_err(|_| ServiceError::Ended)
    }

    /// Begin to stop; does not wait. The end is [`ServiceEvent::Stopped`].
    pub fn begin_stop(&self) {
        // If the service has ended already there is nothing to stop.
        let _ = self.orders.send(Order::Stop);
        self.waker.wake();
    }

    /// Accept clients from now on.
    ///
    /// # Errors
    /// The service has ended.
    pub fn accept(&self) -> Result<(), ServiceError> {
        self.order(Order::Accept)
    }

    /// Attach a member.
    ///
    /// # Errors
    /// No room for it.
    pub fn attach(&self, member: OpenedMember) -> Result<DriveId, ServiceError> {
        Ok(self.order(|answer| Order::Attach(Box::new(member), answer))??)
    }

    /// Detach a member that no array uses, and release its locks.
    ///
    /// # Errors
    /// It is in use, or has commands that it never answered.
    pub fn detach(&self, drive: DriveId) -> Result<(), ServiceError> {
        Ok(self.order(|answer| Order::Detach(drive, answer))??)
    }

    /// Look which devices are gone, and tell the engine. Returns the drives that were not known to be gone.
    ///
    /// # Errors
    /// The service has ended.
    pub fn look_for_lost(&self) -> Result<Vec<DriveId>, ServiceError> {
        self.order(Order::LookForLost)
    }

    /// Give the engine a command and wait for its answer.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn admin(&self, command: AdminCommand) -> Result<AdminOutcome, ServiceError> {
        let result: Result<AdminOutcome, AdminError> = self.order(|answer| Order::Admin(Box::new(command), answer))?;
        Ok(result?)
    }

    /// A command that starts an array.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(crate) fn admin_start(&self, command: AdminCommand) -> Result<ArrayId, ServiceError> {
        match self.admin(command)? {
            AdminOutcome::Started(array) => Ok(array),
            AdminOutcome::Done => Err(ServiceError::Ended),
        }
    }

    /// Stop an array: its exports are withdrawn, running requests end, members are flushed and marked clean.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn stop_array(&self, array: ArrayId) -> Result<(), ServiceError> {
        self.withdraw(array)?;
        self.admin(AdminCommand::Stop { array }).map(drop)
    }

    /// Export an array to clients. The announced sizes follow from the array.
    ///
    /// # Errors
    /// The name is taken or not allowed, or the array does not run.
    pub fn export(&self, request: &ExportRequest) -> Result<(), ServiceError> {
        let status = self.status()?;
        let no_array = ServiceError::Order(OrderError::NoSuchArray(request.array));
        let view = status.arrays.iter().find(|view| view.status.array == request.array).ok_or(no_array)?;
        let offer = Offer {
            array: request.array,
            name: request.name.clone(),
            description: request.description.clone(),
            size: view.status.capacity.bytes(),
            read_only: request.read_only,
            rotational: rotates(&status, view),
            unit: unit(view),
            preferred: preferred(&status, view),
            refused: request.refused.clone(),
            uuid: request.identity.map(|identity| identity.0),
            hosts: request.hosts.clone(),
            path: request.path,
        };
        Ok(self.order(|answer| Order::Offer(Box::new(offer), answer))??)
    }

    /// Withdraw the exports of an array; its clients are disconnected.
    ///
    /// # Errors
    /// The service has ended.
    pub fn withdraw(&self, array: ArrayId) -> Result<(), ServiceError> {
        self.order(|answer| Order::Withdraw(array, answer))
    }

    /// Withdraw this name of an array. Clients that connected by it stay connected, new ones are refused.
    ///
    /// # Errors
    /// The service has ended.
    pub fn retract(&self, name: &str) -> Result<(), ServiceError> {
        self.order(|answer| Order::Retract(name.to_owned(), answer))
    }

    /// Refuse no client of an array any more.
    ///
    /// # Errors
    /// The service has ended.
    pub fn admit(&self, array: ArrayId) -> Result<(), ServiceError> {
        self.order(|answer| Order::Admit(array, answer))
    }

    /// Change which NVMe hosts may use an array. Others are disconnected.
    ///
    /// # Errors
    /// Too many hosts.
    pub fn set_hosts(&self, array: ArrayId, hosts: AllowedHosts) -> Result<(), ServiceError> {
        Ok(self.order(|answer| Order::SetHosts(array, hosts, answer))??)
    }

    /// Change how NVMe hosts reach an array by the addresses of this service.
    ///
    /// # Errors
    /// The service has no address for NVMe/TCP, or does not offer the array there.
    pub fn set_path(&self, array: ArrayId, state: PathState) -> Result<(), ServiceError> {
        Ok(self.order(|answer| Order::SetPath(array, state, answer))??)
    }

    /// Answer no write of an array's clients any more, unless something is dirty in the cache. Returns whether that is so. From
    /// then on nothing that was answered is in memory alone, and a write that waits is [`ServiceEvent::AwaitsMark`].
    ///
    /// # Errors
    /// The service has ended.
    pub fn hold_writes(&self, array: ArrayId) -> Result<bool, ServiceError> {
        self.order(|answer| Order::HoldWrites(array, answer))
    }

    /// Answer the writes of an array's clients again.
    ///
    /// # Errors
    /// The service has ended.
    pub fn pass_writes(&self, array: ArrayId) -> Result<(), ServiceError> {
        self.order(|answer| Order::PassWrites(array, answer))
    }

    /// Make an array read-only for clients, or writable again. Clients stay connected; their running requests end
    /// normally.
    ///
    /// # Errors
    /// The service has ended.
    pub fn set_read_only(&self, array: ArrayId, read_only: bool) -> Result<(), ServiceError> {
        self.order(|answer| Order::SetReadOnly(array, read_only, answer))
    }

    /// The whole status.
    ///
    /// # Errors
    /// The service has ended.
    pub fn status(&self) -> Result<ServiceStatus, ServiceError> {
        self.order(Order::Status)
    }

    /// What a change of an array's shape would do. `joining`: superblocks of drives that would join as spares before it.
    ///
    /// # Errors
    /// Why the change cannot begin.
    pub fn plan_reshape(
        &self,
        array: ArrayId,
        goal: ReshapeGoal,
        joining: Vec<Superblock>,
    ) -> Result<ReshapePlan, ServiceError> {
        let planned = self.order(|answer| Order::PlanReshape(array, goal, joining, answer))?;
        planned.map_err(ServiceError::Admin)
    }

    /// The last decisions of the engine, oldest first.
    ///
    /// # Errors
    /// The service has ended.
    pub fn trace(&self) -> Result<Vec<TraceEntry>, ServiceError> {
        self.order(Order::Trace)
    }

    /// Record the last steps of host requests from now on, at most this number; 0 drops them and records no more.
    ///
    /// # Errors
    /// The service has ended.
    pub fn keep_steps(&self, count: u32) -> Result<(), ServiceError> {
        self.order(|answer| Order::KeepSteps(count, answer))
    }

    /// The recorded steps, oldest first, and the number of steps since the recording began; `None` if none are
    /// recorded.
    ///
    /// # Errors
    /// The service has ended.
    pub fn steps(&self) -> Result<Option<(Vec<Step>, u64)>, ServiceError> {
        self.order(Order::Steps)
    }

    /// Memory for payload.
    #[must_use]
    pub fn pool(&self) -> Bytes {
        self.limits_pool
    }

    fn request(&self, array: ArrayId, request: OwnRequest) -> Result<Vec<u8>, ServiceError> {
        let result: Result<Vec<u8>, ReplyStatus> = self.order(|answer| Order::Request(array, request, answer))?;
        result.map_err(ServiceError::Request)
    }

    /// Read from an array like a client.
    ///
    /// # Errors
    /// The failure of the request.
    pub fn read(&self, array: ArrayId, offset: u64, into: &mut [u8]) -> Result<(), ServiceError> {
        let mut at = offset;
        for piece in into.chunks_mut(piece_len()) {
            let len = u32::try_from(piece.len()).expect("a piece is at most 1 MiB");
            piece.copy_from_slice(&self.request(array, OwnRequest::Read { offset: at, len })?);
            at += u64::from(len);
        }
        Ok(())
    }

    /// Write to an array like a client.
    ///
    /// # Errors
    /// The failure of the request.
    pub fn write(&self, array: ArrayId, offset: u64, bytes: &[u8], fua: bool) -> Result<(), ServiceError> {
        let mut at = offset;
        for piece in bytes.chunks(piece_len()) {
            self.request(array, OwnRequest::Write { offset: at, bytes: piece.to_vec(), fua })?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Make all writes to an array durable.
    ///
    /// # Errors
    /// The failure of the request.
    pub fn flush(&self, array: ArrayId) -> Result<(), ServiceError> {
        self.request(array, OwnRequest::Flush).map(drop)
    }
}

fn piece_len() -> usize {
    usize::try_from(OWN_REQUEST_BYTES_MAX).expect("1 MiB")
}

fn spans<'a>(status: &'a ServiceStatus, view: &'a ArrayView) -> impl Iterator<Item = &'a ArrayView> {
    let is_span = |other: &&ArrayView| view.status.spans.contains(&other.status.array);
    std::iter::once(view).chain(status.arrays.iter().filter(is_span))
}

fn rotates(status: &ServiceStatus, view: &ArrayView) -> bool {
    let drives = spans(status, view).flat_map(|view| view.status.members.iter().filter_map(|member| member.drive));
    let spins = |drive| status.drives.iter().any(|known| known.drive == drive && known.info.rotational);
    drives.into_iter().any(spins)
}

/// Whole chunks are efficient.
fn preferred(status: &ServiceStatus, view: &ArrayView) -> u32 {
    let chunk = spans(status, view).filter_map(|view| Some(view.status.superblock.as_ref()?.chunk)).max();
    let chunk = chunk.map_or(0, |chunk| chunk.bytes().get().min(u64::from(PREFERRED_BYTES_MAX)));
    let chunk = u32::try_from(chunk).unwrap_or(PREFERRED_BYTES_MAX).max(4096);
    1 << chunk.ilog2()
}

/// An array with blocks above 512 bytes announces their size, because hosts align partition tables and file systems to
/// it.
fn unit(view: &ArrayView) -> u32 {
    match view.status.block {
        BlockSize::B512 => 1,
        block => u32::try_from(block.bytes().get()).expect("at most 4096"),
    }
}
