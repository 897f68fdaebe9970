//! Reading a drive from its start to its end at a limited rate, to find unreadable sectors before they are needed.

use std::time::{Duration, Instant};

use openraid_units::{Bytes, DriveLba, Sectors};

/// Bytes of one read.
pub const PIECE: Bytes = Bytes::mib(1);
/// After this many errors the rest of a drive is not read: it fails as a whole, and each error takes it seconds.
pub const ERRORS_MAX: u64 = 64;

/// Results so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PatrolProgress {
    /// The next sector.
    pub at: Sectors,
    /// Pieces that cannot be read.
    pub errors: u64,
    pub first: Option<DriveLba>,
    /// Why the drive was not read to its end.
    pub trouble: Option<String>,
}

/// What comes after a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PatrolStep {
    /// Read on.
    Go,
    /// Wait, and ask again.
    Wait,
    /// It is over.
    Stop(&'static str),
}

/// Reads from a place; why it cannot be read.
pub type ReadPlace<'a> = dyn FnMut(DriveLba, &mut [u8]) -> Result<(), String> + 'a;

/// Read a drive of this size. `next` is asked before each piece, and may take its time.
pub fn read(
    capacity: Sectors,
    rate: Bytes,
    read: &mut ReadPlace<'_>,
    next: &mut dyn FnMut(&PatrolProgress) -> PatrolStep,
) -> PatrolProgress {
    let mut found = PatrolProgress::default();
    let mut buffer = vec![0; usize::try_from(PIECE.get()).expect("a megabyte")];
    let time = Duration::from_nanos(PIECE.get().saturating_mul(1_000_000_000) / rate.get().max(1));
    let mut due = Instant::now();
    while found.at < capacity {
        match next(&found) {
            PatrolStep::Go => {}
            PatrolStep::Wait => {
                due = Instant::now();
                continue;
            }
            PatrolStep::Stop(why) => {
                found.trouble = Some(why.into());
                return found;
            }
        }
        let len = (capacity - found.at).min(PIECE.sectors_floor());
        let at = DriveLba(found.at.get());
        let bytes = usize::try_from(len.bytes().get()).expect("a megabyte at most");
        if let Err(why) = read(at, &mut buffer[..bytes]) {
            found.errors += 1;
            found.first = found.first.or(Some(at));
            if found.errors >= ERRORS_MAX {
                found.trouble = Some(format!("{ERRORS_MAX} errors, the last one: {why}"));
                return found;
            }
        }
        found.at += len;
        // Time that was lost is not made up for: hosts would notice.
        due = (due + time).max(Instant::now().checked_sub(time).unwrap_or(due));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_is_read_once_and_errors_are_counted_and_placed() {
        let capacity = Sectors::mib(5) + Sectors(8);
        let (mut seen, mut asked) = (Vec::new(), 0);
        let fast = Bytes::mib(1 << 20);
        let mut bad = |at: DriveLba, into: &mut [u8]| {
            seen.push((at.get(), into.len() as u64 / 512));
            if [2048, 8192].contains(&at.get()) {
                Err("bad".to_owned())
            } else {
                Ok(())
            }
        };
        let mut next = |_: &PatrolProgress| {
            asked += 1;
            if asked == 3 {
                PatrolStep::Wait
            } else {
                PatrolStep::Go
            }
        };
        let found = read(capacity, fast, &mut bad, &mut next);
        assert_eq!((found.at, found.errors, found.first), (capacity, 2, Some(DriveLba(2048))));
        assert_eq!(seen, [(0, 2048), (2048, 2048), (4096, 2048), (6144, 2048), (8192, 2048), (10240, 8)]);
        let dead = read(Sectors::mib(1000), fast, &mut |_, _| Err("gone".into()), &mut |_| PatrolStep::Go);
        assert_eq!((dead.errors, dead.at < Sectors::mib(100)), (ERRORS_MAX, true));
        assert!(dead.trouble.expect("it ended early").contains("gone"));
        let stopped = read(capacity, fast, &mut |_, _| Ok(()), &mut |found| {
            if found.at.is_zero() {
                PatrolStep::Go
            } else {
                PatrolStep::Stop("the server ends")
            }
        });
        assert_eq!((stopped.at, stopped.trouble.as_deref()), (Sectors::mib(1), Some("the server ends")));
    }
}
