//! The schema files in `docs/schema` against what a run of all verbs prints. The files are made from the types that are printed
//! (`verb/forms.rs`); here a foreign validator reads them, so that a key which serde writes and the schema lacks is found.

use crate::support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{noise, Lab};
use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use serde_json::{json, Value};

/// The library that judges documents, as Debian installs it.
const JUDGE: &str = "/usr/lib/python3/dist-packages/jsonschema";

fn schemas() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// Every verb once, and what each says.
fn life() -> Vec<Value> {
    let lab = Lab::new("json");
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("create data --level 6 --chunk 64K --file-size 16M --bitmap internal --spare s0 d0 d1 d2 d3");
    say("list");
    say("attach");
    name_block(&lab, "d0");
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("scan .");
    say("examine d0 d1");
    say("doctor d0 d1 d2 d3");
    say("update --for-kernels-before 6.19 d0 d1 d2 d3 s0");
    say("assemble data --no-serve");
    // The content goes to the standard output, so messages go to standard error.
    let copied = lab.line("copy-out data --json");
    said.push(serde_json::from_str(copied.err.lines().last().expect("a line")).expect("JSON"));
    said.push(lab.pipe(&["copy-in", "data", "--json"], &noise(1, 1 << 20)).json());
    lab.configure("[care]\nled = \"/bin/true\"\nsmart = \"never\"\n");
    let server = lab.serve(&["data", "--config", "openraid.toml", "--nvme", "127.0.0.1:0"]);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    ["list", "show data", "locate data d0", "explain data"].into_iter().for_each(&mut say);
    say("explain data --record on");
    support::ask(&lab, &server, &[(support::WRITE, 4096, &[5; 4096]), (support::FLUSH, 0, &[])]);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("explain data --slowest 9");
    say("explain data --request last");
    say("explain data --record off");
    say("record data --out recorded --seconds 1");
    say("set data rebuild.rate=100M");
    say("path data non-optimized");
    say("spare list data");
    say("check data");
    say("rename data other");
    say("rename other data");
    say("pause data");
    say("resume data");
    lab.wait_for("data", |array| array["task"].is_null());
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("check data --history");
    say("repair data");
    lab.wait_for("data", |array| array["task"].is_null());
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("replace data d2");
    say("show data");
    lab.wait_for("data", |array| array["task"].is_null() && array["health"] == "optimal");
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("fail data d1");
    say("show data");
    lab.wait_for("data", |array| array["task"].is_null());
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("remove data d1");
    say("add data --file-size 16M d9");
    say("show nobody");
    lab.wait_for("data", |array| array["task"].is_null() && array["health"] == "optimal");
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    ["--plan", "--yes"].into_iter().for_each(|how| say(&format!("reshape data --chunk 128K {how}")));
    say("show data");
    lab.wait_for("data", |array| array["task"].is_null());
    said.push(lab.line("stop data --json").json());
    let (_, events) = server.end();
    said.extend(events);
    said.push(lab.line("erase d9 --yes --json").json());
    laboratory(&lab, &mut said);
    torture(&lab, &mut said);
    said.extend(life_of_a_journal());
    said.extend(life_of_a_configuration());
    said
}

/// The messages about a configuration.
fn life_of_a_configuration() -> Vec<Value> {
    let lab = Lab::new("json-config");
    let file = lab.path("openraid.toml");
    let listen = format!("[server]\nnbd-unix = {:?}\n", lab.path("nbd.sock"));
    std::fs::write(&file, format!("{listen}[server.x]\n")).expect("room");
    let mut said = vec![
        lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1 --json").json(),
        lab.line("config check openraid.toml --json").json(),
        lab.line("config member d0 --json").json(),
        lab.line("config udev --json").json(),
    ];
    let rest = "[schedules.night]\ntask = \"check\"\nevery = \"30d\"\nwindow = \"01:00-02:00\"\n[sinks.log]\nkind = \"journald\"\nsocket = \"/nowhere\"\n[arrays.data]\naccess = \"read-write\"\n[[spares]]\nmember = \"/dev/sdx\"\nfor = \"data\"\nspan = 0\n";
    std::fs::write(&file, format!("{listen}{rest}")).expect("room");
    said.push(lab.line("config check openraid.toml --json").json());
    let server = support::Server::started(&mut lab.command(&["serve", "--json", "--config", "openraid.toml"]));
    let server = server.expect("ready");
    lab.line("set data rebuild.rate=50M").expect(0);
    lab.line("fail data d0").expect(0);
    said.push(lab.line("events --json").json());
    said.push(lab.line("alarms --json").json());
    said.push(lab.line("alarms test log --json").json());
    said.push(lab.line("alarms acknowledge data --json").json());
    said.push(lab.line("events --acknowledge 1 --json").json());
    std::fs::write(&file, format!("{listen}memory = \"161M\"\n{}", rest.replace("write", "only"))).expect("room");
    said.push(lab.line("config show --json").json());
    said.push(lab.line("reload --json").json());
    said.extend(server.stop());
    said
}

