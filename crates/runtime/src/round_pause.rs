//! A pause after rounds of pipelined requests, as network cards moderate their interrupts.
//!
//! A client with many requests under way sends them one by one. A shard that wakes up for each of them pays one
//! wake-up, one receive call and one send call for each request. If the shard rests for the time that the client needs
//! to send the next ones, it receives them in one call. The length of the rest follows from the last batch, so a client
//! with fewer requests ends it within a few rounds.

use openraid_units::Nanos;

use crate::limits::{REST_BATCH_MIN, REST_MAX, REST_TIME, REST_WRITES_MIN};

/// Requests that connections sent in one round of the shard.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RoundLoad {
    /// Requests of the largest batch that one connection sent in one call.
    pub largest_batch: u32,
    /// Requests in batches that justify a rest.
    pipelined: u32,
    /// A connection sent a small batch, a large request, or a part of one: its client waits, and a rest would delay it.
    has_others: bool,
}

/// Requests received from one connection in one call.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BatchSize {
    pub requests: u32,
    /// Those with payload.
    pub writes: u32,
    /// A request has more payload, in either direction, than fits into the receive buffer with others.
    pub has_large: bool,
}

impl RoundLoad {
    /// Add a batch.
    pub fn note(&mut self, batch: BatchSize) {
        self.largest_batch = self.largest_batch.max(batch.requests);
        let min = if batch.writes > 0 { REST_WRITES_MIN } else { REST_BATCH_MIN };
        if batch.requests >= min && !batch.has_large {
            self.pipelined += batch.requests;
        } else {
            self.has_others = true;
        }
    }

    /// The rest of the shard after this round, if no command is under way.
    pub fn rest(self) -> Option<Nanos> {
        let is_pipelined = self.pipelined > 0 && !self.has_others;
        is_pipelined.then(|| Nanos(REST_TIME.get() * u64::from(self.pipelined)).min(REST_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(batches: &[BatchSize]) -> Option<Nanos> {
        let mut round = RoundLoad::default();
        batches.iter().for_each(|batch| round.note(*batch));
        round.rest()
    }

    const READS: BatchSize = BatchSize { requests: 16, writes: 0, has_large: false };

    #[test]
    fn the_rest_is_as_long_as_the_batches_and_no_longer_than_its_limit() {
        assert_eq!(rest(&[READS]), Some(Nanos(16 * REST_TIME.get())));
        assert_eq!(rest(&[READS, READS]), Some(Nanos(32 * REST_TIME.get())));
        assert_eq!(rest(&[READS; 8]), Some(REST_MAX));
        assert_eq!(rest(&[]), None);
    }

    #[test]
    fn nothing_rests_while_a_client_waits_for_each_answer_or_gives_large_requests() {
        let few = BatchSize { requests: REST_BATCH_MIN - 1, ..READS };
        for other in [few, BatchSize { has_large: true, ..READS }, BatchSize::default()] {
            assert_eq!(rest(&[READS, other]), None, "{other:?}");
            assert_eq!(rest(&[other, READS]), None, "{other:?}");
        }
    }

    #[test]
    fn writes_take_larger_batches() {
        let writes = |requests| BatchSize { requests, writes: 1, has_large: false };
        assert_eq!(rest(&[writes(REST_WRITES_MIN - 1)]), None);
        assert_eq!(rest(&[writes(REST_WRITES_MIN)]), Some(Nanos(u64::from(REST_WRITES_MIN) * REST_TIME.get())));
    }
}
