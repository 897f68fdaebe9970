//! Restarts that no host sees: listening sockets that outlive the server, and hosts that are refused after a loss.
//!
//! `OPENRAID_KILLS` says how many kills a client lives through.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::client::{ask_for, Client};
use support::{ask, kill_under_writes, say, Lab, Server, FLUSH, PROGRAM, WRITE};

/// Kills of one run.
const KILLS: u64 = 4;
const CLIENTS: u64 = 4;
/// Blocks of a client.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;
/// The refusal of an option by policy, in NBD.
const REFUSED: u32 = 0x8000_0002;

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

/// The process of a server, if it answers.
fn pid(control: &Path) -> Option<u64> {
    let mut stream = UnixStream::connect(control).ok()?;
    writeln!(stream, r#"{{"v":2,"do":"hello"}}"#).ok()?;
    let answer = BufReader::new(stream).lines().next()?.ok()?;
    serde_json::from_str::<Value>(&answer).ok()?["ok"]["server"]["pid"].as_u64()
}

/// Wait for a server that is not this process.
#[track_caller]
fn next_server(control: &Path, before: u64) -> u64 {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match pid(control) {
            Some(now) if now != before => return now,
            _ => assert!(Instant::now() < until, "no server follows {before}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn kill(process: u64) {
    assert!(Command::new("kill").args(["-KILL", &process.to_string()]).status().expect("kill").success());
}

fn content(block: u64, write: u64) -> Vec<u8> {
    (write << 16 | block).to_le_bytes().repeat(512)
}

/// A host that connects again and repeats what was not answered: the last write of each block, the number of connections, and the
/// longest time between two answers.
fn host(socket: &Path, nth: u64, ends: &AtomicBool) -> (Vec<u64>, u64, Duration) {
    let mut last = vec![0; usize::try_from(BLOCKS).expect("few")];
    let (mut connections, mut longest, mut answered) = (0, Duration::ZERO, Instant::now());
    let mut client: Option<Client> = None;
    let mut write = 0;
    while !ends.load(Ordering::Relaxed) {
        let place = write * 37 % BLOCKS;
        let block = nth * BLOCKS + place;
        let Some(open) = &mut client else {
            connections += 1;
            // The socket is never refused. A server that is killed closes what it has accepted.
            let stream = UnixStream::connect(socket).expect("the socket outlives the server");
            client = Client::choose(stream, "data").ok();
            continue;
        };
        match open.try_ask(WRITE, block * BLOCK, &content(block, write + 1)) {
            Ok(error) => assert_eq!(error, 0, "host {nth}, block {block}"),
            Err(_) => {
                client = None;
                continue;
            }
        }
        write += 1;
        last[usize::try_from(place).expect("few")] = write;
        longest = longest.max(answered.elapsed());
        answered = Instant::now();
    }
    (last, connections, longest)
}

#[test]
fn hosts_of_a_server_that_is_killed_see_a_pause_and_no_error() {
    let wanted = std::env::var("OPENRAID_KILLS").ok().map(|count| count.parse().expect("OPENRAID_KILLS is a number"));
    let kills = wanted.unwrap_or(KILLS);
    let lab = array("kept");
    let control = lab.path("control.sock");
    let (said, ready) = (fs::File::create(lab.path("said")).expect("room"), lab.path("ready"));
    let script = r#"exec "$0" --control control.sock serve data --json --nbd-unix nbd.sock --keep-listening --ready-fd 9 9>ready"#;
    let mut command = lab.command_of(Path::new("/bin/sh"), &["-c", script, PROGRAM]);
    let keeper = Server::started(command.stderr(said)).expect("ready");
    let socket = lab.path("nbd.sock");
    let ends = AtomicBool::new(false);
    let hosts = thread::scope(|scope| {
        let hosts: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                scope.spawn({
                    let (socket, ends) = (&socket, &ends);
                    move || host(socket, nth, ends)
                })
            })
            .collect();
        let mut server = next_server(&control, 0);
        for nth in 0..kills {
            thread::sleep(Duration::from_millis(300 + nth * 37 % 200));
            kill(server);
            server = next_server(&control, server);
        }
        thread::sleep(Duration::from_millis(300));
        ends.store(true, Ordering::Relaxed);
        hosts.into_iter().map(|host| host.join().expect("no error")).collect::<Vec<_>>()
    });
    let mut client = Client::open(&socket, "data");
    for (nth, (last, ..)) in (0..).zip(&hosts) {
        for (place, write) in (0..).zip(last).filter(|(_, write)| **write > 0) {
            let block = nth * BLOCKS + place;
            let read = client.read_block(block * BLOCK).expect("it is served");
            assert!(read == content(block, *write), "block {block} has lost write {write}");
        }
    }
    assert!(hosts.iter().all(|(_, connections, _)| *connections > kills / 2), "the kills met the hosts: {hosts:?}");
    assert_eq!(fs::read_to_string(ready).ok().as_deref(), Some("ready\n"), "once");
    let said = fs::read_to_string(lab.path("said")).expect("text");
    assert_eq!(said.matches("the server died").count() as u64, kills, "{said}");
    let longest = hosts.iter().map(|(.., longest)| *longest).max();
    say(&format!("{kills} kills: the longest pause of a host was {longest:?}"));
    keeper.signal("-TERM");
    assert_eq!(keeper.end().0, 0, "the exit code of the server");
    assert!(!socket.exists() && pid(&control).is_none(), "nothing is left");
}

#[test]
fn a_server_that_cannot_start_is_not_started_for_ever() {
    let lab = array("hopeless");
    let refused = |line: &str, code, words: &[&str]| lab.line(line).refused(code, words);
    // The first server says why, and its code is that of the parent.
    refused("serve gone --nbd-unix nbd.sock --keep-listening", 65, &["gone"]);
    let taken = "--ready-fd 3: with --keep-listening this number is that of a listening socket; take 4";
    let script = r#"exec "$0" serve data --nbd-unix nbd.sock --keep-listening --ready-fd 3 3>ready"#;
    let output = lab.command_of(Path::new("/bin/sh"), &["-c", script, PROGRAM]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains(taken), "{output:?}");
}

#[test]
fn signals_reach_the_server_that_a_parent_has_started() {
    let lab = array("signals");
    lab.configure("");
    let arguments = ["serve", "--json", "--config", "openraid.toml", "--keep-listening"];
    let mut keeper = Server::started(&mut lab.command(&arguments)).expect("ready");
    keeper.signal("-HUP");
    keeper.wait_for_news("ConfigurationRead", 1);
    keeper.stop();
    assert!(!lab.path("nbd.sock").exists());
}

/// A connection of a virtual machine that has asked for the features of its disk.
fn machine(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("the socket outlives the server");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    // One that is refused may be disconnected before it has asked.
    let _ = stream.write_all(&[1, 1, 0].map(u32::to_le_bytes).concat());
    stream
}

#[test]
fn a_virtual_machine_waits_at_a_kept_socket_until_the_next_server_answers() {
    let lab = array("kept-machine");
    lab.line("create other --level 1 --assume-clean --file-size 16M d3 d4").expect(0);
    let (control, socket) = (lab.path("control.sock"), lab.path("vm.sock"));
    let line =
        "--control control.sock serve data other --json --nbd-unix nbd.sock --vhost data=vm.sock --keep-listening";
    let keeper = Server::started(&mut lab.command(&line.split(' ').collect::<Vec<_>>())).expect("ready");
    let mut answer = [0; 20];
    for _ in 0..2 {
        kill(next_server(&control, 0));
        machine(&socket).read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..12], [1, 5, 8].map(u32::to_le_bytes).concat());
    }
    // It does not wait for an array that is not served.
    lab.line("--control control.sock stop data").expect(0);
    assert!(machine(&socket).read_exact(&mut answer).is_err() && socket.exists());
    keeper.stop();
    assert!(!socket.exists());
}

