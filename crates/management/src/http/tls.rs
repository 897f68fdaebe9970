//! TLS: a certificate of the administrator's, or one that is made when it is first needed; and the certificates of clients.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraid_status::date;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{Error, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::redfish::time;

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The chain, as PEM.
    pub chain: PathBuf,
    /// The key, as PEM.
    pub key: PathBuf,
}

/// Make a certificate for these names, if there is none here yet.
///
/// # Errors
/// It cannot be written.
pub fn make(folder: &Path, names: &[String]) -> Result<Certificate, String> {
    let made = Certificate { chain: folder.join("certificate.pem"), key: folder.join("key.pem") };
    if made.chain.exists() && made.key.exists() {
        return Ok(made);
    }
    let made_now = rcgen::generate_simple_self_signed(names.to_vec());
    let made_now = made_now.map_err(|error| format!("no certificate can be made: {error}"))?;
    let written = fs::create_dir_all(folder)
        .and_then(|()| write(&made.key, &made_now.key_pair.serialize_pem()))
        .and_then(|()| write(&made.chain, &made_now.cert.pem()));
    written.map_err(|error| format!("the certificate in {} cannot be written: {error}", folder.display()))?;
    Ok(made)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

/// A file that cannot be read, or that is no PEM.
fn no_pem(path: &Path, what: &str, error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => wrong(path, error),
        pem::Error::NoItemsFound => wrong(path, format_args!("there is no {what} in PEM form in it")),
        other => wrong(path, format_args!("no {what} in PEM form: {other:?}")),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| no_pem(path, "private key", &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| no_pem(path, "certificate", &error))?;
    if all.is_empty() {
        return Err(wrong(path, "there is no certificate in PEM form in it"));
    }
    Ok(all)
}

/// The authorities of clients.
fn authorities(path: &Path, all: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in all {
        roots.add(certificate).map_err(|error| wrong(path, format_args!("no certificate of an authority: {error}")))?;
    }
    Ok(roots)
}

/// The TLS settings of all connections: TLS 1.2 and 1.3; older versions are refused. With `client_ca`, so is a client that has no
/// certificate of one of those authorities.
///
/// # Errors
/// The files cannot be read, or do not belong together.
pub fn acceptor(certificate: &Certificate, client_ca: Option<&Path>) -> Result<TlsAcceptor, String> {
    let chain = certificates(&certificate.chain)?;
    let key = private_key(&certificate.key)?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match client_ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let roots = authorities(path, certificates(path)?)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.map_err(|error| wrong(path, error))?)
        }
    };
    let config = config.with_single_cert(chain, key).map_err(|error| match error {
        Error::InconsistentKeys(_) => wrong(
            &certificate.key,
            format_args!("this is not the key of the certificate in {}", certificate.chain.display()),
        ),
        other => wrong(&certificate.chain, other),
    })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The file in which something is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsFile {
    /// The certificate chain.
    Certificate,
    Key,
    ClientAuthorities,
}

/// All that is wrong with these files now: what would prevent a start, and certificates that are not valid yet or any more, which a
/// server presents and clients refuse.
#[must_use]
pub fn flaws(certificate: Option<(&Path, &Path)>, client_ca: Option<&Path>) -> Vec<(TlsFile, String)> {
    let now: String = time::text(time::now()).chars().filter(char::is_ascii_digit).collect();
    let mut found = Vec::new();
    if let Some((chain, key)) = certificate {
        let (read, private) = (certificates(chain), private_key(key));
        let are_read = read.is_ok() && private.is_ok();
        found.extend(private.err().map(|why| (TlsFile::Key, why)));
        match read {
            Ok(all) => found.extend(untimely(chain, &all, &now).map(|why| (TlsFile::Certificate, why))),
            Err(why) => found.push((TlsFile::Certificate, why)),
        }
        if are_read {
            let both = Certificate { chain: chain.into(), key: key.into() };
            found.extend(acceptor(&both, None).err().map(|why| (TlsFile::Key, why)));
        }
    }
    if let Some(path) = client_ca {
        match certificates(path) {
            Ok(all) => {
                let faults = [untimely(path, &all, &now), authorities(path, all).err()];
                found.extend(faults.into_iter().flatten().map(|why| (TlsFile::ClientAuthorities, why)));
            }
            Err(why) => found.push((TlsFile::ClientAuthorities, why)),
        }
    }
    found
}

/// The first of these certificates that is not valid at `now`, which is written `YYYYMMDDhhmmss`.
fn untimely(path: &Path, all: &[CertificateDer<'_>], now: &str) -> Option<String> {
    all.iter().zip(1..).find_map(|(certificate, nth)| {
        let (from, to) = validity(certificate)?;
        let day = |time: &str| format!("{}-{}-{}", &time[..4], &time[4..6], &time[6..8]);
        let fault = if now < from.as_str() {
            format!("is valid from {} on only", day(&from))
        } else if now > to.as_str() {
            format!("has expired on {}", day(&to))
        } else {
            return None;
        };
        Some(wrong(path, format_args!("certificate {nth} {fault}")))
    })
}

/// The time in which all certificates of a file are valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validity {
    /// The file.
    pub path: PathBuf,
    /// The beginning: seconds since 1970.
    pub from: u64,
    /// The end: seconds since 1970.
    pub to: u64,
}

impl Validity {
    /// The time of the certificates in this file; none if no certificate in it can be read.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let all = certificates(path).ok()?;
        let times = all
            .iter()
            .map(|certificate| validity(certificate).and_then(|(from, to)| Some((seconds(&from)?, seconds(&to)?))));
        let times: Vec<(u64, u64)> = times.collect::<Option<_>>()?;
        let from = times.iter().map(|time| time.0).max()?;
        let to = times.iter().map(|time| time.1).min()?;
        Some(Self { path: path.into(), from, to })
    }
}

