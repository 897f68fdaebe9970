//! The changes of `set` are kept: the next server has them, also after a kill, and reports values that it cannot use.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use openraid_format::{MinorVersion, SetName, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use serde_json::Value;
use support::client::Client;
use support::{read_at, write_at, Lab, Server, READ, WRITE};

/// The protocol's error for a request that is not permitted.
const EPERM: u32 = 1;

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

/// Give the array of a member another name, as `mdadm --assemble --update=name` does.
fn rename(lab: &Lab, member: &str, name: &str) {
    let path = lab.path(member);
    let size = Sectors(fs::metadata(&path).expect("a file").len() / 512);
    let bytes = read_at(&path, 4096, SUPERBLOCK_BYTES_MAX);
    let own = Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a superblock");
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    let set_name = SetName::new(None, name).expect("a short name");
    let len = Superblock { set_name, ..own }.encode(&mut bytes);
    write_at(&path, 4096, &bytes[..len]);
}

/// Serve, and what the server has written to standard error until it was ready.
fn serve_and_listen(lab: &Lab, arguments: &[&str]) -> (Server, String) {
    let socket = lab.path("nbd.sock");
    let all = [&["serve", "--json", "--nbd-unix", socket.to_str().expect("UTF-8")], arguments].concat();
    let mut command = lab.command(&all);
    command.stderr(File::create(lab.path("errors")).expect("room"));
    let server = Server::started(&mut command).unwrap_or_else(|line| panic!("not ready: {line:?}"));
    (server, fs::read_to_string(lab.path("errors")).expect("text"))
}

fn changes(array: &Value) -> Vec<String> {
    let changes = array["profile"]["changes"].as_array().expect("a list").iter();
    changes.map(|own| format!("{}={}", own["setting"], own["to"]).replace('"', "")).collect()
}

#[test]
fn settings_outlive_a_server_that_is_killed() {
    let lab = array("kept");
    let server = lab.serve(&["data"]);
    let shown = lab.show("data");
    assert_eq!((&shown["profile"]["name"], &shown["profile"]["set"]), (&"balanced".into(), &false.into()));
    lab.line("set data profile=protection mirror-read=primary").expect(0);
    lab.line("set data rebuild.rate=50M write.partial=rmw split-above=128K adaptive=reset").expect(0);
    let before = lab.show("data")["settings"].clone();
    server.kill();
    let server = lab.serve(&["data"]);
    let shown = lab.show("data");
    assert_eq!(shown["settings"], before);
    assert_eq!((shown["profile"]["name"].as_str(), &shown["profile"]["set"]), (Some("protection"), &true.into()));
    assert_eq!(shown["settings"]["rebuild_rate"], 50 << 20);
    let wanted =
        ["rebuild.rate=50 MiB/s", "write.partial=rmw", "mirror-read=primary", "split-above=128 KiB", "adaptive=on"];
    assert_eq!(changes(&shown), wanted);
    let text = lab.line("show data").expect(0).text();
    for line in [
        "protection, changed: rebuild.rate=50 MiB/s write.partial=rmw",
        "when degraded: rebuilds at most 50 MiB/s of each member, 16 rows at once; the other settings stay",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    // A profile replaces earlier settings, and a new member does not change the settings.
    lab.line("set data profile=balanced").expect(0);
    lab.line("fail data d0").expect(0);
    lab.line("remove data d0").expect(0);
    server.stop();
    let server = lab.serve(&["data"]);
    let shown = lab.show("data");
    assert_eq!((shown["profile"]["name"].as_str(), changes(&shown)), (Some("balanced"), vec![]));
    server.stop();
}

#[test]
fn a_setting_that_this_server_cannot_carry_out_is_said_and_stays_kept() {
    let lab = array("unable");
    let server = lab.serve(&["data", "--cache", "16M"]);
    lab.line("set data write.cache=volatile read-ahead=always --yes").expect(0);
    server.stop();
    let (server, said) = serve_and_listen(&lab, &["data"]);
    assert!(said.contains("data: write.cache=volatile is kept and does not apply: the server has no cache"), "{said}");
    assert!(said.contains("data: read-ahead=always has no effect: the server has no cache"), "{said}");
    assert_eq!(lab.show("data")["settings"]["write_cache"], "through");
    server.stop();
    let (server, said) = serve_and_listen(&lab, &["data", "--cache", "16M"]);
    assert!(said.contains("data: write cache VOLATILE"), "{said}");
    assert_eq!(lab.show("data")["settings"]["write_cache"], "volatile");
    server.stop();
}

#[test]
fn an_array_in_memory_keeps_nothing_and_a_note_says_it() {
    let lab = Lab::new("memory");
    let server = lab.serve(&["--level", "1", "--name", "scratch", "ram:8M", "ram:8M"]);
    lab.line("set scratch rebuild.rate=1M").expect(0).says(&["not remembered, so this lasts until the server ends"]);
    server.stop();
}

#[test]
fn an_array_is_made_read_only_under_its_clients_and_stays_so() {
    let lab = array("access");
    let server = lab.serve(&["data"]);
    let socket = lab.path("nbd.sock");
    let mut client = Client::open(&socket, "data");
    assert_eq!(client.ask(WRITE, 0, &[1; 4096]), 0);
    lab.line("set data access=read-only").expect(0).says(&["access=read-only"]);
    assert_eq!((client.ask(WRITE, 0, &[2; 4096]), client.ask(READ, 0, &[0; 4096])), (EPERM, 0));
    let mut second = Client::open(&socket, "data");
    assert_eq!(second.ask(WRITE, 0, &[2; 4096]), EPERM);
    server.kill();
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["access"], "read-only");
    let mut client = Client::open(&socket, "data");
    assert_eq!(client.ask(WRITE, 0, &[2; 4096]), EPERM);
    lab.line("set data access=read-write").expect(0);
    assert_eq!(client.ask(WRITE, 0, &[3; 4096]), 0);
    lab.line("set data access=blocked").expect(0);
    assert!(client.try_ask(READ, 0, &[0; 4096]).is_err(), "a blocked array has no clients");
    let shown = lab.show("data");
    assert_eq!((&shown["exports"], &shown["health"]), (&Value::Array(Vec::new()), &"optimal".into()));
    assert!(lab.line("show data").expect(0).text().contains("blocked: no client can connect"));
    server.stop();
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["exports"], Value::Array(Vec::new()));
    lab.line("set data access=read-write").expect(0);
    assert_eq!(Client::open(&socket, "data").ask(WRITE, 0, &[4; 4096]), 0);
    lab.line("set data access=none").refused(64, &["use read-write, read-only or blocked"]);
    server.stop();
}

