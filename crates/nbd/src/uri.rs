//! Addresses of exports: `nbd://host:port/export` and `nbd+unix:///export?socket=path`.
//!
//! Source: `doc/uri.md` of the NBD project and RFC 3986. Unsupported parts (TLS, user names, unknown parameters) give
//! an error and are never ignored, because a mistyped address must not lead to another export.

use crate::limits::STRING_MAX;
use core::fmt;
use core::str::FromStr;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The port that IANA assigned to NBD.
pub const PORT_DEFAULT: u16 = 10809;

/// The transport to the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP to a host name or address (IPv6 without brackets) and port.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket. A path that begins with a NUL byte is in the abstract name space.
    Unix {
        /// Path of the socket.
        socket: PathBuf,
    },
}

/// An address of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdUri {
    /// The transport to the server.
    pub transport: Transport,
    /// Name of the export; empty for the default one.
    pub export: String,
}

/// The reason why an address cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UriError {
    /// The scheme is not one of NBD's; the text of the scheme.
    Scheme(String),
    /// The scheme requires TLS.
    Tls(String),
    /// The address is in an old notation of qemu.
    OldNotation,
    /// The address of a TCP connection has no host.
    NoHost,
    /// The port is not a number from 1 to 65535; its text.
    Port(String),
    /// The brackets of an IPv6 address do not match, or an address with colons has no brackets.
    Brackets(String),
    /// The address has a user name, which only has a meaning with TLS.
    UserName,
    /// The address of a unix socket has a host; its text.
    HostWithUnix(String),
    /// The address of a unix socket has no `socket=`.
    NoSocket,
    /// The address of a TCP connection has a `socket=`.
    SocketWithTcp,
    /// A parameter is unknown, or appears twice.
    Parameter(String),
    /// A percent sign is not followed by two hexadecimal digits; the text from it on.
    Percent(String),
    /// A decoded text is not UTF-8, contains a NUL byte, or is too long.
    BadText(&'static str),
    /// The address has a part after `#`.
    Fragment,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => {
                write!(
                    f,
                    "{scheme:?} is not an NBD address; use nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH"
                )
            }
            Self::Tls(scheme) => write!(
                f,
                "{scheme}:// demands TLS, which is not supported yet; use nbd:// over a trusted network or a tunnel"
            ),
            Self::OldNotation => f.write_str(
                "this is an old notation; write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH instead",
            ),
            Self::NoHost => f.write_str("the address has no host; write nbd://HOST/EXPORT"),
            Self::Port(port) => write!(f, "{port:?} is not a port; it must be a number from 1 to 65535"),
            Self::Brackets(host) => {
                write!(f, "{host:?} is not a host; write an IPv6 address in brackets: nbd://[::1]/")
            }
            Self::UserName => f.write_str("a user name is only of use with TLS; remove the part before @"),
            Self::HostWithUnix(host) => {
                write!(f, "{host:?} is not expected there; a unix socket needs nbd+unix:///EXPORT?socket=PATH")
            }
            Self::NoSocket => f.write_str("the path of the unix socket is missing; add ?socket=PATH"),
            Self::SocketWithTcp => f.write_str("socket= belongs to nbd+unix://, not to nbd://"),
            Self::Parameter(name) => write!(f, "the parameter {name:?} is not known here, or is given twice"),
            Self::Percent(rest) => write!(f, "{rest:?} does not start with % and two hexadecimal digits"),
            Self::BadText(what) => write!(f, "{what}"),
            Self::Fragment => f.write_str("the address has a part after #; write %23 if it belongs to the name"),
        }
    }
}

impl std::error::Error for UriError {}

impl FromStr for NbdUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = split_scheme(text)?;
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], &rest[slash + 1..]),
            None => (rest, ""),
        };
        let export = String::from_utf8(decode(path)?).map_err(|_| UriError::BadText("the export name is not UTF-8"))?;
        if export.len() > STRING_MAX || export.contains('\0') {
            return Err(UriError::BadText("an export name has at most 4096 bytes and no NUL"));
        }
        let socket = socket_of(query)?;
        let transport = match (scheme, socket) {
            (Scheme::Unix, _) if !authority.is_empty() => return Err(UriError::HostWithUnix(authority.into())),
            (Scheme::Unix, Some(socket)) => Transport::Unix { socket },
            (Scheme::Unix, None) => return Err(UriError::NoSocket),
            (Scheme::Tcp, Some(_)) => return Err(UriError::SocketWithTcp),
            (Scheme::Tcp, None) => host_and_port(authority)?,
        };
        Ok(Self { transport, export })
    }
}

