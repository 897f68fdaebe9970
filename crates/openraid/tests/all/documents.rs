//! Texts of the program about itself and about members: examine compared with mdadm, man pages, completions, the demo.

use std::process::{Command, Stdio};

use crate::support::readline::{completed, completed_by_zsh};
use crate::support::{missing, Lab};

/// `Name : value` lines of `mdadm --examine`.
fn mdadm(lab: &Lab, member: &str) -> Option<Vec<(String, String)>> {
    let output = Command::new("mdadm").arg("--examine").arg(lab.path(member)).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| line.split_once(" : ").map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    Some(text.lines().filter_map(pair).collect())
}

#[test]
fn examine_agrees_with_mdadm_about_every_kind_of_array() {
    let cases = [
        ("--level 5 --chunk 64K", 3),
        ("--level 6 --chunk 16K --layout ddf-N-restart --metadata 1.0", 5),
        ("--level 1 --metadata 1.1", 2),
        ("--level 10 --chunk 32K --layout f2", 4),
        ("--level 0 --chunk 512K", 3),
        ("--level linear", 2),
        ("--level 5 --chunk 64K --bitmap internal --assume-clean", 3),
        ("--level 5 --chunk 64K --consistency-policy ppl --assume-clean", 3),
        ("--level 5 --chunk 16K --consistency-policy ppl --metadata 1.0", 4),
    ];
    for (options, count) in cases {
        let lab = Lab::new("examine");
        let names: Vec<String> = (0..count).map(|n| format!("d{n}")).collect();
        lab.line(&format!("create data --file-size 16M {options} {}", names.join(" "))).expect(0);
        for name in &names {
            let Some(theirs) = mdadm(&lab, name) else { return missing("mdadm is not installed") };
            let value = |key: &str| theirs.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
            let examined = lab.line(&format!("examine {name} --json")).expect(0).json();
            let ours = &examined["members"][0]["superblock"];
            let text = |key: &str| ours[key].as_str().unwrap_or_default().to_owned();
            assert_eq!(value("Version"), Some(text("version").as_str()), "{options}");
            assert_eq!(value("Array UUID"), Some(text("uuid").as_str()), "{options}");
            assert_eq!(value("Device UUID"), Some(text("device_uuid").as_str()), "{options}");
            assert_eq!(value("Raid Level"), Some(text("level").as_str()), "{options}");
            assert_eq!(value("Raid Devices"), Some(ours["slots"].to_string().as_str()), "{options}");
            assert_eq!(value("Events"), Some(ours["events"].to_string().as_str()), "{options}");
            let state = if ours["clean"] == true { "clean" } else { "active" };
            assert_eq!(value("State"), Some(state), "{options}");
            assert_eq!(value("Device Role"), Some(format!("Active device {}", ours["slot"]).as_str()), "{options}");
            let place = format!("{} sectors", ours["data_offset_sectors"]);
            assert_eq!(value("Data Offset").unwrap_or("0 sectors"), place, "{options}");
            assert!(value("Checksum").is_some_and(|value| value.ends_with("correct")), "{options}");
            assert!(value("Array State").is_some_and(|value| value.starts_with(&text("roles"))), "{options}");
            if let Some(layout) = value("Layout").filter(|_| !options.contains("f2")) {
                assert_eq!(layout, text("layout"), "{options}");
            }
        }
    }
}

/// The verbs in the program's help: each has a line after "Commands:" that begins with two spaces.
fn verbs_of(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect()
}

