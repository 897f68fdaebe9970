//! Shared by the tests of this crate: a front end and its guest that know only the specification, with memory that anything can
//! be done to.

#![allow(dead_code)] // every test program uses a part of this

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use openraid_vhost::{
    BlockCommand, DiskOutcome, MessageHeader, MessageRefusal, MessageReply, MessageViolation, Platform, RingStep,
    SharedBytes, VhostDisk, VhostSession,
};

/// The address of the guest's memory in the front end, and its length.
pub const USER: u64 = 0x7f00_0000_0000;
pub const MEMORY: u64 = 1 << 20;
/// Places of ring 0 in guest memory.
pub const DESCRIPTORS: u64 = 0x1000;
pub const AVAILABLE: u64 = 0x3000;
pub const USED: u64 = 0x4000;
/// Entries of the ring.
pub const ENTRIES: u16 = 16;
pub const SIZE: u64 = 1 << 20;

/// A change of memory after a number of reads, as another processor makes it.
type Ambush = (u64, u64, Vec<u8>);

/// Bytes that several have.
#[derive(Clone, Debug)]
pub struct Shared {
    bytes: Rc<RefCell<Vec<u8>>>,
    offset: u64,
    ambush: Rc<RefCell<Option<Ambush>>>,
}

impl Shared {
    pub fn zeros(len: u64) -> Self {
        let bytes = Rc::new(RefCell::new(vec![0; usize::try_from(len).unwrap()]));
        Self { bytes, offset: 0, ambush: Rc::default() }
    }

    pub fn len(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    pub fn get(&self, at: u64, len: usize) -> Vec<u8> {
        let at = usize::try_from(self.offset + at).unwrap();
        self.bytes.borrow()[at..at + len].to_vec()
    }

    pub fn put(&self, at: u64, from: &[u8]) {
        let at = usize::try_from(self.offset + at).unwrap();
        self.bytes.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }

    pub fn put16(&self, at: u64, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    pub fn get16(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.get(at, 2).try_into().unwrap())
    }

    /// As soon as the byte at `read` was read, other bytes change.
    pub fn ambush(&self, read: u64, at: u64, bytes: &[u8]) {
        *self.ambush.borrow_mut() = Some((read, at, bytes.to_vec()));
    }

    fn was_read(&self, at: u64, len: usize) {
        let mut ambush = self.ambush.borrow_mut();
        if ambush.as_ref().is_some_and(|(read, _, _)| (at..at + len as u64).contains(read)) {
            let (_, place, bytes) = ambush.take().unwrap();
            self.put(place, &bytes);
        }
    }
}

impl SharedBytes for Shared {
    fn read(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.get(at, into.len()));
        self.was_read(at, into.len());
    }
    fn write(&self, at: u64, from: &[u8]) {
        self.put(at, from);
    }
    fn load_u16(&self, at: u64) -> u16 {
        assert_eq!(at % 2, 0);
        let value = self.get16(at);
        self.was_read(at, 2);
        value
    }
    fn store_u16(&self, at: u64, value: u16) {
        assert_eq!(at % 2, 0);
        self.put16(at, value);
    }
}

/// A file of the front end.
#[derive(Clone, Debug)]
pub enum File {
    Memory(Shared),
    Event(Rc<Cell<u32>>),
    Channel(Rc<RefCell<Vec<u8>>>),
}

/// Files in memory.
#[derive(Debug, Default)]
pub struct Fake;

impl Platform for Fake {
    type File = File;
    type Memory = Shared;

    fn map(&mut self, file: &File, offset: u64, len: u64) -> Result<Shared, String> {
        match file {
            File::Memory(shared) if offset + len <= shared.len() => Ok(Shared { offset, ..shared.clone() }),
            File::Memory(shared) => Err(format!("the file has {} bytes", shared.len())),
            File::Event(_) | File::Channel(_) => Err("this is no memory".into()),
        }
    }
    fn new_file(&mut self, len: u64) -> Result<(File, Shared), String> {
        let shared = Shared::zeros(len);
        Ok((File::Memory(shared.clone()), shared))
    }
    fn watch(&mut self, kick: &File) -> Result<(), String> {
        match kick {
            File::Event(_) => Ok(()),
            File::Memory(_) | File::Channel(_) => Err("this is no event".into()),
        }
    }
    fn unwatch(&mut self, _kick: &File) {}
    fn check_channel(&self, channel: &File) -> Result<(), String> {
        match channel {
            File::Channel(_) => Ok(()),
            File::Memory(_) | File::Event(_) => Err("this is no channel".into()),
        }
    }
    fn send(&mut self, channel: &File, message: &[u8]) -> bool {
        let File::Channel(sent) = channel else { panic!("it was checked") };
        sent.borrow_mut().extend_from_slice(message);
        true
    }
    fn ring(&mut self, call: &File) {
        if let File::Event(count) = call {
            count.set(count.get() + 1);
        }
    }
}

