//! Whole files: what they mean, and each kind of mistake with its line and its remedy.

use openraid_config::{
    parse, Access, AfterPowerCut, ArrayId, DesiredSetting, DesiredState, SpareFor, Words, FILE_BYTES_MAX,
};
use openraid_status::alarm::Severity;
use openraid_units::Bytes;

/// Plain words, which share nothing with those of the program.
struct Plain;

impl Words for Plain {
    fn settings(&self) -> Vec<&'static str> {
        vec!["rebuild.rate", "write.cache", "profile", "sorting", "background.depth"]
    }
    fn check_setting(&self, key: &str, value: &str) -> Result<(), String> {
        if key == "background.depth" && value.parse::<u32>().is_err() {
            return Err(format!("{key}={value}: use a number"));
        }
        Ok(())
    }
    fn size(&self, text: &str) -> Result<Bytes, String> {
        let digits = text.strip_suffix('M').ok_or("no size")?;
        digits.parse().map(Bytes::mib).map_err(|_| "no size".into())
    }
    fn check_name(&self, text: &str) -> Result<(), String> {
        let good = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
        good.then_some(()).ok_or_else(|| "no name of an array".into())
    }
    fn check_member(&self, text: &str) -> Result<(), String> {
        (!text.is_empty()).then_some(()).ok_or_else(|| "names nothing".into())
    }
}

fn good(text: &str) -> DesiredState {
    parse(text, &Plain).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Line, key and words of each problem.
#[track_caller]
fn wrong(text: &str, wanted: &[(u32, &str, &str)]) {
    let problems = parse(text, &Plain).expect_err(text).0;
    let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), wanted.len(), "{found:#?}");
    for (problem, (line, key, words)) in problems.iter().zip(wanted) {
        assert_eq!((problem.line, problem.key.as_str()), (*line, *key), "{found:#?}");
        assert!(problem.to_string().contains(words), "{words:?} is not in {problem}");
    }
}

#[test]
fn a_file_describes_a_server() {
    let desired = good(
        "[server]\nnbd = \"10810\"\ncache = \"64M\"\nqueue-age = 5\njournal = [\"/dev/disk/by-id/j\"]\n\
         after-power-cut = \"admit\"\n\n\
         [arrays.data]\nmembers = [\"/x\", \"nbd://host/y\"]\nexports = [\"data\", \"vm1\"]\naccess = \"read-only\"\n\
         settings.rebuild.rate = \"50M\"\nsettings.sorting = false\nsettings.background.depth = 4\n\
         settings.profile = \"balanced\"\n\n\
         [arrays.\"00112233:44556677:8899aabb:ccddeeff\".settings]\n\"write.cache\" = \"through\"\n\n\
         [[spares]]\nmember = \"/s0\"\n\n[[spares]]\nmember = \"/s1\"\nfor = \"data\"\nspan = 1\n",
    );
    let server = &desired.server;
    assert_eq!(server.cache.as_ref().map(|placed| (placed.value, placed.line)), Some((Bytes::mib(64), 3)));
    assert_eq!(server.nbd.as_ref().map(|placed| placed.value.clone()), Some(vec!["10810".into()]));
    assert_eq!(server.queue_age.as_ref().map(|placed| placed.value), Some(5));
    assert_eq!(server.after_power_cut.as_ref().map(|placed| placed.value), Some(AfterPowerCut::Admit));
    assert_eq!(server.memory, None);
    let by_uuid = &desired.arrays[0];
    assert!(matches!(by_uuid.id, ArrayId::Uuid(uuid) if uuid.0[15] == 0xff), "{by_uuid:?}");
    let written = |settings: &[DesiredSetting]| -> Vec<String> {
        settings.iter().map(|setting| format!("{}={} line {}", setting.key, setting.value, setting.line)).collect()
    };
    assert_eq!(written(&by_uuid.settings), ["write.cache=through line 18"]);
    let data = &desired.arrays[1];
    assert_eq!(data.id, ArrayId::Name("data".into()));
    assert_eq!(data.access.as_ref().map(|placed| (placed.value, placed.line)), Some((Access::ReadOnly, 11)));
    assert_eq!(data.exports, ["data", "vm1"]);
    let settings =
        ["profile=balanced line 15", "background.depth=4 line 14", "rebuild.rate=50M line 12", "sorting=off line 13"];
    assert_eq!(written(&data.settings), settings);
    assert_eq!(desired.spares[0].whom, SpareFor::All);
    assert_eq!(desired.spares[1].whom, SpareFor::Array { name: "data".into(), span: Some(1) });
    assert_eq!((desired.spares[1].member.as_str(), desired.notes.len()), ("/s1", 0));
    assert_eq!(good(""), DesiredState::default());
}