#[test]
fn a_renamed_array_keeps_its_settings_and_a_new_one_of_its_name_begins_afresh() {
    let lab = array("renamed");
    let server = lab.serve(&["data"]);
    lab.line("set data rebuild.rate=7M access=read-only").expect(0);
    server.stop();
    for member in ["d0", "d1", "d2"] {
        rename(&lab, member, "moved");
    }
    // The registry knows the old name; the served array has the new one.
    let server = lab.serve(&["data"]);
    let shown = lab.show("moved");
    assert_eq!((&shown["settings"]["rebuild_rate"], &shown["access"]), (&(7 << 20).into(), &"read-only".into()));
    server.stop();
    lab.line("assemble d0 d1 d2 --no-serve").expect(0);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M n0 n1 n2").expect(0);
    let server = lab.serve(&["data", "moved"]);
    let (new, old) = (lab.show("data"), lab.show("moved"));
    assert_eq!((&new["settings"]["rebuild_rate"], &new["access"]), (&(200 << 20).into(), &"read-write".into()));
    assert_eq!((&old["settings"]["rebuild_rate"], &old["access"]), (&(7 << 20).into(), &"read-only".into()));
    server.stop();
    // The settings of a forgotten array are forgotten too.
    lab.line("forget moved").expect(0);
    lab.line("assemble d0 d1 d2 --no-serve").expect(0);
    let server = lab.serve(&["moved"]);
    assert_eq!(lab.show("moved")["access"], "read-write");
    server.stop();
}

/// Kills of one run, and of a long one.
const KILLS: (u64, u64) = (12, 200);

#[test]
fn a_setting_that_was_acknowledged_survives_every_kill() {
    let lab = array("kills");
    let kills = if std::env::var_os("OPENRAID_SOAK").is_some() { KILLS.1 } else { KILLS.0 };
    let (mut rate, mut acknowledged) = (0_u64, 200);
    for round in 0..kills {
        let server = lab.serve(&["data"]);
        let found = lab.show("data")["settings"]["rebuild_rate"].as_u64().expect("a rate") >> 20;
        // One that was under way may have been kept and not answered.
        assert!(
            found == acknowledged || found == rate && rate > 0,
            "round {round}: {found}, {acknowledged} and {rate}"
        );
        let control = server.ready["control"].as_str().expect("a path").to_owned();
        let first = rate + 1;
        let setting = thread::spawn(move || {
            let mut stream = UnixStream::connect(control).expect("it listens");
            let mut answers = BufReader::new(stream.try_clone().expect("a socket")).lines();
            let (mut asked, mut answered) = (first - 1, None);
            loop {
                asked += 1;
                let line = format!(r#"{{"v":2,"do":"set","array":"data","settings":[["rebuild.rate","{asked}M"]]}}"#);
                if writeln!(stream, "{line}").is_err() {
                    return (asked, answered);
                }
                match answers.next() {
                    Some(Ok(answer)) => {
                        assert!(answer.contains(r#""ok""#) && !answer.contains("lasts until"), "{answer}");
                        answered = Some(asked);
                    }
                    _ => return (asked, answered),
                }
            }
        });
        // The kill meets another moment in each round.
        thread::sleep(Duration::from_millis(20 + round * 7 % 60));
        server.kill();
        let answered;
        (rate, answered) = setting.join().expect("the client");
        acknowledged = answered.unwrap_or(found);
    }
    let log = lab.line("events --json").expect(0).json();
    assert_eq!(log["damaged"], 0);
    let numbers: Vec<u64> =
        log["events"].as_array().expect("a list").iter().filter_map(|event| event["number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1) && numbers.len() > 12, "{numbers:?}");
    assert!(acknowledged > kills, "settings were changed: {acknowledged}");
}
