//! An exported volume: a set, or a stripe over sets (50, 60).

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_units::{BlockSize, Instant, Sectors, SetId, SetLba};

use crate::adaptive::Adaptive;
use crate::admin_answer::AdminError;
use crate::array::numbered_table::Table;
use crate::array::set::Life;
use crate::array::sets::Sets;
use crate::events::{BlockRequest, RequestKind};
use crate::geometry::shape::Shape;
use crate::geometry::{Divisor, Striped};
use crate::occupancy::Occupancy;
use openraid_units::ArrayId;

/// The map from an array to its sets.
#[derive(Debug)]
pub(crate) enum Volume {
    /// The set as it is.
    Direct(SetId),
    /// A stripe over sets; in each, the data follows the outer superblock, at its `data_offset`.
    Striped {
        /// Slots are spans.
        geometry: Striped,
        /// Set and start of the data in it, by span.
        spans: Vec<(SetId, Sectors)>,
    },
}

impl Volume {
    /// The place of `at`, and how far it continues there on one side of the set's shape.
    #[inline(always)]
    pub(crate) fn map<'a>(&self, at: Sectors, shape_of: impl Fn(SetId) -> &'a Shape) -> (SetId, SetLba, Sectors) {
        match self {
            Self::Direct(set) => {
                let at = SetLba(at.get());
                (*set, at, shape_of(*set).at(at).until() - at)
            }
            Self::Striped { geometry, spans } => {
                let fragment = geometry.map(SetLba(at.get()));
                let (set, data_offset) = spans[fragment.slot.index()];
                let at = SetLba(fragment.lba.get()) + data_offset;
                (set, at, fragment.len.min(shape_of(set).at(at).until() - at))
            }
        }
    }

    /// Number of sectors.
    #[inline(always)]
    fn sectors<'a>(&self, shape_of: impl Fn(SetId) -> &'a Shape) -> Sectors {
        match self {
            Self::Direct(set) => shape_of(*set).capacity(),
            Self::Striped { geometry, .. } => geometry.capacity(),
        }
    }

    /// Number of sets.
    pub(crate) fn set_count(&self) -> usize {
        match self {
            Self::Direct(_) => 1,
            Self::Striped { spans, .. } => spans.len(),
        }
    }

    /// The set with this number.
    pub(crate) fn set(&self, index: usize) -> SetId {
        match self {
            Self::Direct(set) => *set,
            Self::Striped { spans, .. } => spans[index].0,
        }
    }
}

/// An array that takes host requests.
#[derive(Debug)]
pub(crate) struct Array {
    pub(super) block: BlockSize,
    /// Its size is a multiple of this block, the one with which it started. A nested array over it may have larger ones.
    granule: Sectors,
    pub(super) volume: Volume,
    /// Hosts have no more than this, because an administrator has said so. A restart forgets it.
    limit: Sectors,
    /// Requests are cut at multiples of this many bytes: whole stripes, if frames allow it.
    pub(super) piece: Divisor,
    pub(super) stopping: bool,
    /// Number of running nested arrays of which it is a span.
    pub(super) outer: u32,
    /// Reads, writes, flushes, others.
    pub(super) requests: [u64; 4],
    /// Bytes read and written.
    pub(super) bytes: [u64; 2],
    /// Its adaptive policy, and whether that is on.
    pub(super) adaptive: Box<Adaptive>,
    pub(super) is_adaptive: bool,
    /// Has a set of it parity, so that adjoining writes are gathered?
    pub(super) gathers: bool,
    /// Requests inside.
    pub(super) inside: Occupancy,
}

impl Array {
    /// An array without requests that begins at `now`. Requests are cut at multiples of `piece` bytes.
    pub(crate) fn new(block: BlockSize, volume: Volume, piece: Divisor, now: Instant) -> Self {
        Self {
            block,
            granule: block.sectors(),
            volume,
            limit: Sectors::MAX,
            piece,
            stopping: false,
            outer: 0,
            requests: [0; 4],
            bytes: [0; 2],
            adaptive: Box::new(Adaptive::new(now)),
            is_adaptive: false,
            gathers: false,
            inside: Occupancy::default(),
        }
    }

