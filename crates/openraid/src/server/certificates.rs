//! Certificates of the server: read again at a reload, and alarms about one that is not valid, or will not be for much longer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use openraid_config::{DesiredState, FileValue};
use openraid_management::{PendingTls, Renewal, Validity};
use openraid_status::EventName;

use super::Server;
use crate::alarms::Condition;
use crate::events::Severity;
use crate::failure::Failure;
use crate::quantity::{counted, utc};

const DAY: u64 = 86_400;

impl Server {
    /// These files have the certificates that the server presents, and the authorities that it trusts.
    pub fn note_certificates(&self, files: &[PathBuf]) {
        let files: BTreeSet<&PathBuf> = files.iter().collect();
        self.state().troubles.certificates = files.into_iter().filter_map(|path| Validity::of(path)).collect();
    }

    /// NBD over TLS has these settings.
    pub fn keep_nbd_tls(&self, renewal: Option<Renewal>) {
        self.state().nbd_tls = renewal.map(TlsOfNbd);
    }

    /// The TLS settings of NBD, and of the interfaces over HTTP.
    fn renewals(&self) -> (Option<Renewal>, Option<Renewal>) {
        let nbd = self.state().nbd_tls.as_ref().map(|nbd| nbd.0.clone());
        (nbd, self.management.get().and_then(|web| web.renewal().cloned()))
    }

    /// Read all files of certificates, keys and authorities again, at the paths that the configuration file has now. The result is in
    /// force after [`put`](Self::put_certificates). Keys of the file whose new paths are taken are removed from `restart`.
    ///
    /// # Errors
    /// A file that has changed cannot be used.
    pub(super) fn fresh_certificates(
        &self,
        before: &DesiredState,
        now: &DesiredState,
        restart: &mut Vec<String>,
    ) -> Result<Vec<PendingTls>, Failure> {
        let (nbd, web) = self.renewals();
        let server = |desired: &DesiredState| {
            let server = &desired.server;
            [server.nbd_tls_certificate.clone(), server.nbd_tls_key.clone(), server.nbd_tls_client_ca.clone()]
        };
        let management = |desired: &DesiredState| {
            let management = &desired.management;
            [management.certificate.clone(), management.key.clone(), management.client_ca.clone()]
        };
        let uses = [
            (nbd, server(before), server(now), "server.nbd-tls-"),
            (web, management(before), management(now), "management."),
        ];
        let mut all = Vec::new();
        for (renewal, before, now, prefix) in uses {
            let Some(renewal) = renewal else { continue };
            let mut files = renewal.files();
            let [certificate, key, client_ca] = moved(before, now);
            restart.retain(|key_name| {
                let of = |name: &str, path: &Option<PathBuf>| path.is_some() && *key_name == format!("{prefix}{name}");
                !(of("certificate", &certificate) || of("key", &key) || of("client-ca", &client_ca))
            });
            files.certificate = certificate.unwrap_or(files.certificate);
            files.key = key.unwrap_or(files.key);
            files.client_ca = client_ca.or(files.client_ca);
            let fresh = renewal.read(files).map_err(|why| {
                Failure::refused(format!(
                    "a certificate was not renewed: {why}; the old one stays in force, and nothing of the configuration file takes effect"
                ))
            })?;
            all.extend(fresh);
        }
        Ok(all)
    }

    /// Put them in force. Connections that exist keep theirs. Returns a sentence for each file.
    pub(super) fn put_certificates(&self, all: Vec<PendingTls>) -> Vec<String> {
        let files: BTreeSet<PathBuf> = all.into_iter().map(PendingTls::put).collect();
        if !files.is_empty() {
            let (nbd, web) = self.renewals();
            // A certificate that the server has made itself is not renewed by users.
            let folder = self.registry.folder_beside("management");
            let used = [nbd, web].into_iter().flatten().map(|files| files.files());
            let used = used.flat_map(|files| [Some(files.certificate), files.client_ca]).flatten();
            self.note_certificates(&used.filter(|path| !path.starts_with(&folder)).collect::<Vec<_>>());
        }
        files.iter().map(|path| renewed(path)).collect()
    }
}

