//! Places for connections, of two kinds. A guest has not signed in; a known client has. Guests never take a place of a known client.
//!
//! ```text
//!  take: guest, the oldest guest goes if there are too many --knows--> known, the one that waits longest goes if there are too many
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::AbortHandle;

#[derive(Clone)]
pub struct ConnectionPlaces(Arc<Mutex<PlaceTable>>);

struct PlaceTable {
    next: u64,
    guests_max: usize,
    known_max: usize,
    /// By number, so the oldest first.
    guests: BTreeMap<u64, Option<AbortHandle>>,
    known: BTreeMap<u64, KnownClient>,
}

struct KnownClient {
    /// Since when it waits for its client; none while it is answered.
    waits: Option<Instant>,
    task: Option<AbortHandle>,
}

/// A place. It is free when this is dropped.
pub struct ConnectionPlace {
    places: ConnectionPlaces,
    number: u64,
}

impl ConnectionPlaces {
    /// Places for these numbers of guests and known clients.
    pub fn new(guests_max: usize, known_max: usize) -> Self {
        let (guests, known) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(PlaceTable { next: 0, guests_max, known_max, guests, known })))
    }

    fn held(&self) -> MutexGuard<'_, PlaceTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection. If guests have all of theirs, the oldest is disconnected.
    pub fn take(&self) -> ConnectionPlace {
        let mut held = self.held();
        if held.guests.len() >= held.guests_max {
            let oldest = held.guests.pop_first();
            oldest.and_then(|(_, task)| task).inspect(AbortHandle::abort);
        }
        held.next += 1;
        let number = held.next;
        held.guests.insert(number, None);
        ConnectionPlace { places: self.clone(), number }
    }

    /// This task serves the connection of a place.
    pub fn serves(&self, number: u64, task: AbortHandle) {
        if let Some(guest) = self.held().guests.get_mut(&number) {
            *guest = Some(task);
        }
    }
}

impl ConnectionPlace {
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Its client has signed in. If known clients have all of their places, the one that has waited for its client longest is
    /// disconnected. If all of them are being answered, this one stays a guest.
    pub fn is_known(&self) {
        let mut held = self.places.held();
        if !held.guests.contains_key(&self.number) {
            return;
        }
        if held.known.len() >= held.known_max {
            let waiting = held.known.iter().filter_map(|(number, client)| Some((client.waits?, *number)));
            let Some((_, longest)) = waiting.min() else { return };
            let gone = held.known.remove(&longest);
            gone.and_then(|client| client.task).inspect(AbortHandle::abort);
        }
        let task = held.guests.remove(&self.number).flatten();
        held.known.insert(self.number, KnownClient { waits: Some(Instant::now()), task });
    }

    /// A request has come as a whole, and is being answered.
    pub fn is_answered(&self) {
        self.set(None);
    }

    /// It waits for its client from now on.
    pub fn waits(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, waits: Option<Instant>) {
        if let Some(client) = self.places.held().known.get_mut(&self.number) {
            client.waits = waits;
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut held = self.places.held();
        held.guests.remove(&self.number);
        held.known.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESTS: usize = 4;
    const KNOWN: usize = 3;

    fn counts(places: &ConnectionPlaces) -> (usize, usize) {
        let held = places.held();
        (held.guests.len(), held.known.len())
    }

    #[test]
    fn guests_take_no_place_of_a_known_client_and_the_oldest_guest_goes_first() {
        let places = ConnectionPlaces::new(GUESTS, KNOWN);
        let known = places.take();
        known.is_known();
        let guests: Vec<ConnectionPlace> = (0..100).map(|_| places.take()).collect();
        assert_eq!(counts(&places), (GUESTS, 1));
        let left: Vec<u64> = places.held().guests.keys().copied().collect();
        let newest: Vec<u64> = guests[100 - GUESTS..].iter().map(ConnectionPlace::number).collect();
        assert_eq!(left, newest);
        // A guest that has lost its place gets none by what comes too late, and takes none away when it ends.
        guests[0].is_known();
        assert_eq!(counts(&places), (GUESTS, 1));
        drop(guests);
        assert_eq!(counts(&places), (0, 1));
    }

    #[test]
    fn the_known_client_that_waits_longest_makes_room_and_none_that_is_answered_does() {
        let places = ConnectionPlaces::new(GUESTS, KNOWN);
        let next = || {
            let place = places.take();
            place.is_known();
            place
        };
        let has = |place: &ConnectionPlace| places.held().known.contains_key(&place.number());
        let all: Vec<ConnectionPlace> = (0..KNOWN).map(|_| next()).collect();
        // The first is answered, and the second has just been.
        all[0].is_answered();
        all[1].is_answered();
        all[1].waits();
        let new = next();
        assert!(has(&all[0]) && has(&all[1]) && has(&new) && !has(&all[2]));
        assert_eq!(counts(&places), (0, KNOWN));
        all[1].is_answered();
        new.is_answered();
        let late = next();
        assert_eq!((has(&late), counts(&places)), (false, (1, KNOWN)), "it stays a guest");
        drop(all);
        late.is_known();
        assert_eq!((has(&late), counts(&places)), (true, (0, 2)));
    }
}