#[derive(Clone, Copy)]
enum Scheme {
    Tcp,
    Unix,
}

fn split_scheme(text: &str) -> Result<(Scheme, &str), UriError> {
    let Some((scheme, rest)) = text.split_once("://") else {
        let old = text.starts_with("nbd:");
        return Err(if old { UriError::OldNotation } else { UriError::Scheme(text.into()) });
    };
    match scheme.to_ascii_lowercase().as_str() {
        "nbd" => Ok((Scheme::Tcp, rest)),
        "nbd+unix" => Ok((Scheme::Unix, rest)),
        "nbds" | "nbds+unix" => Err(UriError::Tls(scheme.into())),
        _ => Err(UriError::Scheme(text.into())),
    }
}

fn host_and_port(authority: &str) -> Result<Transport, UriError> {
    if authority.contains('@') {
        return Err(UriError::UserName);
    }
    let brackets = || UriError::Brackets(authority.into());
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, rest) = inner.split_once(']').ok_or_else(brackets)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => port,
            None if rest.is_empty() => "",
            None => return Err(brackets()),
        };
        host.parse::<std::net::Ipv6Addr>().map_err(|_| brackets())?;
        (host.to_owned(), port)
    } else {
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        if port.contains(':') || host.contains([']', '[']) {
            return Err(brackets());
        }
        let host = String::from_utf8(decode(host)?).map_err(|_| UriError::BadText("the host name is not UTF-8"))?;
        if host.contains(':') {
            return Err(brackets());
        }
        (host, port)
    };
    if host.is_empty() {
        return Err(UriError::NoHost);
    }
    if host.contains('\0') {
        return Err(UriError::BadText("the host name contains a NUL"));
    }
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port {
        "" => PORT_DEFAULT,
        _ => port.parse().ok().filter(|n| *n != 0 && digits).ok_or_else(|| UriError::Port(port.into()))?,
    };
    Ok(Transport::Tcp { host, port })
}

fn socket_of(query: &str) -> Result<Option<PathBuf>, UriError> {
    let mut socket = None;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "socket" if socket.is_none() => {
                let path = decode(value)?;
                if path.is_empty() {
                    return Err(UriError::NoSocket);
                }
                if path[1..].contains(&0) {
                    return Err(UriError::BadText("the path of the socket contains a NUL"));
                }
                socket = Some(PathBuf::from(OsString::from_vec(path)));
            }
            _ => return Err(UriError::Parameter(name.into())),
        }
    }
    Ok(socket)
}

/// By hand, because a bad `%` is an error here, and the crate `percent-encoding` passes it on as it is.
fn decode(text: &str) -> Result<Vec<u8>, UriError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'%' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let digit = |index: usize| bytes.get(index).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else {
            return Err(UriError::Percent(String::from_utf8_lossy(&bytes[at..]).into_owned()));
        };
        out.push(u8::try_from(high << 4 | low).expect("two hexadecimal digits are a byte"));
        at += 3;
    }
    Ok(out)
}

/// Encodes `bytes` so that [`decode`] returns the same bytes; `/` stays readable.
fn encode(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            write!(f, "{}", char::from(*byte))
        }
        other => write!(f, "%{other:02X}"),
    })
}

