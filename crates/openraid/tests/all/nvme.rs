//! NVMe/TCP on real sockets, by a host that knows only the specification.

#[allow(dead_code)]
#[path = "../../../nvme/tests/support/bytes.rs"]
mod bytes;
#[allow(dead_code)]
#[path = "../../../nvme/tests/support/host.rs"]
mod host;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use self::bytes::{access, by_transport, connect, entry, get_log, identify, in_capsule, le16, le64, Names};
use self::host::{Ended, Host};
use crate::support::client::Client;
use crate::support::{noise, Lab, Server, PROGRAM};

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:feedface-0000-4000-8000-000000000001";
const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// A command that is not answered within this time is not.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
const FLUSH: u8 = 0;
const WRITE: u8 = 1;
const READ: u8 = 2;
/// Unrecovered read error, do not retry.
const READ_ERROR: u16 = 0x4281;

/// One connection.
struct Queue {
    stream: TcpStream,
    host: Host,
}

impl Queue {
    fn open(address: &str, digests: u8) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).expect("a time limit");
        Self { stream, host: Host::new(digests, 0) }
    }

    /// Send what waits to be sent.
    fn push(&mut self) {
        let out = std::mem::take(&mut self.host.out);
        self.stream.write_all(&out).expect("the server takes commands");
    }

    /// Send and receive until every command has its answer.
    fn exchange(&mut self) {
        let mut bytes = vec![0; 1 << 16];
        loop {
            self.push();
            if self.host.running() == 0 {
                return;
            }
            let count = self.stream.read(&mut bytes).expect("every command is answered");
            assert!(count > 0, "the server has closed the connection");
            self.host.receive(&bytes[..count]);
        }
    }

    fn run(&mut self, entry: &[u8; 64], in_capsule: &[u8], wanted: usize, payload: &[u8]) -> Ended {
        self.host.send(entry, in_capsule, wanted, payload);
        self.exchange();
        self.host.end_of(le16(entry, 2))
    }

    /// Connect this queue: number, entries less one, controller.
    fn connect(&mut self, subsystem: &str, (queue, entries, controller): (u16, u16, u16)) -> Ended {
        let names = Names { host_id: [0xab; 16], host: HOST.into(), subsystem: subsystem.into() };
        let (mut entry, data) = connect(1, queue, entries, controller, &names);
        entry[46] = 4;
        self.run(&entry, &data, 0, &[])
    }
}

/// A host of one array: its admin queue, and an I/O queue.
struct Disk {
    admin: Queue,
    io: Queue,
}

impl Disk {
    fn open(address: &str, subsystem: &str, digests: u8) -> Self {
        let mut admin = Queue::open(address, digests);
        let connected = admin.connect(subsystem, (0, 31, 0xffff));
        assert_eq!(connected.status, 0, "Connect is refused: {connected:x?}");
        let controller = u16::try_from(connected.result).expect("a controller");
        assert_eq!(admin.run(&bytes::property_set(2, 0x14, 0x0046_0001), &[], 0, &[]).status, 0);
        let mut io = Queue::open(address, digests);
        assert_eq!(io.connect(subsystem, (1, 127, controller)).status, 0);
        Self { admin, io }
    }

    /// A write of whole blocks; a short one is in its capsule.
    fn write(&mut self, id: u16, offset: u64, data: &[u8]) {
        let mut entry = access(WRITE, id, offset / 512, u32::try_from(data.len() / 512).expect("short"));
        let len = u32::try_from(data.len()).expect("short");
        if data.len() <= 8192 {
            in_capsule(&mut entry, len);
            self.io.host.send(&entry, data, 0, &[]);
        } else {
            by_transport(&mut entry, len);
            self.io.host.send(&entry, &[], 0, data);
        }
    }

    fn read(&mut self, id: u16, offset: u64, len: usize) {
        let mut entry = access(READ, id, offset / 512, u32::try_from(len / 512).expect("short"));
        by_transport(&mut entry, u32::try_from(len).expect("short"));
        self.io.host.send(&entry, &[], len, &[]);
    }

    fn flush(&mut self) {
        assert_eq!(self.io.run(&entry(FLUSH, 99, 1), &[], 0, &[]).status, 0);
    }

    fn size(&mut self) -> u64 {
        le64(&self.admin.run(&identify(3, 0, 1), &[], 4096, &[]).data, 0) * 512
    }
}

