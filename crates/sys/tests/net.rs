//! Tests the sockets against those of the standard library, with buffers so small that every send is partial.

mod common;

use common::{pattern, TempDir};
use openraid_sys::{
    Accepted, Epoll, Events, FramePool, Holder, Interest, Listener, MessagePiece, NetError, Peer, PoolOptions,
    PoolRange, ProcessSignal, Progress, Signals, Socket, PIECES_PER_SEND_MAX,
};
use openraid_units::{Bytes, Nanos, PoolOffset};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

fn pool() -> FramePool {
    FramePool::new(PoolOptions::of(Bytes::mib(2))).expect("pool")
}

fn frames(start: u64, len: u64) -> PoolRange {
    PoolRange::new(PoolOffset(start), Bytes(len))
}

fn wait(source: impl AsFd, interest: Interest) {
    let mut epoll = Epoll::new().expect("epoll");
    epoll.add(source, 1, interest).expect("add");
    let mut events = Events::new();
    while epoll.wait(&mut events, Some(Nanos::from_secs(20))).expect("wait") == 0 {}
}

fn accept(listener: &Listener) -> Socket {
    loop {
        match listener.accept().expect("accept") {
            Accepted::Socket(socket) => return socket,
            Accepted::NoConnection => wait(listener, Interest::READ),
            Accepted::Exhausted(error) => panic!("{error}"),
        }
    }
}

fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Sends headers and frames of `rounds` x 64 KiB; the peer, a thread, reads everything.
fn gather_through(socket: &Socket, mut peer: impl Read + Send + 'static) {
    let mut pool = pool();
    pool.slice_mut(frames(0, 2 << 20)).copy_from_slice(&pattern(0, 2 << 20));
    let headers: Vec<Vec<u8>> =
        (0..32).map(|nth| pattern(90_000 + nth, 16 + usize::try_from(nth).expect("small"))).collect();
    let mut oracle = Vec::new();
    let mut pieces = Vec::new();
    for (nth, header) in (0u64..).zip(&headers) {
        let payload = frames(nth * 60_000 + 3, 50_001);
        pieces.extend([MessagePiece::Bytes(header), MessagePiece::Pool(payload), MessagePiece::Bytes(b"")]);
        oracle.extend_from_slice(header);
        oracle.extend_from_slice(pool.slice(payload));
    }
    let total = oracle.len();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; total];
        // The peer reads late and slowly, so that the sender finds a full buffer.
        std::thread::sleep(Duration::from_millis(20));
        peer.read_exact(&mut bytes).expect("all bytes come");
        bytes
    });
    let (mut sent, mut blocked, mut calls) = (0, 0, 0);
    while sent < total {
        match socket.send(&pool, &pieces, sent).expect("send") {
            Progress::Bytes(bytes) => {
                assert!(bytes > 0 && sent + bytes <= total);
                sent += bytes;
                calls += 1;
            }
            Progress::Blocked => {
                blocked += 1;
                wait(socket, Interest::WRITE);
            }
            Progress::Closed => panic!("the peer is still there"),
        }
    }
    assert!(reader.join().expect("reader") == oracle, "every byte once, in order");
    assert!(blocked > 0 && calls > 1, "the small buffer made it partial");
}

#[test]
fn gathered_sends_arrive_completely_through_small_buffers() {
    let listener = Listener::tcp(local()).expect("listen");
    let peer = TcpStream::connect(listener.tcp_address().expect("address")).expect("connect");
    let socket = accept(&listener);
    assert_eq!(socket.peer(), &Peer::Tcp(peer.local_addr().expect("address")));
    socket.set_buffers(4096, 4096).expect("buffers");
    gather_through(&socket, peer);

    let dir = TempDir::on_disk();
    let path = dir.path("socket");
    let listener = Listener::unix(&path).expect("listen");
    let peer = UnixStream::connect(&path).expect("connect");
    let socket = accept(&listener);
    assert!(matches!(socket.peer(), Peer::Unix { process, .. } if *process == std::process::id()));
    socket.set_buffers(4096, 4096).expect("buffers");
    gather_through(&socket, peer);
}

