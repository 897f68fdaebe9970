//! The position of a sector: zone, cylinder, head, and the angle at which the sector passes.
//!
//! The skews equal the times for switching heads and cylinders. So a disk that is read from its first sector to its
//! last never waits for the rotation. The time of such a reading up to a sector is the sector's *media time*. Its
//! remainder by a turn is the sector's angle. The difference of two media times is the time of a transfer. All zones
//! have equally many cylinders. Density falls linearly from the outer to the inner rate.

use openraid_core::geometry::Divisor;
use openraid_models::DiskProfile;
use openraid_units::Sectors;

/// Binary places after the point in a sector's time.
const FRACTION: u32 = 20;
/// Entries of the guide to zones, a power of two.
const GUIDE: usize = 512;
/// Places for zones: a power of two, and more than a profile may have. Unused places begin after the end of every disk.
/// The remainder of an index by this number changes nothing; it only removes a bounds check of the compiler.
const ZONES: usize = 128;

/// The layout of one model of disk.
#[derive(Clone, Debug)]
pub struct DiskGeometry {
    zones: Box<[Zone; ZONES]>,
    zones_len: usize,
    guide: Box<[u8; GUIDE]>,
    guide_shift: u32,
    sectors: u64,
    heads: u32,
    cylinders: u32,
    turn: Divisor,
    /// 2^64 divided by the turn, rounded up.
    turn_inverse: u64,
    track_step: Divisor,
    cylinder_step: Divisor,
    /// Time of a zone.
    zone_step: Divisor,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first: u64,
    media: u64,
    cylinder: u32,
    per_track: Divisor,
    per_cylinder: Divisor,
    /// Time of a sector in nanoseconds, with [`FRACTION`] binary places after the point.
    sector: Divisor,
}

/// The place of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskPlace {
    /// Media time: the time at which a reading of the whole disk reaches the sector, in nanoseconds.
    pub media: u64,
    /// Cylinder, from the outer edge.
    pub cylinder: u32,
    pub head: u32,
    /// Time after the start of a turn at which the sector passes, in nanoseconds.
    pub angle: u32,
    sector: u32,
    zone: u32,
}

/// The course of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Time from its first sector to its last, in nanoseconds.
    pub time: u64,
    /// The cylinder of the arm after the transfer.
    pub cylinder: u32,
    /// The active head after the transfer.
    pub head: u32,
}

impl DiskGeometry {
    /// The layout that gives the profile's rates and the capacity.
    #[must_use]
    pub fn new(profile: &DiskProfile, capacity: Sectors) -> Self {
        let turn = profile.turn().0;
        let heads = u64::from(profile.heads.value);
        let switch = profile.head_switch.value.0;
        let skew = Self::cylinder_skew(profile);
        let cylinder_step = heads * turn + (heads - 1) * switch + skew;
        let unit = profile.physical_block.value.0 / 512;
        let count = u64::from(profile.zones.value);
        let (outer, inner) = (profile.rate_outer.value.0, profile.rate_inner.value.0);
        let per_track = |zone: u64| {
            let rate = if count == 1 { (outer + inner) / 2 } else { outer - (outer - inner) * zone / (count - 1) };
            let bytes = u128::from(rate) * u128::from(cylinder_step) / (1_000_000_000 * u128::from(heads));
            let sectors = u64::try_from(bytes / 512).unwrap_or(u64::MAX).min(u64::from(u32::MAX >> 8));
            (sectors / unit * unit).max(unit)
        };
        let widest: u64 = (0..count).map(per_track).sum::<u64>() * heads;
        let cylinders = capacity.0.div_ceil(widest).max(1);
        let one = Divisor::new(1);
        let beyond = Zone { first: u64::MAX, media: 0, cylinder: 0, per_track: one, per_cylinder: one, sector: one };
        let (mut zones, zones_len) = (Box::new([beyond; ZONES]), usize::try_from(count).unwrap_or(ZONES));
        let mut first = 0;
        for (zone, place) in (0..count).zip(zones.iter_mut()) {
            let per_track = per_track(zone);
            *place = Zone {
                first,
                media: zone * cylinders * cylinder_step,
                cylinder: u32::try_from(zone * cylinders).unwrap_or(u32::MAX),
                per_track: Divisor::new(per_track),
                per_cylinder: Divisor::new(per_track * heads),
                sector: Divisor::new((turn << FRACTION) / per_track),
            };
            first += cylinders * per_track * heads;
        }
        let guide_shift = (64 - capacity.0.leading_zeros()).saturating_sub(GUIDE.ilog2());
        let guide = Self::guide(&*zones, guide_shift);
        let mut geometry = Self {
            zones,
            zones_len,
            guide,
            guide_shift,
            sectors: capacity.0,
            heads: profile.heads.value,
            cylinders: 0,
            turn: Divisor::new(turn.min(u64::from(u32::MAX))),
            turn_inverse: u64::MAX / turn.clamp(1, u64::from(u32::MAX)) + 1,
            track_step: Divisor::new(turn + switch),
            cylinder_step: Divisor::new(cylinder_step),
            zone_step: Divisor::new(cylinders * cylinder_step),
        };
        geometry.cylinders = geometry.place(capacity.0 - 1).cylinder + 1;
        geometry
    }

