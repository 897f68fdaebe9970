//! A small blocking server: one thread for each connection.

use super::connection::{Connection, Step};
use super::disk::Disk;
use openraid_nbd::server::PayloadTuning;
use openraid_nbd::ExportInfo;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of bytes in one receive.
const BATCH_BYTES: usize = 256 << 10;
/// Output is sent when it has at least this number of bytes, or when there is nothing else to do.
const SEND_BYTES: usize = 1 << 20;

/// Serves one connection to its end.
pub fn serve(stream: &mut (impl Read + Write), exports: Arc<Vec<ExportInfo>>, disk: Arc<Disk>) -> Result<()> {
    let mut connection = Connection::new(exports, disk, PayloadTuning::default());
    let mut batch = vec![0; BATCH_BYTES];
    loop {
        stream.write_all(&connection.out)?;
        connection.out.clear();
        let count = stream.read(&mut batch)?;
        if count == 0 {
            return Ok(());
        }
        connection.feed(&batch[..count]);
        loop {
            match connection.step() {
                Step::Progress if connection.out.len() < SEND_BYTES => {}
                Step::Progress => {
                    stream.write_all(&connection.out)?;
                    connection.out.clear();
                }
                Step::Starved => break,
                Step::Closed => return stream.write_all(&connection.out),
            }
        }
    }
}

/// Serves every client that connects, until the process ends.
pub fn serve_tcp(listener: &TcpListener, exports: &Arc<Vec<ExportInfo>>, disk: &Arc<Disk>) {
    for mut stream in listener.incoming().flatten() {
        let (exports, disk) = (Arc::clone(exports), Arc::clone(disk));
        std::thread::spawn(move || {
            let _ = TcpStream::set_nodelay(&stream, true);
            let _ = serve(&mut stream, exports, disk); // a client that goes away is none of our business
        });
    }
}

/// Serves every client that connects, until the process ends.
pub fn serve_unix(listener: &UnixListener, exports: &Arc<Vec<ExportInfo>>, disk: &Arc<Disk>) {
    for mut stream in listener.incoming().flatten() {
        let (exports, disk) = (Arc::clone(exports), Arc::clone(disk));
        std::thread::spawn(move || {
            let _ = serve(&mut stream, exports, disk); // a client that goes away is none of our business
        });
    }
}

/// Serves on a unix socket in the background.
pub fn spawn_unix(socket: &Path, exports: Vec<ExportInfo>, disk: Arc<Disk>) {
    let listener = UnixListener::bind(socket).expect("a socket can be made in the test's own folder");
    std::thread::spawn(move || serve_unix(&listener, &Arc::new(exports), &disk));
}

/// Serves on a free TCP port of this host in the background; returns the port.
pub fn spawn_tcp(exports: Vec<ExportInfo>, disk: Arc<Disk>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    std::thread::spawn(move || serve_tcp(&listener, &Arc::new(exports), &disk));
    port
}
