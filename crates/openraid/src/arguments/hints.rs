//! Words of other tools that users type out of habit, and hints to the right command. The hint for an unknown verb
//! never names a destructive command, unless the word asks for one.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::output::program;

/// Verbs of other tools, or of none.
const VERBS: &[(&[&str], &str)] = &[
    (&["status", "stat", "detail", "info", "query", "health"], "`openraid show ARRAY`, or `openraid list`"),
    (
        &["event", "monitor", "watch", "log"],
        "`openraid events --follow` prints events as they happen, `openraid show ARRAY --follow` shows progress",
    ),
    (&["start", "run", "up", "export"], "`openraid serve ARRAY`"),
    (&["mount", "connect", "map"], "`openraid attach ARRAY` makes it a disk of this machine"),
    (&["unmount", "umount", "disconnect", "unmap"], "`openraid detach ARRAY` ends its disk"),
    (&["down", "shutdown", "kill"], "`openraid stop ARRAY`"),
    (&["new", "make", "build", "init"], "`openraid create NAME --level LEVEL MEMBER...`"),
    (
        &["delete", "destroy"],
        "`openraid forget ARRAY` removes it from the registry, `openraid wipe-metadata MEMBER...` clears its members' metadata",
    ),
    (&["wipe", "zero", "zero-superblock"], "`openraid wipe-metadata MEMBER...` clears the metadata of members"),
    (&["clean", "clear"], "`openraid show ARRAY` says what an array needs, `openraid alarms acknowledge ALARM` acknowledges an alarm"),
    (
        &["resize", "expand", "extend", "shrink", "migrate"],
        "`openraid reshape ARRAY --members NEW` gives an array more members",
    ),
    (
        &["verify", "compare-members", "fsck", "test"],
        "`openraid check ARRAY` compares members, `openraid doctor MEMBER...` says whether they are usable",
    ),
    (&["fix", "heal"], "`openraid repair ARRAY` corrects mismatches, `openraid add ARRAY NEW` replaces a lost member"),
    (
        &["rebuild", "recover", "resync", "sync"],
        "`openraid add ARRAY NEW`: a rebuild starts by itself; `openraid show ARRAY --follow`",
    ),
    (&["probe", "find", "search", "discover", "ls", "devices"], "`openraid scan DIR`, or `openraid list`"),
    (&["backup", "read", "extract"], "`openraid copy-out ARRAY > image`"),
    (&["restore", "write", "import"], "`openraid copy-in ARRAY < image`"),
];

/// Options of mdadm, with what stands for them here.
const OPTIONS: &[(&[&str], &str)] = &[
    (&["-n", "--raid-devices"], "name the members; their number is the array's width (mdadm's -n is not needed)"),
    (&["-x", "--spare-devices"], "name each spare with --spare MEMBER"),
    (&["-l"], "write --level LEVEL"),
    (&["-c"], "write --chunk SIZE"),
    (&["-N"], "the name is the first word: openraid create NAME --level LEVEL MEMBER..."),
    (&["-e"], "write --metadata 1.2"),
    (&["-b"], "write --bitmap internal"),
    (&["-R", "--run"], "not needed: --yes --overwrite confirm that data may be lost"),
];

/// The word in the place of a verb, if the parser knows no such verb of the program itself.
pub fn typed_verb(error: &clap::Error) -> Option<String> {
    let is_own = error.kind() == ErrorKind::InvalidSubcommand && whose(error, program()) == program();
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if is_own => Some(typed.clone()),
        _ => None,
    }
}

