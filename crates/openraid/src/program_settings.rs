//! The settings of an array for users: names, values, help. `set`, the configuration file, `show`, `--json` and
//! docs/settings.md are made from here.
//!
//! The engine's settings are the table [`Policy::TABLE`]. Four more are here: they concern the server, or all settings
//! at once.

use std::fmt;

use openraid_core::admin::{Policy, Profile};
use openraid_core::settings::{Needs, SettingKind, SettingSpec, Value};
use openraid_management::{OfferModel, SettingModel};
use openraid_status::DriveClass;
use openraid_units::Sectors;
use serde_json::{Map, Value as Json};

use crate::kept_settings::{Readd, ACCESS, DRIVE_CACHE, PROFILE, READD};
use crate::quantity::{human, rate, size};
use crate::server::DriveCacheOption;

/// The profiles by name.
pub const PROFILES: [(&str, Profile); 3] =
    [("protection", Profile::Protection), ("balanced", Profile::Balanced), ("performance", Profile::Performance)];

/// A setting that is not in the table of the engine.
struct ProgramSetting {
    name: &'static str,
    default: &'static str,
    values: &'static [&'static str],
    needs: &'static str,
    help: &'static str,
}

const OTHERS: [ProgramSetting; 4] = [
    ProgramSetting {
        name: DRIVE_CACHE,
        default: "unchanged",
        values: &["on", "off", "unchanged"],
        needs: "drives of SCSI, SAS, SATA, USB or virtio",
        help: "the write caches inside the members' drives; unchanged: as they were found",
    },
    ProgramSetting {
        name: PROFILE,
        default: "balanced",
        values: &["protection", "balanced", "performance"],
        needs: "",
        help: "all settings but drive.cache, members.readd and access at once; each profile uses the journal if there is one; without a journal, \
               performance uses the volatile cache (needs serve --cache, and --yes)",
    },
    ProgramSetting {
        name: ACCESS,
        default: "read-write",
        values: &["read-write", "read-only", "blocked"],
        needs: "",
        help: "what clients may do; read-only: writes are refused, and clients stay connected; blocked: no client can connect, \
               and rebuilds and checks run",
    },
    ProgramSetting {
        name: READD,
        default: "auto",
        values: &["auto", "never"],
        needs: "",
        help: "whether a member that only vanished is added again when it returns; a member that failed for another reason never \
               is",
    },
];

/// Every setting that the table `settings` of a configuration file may have.
pub fn names() -> Vec<&'static str> {
    Policy::TABLE.iter().map(|spec| spec.name).chain([DRIVE_CACHE, PROFILE, READD]).collect()
}

/// Check a setting without an array.
///
/// # Errors
/// The values that the setting takes.
pub fn check(key: &str, value: &str) -> Result<(), String> {
    match key {
        DRIVE_CACHE => value.parse::<DriveCacheOption>().map(drop),
        READD => value.parse::<Readd>().map(drop),
        _ => apply(&mut Policy::default(), key, value, true),
    }
}

fn unknown(key: &str) -> String {
    let all: Vec<&str> = names().into_iter().chain([ACCESS]).collect();
    match openraid_config::nearest(key, &all) {
        Some(near) => format!("unknown setting {key:?}; did you mean {near}?"),
        None => format!("unknown setting {key:?}; known settings: {}", all.join(", ")),
    }
}