/// Seconds since 1970 of `YYYYMMDDhhmmss`; 0 for earlier times.
fn seconds(digits: &str) -> Option<u64> {
    let number = |at: std::ops::Range<usize>| digits.get(at)?.parse::<u16>().ok();
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let days = date::day_of([year.max(1970), month, day])?;
    let within = u64::from(number(8..10)?) * 3_600 + u64::from(number(10..12)?) * 60 + u64::from(number(12..14)?);
    Some(if year < 1970 { 0 } else { days * 86_400 + within })
}

/// One element of DER: its tag, its content, and what follows it. By hand, because the libraries at hand are worse here: yasna, which
/// is linked, panics at lengths near the largest number; der knows no year before 1970; x509-parser links several crates more.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The times between which a certificate is valid, as `YYYYMMDDhhmmss` (RFC 5280, 4.1).
fn validity(certificate: &[u8]) -> Option<(String, String)> {
    let (_, whole, _) = element(certificate)?;
    let (_, mut rest, _) = element(whole)?;
    // The version, which may be missing; serial number, algorithm, issuer.
    if element(rest)?.0 == 0xa0 {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, both, _) = element(rest)?;
    let (kind, from, rest) = element(both)?;
    let (end_kind, to, _) = element(rest)?;
    Some((moment(kind, from)?, moment(end_kind, to)?))
}

/// A UTCTime, whose two digits of a year are of 1950 to 2049, or a GeneralizedTime.
fn moment(tag: u8, text: &[u8]) -> Option<String> {
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let whole = match tag {
        0x17 if digits < "5" => format!("20{digits}"),
        0x17 => format!("19{digits}"),
        0x18 => digits.to_owned(),
        _ => return None,
    };
    (whole.len() == 14 && whole.bytes().all(|letter| letter.is_ascii_digit())).then_some(whole)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{flaws, seconds, validity, TlsFile, Validity};
    use crate::redfish::time;

    #[test]
    fn digits_are_the_seconds_that_they_were_made_of() {
        for at in
            [0, 951_782_399, 951_782_400, 1_709_251_200, 1_795_699_796, 4_107_542_399, 4_107_542_400, 32_503_679_999]
        {
            let digits: String = time::text(at).chars().filter(char::is_ascii_digit).collect();
            assert_eq!(seconds(&digits), Some(at), "{digits}");
        }
        assert_eq!(seconds("19691231235959"), Some(0));
        for bad in ["", "2026", "20261301000000", "20260100000000", "2026010100000"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_that_a_server_cannot_use_and_certificates_out_of_time_are_named() {
        let folder = std::env::temp_dir().join(format!("openraid-tls-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("room");
        let put = |name: &str, text: &str| {
            fs::write(folder.join(name), text).expect("room");
            folder.join(name)
        };
        // Certificates by rcgen, which writes DER by itself.
        let made = |from: i32, to: i32| {
            let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
            (parameters.not_before, parameters.not_after) =
                (rcgen::date_time_ymd(from, 3, 4), rcgen::date_time_ymd(to, 5, 6));
            let key = rcgen::KeyPair::generate().expect("a key");
            (parameters.self_signed(&key).expect("a certificate"), key.serialize_pem())
        };
        let (now, key) = made(2020, 2999);
        assert_eq!(validity(now.der()), Some(("20200304000000".into(), "29990506000000".into())));
        let (chain, key) = (put("now.pem", &now.pem()), put("key.pem", &key));
        assert_eq!(flaws(Some((&chain, &key)), Some(&chain)), []);
        // date -u -d 2020-03-04 +%s, date -u -d 2999-05-06 +%s
        let known = Validity { path: chain.clone(), from: 1_583_280_000, to: 32_482_944_000 };
        assert_eq!(Validity::of(&chain), Some(known));
        let (old, old_key) = made(1970, 1999);
        let (late, late_key) = made(2998, 2999);
        let (old, old_key) = (put("old.pem", &old.pem()), put("old.key", &old_key));
        let (late, late_key) = (put("late.pem", &late.pem()), put("late.key", &late_key));
        let text = put("text.pem", "no PEM");
        let none = folder.join("none.pem");
        use TlsFile::{Certificate, ClientAuthorities, Key};
        for (chain, key, authority, wanted) in [
            (&old, &old_key, None, vec![(Certificate, "certificate 1 has expired on 1999-05-06")]),
            (&late, &late_key, None, vec![(Certificate, "valid from 2998-03-04 on only")]),
            (&chain, &old_key, None, vec![(Key, "not the key of the certificate in")]),
            (&text, &none, None, vec![(Key, "No such file"), (Certificate, "no certificate in PEM form")]),
            (&chain, &text, None, vec![(Key, "no private key in PEM form")]),
            (&chain, &key, Some(&old), vec![(ClientAuthorities, "has expired")]),
            (&chain, &key, Some(&none), vec![(ClientAuthorities, "No such file")]),
            (&chain, &key, Some(&key), vec![(ClientAuthorities, "no certificate in PEM form")]),
        ] {
            let found = flaws(Some((chain, key)), authority.map(|authority| authority.as_path()));
            assert_eq!(found.len(), wanted.len(), "{found:?}");
            for ((file, text), (wanted_file, word)) in found.iter().zip(wanted) {
                assert!(*file == wanted_file && text.contains(word), "{word:?} is not in {found:?}");
            }
        }
        for broken in [&[][..], &[0x30], &[0x30, 0x84, 0, 0, 0, 1, 0], &[0x30, 0x82, 0xff, 0xff, 0], &now.der()[..60]] {
            assert_eq!(validity(broken), None);
        }
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
