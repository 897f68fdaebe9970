//! Listening sockets that came with the start of the server (sd_listen_fds(3)), by the addresses of the configuration.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use openraid_runtime::service::{Listen, ServiceError, VhostPlace};
use openraid_sys::{InheritedListener, ListenPlace, NetError, FIRST_INHERITED};

use crate::failure::Failure;

/// Maximum number of descriptors.
const DESCRIPTORS_MAX: usize = 256;

/// The addresses at which the server listens, apart from its control socket.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Plain NBD.
    pub nbd: Vec<Listen>,
    /// NBD over TLS.
    pub nbd_tls: Vec<SocketAddr>,
    /// NVMe/TCP.
    pub nvme: Vec<SocketAddr>,
    /// Sockets for virtual machines. Those in folders are made by the server itself.
    pub vhost: Vec<VhostPlace>,
    /// The console, and all other interfaces over HTTP.
    pub http: Option<SocketAddr>,
}

impl Addresses {
    /// All of them, in order.
    pub fn places(&self) -> Vec<ListenPlace> {
        let nbd = self.nbd.iter().map(|listen| match listen {
            Listen::Tcp(address) => ListenPlace::Tcp(*address),
            Listen::Unix(path) => ListenPlace::Unix(path.clone()),
        });
        let others = self.nbd_tls.iter().chain(&self.nvme).chain(&self.http);
        let vhost = self.vhost.iter().filter_map(VhostPlace::as_kept);
        nbd.chain(others.map(|address| ListenPlace::Tcp(*address))).chain(vhost).collect()
    }
}

/// The sockets for these addresses. All others are made by the server itself.
#[derive(Debug, Default)]
pub struct ListeningSockets {
    /// Plain NBD, NVMe/TCP, and virtual machines.
    pub plain: Vec<InheritedListener>,
    /// NBD over TLS.
    pub nbd_tls: Vec<TcpListener>,
    /// The interfaces over HTTP.
    pub http: Option<Arc<TcpListener>>,
    /// Sockets without an address, and addresses without a socket, one a line.
    pub notes: Vec<String>,
    /// Addresses without a socket that have the port of a socket without an address.
    pub crossed: CrossedSockets,
}

/// Pairs of an address at which nothing listens for this server, and a socket that came with its start and has the same port. The
/// kernel gives the port once if one of the hosts stands for all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CrossedSockets(Vec<(SocketAddr, SocketAddr)>);

impl CrossedSockets {
    fn of<'a>(
        addresses: impl Iterator<Item = &'a ListenPlace>,
        sockets: impl Iterator<Item = &'a ListenPlace> + Clone,
    ) -> Self {
        let tcp = |place: &ListenPlace| match place {
            ListenPlace::Tcp(address) => Some(*address),
            ListenPlace::Unix(_) => None,
        };
        let has_port = |asked: SocketAddr| {
            let same = sockets.clone().filter_map(tcp).filter(move |socket| socket.port() == asked.port());
            same.map(move |socket| (asked, socket))
        };
        Self(addresses.filter_map(tcp).flat_map(has_port).collect())
    }

    /// The failure of a start. If a socket that came with it is in the way of an address, that is the cause.
    pub fn explain(&self, error: ServiceError) -> Failure {
        let ServiceError::Net(NetError::InUse { address, .. }) = &error else { return error.into() };
        let Some((asked, socket)) = self.0.iter().find(|(asked, _)| asked.to_string() == *address) else {
            return error.into();
        };
        Failure::from(error).worded(in_the_way(asked, socket))
    }

    /// The same for NBD over TLS, whose failure names no address apart from its text.
    pub fn explain_tls(&self, text: String) -> Failure {
        let crossed = self.0.iter().map(|(asked, socket)| in_the_way(asked, socket));
        Failure::failed(std::iter::once(text).chain(crossed).collect::<Vec<_>>().join("\n"))
    }
}

fn in_the_way(asked: &SocketAddr, socket: &SocketAddr) -> String {
    format!(
        "{asked}: the socket {socket}, which came with the start, has this port, and the addresses must be equal: write {socket} in \
         place of {asked} in [server], or ListenStream={asked} in openraid.socket"
    )
}

/// The sockets that came with the start of this process; `None` if no other process keeps sockets for it.
///
/// # Errors
/// The variables make no sense, or a descriptor is no listening socket.
pub fn inherited() -> Result<Option<Vec<InheritedListener>>, Failure> {
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let count = count(variable("LISTEN_PID"), variable("LISTEN_FDS"), std::process::id())?;
    let Some(count) = count else { return Ok(None) };
    let take = |number| {
        InheritedListener::take(number).map_err(|why| {
            Failure::usage(format!("descriptor {number} of LISTEN_FDS={count}: {why}; name listening sockets only"))
        })
    };
    (FIRST_INHERITED..).take(count).map(take).collect::<Result<_, _>>().map(Some)
}

/// The number of descriptors for this process. Variables that are for another process were only inherited.
fn count(process: Option<String>, count: Option<String>, here: u32) -> Result<Option<usize>, Failure> {
    let (Some(process), Some(count)) = (process, count) else { return Ok(None) };
    let wrong = |name: &str, value: &str, wanted: &str| Failure::usage(format!("{name}={value}: this is not {wanted}"));
    let process: u32 = process.parse().map_err(|_| wrong("LISTEN_PID", &process, "the number of a process"))?;
    if process != here {
        return Ok(None);
    }
    let number = count.parse().ok().filter(|number| *number <= DESCRIPTORS_MAX);
    number
        .map(Some)
        .ok_or_else(|| wrong("LISTEN_FDS", &count, &format!("a number of descriptors, at most {DESCRIPTORS_MAX}")))
}