impl fmt::Display for NbdUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transport {
            Transport::Tcp { host, port } => {
                f.write_str("nbd://")?;
                if host.contains(':') {
                    write!(f, "[{host}]")?;
                } else {
                    encode(host.as_bytes(), f)?;
                }
                if *port != PORT_DEFAULT {
                    write!(f, ":{port}")?;
                }
                f.write_str("/")?;
                encode(self.export.as_bytes(), f)
            }
            Transport::Unix { socket } => {
                f.write_str("nbd+unix:///")?;
                encode(self.export.as_bytes(), f)?;
                f.write_str("?socket=")?;
                encode(socket.as_os_str().as_bytes(), f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp(host: &str, port: u16, export: &str) -> NbdUri {
        NbdUri { transport: Transport::Tcp { host: host.into(), port }, export: export.into() }
    }

    fn unix(socket: &str, export: &str) -> NbdUri {
        NbdUri { transport: Transport::Unix { socket: socket.into() }, export: export.into() }
    }

    #[test]
    fn the_examples_of_the_uri_document_mean_what_it_says() {
        for (text, expected) in [
            ("nbd://example.com/disk", tcp("example.com", 10809, "disk")),
            ("nbd+unix:///disk?socket=sock", unix("sock", "disk")),
            ("nbd://example.com/", tcp("example.com", 10809, "")),
            ("nbd://example.com", tcp("example.com", 10809, "")),
            ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
            ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
            ("nbd://example.com:10810/export", tcp("example.com", 10810, "export")),
            ("nbd+unix:///?socket=%00/abstract", unix("\0/abstract", "")),
            ("NBD://[::1]:1/x", tcp("::1", 1, "x")),
            ("nbd://[fe80::1]/a/b%2Fc", tcp("fe80::1", 10809, "a/b/c")),
            ("nbd+unix://?socket=/run/a%26b", unix("/run/a&b", "")),
            ("nbd://h:/x", tcp("h", 10809, "x")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_unsupported_uri_is_refused_with_a_reason() {
        for (text, expected) in [
            ("nbds://h/x", UriError::Tls("nbds".into())),
            ("nbds+unix:///x?socket=s", UriError::Tls("nbds+unix".into())),
            ("nbd:unix:/s:exportname=x", UriError::OldNotation),
            ("http://h/", UriError::Scheme("http://h/".into())),
            ("/dev/sda", UriError::Scheme("/dev/sda".into())),
            ("nbd:///x", UriError::NoHost),
            ("nbd://:10809/x", UriError::NoHost),
            ("nbd://h:0/", UriError::Port("0".into())),
            ("nbd://h:65536/", UriError::Port("65536".into())),
            ("nbd://h:+1/", UriError::Port("+1".into())),
            ("nbd://::1/", UriError::Brackets("::1".into())),
            ("nbd://[::1/", UriError::Brackets("[::1".into())),
            ("nbd://[::1]x/", UriError::Brackets("[::1]x".into())),
            ("nbd://[host]/", UriError::Brackets("[host]".into())),
            ("nbd://a%3Ab/", UriError::Brackets("a%3Ab".into())),
            ("nbd://me@h/", UriError::UserName),
            ("nbd+unix://h/x?socket=s", UriError::HostWithUnix("h".into())),
            ("nbd+unix:///x", UriError::NoSocket),
            ("nbd+unix:///x?socket=", UriError::NoSocket),
            ("nbd://h/x?socket=s", UriError::SocketWithTcp),
            ("nbd://h/x?tls-type=psk", UriError::Parameter("tls-type".into())),
            ("nbd+unix:///x?socket=a&socket=b", UriError::Parameter("socket".into())),
            ("nbd://h/%2", UriError::Percent("%2".into())),
            ("nbd://h/%zz1", UriError::Percent("%zz1".into())),
            ("nbd://h/%ff", UriError::BadText("the export name is not UTF-8")),
            ("nbd://h/%00", UriError::BadText("an export name has at most 4096 bytes and no NUL")),
            ("nbd://h/a#b", UriError::Fragment),
        ] {
            let parsed: Result<NbdUri, UriError> = text.parse();
            assert_eq!(parsed, Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_address_that_is_printed_reads_back(host in "[a-z0-9.-]{1,20}", port in 1u16.., export in "\\PC{0,40}") {
            let uri = tcp(&host, port, &export);
            prop_assert_eq!(uri.to_string().parse(), Ok(uri));
            let uri = unix(&format!("/run/{export}"), &export);
            prop_assert_eq!(uri.to_string().parse(), Ok(uri));
        }

        #[test]
        fn any_text_is_an_address_or_an_error(text in "(nbd(\\+unix)?://)?\\PC{0,60}") {
            if let Ok(uri) = text.parse::<NbdUri>() {
                prop_assert_eq!(uri.to_string().parse(), Ok(uri));
            }
        }
    }
}