#[test]
fn the_kernel_probes_a_client_that_says_nothing() {
    let listener = Listener::tcp(local()).expect("listen");
    let peer = TcpStream::connect(listener.tcp_address().expect("address")).expect("connect");
    let _socket = accept(&listener);
    // Columns of proc(5): local and remote address, state, queues, and the timer: 02 is the one of probes, then hundredths of a second.
    let ports = [listener.tcp_address(), peer.local_addr().ok()]
        .map(|address| format!(":{:04X}", address.expect("one").port()));
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("the table of connections");
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row =
        rows.skip(1).find(|row| row[1].ends_with(&ports[0]) && row[2].ends_with(&ports[1])).expect("the connection");
    let (kind, left) = row[5].split_once(':').expect("kind and time of the timer");
    let left = u32::from_str_radix(left, 16).expect("a time");
    assert!(kind == "02" && left <= 3_000, "{row:?}");
}

#[test]
fn more_pieces_than_the_kernel_takes_are_sent_by_the_next_call() {
    let (mut ours, theirs) = UnixStream::pair().expect("pair");
    let socket = Socket::from(theirs);
    let byte = [7u8];
    let pieces = vec![MessagePiece::Bytes(&byte); PIECES_PER_SEND_MAX + 5];
    assert_eq!(socket.send(&pool(), &pieces, 0), Ok(Progress::Bytes(PIECES_PER_SEND_MAX)));
    assert_eq!(socket.send(&pool(), &pieces, PIECES_PER_SEND_MAX), Ok(Progress::Bytes(5)));
    let mut bytes = vec![0; PIECES_PER_SEND_MAX + 5];
    ours.read_exact(&mut bytes).expect("read");
    assert!(bytes.iter().all(|&b| b == 7));
}

#[test]
fn bytes_are_received_straight_into_the_pool_and_nowhere_else() {
    let (mut ours, theirs) = UnixStream::pair().expect("pair");
    let socket = Socket::from(theirs);
    let mut pool = pool();
    let into = frames(1001, 3000);
    assert_eq!(socket.receive_into_pool(&mut pool, into), Ok(Progress::Blocked));
    ours.write_all(&pattern(5, 4000)).expect("write");
    assert_eq!(socket.receive_into_pool(&mut pool, into), Ok(Progress::Bytes(3000)));
    assert_eq!(pool.slice(into), &pattern(5, 4000)[..3000]);
    assert_eq!((pool.slice(frames(1000, 1)), pool.slice(frames(4001, 1))), (&[0][..], &[0][..]));
    let mut rest = [0; 5000];
    assert_eq!(socket.receive(&mut rest), Ok(Progress::Bytes(1000)));
    assert_eq!(rest[..1000], pattern(5, 4000)[3000..]);
    drop(ours);
    assert_eq!(socket.receive(&mut rest), Ok(Progress::Closed));
    assert_eq!(socket.send(&pool, &[MessagePiece::Bytes(b"late")], 0), Ok(Progress::Closed), "no signal, no error");
}

#[test]
fn half_closed_connections_still_carry_the_other_half() {
    let (mut ours, theirs) = UnixStream::pair().expect("pair");
    let socket = Socket::from(theirs);
    socket.finish_sending();
    assert_eq!(ours.read(&mut [0; 8]).expect("end"), 0);
    ours.write_all(b"still here").expect("write");
    let mut bytes = [0; 32];
    assert_eq!(socket.receive(&mut bytes), Ok(Progress::Bytes(10)));
}

#[test]
fn connecting_reports_progress_and_failure() {
    let listener = TcpListener::bind(local()).expect("listen");
    let socket = Socket::connect_tcp(listener.local_addr().expect("address")).expect("connect");
    while !socket.connected().expect("no failure") {
        wait(&socket, Interest::WRITE);
    }
    let (mut peer, _) = listener.accept().expect("accept");
    assert_eq!(socket.send(&pool(), &[MessagePiece::Bytes(b"hello")], 0), Ok(Progress::Bytes(5)));
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).expect("read");
    assert_eq!(&bytes, b"hello");

    let nobody = listener.local_addr().expect("address");
    drop((listener, peer, socket));
    let failed = Socket::connect_tcp(nobody).map(|socket| {
        wait(&socket, Interest::WRITE);
        socket.connected()
    });
    assert!(matches!(failed, Err(NetError::Failed { .. }) | Ok(Err(_))), "{failed:?}");
}

