//! NBD over TLS: clients negotiate `STARTTLS` here, and the bytes inside go to a unix socket of the server, as if each client had
//! connected there.
//!
//! ```text
//!  client --greeting, flags, STARTTLS--> (refuses all else) --TLS handshake--> flags to the socket --bytes both ways-->
//!       \--too slow, another protocol, no certificate of the authority, the oldest of too many--> closed
//! ```
//!
//! Until its TLS handshake is done, a connection has a place of strangers, and after it one of clients: strangers keep no client out.
//!
//! It has a thread of its own, so that neither the loop of a shard nor the requests of HTTP wait for encryption. It must never pass on a
//! byte that came before TLS, except the client's flags. Source: `doc/proto.md` of the NBD project, baseline and `SELECTIVETLS`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openraid_nbd::server::before_tls::{self, GREETING_BYTES, OPTION_BYTES};
use openraid_nbd::server::CloseReason;
use tokio::io::{copy_bidirectional_with_sizes, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, Semaphore};
use tokio::time::timeout;

use crate::http::certificate_renewal::Renewal;
use crate::http::connection_places::{ConnectionPlace, ConnectionPlaces};
use crate::http::listen::ListenError;
use crate::http::tls::Certificate;
use crate::limits::{
    TUNNELS_MAX, TUNNEL_BYTES, TUNNEL_END_TIME_MAX, TUNNEL_HANDSHAKE_TIME_MAX, TUNNEL_OPTIONS_MAX, TUNNEL_STRANGERS_MAX,
};

/// The longest payload of an option that is skipped: the name of an export has at most 4096 bytes.
const OPTION_BYTES_MAX: u32 = 16 << 10;
/// Clients that wait to be accepted: the kernel accepts no more than its own limit.
const BACKLOG: u32 = 1024;

/// Addresses at which clients find TLS, and its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdTlsOptions {
    /// The addresses; port 0 means a free one.
    pub listen: Vec<SocketAddr>,
    /// The certificate chain, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Certificates of authorities, as PEM: a client must have a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

/// The addresses are taken, and the files are read; no client is accepted yet.
pub struct NbdTls {
    runtime: Runtime,
    listeners: Vec<TcpListener>,
    renewal: Renewal,
}

/// Clients are accepted. Dropped, it waits a moment for the last bytes of its clients.
pub struct NbdTlsRuns {
    ends: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NbdTls {
    /// Take the addresses. At those of `kept`, sockets listen already.
    ///
    /// # Errors
    /// One is taken; the files cannot be read, or do not belong together.
    pub fn bind(options: &NbdTlsOptions, kept: &[std::net::TcpListener]) -> Result<Self, ListenError> {
        let both = Certificate { chain: options.certificate.clone(), key: options.key.clone() };
        let renewal = Renewal::new(both, options.client_ca.clone()).map_err(ListenError)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ListenError(format!("NBD over TLS: {error}")))?;
        let entered = runtime.enter();
        let listen = |at: &SocketAddr| {
            let is_here = |kept: &&std::net::TcpListener| kept.local_addr().is_ok_and(|address| address == *at);
            let listener = match kept.iter().find(is_here) {
                Some(kept) => kept.try_clone().and_then(TcpListener::from_std),
                None => listener(*at),
            };
            listener.map_err(|error| ListenError(format!("NBD over TLS at {at}: {error}; choose another address")))
        };
        let listeners = options.listen.iter().map(listen).collect::<Result<_, _>>()?;
        drop(entered);
        Ok(Self { runtime, listeners, renewal })
    }

    /// The addresses, with the ports that the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// The TLS settings.
    #[must_use]
    pub const fn renewal(&self) -> &Renewal {
        &self.renewal
    }

