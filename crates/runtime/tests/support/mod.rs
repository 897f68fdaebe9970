//! What the tests of the service share: folders, members, services, and a plain client that waits for answers.
#![allow(dead_code)] // each test uses a part

#[path = "../../../nbd/tests/support/client.rs"]
pub mod client;
pub mod forgetful;
#[path = "../../../nbd/tests/support/random.rs"]
pub mod random;
pub mod victim;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use openraid_core::limits::Limits;
use openraid_format::{MdLevel, MinorVersion, SetName};
use openraid_runtime::member::{open_all, MemberSpec, OpenOptions, OpenedMember, ProbedMember};
use openraid_runtime::service::{AssembleRequest, CreateRequest, ExportRequest, Listen, Started};
use openraid_runtime::{Service, ServiceConfig, ServiceHandle};
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, Sectors};

/// A folder that is removed at the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("openraid-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// A sparse file of this many bytes; its name as a member.
    pub fn member(&self, name: &str, len: u64) -> String {
        let path = self.path(name);
        let file = std::fs::File::create(&path).expect("a member file");
        file.set_len(len).expect("its length");
        path.display().to_string()
    }
    pub fn members(&self, count: usize, len: u64) -> Vec<String> {
        (0..count).map(|nth| self.member(&format!("m{nth}"), len)).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Limits of a small service that still takes the largest request.
pub fn small_limits() -> Limits {
    Limits {
        pool: Bytes::mib(24),
        work: Bytes::mib(8),
        requests_max: 1024,
        pieces_max: 1024,
        ops_max: 2048,
        commands_max: 8192,
        drives_max: 64,
        clean_delay: openraid_units::Nanos::from_millis(50),
        ..Limits::default()
    }
}

pub fn open_members(names: &[String]) -> Vec<(OpenedMember, ProbedMember)> {
    open_with(names, OpenOptions::new(Use::Exclusive))
}

pub fn open_with(names: &[String], options: OpenOptions) -> Vec<(OpenedMember, ProbedMember)> {
    let specs: Vec<MemberSpec> = names.iter().map(|name| name.parse().expect("a member's name")).collect();
    open_all(&specs, options).into_iter().map(|result| result.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// An array of this kind on these members, ready to be made.
pub fn request(level: MdLevel, chunk: Sectors, names: &[String]) -> CreateRequest {
    let members = open_members(names).into_iter().map(|(opened, _)| Some(opened)).collect();
    CreateRequest {
        name: SetName::new(None, "test").expect("a short name"),
        level,
        layout: match level {
            MdLevel::Raid5 | MdLevel::Raid6 => 2,
            MdLevel::Raid10 => 0x102,
            _ => 0,
        },
        chunk,
        minor: MinorVersion::V1_2,
        slots: members,
        spares: Vec::new(),
        size: None,
        assume_clean: true,
        bitmap: false,
        ppl: false,
    }
}

/// A service on one unix socket.
#[derive(Debug)]
pub struct Server {
    pub folder: Folder,
    pub service: Service,
    pub handle: ServiceHandle,
    pub socket: PathBuf,
}

impl Server {
    pub fn new(name: &str) -> Self {
        Self::with(name, |config| config)
    }

    pub fn with(name: &str, change: impl FnOnce(ServiceConfig) -> ServiceConfig) -> Self {
        let folder = Folder::new(name);
        let socket = folder.path("s");
        let listen = vec![Listen::Unix(socket.clone())];
        let config = change(ServiceConfig { limits: small_limits(), listen, ..ServiceConfig::default() });
        let service = Service::start(config).unwrap_or_else(|error| panic!("{error}"));
        let handle = service.handle();
        Self { folder, service, handle, socket }
    }

    /// Make an array and offer it as "disk".
    pub fn create(&self, request: CreateRequest) -> ArrayId {
        let array = self.handle.create(request).unwrap_or_else(|error| panic!("{error}")).array;
        self.offer(array, "disk");
        array
    }

    pub fn offer(&self, array: ArrayId, name: &str) {
        let request = ExportRequest::named(array, name);
        self.handle.export(&request).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Start the array that these members form.
    pub fn assemble(&self, names: &[String]) -> Started {
        let started = self.handle.assemble(open_members(names), AssembleRequest::default());
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn uri(&self) -> String {
        uri(&self.socket, "disk")
    }

    pub fn connect(&self) -> client::Client {
        self.connect_as(true, &["base:allocation", "openraid:degraded"])
    }

    pub fn connect_as(&self, structured: bool, contexts: &[&str]) -> client::Client {
        let uri = self.uri().parse().expect("an address");
        client::Client::connect(&uri, structured, contexts).unwrap_or_else(|error| panic!("{error}"))
    }
}

pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

/// Bytes that differ everywhere and are the same in every run.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()[3]
        })
        .collect()
}

/// Is this program installed? Tests against foreign programs report missing ones.
pub fn has(program: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = found.is_ok_and(|output| output.status.success());
    if !there {
        assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "{program} is not installed");
        say(&format!("skipped: {program} is not installed"));
    }
    there
}

/// A line on standard error, without a test's capture in between.
pub fn say(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{what}");
}
