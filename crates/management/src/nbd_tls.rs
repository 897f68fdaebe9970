//! NBD over TLS: clients negotiate `STARTTLS` here, and the bytes inside go to a unix socket of the server, as if each client had
//! connected there.
//!
//! ```text
//!  client --greeting, flags, STARTTLS--> (refuses all else) --TLS handshake--> flags to the socket --bytes both ways-->
//!       \--too slow, another protocol, no certificate of the authority--------> closed
//! ```
//!
//! It has a thread of its own, so that neither the loop of a shard nor the requests of HTTP wait for encryption. It must never pass on a
//! byte that came before TLS, except the client's flags. Source: `doc/proto.md` of the NBD project, baseline and `SELECTIVETLS`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use openraid_nbd::server::before_tls::{self, GREETING_BYTES, OPTION_BYTES};
use openraid_nbd::server::CloseReason;
use tokio::io::{copy_bidirectional_with_sizes, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::listen::StartError;
use crate::http::renew::Renewal;
use crate::http::tls::Certificate;
use crate::limits::{TUNNELS_MAX, TUNNEL_BYTES, TUNNEL_END_TIME_MAX, TUNNEL_HANDSHAKE_TIME_MAX, TUNNEL_OPTIONS_MAX};

/// The longest payload of an option that is skipped: the name of an export has at most 4096 bytes.
const OPTION_BYTES_MAX: u32 = 16 << 10;
/// Clients that wait to be accepted.
const BACKLOG: u32 = 128;

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
    /// Take the addresses.
    ///
    /// # Errors
    /// One is taken; the files cannot be read, or do not belong together.
    pub fn bind(options: &NbdTlsOptions) -> Result<Self, StartError> {
        let both = Certificate { chain: options.certificate.clone(), key: options.key.clone() };
        let renewal = Renewal::new(both, options.client_ca.clone()).map_err(StartError)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StartError(format!("NBD over TLS: {error}")))?;
        let entered = runtime.enter();
        let listen = |at: &SocketAddr| {
            listener(*at).map_err(|error| StartError(format!("NBD over TLS at {at}: {error}; choose another address")))
        };
        let listeners = options.listen.iter().map(listen).collect::<Result<_, _>>()?;
        drop(entered);
        Ok(Self { runtime, listeners, renewal })
    }

    /// The addresses, with the ports that the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|own| own.local_addr().ok()).collect()
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
    pub fn run(self, socket: PathBuf) -> Result<NbdTlsRuns, StartError> {
        let Self { runtime, listeners, renewal } = self;
        let (ends, ended) = oneshot::channel();
        let socket: Arc<Path> = socket.into();
        let work = move || {
            let room = Arc::new(Semaphore::new(TUNNELS_MAX as usize));
            for listener in listeners {
                runtime.spawn(accept(listener, renewal.clone(), Arc::clone(&socket), Arc::clone(&room)));
            }
            runtime.block_on(async {
                // Whether it was told or dropped: it is the end. The server has closed its side by now.
                let _ = ended.await;
                let _ = timeout(TUNNEL_END_TIME_MAX, room.acquire_many(TUNNELS_MAX)).await;
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        };
        let thread = thread::Builder::new().name("nbd-tls".into()).spawn(work);
        let thread = thread.map_err(|error| StartError(format!("NBD over TLS: {error}")))?;
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

async fn accept(listener: TcpListener, renewal: Renewal, socket: Arc<Path>, room: Arc<Semaphore>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors have run out: wait for those of others.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // A client too many is closed at once.
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (renewal, socket) = (renewal.clone(), Arc::clone(&socket));
        tokio::spawn(async move {
            // A client that breaks off, or has no certificate, is no news for the server.
            let _ = serve(stream, &renewal, &socket, place).await;
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    renewal: &Renewal,
    socket: &Path,
    _place: OwnedSemaphorePermit,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let began = async {
        let flags = negotiate(&mut stream).await?;
        let inside = renewal.acceptor().accept(stream).await?;
        Ok::<_, io::Error>((flags, inside))
    };
    let (flags, mut inside) = timeout(TUNNEL_HANDSHAKE_TIME_MAX, began).await??;
    let mut server = UnixStream::connect(socket).await?;
    let mut greeting = [0; GREETING_BYTES];
    server.read_exact(&mut greeting).await?;
    server.write_all(&flags.to_be_bytes()).await?;
    copy_bidirectional_with_sizes(&mut inside, &mut server, TUNNEL_BYTES, TUNNEL_BYTES).await?;
    Ok(())
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
