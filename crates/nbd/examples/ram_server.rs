//! Serves a disk in memory, to try NBD clients against this crate:
//! `cargo run --release -p openraid-nbd --example ram_server -- tcp 127.0.0.1:10809 256` (size in MiB), or `unix PATH`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use support::{disk, net};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, place, rest @ ..] = &arguments[..] else {
        eprintln!("usage: ram_server tcp HOST:PORT [MIB] | unix PATH [MIB]");
        std::process::exit(64);
    };
    let size = rest.first().and_then(|mib| mib.parse::<usize>().ok()).unwrap_or(256) << 20;
    let exports = Arc::new(vec![disk::export("disk", size)]);
    let disk = Arc::new(disk::Disk::new(size));
    match kind.as_str() {
        "tcp" => net::serve_tcp(&std::net::TcpListener::bind(place).expect("the address is free"), &exports, &disk),
        "unix" => {
            let listener = std::os::unix::net::UnixListener::bind(place).expect("the path is free");
            net::serve_unix(&listener, &exports, &disk);
        }
        other => panic!("{other} is neither tcp nor unix"),
    }
}
