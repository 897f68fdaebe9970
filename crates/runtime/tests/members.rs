//! Members that fail, vanish, hang or come back, while an array serves.

mod support;

use std::fs::OpenOptions as FileOptions;
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, AdminOutcome, Health, MemberState, NewMember};
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_core::limits::Limits;
use openraid_core::reason::FailReason;
use openraid_format::{MdLevel, SetName, Uuid};
use openraid_nbd::{NbdCommand, StatusExtent};
use openraid_runtime::member::OpenOptions;
use openraid_runtime::service::{AssembleRequest, Listen, NestedRequest, ServiceEvent};
use openraid_runtime::ServiceConfig;
use openraid_sys::{EngineOptions, Prefer, Use};
use openraid_units::{ArrayId, Nanos, Sectors};
use support::client::Client;
use support::{has, noise, open_members, open_with, request, small_limits, uri, Folder, Server};

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const WRITE: NbdCommand = NbdCommand::Write { fua: false };

fn impatient(config: ServiceConfig) -> ServiceConfig {
    let limits = Limits { command_timeout: Nanos::from_secs(1), ..small_limits() };
    ServiceConfig { limits, ..config }
}

fn put(client: &mut Client, offset: u64, bytes: &[u8]) {
    for (at, piece) in (0u64..).zip(bytes.chunks(1 << 20)) {
        assert_eq!(client.call(WRITE, offset + (at << 20), piece.len() as u64, piece).result, Ok(()));
    }
}

fn get(client: &mut Client, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let piece = (len - bytes.len()).min(1 << 20);
        let answer = client.call(READ, offset + bytes.len() as u64, piece as u64, &[]);
        assert_eq!(answer.result, Ok(()));
        bytes.extend_from_slice(&answer.data);
    }
    bytes
}

fn states(server: &Server, array: ArrayId) -> Vec<MemberState> {
    let status = server.handle.status().expect("it runs");
    let view = status.arrays.into_iter().find(|view| view.status.array == array).expect("the array runs");
    view.status.members.into_iter().map(|member| member.state).collect()
}

fn faulty(server: &Server, array: ArrayId, reason: FailReason) -> bool {
    states(server, array).contains(&MemberState::Faulty(reason))
}

fn failures(server: &Server) -> Vec<FailReason> {
    let events = server.service.events().try_iter();
    let reason = |event| match event {
        ServiceEvent::Notice(notice) => match notice.kind {
            NoticeKind::Fail(reason) => Some(reason),
            _ => None,
        },
        _ => None,
    };
    events.filter_map(reason).collect()
}

/// A foreign server that a member is on; killed at the end.
struct Remote {
    child: Child,
}

