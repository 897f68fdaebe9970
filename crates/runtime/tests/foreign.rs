//! Clients that others wrote, against arrays served here.

mod support;

use std::process::Command;

use openraid_core::limits::Limits;
use openraid_format::MdLevel;
use openraid_runtime::service::ServiceConfig;
use openraid_units::{Bytes, Sectors};
use support::{has, request, Server};

/// The conformance run of the repository, except for the check of a program that Debian does not ship.
fn conforms(server: &Server, seconds: u32) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/nbd-conform.py");
    let output = Command::new("/usr/bin/python3")
        .args([script, &server.uri(), "--strict-names", "--seconds", &seconds.to_string()])
        .current_dir(server.folder.path(""))
        .output()
        .expect("python runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    let good = text.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(good >= 21, "only {good} checks passed: {text}");
    println!("{text}");
}

/// A service with memory for all requests of a client that does not run for a moment, as programs have it by default.
fn roomy(name: &str) -> Server {
    let limits = Limits { pool: Bytes::mib(128), ..support::small_limits() };
    Server::with(name, |config| ServiceConfig { limits, ..config })
}

fn have_clients() -> bool {
    let library = Command::new("/usr/bin/python3").args(["-c", "import nbd"]).current_dir("/").output();
    let library = library.is_ok_and(|output| output.status.success());
    if !library {
        assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "Debian package python3-libnbd is missing");
        support::say("skipped: python3-libnbd is not installed");
    }
    library && ["nbdinfo", "nbdcopy", "qemu-io", "qemu-img", "fio"].iter().all(|program| has(program))
}

#[test]
fn foreign_clients_find_nothing_wrong_with_raid_5_on_memory() {
    if have_clients() {
        let server = roomy("foreign");
        let members: Vec<String> = vec!["ram:40M".into(); 4];
        server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
        conforms(&server, 3);
    }
}

#[test]
fn foreign_clients_find_nothing_wrong_with_a_degraded_raid_6_on_files() {
    if have_clients() {
        let server = roomy("foreign-files");
        let members = server.folder.members(5, 40 << 20);
        let mut request = request(MdLevel::Raid6, Sectors::kib(16), &members);
        request.slots[1] = None;
        server.create(request);
        conforms(&server, 2);
    }
}
