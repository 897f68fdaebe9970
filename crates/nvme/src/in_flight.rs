//! Commands of one I/O queue that are under way.

use std::collections::VecDeque;

use crate::connection_rules::DataSlice;
use crate::engine_command::{CommandId, CommandKind};
use crate::status::Status;

/// A part of a payload that the engine wants.
#[derive(Clone, Copy, Debug)]
pub struct WantedPart<T> {
    pub transfer: T,
    pub part: DataSlice,
}

/// What a command needs until its end.
#[derive(Clone, Debug)]
pub enum CommandWork<T> {
    /// As many ends of the engine as `left`; the first failure is the answer.
    Ends { left: u32, failed: Option<Status> },
    /// Data for the host; the bytes of it that have a head.
    Read { sent: u32 },
    /// Payload from the host.
    Write(PayloadQueue<T>),
}

/// A payload that the host sends when asked.
#[derive(Clone, Debug)]
pub struct PayloadQueue<T> {
    /// The part that the host was asked for, and the bytes of it that came.
    pub open: Option<(WantedPart<T>, u32)>,
    /// Parts that wait, because a host is asked for one at a time.
    pub waiting: VecDeque<WantedPart<T>>,
    /// A data digest was wrong.
    pub is_damaged: bool,
}

impl<T> PayloadQueue<T> {
    pub fn new() -> Self {
        Self { open: None, waiting: VecDeque::new(), is_damaged: false }
    }
}

/// A command.
#[derive(Clone, Debug)]
pub struct OpenCommand<T> {
    pub kind: CommandKind,
    /// Bytes of its data.
    pub len: u32,
    pub work: CommandWork<T>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    open: Option<OpenCommand<T>>,
}

/// The commands under way of a target, by number.
#[derive(Clone, Debug)]
pub struct InFlight<T> {
    slots: Vec<Slot<T>>,
    /// The host's ids, by slot. An id of a free slot has no meaning.
    ids: Vec<u16>,
    /// One bit for each slot that is used.
    used: u128,
}

impl<T: Copy> InFlight<T> {
    /// Room for this number of commands.
    pub fn new(entries: u16) -> Self {
        let count = usize::from(entries);
        let slots = (0..count).map(|_| Slot { generation: 0, open: None }).collect();
        Self { slots, ids: vec![0; count], used: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.used.trailing_ones() as usize >= self.slots.len()
    }

    /// Is a command with this id of the host under way?
    #[inline]
    pub fn has(&self, id: u16) -> bool {
        self.ids.contains(&id)
            && self.ids.iter().enumerate().any(|(slot, known)| *known == id && self.used >> slot & 1 == 1)
    }

    /// Add a command. There must be room.
    #[inline]
    pub fn insert(&mut self, id: u16, open: OpenCommand<T>) -> CommandId {
        let index = self.used.trailing_ones() as usize;
        self.used |= 1 << index;
        self.ids[index] = id;
        let slot = &mut self.slots[index];
        slot.open = Some(open);
        CommandId(u64::from(slot.generation) << 16 | index as u64)
    }

    #[inline]
    fn index(&self, id: CommandId) -> usize {
        let index = usize::from(u16::try_from(id.0 & 0xffff).expect("16 bits"));
        let is_it =
            self.slots.get(index).is_some_and(|slot| slot.open.is_some() && u64::from(slot.generation) == id.0 >> 16);
        assert!(is_it, "bug: {id:?} is not a command under way");
        index
    }

    /// The command of the engine's answer, and the host's id.
    #[inline]
    pub fn get(&mut self, id: CommandId) -> (&mut OpenCommand<T>, u16) {
        let index = self.index(id);
        let open = self.slots[index].open.as_mut().expect("the index is of a command");
        (open, self.ids[index])
    }

    /// End a command; the host's id.
    #[inline]
    pub fn remove(&mut self, id: CommandId) -> u16 {
        let index = self.index(id);
        let slot = &mut self.slots[index];
        slot.open = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.used &= !(1 << index);
        self.ids[index]
    }

    /// The number that a host sends with the payload of this command.
    pub fn transfer_tag(&self, id: CommandId) -> u16 {
        let [slot, _, generation, ..] = id.0.to_le_bytes();
        u16::from_le_bytes([slot, generation])
    }

    /// The open part of the payload that has this number, if the host's id fits, and the command.
    pub fn find(&self, tag: u16, id: u16) -> Option<(CommandId, WantedPart<T>, u32)> {
        let [index, generation] = tag.to_le_bytes();
        let index = usize::from(index);
        let slot = self.slots.get(index)?;
        let Some(OpenCommand { work: CommandWork::Write(PayloadQueue { open: Some((wanted, came)), .. }), .. }) =
            &slot.open
        else {
            return None;
        };
        let is_it = self.ids[index] == id && slot.generation.to_le_bytes()[0] == generation;
        is_it.then_some((CommandId(u64::from(slot.generation) << 16 | index as u64), *wanted, *came))
    }

    /// The open part of this command's payload, and the bytes of it that came.
    pub fn wanted(&self, id: CommandId) -> Option<(WantedPart<T>, u32)> {
        match &self.slots[self.index(id)].open.as_ref()?.work {
            CommandWork::Write(incoming) => incoming.open,
            CommandWork::Ends { .. } | CommandWork::Read { .. } => None,
        }
    }

    /// All transfers that wait for payload.
    pub fn transfers(&self) -> impl Iterator<Item = &WantedPart<T>> {
        self.slots.iter().filter_map(|slot| slot.open.as_ref()).flat_map(|open| {
            let incoming = match &open.work {
                CommandWork::Write(incoming) => Some(incoming),
                CommandWork::Ends { .. } | CommandWork::Read { .. } => None,
            };
            let open = incoming.and_then(|incoming| incoming.open.as_ref()).map(|(wanted, _)| wanted);
            open.into_iter().chain(incoming.into_iter().flat_map(|incoming| &incoming.waiting))
        })
    }
}
