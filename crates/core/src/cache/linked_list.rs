//! Lists linked through tables: of lines, of dirty units. The tables have the memory; nothing is ever allocated.

use alloc::vec::Vec;

use crate::slab::NONE;

/// Neighbours in a list. They are stored apart from the entries, so that a walk along a list loads only links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(super) previous: u32,
    pub(super) next: u32,
}

impl Link {
    /// In no list.
    pub(crate) const NEW: Self = Self { previous: NONE, next: NONE };

    /// `count` links, each with the next one as its successor: the list of the free ones.
    pub(crate) fn chain(count: u32) -> Vec<Self> {
        (1..=count).map(|next| Self { previous: NONE, next: if next < count { next } else { NONE } }).collect()
    }
}

/// Both ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The first entry of the list.
    pub(crate) fn first(&self) -> Option<u32> {
        Some(self.head).filter(|index| *index != NONE)
    }

    /// Append an entry that is in no list of these links.
    pub(crate) fn push(&mut self, links: &mut [Link], index: u32) {
        links[index as usize] = Link { previous: self.tail, next: NONE };
        if self.tail == NONE {
            self.head = index;
        } else {
            links[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    /// Remove an entry.
    pub(crate) fn remove(&mut self, links: &mut [Link], index: u32) {
        let Link { previous, next } = links[index as usize];
        if previous == NONE {
            self.head = next;
        } else {
            links[previous as usize].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            links[next as usize].previous = previous;
        }
    }
}