/// A better tip than the parser's own, for the program of this name; `None` if that is good.
pub fn instead(error: &clap::Error, program: &str) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(ContextKind::InvalidSubcommand)?;
            let of = whose(error, program);
            let hint = find(VERBS, typed).filter(|_| of == program);
            let hint = hint.map_or_else(String::new, |hint| format!("{hint}\n"));
            Some(format!("{of} has no verb '{typed}'\n{hint}`{of} --help` lists the verbs"))
        }
        ErrorKind::UnknownArgument => {
            let typed = text(ContextKind::InvalidArg)?;
            Some(match (find(OPTIONS, typed), text(ContextKind::SuggestedArg)) {
                (Some(hint), _) => format!("there is no option '{typed}' here: {hint}"),
                (None, Some(near)) => format!("there is no option '{typed}' here; did you mean '{near}'?"),
                (None, None) if typed.starts_with('-') => {
                    format!("there is no option '{typed}' here; `--help` after the verb lists the options")
                }
                (None, None) => format!("'{typed}' is one word too many; `--help` after the verb lists its arguments"),
            })
        }
        ErrorKind::InvalidValue => {
            let (typed, option) = (text(ContextKind::InvalidValue)?, text(ContextKind::InvalidArg)?);
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
            let near = text(ContextKind::SuggestedValue);
            let near = near.map_or_else(String::new, |near| format!("did you mean '{near}'? "));
            let said = if typed.is_empty() { "a value is missing".into() } else { format!("'{typed}' is not a value") };
            let known = if valid.is_empty() {
                "`--help` after the verb says what it takes".into()
            } else {
                format!("known values: {}", valid.join(", "))
            };
            Some(format!("{said} for {option}; {near}{known}"))
        }
        _ => None,
    }
}

/// The command that lacks a verb, from the parser's line of usage: the program, or a verb with verbs of its own.
fn whose(error: &clap::Error, program: &str) -> String {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != program);
    let words: Vec<&str> = words.take_while(|word| !word.starts_with(['[', '<'])).collect();
    if words.is_empty() {
        program.into()
    } else {
        words.join(" ")
    }
}

fn find(table: &[(&[&str], &'static str)], typed: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&typed)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn no_word_of_the_table_is_a_verb_and_every_verb_that_it_names_is_one() {
        let command = Arguments::command();
        for (words, hint) in VERBS {
            for word in *words {
                assert!(command.find_subcommand(word).is_none(), "{word}");
            }
            for named in hint.split("`openraid ").skip(1) {
                let verb = named.split([' ', '`']).next().expect("a verb");
                assert!(verb == "serve" || command.find_subcommand(verb).is_some(), "{hint}");
            }
        }
    }

    #[test]
    fn unknown_words_lead_to_what_was_wanted_and_never_to_what_destroys() {
        let said = |words: &[&str]| {
            let error = Arguments::try_parse_from([&["openraid"], words].concat()).expect_err("no such line");
            instead(&error, "openraid")
        };
        let destroys = ["delete", "destroy", "wipe", "zero", "zero-superblock"];
        let table = VERBS.iter().flat_map(|(words, _)| words.iter().copied()).filter(|word| !destroys.contains(word));
        for word in ["erae", "ease", "remoe", "xyz"].into_iter().chain(table) {
            let text = said(&[word]).expect("a hint");
            assert!(!text.contains("erase") && !text.contains("wipe"), "{text}");
        }
        let text = said(&["create", "x", "--level", "5", "-n", "3", "a", "b", "c"]).expect("a hint");
        assert!(text.contains("name the members"), "{text}");
        for (words, wanted) in [
            (&["create", "x", "--level", "5", "--bogus", "a"][..], "no option '--bogus' here; `--help`"),
            (&["create", "x", "--levl", "5", "a"], "no option '--levl' here; did you mean '--level'?"),
            (&["stop", "--yess", "data"], "no option '--yess' here"),
            (&["show", "data", "--folow"], "did you mean '--follow'?"),
            (&["show", "data", "more"], "'more' is one word too many"),
            (&["frobnicate"], "openraid has no verb 'frobnicate'\n`openraid --help`"),
            (&["alarms", "ack"], "openraid alarms has no verb 'ack'\n`openraid alarms --help`"),
            (&["journal", "delete"], "openraid journal has no verb 'delete'\n`openraid journal --help`"),
            (&["create", "x", "--level", "5", "--bitmap", "interna", "a"], "did you mean 'internal'? known values: "),
        ] {
            let text = said(words).unwrap_or_else(|| panic!("no hint: {words:?}"));
            assert!(text.contains(wanted) && !text.contains("tip"), "{text}");
        }
    }
}