pub fn disk() -> VhostDisk {
    VhostDisk { size: SIZE, is_read_only: false, physical_block: 4096, preferred: 64 << 10, serial: "data".into() }
}

pub fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn state(queue: u32, value: u32) -> Vec<u8> {
    [queue.to_le_bytes(), value.to_le_bytes()].concat()
}

/// What an in-flight message says: bytes, queues, entries.
pub fn inflight(len: u64, queues: u16, entries: u16) -> Vec<u8> {
    let mut payload = words(&[len, 0]);
    payload.extend([queues.to_le_bytes(), entries.to_le_bytes()].concat());
    payload.extend([0; 4]);
    payload
}

/// A part of a request: address, length, flags.
pub type Part = (u64, u32, u16);
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// Protocol features that QEMU would take, and the ring's features: flush, version 1, queues.
pub const PROTOCOL: u64 = 1 | 1 << 3 | 1 << 9 | 1 << 12;
pub const FEATURES: u64 = 1 << 9 | 1 << 12 | 1 << 28 | 1 << 30 | 1 << 32;
pub const EVENTS: u64 = 1 << 29;

/// The virtual machine: it lives longer than a session.
pub struct Guest {
    pub memory: Shared,
    pub call: Rc<Cell<u32>>,
    pub error: Rc<Cell<u32>>,
    pub inflight: Option<File>,
    pub available: u16,
    pub features: u64,
}

pub fn send(
    session: &mut VhostSession<Fake>,
    request: u32,
    payload: &[u8],
    files: Vec<File>,
) -> Result<Option<MessageReply<File>>, MessageRefusal<File>> {
    session.handle(MessageHeader { request, wants_answer: false, len: payload.len() }, payload, files)
}

/// The front end's question and its answer, without the header.
pub fn ask(session: &mut VhostSession<Fake>, request: u32, payload: &[u8]) -> Vec<u8> {
    let reply = send(session, request, payload, Vec::new()).unwrap().unwrap();
    assert_eq!(&reply.bytes[..8], [request.to_le_bytes(), 5u32.to_le_bytes()].concat());
    reply.bytes[12..].to_vec()
}

pub fn tell(session: &mut VhostSession<Fake>, request: u32, payload: &[u8], files: Vec<File>) {
    let reply = send(session, request, payload, files);
    assert!(matches!(reply, Ok(None)), "{reply:?}");
}

/// What the message was refused with.
pub fn refusal(session: &mut VhostSession<Fake>, request: u32, payload: &[u8], files: Vec<File>) -> MessageViolation {
    let MessageRefusal { violation, reply } = send(session, request, payload, files).unwrap_err();
    assert!(reply.is_none());
    violation
}

impl Guest {
    pub fn new() -> Self {
        Self {
            memory: Shared::zeros(MEMORY),
            call: Rc::default(),
            error: Rc::default(),
            inflight: None,
            available: 0,
            features: FEATURES,
        }
    }

    pub fn memory_table(&self) -> (Vec<u8>, Vec<File>) {
        let mut payload = words(&[1]);
        payload.extend(words(&[0, MEMORY, USER, 0]));
        (payload, vec![File::Memory(self.memory.clone())])
    }

    /// All messages up to the addresses of ring 0, in the order in which QEMU sends them.
    pub fn prepare(&mut self) -> VhostSession<Fake> {
        let mut session = VhostSession::new(Fake, disk());
        tell(&mut session, 16, &words(&[PROTOCOL]), vec![]);
        tell(&mut session, 3, &[], vec![]);
        tell(&mut session, 2, &words(&[self.features]), vec![]);
        if self.inflight.is_none() {
            let reply = send(&mut session, 31, &inflight(0, 1, ENTRIES), vec![]).unwrap().unwrap();
            assert_eq!(reply.bytes[12..20], 320u64.to_le_bytes());
            self.inflight = reply.file;
        }
        let file = self.inflight.clone().unwrap();
        tell(&mut session, 32, &inflight(320, 1, ENTRIES), vec![file]);
        let (payload, files) = self.memory_table();
        tell(&mut session, 5, &payload, files);
        tell(&mut session, 8, &state(0, u32::from(ENTRIES)), vec![]);
        tell(&mut session, 9, &words(&[0, USER + DESCRIPTORS, USER + USED, USER + AVAILABLE, 0]), vec![]);
        session
    }