/// Address and subsystem of an array.
fn place(lab: &Lab) -> (String, String) {
    let shown = lab.show("data");
    let addresses = shown["addresses"].as_array().expect("a list");
    let mut address = addresses.iter().filter_map(|address| address.as_str()?.strip_prefix("nvme+tcp://"));
    let (address, subsystem) = address.next_back().and_then(|text| text.split_once('/')).expect("an address");
    (address.to_owned(), subsystem.to_owned())
}

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

#[test]
fn what_a_host_writes_is_what_it_and_all_other_clients_read() {
    let lab = array("nvme");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0"]);
    let (address, subsystem) = place(&lab);
    for digests in [0, 3] {
        let mut disk = Disk::open(&address, &subsystem, digests);
        assert_eq!(Some(disk.size()), lab.show("data")["size_bytes"].as_u64());
        let content = noise(u64::from(digests) + 5, 4 << 20);
        // All lengths at once: in a capsule, asked for, and asked for in several parts.
        disk.io.host.piece = 48 << 10;
        let lens = [512, 4096, 8192, 8704, 64 << 10, 128 << 10, 1 << 20];
        let (mut at, mut parts) = (0, Vec::new());
        while at < content.len() {
            let len = lens[parts.len() % lens.len()].min(content.len() - at);
            parts.push((at, len));
            at += len;
        }
        for part in parts.chunks(64) {
            for (id, (at, len)) in (1..).zip(part) {
                disk.write(id, *at as u64, &content[*at..at + len]);
            }
            disk.io.exchange();
            (1..).zip(part).for_each(|(id, _)| assert_eq!(disk.io.host.end_of(id).status, 0));
        }
        disk.flush();
        for part in parts.chunks(64) {
            (1..).zip(part).for_each(|(id, (at, len))| disk.read(id, *at as u64, *len));
            disk.io.exchange();
            for (id, (at, len)) in (1..).zip(part) {
                let ended = disk.io.host.end_of(id);
                assert!(ended.status == 0 && ended.data == content[*at..at + len], "{len} bytes at {at}");
            }
        }
        let mut client = Client::open(&lab.path("nbd.sock"), "data");
        for block in (0..content.len()).step_by(4096) {
            let read = client.read_block(block as u64).expect("a block");
            assert!(read == content[block..block + 4096], "NBD, block at {block}");
        }
    }
    server.stop();
}

#[test]
fn a_host_finds_the_arrays_at_the_address_that_it_asks() {
    let lab = array("nvme-discovery");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0"]);
    let (address, subsystem) = place(&lab);
    let mut queue = Queue::open(&address, 0);
    assert_eq!(queue.connect(DISCOVERY, (0, 31, 0xffff)).status, 0);
    assert_eq!(queue.run(&bytes::property_set(2, 0x14, 0x0046_0001), &[], 0, &[]).status, 0);
    let log = queue.run(&get_log(3, 0x70, 2048, 0), &[], 2048, &[]).data;
    assert_eq!(le64(&log, 8), 1, "one entry");
    let text = |at: usize, len: usize| {
        String::from_utf8_lossy(&log[1024 + at..1024 + at + len]).trim_end_matches(['\0', ' ']).to_owned()
    };
    assert_eq!(format!("{}:{}", text(512, 256), text(32, 32)), address);
    assert_eq!(text(256, 256), subsystem);
    let unknown = Queue::open(&address, 0).connect("nqn.2014-08.org.example:other", (0, 31, 0xffff));
    assert_eq!(unknown.status, 0x182, "an array that is not there, or not yet");
    server.stop();
}

#[test]
fn only_the_hosts_of_the_file_may_use_an_array() {
    let lab = array("nvme-hosts");
    let hosts = |host: &str| format!("nvme = [\"127.0.0.1:0\"]\n[arrays.data]\nhosts = [{host:?}]\n");
    lab.configure(&hosts("data"));
    lab.line("config check openraid.toml").refused(65, &["arrays.data.hosts", "is not the name of an NVMe host"]);
    lab.configure(&hosts("nqn.2014-08.org.example:other"));
    let server = lab.serve_configured();
    let (address, subsystem) = place(&lab);
    // Connect with an invalid host, do not retry.
    assert_eq!(Queue::open(&address, 0).connect(&subsystem, (0, 31, 0xffff)).status, 0x4184);
    lab.configure(&hosts(HOST));
    lab.line("reload").expect(0).says(&["data: hosts changed"]);
    let mut disk = Disk::open(&address, &subsystem, 0);
    disk.flush();
    lab.configure(&hosts("nqn.2014-08.org.example:other"));
    lab.line("reload").expect(0);
    assert_eq!(disk.io.stream.read(&mut [0; 8]).unwrap_or(0), 0, "the host is disconnected");
    server.stop();
}