#[test]
fn man_pages_and_completions_cover_every_verb() {
    let lab = Lab::new("man");
    let pages = lab.line("man pages --json").expect(0).json();
    let pages: Vec<&str> = pages["pages"].as_array().expect("a list").iter().filter_map(|page| page.as_str()).collect();
    let help = lab.line("--help").expect(0).text();
    let verbs = verbs_of(&help);
    assert!(verbs.len() > 20 && verbs.contains(&"create") && verbs.contains(&"serve"), "{verbs:?} of {help}");
    for verb in &verbs {
        let page = format!("openraid-{verb}.1");
        assert!(pages.contains(&page.as_str()), "{page} is missing in {pages:?}");
        let text = std::fs::read_to_string(lab.path("pages").join(&page)).expect("the page");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}");
    }
    let all = pages.iter().map(|page| lab.path("pages").join(page));
    match Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(all).output() {
        Ok(judged) => assert_eq!(String::from_utf8_lossy(&judged.stdout), "", "mandoc finds nothing"),
        Err(_) => missing("mandoc is not installed"),
    }
    for shell in ["bash", "zsh", "fish"] {
        lab.line(&format!("completions {shell}")).expect(0).says(&["COMPLETE", "openraid"]);
    }
    for verb in &verbs {
        let offered = completed(&lab, &["openraid", verb]);
        assert!(offered.iter().any(|word| word == verb), "{verb} is not in {offered:?}");
    }
    lab.line("completions tcl").refused(64, &["tcl"]);
    // A reader that stops early is no error.
    let mut child = lab.command(&["completions", "bash"]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_shell_completes_names_of_arrays_members_and_settings() {
    let lab = Lab::new("complete");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    lab.line("create dusk --level 1 --assume-clean --file-size 16M d2 d3").expect(0);
    assert_eq!(completed(&lab, &["openraid", "show", "d"]), ["data", "dusk"]);
    assert_eq!(completed(&lab, &["openraid", "stop", "da"]), ["data"]);
    let member = lab.path("d3").display().to_string();
    assert_eq!(completed(&lab, &["openraid", "fail", "dusk", &member]), [member]);
    // Readline replaces what follows the sign.
    assert_eq!(completed(&lab, &["openraid", "set", "data", "write.cache="]), ["through", "journal", "volatile"]);
    assert_eq!(completed(&lab, &["openraid", "set", "data", "write.cache=th"]), ["through"]);
    lab.run(&["create", "odd", "--level", "1", "--assume-clean", "--file-size", "16M", "a b", "c'q"]).expect(0);
    let folder = lab.path("").display().to_string();
    assert_eq!(completed(&lab, &["openraid", "fail", "odd", &format!("{folder}a")]), [format!(r"{folder}a\ b")]);
    assert_eq!(completed(&lab, &["openraid", "fail", "odd", &format!("'{folder}c")]), [format!("{folder}c'q")]);
    assert!(completed(&lab, &["openraid", "set", "data", "rebuild.r"]).contains(&"rebuild.rate=".to_owned()));
    assert!(completed(&lab, &["openraid", "show", "da", "--mdst"]).contains(&"--mdstat".to_owned()));
}

#[test]
fn zsh_completes_words_whose_quote_is_open() {
    let lab = Lab::new("complete-zsh");
    lab.run(&["create", "data", "--level", "1", "--assume-clean", "--file-size", "16M", "a b", "c'q"]).expect(0);
    let folder = lab.path("").display().to_string();
    for (line, wanted) in [
        ("openraid show da".to_owned(), "openraid show data".to_owned()),
        ("openraid show 'da".to_owned(), "openraid show 'data'".to_owned()),
        (format!("openraid fail data {folder}a"), format!(r"openraid fail data {folder}a\ b")),
        (format!("openraid fail data '{folder}a "), format!("openraid fail data '{folder}a b'")),
        (format!("openraid fail data \"{folder}c"), format!("openraid fail data \"{folder}c'q\"")),
        ("openraid set data 'write.cache=j".to_owned(), "openraid set data 'write.cache=journal'".to_owned()),
    ] {
        let Some(found) = completed_by_zsh(&lab, &line) else { return };
        assert_eq!(found, wanted, "{line}");
    }
}

#[test]
fn the_demo_ends_by_itself_and_every_byte_was_right() {
    let lab = Lab::new("demo");
    let folder = lab.path("drives");
    let path = folder.to_str().expect("UTF-8");
    let shown = lab.run(&["demo", "--seconds", "2", "--json", "--folder", path]).expect(0).json();
    assert_eq!(shown["every_byte_right"], true);
    assert_eq!(shown["compared_at_the_end_bytes"], 315 << 20);
    assert!(shown["requests"].as_u64() > Some(100), "{shown}");
    assert!(!folder.exists(), "what the demo made is removed");
}

#[test]
fn the_bare_root_gets_sources_of_its_own_suite_whatever_this_machine_has() {
    let lab = Lab::new("sources");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/fresh");
    let trixie = "http://mirror.example/debian trixie\\nhttp://mirror.example/security trixie-security";
    let with_bookworm = format!("{trixie}\\nhttp://other.example/debian bookworm");
    for (sites, wanted) in [
        // Debian's own mirrors instead of the ones of this machine.
        (trixie, "http://deb.debian."),
        (with_bookworm.as_str(), "http://other.example/debian "),
        ("", "http://deb.debian."),
    ] {
        let apt = lab.path("root/etc/apt");
        std::fs::create_dir_all(apt.join("sources.list.d")).expect("a folder");
        std::fs::create_dir_all(apt.join("preferences.d")).expect("a folder");
        std::fs::write(apt.join("sources.list.d/host.sources"), "Suites: trixie").expect("room");
        std::fs::write(apt.join("sources.list"), "deb http://mirror.example/debian trixie main").expect("room");
        let line = format!("source \"$1\"; sites() {{ printf '{sites}\\n'; }}; write_sources \"$2\" \"$(mirror)\"");
        let done = Command::new("bash").args(["-c", &line, "bash", script]).arg(lab.path("root")).status();
        assert!(done.expect("bash").success());
        let source = std::fs::read_to_string(apt.join("sources.list")).expect("it is written");
        assert!(source.starts_with(&format!("deb {wanted}")) && source.ends_with(" bookworm main\n"), "{source}");
        assert_eq!(source.lines().count(), 1, "{source}");
        assert_eq!(std::fs::read_dir(apt.join("sources.list.d")).expect("a folder").count(), 0);
        assert!(!apt.join("preferences.d").exists());
    }
}