    /// A session that serves, as after a connection.
    pub fn connect(&mut self) -> VhostSession<Fake> {
        let mut session = self.prepare();
        let base = self.memory.get16(USED + 2);
        tell(&mut session, 10, &state(0, u32::from(base)), vec![]);
        self.start(&mut session);
        session
    }

    pub fn start(&mut self, session: &mut VhostSession<Fake>) {
        tell(session, 14, &words(&[0]), vec![File::Event(self.error.clone())]);
        tell(session, 12, &words(&[0]), vec![File::Event(Rc::default())]);
        tell(session, 13, &words(&[0]), vec![File::Event(self.call.clone())]);
        tell(session, 18, &state(0, 1), vec![]);
        self.call.set(0);
    }

    pub fn descriptor(&self, table: u64, number: u16, (at, len, flags): Part, next: u16) {
        let place = table + 16 * u64::from(number);
        self.memory.put(place, &at.to_le_bytes());
        self.memory.put(place + 8, &len.to_le_bytes());
        self.memory.put16(place + 12, flags);
        self.memory.put16(place + 14, next);
    }

    /// Descriptors one after the other, from `first` on.
    pub fn chain(&self, table: u64, first: u16, parts: &[Part]) {
        for (nth, (at, len, flags)) in (first..).zip(parts) {
            let is_last = usize::from(nth - first) + 1 == parts.len();
            self.descriptor(table, nth, (*at, *len, flags | if is_last { 0 } else { NEXT }), nth + 1);
        }
    }

    pub fn make_available(&mut self, head: u16) {
        self.memory.put16(AVAILABLE + 4 + 2 * u64::from(self.available % ENTRIES), head);
        self.available = self.available.wrapping_add(1);
        self.memory.put16(AVAILABLE + 2, self.available);
    }

    pub fn head(&self, at: u64, kind: u32, sector: u64) {
        self.memory.put(at, &kind.to_le_bytes());
        self.memory.put(at + 8, &sector.to_le_bytes());
    }

    /// A request of three descriptors from `head` on, with 4 KiB of payload at 64 KiB * head.
    pub fn request(&mut self, head: u16, kind: u32, sector: u64) {
        let at = 0x1_0000 * (u64::from(head) + 1);
        self.head(at, kind, sector);
        self.memory.put(at + 16, &[0xff]);
        let flags = if kind == 0 { WRITE } else { 0 };
        self.chain(DESCRIPTORS, head, &[(at, 16, 0), (at + 0x1000, 4096, flags), (at + 16, 1, WRITE)]);
        self.make_available(head);
    }

    pub fn status(&self, head: u16) -> u8 {
        self.memory.get(0x1_0000 * (u64::from(head) + 1) + 16, 1)[0]
    }

    /// The used entries: head, bytes.
    pub fn used(&self) -> Vec<(u32, u32)> {
        let entry = |nth: u16| {
            let bytes = self.memory.get(USED + 4 + 8 * u64::from(nth % ENTRIES), 8);
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            (word(0), word(4))
        };
        (0..self.memory.get16(USED + 2)).map(entry).collect()
    }

    /// Marks of the in-flight region.
    pub fn marks(&self) -> Vec<u16> {
        let Some(File::Memory(region)) = &self.inflight else { return Vec::new() };
        (0..ENTRIES).filter(|head| region.get(16 + 16 * u64::from(*head), 1)[0] != 0).collect()
    }
}

/// The next request for the engine, after at most this many steps that need no engine.
pub fn next(session: &mut VhostSession<Fake>) -> Option<BlockCommand> {
    for _ in 0..100 {
        match session.next_step() {
            RingStep::Command(command) => return Some(command),
            RingStep::Answered => {}
            RingStep::Idle => return None,
        }
    }
    panic!("the queue never gets idle");
}

/// Do all requests as an array of zeros would.
pub fn serve(session: &mut VhostSession<Fake>) -> usize {
    let mut count = 0;
    while let Some(command) = next(session) {
        session.end(command.id, DiskOutcome::Done);
        count += 1;
    }
    session.ring_guests();
    count
}
