//! The tables `[sinks.NAME]`: where alarms are sent.

use std::path::PathBuf;

use openraid_status::alarm::Severity;
use openraid_status::SinkWord;

use crate::desired::{DesiredSink, MailTls, SinkKind, WebhookForm};
use crate::nearest::nearest;
use crate::read::{most, ABSOLUTE};
use crate::table::{Section, Word};

/// Sinks of one file: each has a thread.
pub const SINKS_MAX: usize = 16;
/// Receivers of one mail.
pub const RECEIVERS_MAX: usize = 16;
/// Where the journal of systemd takes messages.
pub const JOURNALD_SOCKET: &str = "/run/systemd/journal/socket";

const EXEC: &[&str] = &["kind", "level", "program"];
const WEBHOOK: &[&str] = &["kind", "level", "url", "form"];
const MAIL: &[&str] = &["kind", "level", "server", "tls", "from", "to", "user", "password-file"];
const JOURNALD: &[&str] = &["kind", "level", "socket"];
const KINDS: &[&str] = &["exec", "webhook", "mail", "journald"];

/// Is it a key of a sink and of no other table?
pub fn is_key(word: &str) -> bool {
    ["program", "url", "form", "tls", "from", "to", "user", "password-file", "level", "kind"].contains(&word)
}

/// All sinks of the file.
pub fn read(top: &Section<'_>) -> Vec<DesiredSink> {
    let sinks = top.table("sinks").map(|section| section.all_tables()).unwrap_or_default();
    if sinks.len() > SINKS_MAX {
        top.complain(top.at_key("sinks"), "sinks", &format!("{} sinks", sinks.len()), &most(SINKS_MAX));
    }
    sinks.iter().take(SINKS_MAX).filter_map(|(name, section)| sink(name, section)).collect()
}

fn sink(name: &str, section: &Section<'_>) -> Option<DesiredSink> {
    let fits = name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if name.is_empty() || !fits {
        let what = format!("{name:?} is not a valid name for a sink");
        section.reader.complain(section.at, &section.path, &what, "write 1 to 64 letters, digits and hyphens");
    }
    let kind = one_of(section, "kind", KINDS);
    if !section.has("kind") {
        section.complain(
            section.at,
            "kind",
            "a sink without a kind",
            &format!("write kind = one of {}", KINDS.join(", ")),
        );
    }
    let levels = Severity::ALL.map(Severity::word);
    let level = one_of(section, "level", &levels);
    let level = level.as_deref().and_then(Severity::named).unwrap_or(Severity::Warning);
    let kind = match SinkWord::named(&kind?)? {
        SinkWord::Exec => exec(section),
        SinkWord::Webhook => webhook(section),
        SinkWord::Mail => mail(section),
        SinkWord::Journald => journald(section),
    }?;
    Some(DesiredSink { name: name.to_owned(), line: section.reader.line(section.at), level, kind })
}

fn one_of(section: &Section<'_>, key: &str, known: &[&str]) -> Option<String> {
    let word = section.text(key)?;
    if known.contains(&word.text.as_str()) {
        return Some(word.text);
    }
    let remedy = match nearest(&word.text, known) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("use one of {}", known.join(", ")),
    };
    section.complain(word.at, key, &format!("{:?} is not a valid {key}", word.text), &remedy);
    None
}

/// A text that has to be there.
fn needed(section: &Section<'_>, key: &str, example: &str) -> Option<Word> {
    if !section.has(key) {
        section.complain(section.at, key, "missing", &format!("write {key} = {example:?}"));
    }
    section.text(key)
}

fn absolute(section: &Section<'_>, key: &str, word: Word) -> PathBuf {
    if !word.text.starts_with('/') {
        section.complain(word.at, key, &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
    }
    PathBuf::from(word.text)
}

fn exec(section: &Section<'_>) -> Option<SinkKind> {
    section.know(EXEC);
    let program = needed(section, "program", "/usr/local/sbin/alarm")?;
    Some(SinkKind::Exec { program: absolute(section, "program", program) })
}

fn webhook(section: &Section<'_>) -> Option<SinkKind> {
    section.know(WEBHOOK);
    let url = needed(section, "url", "https://HOST/PATH")?;
    let rest = url.text.strip_prefix("http://").or_else(|| url.text.strip_prefix("https://"));
    if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace)) {
        let what = format!("{:?} is not the address of a web server", url.text);
        section.complain(url.at, "url", &what, "write https://HOST/PATH or http://HOST:PORT/PATH");
    }
    let form = match one_of(section, "form", &["json", "alertmanager"]).as_deref() {
        Some("alertmanager") => WebhookForm::Alertmanager,
        _ => WebhookForm::Json,
    };
    Some(SinkKind::Webhook { url: url.text, form })
}

fn mail(section: &Section<'_>) -> Option<SinkKind> {
    section.know(MAIL);
    let server = needed(section, "server", "mail.example.org:587");
    if let Some(word) = &server {
        let (host, port) = word.text.rsplit_once(':').unwrap_or(("", ""));
        if host.is_empty() || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            section.complain(word.at, "server", &format!("{:?} is not a mail server", word.text), "write HOST:PORT");
        }
    }
    let tls = match one_of(section, "tls", &["starttls", "tls", "none"]).as_deref() {
        Some("tls") => MailTls::Tls,
        Some("none") => MailTls::None,
        _ => MailTls::StartTls,
    };
    let from = needed(section, "from", "openraid@example.org");
    if !section.has("to") {
        section.complain(section.at, "to", "missing", "write to = [\"admin@example.org\"]");
    }
    let to = section.texts("to", RECEIVERS_MAX).unwrap_or_default();
    for (key, word) in from.iter().map(|word| ("from", word)).chain(to.iter().map(|word| ("to", word))) {
        let is_address = |text: &str| {
            let parts = text.split_once('@');
            parts
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace))
        };
        if !is_address(&word.text) {
            section.complain(word.at, key, &format!("{:?} is not a mail address", word.text), "write NAME@HOST");
        }
    }
    let user = section.text("user").map(|word| word.text);
    let password_file = section.text("password-file").map(|word| absolute(section, "password-file", word));
    if user.is_some() != password_file.is_some() {
        section.complain(section.at, "user", "an account needs both", "write user and password-file");
    }
    let to = to.into_iter().map(|word| word.text).collect();
    Some(SinkKind::Mail { server: server?.text, tls, from: from?.text, to, user, password_file })
}

fn journald(section: &Section<'_>) -> Option<SinkKind> {
    section.know(JOURNALD);
    let socket = section.text("socket").map(|word| absolute(section, "socket", word));
    Some(SinkKind::Journald { socket: socket.unwrap_or_else(|| PathBuf::from(JOURNALD_SOCKET)) })
}
