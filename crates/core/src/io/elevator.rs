//! Commands that wait for a drive, by where they go: a treap linked through the command table.
//!
//! The drive is served upwards, and from the lowest again when nothing is above (C-LOOK). All steps are of the order of
//! the logarithm of the number of commands; the priorities that keep the tree flat are a hash of the place in the table,
//! so that the same commands give the same order.

use openraid_units::DriveLba;

use super::channel::Command;
use crate::slab::{Slab, NONE};

/// Commands in order of where they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elevator {
    root: u32,
}

/// Order in the tree: place, then number, so that no two are the same.
type Order = (DriveLba, u32);

fn order(commands: &Slab<Command>, index: u32) -> Order {
    (commands[index].lba, index)
}

/// A hash whose values for neighbouring numbers have nothing in common.
fn priority(index: u32) -> u32 {
    let mixed = (index ^ index >> 16).wrapping_mul(0x7feb_352d);
    (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b)
}

impl Elevator {
    pub(crate) const EMPTY: Self = Self { root: NONE };

    /// Put a command in.
    pub(crate) fn insert(&mut self, commands: &mut Slab<Command>, index: u32) {
        let new = order(commands, index);
        let mut above = NONE;
        let mut at = self.root;
        while at != NONE && priority(at) >= priority(index) {
            above = at;
            at = if new < order(commands, at) { commands[at].left } else { commands[at].right };
        }
        let (left, right) = split(commands, at, new);
        (commands[index].left, commands[index].right) = (left, right);
        self.hang(commands, above, new, index);
    }

    /// Take a command out that is in.
    pub(crate) fn remove(&mut self, commands: &mut Slab<Command>, index: u32) {
        let old = order(commands, index);
        let mut above = NONE;
        let mut at = self.root;
        while at != index {
            above = at;
            at = if old < order(commands, at) { commands[at].left } else { commands[at].right };
        }
        let below = merge(commands, commands[index].left, commands[index].right);
        self.hang(commands, above, old, below);
    }

    /// Put a part of the tree below `above`, on the side where `place` belongs.
    fn hang(&mut self, commands: &mut Slab<Command>, above: u32, place: Order, part: u32) {
        if above == NONE {
            self.root = part;
        } else if place < order(commands, above) {
            commands[above].left = part;
        } else {
            commands[above].right = part;
        }
    }

    /// The first command at or above a place, or the lowest of all.
    pub(crate) fn next_from(&self, commands: &Slab<Command>, place: DriveLba) -> Option<u32> {
        let mut best = NONE;
        let mut lowest = NONE;
        let mut at = self.root;
        while at != NONE {
            if commands[at].lba >= place {
                best = at;
                at = commands[at].left;
            } else {
                at = commands[at].right;
            }
        }
        if best == NONE {
            at = self.root;
            while at != NONE {
                lowest = at;
                at = commands[at].left;
            }
            best = lowest;
        }
        (best != NONE).then_some(best)
    }
}

/// The part of a tree below `place`, and the part above.
fn split(commands: &mut Slab<Command>, root: u32, place: Order) -> (u32, u32) {
    if root == NONE {
        return (NONE, NONE);
    }
    if order(commands, root) < place {
        let (left, right) = split(commands, commands[root].right, place);
        commands[root].right = left;
        (root, right)
    } else {
        let (left, right) = split(commands, commands[root].left, place);
        commands[root].left = right;
        (left, root)
    }
}

/// Two trees as one; everything in the first is below everything in the second.
fn merge(commands: &mut Slab<Command>, low: u32, high: u32) -> u32 {
    if low == NONE {
        return high;
    }
    if high == NONE {
        return low;
    }
    if priority(low) >= priority(high) {
        commands[low].right = merge(commands, commands[low].right, high);
        low
    } else {
        commands[high].left = merge(commands, low, commands[high].left);
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::channel::Owner;
    use alloc::collections::BTreeSet;
    use openraid_units::{DriveId, SetId, Slot};

    fn depth(commands: &Slab<Command>, root: u32) -> u32 {
        if root == NONE {
            return 0;
        }
        1 + depth(commands, commands[root].left).max(depth(commands, commands[root].right))
    }

    /// Compared with a set that is sorted by the standard library.
    #[test]
    fn the_next_is_the_nearest_above_and_then_the_lowest() {
        let mut commands = Slab::new(4096);
        let mut elevator = Elevator::EMPTY;
        let mut model: BTreeSet<Order> = BTreeSet::new();
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..20_000_u64 {
            let full = commands.room() == 0;
            if model.is_empty() || (!full && draw(if round < 12_000 { 3 } else { 5 }) != 0 && round < 15_000) {
                let mut command = Command::new(Owner::CleanFlush, SetId(0), 0, Slot(0), DriveId(0));
                // Many of them go to the same place.
                command.lba = DriveLba(draw(2000));
                let lba = command.lba;
                let Ok(key) = commands.insert(command) else { panic!("there is room") };
                elevator.insert(&mut commands, key.index);
                model.insert((lba, key.index));
            } else {
                let place = DriveLba(draw(2100));
                let expected = model.range((place, 0)..).next().or_else(|| model.first()).copied();
                let next = elevator.next_from(&commands, place);
                assert_eq!(next, expected.map(|(_, index)| index));
                let next = next.expect("not empty");
                elevator.remove(&mut commands, next);
                model.remove(&order(&commands, next));
                commands.remove(next);
            }
            if round % 1000 == 0 {
                let (count, deep) = (model.len().max(2) as u64, depth(&commands, elevator.root));
                assert!(deep <= 3 * (64 - count.leading_zeros()) + 3, "{count} commands, {deep} deep");
            }
        }
    }

    #[test]
    fn commands_that_come_in_order_of_place_do_not_make_a_list() {
        let mut commands = Slab::new(32_768);
        let mut elevator = Elevator::EMPTY;
        for place in 0..32_768 {
            let mut command = Command::new(Owner::CleanFlush, SetId(0), 0, Slot(0), DriveId(0));
            command.lba = DriveLba(place * 8);
            let Ok(key) = commands.insert(command) else { panic!("there is room") };
            elevator.insert(&mut commands, key.index);
        }
        assert!(depth(&commands, elevator.root) <= 48, "{}", depth(&commands, elevator.root));
    }
}
