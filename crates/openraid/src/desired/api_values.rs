//! What the console and the API set of the server: a file next to the registry. The configuration file belongs to the administrator
//! and is not changed; what stands in it has priority.
//!
//! The words are those of the configuration file, and the same reader checks them.

use openraid_config::{DesiredSink, DesiredSpare, DesiredState, FileValue};
use openraid_management::{KeptModel, KeptSink};
use openraid_status::SinkWord;

use super::parse;
use crate::failure::Failure;
use crate::registry::Registry;

/// The name of the file after the registry's own.
pub const FILE: &str = "kept";
/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The kept values. A file that cannot be read is named in a warning, and nothing of it counts.
pub fn read(registry: &Registry) -> KeptModel {
    let Some(text) = registry.read_beside(FILE, FILE_BYTES_MAX) else { return KeptModel::default() };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let path = registry.folder_beside(FILE);
        crate::output::warn(&format!("{}: it cannot be read: {error}; set its values again", path.display()));
        KeptModel::default()
    })
}

/// A configuration with the kept values. The values of the file have priority.
pub fn merged(mut file: DesiredState, registry: &Registry) -> DesiredState {
    let Ok(kept) = understood(&read(registry)) else { return file };
    file.server.cache = file.server.cache.or(kept.server.cache);
    file.server.journal = file.server.journal.or(kept.server.journal);
    for spare in kept.spares {
        if !names_drive(&file, &spare.member) {
            file.spares.push(spare);
        }
    }
    for sink in kept.sinks {
        if file.sinks.iter().all(|known| known.name != sink.name) {
            file.sinks.push(sink);
        }
    }
    file
}

/// Does a configuration name this drive?
pub fn names_drive(file: &DesiredState, drive: &str) -> bool {
    let of_arrays = file.arrays.iter().flat_map(|array| &array.members);
    of_arrays.chain(file.spares.iter().map(|spare| &spare.member)).any(|member| member == drive)
}

/// A TOML string; a JSON string is a valid one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|text| quoted(text)).collect();
    format!("[{}]", all.join(", "))
}

/// The meaning of kept values, by the words of the configuration file. None of them has a line.
///
/// # Errors
/// The first value that cannot be.
pub fn understood(kept: &KeptModel) -> Result<DesiredState, Failure> {
    let mut text = String::from("[server]\n");
    text.extend(kept.cache.as_ref().map(|cache| format!("cache = {}\n", quoted(cache))));
    text.extend((!kept.journal.is_empty()).then(|| format!("journal = {}\n", list(&kept.journal))));
    text.extend(kept.spares.iter().map(|spare| format!("[[spares]]\nmember = {}\nfor = \"all\"\n", quoted(spare))));
    for sink in &kept.sinks {
        text.push_str(&table(sink)?);
    }
    let read = parse(&text).map_err(|problems| {
        let problem = &problems.0[0];
        Failure::usage(format!("{}: {}; {}", problem.key, problem.what, problem.remedy))
    })?;
    let mut desired = DesiredState::default();
    desired.server.cache = read.server.cache.map(|cache| FileValue { line: 0, ..cache });
    desired.server.journal = read.server.journal.map(|journal| FileValue { line: 0, ..journal });
    desired.spares = read.spares.into_iter().map(|spare| DesiredSpare { line: 0, ..spare }).collect();
    desired.sinks = read.sinks.into_iter().map(|sink| DesiredSink { line: 0, ..sink }).collect();
    Ok(desired)
}

/// A sink as a table. Programs run as the server's account, and a password is read from any file: both are for the administrator of the
/// machine, in the configuration file.
fn table(sink: &KeptSink) -> Result<String, Failure> {
    let name = &sink.name;
    if matches!(SinkWord::named(&sink.kind), None | Some(SinkWord::Exec)) {
        return Err(Failure::usage(format!(
            "sinks.{name}.kind: {:?} is not webhook, mail or journald; other kinds stand in the configuration file",
            sink.kind
        )));
    }
    let mut text = format!("[sinks.{}]\nkind = {}\n", quoted(name), quoted(&sink.kind));
    let values = [
        ("level", &sink.level),
        ("url", &sink.url),
        ("form", &sink.form),
        ("server", &sink.server),
        ("tls", &sink.tls),
        ("from", &sink.from),
    ];
    let given = values.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", quoted(value.as_ref()?))));
    text.extend(given);
    text.extend((!sink.to.is_empty()).then(|| format!("to = {}\n", list(&sink.to))));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(url: &str) -> KeptSink {
        KeptSink { name: "chat".into(), kind: "webhook".into(), url: Some(url.into()), ..KeptSink::default() }
    }

    #[test]
    fn kept_values_are_read_like_the_file_and_none_escapes_its_quotes() {
        let kept = KeptModel {
            cache: Some("64M".into()),
            spares: vec!["/dev/sdx".into()],
            sinks: vec![webhook("http://127.0.0.1:9/")],
            ..KeptModel::default()
        };
        let means = understood(&kept).expect("it is fine");
        assert_eq!(means.server.cache.map(|cache| (cache.value.get(), cache.line)), Some((64 << 20, 0)));
        assert_eq!((means.spares.len(), means.sinks[0].name.as_str(), means.sinks[0].line), (1, "chat", 0));
        let refused = |change: &dyn Fn(&mut KeptModel), words: &str| {
            let mut kept = kept.clone();
            change(&mut kept);
            let text = understood(&kept).expect_err("it is refused").text();
            assert!(text.contains(words), "{text}");
        };
        refused(&|input| input.cache = Some("1 horse".into()), "server.cache");
        refused(&|input| input.cache = Some("1M\"\nnbd = [\"0.0.0.0:1".into()), "server.cache");
        refused(&|input| input.spares.push("relative".into()), "relative");
        refused(&|input| input.sinks[0].kind = "exec".into(), "configuration file");
        refused(&|input| input.sinks[0].url = Some("file:///etc/shadow".into()), "url");
        refused(&|input| input.sinks[0].name = "a]\n[server".into(), "sink");
    }
}
