//! What people read: no debug text, right plurals, standard terms, and hints that lead to what was wanted.

use crate::support;

use std::collections::BTreeSet;
use std::fs;

use crate::support::prose::{odd_plural, read_well, said};
use crate::support::web::Web;
use crate::support::{read_at, write_at, Lab};
use openraid_format::{MinorVersion, SetName, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use serde_json::Value;

const SUPERBLOCK: u64 = 4096;

#[test]
fn the_judge_of_words_sees_wrong_ones() {
    assert_eq!(odd_plural("raid5, 4 slots, 1 spares, chunk"), Some("1 spares,".into()));
    assert_eq!(odd_plural("1 array on 1 file or device (0 could not be read); 1 is there"), None);
}

#[test]
fn the_output_of_verbs_in_many_states_reads_well() {
    let lab = Lab::new("words");
    lab.drives(&["x", "y"], 8);
    read_well(
        &lab,
        &[
            "list",
            "scan .",
            "create one --level 1 --assume-clean --file-size 8M --spare s0 a0 a1",
            "create one --level 1 b0 b1",
            "create data --level 5 --chunk 64K --file-size 8M d0 d1 d2 missing",
            "list",
            "show data",
            "doctor data",
            "doctor d0",
            "doctor d0 d1",
            "assemble d0",
            "assemble d0 d1 --no-serve",
            "scan .",
            "examine d0 x",
            "erase d0",
            "wipe-metadata x",
            "copy-out d0",
            "serve d0 --nbd 127.0.0.1:0",
            "journal create --size 16M j0",
            "journal show j0",
            "create z --level 9 x y",
            "create z --level 5 -n 2 x y",
            "create z --level 5 x missing missing",
            "create z --level 1 x nowhere",
            "forget nobody",
            "check data",
            "journal show x",
            "create z --level 6 x y",
            "create z --levl 6 x y",
            "show data more",
            "serve nobody",
            "assemble nobody",
        ],
    );
    let server = lab.serve(&["data", "one", "--journal", "j0"]);
    served_read_well(&lab);
    server.kill();
    read_well(
        &lab,
        &["show data", "doctor data", "scan .", "examine d0 d1", "journal show j0", "doctor d0 d1", "doctor a0 a1 s0"],
    );
}

fn served_read_well(lab: &Lab) {
    read_well(
        lab,
        &[
            "list",
            "show data",
            "show one",
            "journal show",
            "set data write.cache=journal",
            "show data",
            "doctor one",
            "erase a0",
            "set data nonsense=1",
            "fail data d9",
            "fail one a0",
            "show one",
            "list",
            "scan .",
            "check one",
            "stop one",
            "show one",
            "create z --level 1 x d0",
            "scrub data",
            "journal show j0",
            "journal discard data",
            "explain data",
        ],
    );
}

#[test]
fn hints_lead_to_what_was_wanted() {
    let lab = Lab::new("hints");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 8M d0 d1 d2").expect(0);
    lab.line("create x --level 5 -n 3 a b c").refused(64, &["name the members", "not needed"]);
    // A dirty array that lacks a member starts by force only.
    let server = lab.serve(&["data"]);
    support::ask(&lab, &server, &[(support::WRITE, 4096, &support::noise(1, 4096))]);
    server.kill();
    let socket = lab.path("nbd.sock");
    fs::create_dir(lab.path("moved")).expect("a folder");
    fs::rename(lab.path("d2"), lab.path("moved/d2")).expect("moved");
    let tried = said(&lab, "doctor data");
    assert!(tried.contains("`openraid scan DIR` finds it"), "{tried}");
    assert!(tried.contains("next: openraid serve data --force"), "{tried}");
    let tried = said(&lab, "doctor d0");
    assert!(tried.contains("1 good one is there"), "{tried}");
    for name in ["d0", "d1"] {
        fs::rename(lab.path(name), lab.path("moved").join(name)).expect("moved");
    }
    let line = format!("serve data --nbd-unix {}", socket.display());
    lab.line(&line).refused(65, &["`openraid scan DIR` finds it"]);
    read_well(&lab, &["scan moved", "doctor data"]);
    let found = lab.line("scan moved").text();
    assert!(found.contains("next: `openraid assemble --scan moved`"), "{found}");
    lab.line("show data").refused(
        4,
        &[
            "`openraid scan DIR` finds it",
            "none of the 3 members of data could be opened; `openraid scan DIR` looks for them:",
        ],
    );
    // Files that will be made are not members that were moved.
    let ran = lab.line("create fresh --level 1 n0 n1");
    assert!(ran.code == 65 && ran.err.contains("--file-size SIZE makes") && !ran.err.contains("moved"), "{ran:?}");
    lab.line("scan nowhere").expect(65);
    // A short text file is not a drive that waits to be enlarged.
    fs::write(lab.path("notes.txt"), "buy milk\n").expect("room");
    let ran = lab.line("create x --level 1 notes.txt moved/d0");
    assert!(ran.code == 65 && !ran.err.contains("truncate") && ran.err.contains("name another file"), "{ran:?}");
    // The exports of raw drives have names of their own.
    lab.line("create bulk --level jbod --file-size 8M r0 r1").expect(0);
    let server = lab.serve(&["bulk"]);
    for line in ["fail bulk r0", "check bulk", "stop bulk"] {
        lab.line(line).refused(65, &["bulk-0, bulk-1", "no redundancy"]);
    }
    lab.line("show bulk-1").expect(0);
    server.stop();
}

#[test]
fn names_that_md_has_given_are_accepted_at_assembly() {
    for (given, here) in [
        ("server.example:backup 2024", "backup 2024"),
        ("a:b:c/d?e=f&g#h%20", "b:c/d?e=f&g#h%20"),
        ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
        ("-rf", "-rf"),
        ("caf\u{e9}\u{4e2d}", "caf\u{e9}\u{4e2d}"),
        ("bell\u{7}\u{1b}[2J", "bell__[2J"),
        (r#"it's "a\b" $(id) 50%"#, r#"it's "a\b" $(id) 50%"#),
    ] {
        let lab = Lab::new("names");
        lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
        lab.line("forget data").expect(0);
        for member in ["d0", "d1"] {
            rename(&lab, member, given);
        }
        let said = lab.line("assemble d0 d1 --no-serve").expect(0);
        assert!(!said.text().contains('\u{1b}'), "{said:?}");
        let server = lab.serve(&["--http", "127.0.0.1:0", "--", here]);
        let array = server.ready["arrays"][0].clone();
        assert_eq!(array["name"], here);
        found_by_http(&lab, &server.ready["console"], here);
        let uri = array["addresses"][0].as_str().expect("an address");
        let size = std::process::Command::new("nbdinfo").args(["--size", uri]).output().expect("nbdinfo");
        assert!(size.status.success(), "{uri}: {}", String::from_utf8_lossy(&size.stderr));
        lab.run(&["show", "--", here]).expect(0);
        lab.run(&["stop", "--", here]).expect(0);
        assert_eq!(server.end().0, 0);
    }
}

/// An array of this name is at its address in the API, at its link in Redfish, and in the figures.
fn found_by_http(lab: &Lab, console: &Value, name: &str) {
    let mut web = Web::at(console);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let shown = web.get(&format!("/api/v1/arrays/{encoded}")).expect(200).json();
    assert_eq!(shown["name"], name);
    let volumes = web.get("/redfish/v1/Systems/1/Storage/openraid/Volumes").expect(200).json();
    let links = volumes["Members"].as_array().expect("a list");
    let [link] = links.as_slice() else { panic!("{volumes:#}") };
    let volume = web.get(link["@odata.id"].as_str().expect("a link")).expect(200).json();
    assert_eq!((&volume["Name"], &volume["@odata.id"]), (&name.into(), &link["@odata.id"]));
    let drives = volume["Links"]["Drives"].as_array().expect("a list").iter();
    let drives: BTreeSet<&str> = drives.map(|link| link["@odata.id"].as_str().expect("a link")).collect();
    assert_eq!(drives.len(), 2, "files have no serial numbers, and each is a drive of its own: {drives:?}");
    drives.iter().for_each(|link| drop(web.get(link).expect(200)));
    let label = name.replace('\\', r"\\").replace('"', r#"\""#);
    let line = format!("openraid_array_survives{{array=\"{label}\"}} 1");
    let figures = web.get("/metrics").expect(200).text();
    assert!(figures.lines().any(|other| other == line), "{line}: {figures}");
}

fn rename(lab: &Lab, member: &str, name: &str) {
    let path = lab.path(member);
    let bytes = read_at(&path, SUPERBLOCK, SUPERBLOCK_BYTES_MAX);
    let size = Sectors(fs::metadata(&path).expect("it is there").len() / 512);
    let mut superblock = Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a good superblock");
    superblock.set_name = SetName::new(None, name).expect("at most 32 bytes");
    let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
    superblock.encode(&mut bytes);
    write_at(&path, SUPERBLOCK, &bytes);
}

/// The words of the command at the end of a line, as bash reads them.
fn words_after(text: &str, before: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.split_once(before)).unwrap_or_else(|| panic!("no {before:?}: {text}"));
    let script = format!("printf '%s\\n' {}", line.1);
    let ran = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(ran.status.success() && ran.stderr.is_empty(), "{script}: {ran:?}");
    String::from_utf8(ran.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn hints_with_names_of_foreign_superblocks_are_pasted_without_harm() {
    let lab = Lab::new("words;$(id) x");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    lab.line("forget data").expect(0);
    for name in ["a;id", "$(id)", "my raid", "`id`", "it's", "-x", "--force", "*"] {
        rename(&lab, "d0", name);
        let dashes: &[&str] = if name.starts_with('-') { &["--"] } else { &[] };
        let of = |verb: &'static str, more: &'static [&str]| [&["openraid", verb], dashes, &[name], more].concat();
        let said = lab.line("assemble d0").expect(1).text();
        assert_eq!(words_after(&said, "serve with: "), of("serve", &[]));
        let shown = lab.run(&["show", "--", name]).expect(1).text();
        assert_eq!(words_after(&shown, "Start it with: "), of("serve", &[]));
        let shown = lab.run(&["show", "--json", "--", name]).expect(1).json();
        let next = shown["array"]["alarms"][0]["next_step"].as_str().expect("a command");
        assert_eq!(words_after(next, ""), of("add", &["DRIVE"]));
        let doctor = lab.line("doctor d0").expect(1).text();
        assert_eq!(words_after(&doctor, "that is missing: "), of("add", &["NEW"]));
        lab.run(&["forget", "--", name]).expect(0);
    }
    // Paths too, and no name gives an order to a terminal.
    let doctor = lab.line("doctor d0").expect(1).text();
    let serve = doctor.lines().find_map(|line| line.split_once("next: ")?.1.split_once(", then")).expect("a command").0;
    assert_eq!(words_after(serve, ""), ["openraid", "serve", &lab.path("d0").display().to_string()]);
    fs::rename(lab.path("d0"), lab.path("\u{1b}[2Jd0")).expect("it is there");
    let said = lab.run(&["doctor", "\u{1b}[2Jd0", "\u{9b}missing"]).text();
    assert!(said.contains("\\033[2Jd0'") && !said.contains(['\u{1b}', '\u{9b}']), "{said}");
}

#[test]
fn hints_use_the_uuid_if_a_file_in_the_folder_has_the_name() {
    let lab = Lab::new("words-files");
    let made = lab.line("create d1 --level 1 --assume-clean --file-size 16M d0 d1").expect(0).text();
    let uuid =
        lab.line("examine d0 --json").json()["members"][0]["superblock"]["uuid"].as_str().expect("one").to_owned();
    assert_eq!(words_after(&made, "serve it with: "), ["openraid", "serve", &uuid]);
    lab.line("forget d1").expect(0);
    for name in ["d0", ".", ".."] {
        ["d0", "d1"].iter().for_each(|member| rename(&lab, member, name));
        let said = lab.line("assemble d0 d1").expect(0).text();
        assert_eq!(words_after(&said, "serve with: "), ["openraid", "serve", &uuid]);
        let shown = lab.run(&["show", name]).expect(0).text();
        assert_eq!(words_after(&shown, "Start it with: "), ["openraid", "serve", &uuid]);
        lab.run(&["pause", name]).refused(4, &[&format!("start it with `openraid serve {uuid}`")]);
        // The whole array, not the file.
        let doctor = lab.run(&["doctor", &uuid]).expect(0).text();
        assert!(doctor.contains("it starts with all members"), "{doctor}");
        lab.run(&["forget", name]).expect(0);
    }
}

#[test]
fn an_unknown_option_names_the_options_and_copy_in_without_members_is_refused() {
    let lab = Lab::new("words-options");
    let refused = lab.line("copy-out d1 --output x");
    assert!(!refused.err.contains("to pass"), "{}", refused.err);
    refused.refused(64, &["there is no option '--output' here", "--help"]);
    none_opened(&lab);
}

/// Verbs that can open no member say how many there are and why, a line for each, and end with one code.
fn none_opened(lab: &Lab) {
    fs::create_dir(lab.path("folder")).expect("a folder");
    fs::create_dir(lab.path("other")).expect("a folder");
    let verbs = ["copy-out", "copy-in", "assemble --no-serve", "doctor"];
    // Names that do not exist, or things that cannot be opened.
    for (members, code) in [(["d1", "d2"], 65), (["folder", "other"], 4), (["d1", "other"], 4)] {
        for verb in verbs {
            let ran = lab.line(&format!("{verb} {}", members.join(" "))).expect(code);
            let text = ran.text() + &ran.err;
            let of = |name: &str| {
                let path = lab.path(name).display().to_string();
                text.lines().filter(|line| line.contains(&path)).count()
            };
            assert_eq!(members.map(of), [1, 1], "{verb}: {text}");
            assert!(
                verb == "doctor" || text.contains("none of the 2 members could be opened; `openraid scan DIR`"),
                "{verb}: {text}"
            );
        }
    }
    lab.line("copy-out folder").refused(4, &["the only member could not be opened; `openraid scan DIR`"]);
}
