//! The forms of `--json`, verb by verb, as `docs/json.md` promises them. `OPENRAID_BLESS=1` writes the table there anew.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use serde_json::Value;
use support::{noise, Lab};

const BEGIN: &str = "<!-- forms: begin -->\n";
const END: &str = "<!-- forms: end -->\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")
}

/// The keys of a document, those inside of objects and lists too: `members[].state`.
fn keys(value: &Value, path: &str, out: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        // What is null here may be something there.
        let known = out.entry(path.to_owned()).or_insert(kind);
        if *known == "null" {
            *known = kind;
        }
    }
    match value {
        Value::Array(values) => values.iter().for_each(|value| keys(value, &format!("{path}[]"), out)),
        Value::Object(values) => {
            for (key, value) in values {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                keys(value, &path, out);
            }
        }
        _ => {}
    }
}

/// Every verb once, and what each says.
fn life() -> Vec<Value> {
    let lab = Lab::new("json");
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("create data --level 6 --chunk 64K --file-size 16M --bitmap internal --spare s0 d0 d1 d2 d3");
    say("list");
    name_block(&lab, "d0");
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("scan .");
    say("examine d0 d1");
    say("doctor d0 d1 d2 d3");
    say("update --for-kernels-before 6.19 d0 d1 d2 d3 s0");
    say("assemble data --no-serve");
    // The content goes to the standard output, so what is said goes to the other one.
    let copied = lab.line("copy-out data --json");
    said.push(serde_json::from_str(copied.err.lines().last().expect("a line")).expect("JSON"));
    said.push(lab.pipe(&["copy-in", "data", "--json"], &noise(1, 1 << 20)).json());
    let server = lab.serve(&["data"]);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("list");
    say("show data");
    say("explain data");
    say("explain data --record on");
    support::ask(&lab, &server, &[(support::WRITE, 4096, &[5; 4096]), (support::FLUSH, 0, &[])]);
    let mut say = |line: &str| said.push(lab.line(&format!("{line} --json")).json());
    say("explain data --slowest 9");
    say("explain data --request last");
    say("explain data --record off");
    say("record data --out recorded --seconds 1");
    say("set data rebuild.rate=100M");
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

/// What is said of a configuration.
fn life_of_a_configuration() -> Vec<Value> {
    let lab = Lab::new("json-config");
    let file = lab.path("openraid.toml");
    let listen = format!("[server]\nnbd-unix = {:?}\n", lab.path("nbd.sock"));
    std::fs::write(&file, format!("{listen}[server.x]\n")).expect("room");
    let mut said = vec![
        lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1 --json").json(),
        lab.line("config check openraid.toml --json").json(),
        lab.line("config member d0 --json").json(),
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
    let own = Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a superblock");
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    let len = Superblock { logical_block_size: 512, ..own }.encode(&mut bytes);
    support::write_at(&path, at, &bytes[..len]);
}

/// What is said of journals.
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
    support::write_some(&lab, &server);
    server.kill();
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

/// The verbs that predict, and those that show what they found.
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

type Forms = BTreeMap<String, BTreeMap<String, String>>;

fn found() -> Forms {
    let mut forms = Forms::new();
    for document in life() {
        let name = document["schema"].as_str().or(document["event"].as_str()).unwrap_or_else(|| panic!("{document}"));
        let mut own = BTreeMap::new();
        keys(&document, "", &mut own);
        let form = forms.entry(name.to_owned()).or_default();
        own.into_iter().for_each(|(key, kind)| merge(form, key, kind));
    }
    forms
}

/// What is null in one run may be something in another.
fn merge(form: &mut BTreeMap<String, String>, key: String, kind: &str) {
    let known = form.entry(key).or_insert_with(|| kind.to_owned());
    if known == "null" {
        kind.clone_into(known);
    }
}

fn to_text(forms: &Forms) -> String {
    let mut text = String::new();
    for (name, keys) in forms {
        writeln!(text, "\n### {name}\n\n```text").expect("a string takes it");
        for (key, kind) in keys {
            writeln!(text, "{key:<44} {kind}").expect("a string takes it");
        }
        text.push_str("```\n");
    }
    text
}

fn from_text(text: &str) -> Forms {
    let mut forms = Forms::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            title.clone_into(&mut name);
        } else if let (false, Some((key, kind))) = (line.starts_with("```"), line.split_once(' ')) {
            forms.entry(name.clone()).or_default().insert(key.to_owned(), kind.trim().to_owned());
        }
    }
    forms
}

#[test]
fn every_verb_answers_in_the_form_that_is_written_down() {
    let text = std::fs::read_to_string(page()).expect("the page is there");
    let (before, rest) = text.split_once(BEGIN).expect("the forms begin");
    let (written, after) = rest.split_once(END).expect("the forms end");
    let mut promised = from_text(written);
    let found = found();
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        for (name, keys) in found {
            let form = promised.entry(name).or_default();
            keys.into_iter().for_each(|(key, kind)| merge(form, key, &kind));
        }
        std::fs::write(page(), format!("{before}{BEGIN}{}{END}{after}", to_text(&promised))).expect("it is writable");
        return;
    }
    assert!(promised.keys().eq(found.keys()), "{:?} are promised, {:?} found", promised.keys(), found.keys());
    for (name, keys) in found {
        let form = &promised[&name];
        for (key, kind) in &keys {
            let written = form.get(key).unwrap_or_else(|| panic!("{name}: {key} is not in docs/json.md"));
            assert!(kind == written || kind == "null" || written == "null", "{name}: {key} is no {written}");
        }
        let top = form.keys().filter(|key| !key.contains(['.', '[']));
        top.for_each(|key| assert!(keys.contains_key(key), "{name}: {key} is promised in docs/json.md"));
    }
}
