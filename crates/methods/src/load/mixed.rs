//! Sends the requests of an access specification. Each worker has its own random numbers, its own zone and its own
//! position in the zone.

use super::access::AccessSpec;
use super::{LoadRequest, LoadSource, LoadStep};
use crate::target::IoKind;
use openraid_sim::random::mix;
use openraid_sim::Random;
use openraid_units::Nanos;

/// Scattered streams begin in the first part of a zone; the zone has this number of parts.
const SCATTERED_PART: u64 = 8;

/// A range of bytes of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Zone {
    /// The part of a zone for one of several workers, in whole MiB if the zone is large enough.
    #[must_use]
    pub fn part(self, number: u16, of: u16) -> Self {
        const MIB: u64 = 1 << 20;
        let unit = if self.len / MIB >= u64::from(of) { MIB } else { 4096 };
        let each = if of == 1 { self.len } else { self.len / u64::from(of) / unit * unit };
        Self { start: self.start + each * u64::from(number), len: each }
    }
}

/// The state of one sequential stream.
struct Strand {
    zone: Zone,
    /// The end of the previous request, as an offset in the zone.
    position: u64,
}

struct Worker {
    random: Random,
    /// One stream for each part of the worker; the first in the queue is next.
    strands: Vec<Strand>,
    /// Number of requests since the last pause.
    burst: u32,
    /// Number of writes since the last flush.
    unflushed: u32,
}

/// An access specification with its workers.
pub struct Mixed {
    /// The line for each percent.
    table: [u8; 100],
    lines: Vec<super::AccessLine>,
    workers: Vec<Worker>,
    /// Number of requests after which a worker pauses, and the length of the pause.
    think: Option<(u32, Nanos)>,
    /// Number of writes after which a worker sends a flush.
    flush_every: Option<u32>,
}

impl Mixed {
    /// Divides the zone into parts, which the workers get in turn. With one part all workers share the zone. If there
    /// are more parts than workers, a worker has several parts and changes to the next part with each request, like a
    /// worker with several targets. The seed comes from the cell's identity, and the seed of each worker follows from
    /// it.
    ///
    /// # Panics
    /// A worker's zone is smaller than the largest request. The planner of the cell checks this.
    #[must_use]
    pub fn new(spec: &AccessSpec, workers: u16, zone: Zone, parts: u16, seed: u64) -> Self {
        let strand = |part: u16| {
            let zone = zone.part(part, parts);
            assert!(zone.len >= u64::from(spec.bytes_max()), "bug: a zone smaller than a request");
            Strand { zone, position: 0 }
        };
        let worker = |number: u16| Worker {
            random: Random::derived(seed, u64::from(number)),
            strands: (number % parts..parts).step_by(usize::from(workers)).map(strand).collect(),
            burst: 0,
            unflushed: 0,
        };
        let mut table = [0; 100];
        let mut percent = 0;
        for (number, line) in (0u8..).zip(spec.lines()) {
            let next = percent + usize::from(line.share);
            table[percent..next].fill(number);
            percent = next;
        }
        Self {
            table,
            lines: spec.lines().to_vec(),
            workers: (0..workers).map(worker).collect(),
            think: None,
            flush_every: None,
        }
    }

    /// Each worker pauses for this time after each burst of this number of requests.
    #[must_use]
    pub fn thinking(mut self, burst: u32, time: Nanos) -> Self {
        self.think = Some((burst.max(1), time));
        self
    }

    /// Each worker sends a flush after this number of writes.
    #[must_use]
    pub fn flushing(mut self, writes: u32) -> Self {
        self.flush_every = Some(writes.max(1));
        self
    }

    /// Draws the start of each stream from the seed, in the first eighth of its zone. The rate of a disk is lower on
    /// its inner tracks, and the streams must be comparable. Each start is a whole MiB, and a multiple of the smallest
    /// power of two that holds the largest request.
    #[must_use]
    pub fn scattered(mut self, seed: u64) -> Self {
        let largest = self.lines.iter().map(|line| u64::from(line.bytes)).max().unwrap_or(0);
        let unit = largest.next_power_of_two().max(1 << 20);
        for (number, worker) in (0u64..).zip(&mut self.workers) {
            for strand in &mut worker.strands {
                let room = (strand.zone.len / SCATTERED_PART).min(strand.zone.len - largest);
                strand.position = mix(seed ^ number) % (room / unit + 1) * unit;
            }
        }
        self
    }
}