/// Change one setting. `has_journal`: there is a journal that can protect the array.
///
/// # Errors
/// The values that the setting takes.
pub fn apply(policy: &mut Policy, key: &str, value: &str, has_journal: bool) -> Result<(), String> {
    if key == PROFILE {
        let found = PROFILES.iter().find(|(name, _)| *name == value).map(|(_, found)| *found);
        let found = found.ok_or_else(|| wrong_word(key, value, &PROFILES.map(|(name, _)| name)))?;
        *policy = Policy::of(found, has_journal);
        return Ok(());
    }
    let spec = Policy::spec(key).ok_or_else(|| unknown(key))?;
    let read = read(spec, value)?;
    if spec.set(policy, read) {
        return Ok(());
    }
    let limit = match (spec.kind, read) {
        (SettingKind::Number(least, most), _) => format!("a number from {least} to {most}"),
        (SettingKind::Size(least, _), Value::Size(size)) if size < least => {
            format!("at least {}", human(least.bytes()))
        }
        (SettingKind::Size(_, most), _) => format!("at most {}", human(most.bytes())),
        (SettingKind::Words(_) | SettingKind::Switch(_) | SettingKind::Rate, _) => {
            panic!("bug: {key}={value} was read and does not fit")
        }
    };
    Err(format!("{key}={value}: use {limit} ({})", spec.help))
}

/// The value of a setting from its text. Ranges are not checked.
fn read(spec: &SettingSpec, text: &str) -> Result<Value, String> {
    let key = spec.name;
    match spec.kind {
        SettingKind::Words(words) | SettingKind::Switch(words) => {
            let found = words.iter().find(|word| **word == text);
            found.map(|word| Value::Word(word)).ok_or_else(|| wrong_word(key, text, words))
        }
        SettingKind::Number(least, most) => {
            let found = text.parse().map(Value::Number);
            found.map_err(|_| format!("{key}={text}: use a number from {least} to {most}"))
        }
        SettingKind::Size(..) => {
            let found = size(text).map_err(|error| format!("{key}={text}: {error}"))?;
            Ok(Value::Size(found.sectors_floor()))
        }
        SettingKind::Rate => Ok(Value::Rate(rate(text)?)),
    }
}

fn wrong_word(key: &str, value: &str, words: &[&str]) -> String {
    match words {
        [one, other] => format!("{key}={value}: use {one} or {other}"),
        _ => format!("{key}={value}: use one of {}", words.join(", ")),
    }
}

/// Does this setting make the adaptive policy forget? A reset is an order, not a value: it leaves the policy on.
pub fn is_reset(key: &str, value: &str) -> bool {
    (key, value) == ("adaptive", "reset")
}

/// Does a setting have no effect without a cache, or without copies?
pub fn needs(key: &str) -> Needs {
    Policy::spec(key).map_or(Needs::Nothing, |spec| spec.needs)
}

/// All settings of an array, one a line, as they are shown.
pub fn text(policy: &Policy) -> String {
    let lines = policy.settings().map(|setting| format!("{}={}", setting.name, setting.value));
    lines.join("\n")
}

/// The key of a setting in `--json`.
fn json_key(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

/// All settings of an array as `--json` has them: sizes and rates in bytes, switches as booleans.
pub fn json(policy: &Policy) -> Map<String, Json> {
    let value = |spec: &SettingSpec| match (spec.kind, spec.get(policy)) {
        (SettingKind::Switch(_), Value::Word(word)) => Json::from(word == "on"),
        (_, Value::Word(word)) => Json::from(word),
        (_, Value::Number(number)) => Json::from(number),
        (_, Value::Size(size) | Value::Rate(size)) => Json::from(size.bytes().get()),
        (_, Value::Time(time)) => Json::from(time.get() / 1_000_000),
    };
    let mut all: Map<String, Json> = Policy::TABLE.iter().map(|spec| (json_key(spec.name), value(spec))).collect();
    add_json(&mut all, DRIVE_CACHE, DriveCacheOption::default().word());
    add_json(&mut all, READD, Readd::default().word());
    all
}

/// Settings from `--json` in one line, with the names and words that `set` takes. Sizes and rates are in bytes.
pub fn line(settings: &Map<String, Json>) -> String {
    let word = |(key, value): (&String, &Json)| {
        let name = names().into_iter().find(|name| json_key(name) == *key).unwrap_or(key);
        match value {
            Json::Bool(on) => format!("{name}={}", if *on { "on" } else { "off" }),
            Json::String(word) => format!("{name}={word}"),
            other => format!("{name}={other}"),
        }
    };
    settings.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Add one of the settings that are not in the engine's table.
pub fn add_json(settings: &mut Map<String, Json>, name: &str, word: &str) {
    settings.insert(json_key(name), word.into());
}

/// A value as people may write it: `200M`, `none`, `on`.
fn written(value: Value) -> String {
    let short = |size: Sectors| human(size.bytes()).replace(" KiB", "K").replace(" MiB", "M").replace(" GiB", "G");
    match value {
        Value::Size(size) => short(size),
        Value::Rate(rate) if !rate.is_zero() => short(rate),
        _ => value.to_string(),
    }
}

/// The values that a setting takes.
enum TakenValues {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A range, in words.
    Range(String),
}

impl fmt::Display for TakenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::Range(range) => f.write_str(range),
        }
    }
}

