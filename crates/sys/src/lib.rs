//! Safe access to the kernel: mapped frames, asynchronous member I/O, member files, sockets, waiting, clocks.
//!
//! Only this crate and `openraid-parity` may use `unsafe`. Everything that this crate exports is safe: no sequence of
//! calls from safe code can make the kernel and the program access the same bytes in conflict.
//!
//! ```text
//!               FramePool  all payload bytes, addressed by PoolOffset
//!              /   |   \
//!      IoEngine   Socket  parity jobs
//!     (members)  (NBD)   (through FramePool::disjoint)
//!           \     /
//!            Epoll   one place to wait: completions, sockets, wake-ups from other threads, signals
//! ```
//!
//! It must never decide anything about RAID, parse metadata or implement a protocol. It must never hide an error: a
//! short read is an error, and a fallback is a [`Note`] that the caller can show.

#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(target_os = "linux"))]
compile_error!("openraid-sys speaks to the Linux kernel only");

mod address_reuse;
mod blocking_threads;
mod buffer;
pub mod clock;
mod closing_thread;
mod command;
mod commands_in_flight;
mod descriptors;
mod displaced_files;
mod drive_cache;
mod ending_processes;
mod engine;
mod epoll;
mod errno;
mod frame_pool;
pub mod free_memory;
mod free_room;
mod holders;
mod inherited_sockets;
mod kernel_md;
mod member;
mod member_error;
mod member_facts;
mod name_lock;
mod nbd_device;
mod net;
mod new_file;
mod passed_files;
mod random;
mod registered_pool;
mod ring;
mod room_wait;
mod shared_memory;
mod signals;
mod sparse_extents;
mod thin_pool;
mod uevents;

pub use address_reuse::{listen_patiently, LEAVING_TIME_MAX, TAKEN_TIME_MAX};
pub use buffer::{AlignedBuffer, METADATA_BYTES_MAX};
pub use command::{DONE_PER_REAP_HINT, IN_FLIGHT_MAX, MEMBERS_MAX, TRANSFER_BYTES_MAX};
pub use descriptors::{raise_descriptor_limit, take_descriptor};
pub use displaced_files::Displaced;
pub use drive_cache::{DriveCache, DriveCacheError};
pub use ending_processes::{give_way, help_writing_back};
pub use engine::{
    Completed, EngineKind, EngineOptions, IoEngine, IoError, MemberSlot, Operation, OperationKind, Prefer, PushError,
    WaitMode,
};
pub use epoll::{Epoll, Events, Interest, ReadyEvent, Waker, EVENTS_MAX};
pub use errno::{Errno, FaultKind, Note};
pub use frame_pool::{FramePool, HugePages, PoolOptions, PoolRange, DISJOINT_READS_MAX, DISJOINT_WRITES_MAX};
pub use free_room::free_bytes;
pub use holders::{device_holder, device_opener, lock_file, FILE_LOCK_TIME_MAX};
pub use inherited_sockets::{InheritedListener, ListenPlace, NotInherited, ServerWithSockets, FIRST_INHERITED};
pub use kernel_md::KernelMd;
pub use member::{Direct, Identity, MemberFile, Use};
pub use member_error::{MemberError, NotAMember};
pub use member_facts::{backing_file, DeviceNames, Facts};
pub use name_lock::{NameError, NameLock};
pub use nbd_device::{HandedOver, NbdControl, NbdDevice};
pub use net::{Accepted, Holder, Listener, MessagePiece, NetError, Peer, Progress, Socket, PIECES_PER_SEND_MAX};
pub use new_file::{check_new_file, memory_file, replace_file};
pub use random::fill_random;
pub use shared_memory::{sealed_file, SharedEvent, SharedMemory, SharedMemoryError};
pub use signals::{ProcessSignal, Signals};
pub use sparse_extents::next_data;
pub use thin_pool::thin_pool;
pub use uevents::{DeviceEvents, DeviceNews};