impl LoadSource for Mixed {
    fn next(&mut self, number: u16) -> LoadStep {
        let worker = &mut self.workers[usize::from(number)];
        if self.flush_every.is_some_and(|writes| worker.unflushed >= writes) {
            worker.unflushed = 0;
            return LoadStep::Ask(LoadRequest { kind: IoKind::Flush, offset: 0, len: 0 });
        }
        if let Some((burst, time)) = self.think {
            if worker.burst == burst {
                worker.burst = 0;
                return LoadStep::Think(time);
            }
            worker.burst += 1;
        }
        // One draw of 64 bits is enough for three choices from 0 to 99: 10^6 divides 2^64 almost evenly (bias 2^-44).
        let draw = worker.random.below(1_000_000);
        let (share, read, random) = (draw % 100, draw / 100 % 100, draw / 10_000);
        let line = &self.lines[usize::from(self.table[usize::try_from(share).expect("below 100")])];
        let len = u64::from(line.bytes);
        let Strand { zone, position } = &mut worker.strands[0];
        let place = if random < u64::from(line.random) {
            let align = u64::from(line.alignment());
            worker.random.below((zone.len - len) / align + 1) * align
        } else if *position + len <= zone.len {
            *position
        } else {
            0
        };
        *position = place + len;
        let kind = if read < u64::from(line.read) { IoKind::Read } else { IoKind::Write };
        worker.unflushed += u32::from(kind == IoKind::Write);
        let request = LoadRequest { kind, offset: zone.start + place, len: line.bytes };
        worker.strands.rotate_left(1);
        LoadStep::Ask(request)
    }
}

#[cfg(test)]
mod tests {
    use super::super::builtin::{file_server, one_size, workstation};
    use super::*;

    fn requests(source: &mut Mixed, worker: u16, count: usize) -> Vec<LoadRequest> {
        let mut found = Vec::new();
        while found.len() < count {
            if let LoadStep::Ask(request) = source.next(worker) {
                found.push(request);
            }
        }
        found
    }

    #[test]
    fn a_worker_sends_a_flush_after_a_given_number_of_writes() {
        let zone = Zone { start: 0, len: 1 << 30 };
        let drawn = requests(&mut Mixed::new(&one_size("w", 4096, 50, 100), 1, zone, 1, 9).flushing(3), 0, 10_000);
        let flushes: Vec<usize> = (0..drawn.len()).filter(|at| drawn[*at].kind == IoKind::Flush).collect();
        assert!(flushes.len() > 1_000);
        let writes = |part: &[LoadRequest]| part.iter().filter(|request| request.kind == IoKind::Write).count();
        assert!(flushes.windows(2).all(|pair| writes(&drawn[pair[0]..pair[1]]) == 3));
        assert!(flushes.iter().all(|at| drawn[*at - 1].kind == IoKind::Write && drawn[*at].len == 0));
    }

    #[test]
    fn sizes_directions_and_places_come_as_often_as_specified() {
        let zone = Zone { start: 1 << 20, len: 1 << 30 };
        let count = 100_000;
        let drawn = requests(&mut Mixed::new(&file_server(), 1, zone, 1, 9), 0, count);
        let share =
            |test: &dyn Fn(&LoadRequest) -> bool| drawn.iter().filter(|r| test(r)).count() as f64 / count as f64;
        // Three standard errors of a share of 60 % among 100,000 are 0.0047.
        assert!((share(&|r| r.len == 4096) - 0.60).abs() < 0.0047);
        assert!((share(&|r| r.len == 65_536) - 0.10).abs() < 0.0029);
        assert!((share(&|r| r.kind == IoKind::Read) - 0.80).abs() < 0.0038);
        let mean = drawn.iter().map(|r| (r.offset - zone.start) as f64).sum::<f64>() / count as f64;
        let width = zone.len as f64;
        assert!((mean / width - 0.5).abs() < 3.0 * (1.0f64 / 12.0).sqrt() / (count as f64).sqrt() + 1e-4);
        assert!(drawn.iter().all(|r| r.offset >= zone.start && r.offset + u64::from(r.len) <= zone.start + zone.len));
        assert!(drawn.iter().all(|r| r.offset % u64::from(r.len) == 0), "places are aligned to the size");
    }