#[test]
fn addresses_in_use_are_refused_and_stale_sockets_replaced() {
    let listener = Listener::tcp(local()).expect("listen");
    let address = listener.tcp_address().expect("address");
    assert_eq!(
        Listener::tcp(address).err(),
        Some(NetError::InUse { address: address.to_string(), holder: Holder::Unknown })
    );
    let ipv6 = Listener::tcp("[::1]:0".parse().expect("address"));
    if let Ok(ipv6) = ipv6 {
        assert!(ipv6.tcp_address().is_some_and(|address| address.is_ipv6() && address.port() > 0));
    }

    let dir = TempDir::on_disk();
    let path = dir.path("socket");
    drop(UnixListener::bind(&path).expect("a server that did not remove its socket"));
    assert!(path.exists());
    let listener = Listener::unix(&path).expect("replaced");
    assert_eq!(path.metadata().expect("socket").mode() & 0o777, 0o600);
    let holder = Holder::Running(std::process::id());
    assert_eq!(Listener::unix(&path).err(), Some(NetError::InUse { address: path.display().to_string(), holder }));
    assert!(path.exists(), "a socket in use stays");
    drop(listener);
    assert!(!path.exists(), "and goes with its server");

    let file = dir.file("file", 10);
    assert_eq!(Listener::unix(&file).err(), Some(NetError::NotASocket { path: file.clone() }));
    assert_eq!(std::fs::read(&file).expect("untouched"), pattern(0, 10));
    let long = dir.path(&"x".repeat(120));
    assert_eq!(Listener::unix(&long).err(), Some(NetError::PathTooLong { path: long }));
}

#[test]
fn a_socket_belongs_to_the_group_of_its_folder_only_if_the_folder_is_set_group_id() {
    use std::fs::{set_permissions, Permissions};
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::on_disk();
    let path = dir.path("socket");
    let folder = path.parent().expect("a folder");
    let group = folder.metadata().expect("a folder").gid();
    for (mode, wanted) in [(0o750, 0o600), (0o770, 0o600), (0o2750, 0o660)] {
        set_permissions(folder, Permissions::from_mode(mode)).expect("own folder");
        let listener = Listener::unix_of_folder(&path).expect("listen");
        let made = path.metadata().expect("socket");
        assert_eq!((made.mode() & 0o777, made.gid()), (wanted, group), "{mode:o}");
        drop(listener);
        let listener = Listener::unix(&path).expect("listen");
        assert_eq!(path.metadata().expect("socket").mode() & 0o777, 0o600, "a socket for this user alone");
        drop(listener);
    }
}

#[test]
fn a_listener_does_not_remove_what_took_its_place() {
    let dir = TempDir::on_disk();
    let path = dir.path("socket");
    let first = Listener::unix(&path).expect("listen");
    std::fs::remove_file(&path).expect("remove");
    let second = Listener::unix(&path).expect("listen");
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
}

#[test]
fn accepting_without_a_client_does_not_wait() {
    let listener = Listener::tcp(local()).expect("listen");
    assert!(matches!(listener.accept(), Ok(Accepted::NoConnection)));
}

#[test]
fn signals_become_events() {
    let signals = Signals::take_over().expect("signals");
    assert_eq!(signals.next_signal(), None);
    // The signal goes to this thread. If it went to the process, every other thread of this test program would have to
    // block it, too.
    let thread = std::fs::read_link("/proc/thread-self").expect("proc");
    let thread = thread.file_name().and_then(|name| name.to_str()).expect("number").to_string();
    if !common::has(&["python3"], "python3") {
        return;
    }
    for (name, signal) in
        [("TERM", ProcessSignal::Terminate), ("INT", ProcessSignal::Interrupt), ("HUP", ProcessSignal::HangUp)]
    {
        let sent = common::run("python3", &["-c", SEND, &std::process::id().to_string(), &thread, name]);
        assert!(sent.is_some(), "python3 does not send a signal to one thread");
        wait(&signals, Interest::READ);
        assert_eq!(signals.next_signal(), Some(signal));
    }
}

/// `tgkill`, for which there is no command-line tool.
const SEND: &str = "import ctypes, signal, sys; \
    p, t, n = int(sys.argv[1]), int(sys.argv[2]), getattr(signal, 'SIG' + sys.argv[3]); \
    sys.exit(ctypes.CDLL(None).tgkill(p, t, int(n)) != 0)";