fn values(kind: SettingKind) -> TakenValues {
    let range = match kind {
        SettingKind::Words(words) | SettingKind::Switch(words) => return TakenValues::Words(words),
        SettingKind::Number(least, most) => format!("{least} to {most}"),
        SettingKind::Size(Sectors::ZERO, Sectors::MAX) => "any size".into(),
        SettingKind::Size(least, most) => format!("{} to {}", written(Value::Size(least)), written(Value::Size(most))),
        SettingKind::Rate => "a size each second or none".into(),
    };
    TakenValues::Range(range)
}

const fn needs_text(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing => "",
        Needs::Cache => "serve --cache",
        Needs::Copies => "level 1 or 10",
    }
}

/// Values for a class of drives: class, setting, value, levels (none: all), reason. The engine knows the class too: it sorts
/// commands for rotating drives only, and gives SSDs more background commands at once.
const OFFERS: [(DriveClass, &str, &str, &[&str], &str); 3] = [
    (
        DriveClass::Rotating,
        "adaptive",
        "on",
        &["raid1", "raid10"],
        "single reads go to the copy with the nearest head, and long streams are read in sections from all copies, as the load needs it",
    ),
    (
        DriveClass::Ssd,
        "rebuild.rate",
        "500M",
        &[],
        "the default is the rate of a rotating drive; a SATA SSD takes about 500 MB/s",
    ),
    (DriveClass::Ssd, "scrub.rate", "250M", &[], "half the rate of a rebuild, as in the default"),
];

/// Values of settings that suit a class of drives better than the defaults.
pub fn offers() -> Vec<OfferModel> {
    let offer = |(class, setting, value, levels, why): (DriveClass, &str, &str, &[&str], &str)| OfferModel {
        class,
        setting: setting.into(),
        value: value.into(),
        levels: levels.iter().map(|level| (*level).into()).collect(),
        why: why.into(),
    };
    OFFERS.map(offer).into()
}

/// A setting for readers: name, default, values, needs, help.
type Row = (&'static str, String, TakenValues, &'static str, &'static str);

fn rows() -> Vec<Row> {
    let first = Policy::default();
    let entry = |spec: &'static SettingSpec| {
        (spec.name, written(spec.get(&first)), values(spec.kind), needs_text(spec.needs), spec.help)
    };
    let other = |other: &'static ProgramSetting| {
        (other.name, other.default.to_owned(), TakenValues::Words(other.values), other.needs, other.help)
    };
    Policy::TABLE.iter().map(entry).chain(OTHERS.iter().map(other)).collect()
}

/// Every setting, for programs that offer them.
pub fn forms() -> Vec<SettingModel> {
    let kind = |name: &str| match Policy::spec(name).map(|spec| spec.kind) {
        Some(SettingKind::Switch(_)) => "switch",
        Some(SettingKind::Number(..)) => "number",
        Some(SettingKind::Size(..)) => "size",
        Some(SettingKind::Rate) => "rate",
        Some(SettingKind::Words(_)) | None => "words",
    };
    let form = |(name, default, values, needs, help): Row| {
        let kind = kind(name);
        let words = match &values {
            TakenValues::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            TakenValues::Range(_) => Vec::new(),
        };
        let (name, values) = (name.to_owned(), values.to_string());
        let (needs, help) = (needs.to_owned(), help.to_owned());
        SettingModel { name, kind: kind.into(), default, words, values, needs, help }
    };
    rows().into_iter().map(form).collect()
}

