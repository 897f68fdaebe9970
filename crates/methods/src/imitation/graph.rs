//! The transfer graph: the rate of reads over the position, from start to end of a target.
//!
//! WinBench reads everything. Here a range is read at each of a hundred positions. This gives the same curve in a
//! hundredth of the time, because zones of a disk are much longer than the distance between two positions.

use crate::load::{LoadRequest, LoadSource, LoadStep};
use crate::target::IoKind;

/// Number of positions in the graph.
pub const PLACES: u64 = 100;
/// Number of bytes that are read at each position, for each member of the array. With fewer bytes a drive would deliver
/// its read-ahead instead of the data under its heads. The first quarter is not counted, because read-ahead needs time
/// to start.
pub const PLACE_BYTES: u64 = 32 << 20;

/// Size of a request in bytes: as large as the largest blocks of the sequential pattern.
pub const GRAPH_REQUEST_BYTES: u32 = 1 << 20;

/// Reads sequentially at one position.
pub struct Graph {
    at: u64,
    end: u64,
}

impl Graph {
    /// Number of bytes that are read at each position of a target with this capacity and number of members: at most a
    /// quarter of the target.
    #[must_use]
    pub fn stretch(capacity: u64, members: u64) -> u64 {
        let unit = u64::from(GRAPH_REQUEST_BYTES);
        (PLACE_BYTES * members.max(1)).min(capacity / 4) / unit * unit
    }

    /// The range at position `number` of a target with this capacity; it has this number of bytes.
    #[must_use]
    pub fn place(number: u64, capacity: u64, stretch: u64) -> Self {
        let room = capacity - stretch;
        let unit = u64::from(GRAPH_REQUEST_BYTES);
        let at = if number == PLACES - 1 { room } else { room / (PLACES - 1) * number } / unit * unit;
        Self { at, end: at + stretch }
    }

    /// Offset of its first byte.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.at
    }
}

impl LoadSource for Graph {
    fn next(&mut self, _worker: u16) -> LoadStep {
        if self.at + u64::from(GRAPH_REQUEST_BYTES) > self.end {
            return LoadStep::End;
        }
        let request = LoadRequest { kind: IoKind::Read, offset: self.at, len: GRAPH_REQUEST_BYTES };
        self.at += u64::from(GRAPH_REQUEST_BYTES);
        LoadStep::Ask(request)
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
        while let LoadStep::Ask(request) = graph.next(0) {
            assert!(request.offset + u64::from(request.len) <= capacity);
            reads += 1;
        }
        assert_eq!(reads, PLACE_BYTES / u64::from(GRAPH_REQUEST_BYTES));
    }
}
