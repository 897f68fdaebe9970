//! The oracle accepts what it must accept, and rejects the rest.

use super::content::{stamped, Content};
use super::versions::{VersionStanding, Versions};

const SIZE: u64 = 8192;

struct Bench(Versions);

impl Bench {
    fn new(durable_on_end: bool) -> Self {
        Self(Versions::new(SIZE, Content::Zeroes, durable_on_end))
    }
    fn write(&mut self, range: std::ops::Range<u64>, stamp: u64, durable: bool) {
        let id = self.0.begin_write(range.clone(), Content::Stamp(stamp));
        self.0.end_write(id, range, true, durable);
    }
    fn flush(&mut self) {
        let begun = self.0.begin_flush();
        self.0.end_flush(begun);
    }
    /// Whether the range may now read as this stamp (0: zeroes).
    fn sees(&self, range: std::ops::Range<u64>, stamp: u64) -> bool {
        let mut copy = self.0.clone();
        Self::read(&mut copy, range, stamp)
    }
    /// The expected versions in the report of a read that finds none of them: each write, by its order, and its
    /// standing.
    fn standings(&self, range: std::ops::Range<u64>) -> Vec<(u32, VersionStanding)> {
        let mut versions = self.0.clone();
        let begun = versions.begin_read();
        let bytes = stamped(99, range.start, usize::try_from(range.end - range.start).unwrap());
        let wrong = versions.end_read(begun, range.start, &bytes).unwrap_err();
        wrong.expected.iter().map(|seen| (seen.origin, seen.standing)).collect()
    }
    fn read(versions: &mut Versions, range: std::ops::Range<u64>, stamp: u64) -> bool {
        let begun = versions.begin_read();
        let len = usize::try_from(range.end - range.start).unwrap();
        let bytes = if stamp == 0 { vec![0; len] } else { stamped(stamp, range.start, len) };
        versions.end_read(begun, range.start, &bytes).is_ok()
    }
}

#[test]
fn a_write_that_ended_hides_what_was_before_it() {
    let mut bench = Bench::new(true);
    assert!(bench.sees(0..SIZE, 0));
    bench.write(100..3000, 1, false);
    assert!(bench.sees(100..3000, 1) && !bench.sees(100..3000, 0));
    assert!(bench.sees(0..100, 0) && bench.sees(3000..SIZE, 0));
    assert!(!bench.sees(99..3000, 1) && !bench.sees(100..3001, 1));
}

#[test]
fn while_a_write_runs_each_sector_is_old_or_new_and_nothing_else() {
    let mut bench = Bench::new(true);
    bench.write(0..4096, 1, false);
    let id = bench.0.begin_write(0..4096, Content::Stamp(2));
    assert!(bench.sees(0..4096, 1) && bench.sees(0..4096, 2) && !bench.sees(0..4096, 0));
    let mut torn = stamped(1, 0, 4096);
    torn[512..1024].copy_from_slice(&stamped(2, 512, 512));
    let mut versions = bench.0.clone();
    let begun = versions.begin_read();
    assert_eq!(versions.end_read(begun, 0, &torn), Ok(()));
    torn[700] ^= 1;
    let begun = versions.begin_read();
    assert_eq!(versions.end_read(begun, 0, &torn).unwrap_err().offset, 512);
    bench.0.end_write(id, 0..4096, true, false);
    assert!(bench.sees(0..4096, 2) && !bench.sees(0..4096, 1));
}

#[test]
fn either_of_two_overlapping_writes_may_be_last_and_the_first_read_decides() {
    let mut bench = Bench::new(true);
    let one = bench.0.begin_write(0..1024, Content::Stamp(1));
    let two = bench.0.begin_write(0..1024, Content::Stamp(2));
    bench.0.end_write(one, 0..1024, true, false);
    bench.0.end_write(two, 0..1024, true, false);
    assert!(bench.sees(0..1024, 1) && bench.sees(0..1024, 2) && !bench.sees(0..1024, 0));
    assert!(Bench::read(&mut bench.0, 0..512, 1));
    assert!(!bench.sees(0..512, 2) && bench.sees(512..1024, 2));
}

