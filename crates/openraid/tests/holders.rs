//! The use of an array: by one process at a time, whichever members are named, and not while another program holds a
//! member.

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};

use support::guest::{is_inside, rerun, tool, Loop, Mapped};
use support::{Lab, Server};

/// Starts of two servers at once. Before the lock on arrays, 1 of 20 was a split brain, 4 degraded, and 1 of 15 had no
/// winner.
const RACES: usize = 20;

/// Time for a start to open its members, in seconds, and for one whose devices are slow.
const OPEN: &str = "6";
const OPEN_SLOW: &str = "30";

fn mirror(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    lab
}

fn serve(lab: &Lab, socket: &str, names: &[&str]) -> Command {
    serve_within(OPEN, lab, socket, names)
}

fn serve_within(seconds: &str, lab: &Lab, socket: &str, names: &[&str]) -> Command {
    let socket = lab.path(socket);
    let options = ["serve", "--json", "--open-seconds", seconds, "--nbd-unix", socket.to_str().expect("UTF-8")];
    lab.command(&[&options[..], names].concat())
}

/// The end of a server that did not become ready: its exit code, and what it said.
fn end(mut command: Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Start two servers at once. Returns the one that serves. The other one must end with 65 and say "busy".
#[track_caller]
fn race(lab: &Lab, first: &[&str], second: &[&str]) -> Server {
    race_within(OPEN, lab, first, second)
}

#[track_caller]
fn race_within(seconds: &str, lab: &Lab, first: &[&str], second: &[&str]) -> Server {
    let mut started: Vec<(Child, &str)> = Vec::new();
    for (socket, names) in [("one.sock", first), ("two.sock", second)] {
        let mut command = serve_within(seconds, lab, socket, names);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        started.push((child.expect("it starts"), socket));
    }
    // The loser ends by itself; the winner is the one that is left.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let loser = loop {
        let ended = |(child, _): &mut (Child, &str)| child.try_wait().expect("own child").is_some();
        if let Some(place) = started.iter_mut().position(ended) {
            break place;
        }
        assert!(std::time::Instant::now() < until, "{first:?} and {second:?}: no server loses");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let (mut child, _) = started.remove(loser);
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(child.wait().expect("own child").code(), Some(65), "{first:?} and {second:?}: {said}");
    assert!(said.contains("busy: process ") && said.contains("(openraid) uses it; stop that first"), "{said}");
    let (winner, _) = started.remove(0);
    Server::of(winner).unwrap_or_else(|line| panic!("{first:?} and {second:?}: no server serves: {line}"))
}

#[test]
fn of_two_servers_that_start_at_once_exactly_one_serves_the_whole_array() {
    let lab = mirror("race");
    let ways: [(&[&str], &[&str]); 4] = [
        (&["d0", "d1"], &["d1", "d0"]),
        (&["data"], &["data"]),
        (&["d1", "d0"], &["data"]),
        (&["--degraded", "d0", "d1"], &["--degraded", "data"]),
    ];
    for nth in 0..RACES {
        let (first, second) = ways[nth % ways.len()];
        let winner = race(&lab, first, second);
        assert_eq!(winner.ready["arrays"][0]["health"], "optimal", "race {nth}: {:#}", winner.ready);
        assert_eq!(winner.ready["left_out"].as_array().map(Vec::len), Some(0), "race {nth}");
        winner.stop();
    }
    lab.line("doctor d0 d1").expect(0);
}

#[test]
fn servers_that_name_different_members_of_one_array_exclude_each_other() {
    let lab = mirror("halves");
    for (first, second) in [(["d0"], ["d1"]), (["d1"], ["d0"])] {
        race(&lab, &first, &second).kill();
        wait_for_release(&lab, &["d0", "d1"]);
    }
}

/// The kernel releases the members of a killed process when the commands that are under way have ended. On a busy machine that
/// takes longer than a start waits.
fn wait_for_release(lab: &Lab, members: &[&str]) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    for member in members {
        let file = File::open(lab.path(member)).expect("it is there");
        while file.try_lock().is_err() {
            assert!(std::time::Instant::now() < until, "{member} is not released");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        file.unlock().expect("it is locked");
    }
}

#[test]
fn the_other_half_of_a_served_array_is_refused_whatever_the_options() {
    let lab = mirror("other-half");
    let server = lab.serve(&["d0"]);
    let before = lab.fingerprints(&["d1"]);
    let holder = format!("array data: busy: process {} (openraid) uses it", server.pid());
    for options in [&["d1"][..], &["--degraded", "d1"], &["--force", "--degraded", "d1"], &["--read-only", "d1"]] {
        let (code, said) = end(serve(&lab, "two.sock", options));
        assert_eq!(code, Some(65), "{options:?}: {said}");
        assert!(said.contains(&holder), "{options:?}: {said}");
    }
    let elsewhere = Lab::new("other-state");
    let doctor = elsewhere.line(&format!("doctor {}", lab.path("d1").display())).expect(2).says(&[&holder]);
    assert!(!doctor.text().contains("it starts"), "another state folder: {}", doctor.text());
    let (code, said) = end(serve(&elsewhere, "two.sock", &[lab.path("d1").to_str().expect("UTF-8")]));
    assert!(code == Some(65) && said.contains(&holder), "another state folder: {said}");
    lab.pipe(&["copy-in", "d1", "--open-seconds", "6"], b"x").refused(65, &[&holder]);
    assert_eq!(lab.fingerprints(&["d1"]), before);
    server.stop();
    lab.serve(&["d0"]).stop();
}

#[test]
fn an_array_with_a_member_that_another_program_holds_does_not_start_without_it() {
    let lab = mirror("held");
    let before = lab.fingerprints(&["d0", "d1"]);
    let held = File::open(lab.path("d1")).expect("it is there");
    held.lock().expect("it is free");
    let (path, process) = (lab.path("d1"), std::process::id());
    let words =
        [format!("array data: busy: {}: locked by process {process} (", path.display()), "stop that first".into()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for options in [&["data"][..], &["d0", "d1"], &["--degraded", "d1", "d0"], &["d0"], &["--read-only", "d0", "d1"]] {
        let (code, said) = end(serve(&lab, "one.sock", options));
        assert_eq!(code, Some(65), "{options:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{options:?}: {said}");
        assert!(!said.contains("write-protected"), "{said}");
    }
    lab.pipe(&["copy-in", "d0", "d1", "--open-seconds", "6"], b"x").refused(65, &words);
    lab.line("assemble --no-serve d0 d1 --open-seconds 6").refused(65, &words);
    for names in ["data", "d0 d1", "d0"] {
        let doctor = lab.line(&format!("doctor {names} --open-seconds 6")).expect(2).says(&words);
        assert!(!doctor.text().contains("it starts") && !doctor.text().contains("next"), "{}", doctor.text());
        let body = lab.line(&format!("doctor {names} --open-seconds 6 --json")).expect(2).json();
        assert_eq!((&body["sets"][0]["starts"], &body["tried"]), (&false.into(), &serde_json::json!([])), "{body:#}");
    }
    assert_eq!(lab.fingerprints(&["d0", "d1"]), before);
    held.unlock().expect("it is locked");
    lab.line("doctor data").expect(0);
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn a_service_starts_an_array_by_itself_when_its_member_is_released() {
    let lab = mirror("released");
    lab.configure("");
    let held = File::open(lab.path("d1")).expect("it is there");
    held.lock().expect("it is free");
    let mut server = lab.serve_configured();
    assert_eq!(server.ready["arrays"].as_array().map(Vec::len), Some(0));
    held.unlock().expect("it is locked");
    server.wait_for_news("NewArray", 1);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn a_member_that_could_not_be_opened_comes_back_by_itself() {
    let lab = Lab::new("unopened");
    lab.line("create data --level 1 --assume-clean --bitmap internal --file-size 8M d0 d1").expect(0);
    fs::rename(lab.path("d1"), lab.path("away")).expect("it is there");
    fs::write(lab.path("d1"), "").expect("room");
    let mut server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["health"], "degraded");
    fs::rename(lab.path("away"), lab.path("d1")).expect("it is there");
    server.wait_for_news("MemberReturned", 1);
    lab.wait_for("data", |array| array["health"] == "optimal");
    server.stop();
}

#[test]
fn a_nested_array_is_used_by_one_process_and_not_without_a_held_member_of_a_span() {
    let lab = Lab::new("nested");
    lab.line("create data --level 50 --spans 2 --chunk 64K --assume-clean --file-size 8M e0 e1 e2 e3 e4 e5").expect(0);
    for nth in 0..4 {
        let all = ["e0", "e1", "e2", "e3", "e4", "e5"];
        let (first, second): (&[&str], &[&str]) =
            if nth % 2 == 0 { (&all, &["data"]) } else { (&["e5", "e3", "e0", "e1", "e2", "e4"], &all) };
        let winner = race(&lab, first, second);
        assert_eq!(winner.ready["arrays"][0]["health"], "optimal", "race {nth}");
        winner.stop();
    }
    let held = File::open(lab.path("e4")).expect("it is there");
    held.lock().expect("it is free");
    let (code, said) = end(serve(&lab, "one.sock", &["--degraded", "data"]));
    assert_eq!(code, Some(65), "{said}");
    assert!(said.contains("busy: ") && said.contains("e4: locked by process"), "{said}");
}

#[test]
fn a_successor_waits_for_a_killed_holder_of_the_array_and_not_for_one_that_runs() {
    let lab = mirror("killed");
    for _ in 0..4 {
        let server = lab.serve(&["d0"]);
        server.signal("-KILL");
        let next = lab.serve(&["d1", "d0"]);
        next.kill();
        drop(server);
    }
}

/// Exclusive use of a block device, as mdadm and mount ask for it.
const O_EXCL: i32 = 0o200;

/// Each way to use an array of these two devices, of which `held` is held, is refused with these words, and nothing is written.
#[track_caller]
fn refused(lab: &Lab, [free, held]: [&str; 2], words: &[&str]) {
    let before = lab.fingerprints(&["a", "b"]);
    for options in [&["data"][..], &[free], &["--degraded", "--force", held, free], &["--degraded", "data"]] {
        let (code, said) = end(serve(lab, "two.sock", options));
        assert_eq!(code, Some(65), "{options:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}, {options:?}: {said}");
    }
    for names in [&["data"][..], &[free]] {
        let arguments = [&["copy-in", "--yes", "--open-seconds", "6"], names].concat();
        lab.pipe(&arguments, b"x").refused(65, words);
    }
    lab.line(&format!("assemble --no-serve --open-seconds 6 {free} {held}")).refused(65, words);
    assert_eq!(lab.fingerprints(&["a", "b"]), before);
}

/// A look at one of these devices takes longer than a start waits before it locks the array.
fn races_on_slow_devices(lab: &Lab, devices: [&str; 2]) {
    let modules = tool("uname -r");
    tool(&format!("insmod /usr/lib/uml/modules/{modules}/kernel/drivers/md/dm-delay.ko"));
    let slow = ["left", "right"].map(|name| Mapped::new(name, 32768, "error"));
    for (slow, device) in slow.iter().zip(devices) {
        slow.become_table(32768, &format!("delay {device} 0 150 {device} 0 0"));
    }
    let [one, two] = [slow[0].path(), slow[1].path()];
    for nth in 0..2 {
        let winner = race_within(OPEN_SLOW, lab, &["--degraded", &two, &one], &["--degraded", &one, &two]);
        assert_eq!(winner.ready["arrays"][0]["health"], "optimal", "race {nth}: {:#}", winner.ready);
        winner.stop();
    }
}

#[test]
fn block_devices_are_used_by_one_process_and_not_while_another_holder_has_one() {
    const TEST: &str = "block_devices_are_used_by_one_process_and_not_while_another_holder_has_one";
    if !is_inside() {
        return rerun(TEST, "md and the device mapper have to hold devices");
    }
    let lab = Lab::new("devices");
    lab.drives(&["a", "b"], 16);
    let loops = ["a", "b"].map(|name| Loop::over(&lab.path(name)));
    let [one, two] = [loops[0].0.as_str(), &loops[1].0];
    lab.line(&format!("create data --level 1 --metadata 1.0 --assume-clean {one} {two}")).expect(0);
    for (nth, (first, second)) in [
        (&[one, two][..], &["data"][..]),
        (&["data"], &["data"]),
        (&["--degraded", two, one], &["--degraded", "data"]),
        (&[one], &[two]),
    ]
    .into_iter()
    .cycle()
    .take(4)
    .enumerate()
    {
        let winner = race_within(OPEN_SLOW, &lab, first, second);
        if first != [one] {
            assert_eq!(winner.ready["arrays"][0]["health"], "optimal", "race {nth}: {:#}", winner.ready);
        }
        winner.kill();
        lab.serve(&["--force", one, two]).stop();
    }
    races_on_slow_devices(&lab, [one, two]);
    let busy = format!("busy: {two}: in use");
    let file = fs::OpenOptions::new().read(true).custom_flags(O_EXCL).open(two).expect("it is free");
    let program = format!("busy: {two}: process {} (", std::process::id());
    refused(&lab, [one, two], &["array data", &program, "has this device open for itself; stop that first"]);
    drop(file);
    let mapped = Mapped::new("holder", 32768, &format!("linear {two} 0"));
    refused(&lab, [one, two], &["array data", &busy, "device mapper holder"]);
    drop(mapped);
    tool(&format!("mdadm --assemble --run /dev/md9 {two}"));
    let held = format!("busy: {two}: the kernel's md has it as /dev/md9 ");
    refused(&lab, [one, two], &["array data", &held, "`mdadm --stop /dev/md9`"]);
    tool("mdadm --stop /dev/md9");
    tool(&format!("mkfs.ext2 -q -F {two} 8192"));
    fs::create_dir(lab.path("mnt")).expect("room");
    tool(&format!("mount -t ext2 -o ro {two} {}", lab.path("mnt").display()));
    refused(&lab, [one, two], &["array data", &busy, "mounted"]);
    tool(&format!("umount {}", lab.path("mnt").display()));
    let server = lab.serve(&["--force", "data"]);
    server.stop();
}
