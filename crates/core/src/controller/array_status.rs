//! The status of an array as an administrator sees it. `status.rs` fills it in.

use alloc::vec::Vec;
use openraid_format::Superblock;
use openraid_units::{ArrayId, BlockSize, Sectors, SetId};

use crate::cache::set_figures::CacheFigures;
use crate::check_results::ScrubStatus;
use crate::journal::set_journal::Session;
use crate::reason::Reason;
use crate::set_status::{BitmapStatus, Health, MemberStatus, ReshapeStatus, TaskStatus};
use crate::settings::{AdaptiveStatus, Policy};

/// The status of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayStatus {
    /// Number of the array.
    pub array: ArrayId,
    /// Size of the array for hosts.
    pub capacity: Sectors,
    /// Up to here the array has all the redundancy of its level: the whole of an optimal array, nothing of a degraded
    /// one, and the part that a rebuild has restored so far if that is contiguous.
    pub whole_to: Sectors,
    /// In one word.
    pub health: Health,
    /// Members by slot, then spares and the faulty. None for a nested array: its spans have them.
    pub members: Vec<MemberStatus>,
    /// The spans of a nested array.
    pub spans: Vec<ArrayId>,
    /// Its sets: one, or one for each span.
    pub sets: Vec<SetId>,
    /// Background task.
    pub task: Option<TaskStatus>,
    /// The change of its shape.
    pub reshape: Option<ReshapeStatus>,
    /// Is the active mark on disk?
    pub active: bool,
    /// md's event count.
    pub events: u64,
    /// Parity or copies are consistent below this; `Sectors::MAX` when everywhere.
    pub consistent_to: Sectors,
    /// The bitmap, if it has one.
    pub bitmap: Option<BitmapStatus>,
    /// Decisions counted.
    pub reasons: Vec<(Reason, u64)>,
    /// Host requests: reads, writes, flushes, others.
    pub requests: [u64; 4],
    /// Host bytes read and written.
    pub bytes: [u64; 2],
    /// Figures of the cache for it.
    pub cached: CacheFigures,
    /// Operations in work.
    pub ops: u32,
    /// The superblock as it would be written now (of slot 0; without per-member fields).
    pub superblock: Option<Superblock>,
    /// Its logical block, which hosts see as the smallest unit.
    pub block: BlockSize,
    /// Settings of the array.
    pub policy: Policy,
    /// State of its journal session; for a nested array, see its spans.
    pub session: Session,
    /// May a journal hold data for it? If not, a journal's entries about it do not count.
    pub in_journal: bool,
    /// State and history of the adaptive policy.
    pub adaptive: AdaptiveStatus,
    /// Is it being stopped?
    pub stopping: bool,
    /// The outcome of the last check or repair; for a nested array, see its spans.
    pub last_scrub: Option<ScrubStatus>,
}