/// Where the text of a setting begins in the help of `set`.
const HELP_INDENT: usize = 6;
/// The length of its lines: they fit into a terminal of 80 columns, or clap would wrap them once more.
const HELP_WIDTH: usize = 78;

/// The list of settings in the help of `set`, with the values of a new array.
pub fn help() -> String {
    let mut lines = Vec::new();
    for (name, default, values, needs, help) in rows() {
        let needs = if needs.is_empty() { String::new() } else { format!("; needs {needs}") };
        lines.push(format!("  {name}={default}"));
        let mut line = " ".repeat(HELP_INDENT - 1);
        for word in format!("{help} ({values}{needs})").split_whitespace() {
            if line.len() + 1 + word.len() > HELP_WIDTH {
                lines.push(std::mem::replace(&mut line, " ".repeat(HELP_INDENT - 1)));
            }
            line.push(' ');
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The table of docs/settings.md.
#[cfg(test)]
fn page_table() -> String {
    let mut text = String::from("| Setting | Default | Values | Needs | Meaning |\n|---|---|---|---|---|\n");
    for (name, default, values, needs, help) in rows() {
        let needs = if needs.is_empty() { "" } else { &format!("{needs} ") };
        let values = match values {
            TakenValues::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            TakenValues::Range(range) => range,
        };
        text.push_str(&format!("| `{name}` | `{default}` | {values} | {needs}| {help} |\n"));
    }
    text.push_str("\nThe console offers these values if all members are of one class, as far as that is known:\n\n");
    text.push_str("| Drives | Levels | Setting | Reason |\n|---|---|---|---|\n");
    for OfferModel { class, setting, value, levels, why } in offers() {
        let levels = if levels.is_empty() { "all".into() } else { levels.join(", ") };
        text.push_str(&format!("| {class} | {levels} | `{setting}={value}` | {why} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_config::Access;
    use openraid_core::admin::{MirrorRule, PartialWritePolicy, ReadAhead, WriteCache};

    #[test]
    fn settings_are_taken_by_name_and_nonsense_is_refused() {
        let mut policy = Policy::default();
        let good = "rebuild.rate=50M scrub.rate=none write.partial=rmw background.depth=3 read-ahead=always read-ahead-max=1M \
                    mirror-read=twinstor split-above=128K split-section=64K split-streams=off sorting=off adaptive=on";
        for pair in good.split_whitespace() {
            let (key, value) = pair.split_once('=').unwrap();
            apply(&mut policy, key, value, false).unwrap();
        }
        let expected = Policy {
            rebuild_rate: Sectors::mib(50),
            scrub_rate: Sectors::ZERO,
            partial_write: PartialWritePolicy::ReadModifyWrite,
            background_depth: 3,
            read_ahead: ReadAhead::Always,
            read_ahead_max: Sectors::mib(1),
            mirror_read: MirrorRule::TwinStor,
            split_above: Sectors::kib(128),
            split_section: Sectors::kib(64),
            split_streams: false,
            sorting: false,
            adaptive: true,
            ..Policy::default()
        };
        assert_eq!(policy, expected);
        let bad = "rebuild.rate=fast rebuild.rate=-1M write.partial=most background.depth=0 background.depth=1000 cache=on \
                   read-ahead=sometimes read-ahead-max=2T read-ahead-max=-1 read-ahead-max=0 mirror-read= split-section=0 \
                   split-section=512 sorting=yes adaptive=learn profile=fast write.cache=on read.cache=1";
        for pair in bad.split_whitespace() {
            let (key, value) = pair.split_once('=').unwrap();
            let why = apply(&mut policy, key, value, false).expect_err(pair);
            assert!(!why.is_empty() && policy == expected, "{pair}: {why}");
        }
        for line in ["rebuild.rate=50 MiB/s", "scrub.rate=none"] {
            assert!(text(&policy).lines().any(|found| found == line), "{line}");
        }
        assert_eq!(apply(&mut policy, "read.cache", "1", false), Err("read.cache=1: use on or off".into()));
    }

    fn profile(name: &str, has_journal: bool) -> Policy {
        let mut policy = Policy { sorting: false, split_streams: false, ..Policy::default() };
        apply(&mut policy, "profile", name, has_journal).unwrap();
        policy
    }

    #[test]
    fn every_profile_is_all_settings_at_once_and_uses_the_journal_if_there_is_one() {
        let first = Policy::default();
        for has_journal in [false, true] {
            let safe = if has_journal { WriteCache::Journal } else { WriteCache::Through };
            assert_eq!(profile("balanced", has_journal), Policy { write_cache: safe, ..first });
            let protection = Policy {
                rebuild_rate: Sectors::ZERO,
                scrub_rate: Sectors::mib(200),
                background_depth: 16,
                write_cache: safe,
                ..first
            };
            assert_eq!(profile("protection", has_journal), protection);
            let performance = Policy {
                rebuild_rate: Sectors::mib(50),
                scrub_rate: Sectors::mib(20),
                background_depth: 4,
                write_cache: if has_journal { WriteCache::Journal } else { WriteCache::Volatile },
                mirror_read: MirrorRule::NearestHead,
                adaptive: true,
                ..first
            };
            assert_eq!(profile("performance", has_journal), performance);
        }
        assert_eq!(profile("balanced", false), first, "as an array is at first");
    }

    #[test]
    fn a_reset_leaves_the_policy_on() {
        let mut policy = Policy::default();
        apply(&mut policy, "adaptive", "reset", false).unwrap();
        assert!(policy.adaptive && is_reset("adaptive", "reset") && !is_reset("adaptive", "on"));
    }

    #[test]
    fn defaults_in_the_help_are_values_that_set_takes_and_words_of_other_settings_are_theirs() {
        for (name, default, ..) in rows() {
            if name != ACCESS {
                assert_eq!(check(name, &default), Ok(()), "{name}={default}");
            }
            assert!(
                help().contains(&format!("\n  {name}={default}\n")) || help().starts_with(&format!("  {name}")),
                "{name}"
            );
        }
        let [drives, profiles, access, readd] = &OTHERS;
        assert_eq!(access.values, Access::ALL.map(Access::word));
        assert_eq!(profiles.values, PROFILES.map(|(name, _)| name));
        assert!(drives.values.iter().all(|word| word.parse::<DriveCacheOption>().is_ok()));
        assert!(readd.values.iter().all(|word| word.parse::<Readd>().is_ok()) && "yes".parse::<Readd>().is_err());
        assert!(help().lines().all(|line| line.len() <= HELP_WIDTH), "{}", help());
    }

    #[test]
    fn the_values_offered_for_a_class_of_drives_can_be_set_and_are_no_defaults() {
        let first = Policy::default();
        for OfferModel { setting, value, .. } in offers() {
            let mut policy = Policy::default();
            apply(&mut policy, &setting, &value, false).unwrap();
            assert_ne!(policy, first, "{setting}={value}");
        }
    }

    #[test]
    fn the_page_of_settings_has_the_table() {
        const BEGIN: &str = "<!-- settings: begin -->\n";
        const END: &str = "<!-- settings: end -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (head, rest) = page.split_once(BEGIN).expect("the table begins");
        let (table, tail) = rest.split_once(END).expect("the table ends");
        let wanted = format!("\n{}\n", page_table());
        if std::env::var_os("OPENRAID_BLESS").is_some() {
            std::fs::write(path, format!("{head}{BEGIN}{wanted}{END}{tail}")).expect("it can be written");
        } else {
            assert_eq!(table, wanted, "docs/settings.md is stale; run this test with OPENRAID_BLESS=1");
        }
    }
}