/// Find the socket of each address. Port 0 takes any socket of its host that no other address names; it is replaced by the port of
/// the socket.
///
/// # Errors
/// No descriptor is left.
pub fn assign(sockets: Option<Vec<InheritedListener>>, addresses: &mut Addresses) -> Result<ListeningSockets, Failure> {
    let Some(sockets) = sockets else { return Ok(ListeningSockets::default()) };
    let places = addresses.places();
    let mut sockets: Vec<Option<InheritedListener>> = sockets.into_iter().map(Some).collect();
    let mut found: Vec<Option<InheritedListener>> = places.iter().map(|_| None).collect();
    for is_it in [is_same, takes_any_port] {
        for (place, found) in places.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let fits =
                |socket: &&mut Option<InheritedListener>| socket.as_ref().is_some_and(|s| is_it(place, &s.place));
            *found = sockets.iter_mut().find(fits).and_then(Option::take);
        }
    }
    let mut ready = ListeningSockets::default();
    let without = places.iter().zip(&found).filter(|(_, found)| found.is_none());
    let left = sockets.iter().flatten().map(|socket| &socket.place);
    ready.crossed = CrossedSockets::of(without.clone().map(|(place, _)| place), left);
    ready.notes.extend(without.map(|(place, _)| {
        format!(
            "{place}: the process that keeps the listening sockets has none with this address, so hosts are refused here while the \
             server restarts; add ListenStream={place} to openraid.socket, or start `serve --keep-listening` again"
        )
    }));
    ready.notes.extend(sockets.into_iter().flatten().map(|socket| {
        let place = socket.place;
        format!(
            "{place}: a socket with this address came with the start, and neither the command line nor the configuration file names \
             it, so hosts that connect there get no answer; add the address to [server], or take it out of openraid.socket"
        )
    }));
    let mut found = found.into_iter();
    for listen in &mut addresses.nbd {
        let Some(kept) = found.next().flatten() else { continue };
        if let ListenPlace::Tcp(address) = &kept.place {
            *listen = Listen::Tcp(*address);
        }
        ready.plain.push(kept);
    }
    let failed = |error: std::io::Error| Failure::failed(format!("a socket that came with the start: {error}"));
    for address in &mut addresses.nbd_tls {
        let Some(kept) = found.next().flatten() else { continue };
        let listener = kept.to_std().map_err(failed)?;
        *address = listener.local_addr().map_err(failed)?;
        ready.nbd_tls.push(listener);
    }
    for address in &mut addresses.nvme {
        let Some(kept) = found.next().flatten() else { continue };
        if let ListenPlace::Tcp(kept) = &kept.place {
            *address = *kept;
        }
        ready.plain.push(kept);
    }
    let http = addresses.http.and_then(|_| found.next().flatten());
    ready.http = http.map(|kept| kept.to_std().map(Arc::new)).transpose().map_err(failed)?;
    ready.plain.extend(found.flatten());
    Ok(ready)
}

fn is_same(place: &ListenPlace, socket: &ListenPlace) -> bool {
    place == socket
}

fn takes_any_port(place: &ListenPlace, socket: &ListenPlace) -> bool {
    match (place, socket) {
        (ListenPlace::Tcp(asked), ListenPlace::Tcp(address)) => asked.port() == 0 && asked.ip() == address.ip(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::fd::IntoRawFd;

    use super::*;
    use crate::failure::Exit;

    #[test]
    fn descriptors_are_taken_only_if_the_variables_name_this_process() {
        let count = |process: &str, fds: &str| count(Some(process.into()), Some(fds.into()), 7);
        assert_eq!((count("7", "2"), count("8", "2"), count("8", "junk")), (Ok(Some(2)), Ok(None), Ok(None)));
        for (process, fds) in [("7", "junk"), ("7", "-1"), ("7", ""), ("7", "100000"), ("junk", "1")] {
            let refused = count(process, fds).expect_err("no number");
            assert_eq!(refused.exit, Exit::Usage, "{}", refused.text());
        }
        assert_eq!(super::count(None, Some("2".into()), 7), Ok(None));
    }

    fn socket() -> (InheritedListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        (InheritedListener::take(listener.into_raw_fd()).expect("it listens"), address)
    }

    #[test]
    fn each_address_finds_its_socket_and_the_others_are_named() {
        let ((one, first), (two, second), (three, third)) = (socket(), socket(), socket());
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 1));
        let nbd = vec![Listen::Tcp(any), Listen::Tcp(other)];
        let mut addresses = Addresses { nbd, nbd_tls: vec![first], ..Addresses::default() };
        let ready = assign(Some(vec![one, two, three]), &mut addresses).expect("descriptors");
        // Port 0 comes last, and does not take the socket of TLS.
        assert_eq!(addresses.nbd, [Listen::Tcp(second), Listen::Tcp(other)]);
        assert_eq!(ready.plain.iter().map(|kept| kept.place.clone()).collect::<Vec<_>>(), [ListenPlace::Tcp(second)]);
        assert_eq!(ready.nbd_tls[0].local_addr().expect("bound"), first);
        let [without, left] = ready.notes.as_slice() else { panic!("{:?}", ready.notes) };
        assert!(without.starts_with("127.0.0.2:1: ") && without.contains("ListenStream=127.0.0.2:1"), "{without}");
        assert!(left.starts_with(&format!("{third}: ")) && left.contains("get no answer"), "{left}");
        let mut none = Addresses { nbd: vec![Listen::Tcp(any)], ..Addresses::default() };
        assert!(assign(None, &mut none).expect("nothing came").notes.is_empty(), "the server listens itself");
    }
}
