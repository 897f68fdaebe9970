//! Members: opened without changes, probed without writes, then commanded by the engine.
//!
//! ```text
//!  MemberSpec --open--> OpenedMember --probe--> ProbedMember      (any thread, with a time limit)
//!                            |
//!                            +--attach--> Drive                   (the shard's thread, asynchronous)
//! ```

mod disk;
mod foreign_signatures;
mod known_content;
mod open;
mod overlay;
pub mod paced;
mod probe;
mod ram;
pub mod remote;
mod sparse_memory;
mod spec;

pub use disk::{drive_error, info as disk_info, operation, FailedCommand};
pub use foreign_signatures::{Foreign, Signature, SignatureKind};
pub use known_content::{KnownContent, MemberQuestion};
pub use open::{open, open_all, open_and_probe, Medium, OpenError, OpenOptions, OpenedMember, Storage};
pub use openraid_sys::DeviceNames;
pub use overlay::Overlay;
pub use probe::{look, probe_md0, Look, ProbeError, ProbedMember};
pub use ram::RamDisk;
pub use sparse_memory::SparseMemory;
pub use spec::{MemberSpec, ModelSpec, Place, SpecError};