/// Name a logical block in a superblock, as Linux 6.19 does.
fn name_block(lab: &Lab, member: &str) {
    let (path, at) = (lab.path(member), 4096);
    let size = Sectors(std::fs::metadata(&path).expect("a file").len() / 512);
    let bytes = support::read_at(&path, at, SUPERBLOCK_BYTES_MAX);
    let superblock = Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a superblock");
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    let len = Superblock { logical_block_size: 512, ..superblock }.encode(&mut bytes);
    support::write_at(&path, at, &bytes[..len]);
}

/// The messages about journals.
fn life_of_a_journal() -> Vec<Value> {
    let lab = Lab::new("json-journal");
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("journal create --size 16M j0");
    say("journal adopt j0 --yes");
    say("create data --level 5 --chunk 64K --file-size 16M --consistency-policy controller-journal --assume-clean d0 d1 d2");
    let server = lab.serve(&["data", "--journal", "j0"]);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("show data");
    say("explain data");
    say("journal show");
    said.extend(server.stop());
    let server = lab.serve(&["data", "--journal", "j0"]);
    support::kill_under_writes(&lab, server);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("examine j0");
    say("journal show j0");
    say("journal discard data --on j0");
    say("journal discard data --on j0 --lost");
    let server = lab.serve(&["--level", "1", "--name", "scratch", "ram:8M", "ram:8M", "--journal", "j0"]);
    std::fs::write(lab.path("j1"), vec![0; 16 << 20]).expect("room");
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("journal attach j1");
    server.stop();
    said
}

/// The fault simulation: with nothing lost, with a bug that is found, and what happened then.
fn torture(lab: &Lab, said: &mut Vec<Value>) {
    said.push(lab.line("torture --seeds 1..6 --json").json());
    let found = lab.line("torture --planted answer-early --seeds 1..50 --json").json();
    let seed = found["found_by"].as_u64().expect("it is found");
    said.push(found);
    said.push(lab.line(&format!("torture --replay {seed} --planted answer-early --full --json")).json());
}

/// The verbs that predict, and the verbs that show results.
fn laboratory(lab: &Lab, said: &mut Vec<Value>) {
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("simulate raid5x4 --system 3ware-9650se --load file-server --depth 4 --effort quick --range");
    say("simulate --list");
    say("plan --system 3ware-9650se --drives 4 --levels 5,6 --effort quick --reads 70");
    say("review --methods list");
    for seed in ["1", "2"] {
        let arrays = "--target sim:3ware-9650se --arrays single,raid1x2,raid6x4 --methods response-time --effort quick";
        say(&format!("review {arrays} --seed {seed} --out review{seed}"));
    }
    say("compare review1 review2");
    for part in ["1/2", "2/2"] {
        let single = "--target sim:3ware-9650se --arrays single --methods response-time --effort quick";
        say(&format!("review {single} --shard {part} --out part{}", &part[..1]));
    }
    say("merge part1 part2 --out joined");
    say("rehearse single --drive service-fixed --reads 100 --depth 1 --seconds 1");
}

fn has_judge() -> bool {
    let is_there = Path::new(JUDGE).exists();
    if !is_there {
        support::missing("the Debian package python3-jsonschema is not installed");
    }
    is_there
}

/// The faults of the documents by the schema files, one a line.
fn judged(documents: &[Value]) -> String {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut judge = Command::new("/usr/bin/python3");
    judge.arg(tests.join("json_judge.py")).arg(schemas()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut judge = judge.spawn().expect("python3 starts");
    let lines: String = documents.iter().map(|document| format!("{document}\n")).collect();
    judge.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let output = judge.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the judge ended with {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_verb_answers_in_the_form_that_is_written_down() {
    if !has_judge() {
        return;
    }
    let documents = life();
    let complaints = judged(&documents);
    assert!(complaints.is_empty(), "{complaints}");
    // The run prints every form that is described: only these need a terminal, a day, a folder of their own, or root and a module.
    let mut seen: BTreeSet<String> =
        ["demo", "login", "man", "attach", "detach"].map(|verb| format!("openraid/{verb}/1")).into();
    seen.extend(documents.iter().filter_map(|document| document["schema"].as_str()).map(str::to_owned));
    let mut described = BTreeSet::new();
    for program in ["openraid", "openraid-lab"] {
        let text = std::fs::read(schemas().join(format!("{program}.schema.json"))).expect("the file is there");
        let schema: Value = serde_json::from_slice(&text).expect("JSON");
        let names = schema["properties"]["schema"]["enum"].as_array().expect("a list");
        described.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    assert_eq!(described, seen);
}

#[test]
fn keys_and_values_that_the_schema_does_not_have_are_found() {
    if !has_judge() {
        return;
    }
    let spare = json!({ "schema": "openraid/spare/1", "exit": 0, "array": "data", "spares": [] });
    assert_eq!(judged(std::slice::from_ref(&spare)), "");
    let wrong = [
        ("array", json!(null)),
        ("array", json!(1)),
        ("spares", json!({})),
        ("spares", json!([{ "state": "in-sync", "colour": "red" }])),
        ("spares", json!([{ "state": "red" }])),
        ("colour", json!("red")),
        ("exit", json!("0")),
        ("schema", json!("openraid/spare/9")),
    ];
    for (key, value) in wrong {
        let mut document = spare.clone();
        document[key] = value;
        assert_ne!(judged(std::slice::from_ref(&document)), "", "{document}");
    }
}
