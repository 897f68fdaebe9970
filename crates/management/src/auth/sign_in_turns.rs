//! Turns of sign-ins over the loopback: after too many wrong passwords they wait in a line, first come, first served. A refusal would
//! let any process of this machine keep its administrator out.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::limits::{TURNS_MAX, TURN_INTERVAL};

/// Does a client of this machine ask, over the loopback?
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The line. Its mutex is fair: it goes to the client that has waited longest.
#[derive(Debug, Default)]
pub struct Turns {
    turn: Mutex<()>,
    waiting: AtomicUsize,
}

/// A place in the line, until it is dropped.
struct PlaceInLine<'t>(&'t AtomicUsize);

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    /// Wait for a turn; false if the line is full. A client that leaves gives its place up.
    pub async fn wait(&self) -> bool {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = PlaceInLine(&self.waiting);
        if before >= TURNS_MAX {
            return false;
        }
        let _turn = self.turn.lock().await;
        sleep(TURN_INTERVAL).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn turns_come_in_the_order_of_the_line_which_has_an_end_and_clients_that_leave_give_their_places_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (turns, order) = (Arc::new(Turns::default()), Arc::new(std::sync::Mutex::new(Vec::new())));
            let wait = |nth: usize| {
                let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
                tokio::spawn(async move {
                    if turns.wait().await {
                        order.lock().expect("no panic").push(nth);
                    }
                })
            };
            let mut tasks: Vec<_> = (0..TURNS_MAX).map(wait).collect();
            while turns.waiting.load(Ordering::Relaxed) < TURNS_MAX {
                tokio::task::yield_now().await;
            }
            assert!(!turns.wait().await, "the line is full");
            tasks.drain(3..).for_each(|task| task.abort());
            for task in tasks {
                task.await.expect("it ends");
            }
            assert_eq!(*order.lock().expect("no panic"), [0, 1, 2]);
            assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn all_addresses_of_the_loopback_are_known() {
        for (text, wanted) in [("127.0.0.1", true), ("127.9.8.7", true), ("::1", true), ("::ffff:127.0.0.2", true)]
            .into_iter()
            .chain([("10.0.0.1", false), ("fe80::1", false), ("::ffff:10.0.0.1", false)])
        {
            assert_eq!(is_loopback(text.parse().expect("an address")), wanted, "{text}");
        }
    }
}
