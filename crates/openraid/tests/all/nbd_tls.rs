//! NBD over TLS: libnbd and qemu-img read and write with a certificate of the named authority, and no other client gets a byte.

use crate::support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::client::Client;
use crate::support::{Lab, READ};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A program's success, and what it printed; `None` if it is not installed.
fn said(lab: &Lab, program: &str, words: &[&str]) -> Option<(bool, String)> {
    let ran = Command::new(program).args(words).current_dir(&lab.folder).output().ok()?;
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    Some((ran.status.success(), text))
}

/// A key and a certificate: of an authority by this name, or of a machine, signed by that one.
fn certify(lab: &Lab, name: &str, authority: Option<&str>) -> bool {
    let subject = format!("/CN={name}");
    let [key, out] = ["key", "pem"].map(|end| format!("{name}.{end}"));
    let mut words = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    words.extend(["-days", "2", "-subj", &subject, "-keyout", &key, "-out", &out]);
    let signer = authority.map(|name| [format!("{name}.pem"), format!("{name}.key")]);
    match &signer {
        Some([certificate, key]) => words.extend([
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-CA",
            certificate,
            "-CAkey",
            key,
        ]),
        None => words.extend(["-addext", "keyUsage=critical,keyCertSign"]),
    }
    let Some((fine, text)) = said(lab, "openssl", &words) else { return false };
    assert!(fine, "{text}");
    true
}

/// A folder with the names that libnbd and qemu look for.
fn folder(lab: &Lab, name: &str, client: Option<&str>) -> String {
    let place = lab.path(name);
    fs::create_dir(&place).expect("room");
    fs::copy(lab.path("ca.pem"), place.join("ca-cert.pem")).expect("a file");
    if let Some(client) = client {
        fs::copy(lab.path(&format!("{client}.pem")), place.join("client-cert.pem")).expect("a file");
        fs::copy(lab.path(&format!("{client}.key")), place.join("client-key.pem")).expect("a file");
    }
    place.display().to_string()
}

/// All that a server answers to these bytes, after its greeting and until it closes the connection.
fn answer(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream.write_all(bytes).expect("sent");
    let mut all = Vec::new();
    // A connection that is reset has ended too.
    let _ = stream.read_to_end(&mut all);
    assert_eq!(all[..18], *b"NBDMAGICIHAVEOPT\0\x03");
    all.split_off(18)
}

fn option(number: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short");
    [b"IHAVEOPT".as_slice(), &number.to_be_bytes(), &length.to_be_bytes(), payload].concat()
}

