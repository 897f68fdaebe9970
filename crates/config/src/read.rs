//! The keys of the file, and the valid values of each.

use std::path::PathBuf;
use std::str::FromStr;

use openraid_format::Uuid;
use openraid_units::Bytes;
use toml::de::DeTable;

use crate::cross::check_uses;
use crate::desired::{
    Access, AfterPowerCut, ArrayId, DesiredArray, DesiredManagement, DesiredServer, DesiredSetting, DesiredSpare,
    DesiredState, FileValue, SpareFor,
};
use crate::nearest::nearest;
use crate::problem::{ConfigProblem, Problems, PROBLEMS_MAX};
use crate::table::{FileReader, Section, Word};
use crate::Words;

/// A longer file is something else.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Arrays of one file: as many as a server has drives.
pub const ARRAYS_MAX: usize = 256;
/// Members of an array, those of all spans and spares included.
pub const MEMBERS_MAX: usize = 256;
/// Names of an array's exports.
pub const EXPORTS_MAX: usize = 16;
/// Names of the NVMe hosts of an array, and the length of such a name.
pub const HOSTS_MAX: usize = 256;
const HOST_BYTES_MAX: usize = 223;
/// Spares of one file.
pub const SPARES_MAX: usize = 256;
/// Addresses, and unix sockets, on which a server listens.
pub const LISTENS_MAX: usize = 16;
/// A journal is on one device or mirrored over two.
pub const JOURNAL_DEVICES_MAX: usize = 2;
/// Commands that a drive is given at once, at most.
pub const DRIVE_DEPTH_MAX: u64 = 128;
/// The longest time that a command waits for others.
pub const QUEUE_AGE_MAX_SECONDS: u64 = 30;

const TOP: &[&str] = &["server", "management", "arrays", "spares", "sinks", "schedules", "care"];
const SERVER: &[&str] = &[
    "nbd",
    "nbd-unix",
    "nbd-tls",
    "nbd-tls-certificate",
    "nbd-tls-key",
    "nbd-tls-client-ca",
    "nvme",
    "vhost",
    "memory",
    "cache",
    "drive-depth",
    "queue-age",
    "journal",
    "after-power-cut",
];
const MANAGEMENT: &[&str] = &["listen", "certificate", "key", "client-ca", "names", "metrics-md", "drives"];
const ARRAY: &[&str] = &["members", "exports", "hosts", "access", "settings"];
const SPARE: &[&str] = &["member", "for", "span"];

pub(crate) fn parse(text: &str, words: &dyn Words) -> Result<DesiredState, Problems> {
    if text.len() > FILE_BYTES_MAX {
        let what = format!("{} bytes", text.len());
        let remedy = format!("a configuration has {FILE_BYTES_MAX} at most; name the right file");
        return Err(Problems(vec![ConfigProblem { line: 1, column: 1, key: String::new(), what, remedy }]));
    }
    let known = words.settings();
    let elsewhere = |word: &str| belongs(word, &known);
    let reader = FileReader::new(text, &elsewhere);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(PROBLEMS_MAX) {
        let at = error.span().map_or(0, |span| span.start);
        let what = format!("not TOML: {}", error.message().trim().replace('\n', ", "));
        reader.complain(at, "", &what, "correct the line");
    }
    // What follows a line that is no TOML may be misread: only the lines themselves are reported.
    let mut desired = DesiredState::default();
    if errors.is_empty() {
        desired = read(&Section::top(&reader, table.get_ref()), words);
    }
    let (problems, notes) = reader.found();
    if problems.is_empty() {
        Ok(DesiredState { notes, ..desired })
    } else {
        Err(Problems(problems))
    }
}

/// The table that a key belongs in.
fn belongs(word: &str, settings: &[&str]) -> Option<String> {
    let is_setting = settings.iter().any(|setting| *setting == word || setting.split('.').next() == Some(word));
    if SERVER.contains(&word) {
        Some("[server]".into())
    } else if MANAGEMENT.contains(&word) {
        Some("[management]".into())
    } else if ARRAY.contains(&word) {
        Some("[arrays.NAME]".into())
    } else if SPARE.contains(&word) {
        Some("[[spares]]".into())
    } else if crate::sinks::is_key(word) {
        Some("[sinks.NAME]".into())
    } else if crate::care::is_key(word) {
        Some("[care]".into())
    } else if TOP.contains(&word) {
        Some("the top of the file".into())
    } else {
        is_setting.then(|| "[arrays.NAME.settings]".into())
    }
}

