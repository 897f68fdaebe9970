//! What the guides of `docs/` tell an administrator to type, and what they say that the program prints: verbs, options and settings
//! exist, and every message that is quoted stands in the sources.

use std::fs;
use std::path::Path;

use crate::support::console::page;
use crate::support::Lab;

const GUIDES: [&str; 3] = ["docs/recovery.md", "docs/other-tools.md", "docs/administrator.md"];

/// The code spans of a page: what stands between two backticks on a line, outside fenced blocks.
fn spans(page: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(|span| (number + 1, span.to_owned())));
        }
    }
    found
}

/// The words of a command without a redirection: `...` stands for more of the same.
fn words(span: &str) -> Vec<&str> {
    span.split_whitespace()
        .take_while(|word| !word.starts_with(['>', '|', '<']))
        .filter(|word| *word != "...")
        .collect()
}

#[test]
fn commands_of_the_guides_have_verbs_options_and_settings_that_exist() {
    let lab = Lab::new("guides");
    let settings = page("docs/settings.md");
    let mut tried = std::collections::BTreeSet::new();
    for guide in GUIDES {
        for (line, span) in spans(&page(guide)) {
            let words = words(&span);
            if words.first() != Some(&"openraid") || !tried.insert(span.clone()) {
                continue;
            }
            let arguments: Vec<&str> = words[1..].iter().copied().chain(["--help"]).collect();
            let ran = lab.run(&arguments);
            assert_eq!(ran.code, 0, "{guide}:{line}: {span}: {ran:?}");
            if words.get(1) == Some(&"set") {
                for pair in words.iter().filter(|word| word.contains('=')) {
                    let key = pair.split('=').next().unwrap_or_default();
                    assert!(settings.contains(&format!("| `{key}` |")), "{guide}:{line}: {key} is no setting");
                }
            }
        }
    }
    assert!(tried.len() > 60, "only {} commands were found", tried.len());
}

/// All sources of the program as one text, in which a string over several lines is one line.
fn sources(folder: &Path, all: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            for part in text.split("\\\n") {
                all.push_str(if all.ends_with(' ') || all.is_empty() { part.trim_start() } else { part });
            }
            all.push('\n');
        }
    }
}

#[test]
fn messages_that_the_recovery_guide_quotes_stand_in_the_sources() {
    let mut all = String::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["openraid", "management", "core", "runtime", "sys", "status", "format"] {
        sources(&crates.join(name).join("src"), &mut all);
    }
    let (mut quoted, mut faults) = (0, Vec::new());
    for (number, line) in page("docs/recovery.md").lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let seen = line.split('|').nth(1).unwrap_or_default();
        for message in seen.split('"').skip(1).step_by(2) {
            // A fault and its remedy are apart in the program.
            for part in message.split("...").flat_map(|one| one.split(';')).map(str::trim).filter(|part| part.len() > 3)
            {
                quoted += 1;
                if !all.contains(part) {
                    faults.push(format!("docs/recovery.md:{}: {part:?} is in no source", number + 1));
                }
            }
        }
        // An alarm or event is a word of the program, too.
        let unquoted: String = seen.split('"').step_by(2).collect();
        for word in unquoted.split('`').skip(1).step_by(2).filter(|word| word.chars().all(char::is_alphanumeric)) {
            let is_known = openraid_status::EventName::named(word).is_some() || all.contains(&format!("\"{word}\""));
            if !is_known {
                faults
                    .push(format!("docs/recovery.md:{}: {word} is not an event or a word of the program", number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(quoted > 20, "only {quoted} messages were found");
}

#[test]
fn the_socket_of_the_disk_page_is_the_one_of_the_package() {
    let (text, package) = (page("docs/disk.md"), page("packaging/openraid.service"));
    // The page's socket is that of the packaged configuration and of the packaged sockets, and all commands use it.
    let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)).expect("the unit has the key");
    let socket = page("packaging/openraid.socket")
        .lines()
        .find_map(|line| line.strip_prefix("ListenStream=").map(str::to_owned));
    let socket = socket.expect("the unit has it");
    assert!(page("packaging/openraid.toml").contains(&format!("\nnbd-unix = [\"{socket}\"]\n")));
    let sockets = text.match_indices(".sock").count();
    // Those of virtual machines are of another kind.
    let known = [socket.as_str(), "/service.sock", "FOLDER/NAME.sock", "/run/vm/data.sock"];
    assert_eq!(known.iter().map(|name| text.matches(name).count()).sum::<usize>(), sockets, "another socket");
    // What the package's unit starts exists, and takes a configuration with this socket.
    let lab = Lab::new("disk-page");
    fs::write(lab.path("openraid.toml"), format!("[server]\nnbd-unix = [\"{socket}\"]\n")).expect("room");
    let command = value("ExecStart=/usr/bin/openraid ").replace("/etc/openraid/openraid.toml", "openraid.toml");
    lab.line(&format!("{command} --help")).expect(0);
    lab.line("config check openraid.toml").expect(0).says(&[&socket]);
}
