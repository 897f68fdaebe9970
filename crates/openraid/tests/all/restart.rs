//! A server that was killed, and the next one. The next server waits until the kernel has released everything, clears
//! leftovers, reports its replay, and signals when clients can connect.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::support::{noise, Lab};

/// Restarts after a kill. Before the waiting some of a dozen failed on an idle machine, half under load.
const RESTARTS: usize = 12;

fn array(name: &str, options: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line(&format!("create data {options} --file-size 32M d0 d1 d2")).expect(0);
    lab
}

#[test]
fn the_next_server_takes_over_at_once_after_a_kill() {
    let lab = array("again", "--level 5 --chunk 64K --assume-clean");
    for nth in 0..RESTARTS {
        // More memory, which the kernel releases first, makes the time longer in which the old sockets still answer.
        let server = lab.serve(&["data", "--cache", "512M"]);
        let uri = server.uri();
        let bytes = lab.path("bytes");
        fs::write(&bytes, noise(nth as u64, 32 << 20)).expect("room");
        let copied = Command::new("nbdcopy").arg(&bytes).arg(&uri).status();
        assert!(copied.is_ok_and(|status| status.success()), "try {nth}");
        server.signal("-KILL");
        // The next server starts while the old one ends; nothing waits for that end.
        let next = lab.serve(&["data"]);
        next.kill();
        drop(server);
    }
}

#[test]
fn one_line_reports_the_replay_or_resync_of_an_array() {
    let recovered = |lab: &Lab, more: &[&str]| -> Vec<String> {
        let server = lab.serve(&[&["data"][..], more].concat());
        let lines = server.ready["recovered"].as_array().expect("a list").iter();
        let lines = lines.map(|line| line.as_str().expect("a line").to_owned()).collect();
        server.stop();
        lines
    };
    let write_and_kill = |lab: &Lab, more: &[&str]| {
        let server = lab.serve(&[&["data"][..], more].concat());
        let uri = server.uri();
        let bytes = lab.path("bytes");
        fs::write(&bytes, noise(3, 1 << 20)).expect("room");
        let copied = Command::new("nbdcopy").arg(&bytes).arg(&uri).status();
        assert!(copied.is_ok_and(|status| status.success()));
        server.kill();
    };
    let whole = array("whole", "--level 5 --chunk 64K --assume-clean");
    assert_eq!(recovered(&whole, &[]), [""; 0]);
    write_and_kill(&whole, &[]);
    assert_eq!(recovered(&whole, &[]), ["data: not clean at the start: everything is resynced (no bitmap)"]);
    let marked = array("marked", "--level 5 --chunk 64K --assume-clean --bitmap internal");
    write_and_kill(&marked, &[]);
    let line = recovered(&marked, &[]).concat();
    assert!(line.starts_with("data: not clean at the start: bitmap: 1 of 1 region resynced ("), "{line}");
    let logged = array("logged", "--level 5 --chunk 64K --assume-clean --consistency-policy ppl");
    write_and_kill(&logged, &[]);
    let line = recovered(&logged, &[]).concat();
    assert!(line.contains("of the partial parity log replayed, no resync needed"), "{line}");
    let kept = array("kept", "--level 5 --chunk 64K --assume-clean --consistency-policy controller-journal");
    kept.line("journal create --size 16M j0").expect(0);
    write_and_kill(&kept, &["--journal", "j0"]);
    let line = recovered(&kept, &["--journal", "j0"]).concat();
    assert!(line.contains(" of the journal replayed"), "{line}");
    // What `create` has synced before it stopped the array is no sync that could continue.
    let first = "data: new: the initial sync follows";
    for options in ["--level 5 --chunk 64K", "--level 5 --bitmap internal", "--level 1 --bitmap internal", "--level 10"]
    {
        let fresh = array("fresh", options);
        fresh.line("doctor data").expect(0);
        assert_eq!(recovered(&fresh, &[]), [first], "{options}");
    }
    let new = array("new", "--level 5 --chunk 64K");
    let server = new.serve(&["data"]);
    new.line("set data rebuild.rate=1M").expect(0);
    new.wait_for("data", |state| state["task"]["done_bytes"].as_u64() > Some(2 << 20));
    server.stop();
    let line = recovered(&new, &[]).concat();
    assert!(line.starts_with("data: not in sync yet: the sync continues from "), "{line}");
}