fn read(top: &Section<'_>, words: &dyn Words) -> DesiredState {
    top.know(TOP);
    let server = top.table("server").map(|section| server(&section, words)).unwrap_or_default();
    let management = top.table("management").map(|section| management(&section)).unwrap_or_default();
    let arrays = top.table("arrays").map(|section| section.all_tables()).unwrap_or_default();
    if arrays.len() > ARRAYS_MAX {
        top.complain(top.at_key("arrays"), "arrays", &format!("{} arrays", arrays.len()), &most(ARRAYS_MAX));
    }
    let arrays: Vec<DesiredArray> =
        arrays.iter().take(ARRAYS_MAX).filter_map(|(key, section)| array(key, section, words)).collect();
    let spares = top.tables("spares");
    if spares.len() > SPARES_MAX {
        top.complain(top.at_key("spares"), "spares", &format!("{} spares", spares.len()), &most(SPARES_MAX));
    }
    let spares: Vec<DesiredSpare> =
        spares.iter().take(SPARES_MAX).filter_map(|section| spare(section, words)).collect();
    check_uses(top);
    DesiredState {
        server,
        management,
        arrays,
        spares,
        sinks: crate::sinks::read(top),
        schedules: crate::schedules::read(top, words),
        care: crate::care::read(top),
        notes: Vec::new(),
    }
}

pub(crate) fn most(count: usize) -> String {
    format!("{count} is the most")
}

