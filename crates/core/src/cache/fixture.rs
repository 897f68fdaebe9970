//! For unit tests: a cache with one set of members in sync and with requests; no controller, no drives.

use openraid_units::{ArrayId, ArrayOffset, Bytes, Instant, Sectors, SetId, SetLba, Token};

use crate::actions::Actions;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::cache::lines::Mask;
use crate::cache::Cache;
use crate::call::{Base, Call};
use crate::events::{BlockRequest, RequestKind};
use crate::frames::Frames;
use crate::geometry::cache_units::lines_of;
use crate::geometry::cache_units::unit_at;
use crate::geometry::{Level, SetSpec};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::requests::Requests;

pub(super) const SET: SetId = SetId(0);
pub(super) const WRITE: RequestKind = RequestKind::Write { fua: false };

/// See the module header.
pub(super) struct Bench {
    pub(super) cache: Cache,
    pub(super) requests: Requests,
    pub(super) sets: Sets,
    pub(super) base: Base,
    pub(super) journal: Journal,
    pub(super) actions: Actions,
    frames: Frames,
    zones: u32,
}

impl Bench {
    /// A set of four members with chunks of 64 KiB, and a cache of 1 MiB.
    pub(super) fn new(level: Level) -> Self {
        let limits = Limits { cache: Bytes::mib(1), pool: Bytes::mib(8), ..Limits::small() };
        let member_size = Sectors::kib(1024);
        let layout = if level == Level::Raid1 { 0 } else { 2 };
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level, members: 4, chunk: Sectors::kib(64), layout, member_size, member_sizes };
        let mut sets = Sets::new();
        sets.put(SET, Set::with_members(&spec));
        let mut cache = Cache::new(&limits);
        cache.make_room_for(SET);
        Self {
            cache,
            requests: Requests::new(&limits),
            sets,
            base: Base::new(limits.clone()),
            journal: Journal::new(&limits),
            actions: Actions::new(&limits),
            frames: Frames::new(0, 1 << 20),
            zones: limits.destage_zones,
        }
    }

    pub(super) fn parts(&mut self) -> (&mut Cache, (&mut Requests, &mut Sets), Call<'_>) {
        let Self { cache, requests, sets, base, actions, .. } = self;
        (cache, (requests, sets), Call::new(base, actions))
    }

    /// Hand on what the cache has left for the pieces.
    pub(super) fn hand_on(&mut self) {
        while let Some(signal) = self.sets.take_signal() {
            match signal {
                Signal::UnitEnded(first, error) => self.requests.release_chain(first, error),
                Signal::LinesHeld => self.requests.wake_all(),
                _ => panic!("{signal:?} is not for pieces"),
            }
        }
    }

    /// A request of a host for sectors of the array, and its only piece.
    pub(super) fn piece(&mut self, kind: RequestKind, at: u64, len: u64) -> u32 {
        let (offset, len) = (ArrayOffset(Sectors(at).bytes().get()), Sectors(len).bytes().get());
        let run = self.frames.take(len);
        self.requests.put_piece(BlockRequest { token: Token(at), array: ArrayId(0), kind, offset, len }, run)
    }

    /// Make these sectors dirty. Returns their unit, all in one.
    pub(super) fn dirty(&mut self, at: u64, len: u64) -> u32 {
        let (start, sectors) = unit_at(self.sets.get(SET).shape(), SetLba(at));
        let unit = self.cache.dirty_unit_of(&mut self.sets, (SET, start), Instant::ZERO, self.zones);
        for (number, first, last) in lines_of(SetLba(at), Sectors(len)) {
            let line = self.cache.line_for(SET, number).unwrap();
            self.cache.mark_dirty(line, Mask::range(first, last), unit, sectors.get());
        }
        unit
    }
}
