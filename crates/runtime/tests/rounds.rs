//! How a shard spends the time around its rounds, in figures that the service reports about itself.
//!
//! One test at a time: the first one knows its service's thread by its name.

mod support;

use std::sync::{Mutex, PoisonError};

use openraid_format::MdLevel;
use openraid_nbd::{NbdCommand, NbdRequest};
use openraid_runtime::limits::RECEIVE_BYTES_MAX;
use openraid_units::Sectors;
use support::client::Client;
use support::{request, Server};

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const BLOCK: u64 = 4096;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn serve(name: &str) -> (Server, Client) {
    let server = Server::new(name);
    server.create(request(MdLevel::Raid0, Sectors::kib(64), &["ram:16M".into(), "ram:16M".into()]));
    let client = server.connect();
    (server, client)
}

/// Nanoseconds of CPU time of the thread of this process that is named `shard`, as the kernel counts them.
fn shard_cpu() -> u64 {
    for task in std::fs::read_dir("/proc/self/task").expect("a process sees its threads") {
        let task = task.expect("an entry").path();
        if std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "shard") {
            let times = std::fs::read_to_string(task.join("schedstat")).expect("the kernel counts");
            return times.split(' ').next().and_then(|used| used.parse().ok()).expect("nanoseconds first");
        }
    }
    panic!("no thread is named shard");
}

#[test]
fn looks_before_sleeping_count_as_work_and_a_client_that_waits_for_each_answer_sees_no_rest() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, mut client) = serve("looks");
    for nth in 0..2000 {
        assert_eq!(client.call(READ, nth % 512 * BLOCK, BLOCK, &[]).result, Ok(()));
    }
    let before = shard_cpu();
    let status = server.handle.status().expect("it runs");
    assert!(status.worked.get() >= before, "{} ns are reported, the kernel counted {before}", status.worked.get());
    let has_second_cpu = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    assert_eq!(status.looked.get() > 0, has_second_cpu, "a second CPU: {has_second_cpu}");
    assert_eq!(status.rests, 0);
    client.disconnect();
}

#[test]
fn the_shard_rests_after_pipelined_reads() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, mut client) = serve("rests");
    for _ in 0..8 {
        let reads: Vec<NbdRequest> = (0..32).map(|nth| client.request(READ, nth * BLOCK, BLOCK)).collect();
        client.send_together(&reads, &[]);
        for _ in &reads {
            assert_eq!(client.wait().1.result, Ok(()));
        }
    }
    // A batch that the kernel gave in two parts may have ended with a few requests.
    assert!(server.handle.status().expect("it runs").rests > 0);
    client.disconnect();
}

#[test]
fn payloads_of_streamed_writes_are_not_copied_after_the_first() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, mut client) = serve("streams");
    let payload = vec![7; 64 << 10];
    let write = NbdCommand::Write { fua: false };
    let writes: Vec<NbdRequest> =
        (0..64).map(|nth| client.request(write, nth * payload.len() as u64, payload.len() as u64)).collect();
    client.send_together(&writes, &payload);
    for _ in &writes {
        assert_eq!(client.wait().1.result, Ok(()));
    }
    // Until the first request is known, as much is received as fits.
    let copied = server.handle.status().expect("it runs").exports.early_bytes;
    assert!(copied <= RECEIVE_BYTES_MAX as u64, "{copied} of {} bytes were copied", writes.len() * payload.len());
    client.disconnect();
}
