//! Requests by client: a bucket of tokens for each session, and one for the other requests of each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::limits::{ADDRESSES_MAX, REQUESTS_A_SECOND, REQUESTS_BURST};

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// What has a bucket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RateClient {
    /// An address, for requests without a session.
    Address(IpAddr),
    /// A session, by its user and its number: no other process takes its requests away.
    Session(String, u64),
}

/// The buckets.
#[derive(Debug, Default)]
pub struct RequestRates(Mutex<HashMap<RateClient, Bucket>>);

impl RequestRates {
    /// May this client ask for something now?
    pub fn admit(&self, client: RateClient) -> bool {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if buckets.len() >= ADDRESSES_MAX && !buckets.contains_key(&client) {
            let quiet = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(client, _)| client.clone());
            quiet.map(|client| buckets.remove(&client));
        }
        let burst = f64::from(REQUESTS_BURST);
        let bucket = buckets.entry(client).or_insert(Bucket { tokens: burst, at: now });
        let grown = now.duration_since(bucket.at).as_secs_f64() * f64::from(REQUESTS_A_SECOND);
        *bucket = Bucket { tokens: (bucket.tokens + grown).min(burst), at: now };
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_then_refused_and_other_addresses_are_not_touched() {
        let rates = RequestRates::default();
        let (one, other) = (RateClient::Address([10, 0, 0, 1].into()), RateClient::Address([10, 0, 0, 2].into()));
        let admitted = (0..10 * REQUESTS_BURST).filter(|_| rates.admit(one.clone())).count();
        assert!((REQUESTS_BURST as usize..2 * REQUESTS_BURST as usize).contains(&admitted), "{admitted}");
        assert!(rates.admit(other));
        assert!(rates.admit(RateClient::Session("ann".into(), 1)), "a session of the busy address is not touched");
        (0..2 * ADDRESSES_MAX).for_each(|nth| {
            rates.admit(RateClient::Address(u32::try_from(nth).expect("small").to_be_bytes().into()));
        });
        assert!(rates.0.lock().expect("no panic").len() <= ADDRESSES_MAX);
    }
}
