//! A server in a separate process, whose memory and descriptors can be counted from outside.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use openraid_format::MdLevel;
use openraid_runtime::service::{ExportRequest, Listen};
use openraid_runtime::{Service, ServiceConfig};
use openraid_units::Sectors;

use super::client::Client;
use super::{request, small_limits, uri, Folder};

const ROLE: &str = "OPENRAID_TEST_VICTIM";

/// The server, killed at the end.
pub struct Victim {
    child: Child,
    pub folder: Folder,
}

/// In the child: serve RAID 5 on memory until killed. Returns at once in the test itself.
pub fn serve_if_victim() {
    let Ok(folder) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(folder);
    let listen = vec![Listen::Unix(folder.join("s"))];
    let config = ServiceConfig { limits: small_limits(), touch: true, listen, ..ServiceConfig::default() };
    let service = Service::start(config).expect("a service");
    let members: Vec<String> = vec!["ram:32M".into(); 4];
    let array = service.handle().create(request(MdLevel::Raid5, Sectors::kib(64), &members)).expect("an array").array;
    let export = ExportRequest::named(array, "disk");
    service.handle().export(&export).expect("an export");
    std::fs::write(folder.join("ready"), "").expect("a file");
    // Ends with the test, however that ends.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

impl Victim {
    /// `test` is the name of the calling test, which calls [`serve_if_victim`] first.
    pub fn start(test: &str) -> Self {
        let folder = Folder::new("victim");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", test])
            .env(ROLE, folder.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the victim");
        while !folder.path("ready").exists() {
            assert!(child.try_wait().expect("a child").is_none(), "the victim ended by itself");
            std::thread::sleep(Duration::from_millis(10));
        }
        let victim = Self { child, folder };
        // Everything is touched once, so that what grows afterwards grows for a bad reason.
        let mut client = victim.connect();
        let size = client.session().size.get();
        let piece = vec![7; 4 << 20];
        for at in (0..size - (4 << 20)).step_by(4 << 20) {
            let write = openraid_nbd::NbdCommand::Write { fua: false };
            assert_eq!(client.call(write, at, 4 << 20, &piece).result, Ok(()));
        }
        client.disconnect();
        victim
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path("s")
    }

    pub fn connect(&self) -> Client {
        Client::connect(&uri(&self.socket(), "disk").parse().expect("an address"), true, &[]).expect("a connection")
    }

    /// Stop the process.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Let a stopped process run.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("procps");
        assert!(sent.success());
    }

    /// Resident memory in KiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it lives").count()
    }

    /// Wait until this many descriptors are open again.
    pub fn settle(&self, descriptors: usize) {
        for _ in 0..600 {
            if self.descriptors() <= descriptors {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{} descriptors are open, {descriptors} were before", self.descriptors());
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