#[test]
fn a_host_is_told_of_its_path_and_finds_it_again_at_the_next_start() {
    let lab = array("nvme-path");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0"]);
    let (address, subsystem) = place(&lab);
    let mut disk = Disk::open(&address, &subsystem, 0);
    // Events of changed paths, and a request that waits for one.
    assert_eq!(disk.admin.run(&bytes::set_feature(3, 0x0b, 0x800), &[], 0, &[]).status, 0);
    disk.admin.host.send(&entry(0x0c, 4, 0), &[], 0, &[]);
    disk.admin.push();
    lab.line("path data sideways").expect(64);
    lab.line("path data inaccessible").expect(0).says(&["data: NVMe hosts are told"]);
    disk.admin.exchange();
    // A notice: the log of paths is to be read.
    assert_eq!(disk.admin.host.end_of(4).result & 0xff_ffff, 0x0c_03_02);
    let asked = disk.io.run(&entry(FLUSH, 5, 1), &[], 0, &[]);
    assert_eq!(asked.status, 0x302, "inaccessible, and to be tried again");
    server.kill();
    let server = lab.serve(&["data", "--nvme", &address]);
    let mut disk = Disk::open(&address, &subsystem, 0);
    assert_eq!(disk.io.run(&entry(FLUSH, 5, 1), &[], 0, &[]).status, 0x302);
    lab.line("path data non-optimized").expect(0);
    disk.flush();
    server.stop();
    let server = lab.serve(&["data"]);
    lab.line("path data optimized").refused(65, &["start it with --nvme HOST:PORT"]);
    server.stop();
}

#[test]
fn a_read_that_failed_is_no_success() {
    let lab = array("nvme-failed");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0"]);
    let (address, subsystem) = place(&lab);
    let mut disk = Disk::open(&address, &subsystem, 0);
    for member in ["d0", "d1"] {
        File::options().write(true).open(lab.path(member)).and_then(|file| file.set_len(4 << 20)).expect("shorter");
    }
    disk.read(1, 24 << 20, 256 << 10);
    disk.io.exchange();
    let ended = disk.io.host.end_of(1);
    assert_eq!((ended.status, ended.by_data), (READ_ERROR, false));
    server.kill();
}

/// Hosts that have sent all payload wait for the array, not the array for them: none is disconnected to relieve the others.
#[test]
fn hosts_that_have_sent_their_payload_stay_connected_to_a_slow_array() {
    let far = Lab::new("nvme-slow-member");
    far.drives(&["x"], 64);
    far.line("create drive --level jbod x").expect(0);
    let drive = far.serve(&["drive"]);
    let uri = drive.uri();
    let lab = Lab::new("nvme-slow");
    lab.drives(&["y"], 64);
    lab.run(&["create", "data", "--level", "1", "--assume-clean", &uri, "y"]).expect(0);
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0"]);
    let (address, subsystem) = place(&lab);
    // More than half of all requests, each too long for its capsule.
    const WRITES: u16 = 100;
    let payload = noise(7, 12 << 10);
    let mut disks: Vec<Disk> = (0..24).map(|_| Disk::open(&address, &subsystem, 0)).collect();
    drive.signal("-STOP");
    std::thread::scope(|scope| {
        // A host that owes payload is disconnected soon, so each has a thread that pays at once.
        for disk in &mut disks {
            scope.spawn(|| {
                (1..=WRITES).for_each(|id| disk.write(id, u64::from(id) * (16 << 10), &payload));
                disk.io.exchange();
                (1..=WRITES).for_each(|id| assert_eq!(disk.io.host.end_of(id).status, 0));
            });
        }
        // The member is silent for longer than a stalled host may be.
        std::thread::sleep(Duration::from_secs(3));
        drive.signal("-CONT");
    });
    server.stop();
    drive.stop();
}