fn server(section: &Section<'_>, words: &dyn Words) -> DesiredServer {
    section.know(SERVER);
    let line = |key: &str| section.reader.line(section.at_key(key));
    let size = |key: &str| -> Option<FileValue<Bytes>> {
        let word = section.text(key)?;
        match words.size(&word.text) {
            Ok(value) => Some(FileValue { value, line: line(key) }),
            Err(why) => {
                section.complain(word.at, key, &why, "a size is written like 64M or 1G");
                None
            }
        }
    };
    let (nbd, nvme) = (addresses(section, "nbd"), addresses(section, "nvme"));
    let nbd_unix = section.texts("nbd-unix", LISTENS_MAX).map(|all| {
        for word in all.iter().filter(|word| !word.text.starts_with('/')) {
            section.complain(word.at, "nbd-unix", &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
        }
        FileValue { value: all.into_iter().map(|word| PathBuf::from(word.text)).collect(), line: line("nbd-unix") }
    });
    let vhost = section.texts("vhost", LISTENS_MAX).map(|all| {
        for word in &all {
            let path = word.text.split_once('=').map_or(word.text.as_str(), |(_, path)| path);
            if !path.starts_with('/') {
                section.complain(word.at, "vhost", &format!("{path:?} is not an absolute path"), ABSOLUTE);
            }
        }
        FileValue { value: all.into_iter().map(|word| word.text).collect(), line: line("vhost") }
    });
    let (nbd_tls, [nbd_tls_certificate, nbd_tls_key, nbd_tls_client_ca]) = nbd_tls(section);
    let journal = section.texts("journal", JOURNAL_DEVICES_MAX).map(|all| {
        all.iter().for_each(|word| check_member(section, "journal", word, words));
        FileValue { value: all.into_iter().map(|word| word.text).collect(), line: line("journal") }
    });
    let number = |key: &str, most: u64| section.number(key, 1, most).map(|value| FileValue { value, line: line(key) });
    let depth = number("drive-depth", DRIVE_DEPTH_MAX);
    DesiredServer {
        nbd,
        nbd_unix,
        nbd_tls,
        nbd_tls_certificate,
        nbd_tls_key,
        nbd_tls_client_ca,
        nvme,
        vhost,
        memory: size("memory"),
        cache: size("cache"),
        drive_depth: depth
            .map(|depth| FileValue { value: u32::try_from(depth.value).unwrap_or(u32::MAX), line: depth.line }),
        queue_age: number("queue-age", QUEUE_AGE_MAX_SECONDS),
        journal,
        after_power_cut: word(
            section,
            "after-power-cut",
            "an answer to a power cut",
            &AfterPowerCut::ALL.map(AfterPowerCut::word),
        ),
    }
}

/// Addresses, texts of the file.
type Addresses = Option<FileValue<Vec<String>>>;

fn addresses(section: &Section<'_>, key: &str) -> Addresses {
    section.texts(key, LISTENS_MAX).map(|all| {
        all.iter().for_each(|word| check_address(section, key, word));
        let line = section.reader.line(section.at_key(key));
        FileValue { value: all.into_iter().map(|word| word.text).collect(), line }
    })
}

/// Addresses of NBD over TLS, and its certificate, key and authorities.
fn nbd_tls(section: &Section<'_>) -> (Addresses, [Option<FileValue<PathBuf>>; 3]) {
    let line = |key: &str| section.reader.line(section.at_key(key));
    let all = addresses(section, "nbd-tls");
    let files = ["nbd-tls-certificate", "nbd-tls-key", "nbd-tls-client-ca"].map(|key| {
        let word = section.text(key)?;
        if !word.text.starts_with('/') {
            section.complain(word.at, key, &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
        }
        Some(FileValue { value: PathBuf::from(word.text), line: line(key) })
    });
    if all.is_some() && (files[0].is_none() || files[1].is_none()) {
        let remedy = "name both files: nbd-tls-certificate and nbd-tls-key";
        section.complain(section.at_key("nbd-tls"), "nbd-tls", "the certificate or its key is missing", remedy);
    }
    (all, files)
}

/// Host names of one server.
const NAMES_MAX: usize = 16;
/// Drives that Redfish may make arrays of, at most.
const DRIVES_MAX: usize = 256;

fn management(section: &Section<'_>) -> DesiredManagement {
    section.know(MANAGEMENT);
    let line = |key: &str| section.reader.line(section.at_key(key));
    let path = |key: &str| {
        let word = section.text(key)?;
        if !word.text.starts_with('/') {
            section.complain(word.at, key, &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
        }
        Some(FileValue { value: PathBuf::from(word.text), line: line(key) })
    };
    let listen = section.text("listen").map(|word| {
        check_address(section, "listen", &word);
        FileValue { value: word.text, line: line("listen") }
    });
    let (certificate, key, client_ca) = (path("certificate"), path("key"), path("client-ca"));
    if certificate.is_some() != key.is_some() {
        let (has, lacks) = if certificate.is_some() { ("certificate", "key") } else { ("key", "certificate") };
        section.complain(section.at_key(has), has, &format!("{lacks} is missing"), "name both files, or none of them");
    }
    let names = section.texts("names", NAMES_MAX).map(|all| {
        for word in all.iter().filter(|word| word.text.is_empty() || word.text.contains([':', '/', ' '])) {
            let what = format!("{:?} is not the name of a host", word.text);
            section.complain(word.at, "names", &what, "write the name without scheme and port");
        }
        FileValue { value: all.into_iter().map(|word| word.text).collect(), line: line("names") }
    });
    let metrics_md = section.switch("metrics-md").map(|value| FileValue { value, line: line("metrics-md") });
    let drives = section.texts("drives", DRIVES_MAX).map(|all| {
        for word in all.iter().filter(|word| !word.text.starts_with('/') && !word.text.contains("://")) {
            section.complain(word.at, "drives", &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
        }
        FileValue { value: all.into_iter().map(|word| word.text).collect(), line: line("drives") }
    });
    DesiredManagement { listen, certificate, key, client_ca, names, metrics_md, drives }
}

pub(crate) const ABSOLUTE: &str = "write the absolute path: a service has no working folder";

/// `HOST:PORT`, `:PORT` or `PORT`. Whether the host exists is seen when the server starts.
fn check_address(section: &Section<'_>, key: &str, word: &Word) {
    let (host, port) = word.text.rsplit_once(':').unwrap_or(("", &word.text));
    let host_fits = host.is_empty() || !host.contains(|c: char| c.is_whitespace() || c == '/');
    if port.parse::<u16>().is_err() || !host_fits {
        let what = format!("{:?} is not an address", word.text);
        section.complain(word.at, key, &what, "write HOST:PORT, as in 127.0.0.1:10809");
    }
}

fn check_member(section: &Section<'_>, key: &str, word: &Word, words: &dyn Words) {
    if let Err(why) = words.check_member(&word.text) {
        section.complain(word.at, key, &why, "write a path or an address");
        return;
    }
    if !word.text.starts_with('/') && !word.text.contains(':') {
        return section.complain(word.at, key, &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
    }
    let device = word.text.strip_prefix("/dev/").unwrap_or_default();
    if ["sd", "vd", "hd", "nvme"].iter().any(|kind| device.starts_with(kind)) {
        let what = format!("{} may be another drive after a restart", word.text);
        section.reader.note(word.at, &section.path_of(key), &what, "write its name in /dev/disk/by-id");
    }
}

/// One of these words.
fn word<T: FromStr>(section: &Section<'_>, key: &str, kind: &str, known: &[&str]) -> Option<FileValue<T>> {
    let word = section.text(key)?;
    if let Ok(value) = word.text.parse() {
        return Some(FileValue { value, line: section.reader.line(word.at) });
    }
    let remedy = match nearest(&word.text, known) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("use one of {}", known.join(", ")),
    };
    section.complain(word.at, key, &format!("{:?} is not {kind}", word.text), &remedy);
    None
}

fn array(key: &str, section: &Section<'_>, words: &dyn Words) -> Option<DesiredArray> {
    section.know(ARRAY);
    let id = match key.parse::<Uuid>() {
        Ok(uuid) => ArrayId::Uuid(uuid),
        Err(_) => match words.check_name(key) {
            Ok(()) => ArrayId::Name(key.to_owned()),
            Err(why) => {
                section.reader.complain(section.at, &section.path, &why, "name the array, or write its UUID");
                return None;
            }
        },
    };
    let members = section.texts("members", MEMBERS_MAX).unwrap_or_default();
    members.iter().for_each(|word| check_member(section, "members", word, words));
    let exports = section.texts("exports", EXPORTS_MAX).unwrap_or_default();
    for word in &exports {
        if word.text.is_empty() || word.text.len() > 255 || word.text.contains(|c: char| c.is_control()) {
            section.complain(word.at, "exports", "not the name of an export", "write 1 to 255 bytes of plain text");
        }
    }
    let access = word(section, "access", "a kind of access", &Access::ALL.map(Access::word));
    let settings = section.table("settings").map(|section| settings(&section, words)).unwrap_or_default();
    let line = section.reader.line(section.at);
    let text = |all: Vec<Word>| all.into_iter().map(|word| word.text).collect();
    let (members, exports, hosts) = (text(members), text(exports), hosts(section));
    Some(DesiredArray { id, line, members, exports, hosts, access, settings })
}

fn hosts(section: &Section<'_>) -> Option<Vec<String>> {
    let hosts = section.texts("hosts", HOSTS_MAX)?;
    for word in &hosts {
        let is_name = word.text.starts_with("nqn.") && word.text.len() <= HOST_BYTES_MAX;
        if !is_name || word.text.contains(|c: char| c.is_control()) {
            let remedy = "write what `nvme show-hostnqn` prints on the host";
            section.complain(word.at, "hosts", &format!("{:?} is not the name of an NVMe host", word.text), remedy);
        }
    }
    Some(hosts.into_iter().map(|word| word.text).collect())
}

fn settings(section: &Section<'_>, words: &dyn Words) -> Vec<DesiredSetting> {
    let known = words.settings();
    let mut settings: Vec<DesiredSetting> = Vec::new();
    for (key, word) in section.settings() {
        if !known.contains(&key.as_str()) {
            let remedy = match (nearest(&key, &known), key.as_str()) {
                (_, "access") => "write it one table above, next to members".into(),
                (Some(near), _) => format!("did you mean {near}?"),
                (None, _) => format!("known settings: {}", known.join(", ")),
            };
            section.reader.complain(word.at, &format!("{}.{key}", section.path), "unknown setting", &remedy);
        } else if let Err(why) = words.check_setting(&key, &word.text) {
            section.reader.complain(word.at, &format!("{}.{key}", section.path), &why, "see `openraid set --help`");
        } else if settings.iter().any(|setting| setting.key == key) {
            let path = format!("{}.{key}", section.path);
            section.reader.complain(word.at, &path, "written twice", "once as a dotted key, or once in quotes");
        } else {
            settings.push(DesiredSetting { key, value: word.text, line: section.reader.line(word.at) });
        }
    }
    settings.sort_by(|a, b| (a.key != "profile", &a.key).cmp(&(b.key != "profile", &b.key)));
    settings
}

fn spare(section: &Section<'_>, words: &dyn Words) -> Option<DesiredSpare> {
    section.know(SPARE);
    let member = section.text("member");
    if !section.has("member") {
        section.complain(section.at, "member", "a spare without a drive", "write member = \"/dev/disk/by-id/...\"");
    }
    let span = section.number("span", 0, u64::from(u16::MAX)).and_then(|span| u32::try_from(span).ok());
    let whom = match section.text("for").map(|word| word.text) {
        None => SpareFor::All,
        Some(word) if word == "all" => SpareFor::All,
        Some(name) => SpareFor::Array { name, span },
    };
    if whom == SpareFor::All && span.is_some() {
        section.complain(
            section.at_key("span"),
            "span",
            "a span of all arrays",
            "say with for = \"NAME\" of which array",
        );
    }
    let member = member?;
    check_member(section, "member", &member, words);
    Some(DesiredSpare { member: member.text, line: section.reader.line(section.at), whom })
}