impl Remote {
    fn start(socket: &Path, arguments: &[&str]) -> Self {
        let _ = std::fs::remove_file(socket);
        let child = Program::new("nbdkit")
            .args(["-f", "-U"])
            .arg(socket)
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .expect("nbdkit starts");
        let mut server = Self { child };
        // The socket's name is there before anybody listens: only a connection shows that it serves.
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            assert!(server.child.try_wait().expect("it is ours").is_none(), "nbdkit ended at once");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_member_file_that_becomes_shorter_is_failed_and_the_data_are_still_there() {
    for prefer in [Prefer::Best, Prefer::Threads] {
        let server = Server::with("short", |config| ServiceConfig {
            engine: EngineOptions { prefer, ..EngineOptions::default() },
            ..config
        });
        let members = server.folder.members(4, 16 << 20);
        let array = server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
        let mut client = server.connect();
        let bytes = noise(1, 24 << 20);
        put(&mut client, 0, &bytes);
        assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        let file = FileOptions::new().write(true).open(&members[2]).expect("the member");
        file.set_len(3 << 20).expect("shorter");
        assert!(get(&mut client, 0, bytes.len()) == bytes, "{prefer:?}: other bytes than were written");
        put(&mut client, 5, &bytes[..1 << 20]);
        assert!(get(&mut client, 5, 1 << 20) == bytes[..1 << 20]);
        assert!(faulty(&server, array, FailReason::Protocol), "{:?}", states(&server, array));
        assert_eq!(failures(&server).len(), 1, "one member left");
    }
}

#[test]
fn a_killed_server_is_started_again_and_has_every_byte_that_was_flushed() {
    const ROLE: &str = "OPENRAID_TEST_VICTIM";
    if let Ok(folder) = std::env::var(ROLE) {
        return victim(Path::new(&folder));
    }
    let folder = Folder::new("killed");
    let members = folder.members(4, 16 << 20);
    let name = "a_killed_server_is_started_again_and_has_every_byte_that_was_flushed";
    let mut child = Program::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name])
        .env(ROLE, folder.path(""))
        .stdout(Stdio::null())
        .spawn()
        .expect("the victim");
    while !folder.path("ready").exists() {
        assert!(child.try_wait().expect("a child").is_none(), "the victim ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let address = uri(&folder.path("s"), "disk").parse().expect("an address");
    let mut client = Client::connect(&address, true, &[]).expect("a connection");
    let bytes = noise(9, 8 << 20);
    put(&mut client, 0, &bytes);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    // More writes are under way when the end comes.
    for nth in 0..64 {
        let request = client.request(WRITE, (8 << 20) + nth * 4096, 4096);
        client.send(request, &noise(nth, 4096));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");

    let server = Server::new("risen");
    let started = server.assemble(&members);
    assert!(started.failed.is_empty(), "{:?}", started.failed);
    let array = started.arrays[0].array;
    server.offer(array, "disk");
    let mut client = server.connect();
    assert!(get(&mut client, 0, bytes.len()) == bytes);
    let status = server.handle.status().expect("it runs");
    assert_eq!(status.arrays[0].status.health, Health::Optimal);
}

/// The server that is killed: the same array each time, until it is.
fn victim(folder: &Path) {
    let config = ServiceConfig {
        limits: small_limits(),
        listen: vec![Listen::Unix(folder.join("s"))],
        ..ServiceConfig::default()
    };
    let service = openraid_runtime::Service::start(config).expect("a service");
    let members: Vec<String> = (0..4).map(|nth| folder.join(format!("m{nth}")).display().to_string()).collect();
    let array = service.handle().create(request(MdLevel::Raid5, Sectors::kib(64), &members)).expect("an array").array;
    let export = openraid_runtime::service::ExportRequest::named(array, "disk");
    service.handle().export(&export).expect("an export");
    std::fs::write(folder.join("ready"), "").expect("a file");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_remote_member_that_stops_answering_fails_and_the_others_go_on() {
    if !has("nbdkit") {
        return;
    }
    let server = Server::with("hang", impatient);
    let socket = server.folder.path("remote");
    let remote = Remote::start(&socket, &["--filter=delay", "memory", "32M", "rdelay=0"]);
    let members = vec!["ram:32M".into(), uri(&socket, "")];
    let array = server.create(request(MdLevel::Raid1, Sectors(0), &members));
    let mut client = server.connect();
    let bytes = noise(4, 4 << 20);
    put(&mut client, 0, &bytes);
    // Stopped, not ended: its socket stays, its answers do not come.
    let stop = Program::new("kill").args(["-STOP", &remote.child.id().to_string()]).status();
    assert!(stop.is_ok_and(|status| status.success()));
    let begun = Instant::now();
    put(&mut client, 0, &bytes);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    assert!(begun.elapsed() >= Duration::from_millis(900), "the member was not waited for");
    assert!(get(&mut client, 0, bytes.len()) == bytes);
    assert!(faulty(&server, array, FailReason::Timeout), "{:?}", states(&server, array));
}

#[test]
fn a_remote_member_that_is_gone_for_a_moment_comes_back_without_anybody_noticing() {
    if !has("nbdkit") {
        return;
    }
    let server = Server::with("back", |config| {
        let limits = Limits { command_timeout: Nanos::from_secs(20), ..small_limits() };
        ServiceConfig { limits, ..config }
    });
    let socket = server.folder.path("remote");
    let file = server.folder.member("behind", 32 << 20);
    let mut remote = Remote::start(&socket, &["file", &file]);
    let members = vec!["ram:32M".into(), uri(&socket, "")];
    let array = server.create(request(MdLevel::Raid1, Sectors(0), &members));
    let mut client = server.connect();
    let bytes = noise(5, 3 << 20);
    put(&mut client, 0, &bytes);
    // Flushed, and the array marked clean: nothing that was answered is in doubt.
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    std::thread::sleep(Duration::from_millis(500));
    remote.kill();
    for nth in 0..32 {
        let request = client.request(WRITE, nth << 16, 65_536);
        client.send(request, &noise(nth, 65_536));
    }
    std::thread::sleep(Duration::from_millis(300));
    let _again = Remote::start(&socket, &["file", &file]);
    (0..32).for_each(|_| assert_eq!(client.wait().1.result, Ok(())));
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    for nth in 0..32 {
        assert!(get(&mut client, nth << 16, 65_536) == noise(nth, 65_536));
    }
    assert_eq!(states(&server, array), [MemberState::InSync; 2]);
    assert!(server.handle.status().expect("it runs").drives.iter().all(|drive| drive.trouble.is_none()));
}

#[test]
fn a_remote_member_that_is_killed_under_writes_and_comes_back_in_time_stays() {
    if !has("nbdkit") {
        return;
    }
    let server = Server::with("again", |config| {
        let limits = Limits { command_timeout: Nanos::from_secs(60), ..small_limits() };
        ServiceConfig { limits, ..config }
    });
    let (socket, file) = (server.folder.path("remote"), server.folder.member("behind", 32 << 20));
    let mut remote = Remote::start(&socket, &["file", &file]);
    let members = vec!["ram:32M".into(), uri(&socket, ""), "ram:32M".into()];
    let array = server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
    let mut client = server.connect();
    for round in 0..4 {
        // None of these writes is flushed when the server is killed, and some are not answered.
        for nth in 0..32 {
            let request = client.request(WRITE, nth << 16, 65_536);
            client.send(request, &noise(round * 32 + nth, 65_536));
        }
        (0..16).for_each(|_| assert_eq!(client.wait().1.result, Ok(())));
        remote.kill();
        std::thread::sleep(Duration::from_millis(300));
        remote = Remote::start(&socket, &["file", &file]);
        (0..16).for_each(|_| assert_eq!(client.wait().1.result, Ok(())));
        assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    }
    assert_eq!(states(&server, array), [MemberState::InSync; 3]);
    let drive = server.handle.status().expect("it runs").drives[0].drive;
    server.handle.admin(AdminCommand::Fail { array, drive, unsynced: true }).expect("it survives");
    // What the remote member holds is needed now.
    for nth in 0..32 {
        assert!(get(&mut client, nth << 16, 65_536) == noise(96 + nth, 65_536));
    }
}

#[test]
fn a_remote_member_that_may_have_forgotten_writes_is_not_believed() {
    if !has("nbdkit") {
        return;
    }
    let server = Server::with("forgot", |config| {
        let limits =
            Limits { command_timeout: Nanos::from_secs(20), clean_delay: Nanos::from_secs(3600), ..small_limits() };
        ServiceConfig { limits, ..config }
    });
    let socket = server.folder.path("remote");
    // Its memory is its cache: killed, it has forgotten everything.
    let mut remote = Remote::start(&socket, &["memory", "32M"]);
    let members = vec!["ram:32M".into(), uri(&socket, "")];
    let array = server.create(request(MdLevel::Raid1, Sectors(0), &members));
    let mut client = server.connect();
    let bytes = noise(6, 1 << 20);
    put(&mut client, 0, &bytes);
    remote.kill();
    let _again = Remote::start(&socket, &["memory", "32M"]);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()), "the other copy was flushed");
    // Not even its superblock is there any more.
    assert!(faulty(&server, array, FailReason::Gone), "{:?}", states(&server, array));
    assert!(get(&mut client, 0, bytes.len()) == bytes);
}

#[test]
fn a_stripe_over_two_arrays_is_found_again_through_its_spans() {
    let first = Server::new("nested");
    let spans: Vec<Vec<String>> = (0..2)
        .map(|span| (0..3).map(|nth| first.folder.member(&format!("span{span}-{nth}"), 16 << 20)).collect())
        .collect();
    let nested = NestedRequest {
        name: SetName::new(None, "fifty").expect("a short name"),
        chunk: Sectors::kib(64),
        spans: spans.iter().map(|members| request(MdLevel::Raid5, Sectors::kib(16), members)).collect(),
    };
    let outer = first.handle.create_nested(nested).unwrap_or_else(|error| panic!("{error}"));
    first.offer(outer.array, "disk");
    let mut client = first.connect();
    let bytes = noise(8, 20 << 20);
    put(&mut client, 0, &bytes);
    assert!(get(&mut client, 0, bytes.len()) == bytes);
    client.disconnect();
    let Server { folder, service, .. } = first;
    service.stop();

    // One member of each span is missing this time, and the spans are named the other way round.
    let second = Server::new("nested-again");
    let members: Vec<String> = [&spans[1][1..], &spans[0][..2]].concat();
    let started = second.assemble(&members);
    assert!(started.failed.is_empty(), "{:?}", started.failed);
    assert_eq!((started.arrays.len(), started.arrays[0].spans.len()), (1, 2));
    assert_eq!(started.arrays[0].superblock.set_name.name(), "fifty");
    second.offer(started.arrays[0].array, "disk");
    let mut client = second.connect();
    assert!(get(&mut client, 0, bytes.len()) == bytes);
    client.disconnect();

    // Without one span the array cannot be served, and all members are released.
    let third = Server::new("nested-half");
    second.service.stop();
    let started = third.assemble(&spans[0]);
    assert!(started.arrays.is_empty() && started.failed.len() == 1);
    assert!(started.failed[0].2.to_string().contains("only 1 of the 2 spans"), "{}", started.failed[0].2);
    assert!(third.handle.status().expect("it runs").drives.is_empty());
    drop(folder);
}

#[test]
fn a_failed_member_is_removed_and_a_new_one_is_filled() {
    let server = Server::new("replace");
    let members = server.folder.members(4, 16 << 20);
    let array = server.create(request(MdLevel::Raid5, Sectors::kib(64), &members[..3]));
    let mut client = server.connect();
    let bytes = noise(11, 16 << 20);
    put(&mut client, 0, &bytes);
    let degraded = |client: &mut Client| {
        let answer = client.call(NbdCommand::BlockStatus { one: true }, 0, 4096, &[]);
        // A status may be a tenth of a second old.
        std::thread::sleep(Duration::from_millis(150));
        answer.extents.iter().find(|(context, _)| *context == 2).map(|(_, extent)| extent.status)
    };
    assert_eq!(degraded(&mut client), Some(0));
    let drive = server.handle.status().expect("it runs").drives[1].drive;
    server.handle.admin(AdminCommand::Fail { array, drive, unsynced: true }).expect("it survives");
    assert_eq!(degraded(&mut client), Some(StatusExtent::DEGRADED));
    server.handle.admin(AdminCommand::Remove { array, drive }).expect("it is faulty");
    server.handle.detach(drive).expect("nothing is outstanding");
    // The lock of the removed member is released: anybody may open it.
    drop(open_members(&members[1..2]));
    add(&server, array, &members[3]);
    wait_until_healthy(&server, array);
    assert_eq!(degraded(&mut client), Some(0));
    // The first member that left comes back as a spare.
    add(&server, array, &members[1]);
    assert!(states(&server, array).contains(&MemberState::Spare), "{:?}", states(&server, array));
    assert!(get(&mut client, 0, bytes.len()) == bytes);
}

/// Add a member that is new to the array.
fn add(server: &Server, array: ArrayId, name: &str) {
    let status = server.handle.status().expect("it runs");
    let view = status.arrays.iter().find(|view| view.status.array == array).expect("the array runs");
    let common = view.status.superblock.clone().expect("an array with metadata");
    let (opened, _) = open_members(&[name.into()]).remove(0);
    let capacity = opened.info.capacity;
    let drive = server.handle.attach(opened).expect("room");
    let new = NewDrive { drive, capacity, uuid: Uuid([drive.0.to_le_bytes()[0]; 16]) };
    let superblock = superblock_for_new_member(&common, &new).expect("large enough");
    let member = NewMember { drive, superblock, returning: false };
    server.handle.admin(AdminCommand::Add { array, member }).expect("it fits");
}

fn wait_until_healthy(server: &Server, array: ArrayId) {
    for _ in 0..600 {
        let status = server.handle.status().expect("it runs");
        let view = status.arrays.iter().find(|view| view.status.array == array).expect("the array runs");
        if view.status.health == Health::Optimal {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the array is not rebuilt: {:?}", server.handle.status());
}

#[test]
fn an_overlay_keeps_every_write_from_the_members() {
    let folder = Folder::new("shield");
    let first = Server::new("shield");
    let members = folder.members(4, 16 << 20);
    first.create(request(MdLevel::Raid6, Sectors::kib(64), &members));
    let mut client = first.connect();
    let bytes = noise(12, 8 << 20);
    put(&mut client, 0, &bytes);
    client.disconnect();
    first.service.stop();
    let before: Vec<Vec<u8>> = members.iter().map(|name| std::fs::read(name).expect("a member")).collect();

    // Degraded, and open for reading only.
    let second = Server::new("shielded");
    let opened = open_with(&members[1..], OpenOptions::new(Use::ReadExclusive));
    let overlaid = opened.into_iter().map(|(opened, probed)| (opened.overlaid(), probed)).collect();
    let started = second.handle.assemble(overlaid, AssembleRequest::default()).expect("it runs");
    second.offer(started.arrays[0].array, "disk");
    let mut client = second.connect();
    assert!(get(&mut client, 0, bytes.len()) == bytes);
    let other = noise(13, 1 << 20);
    put(&mut client, 4097, &other);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    assert!(get(&mut client, 4097, other.len()) == other);
    assert!(get(&mut client, 0, 4097) == bytes[..4097]);
    second.service.stop();
    let after: Vec<Vec<u8>> = members.iter().map(|name| std::fs::read(name).expect("a member")).collect();
    assert!(before == after, "a member was written");
}

#[test]
fn a_drive_without_metadata_is_served_as_it_is() {
    let server = Server::new("raw");
    let name = server.folder.member("raw", 4 << 20);
    std::fs::write(&name, noise(14, 4 << 20)).expect("a file");
    let (opened, _) = open_members(&[name]).remove(0);
    let drive = server.handle.attach(opened).expect("room");
    let started = server.handle.admin(AdminCommand::StartPassthrough { drive });
    let Ok(AdminOutcome::Started(array)) = started else { panic!("{started:?}") };
    server.offer(array, "disk");
    let mut client = server.connect();
    assert_eq!(client.session().size.get(), 4 << 20);
    assert!(get(&mut client, 0, 4 << 20) == noise(14, 4 << 20));
}

#[test]
fn members_may_be_exports_of_another_service_over_tcp() {
    let local = "127.0.0.1:0".parse().expect("an address");
    let behind = Server::with("behind", |config| ServiceConfig { listen: vec![Listen::Tcp(local)], ..config });
    behind.create(request(MdLevel::Raid0, Sectors::kib(64), &vec!["ram:16M".into(); 2]));
    let port = behind.service.addresses()[0].port();
    let server = Server::with("before", impatient);
    let members = vec![format!("nbd://localhost:{port}/disk"), "ram:24M".into(), "ram:24M".into()];
    let array = server.create(request(MdLevel::Raid5, Sectors::kib(16), &members));
    let mut client = server.connect();
    let bytes = noise(15, 20 << 20);
    put(&mut client, 0, &bytes);
    put(&mut client, 12_345, &bytes[..3 << 20]);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    let drive = server.handle.status().expect("it runs").drives[1].drive;
    server.handle.admin(AdminCommand::Fail { array, drive, unsynced: true }).expect("it survives");
    // What the remote member holds is needed now.
    assert!(get(&mut client, 12_345, 3 << 20) == bytes[..3 << 20]);
    let rest = 12_345 + (3 << 20);
    assert!(get(&mut client, rest as u64, bytes.len() - rest) == bytes[rest..]);
    assert_eq!(failures(&server), [FailReason::Administrator]);
    // The remote service goes away for good: two members are lost, and so are the data, in an orderly way.
    behind.service.stop();
    let answer = client.call(READ, 0, 1 << 20, &[]);
    assert!(answer.result.is_err(), "data from nowhere");
}