/// The paths of keys that the file had and has, if they have changed.
fn moved(before: [Option<FileValue<PathBuf>>; 3], now: [Option<FileValue<PathBuf>>; 3]) -> [Option<PathBuf>; 3] {
    let mut before = before.into_iter();
    now.map(|now| {
        let (before, now) = (before.next()??, now?);
        (before.value != now.value).then_some(now.value)
    })
}

/// The TLS settings of NBD.
pub(super) struct TlsOfNbd(Renewal);

impl std::fmt::Debug for TlsOfNbd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsOfNbd")
    }
}

fn renewed(path: &Path) -> String {
    let until = Validity::of(path).map(|validity| format!(", valid until {}", utc(validity.to)));
    format!("certificate {} read again{}: new connections have it", path.display(), until.unwrap_or_default())
}

/// The alarms at this time, in seconds since 1970.
pub(super) fn conditions(known: &[Validity], now: u64) -> Vec<Condition> {
    let expiring = known.iter().filter_map(|subject| {
        let (level, text) = judge(subject, now)?;
        Some(Condition {
            member: Some(subject.path.display().to_string()),
            next_step: Some("openraid reload".into()),
            level,
            ..Condition::of_server(EventName::CertificateExpires, text)
        })
    });
    expiring.collect()
}

/// A warning 30 days before the end, critical 3 days before it; of a certificate for a shorter time, its last third and its last tenth.
fn judge(validity: &Validity, now: u64) -> Option<(Severity, String)> {
    let path = validity.path.display();
    if now < validity.from {
        let text = format!("{path} is not valid before {}: clients refuse it until then", utc(validity.from));
        return Some((Severity::Critical, text));
    }
    if now >= validity.to {
        let ended = utc(validity.to);
        let text = format!("{path} expired on {ended}: clients refuse it; renew it, then `openraid reload`");
        return Some((Severity::Critical, text));
    }
    let (left, life) = (validity.to - now, validity.to - validity.from);
    let level = if left < (3 * DAY).min(life / 10) {
        Severity::Critical
    } else if left < (30 * DAY).min(life / 3) {
        Severity::Warning
    } else {
        return None;
    };
    let days = if left < DAY { "less than a day".into() } else { counted(left / DAY, "day", "days") };
    let text = format!("{path} expires in {days}, on {}; renew it, then `openraid reload`", utc(validity.to));
    Some((level, text))
}

#[cfg(test)]
mod tests {
    use super::{judge, Severity, Validity, DAY};

    #[test]
    fn the_end_of_a_certificate_is_told_before_it_comes() {
        let year = Validity { path: "/etc/own.pem".into(), from: 1_000 * DAY, to: 1_365 * DAY };
        let week = Validity { to: 1_006 * DAY, ..year.clone() };
        for (validity, days, wanted) in [
            (&year, 999, Some((Severity::Critical, "is not valid before 1972-09-27"))),
            (&year, 1_000, None),
            (&year, 1_334, None),
            (&year, 1_336, Some((Severity::Warning, "expires in 29 days, on 1973-09-27"))),
            (&year, 1_363, Some((Severity::Critical, "expires in 2 days"))),
            (&year, 1_365, Some((Severity::Critical, "expired on 1973-09-27"))),
            (&week, 1_003, None),
            (&week, 1_005, Some((Severity::Warning, "expires in 1 day, "))),
        ] {
            let found = judge(validity, days * DAY);
            let fits = match (&found, wanted) {
                (Some((level, text)), Some((wanted, words))) => *level == wanted && text.contains(words),
                (found, wanted) => found.is_none() && wanted.is_none(),
            };
            assert!(fits, "day {days}: {found:?}, not {wanted:?}");
        }
        let (level, text) = judge(&week, 1_005 * DAY + DAY / 2).expect("its last tenth");
        assert!(level == Severity::Critical && text.contains("in less than a day"), "{text}");
    }
}