#[test]
fn a_read_may_see_what_was_hidden_while_it_ran() {
    let mut bench = Bench::new(true);
    bench.write(0..512, 1, false);
    let begun = bench.0.begin_read();
    bench.write(0..512, 2, false);
    bench.write(0..512, 3, false);
    for stamp in [1, 2, 3] {
        assert!(bench.0.clone().end_read(begun, 0, &stamped(stamp, 0, 512)).is_ok(), "{stamp}");
    }
    assert!(bench.0.clone().end_read(begun, 0, &[0; 512]).is_err());
    assert!(!bench.sees(0..512, 2));
}

#[test]
fn a_look_does_not_decide_for_a_read_that_began_earlier() {
    let mut bench = Bench::new(true);
    let one = bench.0.begin_write(0..512, Content::Stamp(1));
    let two = bench.0.begin_write(0..512, Content::Stamp(2));
    let begun = bench.0.begin_read();
    bench.0.end_write(one, 0..512, true, false);
    bench.0.end_write(two, 0..512, true, false);
    assert!(Bench::read(&mut bench.0, 0..512, 2));
    assert_eq!(bench.0.end_read(begun, 0, &stamped(1, 0, 512)), Ok(()));
}

#[test]
fn a_cut_keeps_what_was_flushed_and_may_undo_the_rest() {
    let mut bench = Bench::new(false);
    bench.write(0..512, 1, false);
    bench.flush();
    bench.write(0..512, 2, false);
    bench.write(512..1024, 3, true);
    let open = bench.0.begin_write(1024..1536, Content::Stamp(4));
    let _ = open;
    assert!(!bench.sees(0..512, 1), "before the cut there is one truth");
    bench.0.cut();
    assert!(bench.sees(0..512, 1) && bench.sees(0..512, 2) && !bench.sees(0..512, 0));
    assert!(bench.sees(512..1024, 3) && !bench.sees(512..1024, 0));
    assert!(bench.sees(1024..1536, 4) && bench.sees(1024..1536, 0));
    // The first read decides.
    assert!(Bench::read(&mut bench.0, 0..512, 2));
    assert!(!bench.sees(0..512, 1));
    bench.0.cut();
    assert!(bench.sees(0..512, 2) && !bench.sees(0..512, 1));
}

#[test]
fn a_flush_covers_only_what_was_replied_before_it_began() {
    let mut bench = Bench::new(false);
    let id = bench.0.begin_write(0..512, Content::Stamp(1));
    let flush = bench.0.begin_flush();
    bench.0.end_write(id, 0..512, true, false);
    bench.0.end_flush(flush);
    bench.0.cut();
    assert!(bench.sees(0..512, 0) && bench.sees(0..512, 1));
}

#[test]
fn a_write_that_failed_may_have_happened_until_the_next_one() {
    let mut bench = Bench::new(true);
    let id = bench.0.begin_write(0..512, Content::Stamp(1));
    bench.0.end_write(id, 0..512, false, false);
    assert!(bench.sees(0..512, 0) && bench.sees(0..512, 1));
    bench.write(0..512, 2, false);
    assert!(!bench.sees(0..512, 0) && !bench.sees(0..512, 1) && bench.sees(0..512, 2));
}

#[test]
fn histories_that_meet_again_become_one() {
    let mut bench = Bench::new(true);
    for place in 0..8 {
        bench.write(place * 1000..place * 1000 + 500, place + 1, false);
    }
    assert!(bench.0.extents() > 8);
    bench.write(0..SIZE, 9, false);
    assert_eq!(bench.0.extents(), 1);
}

#[test]
fn an_unanswered_write_is_reported_as_left_by_the_cut_and_not_as_promised() {
    let mut bench = Bench::new(false);
    bench.write(0..512, 1, true);
    bench.write(512..1024, 2, false);
    bench.0.begin_write(0..1024, Content::Stamp(3));
    assert_eq!(bench.standings(0..512), [(1, VersionStanding::Promised), (3, VersionStanding::Open)]);
    assert_eq!(bench.standings(512..1024), [(2, VersionStanding::Open), (3, VersionStanding::Open)]);
    bench.0.cut();
    assert_eq!(bench.standings(0..512), [(1, VersionStanding::Promised), (3, VersionStanding::Left)]);
    assert_eq!(
        bench.standings(512..1024),
        [(0, VersionStanding::Promised), (2, VersionStanding::Left), (3, VersionStanding::Left)]
    );
    // After a second cut, the version is not promised, nor is it after a read. But the read still decides.
    bench.0.cut();
    assert!(Bench::read(&mut bench.0, 0..512, 3));
    assert_eq!(bench.standings(0..512), [(3, VersionStanding::Left)]);
}
