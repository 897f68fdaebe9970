//! A disk of a virtual machine (vhost-user-blk), by a front end that knows only the specification: it has the guest's memory and
//! rings, kills the server under load, connects again, and goes on where its guest was.
//!
//! `OPENRAID_KILLS` says how many kills the guest lives through.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use openraid_sys::{sealed_file, Progress, SharedMemory, Socket, Waker};
use serde_json::Value;
use support::client::Client;
use support::{Lab, Server, WRITE};

/// Kills of one run.
const KILLS: u64 = 3;
/// A request that has not ended within this time never will.
const END_TIME_MAX: Duration = Duration::from_secs(240);
const QUEUES: u16 = 2;
const ENTRIES: u16 = 64;
/// Requests of a queue: each has three descriptors.
const SLOTS: u16 = 16;
const MEMORY: u64 = 4 << 20;
/// The place of a guest's memory, as the front end tells the server.
const USER: u64 = 0x7000_0000;
/// Places in the memory of a queue: descriptors, available ring, used ring; then the requests.
const QUEUE_BYTES: u64 = 1 << 20;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const SLOT: u64 = 0x4000;
const BLOCK: usize = 4096;
/// Blocks that the load uses.
const BLOCKS: u64 = 1024;
/// Kinds of requests, and flags of descriptors.
const READ: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const NEXT: u16 = 1;
const WRITABLE: u16 = 2;

/// A request under way: its block, and the write that it is or that it has to find.
#[derive(Clone, Copy, Debug)]
struct Pending {
    kind: u32,
    block: u64,
    write: u64,
}

struct Queue {
    base: u64,
    available: u16,
    used: u16,
    pending: Vec<Option<Pending>>,
    kick: Waker,
    call: Waker,
}

/// The virtual machine. It outlives servers.
struct Machine {
    path: PathBuf,
    file: OwnedFd,
    memory: SharedMemory,
    queues: Vec<Queue>,
    socket: Option<Socket>,
    /// The in-flight region that the first server made, and its length.
    inflight: Option<(OwnedFd, u64)>,
    ended: u64,
}