    fn cylinder_skew(profile: &DiskProfile) -> u64 {
        let seeks = [profile.seek_read.track_to_track.value.0, profile.seek_write.track_to_track.value.0];
        seeks.into_iter().max().unwrap_or_default().max(profile.head_switch.value.0)
    }

    /// For each range of addresses, the zone in which it begins.
    fn guide(zones: &[Zone], shift: u32) -> Box<[u8; GUIDE]> {
        let zone_of = |lba: u64| zones.iter().rposition(|zone| zone.first <= lba).unwrap_or_default();
        let mut guide = Box::new([0; GUIDE]);
        for (entry, lba) in guide.iter_mut().zip((0..).map(|entry: u64| entry << shift)) {
            *entry = u8::try_from(zone_of(lba)).unwrap_or(u8::MAX);
        }
        guide
    }

    /// Sectors of the disk.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    /// Cylinders with data.
    #[must_use]
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }
    /// Time of a turn in nanoseconds.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // made of 32 bits at most
    pub fn turn(&self) -> u32 {
        self.turn.by() as u32
    }
    /// The angle at a time, as the time since the start of a turn, in nanoseconds.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a remainder by a turn
    pub fn angle(&self, time: u64) -> u32 {
        self.turn.remainder(time) as u32
    }
    /// The angle at a time below 2^32 ns, in fewer steps: the remaining fraction of a turn, times the turn. The
    /// fraction has 64 places, which suffices for an exact result (Lemire, Kaser, Kurz: Faster remainder by direct
    /// computation, 2019).
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a remainder by a turn
    pub fn angle_of(&self, time: u32) -> u32 {
        let fraction = self.turn_inverse.wrapping_mul(u64::from(time));
        ((u128::from(fraction) * u128::from(self.turn.by())) >> 64) as u32
    }
    /// Time for reading a cylinder with all heads and moving to the next one, in nanoseconds.
    #[must_use]
    pub fn cylinder_step(&self) -> u64 {
        self.cylinder_step.by()
    }

    /// Sectors of the longest track.
    #[must_use]
    pub fn track(&self) -> u64 {
        self.zones[0].per_track.by()
    }
    /// Time of a sector at a place, in nanoseconds.
    #[must_use]
    #[inline]
    pub fn sector_time(&self, place: &DiskPlace) -> u64 {
        self.zones[place.zone as usize % ZONES].sector.by() >> FRACTION
    }

    /// The place of a sector, which must be on the disk.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // remainders by tracks, cylinders and turns
    pub fn place(&self, lba: u64) -> DiskPlace {
        debug_assert!(lba < self.sectors, "sector {lba} is beyond the disk");
        let mut index = usize::from(self.guide[(lba >> self.guide_shift) as usize % GUIDE]);
        while self.zones[(index + 1) % ZONES].first <= lba {
            index += 1;
        }
        let zone = &self.zones[index % ZONES];
        let within = lba - zone.first;
        let (cylinder, rest) = zone.per_cylinder.divide(within);
        let (head, sector) = zone.per_track.divide(rest);
        let offset = (sector * zone.sector.by()) >> FRACTION;
        let media = zone.media + cylinder * self.cylinder_step.by() + head * self.track_step.by() + offset;
        DiskPlace {
            media,
            cylinder: zone.cylinder + cylinder as u32,
            head: head as u32,
            angle: self.angle(media),
            sector: sector as u32,
            zone: index as u32,
        }
    }

    /// The course of a transfer of `len` sectors from `lba`, which is at `place`.
    #[must_use]
    pub fn span(&self, place: &DiskPlace, lba: u64, len: u64) -> Span {
        let zone = &self.zones[place.zone as usize % ZONES];
        if u64::from(place.sector) + len <= zone.per_track.by() {
            return Span { time: (len * zone.sector.by()) >> FRACTION, cylinder: place.cylinder, head: place.head };
        }
        let last = self.place(lba + len - 1);
        let sector = self.zones[last.zone as usize % ZONES].sector.by() >> FRACTION;
        Span { time: last.media + sector - place.media, cylinder: last.cylinder, head: last.head }
    }

    /// Media time at which the sectors before `lba` have been read. `lba` may be the end of the disk.
    #[must_use]
    pub fn media_end(&self, lba: u64) -> u64 {
        let last = self.place(lba - 1);
        last.media + (self.zones[last.zone as usize % ZONES].sector.by() >> FRACTION)
    }

    /// The first sector that has not been read completely at a media time.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the number of a zone
    pub fn reached(&self, media: u64) -> u64 {
        let index = (self.zone_step.quotient(media) as usize).min(self.zones_len - 1);
        let zone = &self.zones[index % ZONES];
        let (cylinder, rest) = self.cylinder_step.divide(media - zone.media);
        let head = self.track_step.quotient(rest).min(u64::from(self.heads - 1));
        let offset = rest - head * self.track_step.by();
        let per_track = zone.per_track.by();
        let sector = zone.sector.quotient(offset << FRACTION).min(per_track);
        let lba = zone.first + cylinder * zone.per_cylinder.by() + head * per_track + sector;
        lba.min(self.sectors)
    }
}
