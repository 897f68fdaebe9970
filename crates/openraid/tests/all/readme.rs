//! The commands of the README, the tour, the laboratory's first page and the administrator's guide, word for word, in the order in which they stand there, in a temporary folder, without root.
//!
//! All blocks of a page that begin with ` ```console ` are one session of one shell. A line that begins with `$ ` is a command. The
//! lines after it are what it prints: all of it, but a line `...` stands for any number of lines. The word after `console`
//! is why a block does not run here:
//!
//! | Word | Why |
//! | --- | --- |
//! | `root` | it needs root: `disk.rs` runs the blocks with Linux md in a guest |
//! | `guest` | it starts a Linux guest: run if its package is installed |
//! | `fuse` | it mounts by FUSE: run if there is `/dev/fuse` |
//!
//! Printed text is compared after [`Varying`] has replaced what differs from run to run, without the shell's own notices of jobs
//! that were killed.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::console::{blocks, guest_program, installed, neighbour, page, Block, Step};
use crate::support::{missing, skipped, Lab};

/// The folder in which the sessions were recorded.
const RECORDED_IN: &str = "/tmp/tour";
/// The guide's window for checks, and the one that the test uses at that time of day: a check would run in the session.
const WINDOWS: [&str; 2] = ["01:00-05:00", "13:00-17:00"];
/// A session that takes longer hangs.
const SESSION_SECONDS_MAX: &str = "1200";

/// What differs from run to run is replaced by the name of its kind, on the page and in what was printed.
struct Varying<'a> {
    folder: &'a str,
}

impl Varying<'_> {
    fn replace(&self, line: &str) -> String {
        let line = line.replace(self.folder, RECORDED_IN).replace(WINDOWS[1], WINDOWS[0]).trim_end().to_owned();
        let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
        // How far a task was when it was looked at; how much the journal held at the kill.
        let varies = line.contains(" % (") || line.contains("entries of the journal");
        if varies {
            return digits(&line);
        }
        line
    }
}