    #[test]
    fn sequential_requests_follow_each_other_and_wrap() {
        let zone = Zone { start: 0, len: 10 * 4096 };
        let drawn = requests(&mut Mixed::new(&one_size("s", 4096, 100, 0), 1, zone, 1, 1), 0, 25);
        let places: Vec<u64> = drawn.iter().map(|r| r.offset / 4096).collect();
        let expected: Vec<u64> = (0..25).map(|n| n % 10).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn scattered_streams_begin_at_whole_places_of_the_first_eighth_and_wrap_at_the_end() {
        let zone = Zone { start: 3 << 20, len: 80 << 20 };
        let spec = one_size("s", 65_536, 100, 0);
        let first = |seed| requests(&mut Mixed::new(&spec, 1, zone, 1, 1).scattered(seed), 0, 1)[0].offset;
        let mut places: Vec<u64> = (0..1000).map(first).collect();
        assert_eq!(places, (0..1000).map(first).collect::<Vec<_>>());
        places.sort_unstable();
        places.dedup();
        // Positions from 0 to 10 MiB in the zone.
        assert_eq!(places, (3..=13).map(|mib| mib << 20).collect::<Vec<u64>>());
        let drawn = requests(&mut Mixed::new(&spec, 1, zone, 1, 1).scattered(5), 0, 80 << 4);
        let mut all: Vec<u64> = drawn.iter().map(|r| r.offset).collect();
        let turn = all.windows(2).filter(|pair| pair[1] != pair[0] + 65_536).count();
        all.sort_unstable();
        assert_eq!((turn, all), (1, ((3 << 4)..(83u64 << 4)).map(|n| n << 16).collect()));
        // The smallest possible zone.
        let zone = Zone { start: 0, len: 65_536 };
        assert!(
            (0..100).all(|seed| requests(&mut Mixed::new(&spec, 1, zone, 1, 1).scattered(seed), 0, 1)[0].offset == 0)
        );
    }

    #[test]
    fn disjoint_zones_do_not_touch_and_shared_ones_are_the_same() {
        let zone = Zone { start: 0, len: 64 << 20 };
        let mut disjoint = Mixed::new(&one_size("s", 65_536, 0, 0), 4, zone, 4, 1);
        for worker in 0..4u16 {
            let first = requests(&mut disjoint, worker, 256);
            let (low, high) = (u64::from(worker) << 24, (u64::from(worker) + 1) << 24);
            assert!(first.iter().all(|r| r.offset >= low && r.offset + 65_536 <= high));
        }
    }

    #[test]
    fn a_worker_with_several_drives_continues_on_each_of_them_in_turn() {
        let zone = Zone { start: 0, len: 5 << 20 };
        let mut source = Mixed::new(&one_size("s", 65_536, 100, 0), 2, zone, 5, 1);
        let places = |source: &mut Mixed, worker| -> Vec<(u64, u64)> {
            requests(source, worker, 6).iter().map(|r| (r.offset >> 20, (r.offset % (1 << 20)) >> 16)).collect()
        };
        assert_eq!(places(&mut source, 0), [(0, 0), (2, 0), (4, 0), (0, 1), (2, 1), (4, 1)]);
        assert_eq!(places(&mut source, 1), [(1, 0), (3, 0), (1, 1), (3, 1), (1, 2), (3, 2)]);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_workers_differ() {
        let zone = Zone { start: 0, len: 1 << 30 };
        let draw = |seed, worker| requests(&mut Mixed::new(&workstation(), 2, zone, 1, seed), worker, 100);
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }

    #[test]
    fn a_worker_thinks_after_each_burst() {
        let zone = Zone { start: 0, len: 1 << 20 };
        let mut source = Mixed::new(&one_size("s", 512, 100, 100), 1, zone, 1, 1).thinking(2, Nanos(5));
        let steps: Vec<bool> = (0..6).map(|_| matches!(source.next(0), LoadStep::Think(_))).collect();
        assert_eq!(steps, [false, false, true, false, false, true]);
    }
}