#[test]
fn the_consent_to_one_loss_is_none_to_the_next() {
    let lab = array("consent");
    kill_under_writes(&lab, volatile(&lab));
    let (control, socket) = (lab.path("control.sock"), lab.path("nbd.sock"));
    let line = "--control control.sock serve data --json --cache 16M --nbd-unix nbd.sock --keep-listening --after-loss";
    let keeper = Server::started(&mut lab.command(&line.split(' ').collect::<Vec<_>>())).expect("ready");
    assert_ne!(ask_for(&socket, "data").0, REFUSED);
    let first = next_server(&control, 0);
    assert_eq!(Client::open(&socket, "data").ask(WRITE, 0, &[5; 4096]), 0);
    kill(first);
    next_server(&control, first);
    assert_eq!(ask_for(&socket, "data").0, REFUSED, "its cache was volatile again");
    keeper.stop();
}

/// A server that gets this as descriptor 3, with these variables. In `variables` `$$` is its process.
fn given(lab: &Lab, descriptor: OwnedFd, variables: &str, arguments: &[&str]) -> Command {
    let script = format!(r#"exec 3<&0 </dev/null; {variables}; exec "$0" "$@""#);
    let mut command = lab.command_of(Path::new("/bin/sh"), &["-c", &script, PROGRAM, "serve", "data", "--json"]);
    command.args(arguments).stdin(descriptor);
    command
}

const FOR_IT: &str = "export LISTEN_PID=$$ LISTEN_FDS=1";

#[test]
fn a_socket_that_comes_with_the_start_is_used_and_stays() {
    let lab = array("given");
    let path = lab.path("nbd.sock");
    let socket = UnixListener::bind(&path).expect("room");
    for nth in 0..2 {
        // It waits since before the server, which accepts when the array answers.
        let early = UnixStream::connect(&path).expect("it listens");
        let kept = socket.try_clone().expect("a descriptor").into();
        let arguments = ["--nbd-unix", path.to_str().expect("UTF-8")];
        let said = fs::File::create(lab.path("said")).expect("room");
        let child = given(&lab, kept, FOR_IT, &arguments).stdout(Stdio::piped()).stderr(said).spawn();
        let server = Server::of(child.expect("sh")).expect("ready");
        let mut client = Client::choose(early, "data").expect("it is served");
        assert_eq!(client.ask(WRITE, nth * BLOCK, &content(nth, 1)), 0);
        let said = fs::read_to_string(lab.path("said")).expect("text");
        assert!(!said.contains("listening sockets") && !said.contains("came with the start"), "{said}");
        drop(client);
        server.stop();
        assert!(path.exists(), "its file belongs to the process that made it");
    }
}

#[test]
fn an_address_without_a_socket_and_a_socket_without_an_address_are_named() {
    let lab = array("unmatched");
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    let path = lab.path("nbd.sock");
    let said = fs::File::create(lab.path("said")).expect("room");
    let arguments = ["--nbd-unix", path.to_str().expect("UTF-8")];
    let child = given(&lab, socket.into(), FOR_IT, &arguments).stdout(Stdio::piped()).stderr(said).spawn();
    let server = Server::of(child.expect("sh")).expect("ready");
    Client::open(&path, "data");
    server.stop();
    let said = fs::read_to_string(lab.path("said")).expect("text");
    let without =
        format!("{}: the process that keeps the listening sockets has none with this address", path.display());
    for words in [&*without, "ListenStream=", &format!("{address}: a socket with this address came with the start")] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}

#[test]
fn descriptors_that_make_no_sense_are_refused_and_those_of_others_left_alone() {
    let lab = array("junk");
    let path = lab.path("nbd.sock");
    let arguments = ["--nbd-unix", path.to_str().expect("UTF-8")];
    let file = || OwnedFd::from(fs::File::open(lab.path("d0")).expect("it is there"));
    let refused = [
        ("export LISTEN_PID=$$ LISTEN_FDS=junk", "LISTEN_FDS=junk: this is not a number of descriptors"),
        ("export LISTEN_PID=junk LISTEN_FDS=1", "LISTEN_PID=junk: this is not the number of a process"),
        ("export LISTEN_PID=$$ LISTEN_FDS=99999", "LISTEN_FDS=99999: this is not a number of descriptors"),
        (FOR_IT, "descriptor 3 of LISTEN_FDS=1: it is not a socket"),
        ("exec 3<&-; export LISTEN_PID=$$ LISTEN_FDS=1", "descriptor 3 of LISTEN_FDS=1: it is not open"),
    ];
    for (variables, words) in refused {
        let output = given(&lab, file(), variables, &arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(64) && said.contains(words), "{variables}: {said}");
    }
    let (one, _other) = UnixStream::pair().expect("room");
    let output = given(&lab, one.into(), FOR_IT, &arguments).output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is not a listening stream socket"), "{output:?}");
    // Variables of a process whose child the server is.
    let child = given(&lab, file(), "export LISTEN_PID=1 LISTEN_FDS=1", &arguments).stdout(Stdio::piped()).spawn();
    let server = Server::of(child.expect("sh")).expect("ready");
    Client::open(&path, "data");
    server.stop();
}

/// An array whose writes are acknowledged in memory, served.
fn volatile(lab: &Lab) -> Server {
    let server = lab.serve(&["data", "--cache", "16M"]);
    lab.line("set data write.cache=volatile --yes").expect(0);
    server
}

#[test]
fn after_a_kill_with_a_volatile_cache_hosts_are_refused_until_after_loss() {
    let lab = array("lost");
    let socket = lab.path("nbd.sock");
    let server = volatile(&lab);
    ask(&lab, &server, &[(WRITE, 0, &[5; 4096])]);
    server.kill();
    for round in 0..2 {
        // The mark outlasts a start that did not offer the array, whether that ends cleanly or not.
        let mut server = lab.serve(&["data", "--cache", "16M"]);
        let (kind, text) = ask_for(&socket, "data");
        assert_eq!(kind, REFUSED, "round {round}: {text}");
        assert!(text.contains("acknowledged writes may be lost") && text.contains("serve data --after-loss"), "{text}");
        assert_eq!(lab.show("data")["refused"], text.as_str());
        assert_eq!(lab.show("data")["addresses"], Value::Array(Vec::new()), "not offered");
        lab.line("show data").says(&["hosts", "REFUSED", "--after-loss"]);
        lab.wait_for_alarms(|alarms| alarms.contains("acknowledged writes may be lost"));
        server.wait_for_news("HostsRefused", 1);
        match round {
            0 => drop(server.stop()),
            _ => server.kill(),
        }
    }
    let server = lab.serve(&["data", "--cache", "16M"]);
    lab.line("serve data --after-loss").expect(0).says(&["hosts are served again"]);
    lab.line("serve data --after-loss").refused(65, &["refuses no hosts"]);
    lab.wait_for_alarms(|alarms| !alarms.contains("acknowledged writes may be lost"));
    lab.wait_for_events(|events| events.iter().any(|event| event.contains("serve --after-loss: done")));
    ask(&lab, &server, &[(WRITE, 0, &[6; 4096])]);
    // It is volatile again, so the next kill is a loss again.
    server.kill();
    assert_eq!(ask_after(&lab, &["data", "--cache", "16M"]).0, REFUSED);
    let server = lab.serve(&["data", "--cache", "16M", "--after-loss"]);
    assert_ne!(ask_for(&socket, "data").0, REFUSED, "the option of the start");
    server.stop();
    assert_ne!(ask_after(&lab, &["data", "--cache", "16M"]).0, REFUSED, "a clean stop loses nothing");
}

/// The answer for the array of a server that is started and stopped again.
fn ask_after(lab: &Lab, arguments: &[&str]) -> (u32, String) {
    let server = lab.serve(arguments);
    let answer = ask_for(&lab.path("nbd.sock"), "data");
    server.stop();
    answer
}

#[test]
fn a_kill_loses_nothing_when_writes_go_through_or_were_flushed_out_of_memory() {
    let lab = array("whole");
    let server = lab.serve(&["data", "--cache", "16M"]);
    ask(&lab, &server, &[(WRITE, 0, &[5; 4096])]);
    server.kill();
    assert_ne!(ask_after(&lab, &["data", "--cache", "16M"]).0, REFUSED, "through");
    let server = volatile(&lab);
    ask(&lab, &server, &[(WRITE, 0, &[7; 4096])]);
    lab.line("set data write.cache=through").expect(0);
    server.kill();
    let server = lab.serve(&["data", "--cache", "16M"]);
    assert_ne!(ask_for(&lab.path("nbd.sock"), "data").0, REFUSED, "the change of settings has flushed");
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.read_block(0).expect("it is served"), [7; 4096]);
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    drop(client);
    server.stop();
}