/// The SHA-256 in a word, if it has one: 64 digits, maybe after `KEY=`.
fn digest(word: &str) -> Option<&str> {
    let digits = word.rsplit('=').next()?;
    (digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// A word, or its kind: a UUID, a digest, the control socket of a process, the port of a console.
fn word(word: &str) -> String {
    if let Some(rest) = word.strip_prefix("http://127.0.0.1:") {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("CONSOLE{}", digest(rest).map_or(rest.to_owned(), |digits| rest.replace(digits, "DIGEST")));
    }
    if let Some(digits) = digest(word) {
        return word.replace(digits, "DIGEST");
    }
    let bare = word.trim_end_matches([',', ';', ')']);
    let groups: Vec<&str> = bare.split(':').collect();
    let is_hex = |group: &&str| group.len() == 8 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    if groups.len() == 4 && groups.iter().all(is_hex) {
        return word.replace(bare, "UUID");
    }
    if bare.starts_with('/') && bare.contains("/openraid/") && bare.ends_with(".sock") {
        return word.replace(bare, "SOCKET");
    }
    word.into()
}

/// Each number as one `N`.
fn digits(line: &str) -> String {
    let mut out = String::new();
    for letter in line.chars() {
        match letter {
            '0'..='9' | '.' if out.ends_with('N') => {}
            '0'..='9' => out.push('N'),
            other => out.push(other),
        }
    }
    out
}

/// Do the lines fit, if `...` stands for any number of them?
fn fits(wanted: &[String], printed: &[String]) -> bool {
    match wanted.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "..." => (0..=printed.len()).any(|from| fits(rest, &printed[from..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(line, later)| line == first && fits(rest, later)),
    }
}

/// The session as a script. The output of each command, on both outputs, goes to a file, and its exit code to another
/// file.
fn script(steps: &[&Step], records: &Path) -> String {
    let records = records.display();
    let mut script = String::from("set -u\n");
    for (nth, step) in steps.iter().enumerate() {
        let _ = writeln!(script, "exec >{records}/{nth}.out 2>&1\n{}\necho $? >{records}/{nth}.code", step.command);
    }
    script
}

/// A folder of programs: `openraid`, `openraid-lab`, and a `cargo` that starts the guest's program without building it.
fn programs(lab: &Lab) -> PathBuf {
    let folder = lab.path("programs");
    fs::create_dir(&folder).expect("a folder");
    for name in ["openraid", "openraid-lab"] {
        std::os::unix::fs::symlink(neighbour(name), folder.join(name)).expect("a link");
    }
    let guest = guest_program();
    let cargo = format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $4 $5 $6\" = 'run -p openraid-oracle --bin openraid-guest --' ] || exit 64\nshift 6\nexec {} \
         \"$@\"\n",
        guest.display()
    );
    let path = folder.join("cargo");
    fs::write(&path, cargo).expect("room");
    let made = Command::new("chmod").arg("+x").arg(&path).status().expect("chmod");
    assert!(made.success());
    folder
}

/// How far a prediction is, which a slow machine says.
fn is_progress(line: &str) -> bool {
    line.starts_with("runs: ")
}

/// Is this the shell's notice that one of its jobs was killed? The time of the notice depends on when the shell checks.
fn is_notice(line: &str) -> bool {
    line.contains("/session: line ") && line.contains(" Killed ")
}

/// May a command end with this code? 1 if its output says that the array is degraded, 65 if its output says that there
/// is no array.
fn may_end_with(step: &Step, code: &str) -> bool {
    let says = |words: &str| step.printed.iter().any(|line| line.contains(words));
    code == "0" || (code == "1" && says("degraded")) || (code == "65" && says("it belongs to no array"))
}

/// End what a session leaves mounted and running if one of its commands fails.
fn clear_up(lab: &Lab, tour: &Path) {
    for mount in ["mnt", "disk"] {
        let _ = Command::new("fusermount3").args(["-q", "-u", "-z", mount]).current_dir(tour).status();
    }
    let _ = lab.line("stop --all");
}

/// The commands of these blocks that can run here.
fn steps(blocks: &[Block]) -> Vec<&Step> {
    let guest = has_guest();
    let fuse = ["nbdfuse", "fuse2fs", "fusermount3"].iter().all(|program| installed(program));
    let mut steps = Vec::new();
    for block in blocks {
        match block.word.as_str() {
            "" => steps.extend(&block.steps),
            "guest" if guest => steps.extend(&block.steps),
            "guest" => missing("user-mode-linux is not installed, or openraid-guest is not built"),
            "lab" if neighbour("openraid-lab").exists() => steps.extend(&block.steps),
            "lab" => missing("openraid-lab is not built"),
            "fuse" if !fuse => missing("nbdfuse, fuse2fs or fusermount3 is not installed"),
            "fuse" if File::options().write(true).open("/dev/fuse").is_err() => skipped("/dev/fuse cannot be opened"),
            "fuse" => steps.extend(&block.steps),
            "root" => {}
            word => panic!("{word:?} after `console` is none of the words that this test knows"),
        }
    }
    steps
}

fn has_guest() -> bool {
    installed("linux.uml") && guest_program().exists()
}

/// Run the commands of a page as one session. Returns the digests that were printed, if all printed what stands there.
#[track_caller]
fn session(name: &str, lab: &Lab, steps: &[&Step]) -> Vec<String> {
    let (tour, records) = (lab.path("tour"), lab.path("records"));
    fs::create_dir(&records).expect("a folder");
    let path = format!("{}:{}", programs(lab).display(), std::env::var("PATH").unwrap_or_default());
    let file = lab.path("session");
    let text = script(steps, &records).replace(RECORDED_IN, tour.to_str().expect("UTF-8"));
    fs::write(&file, text).expect("room");
    let mut shell = Command::new("timeout");
    shell.args([SESSION_SECONDS_MAX, "bash"]).arg(&file).current_dir(&tour).env("PATH", path).stdin(Stdio::null());
    shell.env("XDG_STATE_HOME", lab.path("state")).env("XDG_RUNTIME_DIR", lab.path("run"));
    shell.env_remove("OPENRAID_CONTROL").env_remove("OPENRAID_REGISTRY");
    shell.status().expect("timeout");
    clear_up(lab, &tour);
    let varying = Varying { folder: tour.to_str().expect("UTF-8") };
    let (mut faults, mut digests) = (String::new(), Vec::new());
    for (nth, step) in steps.iter().enumerate() {
        let read = |kind: &str| fs::read_to_string(records.join(format!("{nth}.{kind}"))).unwrap_or_default();
        let (printed, code) = (read("out"), read("code"));
        let mut wanted: Vec<String> = step.printed.iter().map(|line| varying.replace(line)).collect();
        while wanted.last().is_some_and(String::is_empty) {
            wanted.pop();
        }
        if step.command.ends_with('&') {
            // Later output belongs to another command.
            wanted.push("...".into());
        }
        digests.extend(printed.split_whitespace().filter_map(digest).map(str::to_owned));
        let lines: Vec<String> = printed
            .lines()
            .filter(|line| !is_notice(line) && !is_progress(line))
            .map(|line| varying.replace(line))
            .collect();
        if !fits(&wanted, &lines) || !may_end_with(step, code.trim()) {
            let _ = writeln!(
                faults,
                "{name}:{}: $ {}\nended with {}\n--- the page\n{}\n--- printed\n{printed}\n",
                step.line,
                step.command,
                code.trim(),
                step.printed.join("\n")
            );
        }
    }
    assert!(faults.is_empty(), "{faults}");
    digests
}

/// Run the commands of a page in a folder of their own.
#[track_caller]
fn tour(name: &str, least: usize) -> Vec<String> {
    let blocks = blocks(&page(name));
    let steps = steps(&blocks);
    assert!(steps.len() >= least, "only {} commands were found", steps.len());
    let lab = Lab::new(&name.replace('/', "-"));
    fs::create_dir(lab.path("tour")).expect("a folder");
    session(name, &lab, &steps)
}

#[test]
fn every_command_of_the_readme_prints_what_stands_there() {
    if !installed("nbdcopy") {
        return missing("nbdcopy is not installed");
    }
    tour("README.md", 10);
}

#[test]
fn every_command_of_the_tour_prints_what_stands_there() {
    for program in ["nbdinfo", "nbdcopy", "qemu-io"] {
        if !installed(program) {
            return missing(&format!("{program} is not installed"));
        }
    }
    let digests = tour("docs/tour.md", 25);
    // The array, read by openraid and by md.
    assert!(!has_guest() || digests.len() == 2 && digests[0] == digests[1], "{digests:?}");
}

#[test]
fn the_plan_on_the_page_is_what_the_laboratory_prints() {
    if neighbour("openraid-lab").exists() {
        tour("docs/lab/before-you-buy.md", 1);
    } else {
        missing("openraid-lab is not built");
    }
}

/// The configuration file that the guide shows, with a port that is free.
fn configuration(page: &str, tour: &Path) -> String {
    let text = page.split("```toml openraid.toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = text.expect("the guide has the file").replace(RECORDED_IN, tour.to_str().expect("UTF-8"));
    let text = text.replace("127.0.0.1:8440", "127.0.0.1:0");
    let since_midnight = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() % 86_400;
    if since_midnight / 3600 < 6 {
        text.replace(WINDOWS[0], WINDOWS[1])
    } else {
        text
    }
}

#[test]
fn every_command_of_the_administrators_guide_prints_what_stands_there() {
    let name = "docs/administrator.md";
    let page = page(name);
    let blocks = blocks(&page);
    let steps = steps(&blocks);
    assert!(steps.len() > 20, "only {} commands were found", steps.len());
    let lab = Lab::new("guide");
    let tour = lab.path("tour");
    fs::create_dir(&tour).expect("a folder");
    fs::write(tour.join("openraid.toml"), configuration(&page, &tour)).expect("room");
    session(name, &lab, &steps);
}

#[test]
fn left_out_lines_and_varying_words_are_recognised() {
    let varying = Varying { folder: "/tmp/x-1" };
    let same = |a: &str, b: &str| varying.replace(a) == varying.replace(b);
    assert!(same("  uuid      2b9a793f:90284d97:b3a3269f:23b8f6ec", "  uuid      00000000:11111111:22222222:33333333"));
    assert!(same(
        "data: rebuild 5 % (20 MiB of 255 MiB), 18.8 MiB/s",
        "data: rebuild 59 % (1 MiB of 255 MiB), 9 MiB/s"
    ));
    assert!(!same("  size      765 MiB (802160640 bytes)", "  size      766 MiB (802160640 bytes)"));
    assert!(same("/tmp/tour/d2 of data", "/tmp/x-1/d2 of data"));
    let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&lines("a ... d"), &lines("a b c d")) && fits(&lines("a ..."), &lines("a")));
    assert!(
        !fits(&lines("a d"), &lines("a b d")) && !fits(&lines("... d"), &lines("a d e")) && !fits(&[], &lines("a"))
    );
}
