//! The thread: it accepts connections, and closes excess and slow ones.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::certificate_renewal::Renewal;
use super::connection_places::{ConnectionPlace, ConnectionPlaces};
use super::serve::serve;
use super::slow_client::Patient;
use super::tls;
use crate::auth::sessions::Sessions;
use crate::auth::tokens::{RevokeError, Tokens};
use crate::auth::users::Users;
use crate::controller::Controller;
use crate::limits::{
    CONNECTIONS_MAX, GUESTS_MAX, HANDSHAKE_TIME_MAX, HEADERS_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, WORKERS_MAX,
};
use crate::machine_facts::MachineIdentity;
use crate::shared_state::{ApiState, Parts};
use openraid_status::Role;

/// How the interfaces are started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address; port 0 means a free one.
    pub listen: SocketAddr,
    /// A socket that listens there already.
    pub kept: Option<Arc<TcpListener>>,
    /// The folder of the users and of the certificate that is made here.
    pub folder: PathBuf,
    /// The administrator's certificate and key, as PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Certificates of authorities, as PEM: clients without a certificate of one of them get no answer, whatever their address.
    pub client_ca: Option<PathBuf>,
    /// Host names by which clients may come.
    pub names: Vec<String>,
    /// Give metrics also under the names that node_exporter has for md.
    pub metrics_md: bool,
    /// Drives that new arrays may be made of: absolute paths and addresses.
    pub drives: Vec<String>,
}

/// Why the interfaces do not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListenError(pub String);

/// The interfaces at work. Dropped, they end.
pub struct Management {
    state: Arc<ApiState>,
    address: SocketAddr,
    renewal: Option<Renewal>,
    _ends: oneshot::Sender<()>,
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Management at {}", self.address)
    }
}

impl Management {
    /// Listen, and answer from a thread of their own.
    ///
    /// # Errors
    /// The address is taken, or the certificate cannot be read.
    pub fn start(options: Options, controller: Arc<dyn Controller>) -> Result<Self, ListenError> {
        let fault = |error: io::Error| ListenError(format!("HTTP at {}: {error}", options.listen));
        let is_loopback = options.listen.ip().is_loopback();
        let names: Vec<String> =
            MachineIdentity::here().host.into_iter().chain(options.names.iter().cloned()).collect();
        let is_plain = is_loopback && options.client_ca.is_none();
        let certificate = match (&options.certificate, is_plain) {
            (Some((chain, key)), _) => Some(tls::Certificate { chain: chain.clone(), key: key.clone() }),
            (None, true) => None,
            (None, false) => {
                let mut all = names.clone();
                all.extend(["localhost".into(), own_address(options.listen).to_string()]);
                Some(tls::make(&options.folder, &all).map_err(ListenError)?)
            }
        };
        let renewal = certificate.map(|certificate| Renewal::new(certificate, options.client_ca.clone())).transpose();
        let renewal = renewal.map_err(ListenError)?;
        let users = Users::at(options.folder.join("users.json"));
        let tokens = Tokens::at(options.folder.join("tokens.json"));
        let sessions = Sessions::at(options.folder.join("sessions.json"));
        let listener = match &options.kept {
            Some(kept) => kept.try_clone(),
            None => TcpListener::bind(options.listen),
        };
        let listener = listener.map_err(fault)?;
        listener.set_nonblocking(true).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let is_tls = renewal.is_some();
        let (metrics_md, drives) = (options.metrics_md, options.drives);
        let parts = Parts { controller, users, sessions, tokens, names, is_tls, is_loopback, metrics_md, drives };
        let state = Arc::new(ApiState::new(parts));
        let (ends, ended) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(WORKERS_MAX).build();
        let runtime = runtime.map_err(fault)?;
        let (shared, settings) = (Arc::clone(&state), renewal.clone());
        let run = move || {
            runtime.spawn(async move {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    accept(listener, shared, settings).await;
                }
            });
            // The end, whether the sender sent it or was dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_timeout(Duration::from_millis(100));
        };
        thread::Builder::new().name("management".into()).spawn(run).map_err(fault)?;
        Ok(Self { state, address, renewal, _ends: ends })
    }

    /// The TLS settings, if it speaks TLS.
    #[must_use]
    pub const fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_ref()
    }

    /// The address of the console.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.state.is_tls { "https" } else { "http" };
        let shown = SocketAddr::new(own_address(self.address), self.address.port());
        format!("{scheme}://{shown}/")
    }

    /// A link that signs in once, with this role.
    #[must_use]
    pub fn login(&self, role: Role) -> String {
        format!("{}#login={}", self.url(), self.state.sessions.link(role))
    }

    /// A token for scripts, with this role: `Authorization: Bearer TOKEN`. It ends as other sessions do.
    #[must_use]
    pub fn token(&self, role: Role) -> String {
        self.state.sessions.begin(role.word(), role, true).0
    }

    /// A token with this name and role that lasts until it is revoked.
    ///
    /// # Errors
    /// The name is taken, or the file of tokens cannot be written.
    pub fn lasting_token(&self, name: &str, role: Role) -> Result<String, String> {
        self.state.tokens.make(name, role).map(|(secret, _)| secret)
    }

    /// Revoke the token of this name.
    ///
    /// # Errors
    /// There is none, or the file of tokens cannot be written.
    pub fn revoke(&self, name: &str) -> Result<(), RevokeError> {
        self.state.tokens.revoke(name)
    }

    /// The files of users and tokens that cannot be read, each with its name and the reason. Until they can, no sign-in with
    /// their content works, and no change replaces them.
    #[must_use]
    pub fn unreadable(&self) -> Vec<(&'static str, String)> {
        let users = self.state.users.all().err().map(|why| ("users", why));
        users.into_iter().chain(self.state.tokens.all().err().map(|why| ("tokens", why))).collect()
    }

    /// Are there users yet?
    #[must_use]
    pub fn has_users(&self) -> bool {
        self.state.users.all().is_ok_and(|users| !users.is_empty())
    }
}

/// An address at which others find this one: a server that listens everywhere has the address by which it would go out.
fn own_address(listen: SocketAddr) -> IpAddr {
    if !listen.ip().is_unspecified() {
        return listen.ip();
    }
    // Nothing is sent: the kernel only chooses the way.
    let way = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| socket.connect(("192.0.2.1", 9)).map(|()| socket));
    way.and_then(|socket| socket.local_addr()).map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<ApiState>, settings: Option<Renewal>) {
    let places = ConnectionPlaces::new(GUESTS_MAX, CONNECTIONS_MAX);
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Out of descriptors, for example: that passes.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let place = places.take();
        let (state, settings, number) = (Arc::clone(&state), settings.clone(), place.number());
        let task = tokio::spawn(connection(stream, peer.ip(), state, settings, Arc::new(place)));
        places.serves(number, task.abort_handle());
    }
}

async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    state: Arc<ApiState>,
    settings: Option<Renewal>,
    place: Arc<ConnectionPlace>,
) {
    let _ = stream.set_nodelay(true);
    match settings {
        None => talk(stream, peer, state, place).await,
        Some(settings) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME_MAX, settings.acceptor().accept(stream)).await {
                talk(stream, peer, state, place).await;
            }
        }
    }
}

async fn talk<T: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: T,
    peer: IpAddr,
    state: Arc<ApiState>,
    place: Arc<ConnectionPlace>,
) {
    let service = service_fn(move |request| serve(request, peer, Arc::clone(&state), Arc::clone(&place)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    // A client that breaks off, or is too slow, is no fault of this server's.
    let _ = http.serve_connection(TokioIo::new(Patient::new(stream)), service).await;
}
