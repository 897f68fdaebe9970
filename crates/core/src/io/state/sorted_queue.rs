//! Commands that wait for a drive, sorted by position: a treap over places of the command table.
//!
//! The drive is served upwards, and from the lowest position again when nothing is above (C-LOOK). Each step takes
//! logarithmic time in the number of commands. The priorities that keep the tree flat are a hash of the place in the
//! table, so that the same commands give the same order.

use openraid_units::DriveLba;

use crate::slab::NONE;

/// The tree's data about a command, at its place in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    lba: DriveLba,
    left: u32,
    right: u32,
}

impl Node {
    /// In no tree.
    pub(crate) const NEW: Self = Self { lba: DriveLba::ZERO, left: NONE, right: NONE };
}

/// Commands in order of position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedQueue {
    root: u32,
}

/// Order in the tree: position, then number, so that no two are equal.
type Order = (DriveLba, u32);

fn order(nodes: &[Node], index: u32) -> Order {
    (nodes[index as usize].lba, index)
}

/// A hash whose values for neighbouring numbers are unrelated.
fn priority(index: u32) -> u32 {
    let mixed = (index ^ index >> 16).wrapping_mul(0x7feb_352d);
    (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b)
}

impl SortedQueue {
    pub(crate) const EMPTY: Self = Self { root: NONE };

    /// Insert a command at position `lba`.
    pub(crate) fn insert(&mut self, nodes: &mut [Node], index: u32, lba: DriveLba) {
        let new = (lba, index);
        let mut above = NONE;
        let mut at = self.root;
        while at != NONE && priority(at) >= priority(index) {
            above = at;
            let node = &nodes[at as usize];
            at = if new < (node.lba, at) { node.left } else { node.right };
        }
        let (left, right) = split(nodes, at, new);
        nodes[index as usize] = Node { lba, left, right };
        self.hang(nodes, above, new, index);
    }

    /// Remove a command that is in the tree.
    pub(crate) fn remove(&mut self, nodes: &mut [Node], index: u32) {
        let old = order(nodes, index);
        let mut above = NONE;
        let mut at = self.root;
        while at != index {
            above = at;
            let node = &nodes[at as usize];
            at = if old < (node.lba, at) { node.left } else { node.right };
        }
        let Node { left, right, .. } = nodes[index as usize];
        let below = merge(nodes, left, right);
        self.hang(nodes, above, old, below);
    }

    /// Attach a part of the tree below `above`, on the side to which `place` belongs.
    fn hang(&mut self, nodes: &mut [Node], above: u32, place: Order, part: u32) {
        if above == NONE {
            self.root = part;
        } else if place < order(nodes, above) {
            nodes[above as usize].left = part;
        } else {
            nodes[above as usize].right = part;
        }
    }

    /// The first command at or above a position, or else the lowest of all.
    pub(crate) fn next_from(&self, nodes: &[Node], place: DriveLba) -> Option<u32> {
        let above = self.lowest_from(nodes, place);
        above.or_else(|| self.lowest_from(nodes, DriveLba::ZERO))
    }

    fn lowest_from(&self, nodes: &[Node], place: DriveLba) -> Option<u32> {
        let mut best = None;
        let mut at = self.root;
        while at != NONE {
            let node = &nodes[at as usize];
            if node.lba >= place {
                best = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }
}

/// The part of a tree below `place`, and the part above.
fn split(nodes: &mut [Node], root: u32, place: Order) -> (u32, u32) {
    if root == NONE {
        return (NONE, NONE);
    }
    let Node { left, right, .. } = nodes[root as usize];
    if order(nodes, root) < place {
        let (low, high) = split(nodes, right, place);
        nodes[root as usize].right = low;
        (root, high)
    } else {
        let (low, high) = split(nodes, left, place);
        nodes[root as usize].left = high;
        (low, root)
    }
}

/// Two trees as one; everything in the first is below everything in the second.
fn merge(nodes: &mut [Node], low: u32, high: u32) -> u32 {
    if low == NONE {
        return high;
    }
    if high == NONE {
        return low;
    }
    if priority(low) >= priority(high) {
        nodes[low as usize].right = merge(nodes, nodes[low as usize].right, high);
        low
    } else {
        nodes[high as usize].left = merge(nodes, low, nodes[high as usize].left);
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_random::draws;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    fn depth(nodes: &[Node], root: u32) -> u32 {
        if root == NONE {
            return 0;
        }
        let Node { left, right, .. } = nodes[root as usize];
        1 + depth(nodes, left).max(depth(nodes, right))
    }

    /// Compared with a set that is sorted by the standard library.
    #[test]
    fn the_next_is_the_nearest_above_and_then_the_lowest() {
        let mut nodes = [Node::NEW; 4096];
        let mut free: Vec<u32> = (0..4096).rev().collect();
        let mut elevator = SortedQueue::EMPTY;
        let mut model: BTreeSet<Order> = BTreeSet::new();
        let mut draw = draws(1);
        for round in 0..20_000_u64 {
            let grow = draw(3) != 0 && !free.is_empty() && round < 15_000;
            if model.is_empty() || grow {
                // Many of them have the same position.
                let (lba, index) = (DriveLba(draw(2000)), free.pop().expect("it is not full"));
                elevator.insert(&mut nodes, index, lba);
                model.insert((lba, index));
            } else {
                let place = DriveLba(draw(2100));
                let expected = model.range((place, 0)..).next().or_else(|| model.first()).copied();
                let next = elevator.next_from(&nodes, place);
                assert_eq!(next, expected.map(|(_, index)| index));
                let next = next.expect("not empty");
                model.remove(&order(&nodes, next));
                elevator.remove(&mut nodes, next);
                free.push(next);
            }
            if round % 1000 == 0 {
                let (count, deep) = (model.len().max(2) as u64, depth(&nodes, elevator.root));
                assert!(deep <= 3 * (64 - count.leading_zeros()) + 3, "{count} commands, {deep} deep");
            }
        }
    }

    #[test]
    fn commands_that_come_in_order_of_place_do_not_make_a_list() {
        let mut nodes = alloc::vec![Node::NEW; 32_768];
        let mut elevator = SortedQueue::EMPTY;
        for index in 0..32_768 {
            elevator.insert(&mut nodes, index, DriveLba(u64::from(index) * 8));
        }
        assert!(depth(&nodes, elevator.root) <= 48, "{}", depth(&nodes, elevator.root));
    }
}
