//! A target with one array in memory. The engine of this file cuts commands into pieces, and does its work when it is told
//! to, in any order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use openraid_nvme::{
    AllowedHosts, ArrivedTransfer, Closing, CommandId, CommandKind, CommandOutcome, ConnectionId, Errand, HostQueue,
    NextBytes, NvmeCommand, NvmeTarget, PayloadSource, Port, PortId, Preferred, QueueEvent, QueueStep, ReadPart,
    Subsystem, TargetSettings,
};
use openraid_units::{ArrayId, ArrayOffset, BlockSize, Bytes, Instant};

use super::random::Random;

pub const ARRAY: ArrayId = ArrayId(7);
pub const UUID: [u8; 16] =
    [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f];
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:10111213-1415-1617-1819-1a1b1c1d1e1f";
pub const BLOCK: u64 = 512;

/// A part of a write's payload on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub id: CommandId,
    pub offset: u32,
    pub len: u32,
}

/// Work that the engine still has to do.
#[derive(Clone, Debug)]
enum Job {
    /// A read, or a part of it: from this byte on.
    Read { command: NvmeCommand, at: u32 },
    /// Anything else: the effect, and the end.
    Finish { command: NvmeCommand, payload: Vec<u8> },
}

#[derive(Debug)]
struct Write {
    command: NvmeCommand,
    payload: Vec<u8>,
    left: u32,
    is_damaged: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub queue: Option<HostQueue<Piece>>,
    input: Vec<u8>,
    pub out: Vec<u8>,
    pub closed: Option<Closing>,
    /// The target asked to close it.
    pub is_ended: bool,
    pub connected: Option<(Option<ArrayId>, bool)>,
    writes: BTreeMap<CommandId, Write>,
    jobs: Vec<Job>,
    pub commands: Vec<NvmeCommand>,
}

/// The target, its connections, and the array.
pub struct Served {
    pub target: NvmeTarget,
    pub now: Instant,
    pub connections: Vec<Connection>,
    pub disk: Vec<u8>,
    /// Bytes of one transfer of the engine.
    pub piece: u32,
    /// The outcome of all later commands; a read fails at its second piece.
    pub outcome: CommandOutcome,
    /// Maximum output of one step.
    pub output_max: usize,
}

pub fn subsystem(size: u64) -> Subsystem {
    Subsystem {
        array: ARRAY,
        uuid: UUID,
        size: Bytes(size),
        block: BlockSize::new(BLOCK).unwrap(),
        preferred: Preferred { write: Bytes(4096), optimal: Bytes(65536) },
        is_read_only: false,
        has_volatile_cache: true,
        hosts: AllowedHosts::Any,
    }
}

pub fn settings() -> TargetSettings {
    let port = |address, service| Port { address, service };
    TargetSettings {
        ports: vec![
            port(None, 4420),
            port(Some(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))), 8009),
            port(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), 4421),
        ],
        controllers: 1..=999,
        version: "0.1.0".into(),
    }
}

impl Served {
    pub fn new(size: u64) -> Self {
        let mut target = NvmeTarget::new(settings()).unwrap();
        target.offer(subsystem(size)).unwrap();
        target.set_starting(false);
        Self {
            target,
            now: Instant::ZERO,
            connections: Vec::new(),
            disk: vec![0; usize::try_from(size).unwrap()],
            piece: 16 << 10,
            outcome: CommandOutcome::Done,
            output_max: 300 << 10,
        }
    }

