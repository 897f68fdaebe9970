//! The slots for requests in a controller. Each span of a nested array has slots of its own.
//!
//! A request takes a slot of the span that has its first byte. A request that finds none waits, in the order of arrival
//! among those of its span. Requests must never leave a span without a slot although another one waits for it.

use openraid_units::Bytes;
use std::collections::VecDeque;

/// The slots of one span.
#[derive(Debug, Default)]
struct Span {
    taken: u32,
    waiting: VecDeque<u32>,
}

/// The slots of an array.
#[derive(Debug)]
pub struct Door {
    spans: Vec<Span>,
    /// Bytes after which the next span begins.
    turn: u64,
    /// Slots of each span.
    most: u32,
}

impl Door {
    /// Slots for `spans` spans that take turns after `turn` bytes, `most` for each.
    pub fn new(spans: u16, turn: Bytes, most: u32) -> Self {
        Self { spans: (0..spans.max(1)).map(|_| Span::default()).collect(), turn: turn.0.max(1), most: most.max(1) }
    }

    fn span(&mut self, offset: u64) -> &mut Span {
        let count = self.spans.len() as u64;
        // The remainder is an index of the list.
        let index = usize::try_from(offset / self.turn % count).unwrap_or(0);
        &mut self.spans[index]
    }

    /// Take a slot for a request whose first byte is at `offset`. Without a free one the request waits, and the result is
    /// false.
    pub fn enter(&mut self, request: u32, offset: u64) -> bool {
        let most = self.most;
        let span = self.span(offset);
        if span.taken >= most {
            span.waiting.push_back(request);
            return false;
        }
        span.taken += 1;
        true
    }

    /// A request at this offset has ended. The result is the request that gets its slot.
    pub fn leave(&mut self, offset: u64) -> Option<u32> {
        let span = self.span(offset);
        let next = span.waiting.pop_front();
        if next.is_none() {
            span.taken -= 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_span_holds_nothing_up_in_the_other() {
        let mut door = Door::new(2, Bytes(100), 2);
        assert!(door.enter(1, 0) && door.enter(2, 299), "both are of the first span");
        assert!(!door.enter(3, 50) && !door.enter(4, 200), "it is full");
        assert!(door.enter(5, 100) && door.enter(6, 399), "the second is not");
        assert_eq!(door.leave(0), Some(3), "in the order of arrival");
        assert_eq!(door.leave(100), None);
        assert!(door.enter(7, 100));
        assert_eq!((door.leave(0), door.leave(0), door.leave(0)), (Some(4), None, None));
    }

    #[test]
    fn an_array_that_is_not_nested_has_one_limit() {
        let mut door = Door::new(1, Bytes(100), 3);
        assert!(door.enter(1, 0) && door.enter(2, 100) && door.enter(3, 5000));
        assert!(!door.enter(4, 100));
        assert_eq!(door.leave(5000), Some(4));
    }
}