#[test]
fn a_host_comes_back_to_a_server_that_was_killed() {
    let lab = array("nvme-killed");
    let script = r#"exec "$0" --control control.sock serve data --json --nvme 127.0.0.1:0 --keep-listening"#;
    let keeper = Server::started(&mut lab.command_of(Path::new("/bin/sh"), &["-c", script, PROGRAM])).expect("ready");
    let place = |lab: &Lab| {
        let shown = lab.line("--control control.sock show data --json").expect(0).json();
        let text = shown["array"]["addresses"][0].as_str().expect("an address").to_owned();
        let text = text.strip_prefix("nvme+tcp://").expect("NVMe alone: there is no NBD").to_owned();
        text.split_once('/').map(|(address, subsystem)| (address.to_owned(), subsystem.to_owned())).expect("both")
    };
    let (address, subsystem) = place(&lab);
    let content = noise(3, 256 << 10);
    let mut disk = Disk::open(&address, &subsystem, 0);
    disk.write(1, 0, &content);
    disk.io.exchange();
    assert_eq!(disk.io.host.end_of(1).status, 0);
    let mut control = UnixStream::connect(lab.path("control.sock")).expect("a control socket");
    writeln!(control, r#"{{"v":2,"do":"hello"}}"#).expect("sent");
    let answer = BufReader::new(control).lines().next().expect("an answer").expect("a line");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let process = answer["ok"]["server"]["pid"].to_string();
    assert!(Command::new("kill").args(["-KILL", &process]).status().expect("kill").success());
    assert_eq!(disk.io.stream.read(&mut [0; 8]).unwrap_or(0), 0, "the connection ends with the server");
    // The new connection waits in the queue of the socket until the next server accepts it.
    let mut disk = Disk::open(&address, &subsystem, 0);
    disk.read(1, 0, content.len());
    disk.io.exchange();
    assert!(disk.io.host.end_of(1).data == content, "acknowledged writes are there");
    keeper.signal("-TERM");
    keeper.end();
}

#[test]
fn hosts_are_refused_after_a_loss_and_connect_again_when_that_is_known() {
    let lab = array("nvme-loss");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0", "--cache", "64M"]);
    lab.line("set data write.cache=volatile --yes").expect(0);
    let (address, subsystem) = place(&lab);
    let mut disk = Disk::open(&address, &subsystem, 0);
    disk.write(1, 0, &noise(4, 4096));
    disk.io.exchange();
    server.kill();
    let server = lab.serve(&["data", "--nvme", &address, "--cache", "64M"]);
    assert_eq!(Queue::open(&address, 0).connect(&subsystem, (0, 31, 0xffff)).status, 0x4184, "for good");
    lab.line("serve data --after-loss").expect(0);
    Disk::open(&address, &subsystem, 0).flush();
    server.stop();
}

#[test]
fn a_path_is_shown_and_kept_while_hosts_are_refused() {
    let lab = array("nvme-hidden");
    let server = lab.serve(&["data", "--nvme", "127.0.0.1:0", "--cache", "64M"]);
    let (address, subsystem) = place(&lab);
    assert_eq!(lab.show("data")["path"], "optimized");
    lab.line("path data inaccessible").expect(0);
    assert_eq!(lab.show("data")["path"], "inaccessible");
    lab.line("show data").says(&["inaccessible: NVMe hosts wait", "path data optimized"]);
    lab.line("path data optimized").expect(0);
    lab.line("set data write.cache=volatile --yes").expect(0);
    let mut disk = Disk::open(&address, &subsystem, 0);
    disk.write(1, 0, &noise(4, 4096));
    disk.io.exchange();
    server.kill();
    let server = lab.serve(&["data", "--nvme", &address, "--cache", "64M"]);
    let why = ["inaccessible when they are served again", "acknowledged writes may be lost", "serve data --after-loss"];
    lab.line("path data inaccessible").expect(0).says(&why);
    assert_eq!(lab.show("data")["path"], "inaccessible");
    lab.line("serve data --after-loss").expect(0);
    let mut disk = Disk::open(&address, &subsystem, 0);
    assert_eq!(disk.io.run(&entry(FLUSH, 5, 1), &[], 0, &[]).status, 0x302);
    lab.line("path data non-optimized").expect(0);
    disk.flush();
    // An array that is blocked has no hosts to tell.
    lab.line("set data access=blocked").expect(0);
    lab.line("path data inaccessible").expect(0).says(&["when they are served again", "set data access="]);
    lab.line("set data access=read-write").expect(0);
    let mut disk = Disk::open(&address, &subsystem, 0);
    assert_eq!(disk.io.run(&entry(FLUSH, 5, 1), &[], 0, &[]).status, 0x302);
    server.stop();
}
