//! An array whose writes a journal protects, and helpers for its server.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Lab, Server, PATIENCE};

/// The journal of the running server.
pub fn journal(lab: &Lab) -> Value {
    lab.line("journal show --json").json()["journal"].clone()
}

/// RAID 5 on sparse files of this size, and a journal on each of these devices.
pub fn made(name: &str, mib: u64, journals: &str, size: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line(&format!("journal create --size {size} {journals}")).expect(0);
    lab.line(&format!(
        "create data --level 5 --chunk 64K --assume-clean --consistency-policy controller-journal --file-size {mib}M d0 d1 d2 d3"
    ))
    .expect(0);
    lab
}

/// Let qemu-io do this with one of the arrays. If not all of it succeeded, returns its output.
fn qemu_io(lab: &Lab, array: &str, words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("qemu-io");
    command.args(["-f", "raw", "-t", "writeback"]);
    for word in words {
        command.args(["-c", word]);
    }
    let ran = command.arg(format!("nbd+unix:///{array}?socket={}", lab.path("nbd.sock").display())).output();
    let ran = ran.expect("qemu-io runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() && !said.contains("failed") {
        Ok(())
    } else {
        Err(said)
    }
}

/// Let qemu-io do this with the array `data`. Returns whether all of it succeeded.
pub fn io(lab: &Lab, words: &[&str]) -> bool {
    qemu_io(lab, "data", words).is_ok()
}

/// All of this goes well with one of the arrays.
#[track_caller]
pub fn io_of(lab: &Lab, array: &str, words: &[&str]) {
    qemu_io(lab, array, words).unwrap_or_else(|said| panic!("{array}: {said}"));
}

/// A server that was killed with promises in its journal.
pub fn killed(lab: &Lab, journals: &[&str]) {
    let arguments: Vec<&str> =
        ["data"].into_iter().chain(journals.iter().flat_map(|journal| ["--journal", *journal])).collect();
    let server = lab.serve(&arguments);
    assert!(io(lab, &["write -P 1 0 1M", "write -P 2 1004k 4k", "write -P 3 5M 12k"]));
    server.kill();
}

/// Is qemu-io there? If not, a message says so.
pub fn has_tools() -> bool {
    let qemu = Command::new("qemu-io").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if qemu.is_err() {
        super::missing("qemu-io is not installed (package qemu-utils)");
    }
    qemu.is_ok()
}

/// Is everything there that [`killed`] wrote?
#[track_caller]
pub fn holds_everything(lab: &Lab) {
    assert!(io(lab, &["read -P 1 0 1004k", "read -P 2 1004k 4k", "read -P 1 1008k 16k", "read -P 3 5M 12k"]));
}

/// A server of the array, with these arguments.
pub fn restarted(lab: &Lab, arguments: &[&str]) -> Server {
    lab.serve(&[&["data"], arguments].concat())
}

/// Until all devices of the journal work, or one does not.
#[track_caller]
pub fn wait_for_devices(lab: &Lab, works: bool) -> Value {
    wait_for_journal(lab, |shown| {
        let devices = shown["devices"].as_array().expect("a list");
        devices.len() == 2 && devices.iter().all(|device| device["works"] == true) == works
    })
}

/// Until the journal says this of what cannot be brought back.
#[track_caller]
pub fn wait_for_trouble(lab: &Lab, text: &str) -> Value {
    wait_for_journal(lab, |shown| shown["trouble"].as_str().is_some_and(|trouble| trouble.contains(text)))
}

/// Until the journal is as wanted. Its keeper may look for it only once in a while.
#[track_caller]
pub fn wait_for_journal(lab: &Lab, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = journal(lab);
        if wanted(&shown) {
            return shown;
        }
        assert!(Instant::now() < until, "it does not come to that: {shown:#}");
        thread::sleep(Duration::from_millis(50));
    }
}