fn content(block: u64, write: u64) -> Vec<u8> {
    match write {
        0 => vec![0; BLOCK],
        write => (write << 16 | block).to_le_bytes().repeat(BLOCK / 8),
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn halves(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Machine {
    fn new(path: PathBuf) -> Self {
        let file = sealed_file(MEMORY).expect("memory");
        let memory = SharedMemory::map(file.as_fd(), 0, MEMORY).expect("mapped");
        let queue = |nth: u16| Queue {
            base: u64::from(nth) * QUEUE_BYTES,
            available: 0,
            used: 0,
            pending: vec![None; usize::from(SLOTS)],
            kick: Waker::new().expect("an event"),
            call: Waker::new().expect("an event"),
        };
        let queues = (0..QUEUES).map(queue).collect();
        Self { path, file, memory, queues, socket: None, inflight: None, ended: 0 }
    }

    /// Send a message. `false`: the server has closed the connection.
    fn try_send(&self, request: u32, wants_answer: bool, payload: &[u8], file: Option<BorrowedFd<'_>>) -> bool {
        let flags = if wants_answer { 9 } else { 1_u32 };
        let len = u32::try_from(payload.len()).expect("short");
        let mut bytes = [request, flags, len].map(u32::to_le_bytes).concat();
        bytes.extend_from_slice(payload);
        let until = Instant::now() + END_TIME_MAX;
        loop {
            match self.socket.as_ref().expect("connected").send_with_file(&bytes, file) {
                Ok(Progress::Bytes(sent)) => {
                    assert_eq!(sent, bytes.len());
                    return true;
                }
                Ok(Progress::Blocked) => thread::sleep(Duration::from_millis(1)),
                Ok(Progress::Closed) | Err(_) => return false,
            }
            assert!(Instant::now() < until, "no message is taken");
        }
    }

    /// Send a message.
    fn send(&self, request: u32, wants_answer: bool, payload: &[u8], file: Option<BorrowedFd<'_>>) {
        assert!(self.try_send(request, wants_answer, payload, file), "the connection is closed");
    }

    /// The payload of the next message, and its file.
    fn receive(&self, request: u32) -> (Vec<u8>, Option<OwnedFd>) {
        let (mut bytes, mut files, mut filled) = (vec![0; 12], Vec::new(), 0);
        let until = Instant::now() + END_TIME_MAX;
        while filled < bytes.len() {
            let socket = self.socket.as_ref().expect("connected");
            match socket.receive_with_files(&mut bytes[filled..], &mut files).expect("an answer") {
                Progress::Bytes(count) => filled += count,
                Progress::Blocked => thread::sleep(Duration::from_millis(1)),
                Progress::Closed => panic!("the server has closed the connection instead of an answer to {request}"),
            }
            if filled == 12 && bytes.len() == 12 {
                bytes.resize(12 + usize::from(bytes[8]), 0);
            }
            assert!(Instant::now() < until, "no answer to {request}");
        }
        assert_eq!(bytes[..8], [request, 5].map(u32::to_le_bytes).concat());
        (bytes.split_off(12), files.pop())
    }

    /// Tell something, and see that it is taken.
    fn tell(&self, request: u32, payload: &[u8], file: Option<BorrowedFd<'_>>) {
        self.send(request, true, payload, file);
        assert_eq!(self.receive(request).0, words(&[0]), "request {request} is refused");
    }

    fn ask(&self, request: u32, payload: &[u8]) -> (Vec<u8>, Option<OwnedFd>) {
        self.send(request, false, payload, None);
        self.receive(request)
    }

    /// The size of the disk in sectors.
    fn sectors(&self) -> u64 {
        let (answer, _) = self.ask(24, &words(&[halves(0, 8), 0, 0])[..20]);
        u64::from_le_bytes(answer[12..].try_into().expect("eight"))
    }

    /// Connect, and start all queues where they are.
    fn connect(&mut self) {
        self.socket = Some(connected(&self.path));
        self.send(16, false, &words(&[1 | 1 << 3 | 1 << 5 | 1 << 9 | 1 << 12]), None);
        self.tell(2, &words(&[1 << 9 | 1 << 12 | 1 << 28 | 1 << 30 | 1 << 32]), None);
        let shape = halves(u32::from(QUEUES) | u32::from(ENTRIES) << 16, 0);
        if self.inflight.is_none() {
            let (answer, file) = self.ask(31, &words(&[0, 0, shape]));
            let len = u64::from_le_bytes(answer[..8].try_into().expect("eight"));
            self.inflight = Some((file.expect("a file"), len));
        }
        let (file, len) = self.inflight.as_ref().expect("just made");
        self.tell(32, &words(&[*len, 0, shape]), Some(file.as_fd()));
        self.tell(5, &words(&[1, 0, MEMORY, USER, 0]), Some(self.file.as_fd()));
        for (queue, nth) in self.queues.iter().zip(0..) {
            let at = USER + queue.base;
            self.tell(8, &words(&[halves(nth, u32::from(ENTRIES))]), None);
            self.tell(9, &words(&[u64::from(nth), at, at + USED, at + AVAILABLE, 0]), None);
            // As QEMU does it: the used index, which is wrong if requests have ended out of order.
            self.tell(10, &words(&[halves(nth, u32::from(self.memory.load_u16(queue.base + USED + 2)))]), None);
            self.tell(12, &words(&[u64::from(nth)]), Some(queue.kick.as_fd()));
            self.tell(13, &words(&[u64::from(nth)]), Some(queue.call.as_fd()));
            self.tell(18, &words(&[halves(nth, 1)]), None);
        }
    }

    /// Stop all queues, whose requests end before.
    fn stop(&self) {
        for (queue, nth) in self.queues.iter().zip(0..) {
            let (answer, _) = self.ask(11, &words(&[halves(nth, 0)]));
            assert_eq!(answer, words(&[halves(nth, u32::from(queue.available))]));
        }
    }

    fn descriptor(&self, queue: &Queue, number: u16, at: u64, len: usize, flags: u16) {
        let len = u32::try_from(len).expect("short");
        let mut bytes = words(&[at]);
        bytes.extend(len.to_le_bytes());
        bytes.extend([flags, number + 1].map(u16::to_le_bytes).concat());
        self.memory.write(queue.base + 16 * u64::from(number), &bytes);
    }

    /// Submit a request in a free slot. `false`: there is none.
    fn submit(&mut self, nth: usize, pending: Pending) -> bool {
        let queue = &self.queues[nth];
        let Some(slot) = queue.pending.iter().position(Option::is_none) else { return false };
        let (head, place) = (3 * u16::try_from(slot).expect("few"), queue.base + SLOT * (slot as u64 + 1));
        let mut request = words(&[u64::from(pending.kind), pending.block * 8]);
        request.push(0xff);
        self.memory.write(place, &request);
        let data = place + 0x1000;
        let filled = if pending.kind == OUT { content(pending.block, pending.write) } else { vec![0xee; BLOCK] };
        self.memory.write(data, &filled);
        self.descriptor(queue, head, place, 16, NEXT);
        let flags = if pending.kind == OUT { NEXT } else { NEXT | WRITABLE };
        self.descriptor(queue, head + 1, data, BLOCK, flags);
        self.descriptor(queue, head + 2, place + 16, 1, WRITABLE);
        let queue = &mut self.queues[nth];
        self.memory.store_u16(queue.base + AVAILABLE + 4 + 2 * u64::from(queue.available % ENTRIES), head);
        queue.available = queue.available.wrapping_add(1);
        self.memory.store_u16(queue.base + AVAILABLE + 2, queue.available);
        queue.pending[slot] = Some(pending);
        queue.kick.wake();
        true
    }

    /// The requests that have ended since the last call. Each has ended well, and a read has found its write.
    fn reap(&mut self) -> Vec<Pending> {
        let mut ended = Vec::new();
        for queue in &mut self.queues {
            while queue.used != self.memory.load_u16(queue.base + USED + 2) {
                let mut entry = [0; 8];
                self.memory.read(queue.base + USED + 4 + 8 * u64::from(queue.used % ENTRIES), &mut entry);
                queue.used = queue.used.wrapping_add(1);
                let slot = usize::from(entry[0] / 3);
                let pending = queue.pending[slot].take().expect("a request ends once");
                let place = queue.base + SLOT * (slot as u64 + 1);
                let (mut status, mut data) = ([0], vec![0; BLOCK]);
                self.memory.read(place + 16, &mut status);
                assert_eq!(status[0], 0, "{pending:?} has failed");
                if pending.kind == READ {
                    self.memory.read(place + 0x1000, &mut data);
                    assert!(data == content(pending.block, pending.write), "{pending:?} found something else");
                }
                ended.push(pending);
            }
            queue.call.clear();
        }
        self.ended += ended.len() as u64;
        ended
    }

    fn under_way(&self) -> usize {
        self.queues.iter().flat_map(|queue| &queue.pending).flatten().count()
    }
}

/// A connection that says nothing.
fn connected(path: &Path) -> Socket {
    let until = Instant::now() + END_TIME_MAX;
    loop {
        match Socket::connect_unix(path) {
            Ok(socket) => return socket,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Wait until the server has disconnected this one.
fn wait_for_end(socket: &Socket) {
    let until = Instant::now() + END_TIME_MAX;
    while !matches!(socket.receive_with_files(&mut [0; 64], &mut Vec::new()), Ok(Progress::Closed) | Err(_)) {
        assert!(Instant::now() < until, "it is not disconnected");
        thread::sleep(Duration::from_millis(10));
    }
}

fn wait_for_event(lab: &Lab, words: &str) {
    lab.wait_for_events(|events| events.iter().any(|event| event.contains(words)));
}

/// What the guest knows of its blocks: the last write, and whether a request is under way.
struct Load {
    writes: Vec<u64>,
    is_busy: Vec<bool>,
    write: u64,
    drawn: u64,
}

impl Load {
    fn new() -> Self {
        let count = usize::try_from(BLOCKS).expect("few");
        Self { writes: vec![0; count], is_busy: vec![false; count], write: 0, drawn: 0x9e37_79b9_7f4a_7c15 }
    }

    fn fill(&mut self, machine: &mut Machine) {
        for nth in 0..usize::from(QUEUES) {
            loop {
                self.drawn ^= self.drawn << 13;
                self.drawn ^= self.drawn >> 7;
                self.drawn ^= self.drawn << 17;
                let block = self.drawn % BLOCKS;
                let place = usize::try_from(block).expect("few");
                if self.is_busy[place] {
                    continue;
                }
                let kind = if self.drawn >> 60 < 11 { OUT } else { READ };
                let write = if kind == OUT { self.write + 1 } else { self.writes[place] };
                if !machine.submit(nth, Pending { kind, block, write }) {
                    break;
                }
                self.is_busy[place] = true;
                self.write = self.write.max(write);
            }
        }
    }

    fn reap(&mut self, machine: &mut Machine) {
        for Pending { block, write, .. } in machine.reap() {
            let place = usize::try_from(block).expect("few");
            (self.writes[place], self.is_busy[place]) = (write, false);
        }
    }

    /// Load until this number of requests has ended.
    fn run(&mut self, machine: &mut Machine, count: u64) {
        let (until, wanted) = (Instant::now() + END_TIME_MAX, machine.ended + count);
        while machine.ended < wanted {
            self.fill(machine);
            self.reap(machine);
            assert!(Instant::now() < until, "{} requests do not end", machine.under_way());
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn finish(&mut self, machine: &mut Machine) {
        let until = Instant::now() + END_TIME_MAX;
        while machine.under_way() > 0 {
            self.reap(machine);
            assert!(Instant::now() < until, "{} requests never end", machine.under_way());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

#[test]
fn a_guest_lives_through_kills_of_the_server_without_an_error_and_finds_every_byte() {
    let wanted = std::env::var("OPENRAID_KILLS").ok().map(|count| count.parse().expect("OPENRAID_KILLS is a number"));
    let kills = wanted.unwrap_or(KILLS);
    let lab = array("machines");
    let mut machine = Machine::new(lab.path("data.sock"));
    let mut load = Load::new();
    let folder = lab.folder.to_str().expect("UTF-8").to_owned();
    let mut pauses = Vec::new();
    let mut left = 0;
    for kill in 0..=kills {
        let server = lab.serve(&["data", "--vhost", &folder]);
        machine.connect();
        let connected = Instant::now();
        load.run(&mut machine, 1);
        pauses.push(connected.elapsed());
        load.run(&mut machine, 300 + kill * 37 % 200);
        if kill < kills {
            load.fill(&mut machine);
            server.kill();
            machine.socket = None;
            load.reap(&mut machine);
            left += machine.under_way();
            continue;
        }
        load.finish(&mut machine);
        assert!(machine.submit(0, Pending { kind: FLUSH, block: 0, write: 0 }));
        load.is_busy[0] = true;
        let write = load.writes[0];
        load.finish(&mut machine);
        load.writes[0] = write;
        machine.stop();
        let mut client = Client::open(&lab.path("nbd.sock"), "data");
        for (block, write) in (0..).zip(&load.writes) {
            let found = client.read_block(block * BLOCK as u64).expect("it is served");
            assert!(found == content(block, *write), "block {block} has not write {write}");
        }
        server.stop();
    }
    assert!(left > 0, "no kill met a request");
    if wanted.is_some() {
        pauses.sort_unstable();
        let (ended, most) = (machine.ended, pauses.last().expect("one"));
        let said = format!(
            "{kills} kills, {left} requests met, {ended} ended, {} ms from a connection to its first end",
            most.as_millis()
        );
        let _ = writeln!(std::io::stderr(), "{said}");
    }
}

/// The number of clients that a server says it has.
fn clients(server: &Server) -> u64 {
    let mut stream = UnixStream::connect(server.ready["control"].as_str().expect("a path")).expect("it listens");
    writeln!(stream, r#"{{"v":2,"do":"hello"}}"#).expect("sent");
    let answer = BufReader::new(stream).lines().next().expect("an answer").expect("UTF-8");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["ok"]["server"]["clients"].as_u64().expect("a number")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a socket").permissions().mode() & 0o777
}

#[test]
fn a_machine_is_shown_like_other_hosts_and_a_broken_rule_is_told() {
    let lab = array("machines-shown");
    let socket = lab.path("vm.sock");
    let place = format!("data={}", socket.display());
    let mut server = lab.serve(&["data", "--vhost", &place]);
    assert_eq!(mode(&socket), 0o600);
    let addresses = lab.show("data")["addresses"].to_string();
    assert!(addresses.contains("vhost-user://"), "{addresses}");
    let mut machine = Machine::new(socket.clone());
    machine.connect();
    assert_eq!(clients(&server), 1);
    // What a host of NBD has written, a machine reads.
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.ask(WRITE, 5 * BLOCK as u64, &content(5, 7)), 0);
    assert!(machine.submit(1, Pending { kind: READ, block: 5, write: 7 }));
    Load::new().finish(&mut machine);
    // Memory that could go away under the server.
    let plain = openraid_sys::memory_file(MEMORY).expect("memory");
    machine.send(5, true, &words(&[1, 0, MEMORY, USER, 0]), Some(plain.as_fd()));
    assert_eq!(machine.receive(5).0, words(&[1]));
    server.wait_for_news("MachineRefused", 1);
    wait_for_event(&lab, "memory-backend-memfd,share=on");
    // An array that is not served any more has no socket.
    lab.line("stop data").expect(0);
    assert!(!socket.exists());
    server.end();
}

#[test]
fn a_place_that_cannot_have_sockets_is_refused_in_words() {
    let lab = array("machines-places");
    let refused = |place: &str, words: &[&str]| {
        lab.run(&["serve", "data", "--vhost", place]).refused(64, words);
    };
    refused("nowhere", &["no such folder", "NAME=PATH"]);
    refused("data=", &["a name or a path is missing"]);
    refused("=x", &["a name or a path is missing"]);
}

#[test]
fn after_a_loss_machines_are_refused_until_it_is_accepted() {
    let lab = array("machines-loss");
    let socket = lab.path("vm.sock");
    let place = format!("data={}", socket.display());
    let options = ["data", "--cache", "16M", "--vhost", &place];
    let server = lab.serve(&options);
    lab.line("set data write.cache=volatile --yes").expect(0);
    let mut machine = Machine::new(socket.clone());
    machine.connect();
    let mut load = Load::new();
    load.run(&mut machine, 50);
    load.finish(&mut machine);
    server.kill();
    // Its socket is made before anything else, so the consent to the loss cannot fail in the middle.
    fs::remove_file(&socket).expect("the killed server left it");
    fs::create_dir(&socket).expect("room");
    lab.run(&[&["serve"][..], &options].concat()).refused(65, &["vm.sock: this exists and is not a socket"]);
    fs::remove_dir(&socket).expect("it is empty");
    let server = lab.serve(&options);
    lab.line("show data").says(&["hosts", "REFUSED", "--after-loss"]);
    wait_for_end(&connected(&socket));
    wait_for_event(&lab, "data, virtual machine: ");
    lab.line("serve data --after-loss").expect(0).says(&["hosts are served again"]);
    machine.connect();
    assert!(machine.submit(0, Pending { kind: OUT, block: 0, write: 1 }));
    load.finish(&mut machine);
    server.stop();
}

/// A front end that passes sockets whose close waits for an hour, because their other ends are here and read nothing: in place of
/// memory, as an event that is kept, more than a message may have, and unread when the connection ends.
const LINGERING: &str = r#"
import os, socket, struct, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("127.0.0.1", 0))
listener.listen(64)
def lingering():
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    one.connect(listener.getsockname())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    one.setblocking(False)
    try:
        while True:
            one.send(bytes(4096))
    except BlockingIOError:
        return one
# A process of its own: its end closes its copies without a wait, also those that the server has closed before.
def attack(*messages):
    process = os.fork()
    if process:
        return os.waitpid(process, 0)
    try:
        machine = socket.socket(socket.AF_UNIX)
        machine.connect(sys.argv[1])
        for request, payload, count in messages:
            files = [lingering().detach() for _ in range(count)]
            message = struct.pack("III", request, 1, len(payload)) + payload
            socket.send_fds(machine, [message], files)
    finally:
        os._exit(0)
attack((5, struct.pack("QQQQQ", 1, 0, 1 << 20, 0, 0), 1))
attack((13, bytes(8), 1))
attack((1, b"", 12))
attack((99, b"", 0), (13, bytes(8), 1))
print("done", flush=True)
sys.stdin.read()
"#;

#[test]
fn files_whose_close_waits_and_machines_that_say_nothing_hold_up_no_other() {
    let lab = array("machines-linger");
    let (folder, socket) = (lab.folder.to_str().expect("UTF-8"), lab.path("data.sock"));
    let server = lab.serve(&["data", "--vhost", folder]);
    let silent = connected(&socket);
    let mut python = Command::new("python3");
    python.args(["-c", LINGERING]).arg(&socket).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().expect("python3");
    let said = BufReader::new(python.stdout.take().expect("piped")).lines().next();
    assert_eq!(said.expect("a line").expect("UTF-8"), "done");
    let mut machine = Machine::new(socket);
    machine.connect();
    let mut load = Load::new();
    load.run(&mut machine, 20);
    load.finish(&mut machine);
    for words in ["the shared memory is not sealed", "with more than 8 files", "request 99 was not offered"] {
        wait_for_event(&lab, words);
    }
    wait_for_end(&silent);
    wait_for_event(&lab, "it has said nothing for 30 s");
    server.stop();
    drop(python.stdin.take());
    assert!(python.wait().expect("it ends").success());
}

#[test]
fn machines_and_descriptors_beyond_the_limits_of_an_array_are_refused() {
    const MACHINES_MAX: usize = 32;
    const DESCRIPTORS_MAX: usize = 1024;
    let lab = array("machines-many");
    let folder = lab.folder.to_str().expect("UTF-8");
    let server = lab.serve(&["data", "--vhost", folder]);
    let silent = || {
        let mut machine = Machine::new(lab.path("data.sock"));
        machine.socket = Some(connected(&machine.path));
        machine
    };
    let heard = || {
        let machine = silent();
        machine.ask(1, &[]);
        machine
    };
    let end = |machine: &Machine| wait_for_end(machine.socket.as_ref().expect("connected"));
    let mut machines: Vec<_> = (1..MACHINES_MAX).map(|_| heard()).collect();
    let crowded_out = silent();
    machines.push(heard());
    end(&crowded_out);
    end(&silent());
    wait_for_event(&lab, "32 machines are connected to this array, which is the limit");
    // Each of the first machines has 128 events, and its socket.
    let of_one = 128;
    let too_many = (DESCRIPTORS_MAX - MACHINES_MAX) / of_one;
    let name_all = |machine: &Machine| {
        let event = machine.queues[0].call.as_fd();
        let mut messages = (0..64).flat_map(|queue| [(13, queue), (14, queue)]);
        messages.all(|(request, queue)| machine.try_send(request, false, &words(&[queue]), Some(event)))
    };
    for machine in &machines[..too_many] {
        assert!(name_all(machine));
        machine.ask(1, &[]);
    }
    name_all(&machines[too_many]);
    end(&machines[too_many]);
    wait_for_event(&lab, "of this array have more than 1024 descriptors, which is the limit");
    assert_eq!(clients(&server), (MACHINES_MAX - 1) as u64);
    server.stop();
}

#[test]
fn a_machine_learns_that_its_array_has_another_size() {
    let lab = array("machines-size");
    let folder = lab.folder.to_str().expect("UTF-8");
    let server = lab.serve(&["data", "--vhost", folder]);
    let mut machine = Machine::new(lab.path("data.sock"));
    machine.connect();
    let (mut ours, theirs) = UnixStream::pair().expect("sockets");
    ours.set_read_timeout(Some(END_TIME_MAX)).expect("a timeout");
    machine.tell(21, &[], Some(theirs.as_fd()));
    let whole = machine.sectors();
    for (line, wanted) in [("16M --yes", (16 << 20) / 512), ("max", whole)] {
        lab.line(&format!("reshape data --array-size {line}")).expect(0);
        let mut message = [0; 12];
        ours.read_exact(&mut message).expect("it is told");
        assert_eq!(message, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(machine.sectors(), wanted);
        assert!(!lab.line("show data").expect(0).text().contains("old size"));
    }
    server.stop();
}
