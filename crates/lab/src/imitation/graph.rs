//! The transfer graph: a target read from begin to end, as a rate over the place.
//!
//! WinBench reads everything; here a range is read at each of a hundred positions, which gives the same curve (zones of
//! a disk are far longer than the distance of two positions) in a hundredth of the time.

use crate::load::{Request, Source, Step};
use crate::target::IoKind;

/// Places on the graph.
pub const PLACES: u64 = 100;
/// Bytes that are read at each place, for each member of the array. With fewer, a drive would deliver its read-ahead
/// rather than the data under its heads. The first quarter is not counted: read-ahead has to find its pace.
pub const PLACE_BYTES: u64 = 32 << 20;

/// Bytes of a request: long stretches, as the largest blocks of the sequential pattern.
pub const GRAPH_REQUEST_BYTES: u32 = 1 << 20;

/// Reads one place in sequence.
pub struct Graph {
    at: u64,
    end: u64,
}

impl Graph {
    /// Number of bytes that are read at each place of a target with this capacity and number of members: at most a
    /// quarter of the target.
    #[must_use]
    pub fn stretch(capacity: u64, members: u64) -> u64 {
        let unit = u64::from(GRAPH_REQUEST_BYTES);
        (PLACE_BYTES * members.max(1)).min(capacity / 4) / unit * unit
    }

    /// The `number`th place of a target of that size, a stretch of this many bytes.
    #[must_use]
    pub fn place(number: u64, capacity: u64, stretch: u64) -> Self {
        let room = capacity - stretch;
        let unit = u64::from(GRAPH_REQUEST_BYTES);
        let at = if number == PLACES - 1 { room } else { room / (PLACES - 1) * number } / unit * unit;
        Self { at, end: at + stretch }
    }

    /// Where it begins.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.at
    }
}

impl Source for Graph {
    fn next(&mut self, _worker: u16) -> Step {
        if self.at + u64::from(GRAPH_REQUEST_BYTES) > self.end {
            return Step::End;
        }
        let request = Request { kind: IoKind::Read, offset: self.at, len: GRAPH_REQUEST_BYTES };
        self.at += u64::from(GRAPH_REQUEST_BYTES);
        Step::Ask(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_reach_from_the_begin_to_the_end() {
        let capacity = 74_355_769_344;
        let stretch = Graph::stretch(capacity, 1);
        assert_eq!((stretch, Graph::stretch(capacity, 8)), (PLACE_BYTES, 8 * PLACE_BYTES));
        assert_eq!(Graph::stretch(130 << 20, 8), 32 << 20);
        assert_eq!(Graph::place(0, capacity, stretch).start(), 0);
        let last = Graph::place(PLACES - 1, capacity, stretch);
        assert!(last.end <= capacity && capacity - last.end < u64::from(GRAPH_REQUEST_BYTES));
        let mut reads = 0;
        let mut graph = Graph::place(50, capacity, stretch);
        while let Step::Ask(request) = graph.next(0) {
            assert!(request.offset + u64::from(request.len) <= capacity);
            reads += 1;
        }
        assert_eq!(reads, PLACE_BYTES / u64::from(GRAPH_REQUEST_BYTES));
    }
}
