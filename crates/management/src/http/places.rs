//! Places for connections. If all are taken, the one that has waited for its client longest is disconnected for a new one: a slow
//! client has its place as long as no other client wants one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::AbortHandle;

use crate::limits::CONNECTIONS_MAX;

/// All places.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    next: u64,
    all: BTreeMap<u64, Connection>,
}

struct Connection {
    /// Since when it waits for its client; none while it is answered.
    waits: Option<Instant>,
    task: Option<AbortHandle>,
}

/// A place. It is free when this is dropped.
pub struct Place {
    places: Places,
    number: u64,
}

impl Places {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection; none if all the others are being answered.
    pub fn take(&self) -> Option<Place> {
        let mut held = self.held();
        if held.all.len() >= CONNECTIONS_MAX {
            let waiting = held.all.iter().filter_map(|(number, own)| Some((own.waits?, *number)));
            let (_, longest) = waiting.min()?;
            let gone = held.all.remove(&longest);
            gone.and_then(|own| own.task).inspect(AbortHandle::abort);
        }
        held.next += 1;
        let number = held.next;
        held.all.insert(number, Connection { waits: Some(Instant::now()), task: None });
        Some(Place { places: self.clone(), number })
    }

    /// This task serves the connection of a place.
    pub fn serves(&self, number: u64, task: AbortHandle) {
        if let Some(own) = self.held().all.get_mut(&number) {
            own.task = Some(task);
        }
    }
}

impl Place {
    /// Its number.
    pub const fn number(&self) -> u64 {
        self.number
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
        if let Some(own) = self.places.held().all.get_mut(&self.number) {
            own.waits = waits;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_waits_longest_makes_room_and_none_that_is_answered_does() {
        let places = Places::default();
        let mut all: Vec<Place> = (0..CONNECTIONS_MAX).filter_map(|_| places.take()).collect();
        assert_eq!(all.len(), CONNECTIONS_MAX);
        let has = |number: u64| places.held().all.contains_key(&number);
        // The first is answered, and the second has just been.
        all[0].is_answered();
        all[1].is_answered();
        all[1].waits();
        let new = places.take().expect("room");
        assert!(has(all[0].number()) && has(all[1].number()) && has(new.number()) && !has(all[2].number()));
        assert_eq!(places.held().all.len(), CONNECTIONS_MAX);
        // One that has lost its place takes none away when it ends.
        drop(all.remove(2));
        assert_eq!(places.held().all.len(), CONNECTIONS_MAX);
        all.push(new);
        all.iter().for_each(Place::is_answered);
        assert!(places.take().is_none(), "all are answered");
        drop(all.remove(0));
        assert!(places.take().is_some());
    }
}