#[test]
fn a_key_that_is_not_known_is_answered_with_the_nearest_or_with_its_place() {
    wrong("[server]\ncahce = \"64M\"\n", &[(2, "server.cahce", "did you mean cache?")]);
    wrong("\n[servers]\ncache = \"64M\"\n", &[(2, "servers", "did you mean server?")]);
    wrong("[arrays.data]\ncache = \"64M\"\n", &[(2, "arrays.data.cache", "it belongs in [server]")]);
    wrong(
        "[arrays.data]\nrebuild.rate = \"5M\"\n",
        &[(2, "arrays.data.rebuild", "it belongs in [arrays.NAME.settings]")],
    );
    let text = "[arrays.data.settings]\nrebuild.rat = \"5M\"\naccess = \"blocked\"\nfoo = 1\n";
    let key = "arrays.data.settings";
    wrong(
        text,
        &[
            (2, &format!("{key}.rebuild.rat"), "did you mean rebuild.rate?"),
            (3, &format!("{key}.access"), "one table above"),
            (4, &format!("{key}.foo"), "known settings: rebuild.rate"),
        ],
    );
    wrong("[[spares]]\nmember = \"/x\"\nfro = \"all\"\n", &[(3, "spares.fro", "did you mean for?")]);
}

#[test]
fn exports_of_the_server_itself_as_members_are_told_in_notes() {
    let text = "[server]\nnbd = [\"10810\"]\nnbd-unix = [\"/run/own.sock\"]\n[arrays.a]\n\
                members = [\"nbd+unix:///x?socket=/run/own.sock\", \"nbd://localhost:10810/x\", \"nbd://localhost/x\"]\n\
                [[spares]]\nmember = \"nbd://127.0.0.1:10810/y\"\nfor = \"all\"\n";
    let notes = good(text).notes;
    let found: Vec<_> = notes.iter().map(|note| (note.line, note.key.as_str())).collect();
    assert_eq!(found, [(5, "arrays.a.members"), (5, "arrays.a.members"), (7, "spares.member")], "{notes:?}");
    assert!(notes.iter().all(|note| note.what.contains("is an export of this server")), "{notes:?}");
}

#[test]
fn all_impossible_values_are_reported_at_once() {
    let text =
        "[server]\nnbd = 10809\nnbd-unix = [\"a.sock\", 4]\ncache = \"big\"\ndrive-depth = 129\nqueue-age = \"5\"\n\
                journal = [\"/a\", \"/b\", \"/c\"]\n[arrays.data]\naccess = \"read_only\"\nexports = [\"\"]\n\
                settings = \"none\"\nmembers = [\"d0\"]\n[arrays.\"a b\"]\n[spares]\nmember = \"/x\"\n";
    wrong(
        text,
        &[
            (2, "server.nbd", "a number where a list of texts belongs"),
            (3, "server.nbd-unix", "not an absolute path"),
            (3, "server.nbd-unix", "a number in a list of texts"),
            (4, "server.cache", "a size is written like 64M"),
            (5, "server.drive-depth", "write a number from 1 to 128"),
            (6, "server.queue-age", "a text where a number belongs"),
            (7, "server.journal", "2 is the most"),
            (9, "arrays.data.access", "did you mean read-only?"),
            (10, "arrays.data.exports", "not the name of an export"),
            (11, "arrays.data.settings", "a text where a table belongs"),
            (12, "arrays.data.members", "not an absolute path"),
            (13, "arrays.\"a b\"", "no name of an array"),
            (14, "spares", "write [[spares]]"),
        ],
    );
    let near = "did you mean refuse?";
    wrong("[server]\nafter-power-cut = \"refused\"\n", &[(2, "server.after-power-cut", near)]);
    wrong("[server]\nnbd = [\"host:99999\"]\n", &[(2, "server.nbd", "write HOST:PORT")]);
    wrong("[[spares]]\nspan = 1\n", &[(1, "spares.member", "without a drive"), (2, "spares.span", "for = \"NAME\"")]);
    wrong("[arrays.d.settings]\nbackground.depth = \"x\"\n", &[(2, "arrays.d.settings.background.depth", "a number")]);
}

