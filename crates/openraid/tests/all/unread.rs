//! A server whose output is not read (a terminal after Ctrl-S, a pipe that stands still) does all the rest.

use std::io::{pipe, BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Lab;

/// Bytes that a pipe of Linux holds.
const PIPE_BYTES: usize = 64 << 10;
/// How long the end of the server may take here.
const END_MAX: Duration = Duration::from_secs(60);

#[test]
fn a_server_whose_output_is_not_read_raises_alarms_and_ends() {
    let lab = Lab::new("unread");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    let socket = lab.path("nbd.sock").display().to_string();
    let (reader, writer) = pipe().expect("a pipe");
    let mut fill = writer.try_clone().expect("another end");
    let mut command = lab.command(&["serve", "--json", "--nbd-unix", &socket, "data"]);
    let mut server = command.stdin(Stdio::null()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let mut lines = BufReader::with_capacity(1, reader);
    let mut ready = String::new();
    lines.read_line(&mut ready).expect("a line");
    assert!(ready.contains("\"ready\""), "{ready}");
    // It ends with the pipe, at the latest.
    let filling = thread::spawn(move || fill.write_all(&[b'x'; PIPE_BYTES]));
    lab.line("fail data d1 --yes").expect(0);
    lab.wait_for("data", |array| array["alarms"].to_string().contains("DegradedArray"));
    lab.line("stop --all").expect(0);
    let until = Instant::now() + END_MAX;
    let end = loop {
        match server.try_wait().expect("it is ours") {
            Some(end) => break end,
            None if Instant::now() > until => {
                let _ = server.kill();
                panic!("it does not end");
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    assert_eq!(end.code(), Some(0));
    drop(lines);
    let _ = filling.join();
}