    /// Its size for hosts. It changes with the shapes of the sets, so nothing may keep it.
    #[inline(always)]
    pub(crate) fn capacity<'a>(&self, shape_of: impl Fn(SetId) -> &'a Shape) -> Sectors {
        self.whole(shape_of).min(self.limit)
    }

    /// Its size if an administrator has not made it smaller for hosts.
    #[inline(always)]
    pub(crate) fn whole<'a>(&self, shape_of: impl Fn(SetId) -> &'a Shape) -> Sectors {
        // Blocks are powers of two.
        Sectors(self.volume.sectors(shape_of).get() & self.granule.get().wrapping_neg())
    }

    /// Hosts have no more than this from now on.
    pub(crate) fn limit_to(&mut self, limit: Sectors) {
        self.limit = limit;
    }

    /// A limit that takes nothing from hosts, because this is all, is over: they get what comes later.
    pub(crate) fn forget_limit_of(&mut self, whole: Sectors) {
        if self.limit >= whole {
            self.limit = Sectors::MAX;
        }
    }

    /// The smallest unit of its size.
    pub(crate) const fn granule(&self) -> Sectors {
        self.granule
    }

    /// Its block for hosts.
    #[inline(always)]
    pub(crate) const fn block(&self) -> BlockSize {
        self.block
    }

    /// The sets under it.
    #[inline(always)]
    pub(crate) const fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Requests are cut at multiples of this many bytes.
    #[inline(always)]
    pub(crate) const fn piece(&self) -> Divisor {
        self.piece
    }

    /// Does the adaptive policy watch it?
    #[inline(always)]
    pub(crate) const fn is_adaptive(&self) -> bool {
        self.is_adaptive
    }

    /// Are its writes gathered?
    pub(crate) fn set_gathers(&mut self, gathers: bool) {
        self.gathers = gathers;
    }

    /// Requests of hosts since it started: numbers and bytes, by kind.
    pub(crate) const fn hosted(&self) -> ([u64; 4], [u64; 2]) {
        (self.requests, self.bytes)
    }

    /// The same, to change them.
    pub(crate) fn load_mut(&mut self) -> (&Occupancy, &mut Adaptive) {
        (&self.inside, &mut self.adaptive)
    }

    /// The requests inside it, and what tunes its sets.
    pub(crate) const fn load(&self) -> (&Occupancy, &Adaptive) {
        (&self.inside, &self.adaptive)
    }

    /// Are adjoining writes gathered, because a set of it has parity?
    #[inline(always)]
    pub(crate) const fn gathers(&self) -> bool {
        self.gathers
    }

    /// A request is inside from now on.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: Instant) {
        self.inside.enter(now);
    }

    /// A request is over.
    #[inline(always)]
    pub(crate) fn leave(&mut self, now: Instant) {
        self.inside.leave(now);
    }

    /// Is it being stopped?
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Begin to stop it; true if that had begun before.
    pub(crate) fn begin_to_stop(&mut self) -> bool {
        core::mem::replace(&mut self.stopping, true)
    }

    /// Is it a span of a nested array that runs?
    pub(crate) const fn is_span(&self) -> bool {
        self.outer > 0
    }

    /// A nested array over it has stopped.
    pub(crate) fn left_by_outer(&mut self) {
        self.outer -= 1;
    }

    /// Count its requests from zero again.
    pub(crate) fn reset_counts(&mut self) {
        (self.requests, self.bytes) = ([0; 4], [0; 2]);
    }

    pub(crate) fn count(&mut self, request: &BlockRequest) {
        match request.kind {
            RequestKind::Read => {
                self.requests[0] += 1;
                self.bytes[0] += request.len;
            }
            RequestKind::Write { .. } => {
                self.requests[1] += 1;
                self.bytes[1] += request.len;
            }
            RequestKind::Flush => self.requests[2] += 1,
            RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => self.requests[3] += 1,
        }
    }
}

/// All arrays of a controller.
pub(crate) type Arrays = Table<ArrayId, Array>;

impl Arrays {
    /// The set of an array that is served, if it is no nested array.
    pub(crate) fn set_of(&self, sets: &Sets, id: ArrayId) -> Result<SetId, AdminError> {
        let set = self.direct_set_of(id)?;
        match sets.get(set).life {
            Life::Running => Ok(set),
            Life::Starting | Life::Stopping | Life::Failed => Err(AdminError::Offline),
        }
    }

    /// The same for an array in any state of its life.
    pub(crate) fn direct_set_of(&self, id: ArrayId) -> Result<SetId, AdminError> {
        let array = self.find(id).ok_or(AdminError::NoSuchArray(id))?;
        match array.volume {
            Volume::Direct(set) => Ok(set),
            Volume::Striped { .. } => {
                Err(AdminError::NotPossible("this is a nested array: name the span that the member belongs to"))
            }
        }
    }
}