#[test]
fn a_drive_or_address_that_is_used_twice_is_refused_with_both_lines() {
    let text =
        "[server]\njournal = \"/j\"\nnbd = [\"1\", \"1\"]\n[arrays.a]\nmembers = [\"/x\", \"/y\"]\nexports = [\"e\"]\n\
                [arrays.b]\nmembers = [\"/x\"]\nexports = [\"e\"]\n[[spares]]\nmember = \"/j\"\n";
    wrong(
        text,
        &[
            (3, "server.nbd", "line 3 (server.nbd) has it already"),
            (8, "arrays.b.members", "line 5 (arrays.a.members) has it already"),
            (9, "arrays.b.exports", "line 6 (arrays.a.exports)"),
            (11, "spares.member", "line 2 (server.journal)"),
        ],
    );
}

#[test]
fn a_file_that_is_no_toml_or_incomplete_is_refused_with_the_line() {
    wrong("[server]\ncache = \"64M\n", &[(2, "", "not TOML")]);
    wrong("[server]\ncache = \"64M\"\ncache = \"32M\"\n", &[(3, "", "duplicate key")]);
    wrong("[server]\n[server]\n", &[(2, "", "duplicate key")]);
    wrong("[arrays.data\n", &[(1, "", "not TOML")]);
    wrong("server = 5\n", &[(1, "server", "a number where a table belongs")]);
    let long = "#".repeat(FILE_BYTES_MAX + 1);
    wrong(&long, &[(1, "", "name the right file")]);
}

#[test]
fn every_prefix_of_a_file_is_read_or_refused() {
    let text = "[server]\nnbd = [\"1\", '2']\ncache = \"64M\"\n[arrays.\"a\".settings]\nrebuild.rate = \"\"\"x\"\"\"\n[[spares]]\n\
                member = \"/\\u00e9\"\n";
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        let cut = &text[..end];
        if let Err(problems) = parse(cut, &Plain) {
            let lines = u32::try_from(cut.matches('\n').count() + 1).expect("few");
            assert!(problems.0.iter().all(|problem| problem.line >= 1 && problem.line <= lines), "{cut:?}: {problems}");
        }
    }
}

#[test]
fn a_drive_whose_name_can_change_is_noted() {
    let desired = good("[arrays.a]\nmembers = [\"/dev/sdb\", \"/dev/disk/by-id/x\"]\n");
    assert_eq!(desired.notes.len(), 1);
    assert!(desired.notes[0].to_string().starts_with("line 2: arrays.a.members: /dev/sdb may be another drive"));
}

#[test]
fn sinks_are_read_and_each_mistake_is_named() {
    let desired = good(
        "[sinks.pager]\nkind = \"exec\"\nprogram = \"/bin/pager\"\nlevel = \"critical\"\n[sinks.mail]\nkind = \"mail\"\n\
         server = \"mail:587\"\nfrom = \"a@b\"\nto = \"c@d\"\n[sinks.hook]\nkind = \"webhook\"\nurl = \"https://host/x\"\n\
         form = \"alertmanager\"\n[sinks.log]\nkind = \"journald\"\n",
    );
    let sinks: Vec<(&str, &str, Severity)> =
        desired.sinks.iter().map(|sink| (sink.name.as_str(), sink.kind.word().word(), sink.level)).collect();
    let wanted = [
        ("hook", "webhook", Severity::Warning),
        ("log", "journald", Severity::Warning),
        ("mail", "mail", Severity::Warning),
        ("pager", "exec", Severity::Critical),
    ];
    assert_eq!(sinks, wanted);
    wrong(
        "[sinks.a]\nkind = \"exce\"\n[sinks.b]\nkind = \"webhook\"\nurl = \"ftp://x\"\nlevel = \"loud\"\n[sinks.c]\n\
         kind = \"mail\"\nserver = \"mail\"\nfrom = \"me\"\nuser = \"x\"\n[sinks.d]\nkind = \"exec\"\nprogram = \"run me\"\n\
         to = \"x\"\n[sinks.\"e e\"]\nkind = \"journald\"\n",
        &[
            (2, "sinks.a.kind", "did you mean exec?"),
            (5, "sinks.b.url", "write https://HOST/PATH"),
            (6, "sinks.b.level", "use one of info, warning, critical"),
            (7, "sinks.c.to", "missing"),
            (7, "sinks.c.user", "write user and password-file"),
            (9, "sinks.c.server", "write HOST:PORT"),
            (10, "sinks.c.from", "write NAME@HOST"),
            (14, "sinks.d.program", "not an absolute path"),
            (15, "sinks.d.to", "it belongs in [sinks.NAME]"),
            (16, "sinks.\"e e\"", "not a valid name for a sink"),
        ],
    );
}
