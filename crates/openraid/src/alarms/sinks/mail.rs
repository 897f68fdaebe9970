//! A mail to an SMTP server.

use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};
use openraid_config::{MailTls, SinkKind};
use openraid_status::shell_quoting::command;

use super::{line, Batch, SEND_TIME_MAX};
use crate::quantity::utc;

/// Maximum length of a subject, in characters.
const SUBJECT_MAX: usize = 150;

pub(super) fn send(kind: &SinkKind, batch: &Batch) -> Result<(), String> {
    let SinkKind::Mail { server, tls, from, to, user, password_file } = kind else { return Ok(()) };
    let (host, port) = server.rsplit_once(':').unwrap_or((server, "25"));
    let port: u16 = port.parse().map_err(|_| format!("{server}: no port"))?;
    let parameters = || TlsParameters::new(host.to_owned()).map_err(|error| format!("{server}: TLS: {error}"));
    let tls = match tls {
        MailTls::None => Tls::None,
        MailTls::StartTls => Tls::Required(parameters()?),
        MailTls::Tls => Tls::Wrapper(parameters()?),
    };
    let mut transport = SmtpTransport::builder_dangerous(host).port(port).tls(tls).timeout(Some(SEND_TIME_MAX));
    if let (Some(user), Some(path)) = (user, password_file) {
        let password = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let password = password.trim_end_matches(['\n', '\r']).to_owned();
        transport = transport.credentials(Credentials::new(user.clone(), password));
    }
    let address = |text: &str| text.parse().map_err(|error| format!("{text}: no mail address: {error}"));
    let subject: String =
        format!("openraid on {}: {}", batch.host, batch.summary()).chars().take(SUBJECT_MAX).collect();
    // Mails without an identifier are taken for spam, or cannot be told apart.
    let message = Message::builder().message_id(None).date_now();
    let mut message = message.from(address(from)?).subject(subject).header(ContentType::TEXT_PLAIN);
    for receiver in to {
        message = message.to(address(receiver)?);
    }
    let message = message.body(text(batch)).map_err(|error| format!("the mail cannot be written: {error}"))?;
    transport.build().send(&message).map(drop).map_err(|error| format!("{server}: {error}"))
}

fn text(batch: &Batch) -> String {
    let mut lines = Vec::new();
    for alarm in &batch.alarms {
        lines.push(line(alarm));
        let until = alarm.until_seconds.map_or_else(String::new, |until| format!(", until {}", utc(until)));
        lines.push(format!("  since {}{until}", utc(alarm.since_seconds)));
        if let (Some(next), None) = (&alarm.what.next_step, alarm.until_seconds) {
            lines.push(format!("  next step: {next}"));
        }
        lines.push(format!("  acknowledge: {}", command("alarms acknowledge", [&alarm.id])));
        lines.push(String::new());
    }
    lines.join("\n")
}