/// The file of the only mark.
fn mark_of(lab: &Lab) -> Option<PathBuf> {
    let marks = fs::read_dir(lab.path("state/openraid")).expect("the folder of the registry");
    let mut marks = marks.map(|entry| entry.expect("an entry").path());
    marks.find(|path| path.display().to_string().contains("unwritten-"))
}

/// The power of this machine was off: it has started again since the mark was made.
fn cut_power(lab: &Lab) {
    let mark = mark_of(lab).expect("a mark");
    let text = fs::read_to_string(&mark).expect("text");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    assert!(text.contains(boot.trim()), "{text}");
    fs::write(&mark, text.replace(boot.trim(), "another start of the machine")).expect("room");
}

/// Wait until the mark of a volatile cache is there, or not.
#[track_caller]
fn await_mark(lab: &Lab, wanted: bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while mark_of(lab).is_some() != wanted {
        assert!(Instant::now() < until, "a mark: {}", !wanted);
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_kill_of_an_idle_array_with_a_volatile_cache_refuses_no_hosts() {
    let lab = array("idle");
    let server = volatile(&lab);
    assert!(mark_of(&lab).is_some(), "before the first write");
    ask(&lab, &server, &[(WRITE, 0, &[5; 4096]), (FLUSH, 0, &[])]);
    await_mark(&lab, false);
    server.kill();
    assert_ne!(ask_after(&lab, &["data", "--cache", "16M"]).0, REFUSED, "nothing was dirty");
    // The next write after the mark was taken off is answered when there is a mark again.
    for round in 0..2 {
        let server = lab.serve(&["data", "--cache", "16M", "--after-loss"]);
        await_mark(&lab, false);
        let mut client = Client::open(&lab.path("nbd.sock"), "data");
        assert_eq!(client.ask(WRITE, 4096 * round, &[6; 4096]), 0);
        assert!(mark_of(&lab).is_some(), "round {round}: an answer without a mark");
        // Without a mark to wait for, too.
        assert_eq!(client.ask(WRITE, 8192, &[7; 4096]), 0);
        server.kill();
        assert_eq!(ask_after(&lab, &["data", "--cache", "16M"]).0, REFUSED, "round {round}");
    }
    let server = lab.serve(&["data", "--cache", "16M", "--after-loss"]);
    await_mark(&lab, false);
    ask(&lab, &server, &[(WRITE, 0, &[8; 4096])]);
    lab.line("stop data").expect(0);
    server.end();
    assert_eq!(mark_of(&lab), None, "the stop has written it");
}

/// Serve the array to other machines, and cut the power during writes.
fn cut_during_writes(lab: &Lab, open: &[&str]) {
    kill_under_writes(lab, lab.serve(open));
    cut_power(lab);
}

/// Cut the power when the members are flushed and marked clean.
fn cut_at_rest(lab: &Lab, open: &[&str]) {
    let server = lab.serve(open);
    ask(lab, &server, &[(WRITE, 0, &[5; 4096])]);
    lab.wait_for("data", |array| array["active"] == false);
    server.kill();
    cut_power(lab);
}

#[test]
fn hosts_that_always_go_down_with_the_server_are_admitted_after_a_power_cut_with_an_alarm() {
    let lab = array("admitted");
    let socket = lab.path("nbd.sock");
    let open = ["data", "--nbd", "0.0.0.0:0", "--after-power-cut", "admit"];
    cut_during_writes(&lab, &open[..3]);
    let mut server = lab.serve(&open);
    assert_ne!(ask_for(&socket, "data").0, REFUSED);
    server.wait_for_news("HostsAdmitted", 1);
    let text = lab.show("data")["admitted"].to_string();
    assert!(text.contains("the machine went down") && text.contains("acknowledged writes may be lost"), "{text}");
    lab.wait_for_alarms(|alarms| alarms.contains("hosts are served all the same"));
    server.stop();
    // A setting of the file is the same. A volatile cache is lost with the server, whatever the power did.
    lab.configure("after-power-cut = \"admit\"\n");
    let line = "config check openraid.toml";
    lab.line(line).expect(0).says(&["after-power-cut", "admit"]);
    let server = lab.serve(&["data", "--cache", "16M", "--after-power-cut", "admit"]);
    lab.line("set data write.cache=volatile --yes").expect(0);
    ask(&lab, &server, &[(WRITE, 0, &[5; 4096])]);
    server.kill();
    assert_eq!(ask_after(&lab, &["data", "--cache", "16M", "--after-power-cut", "admit"]).0, REFUSED);
}

#[test]
fn a_power_cut_while_nothing_is_written_refuses_no_hosts() {
    let lab = array("quiet");
    let open = ["data", "--nbd", "0.0.0.0:0"];
    cut_at_rest(&lab, &open);
    let socket = lab.path("nbd.sock");
    let listen = ["serve", "--json", "--nbd-unix", socket.to_str().expect("UTF-8")];
    let mut command = lab.command(&[&listen, &open[..]].concat());
    let server = Server::started(command.stderr(fs::File::create(lab.path("said")).expect("room"))).expect("ready");
    assert_ne!(ask_for(&socket, "data").0, REFUSED, "the members were flushed and marked clean");
    server.stop();
    let said = fs::read_to_string(lab.path("said")).expect("text");
    assert!(said.contains("name your choice, server.after-power-cut"), "{said}");
}

#[test]
fn after_a_power_cut_hosts_of_other_machines_are_refused() {
    let lab = array("power");
    // A server that other machines can reach, before and after the power cut.
    let (socket, open) = (lab.path("nbd.sock"), ["data", "--nbd", "0.0.0.0:0"]);
    let server = lab.serve(&open);
    ask(&lab, &server, &[(WRITE, 0, &[5; 4096])]);
    server.kill();
    assert_ne!(ask_after(&lab, &open).0, REFUSED, "the drives kept their power");
    cut_during_writes(&lab, &open);
    let (kind, text) = ask_after(&lab, &open);
    assert!(kind == REFUSED && text.contains("the machine went down"), "{text}");
    lab.serve(&[&open[..], &["--after-loss"]].concat()).stop();
    assert_eq!(mark_of(&lab), None, "all is written");
    let connected = UnixStream::connect(&socket).map_err(|error| error.kind());
    assert!(matches!(connected, Err(ErrorKind::NotFound | ErrorKind::ConnectionRefused)));
}

#[test]
fn a_kill_after_a_power_cut_that_lost_nothing_refuses_no_hosts() {
    let lab = array("two-ends");
    let open = ["data", "--nbd", "0.0.0.0:0"];
    cut_at_rest(&lab, &open);
    // The members were flushed. This time only the process dies.
    kill_under_writes(&lab, lab.serve(&open));
    let (kind, text) = ask_after(&lab, &open);
    assert_ne!(kind, REFUSED, "{text}");
    // The next power cut is found as the first one would have been.
    cut_during_writes(&lab, &open);
    assert_eq!(ask_after(&lab, &open).0, REFUSED);
}

#[test]
fn after_loss_for_arrays_with_and_without_a_server_changes_nothing() {
    let lab = array("mixed");
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1").expect(0);
    kill_under_writes(&lab, volatile(&lab));
    let server = lab.serve(&["data", "--cache", "16M"]);
    for line in ["serve data other --after-loss", "serve other data --after-loss"] {
        let words =
            ["other is not served", "nothing was changed", "serve data --after-loss", "serve other --after-loss"];
        lab.line(&format!("{line} --nbd-unix other.sock")).refused(65, &words);
        assert_eq!(ask_for(&lab.path("nbd.sock"), "data").0, REFUSED);
    }
    lab.line("serve data --after-loss").expect(0);
    server.stop();
}

#[test]
fn a_mark_that_cannot_be_written_is_an_alarm_until_it_can() {
    let lab = array("unmarked");
    let socket = lab.path("nbd.sock");
    let line = ["serve", "--json", "--nbd-unix", socket.to_str().expect("UTF-8"), "data", "--cache", "16M"];
    let mut command = lab.command(&line);
    let server = Server::started(command.stderr(fs::File::create(lab.path("said")).expect("room"))).expect("ready");
    lab.line("set data write.cache=volatile --yes").expect(0);
    let mark = mark_of(&lab).expect("a mark");
    await_mark(&lab, false);
    // No file can be put here.
    fs::create_dir(&mark).expect("room");
    thread::scope(|scope| {
        let writer = scope.spawn(|| Client::open(&socket, "data").ask(WRITE, 0, &[5; 4096]));
        lab.wait_for_alarms(|alarms| alarms.contains("writes wait") && alarms.contains(&*mark.to_string_lossy()));
        lab.line("show data").says(&["critical StateUnwritable"]);
        // Several tries.
        thread::sleep(Duration::from_secs(2));
        assert!(!writer.is_finished(), "an answer without a mark");
        fs::remove_dir(&mark).expect("it is empty");
        assert_eq!(writer.join().expect("an answer"), 0);
    });
    assert!(mark.is_file());
    lab.wait_for_alarms(|alarms| !alarms.contains("writes wait"));
    lab.wait_for_events(|events| events.iter().any(|event| event.contains("writes wait")));
    // A mark that cannot be taken off refuses hosts after the next kill.
    fs::remove_file(&mark).and_then(|()| fs::create_dir(&mark)).expect("room");
    lab.wait_for_alarms(|alarms| alarms.contains("cannot be removed") && !alarms.contains("writes wait"));
    thread::sleep(Duration::from_secs(2));
    fs::remove_dir(&mark).expect("it is empty");
    lab.wait_for_alarms(|alarms| !alarms.contains("cannot be removed"));
    // What the alarm advises answers the writes, too.
    fs::create_dir(&mark).expect("room");
    thread::scope(|scope| {
        let writer = scope.spawn(|| Client::open(&socket, "data").ask(WRITE, 0, &[6; 4096]));
        lab.wait_for_alarms(|alarms| alarms.contains("writes wait") && alarms.contains("set data write.cache=through"));
        lab.line("set data write.cache=through").expect(0);
        assert_eq!(writer.join().expect("an answer"), 0);
    });
    lab.wait_for_alarms(|alarms| !alarms.contains("writes wait"));
    fs::remove_dir(&mark).expect("it is empty");
    server.stop();
    let said = fs::read_to_string(lab.path("said")).expect("text");
    let lines = ["cannot be written", "cannot be removed"].map(|words| said.matches(words).count());
    assert_eq!(lines, [2, 1], "{said}");
}

#[test]
fn a_kill_of_a_raw_drive_with_a_volatile_cache_refuses_its_hosts() {
    let lab = Lab::new("raw-lost");
    lab.line("create rawd --level jbod --file-size 16M r0").expect(0);
    let (socket, cached) = (lab.path("nbd.sock"), ["rawd", "--cache", "16M"]);
    let server = lab.serve(&cached);
    lab.line("set rawd write.cache=volatile --yes").expect(0);
    kill_under_writes(&lab, server);
    let server = lab.serve(&cached);
    let (kind, text) = ask_for(&socket, "rawd");
    assert!(kind == REFUSED && text.contains("serve rawd --after-loss"), "{text}");
    assert_eq!(lab.show("rawd")["refused"], text.as_str());
    lab.line("serve rawd --after-loss").expect(0).says(&["hosts are served again"]);
    kill_under_writes(&lab, server);
    let server = lab.serve(&[&cached[..], &["--after-loss"]].concat());
    assert_ne!(ask_for(&socket, "rawd").0, REFUSED, "the option of the start");
    server.stop();
    assert_eq!(mark_of(&lab), None, "all is written");
}

#[test]
fn a_kill_refuses_hosts_of_an_array_that_is_partly_in_memory() {
    let lab = Lab::new("half-lost");
    lab.drives(&["f0"], 16);
    let socket = lab.path("nbd.sock");
    let server = lab.serve(&["--level", "1", "--name", "half", "f0", "ram:16M", "--cache", "16M"]);
    lab.line("set half write.cache=volatile --yes").expect(0);
    assert!(mark_of(&lab).is_some(), "a member outlives the server");
    kill_under_writes(&lab, server);
    let server = lab.serve(&["f0", "--degraded", "--force", "--cache", "16M"]);
    let (kind, text) = ask_for(&socket, "half");
    assert_eq!(kind, REFUSED, "{text}");
    server.stop();
    // All of this one ends with its server.
    let server = lab.serve(&["--level", "1", "--name", "all", "ram:16M", "ram:16M", "--cache", "16M"]);
    let before = mark_of(&lab);
    lab.line("set all write.cache=volatile --yes").expect(0);
    assert_eq!(mark_of(&lab), before);
    server.stop();
}

#[test]
fn a_socket_of_another_address_with_the_same_port_is_named_when_it_is_in_the_way() {
    let lab = array("crossed");
    let path = lab.path("nbd.sock");
    for (given_at, asked) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "0.0.0.0")] {
        let socket = TcpListener::bind(given_at).expect("a free port");
        let address = socket.local_addr().expect("bound");
        for option in ["--nvme", "--nbd"] {
            let asked = format!("{asked}:{}", address.port());
            let arguments = ["--nbd-unix", path.to_str().expect("UTF-8"), option, &asked];
            let kept = socket.try_clone().expect("a descriptor").into();
            let output = given(&lab, kept, FOR_IT, &arguments).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(65), "{said}");
            let cause = format!("{asked}: the socket {address}, which came with the start, has this port");
            assert!(said.contains(&cause) && said.contains(&format!("ListenStream={asked}")), "{said}");
            assert!(!said.contains("stop it or choose"), "{said}");
        }
    }
}