    /// Accept clients, for the NBD server at this unix socket.
    ///
    /// # Errors
    /// There is no thread.
    pub fn run(self, socket: PathBuf) -> Result<NbdTlsRuns, ListenError> {
        let Self { runtime, listeners, renewal } = self;
        let (ends, ended) = oneshot::channel();
        let socket: Arc<Path> = socket.into();
        let work = move || {
            let room = Arc::new(Semaphore::new(TUNNELS_MAX as usize));
            let strangers = ConnectionPlaces::new(TUNNEL_STRANGERS_MAX, 0);
            let rooms = Rooms { strangers, clients: Arc::clone(&room) };
            for listener in listeners {
                runtime.spawn(accept(listener, renewal.clone(), Arc::clone(&socket), rooms.clone()));
            }
            runtime.block_on(async {
                // Whether it was told or dropped: it is the end. The server has closed its side by now.
                let _ = ended.await;
                let _ = timeout(TUNNEL_END_TIME_MAX, room.acquire_many(TUNNELS_MAX)).await;
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        };
        let thread = thread::Builder::new().name("nbd-tls".into()).spawn(work);
        let thread = thread.map_err(|error| ListenError(format!("NBD over TLS: {error}")))?;
        Ok(NbdTlsRuns { ends: Some(ends), thread: Some(thread) })
    }
}

impl Drop for NbdTlsRuns {
    fn drop(&mut self) {
        self.ends.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listener(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it: a client whose machine is gone does not hold its place for ever.
    socket.set_keepalive(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// The places of connections before and after their TLS handshake.
#[derive(Clone)]
struct Rooms {
    strangers: ConnectionPlaces,
    clients: Arc<Semaphore>,
}

async fn accept(listener: TcpListener, renewal: Renewal, socket: Arc<Path>, rooms: Rooms) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors have run out: wait for those of others.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let place = rooms.strangers.take();
        let (renewal, socket, clients) = (renewal.clone(), Arc::clone(&socket), Arc::clone(&rooms.clients));
        let number = place.number();
        let task = tokio::spawn(async move {
            // A client that breaks off, or has no certificate, is no news for the server.
            let _ = serve(stream, &renewal, &socket, place, clients).await;
        });
        rooms.strangers.serves(number, task.abort_handle());
    }
}

async fn serve(
    mut stream: TcpStream,
    renewal: &Renewal,
    socket: &Path,
    place: ConnectionPlace,
    clients: Arc<Semaphore>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let began = async {
        let flags = negotiate(&mut stream).await?;
        let inside = renewal.acceptor().accept(stream).await?;
        Ok::<_, io::Error>((flags, inside))
    };
    let (flags, inside) = timeout(TUNNEL_HANDSHAKE_TIME_MAX, began).await??;
    let mut inside = Whole { stream: inside, is_shut: false };
    // A client too many is closed at once.
    let Ok(_place) = clients.try_acquire_owned() else { return Ok(()) };
    drop(place);
    let mut server = UnixStream::connect(socket).await?;
    let mut greeting = [0; GREETING_BYTES];
    server.read_exact(&mut greeting).await?;
    server.write_all(&flags.to_be_bytes()).await?;
    copy_bidirectional_with_sizes(&mut inside, &mut server, TUNNEL_BYTES, TUNNEL_BYTES).await?;
    Ok(())
}

/// A client's stream that ends as a whole: when the server has closed its side and the last bytes are sent, nothing more is read. Else a
/// silent client would keep its place.
struct Whole<T> {
    stream: T,
    is_shut: bool,
}

impl<T: AsyncRead + Unpin> AsyncRead for Whole<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_shut {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Whole<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = ready!(Pin::new(&mut self.stream).poll_shutdown(context));
        self.is_shut = true;
        // Its reader is in the same task, and learns it now.
        context.waker().wake_by_ref();
        Poll::Ready(done)
    }
}

fn broken(reason: CloseReason) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// Greet a client, and refuse its options until it begins TLS. Returns its flags.
async fn negotiate<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<u32> {
    let mut greeting = Vec::with_capacity(GREETING_BYTES);
    before_tls::greet(&mut greeting);
    stream.write_all(&greeting).await?;
    let flags = stream.read_u32().await?;
    before_tls::check_flags(flags).map_err(broken)?;
    for _ in 0..TUNNEL_OPTIONS_MAX {
        let mut header = [0; OPTION_BYTES];
        stream.read_exact(&mut header).await?;
        let (option, length) = before_tls::header(&header).map_err(broken)?;
        if length > OPTION_BYTES_MAX {
            return Err(broken(CloseReason::OptionTooLong(option, length)));
        }
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        let mut reply = Vec::new();
        let answered = before_tls::answer(option, length, &mut reply);
        stream.write_all(&reply).await?;
        if answered.map_err(broken)? {
            return Ok(flags);
        }
    }
    Err(broken(CloseReason::TooManyOptions))
}