#[test]
fn show_waits_for_a_server_as_long_as_it_may() {
    let lab = array("wait", "--level 5 --chunk 64K --assume-clean");
    lab.line("show data --wait 1").refused(4, &["no server serves an array named \"data\" after 1 s"]);
    lab.line("show data --wait 0").refused(64, &["--wait"]);
    let waiting = lab.command(&["show", "data", "--wait", "200", "--json"]).stdout(Stdio::piped()).spawn();
    let waiting = waiting.expect("it starts");
    let server = lab.serve(&["data"]);
    let output = waiting.wait_with_output().expect("own child");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &shown["served"]), (Some(0), &serde_json::Value::Bool(true)));
    server.stop();
}

#[test]
fn sockets_that_dead_servers_left_are_cleared_and_others_are_not() {
    let lab = array("stale", "--level 5 --chunk 64K --assume-clean");
    let server = lab.serve(&["data"]);
    let control = server.ready["control"].as_str().expect("a path").to_owned();
    server.kill();
    assert!(fs::symlink_metadata(&control).is_ok(), "a killed server removes nothing");
    let folder = lab.path("run").join("openraid");
    let answering = folder.join("4194305.sock");
    let _listener = UnixListener::bind(&answering).expect("a socket");
    fs::write(folder.join("notes"), "kept").expect("room");
    let next = lab.serve(&["data"]);
    assert!(fs::symlink_metadata(&control).is_err(), "{control} is left");
    assert!(answering.exists() && folder.join("notes").exists());
    next.stop();
}

#[test]
fn the_ready_descriptor_is_written_when_clients_can_connect_and_closed_unwritten_after_a_failure() {
    let lab = array("ready", "--level 5 --chunk 64K --assume-clean");
    let fifo = lab.path("ready");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let heard = |arguments: &[&str]| {
        let program = lab.command(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3>ready"]).arg(program.get_program()).args(arguments);
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(&lab.folder);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh");
        // The file ends when the server has closed it, whether or not the start succeeded.
        let text = fs::read_to_string(&fifo).expect("it ends");
        let running = child.try_wait().expect("own child").is_none();
        (text, running, child)
    };
    let socket = lab.path("nbd.sock");
    let socket = socket.to_str().expect("UTF-8");
    let (text, running, mut child) = heard(&["serve", "data", "--nbd-unix", socket, "--ready-fd", "3"]);
    assert_eq!((text.as_str(), running), ("ready\n", true));
    lab.line("show data").expect(0);
    lab.line("stop --all").expect(0);
    assert!(child.wait().expect("own child").success());
    let (text, _, mut child) = heard(&["serve", "nobody", "--nbd-unix", socket, "--ready-fd", "3"]);
    assert_eq!((text.as_str(), child.wait().expect("own child").code()), ("", Some(65)));
    lab.line("serve data --ready-fd 777").refused(64, &["--ready-fd 777"]);
}

#[test]
fn a_server_that_was_stopped_has_gone_when_stop_returns() {
    let lab = array("stopped", "--level 5 --chunk 64K --assume-clean");
    for stop in ["stop data", "stop --all", "stop data"] {
        let server = lab.serve(&["data"]);
        lab.line(stop).expect(0);
        assert!(!lab.path("nbd.sock").exists(), "the socket is left after {stop}");
        assert!(fs::read_dir(lab.path("run").join("openraid")).expect("the folder").next().is_none());
        assert_eq!(server.end().0, 0);
    }
}