    pub fn accept(&mut self, port: u16) -> usize {
        let number = self.connections.len();
        // As a socket of both families says it.
        let local = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 9).to_ipv6_mapped());
        let queue = HostQueue::new(&self.target, ConnectionId(number as u64), PortId(port), local);
        self.connections.push(Connection {
            queue: Some(queue),
            input: Vec::new(),
            out: Vec::new(),
            closed: None,
            is_ended: false,
            connected: None,
            writes: BTreeMap::new(),
            jobs: Vec::new(),
            commands: Vec::new(),
        });
        number
    }

    /// The socket of a connection is gone.
    pub fn close(&mut self, number: usize) {
        if let Some(queue) = self.connections[number].queue.take() {
            queue.leave(&mut self.target, |_| {});
        }
        self.connections[number].jobs.clear();
        self.run_errands();
    }

    fn run_errands(&mut self) {
        while let Some(errand) = self.target.next_errand() {
            match errand {
                Errand::Deliver(ConnectionId(number)) => {
                    let connection = &mut self.connections[usize::try_from(number).unwrap()];
                    if let Some(queue) = &mut connection.queue {
                        queue.deliver(&mut self.target, &mut connection.out);
                    }
                }
                Errand::Close(ConnectionId(number)) => {
                    let number = usize::try_from(number).unwrap();
                    self.connections[number].is_ended = true;
                    self.close(number);
                }
            }
        }
    }

    /// What an owner of sockets does when no bytes come.
    pub fn tick(&mut self) {
        self.target.on_time(self.now);
        self.run_errands();
    }

    /// Bytes from a host. Returns what the connection still holds.
    pub fn feed(&mut self, number: usize, bytes: &[u8]) -> usize {
        self.connections[number].input.extend_from_slice(bytes);
        let mut steps = 0;
        let mut at = 0;
        loop {
            let before = self.connections[number].out.len();
            let is_more = self.step(number, &mut at);
            self.run_errands();
            let connection = &mut self.connections[number];
            let grown = connection.out.len() - before.min(connection.out.len());
            assert!(grown <= self.output_max, "{grown} bytes of output in one step");
            steps += 1;
            assert!(steps <= 300 * (bytes.len() + connection.input.len() + 64), "the target works without end");
            if !is_more {
                break;
            }
        }
        let connection = &mut self.connections[number];
        connection.input.drain(..at);
        if connection.queue.is_none() {
            connection.input.clear();
        }
        connection.input.len()
    }

    /// One step of a connection's input from `at` on; false if more bytes are needed.
    fn step(&mut self, number: usize, at: &mut usize) -> bool {
        let connection = &mut self.connections[number];
        let Some(queue) = &mut connection.queue else { return false };
        let input = &connection.input[*at..];
        if let NextBytes::Payload { transfer, at: came, left } = queue.next_bytes() {
            let count = input.len().min(left as usize);
            if count == 0 {
                return false;
            }
            let bytes = input[..count].to_vec();
            *at += count;
            let start = (transfer.offset + came) as usize;
            connection.writes.get_mut(&transfer.id).unwrap().payload[start..start + count].copy_from_slice(&bytes);
            if let Some(arrived) = queue.payload_came(&bytes, &mut connection.out) {
                connection.arrived(arrived);
            }
            return true;
        }
        let QueueStep { consumed, event } = queue.parse(input, &mut self.target, self.now, &mut connection.out);
        assert!(consumed <= input.len());
        let taken = input[..consumed].to_vec();
        *at += consumed;
        match event {
            QueueEvent::Command(command) => {
                self.begin(number, command, &taken);
            }
            QueueEvent::Arrived(arrived) => connection.arrived(arrived),
            QueueEvent::Connected { array, is_io } => {
                assert!(connection.connected.replace((array, is_io)).is_none(), "a connection is one queue");
            }
            QueueEvent::Step | QueueEvent::Payload => {}
            QueueEvent::NeedMore(bytes) => {
                assert!(bytes > connection.input.len() - *at, "enough bytes are there");
                assert!(bytes <= HostQueue::<Piece>::BUFFER_MIN, "{bytes} bytes wanted at once");
                return false;
            }
            QueueEvent::Close(closing) => {
                connection.closed = Some(closing);
                self.close(number);
                return false;
            }
        }
        true
    }

    fn begin(&mut self, number: usize, command: NvmeCommand, taken: &[u8]) {
        let is_read_only = self.outcome == CommandOutcome::ReadOnly;
        assert!(is_read_only || command.offset.get() + command.len.get() <= self.disk.len() as u64, "{command:?}");
        let connection = &mut self.connections[number];
        connection.commands.push(command.clone());
        match (&command.payload, command.kind) {
            (PayloadSource::None, CommandKind::Read) => connection.jobs.push(Job::Read { command, at: 0 }),
            (PayloadSource::None, _) => connection.jobs.push(Job::Finish { command, payload: Vec::new() }),
            (PayloadSource::Received(range), _) => {
                let payload = taken[range.clone()].to_vec();
                assert_eq!(payload.len() as u64, command.len.get());
                connection.jobs.push(Job::Finish { command, payload });
            }
            (PayloadSource::Asked, _) => {
                let len = u32::try_from(command.len.get()).unwrap();
                let id = command.id;
                let write = Write { command, payload: vec![0; len as usize], left: len, is_damaged: false };
                connection.writes.insert(id, write);
                let mut offset = 0;
                while offset < len {
                    let count = self.piece.min(len - offset);
                    let piece = Piece { id, offset, len: count };
                    let queue = connection.queue.as_mut().unwrap();
                    queue.ask_payload(id, piece, (offset, count), &mut connection.out);
                    offset += count;
                }
            }
        }
    }

    /// Number of jobs of all connections.
    pub fn jobs(&self) -> usize {
        self.connections.iter().map(|connection| connection.jobs.len()).sum()
    }

    /// Do one job of a connection, any one; false if there is none.
    pub fn work(&mut self, number: usize, random: &mut Random) -> bool {
        let (outcome, piece) = (self.outcome, self.piece);
        let connection = &mut self.connections[number];
        if connection.jobs.is_empty() {
            return false;
        }
        let job = connection.jobs.swap_remove(random.below(connection.jobs.len()));
        let queue = connection.queue.as_mut().unwrap();
        match job {
            Job::Read { command, at } => {
                let total = u32::try_from(command.len.get()).unwrap();
                if outcome != CommandOutcome::Done && (at > 0 || total <= piece) {
                    queue.end(command.id, outcome, &mut connection.out);
                    return true;
                }
                let len = piece.min(total - at);
                let part = ReadPart { offset: at, len, is_last: at + len == total };
                let start = usize::try_from(command.offset.get()).unwrap() + at as usize;
                let data = &self.disk[start..start + len as usize];
                queue.data_head(command.id, part, &mut connection.out);
                connection.out.extend_from_slice(data);
                queue.data_tail(command.id, part, data, &mut connection.out);
                if !part.is_last {
                    connection.jobs.push(Job::Read { command, at: at + len });
                }
            }
            Job::Finish { command, payload } => {
                let start = usize::try_from(command.offset.get()).unwrap();
                let end = start + usize::try_from(command.len.get()).unwrap();
                if outcome == CommandOutcome::Done {
                    match command.kind {
                        CommandKind::Write { .. } => self.disk[start..end].copy_from_slice(&payload),
                        CommandKind::WriteZeroes { .. } | CommandKind::Deallocate => self.disk[start..end].fill(0),
                        CommandKind::Flush | CommandKind::Read => {}
                    }
                }
                queue.end(command.id, outcome, &mut connection.out);
            }
        }
        true
    }

    /// Do all jobs of a connection, in order of any kind.
    pub fn settle(&mut self, number: usize) {
        let mut random = Random::new(3);
        while self.connections[number].queue.is_some() && self.work(number, &mut random) {}
    }
}

impl Connection {
    fn arrived(&mut self, arrived: ArrivedTransfer<Piece>) {
        let ArrivedTransfer { transfer, is_intact } = arrived;
        let write = self.writes.get_mut(&transfer.id).expect("a transfer of a write");
        write.left -= transfer.len;
        write.is_damaged |= !is_intact;
        if write.left > 0 {
            return;
        }
        let Write { command, payload, is_damaged, .. } = self.writes.remove(&transfer.id).unwrap();
        if is_damaged {
            // The engine was told that the host is gone, and ends the command so.
            self.queue.as_mut().unwrap().end(command.id, CommandOutcome::Offline, &mut self.out);
        } else {
            self.jobs.push(Job::Finish { command, payload });
        }
    }

    /// Do jobs wait?
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || !self.writes.is_empty()
    }
}

/// The first byte of a block.
pub fn at_block(block: u64) -> ArrayOffset {
    ArrayOffset(block * BLOCK)
}
