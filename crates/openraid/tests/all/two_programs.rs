//! The program of the controller without the laboratory: what it links, what it says of verbs that moved, and what its
//! console says.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::web::Web;
use crate::support::{Lab, Ran, PROGRAM};
use serde_json::{json, Value};

/// The crates in the program, a name to a line. A new line is a decision: see "A dependency" in CONTRIBUTING.md.
const CRATES: &str = "tests/crates.txt";
/// Crates that only the laboratory has.
const OF_LABORATORY: [&str; 5] =
    ["openraid-claims", "openraid-drives", "openraid-methods", "openraid-models", "openraid-sim"];
/// The words of a verb that moved, with the laboratory's program absent.
const MOVED: &str = "is a verb of openraid-lab, which is not installed: install it, then run `openraid-lab plan`";

/// The program alone in a folder.
fn alone(lab: &Lab) -> PathBuf {
    let program = lab.path("alone/openraid");
    fs::create_dir(lab.path("alone")).expect("a folder");
    fs::hard_link(PROGRAM, &program).or_else(|_| fs::copy(PROGRAM, &program).map(drop)).expect("a program");
    program
}

fn run(program: &Path, line: &str, path: &str) -> Ran {
    let output = Command::new(program).args(line.split_whitespace()).env("PATH", path).output().expect("it starts");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A program of the laboratory's name in a folder, in place of the one that is there.
fn script(lab: &Lab, folder: &str, text: &str) -> PathBuf {
    fs::create_dir_all(lab.path(folder)).expect("a folder");
    let (file, new) = (lab.path(folder).join("openraid-lab"), lab.path(folder).join("new"));
    fs::write(&new, format!("#!/bin/sh\n{text}\n")).expect("room");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("own file");
    fs::rename(new, &file).expect("one folder");
    file
}

#[test]
fn the_program_links_the_listed_crates_and_nothing_of_the_laboratory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--offline", "--locked", "--package", "openraid", "--edges", "normal", "--prefix", "none"]);
    let output = command.args(["--format", "{p}"]).current_dir(root).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Two versions of a crate are two lines.
    let crates: BTreeSet<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let mut names: Vec<&str> = crates.iter().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    let wrong: Vec<_> = OF_LABORATORY.iter().filter(|name| names.contains(name)).collect();
    assert!(wrong.is_empty(), "{wrong:?} are the laboratory's");
    let (path, names) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(CRATES), names.join("\n") + "\n");
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        fs::write(&path, &names).expect("room");
    }
    let listed = fs::read_to_string(&path).expect("a list");
    let lack = |text: &str, of: &str| -> Vec<String> {
        text.lines().filter(|line| !of.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    let (new, gone) = (lack(&names, &listed), lack(&listed, &names));
    assert!(names == listed, "crates that {CRATES} does not list: {new:?}; listed crates that are gone: {gone:?}");
}

#[test]
fn a_verb_that_moved_names_its_program_or_is_handed_over() {
    let lab = Lab::new("moved");
    let program = alone(&lab);
    for line in ["plan --drives 4", "--json plan", "plan --help"] {
        let ran = run(&program, line, "/nowhere").refused(64, &[MOVED]);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    run(&program, "create x --level 1 plan simulate", "/nowhere").refused(65, &["plan"]);
    // In PATH, and next to the program, which comes first.
    let place = |folder, code| script(&lab, folder, &format!("echo \"$0\" \"$@\"\nexit {code}"));
    let path = lab.path("bin").display().to_string();
    let in_path = place("bin", 7);
    let said = run(&program, "--json plan --drives 4,6", &path).expect(7).text();
    assert_eq!(said.trim(), format!("{} --json plan --drives 4,6", in_path.display()));
    let neighbour = place("alone", 5);
    let said = run(&program, "torture --replay 1", &path).expect(5).text();
    assert_eq!(said.trim(), format!("{} torture --replay 1", neighbour.display()));
}

#[test]
fn members_with_the_timing_of_a_drive_are_of_the_laboratory() {
    let lab = Lab::new("no-models");
    let words = ["model:wd740gd", "this program has no models of drives; use `openraid-lab`"];
    lab.line("serve --level 1 --name x model:wd740gd model:wd740gd").refused(64, &words);
    lab.line("create x --level 1 model:wd740gd,file=a model:wd740gd,file=b").refused(64, &words);
}

#[test]
fn without_the_laboratory_the_console_says_so_and_everything_else_works() {
    let lab = Lab::new("no-lab");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.drives(&["m0", "m1", "m2"], 16);
    let mut command = lab.command_of(&alone(&lab), &["serve", "data", "--json", "--http", "127.0.0.1:0"]);
    let server = support::Server::started(command.env("PATH", "/nowhere")).expect("ready");
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let absent = ["the laboratory is not installed: install openraid-lab"];
    web.get("/api/v1/lab/choices").refused(409, &absent);
    let review = json!({"name": "one", "arrays": ["raid5x4"], "methods": ["latency"]}).to_string();
    web.post("/api/v1/lab/reviews", &review).refused(409, &absent);
    let members: Vec<String> = ["m0", "m1", "m2"].map(|name| lab.path(name).display().to_string()).into();
    let creation = json!({"name": "more", "level": "5", "members": members});
    web.post("/api/v1/predictions", &json!({"creation": creation}).to_string()).refused(409, &absent);
    // The wizard still plans and creates, and reports that are there are shown.
    assert_eq!(web.get("/api/v1/lab").expect(200).json()["reports"], Value::Array(Vec::new()));
    assert_eq!(web.post("/api/v1/plan", &creation.to_string()).expect(200).json()["survives"], 1);
    assert_eq!(web.get("/api/v1/arrays/data").expect(200).json()["health"], "optimal");
    server.stop();
}

#[test]
fn a_server_asks_the_laboratory_that_is_installed_now() {
    let lab = Lab::new("installed");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    let program = alone(&lab);
    let mut command = lab.command_of(&program, &["serve", "data", "--json", "--http", "127.0.0.1:0"]);
    let server = support::Server::started(command.env("PATH", "/usr/bin:/bin")).expect("ready");
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let absent = ["the laboratory is not installed: install openraid-lab"];
    web.get("/api/v1/lab/choices").refused(409, &absent);
    let mut file = PathBuf::new();
    for load in ["first", "second"] {
        let choices = json!({"systems": [], "drives": [], "methods": [], "loads": [{"name": load, "title": ""}]});
        let answer = json!({"choices": choices, "systems": [], "drives": []});
        file = script(&lab, "alone", &format!("echo '{answer}'"));
        assert_eq!(web.get("/api/v1/lab/choices").expect(200).json()["loads"][0]["name"], load);
    }
    fs::remove_file(file).expect("it is there");
    web.get("/api/v1/lab/choices").refused(409, &absent);
    server.stop();
}

#[test]
fn a_prediction_that_failed_is_computed_when_it_is_asked_for_again_and_questions_do_not_give_way() {
    let lab = Lab::new("again");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    lab.drives(&["m0", "m1", "m2"], 16);
    let mut command = lab.command_of(&alone(&lab), &["serve", "data", "--json", "--http", "127.0.0.1:0"]);
    let server = support::Server::started(command.env("PATH", "/usr/bin:/bin")).expect("ready");
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let choices = json!({"systems": [], "drives": [], "methods": [], "loads": [{"name": "database", "title": ""}]});
    let catalogue = json!({"choices": choices, "systems": [], "drives": []});
    let profile = json!({"drive": "one", "title": "One", "why": "it is the only one"});
    let plan = json!({"drive_bytes": 1, "levels": [{"impossible": {"array": "raid5x3", "reason": "no room"}}]});
    let nice = String::from_utf8(Command::new("nice").output().expect("coreutils").stdout).expect("a number");
    let (nice, fault) = (nice.trim(), lab.path("fault").display().to_string());
    fs::write(&fault, "").expect("room");
    script(
        &lab,
        "alone",
        &format!(
            "case \"$1 $2 $(nice)\" in\n'console choices {nice}') echo '{catalogue}' ;;\n'console profile {nice}') echo '{profile}' ;;\n\
             plan*19) [ ! -e {fault} ] || {{ echo 'out of luck' >&2; exit 1; }}; echo '{plan}' ;;\n*) exit 9 ;;\nesac"
        ),
    );
    let members: Vec<String> = ["m0", "m1", "m2"].map(|name| lab.path(name).display().to_string()).into();
    let asked = json!({"creation": {"name": "more", "level": "5", "members": members}}).to_string();
    let answer = || loop {
        let answer = web.post("/api/v1/predictions", &asked).expect(200).json();
        if answer["waits"] == false {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(answer()["error"], "out of luck");
    fs::remove_file(&fault).expect("it is there");
    let found = answer();
    assert_eq!((&found["error"], &found["levels"][0]["impossible"]), (&Value::Null, &"no room".into()), "{found}");
    server.stop();
}