/// Clients of another authority, without a certificate, without TLS; and bytes that are no NBD, or come at the wrong moment.
fn others_get_nothing(lab: &Lab, address: SocketAddr) {
    let port = address.port();
    let uri = |folder: &str| format!("nbds://localhost:{port}/data?tls-certificates={folder}");
    let plain = format!("nbd://localhost:{port}/data");
    for refused in [uri(&folder(lab, "with-stranger", Some("stranger"))), uri(&folder(lab, "with-none", None)), plain] {
        let (fine, text) = said(lab, "nbdinfo", &[&refused]).expect("it is there");
        assert!(!fine, "{refused}: {text}");
    }
    // Bytes that are no NBD, an export without TLS, and bytes that come with the request for TLS.
    assert_eq!(answer(address, b"GET / HTTP/1.1\r\n\r\n"), b"");
    let flags = 3_u32.to_be_bytes();
    assert_eq!(answer(address, &[&flags[..], &option(1, b"data")].concat()), b"");
    let refusal = answer(address, &[&flags[..], &option(3, b""), &option(2, b"")].concat());
    assert_eq!(refusal[..20], *b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x03\x80\0\0\x05\0\0\0\x1f");
    let injected = answer(address, &[&flags[..], &option(5, b""), &option(1, b"data")].concat());
    assert_eq!(injected[..20], *b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x05\0\0\0\x01\0\0\0\0");
    assert!(injected.len() < 60, "no more than an alert of TLS follows: {injected:?}");
}

#[test]
fn clients_with_a_certificate_of_the_authority_read_and_write_and_no_others() {
    let lab = Lab::new("nbd-tls");
    for (name, authority) in [("ca", None), ("other", None), ("server", Some("ca")), ("good", Some("ca"))] {
        if !certify(&lab, name, authority) {
            return support::missing("openssl is not installed");
        }
    }
    certify(&lab, "stranger", Some("other"));
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let path = |name: &str| lab.path(name).display().to_string();
    let tls = |certificate: &str| {
        format!(
            "nbd-tls = [\"127.0.0.1:0\"]\nnbd-tls-certificate = \"{}\"\nnbd-tls-key = \"{}\"\nnbd-tls-client-ca = \"{}\"\n",
            path(certificate),
            path("server.key"),
            path("ca.pem")
        )
    };
    // Files that do not belong together are found before the start, and at the start.
    lab.configure(&tls("good.pem"));
    let words = ["server.nbd-tls-key: ", "this is not the key of the certificate in"];
    lab.line("config check openraid.toml").refused(65, &words);
    lab.line("serve --config openraid.toml").refused(74, &words[1..]);
    lab.configure("nbd-tls = [\"127.0.0.1:0\"]\n");
    lab.line("config check openraid.toml").refused(65, &["nbd-tls: the certificate or its key is missing"]);
    lab.configure(&tls("server.pem"));
    lab.line("config check openraid.toml").expect(0);
    let server = lab.serve_configured();
    let shown = lab.show("data");
    let addresses = shown["addresses"].as_array().expect("a list");
    let listed = addresses
        .iter()
        .filter_map(|address| address.as_str())
        .find(|address| address.starts_with("nbds://"))
        .expect("an address");
    let address: SocketAddr = listed.split('/').nth(2).and_then(|text| text.parse().ok()).expect("host and port");
    let uri = |folder: &str| format!("nbds://localhost:{}/data?tls-certificates={folder}", address.port());
    let good = folder(&lab, "with-good", Some("good"));
    let content: Vec<u8> = (0..4_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(lab.path("content"), &content).expect("room");
    let Some((fine, text)) = said(&lab, "nbdcopy", &["content", &uri(&good)]) else {
        return support::missing("nbdcopy is not installed (package libnbd-bin)");
    };
    assert!(fine, "{text}");
    // The same bytes, without TLS.
    let inside = format!("nbd+unix:///data?socket={}", path("nbd.sock"));
    let (fine, text) = said(&lab, "nbdcopy", &[&inside, "inside"]).expect("it is there");
    assert!(fine && fs::read(lab.path("inside")).expect("a file")[..content.len()] == content, "{text}");
    let (fine, text) = said(&lab, "nbdcopy", &[&uri(&good), "back"]).expect("it is there");
    assert!(fine && fs::read(lab.path("back")).expect("a file")[..content.len()] == content, "{text}");
    let (port, size) = (address.port(), format!("({} bytes)", shown["size_bytes"]));
    let creds = format!("tls-creds-x509,id=t,dir={good},endpoint=client");
    let image = format!("driver=nbd,host=localhost,port={port},export=data,tls-creds=t");
    match said(&lab, "qemu-img", &["info", "--object", &creds, "--image-opts", &image]) {
        Some((fine, text)) => assert!(fine && text.contains(&size), "{text}"),
        None => support::missing("qemu-img is not installed (package qemu-utils)"),
    }
    others_get_nothing(&lab, address);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.ask(READ, 0, &[0; 4096]), 0, "others go on");
    server.stop();
}

/// A client of NBD inside TLS: what it sends and gets after `STARTTLS`.
fn tunnel(lab: &Lab, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(lab.path("ca.pem")).expect("a certificate")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("TLS 1.3");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream.write_all(&[&3_u32.to_be_bytes()[..], &option(5, b"")].concat()).expect("sent");
    stream.read_exact(&mut [0; 18 + 20]).expect("greeting and answer");
    let name = "localhost".try_into().expect("a name");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("TLS"), stream)
}

/// The address of NBD over TLS of a server.
fn address_of(lab: &Lab) -> SocketAddr {
    let shown = lab.show("data");
    let all = shown["addresses"].as_array().expect("a list").iter().filter_map(|address| address.as_str());
    let endpoint =
        all.filter_map(|address| address.strip_prefix("nbds://")?.split('/').next()).next().expect("an address");
    endpoint.parse().expect("host and port")
}

/// The answer to a request for the list of exports: one of four bytes, and the end.
fn lists(stream: &mut (impl Read + Write)) {
    stream.write_all(&option(3, b"")).expect("the connection is there");
    let mut answer = [0; 20 + 8 + 20];
    stream.read_exact(&mut answer).expect("the connection is there");
    assert_eq!((&answer[12..16], &answer[24..28]), (&[0, 0, 0, 2][..], &b"data"[..]));
}

/// A request over HTTP, and the head of its answer, on a connection that stays.
fn asks(client: &mut Child) -> String {
    let input = client.stdin.as_mut().expect("a pipe");
    input.write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the connection is there");
    let (mut head, output) = (Vec::new(), client.stdout.as_mut().expect("a pipe"));
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        output.read_exact(&mut byte).expect("the connection is there");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

/// What openssl says of the certificate that it meets, and of the one in a file.
fn serial_met(lab: &Lab, port: &str) -> String {
    let client =
        format!("openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509 -noout -serial");
    said(lab, "sh", &["-c", &client]).expect("a shell").1
}

fn serial_in(lab: &Lab, file: &str) -> String {
    said(lab, "openssl", &["x509", "-noout", "-serial", "-in", file]).expect("openssl").1
}

/// Files at other paths are taken without a restart; one that is named for the first time is not.
fn other_paths(lab: &Lab, port: &str) {
    let named = |certificate: &str, more: &str| {
        lab.configure(&format!(
            "nbd-tls = [\"127.0.0.1:0\"]\nnbd-tls-certificate = \"@/{certificate}.pem\"\nnbd-tls-key = \"@/{certificate}.key\"\n\
             {more}[management]\nlisten = \"127.0.0.1:0\"\ncertificate = \"@/{certificate}.pem\"\nkey = \"@/{certificate}.key\"\n"
        ));
    };
    named("missing", "");
    lab.line("reload").refused(65, &["missing.key", "No such file"]);
    assert_eq!(serial_met(lab, port), serial_in(lab, "second.pem"));
    named("first", "nbd-tls-client-ca = \"@/newer.pem\"\n");
    let told = lab.line("reload").expect(0).text();
    assert_eq!(told.matches("first.pem read again").count(), 1, "{told}");
    assert!(told.contains("server.nbd-tls-client-ca") && !told.contains("server.nbd-tls-key"), "{told}");
    assert!(!told.contains("management."), "{told}");
    assert_eq!(serial_met(lab, port), serial_in(lab, "first.pem"));
}

#[test]
fn a_renewed_certificate_is_met_after_a_reload_and_no_connection_is_lost() {
    let lab = Lab::new("renewed");
    for (name, authority) in [("ca", None), ("newer", None), ("first", Some("ca")), ("second", Some("newer"))] {
        if !certify(&lab, name, authority) {
            return support::missing("openssl is not installed");
        }
    }
    let put = |certificate: &str, key: &str| {
        fs::copy(lab.path(&format!("{certificate}.pem")), lab.path("own.pem")).expect("a file");
        fs::copy(lab.path(&format!("{key}.key")), lab.path("own.key")).expect("a file");
    };
    put("first", "first");
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    lab.configure(
        "nbd-tls = [\"127.0.0.1:0\"]\nnbd-tls-certificate = \"@/own.pem\"\nnbd-tls-key = \"@/own.key\"\n\
         [management]\nlisten = \"127.0.0.1:0\"\ncertificate = \"@/own.pem\"\nkey = \"@/own.key\"\n",
    );
    let mut server = lab.serve_configured();
    let address = address_of(&lab);
    let console = server.ready["console"].as_str().expect("an address").to_owned();
    let port = console.trim_end_matches('/').rsplit(':').next().expect("a port");
    let mut nbd = tunnel(&lab, address);
    lists(&mut nbd);
    let mut web = Command::new("openssl");
    web.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{port}")]);
    let mut web = web.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("openssl");
    assert!(asks(&mut web).starts_with("HTTP/1.1 200"));
    assert_eq!(serial_met(&lab, port), serial_in(&lab, "first.pem"));
    // A new certificate without its key.
    put("second", "first");
    let words = ["own.key: this is not the key of the certificate in", "the old one stays in force"];
    lab.line("reload").refused(65, &words);
    lab.line("alarms").says(&["server:ConfigurationRefused", words[0], "openraid config check"]);
    server.wait_for_news("ConfigurationRefused", 1);
    assert_eq!(serial_met(&lab, port), serial_in(&lab, "first.pem"));
    lists(&mut tunnel(&lab, address));
    put("second", "second");
    server.signal("-HUP");
    server.wait_for_news("ConfigurationRead", 1);
    assert_eq!(serial_met(&lab, port), serial_in(&lab, "second.pem"));
    assert_ne!(serial_in(&lab, "first.pem"), serial_in(&lab, "second.pem"));
    let refused = tunnel(&lab, address).write_all(b"x").expect_err("its authority is another one now");
    assert!(refused.to_string().contains("UnknownIssuer"), "{refused}");
    fs::copy(lab.path("newer.pem"), lab.path("ca.pem")).expect("a file");
    lists(&mut tunnel(&lab, address));
    let uri = format!("nbds://localhost:{}/data?tls-certificates={}", address.port(), folder(&lab, "new", None));
    match said(&lab, "nbdinfo", &[&uri]) {
        Some((fine, text)) => assert!(fine, "{text}"),
        None => support::missing("nbdinfo is not installed (package libnbd-bin)"),
    }
    // Clients that were connected before all this.
    lists(&mut nbd);
    assert!(asks(&mut web).starts_with("HTTP/1.1 200"));
    lab.line("reload").expect(0).says(&["nothing has changed"]);
    other_paths(&lab, port);
    assert!(!lab.line("alarms").text().contains("ConfigurationRefused"));
    drop(web.stdin.take());
    let _ = (web.kill(), web.wait());
    server.stop();
}

#[test]
fn half_open_connections_keep_no_client_out_and_disturb_none_that_is_in() {
    let lab = Lab::new("strangers");
    if !certify(&lab, "ca", None) {
        return support::missing("openssl is not installed");
    }
    certify(&lab, "own", Some("ca"));
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    lab.configure("nbd-tls = [\"127.0.0.1:0\"]\nnbd-tls-certificate = \"@/own.pem\"\nnbd-tls-key = \"@/own.key\"\n");
    let server = lab.serve_configured();
    let address = address_of(&lab);
    let mut client = tunnel(&lab, address);
    client.write_all(&option(7, b"\0\0\0\x04data\0\0")).expect("the connection is there");
    client.read_exact(&mut [0; 20 + 12 + 20]).expect("the export is chosen");
    let mut reads = || {
        let request = [&b"\x25\x60\x95\x13\0\0\0\0"[..], &[7; 8], &[0; 8], &4096_u32.to_be_bytes()].concat();
        client.write_all(&request).expect("the connection is there");
        let mut answer = [1; 16 + 4096];
        client.read_exact(&mut answer).expect("the connection is there");
        assert_eq!(answer[..16], *b"\x67\x44\x66\x98\0\0\0\0\x07\x07\x07\x07\x07\x07\x07\x07");
    };
    reads();
    // Some say nothing, and the others stop before, or in the middle of, their TLS handshake.
    let begun = [&3_u32.to_be_bytes()[..], &option(5, b""), b"\x16\x03\x01\x02\0"].concat();
    let half_open = |nth: usize| {
        let mut stream = TcpStream::connect(address).expect("a server");
        stream.write_all(&begun[..nth % (begun.len() + 1)]).expect("a socket takes this much");
        stream
    };
    let strangers: Vec<_> = (0..500).map(half_open).collect();
    lists(&mut tunnel(&lab, address));
    reads();
    // Others do not go on after it.
    let silent: Vec<_> =
        (0..300).map(|_| tunnel(&lab, address)).map(|mut stream| stream.flush().map(|()| stream)).collect();
    lists(&mut tunnel(&lab, address));
    reads();
    drop((strangers, silent));
    server.stop();
}
