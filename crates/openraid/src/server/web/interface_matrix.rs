//! Arrays in the states of a table, on members in memory. Every interface of the server is compared with the table: the
//! command line, the API, Redfish, metrics, alarms, and the console, whose modules run in Node on the API's documents.
//!
//! The expected values were derived by hand from the level and the commands. The member whose loss makes an array fail
//! keeps its slot, because the others do not record it any more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;

use openraid_core::limits::Limits;
use openraid_format::MinorVersion;
use openraid_management::Options;
use openraid_sys::Use;
use openraid_units::{ArrayLevel, Sectors};
use serde_json::Value;

use super::super::Server;
use crate::control::{Answerer, Command};
use crate::demo::client::DemoClient;
use crate::history::last_checks::CheckWord;
use crate::in_process::InProcess;
use crate::members::{open_every, options, spec};
use crate::model::{ArrayModel, HealthWord, StateWord};
use crate::new_arrays::{CreateOptions, NewShape};
use crate::output::array::{mdstat, text};
use crate::registry::RegisteredArray;
use crate::words;

/// name | level, members, spares | orders | health, losses that are survived | in sync, rebuilding, spare, missing,
/// faulty | task
const TABLE: &str = "
one       | single 1 0 |                              | optimal 0  | 1 0 0 0 0 | -
stripe    | 0 3 0      |                              | optimal 0  | 3 0 0 0 0 | -
line      | linear 2 0 |                              | optimal 0  | 2 0 0 0 0 | -
pair      | 1 2 0      |                              | optimal 1  | 2 0 0 0 0 | -
trio      | 1 3 0      |                              | optimal 2  | 3 0 0 0 0 | -
four      | 4 3 0      |                              | optimal 1  | 3 0 0 0 0 | -
five      | 5 3 0      |                              | optimal 1  | 3 0 0 0 0 | -
five6     | 5 6 0      |                              | optimal 1  | 6 0 0 0 0 | -
six       | 6 4 0      |                              | optimal 2  | 4 0 0 0 0 | -
six8      | 6 8 0      |                              | optimal 2  | 8 0 0 0 0 | -
ten       | 10 4 0     |                              | optimal 1  | 4 0 0 0 0 | -
onee      | 1e 3 0     |                              | optimal 1  | 3 0 0 0 0 | -
fifty     | 50 6 0     |                              | optimal 1  | 6 0 0 0 0 | -
sixty     | 60 8 0     |                              | optimal 2  | 8 0 0 0 0 | -
pair-f    | 1 2 0      | fail:1                       | degraded 0 | 1 0 0 1 1 | -
trio-f    | 1 3 0      | fail:0                       | degraded 1 | 2 0 0 1 1 | -
trio-ff   | 1 3 0      | fail:0 fail:2                | degraded 0 | 1 0 0 2 2 | -
four-f    | 4 3 0      | fail:2                       | degraded 0 | 2 0 0 1 1 | -
five-f    | 5 3 0      | fail:0                       | degraded 0 | 2 0 0 1 1 | -
six-f     | 6 4 0      | fail:3                       | degraded 1 | 3 0 0 1 1 | -
six-ff    | 6 4 0      | fail:3 fail:0                | degraded 0 | 2 0 0 2 2 | -
ten-f     | 10 4 0     | fail:0                       | degraded 0 | 3 0 0 1 1 | -
ten-fff   | 10 6 0     | fail:0 fail:2 fail:4         | degraded 0 | 3 0 0 3 3 | -
onee-f    | 1e 3 0     | fail:1                       | degraded 0 | 2 0 0 1 1 | -
fifty-f   | 50 6 0     | fail:0.1                     | degraded 0 | 5 0 0 1 1 | -
fifty-ff  | 50 6 0     | fail:0.1 fail:1.2            | degraded 0 | 4 0 0 2 2 | -
sixty-f   | 60 8 0     | fail:1.0                     | degraded 1 | 7 0 0 1 1 | -
pair-r    | 1 2 0      | fail:0 remove                | degraded 0 | 1 0 0 1 0 | -
six-r     | 6 4 0      | fail:0 remove fail:1         | degraded 0 | 2 0 0 2 1 | -
ten-r     | 10 4 0     | fail:3 remove                | degraded 0 | 3 0 0 1 0 | -
pair-u    | 1 2 0      | unlink:1                     | optimal 1  | 2 0 0 0 0 | -
five-u    | 5 3 0      | unlink:0 unlink:2            | optimal 1  | 3 0 0 0 0 | -
pair-s    | 1 2 1      |                              | optimal 1  | 2 0 1 0 0 | -
five-s    | 5 3 1      |                              | optimal 1  | 3 0 1 0 0 | -
five-ss   | 5 3 2      |                              | optimal 1  | 3 0 2 0 0 | -
fifty-s   | 50 6 2     |                              | optimal 1  | 6 0 2 0 0 | -
pair-b    | 1 2 0      | slow fail:1 remove add       | degraded 0 | 1 1 0 0 0 | rebuild
five-b    | 5 3 0      | slow fail:1 remove add       | degraded 0 | 2 1 0 0 0 | rebuild
six-b     | 6 4 0      | slow fail:1 remove add       | degraded 1 | 3 1 0 0 0 | rebuild
six-bf    | 6 4 0      | slow fail:0 fail:1 remove add | degraded 0 | 2 1 0 1 0 | rebuild
five-bp   | 5 3 0      | slow fail:1 remove add pause | degraded 0 | 2 1 0 0 0 | rebuild
five-sb   | 5 3 1      | slow fail:1                  | degraded 0 | 2 1 0 0 1 | rebuild
fifty-sb  | 50 6 2     | slow fail:1.0                | degraded 0 | 5 1 1 0 1 | rebuild
pair-c    | 1 2 0      | slow check pause             | optimal 1  | 2 0 0 0 0 | check
five-c    | 5 3 0      | slow check                   | optimal 1  | 3 0 0 0 0 | check
six-c     | 6 4 0      | slow repair                  | optimal 2  | 4 0 0 0 0 | repair
ten-c     | 10 4 0     | slow check                   | optimal 1  | 4 0 0 0 0 | check
five-m    | 5 3 1      | slow replace:1               | optimal 1  | 3 1 0 0 0 | replacement
pair-m    | 1 2 1      | slow replace:0               | optimal 1  | 2 1 0 0 0 | replacement
five-ro   | 5 3 0      | access=read-only             | optimal 1  | 3 0 0 0 0 | -
five-no   | 5 3 0      | access=blocked fail:2        | degraded 0 | 2 0 0 1 1 | -
five-p    | 5 3 0      | profile=protection           | optimal 1  | 3 0 0 0 0 | -
dead      | 0 2 0      | lose:1                       | failed 0   | 1 0 0 0 1 | -
dead5     | 5 3 0      | fail:0 lose:1                | failed 0   | 1 0 0 1 2 | -
dead50    | 50 6 0     | fail:0.0 lose:1              | failed 0   | 4 0 0 1 2 | -
gone      | 1 2 0      | gone                         | offline 0  | 0 0 0 0 0 | -
gone6     | 6 4 0      | fail:0 gone                  | offline 0  | 0 0 0 0 0 | -
";

/// Names of arrays that a shell would take for something else.
const HOSTILE: [&str; 10] =
    ["data", "a/b-c.d", ".x y%", "a;id", "$(id)", "it's", "-x", "a\\b\u{1b}[2J'", "\u{202e}\u{e9}", ""];

/// A row.
struct Case {
    name: &'static str,
    level: &'static str,
    members: usize,
    spares: usize,
    orders: Vec<&'static str>,
    health: &'static str,
    survives: u64,
    /// In sync, rebuilding, spare, missing, faulty.
    counts: [u64; 5],
    task: Option<&'static str>,
}

impl Case {
    /// The health as people read it.
    fn word(&self) -> String {
        if self.is_usable() {
            self.health.into()
        } else {
            self.health.to_uppercase()
        }
    }

    fn is_usable(&self) -> bool {
        matches!(self.health, "optimal" | "degraded")
    }
}

fn cases() -> Vec<Case> {
    let case = |line: &'static str| {
        let cells: Vec<Vec<&str>> = line.split('|').map(|cell| cell.split_whitespace().collect()).collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let counts: Vec<u64> = cells[4].iter().map(|word| number(word)).collect();
        Case {
            name: cells[0][0],
            level: cells[1][0],
            members: cells[1][1].parse().expect("a number"),
            spares: cells[1][2].parse().expect("a number"),
            orders: cells[2].clone(),
            health: cells[3][0],
            survives: number(cells[3][1]),
            counts: counts.try_into().expect("five numbers"),
            task: Some(cells[5][0]).filter(|task| *task != "-"),
        }
    };
    TABLE.trim().lines().map(case).collect()
}

/// The server, and a source of members: memory, or files that can be cut short.
struct Lab {
    host: InProcess,
    folder: std::path::PathBuf,
    made: u64,
}

impl Lab {
    fn member(&mut self, in_file: bool) -> String {
        self.made += 1;
        if !in_file {
            // Each has a size of its own, and so a name of its own.
            return format!("ram:{}", (8 << 20) + self.made * 4096);
        }
        let path = self.folder.join(format!("d{}", self.made));
        File::create(&path).and_then(|file| file.set_len(8 << 20)).expect("room");
        path.display().to_string()
    }

    fn make(&mut self, case: &Case) {
        let in_file = case.orders.iter().any(|order| order.starts_with("lose:") || order.starts_with("unlink:"));
        let names: Vec<String> = (0..case.members + case.spares).map(|_| self.member(in_file)).collect();
        let (members, spares) = names.split_at(case.members);
        let level = words::level(case.level).expect("a level");
        let chunk = (!matches!(case.level, "1" | "single" | "linear")).then_some(Sectors::kib(64));
        let creation = CreateOptions {
            name: case.name,
            level,
            layout: None,
            chunk,
            spans: None,
            members,
            spares,
            size: None,
            assume_clean: true,
            bitmap: None,
            ppl: false,
            minor: MinorVersion::V1_2,
        };
        let shape = NewShape::of(&creation).expect("a shape");
        let specs: Vec<_> = names.iter().map(|name| spec(name).expect("a name")).collect();
        let opened = open_every(&specs, options(Use::Exclusive)).expect("members");
        let sizes: Vec<Sectors> = opened.iter().map(|(opened, _)| opened.info.capacity).collect();
        let plans = shape.plan(&sizes, &names).expect("a plan");
        let opened = opened.into_iter().map(|(opened, _)| opened).collect();
        let started = shape.make(&self.host.service.handle(), &plans, opened).expect("an array");
        self.host.server.serve_started(started).expect("served");
        for order in &case.orders {
            self.carry_out(case.name, order);
        }
    }

    fn carry_out(&mut self, name: &str, order: &str) {
        let array = || name.to_owned();
        let set = |key: &str, value: &str| Command::Set {
            array: array(),
            settings: vec![(key.into(), value.into())],
            yes: true,
        };
        let slot = |slot: &str| format!("slot:{slot}");
        let commands = match order.split_once([':', '=']) {
            Some(("fail", at)) => {
                vec![Command::Fail { array: array(), member: slot(at), unsynced: false, device: None }]
            }
            Some(("replace", at)) => vec![Command::Replace {
                array: array(),
                member: slot(at),
                with: None,
                overwrite: true,
                device: None,
                split: false,
            }],
            Some(("unlink", at)) => return self.unlink(name, at.parse().expect("a number")),
            Some(("lose", at)) => return self.lose(name, at.parse().expect("a number")),
            Some((key, value)) => vec![set(key, value)],
            None => match order {
                "slow" => vec![set("rebuild.rate", "64K"), set("scrub.rate", "64K")],
                "check" => vec![Command::Check { array: array(), kind: CheckWord::Check }],
                "repair" => vec![Command::Check { array: array(), kind: CheckWord::Repair }],
                "gone" => return self.miss(name),
                "pause" => vec![Command::Pause { array: array() }],
                "add" => vec![Command::Add {
                    array: array(),
                    member: self.member(false),
                    span: None,
                    overwrite: true,
                    split: false,
                }],
                "remove" => faulty(&self.host.server.array(name).expect("it is served"))
                    .map(|member| Command::Remove { array: array(), member, spare: false, device: None })
                    .collect(),
                _ => panic!("{order} is no order"),
            },
        };
        for command in commands {
            self.host.server.answer(command).unwrap_or_else(|failure| panic!("{name}, {order}: {}", failure.text()));
        }
    }

    /// The array is wanted, and cannot be started.
    fn miss(&self, name: &str) {
        let server = &self.host.server;
        let array = server.array(name).expect("it is served");
        server.stop(name).expect("it stops");
        let members = (0..array.slots).map(|nth| format!("/gone/{nth}")).collect();
        let kept = crate::kept_settings::KeptSettings::default();
        let entry = RegisteredArray { name: name.into(), uuid: array.uuid, level: array.level, members, kept };
        server.state().troubles.expected.push(entry);
    }

    /// The file of this member is deleted while it is served.
    fn unlink(&self, name: &str, nth: usize) {
        let array = self.host.server.array(name).expect("it is served");
        fs::remove_file(array.members[nth].member.as_ref().expect("a file")).expect("it is ours");
        self.host.server.look_at_paths();
    }

    /// The file of this member ends: what reads it learns that the drive is gone.
    fn lose(&self, name: &str, nth: usize) {
        // A failure that is being recorded would be recorded on this member as well.
        arrays_after_failures(&self.host.server);
        let array = self.host.server.array(name).expect("it is served");
        let members: Vec<_> = array.sets().into_iter().flat_map(|set| &set.members).collect();
        let there = members.iter().filter(|member| member.state == StateWord::InSync);
        let path = there
            .clone()
            .nth(nth - 1 + usize::from(array.level == ArrayLevel::Raid0))
            .and_then(|member| member.member.clone());
        File::options().write(true).open(path.expect("a file")).and_then(|file| file.set_len(0)).expect("it is ours");
        let mut client = DemoClient::connect(self.host.socket(), name).expect("it is served");
        assert!(client.read(0, 1 << 20).is_err(), "{name} cannot be read");
    }
}

/// Members that failed, by their drives' numbers.
fn faulty(array: &ArrayModel) -> impl Iterator<Item = String> + '_ {
    let members = array.sets().into_iter().flat_map(|set| &set.members);
    let failed = members.filter(|member| member.state == StateWord::Faulty);
    failed.filter_map(|member| member.drive.map(|drive| format!("drive:{drive}")))
}

/// The differences from the table.
#[derive(Default)]
pub(super) struct MatrixDifferences(Vec<String>);

impl MatrixDifferences {
    pub(super) fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, wanted: T) {
        if found != wanted {
            self.0.push(format!("{what}: {found:?}, not {wanted:?}"));
        }
    }
}

/// A document of the server.
fn get(url: &str, token: &str) -> String {
    let answer = ureq::get(url).header("Authorization", &format!("Bearer {token}")).call();
    let mut answer = answer.unwrap_or_else(|error| panic!("{url}: {error}"));
    answer.body_mut().read_to_string().expect("text")
}

fn json(url: &str, token: &str) -> Value {
    serde_json::from_str(&get(url, token)).expect("JSON")
}

/// Whole figures by their names and labels. Fractions are times, which no table can have.
fn figures(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name.into(), value.parse().ok()?)))
        .collect()
}

fn check_model(wrong: &mut MatrixDifferences, case: &Case, array: &ArrayModel) {
    let name = case.name;
    let health = match array.health {
        HealthWord::Optimal => "optimal",
        HealthWord::Degraded => "degraded",
        HealthWord::Failed => "failed",
        HealthWord::Offline => "offline",
    };
    wrong.same(&format!("{name}, health"), health, case.health);
    wrong.same(&format!("{name}, survives"), u64::from(array.survives), case.survives);
    let states = [StateWord::InSync, StateWord::Rebuilding, StateWord::Spare, StateWord::Missing, StateWord::Faulty];
    wrong.same(&format!("{name}, members"), states.map(|state| array.count(state)), case.counts);
    wrong.same(&format!("{name}, task"), array.tasks().next().map(|(_, task)| task.kind.text()), case.task);
    let exit = match case.health {
        "optimal" => 0,
        "degraded" => 1,
        _ => 2,
    };
    wrong.same(&format!("{name}, exit code"), array.exit().code(), exit);
    let open = |event: &str| array.alarms.iter().filter(|alarm| alarm.what.event == event && alarm.is_open()).count();
    wrong.same(&format!("{name}, alarm of degradation"), open("DegradedArray"), usize::from(case.health == "degraded"));
    wrong.same(&format!("{name}, alarm of failure"), open("FailedArray"), usize::from(case.health == "failed"));
    let takes_away = array.alarms.iter().filter_map(|alarm| alarm.what.next_step.as_deref());
    let takes_away = takes_away.filter(|next| next.starts_with("openraid remove") || next.starts_with("openraid add"));
    let count = if case.health == "failed" { takes_away.count() } else { 0 };
    wrong.same(&format!("{name}, advice that a failed array must not get"), count, 0);
}

/// A file that is deleted while it is served is named everywhere.
fn check_displaced(
    wrong: &mut MatrixDifferences,
    case: &Case,
    array: &ArrayModel,
    shown: Option<&Value>,
    of_drives: (u64, u64),
) {
    let wanted = case.orders.iter().filter(|order| order.starts_with("unlink:")).count();
    let words = "NOTHING IS AT ITS PATH ANY MORE";
    let name = case.name;
    let alarms = array.alarms.iter().filter(|alarm| alarm.what.event == "MemberDisplaced" && alarm.is_open());
    let copies = alarms.filter(|alarm| {
        let next = alarm.what.next_step.as_deref().unwrap_or_default();
        alarm.what.text.contains("copy it out") && next.starts_with(&format!("openraid replace {name} drive:"))
    });
    wrong.same(&format!("{name}, alarms of deleted files"), copies.count(), wanted);
    let texts = array.members.iter().filter(|member| member.text.contains(words)).count();
    wrong.same(&format!("{name}, members of the API"), texts, wanted);
    wrong.same(&format!("{name}, show"), text(array).matches(words).count(), wanted);
    if let Some(shown) = shown {
        let cells = shown["members"].as_array().expect("cells").iter().filter_map(Value::as_str);
        wrong.same(&format!("{name}, the console"), cells.filter(|cell| cell.contains(words)).count(), wanted);
    }
    wrong.same(&format!("{name}, metrics and Redfish"), of_drives, (wanted as u64, wanted as u64));
}

/// Without arrays the console still says that an alarm is open, and leads to it.
fn check_empty(wrong: &mut MatrixDifferences, empty: &Value, unreadable: &Value) {
    let says = |header: &Value, words: &str| header["text"].as_str().is_some_and(|text| text.contains(words));
    let leads = |header: &Value| header["links"].as_array().is_some_and(|links| links.contains(&"#/events".into()));
    wrong.same("the console without arrays", (says(empty, "No array is served."), says(empty, "open.")), (true, false));
    wrong.same("its color", &empty["kinds"], &serde_json::json!(["health optimal"]));
    let words = "No array is served. 1 alarm is open.";
    wrong.same(&format!("the console with an alarm: {unreadable}"), says(unreadable, words), true);
    wrong.same("the link to the alarm", leads(unreadable), true);
    wrong.same("the color of the alarm", &unreadable["kinds"], &serde_json::json!(["health failed"]));
}

/// The button of a next step leads to the array and the member that its command line names. A line that no shell reads the same way has none.
fn check_steps(wrong: &mut MatrixDifferences, steps: &Value) {
    let mut leads = 0;
    for (word, step) in HOSTILE.iter().zip(steps.as_array().expect("a list")) {
        if !step.is_null() {
            wrong.same("steps of the console", step, &serde_json::json!(["array", word, "remove", "d 1"]));
            leads += 1;
        }
    }
    wrong.same("steps that lead to a page", leads > 2, true);
}

/// The console writes the instance of a unit as systemd does, if systemd is here to ask.
fn check_instances(wrong: &mut MatrixDifferences, shown: &Value) {
    let names = HOSTILE.iter().zip(shown.as_array().expect("a list"));
    for (name, instance) in names.filter(|(name, _)| !name.is_empty()) {
        if let Ok(escaped) = Program::new("systemd-escape").args(["--", name]).output() {
            let wanted = String::from_utf8_lossy(&escaped.stdout).trim_end_matches('\n').to_owned();
            wrong.same(&format!("instance of {name:?}"), instance.as_str(), Some(wanted.as_str()));
        }
    }
}

fn check_words(wrong: &mut MatrixDifferences, case: &Case, array: &ArrayModel, listed: &str) {
    let word = case.word();
    let line = listed.lines().find(|line| line.split_whitespace().next() == Some(case.name)).unwrap_or_default();
    wrong.same(
        &format!("{}, list: {line}", case.name),
        (line.contains(&word), case.task.is_none_or(|task| line.contains(task))),
        (true, true),
    );
    let shown = text(array);
    let state = shown.lines().find(|line| line.trim_start().starts_with("state ")).unwrap_or_default();
    wrong.same(&format!("{}, show: {state}", case.name), state.contains(&word), true);
    let losses = match case.survives {
        0 => "no further loss of a member".to_owned(),
        1 => "the loss of any 1 member".to_owned(),
        n => format!("the loss of any {n} members"),
    };
    wrong.same(&format!("{}, show: {shown}", case.name), shown.contains(&losses), true);
    // The last column of `list`. What an offline array has on record is not counted by the others.
    let listed = crate::verb::list::text(std::slice::from_ref(array), &[]);
    let row = listed.lines().nth(1).and_then(|row| row.split_whitespace().last()).and_then(|word| word.parse().ok());
    let [in_sync, rebuilding, spare, _, faulty] = case.counts;
    if array.health != HealthWord::Offline {
        wrong.same(&format!("{}, list", case.name), row, Some(in_sync + rebuilding + spare + faulty));
    }
    // md's form: a letter for each slot in sync.
    let slots: String = mdstat(&[array])
        .lines()
        .filter_map(|line| line.rsplit_once('['))
        .filter(|(_, marks)| marks.chars().all(|c| "U_]".contains(c)))
        .map(|(_, marks)| marks.to_owned())
        .collect();
    let is_redundant = !matches!(case.level, "0" | "linear");
    let up = slots.chars().filter(|mark| *mark == 'U').count() as u64;
    if is_redundant {
        wrong.same(&format!("{}, mdstat {slots}", case.name), up, case.counts[0]);
    }
}

/// Copy the console's scripts, and mark them as modules: Node of Debian 12 takes a `.js` file for a module only if a
/// `package.json` says so.
fn copy_modules(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("room");
    fs::write(to.join("package.json"), r#"{"type":"module"}"#).expect("room");
    for entry in fs::read_dir(from).expect("the folder of the console") {
        let file = entry.expect("an entry");
        fs::copy(file.path(), to.join(file.file_name())).expect("room");
    }
}

/// The document that a script here makes of the console's modules, with these arguments and this input. `None` without Node.
pub(super) fn of_console(script: &str, arguments: &[&str], input: &str) -> Option<Value> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/web").join(script);
    let modules = std::env::temp_dir().join(format!("openraid-{script}-{}", std::process::id()));
    copy_modules(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../management/console")), &modules);
    let mut node = Program::new("node");
    node.arg("--no-warnings").arg(here).arg(&modules).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = node.spawn() else {
        assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "node is missing (package node-typescript)");
        return None;
    };
    // It reads all before it writes.
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    fs::remove_dir_all(&modules).expect("the copy is ours");
    assert!(done.status.success(), "the console's modules: {}", done.status);
    Some(serde_json::from_slice(&done.stdout).expect("JSON"))
}

fn check_console(wrong: &mut MatrixDifferences, case: &Case, array: &ArrayModel, shown: &Value) {
    let text = |page: &str| shown[page].as_str().expect("a text");
    for page in ["header", "overview", "array"] {
        let what = format!("{}, the console's {page}", case.name);
        wrong.same(&format!("{what}: {:?}", text(page)), text(page).contains(&array.sentence), true);
        for (_, task) in array.tasks().filter(|_| page != "header") {
            // Its figures go on by themselves.
            wrong.same(&what, text(page).contains(task.kind.text()), true);
        }
    }
    // The table's own words, and no other ones.
    let word = case.word();
    for health in ["optimal", "degraded", "FAILED", "OFFLINE"] {
        let is_said = text("header").contains(&format!("{} is {health}", case.name));
        wrong.same(&format!("{}, the console says {health}", case.name), is_said, health == word);
    }
    let states = |page: &str, begins: &[&str]| {
        let cells = shown[page].as_array().expect("cells").iter().filter_map(Value::as_str);
        cells.filter(|cell| begins.iter().any(|begin| cell.trim().starts_with(begin))).count() as u64
    };
    let all: [&[&str]; 5] = [&["in sync"], &["rebuilding", "being copied to"], &["spare"], &["missing"], &["failed"]];
    let name = case.name;
    wrong.same(&format!("{name}, members of the console"), all.map(|begins| states("members", begins)), case.counts);
    let [in_sync, rebuilding, spare, _, faulty] = case.counts;
    let drives = all.map(|begins| states("drives", begins));
    wrong.same(&format!("{name}, drives of the console"), drives, [in_sync, rebuilding, spare, 0, faulty]);
}

/// What to do about an array that is wanted and not there: each interface gives the same line.
fn check_offline(
    wrong: &mut MatrixDifferences,
    case: &Case,
    array: &ArrayModel,
    volume: &Value,
    shown: Option<&Value>,
) {
    let (name, doctor) = (case.name, format!("openraid doctor {}", case.name));
    let next = array.next_step.as_ref().map(|step| step.command.clone());
    wrong.same(&format!("{name}, next step of the API"), next, Some(doctor.clone()));
    wrong.same(&format!("{name}, next step of show"), text(array).contains(&doctor), true);
    let open = |event: &str| array.alarms.iter().find(|alarm| alarm.what.event == event && alarm.is_open());
    let of_alarm = open("DeviceDisappeared").and_then(|alarm| alarm.what.next_step.clone());
    wrong.same(&format!("{name}, next step of its alarm"), of_alarm, Some(doctor.clone()));
    let conditions = volume["Status"]["Conditions"].to_string();
    wrong.same(&format!("{name}, next step of Redfish: {conditions}"), conditions.contains(&doctor), true);
    let Some(shown) = shown else { return };
    wrong.same(&format!("{name}, the console's button copies"), shown["copied"].as_str(), Some(doctor.as_str()));
    for page in ["overview", "array"] {
        let page_text = shown[page].as_str().expect("a text");
        wrong.same(&format!("{name}, the console's {page}: {page_text}"), page_text.contains(&doctor), true);
    }
}

fn check_sentence(wrong: &mut MatrixDifferences, case: &Case, array: &ArrayModel) {
    let word = case.word();
    let begin = format!("{} is {word}", case.name);
    wrong.same(&array.sentence, array.sentence.starts_with(&begin), true);
    let losses = match case.survives {
        0 => "It survives no further loss of a member".to_owned(),
        1 => "It survives the loss of any 1 member".to_owned(),
        n => format!("It survives the loss of any {n} members"),
    };
    wrong.same(&array.sentence, array.sentence.contains(&losses), case.is_usable());
    // The command line shows the same state after the name.
    let shown = text(array);
    let state = shown.lines().find_map(|line| line.trim_start().strip_prefix("state ")).unwrap_or_default();
    wrong.same(&array.sentence, array.sentence.contains(&format!(" is {}.", state.trim())), true);
}

fn check_metrics(wrong: &mut MatrixDifferences, case: &Case, array: &ArrayModel, figures: &BTreeMap<String, u64>) {
    let name = case.name;
    let mut same = |line: String, wanted: u64| wrong.same(&line, figures.get(&line).copied(), Some(wanted));
    for health in ["optimal", "degraded", "failed", "offline"] {
        let line = format!("openraid_array_health{{array=\"{name}\",level=\"{}\",health=\"{health}\"}}", array.level);
        same(line, u64::from(health == case.health));
    }
    same(format!("openraid_array_survives{{array=\"{name}\"}}"), case.survives);
    let [in_sync, rebuilding, spare, missing, faulty] = case.counts;
    for (state, count) in
        [("in-sync", in_sync), ("rebuilding", rebuilding), ("spare", spare), ("removed", missing), ("faulty", faulty)]
    {
        same(format!("openraid_members{{array=\"{name}\",state=\"{state}\"}}"), count);
    }
    same(format!("node_md_disks{{device=\"{name}\",state=\"active\"}}"), in_sync);
    same(format!("node_md_disks{{device=\"{name}\",state=\"failed\"}}"), faulty);
    same(format!("node_md_disks{{device=\"{name}\",state=\"spare\"}}"), spare + rebuilding);
    same(format!("node_md_disks{{device=\"{name}\",state=\"removed\"}}"), case.members as u64 - in_sync);
    let state = match case.task {
        Some("check" | "repair") => "check",
        Some(_) => "recovering",
        None if !case.is_usable() => "inactive",
        None => "active",
    };
    for word in ["active", "inactive", "recovering", "resync", "check"] {
        same(format!("node_md_state{{device=\"{name}\",state=\"{word}\"}}"), u64::from(word == state));
    }
    let of_tasks = format!("openraid_task_paused{{array=\"{name}\",");
    let tasks = figures.keys().filter(|name| name.starts_with(&of_tasks)).count();
    wrong.same(&format!("{name}, tasks of the metrics"), tasks, usize::from(case.task.is_some()));
}

fn check_redfish(wrong: &mut MatrixDifferences, case: &Case, volume: &Value) {
    let health = match case.health {
        "optimal" => "OK",
        "degraded" => "Warning",
        _ => "Critical",
    };
    wrong.same(&format!("{}, Redfish", case.name), volume["Status"]["Health"].as_str(), Some(health));
    let [in_sync, rebuilding, spare, _, faulty] = case.counts;
    let count = |key: &str| volume["Links"][key].as_array().map(|all| all.len() as u64);
    wrong.same(&format!("{}, Redfish drives", case.name), count("Drives"), Some(in_sync + rebuilding + faulty));
    wrong.same(&format!("{}, Redfish spares", case.name), count("DedicatedSpareDrives"), Some(spare));
    wrong.same(
        &format!("{}, Redfish operation", case.name),
        volume["Operations"][0]["OperationName"].as_str(),
        case.task,
    );
}

/// The console's button for the light of a drive asks for the first member that has a drive, and then to switch it off.
fn check_light(wrong: &mut MatrixDifferences, arrays: &[ArrayModel], orders: &Value) {
    let drive = |array: &ArrayModel| array.members.iter().find_map(|member| member.member.as_ref().and(member.drive));
    let (array, drive) = arrays.iter().find_map(|array| Some((array, drive(array)?))).expect("an array with a drive");
    let order = |off: bool| {
        serde_json::json!({"method": "POST", "path": format!("/api/v1/arrays/{}/locate", array.name),
            "body": {"member": format!("drive:{drive}"), "off": off}})
    };
    wrong.same("the console's light", orders, &serde_json::json!([order(false), order(true)]));
}

#[test]
fn every_interface_reports_the_same_of_fifty_states() {
    let cases = cases();
    assert!(cases.len() >= 50, "{}", cases.len());
    let limits = Limits { drives_max: 400, ..Limits::default() };
    let host = InProcess::start("interface-matrix", limits).expect("a server");
    let folder = std::env::temp_dir().join(format!("openraid-interface-matrix-drives-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    let mut lab = Lab { host, folder: folder.clone(), made: 0 };
    cases.iter().for_each(|case| lab.make(case));
    let wrong = compared(&lab.host.server, &cases, &folder);
    fs::remove_dir_all(&folder).expect("it is ours");
    lab.host.stop();
    assert!(wrong.0.is_empty(), "{}", wrong.0.join("\n"));
}

fn of_api(arrays: &[ArrayModel], name: &str) -> ArrayModel {
    arrays.iter().find(|array| array.name == name).cloned().expect("it is there")
}

/// All arrays, once no failure is still being recorded.
fn arrays_after_failures(server: &Server) -> Vec<ArrayModel> {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let arrays = server.wanted_arrays().expect("it runs");
        let sets = arrays.iter().flat_map(ArrayModel::sets);
        let mut failing = sets.filter(|set| set.members.iter().any(|member| member.state == StateWord::Failing));
        let Some(set) = failing.next() else { return arrays };
        assert!(std::time::Instant::now() < until, "a failure is not recorded: {}", text(set));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn compared(server: &Arc<Server>, cases: &[Case], folder: &Path) -> MatrixDifferences {
    let options = Options {
        kept: None,
        listen: ([127, 0, 0, 1], 0).into(),
        folder: folder.to_owned(),
        certificate: None,
        client_ca: None,
        names: Vec::new(),
        metrics_md: true,
        drives: Vec::new(),
    };
    let management = super::start(server, options).expect("it listens");
    let (url, token) = (management.url(), management.token(openraid_status::Role::ReadOnly));
    let mut wrong = MatrixDifferences::default();
    let arrays = arrays_after_failures(server);
    let listed = crate::verb::list::text(&arrays, &[]);
    let document = json(&format!("{url}api/v1/arrays"), &token);
    let by_api: Vec<ArrayModel> = serde_json::from_value(document["arrays"].clone()).expect("arrays");
    let mut given = document.clone();
    given["words"] = HOSTILE.into();
    let by_console = of_console("interface_matrix.mjs", &[], &given.to_string());
    let figures = figures(&get(&format!("{url}metrics"), &token));
    for case in cases {
        let of =
            |arrays: &[ArrayModel]| arrays.iter().find(|array| array.name == case.name).cloned().expect("it is there");
        let array = of(&arrays);
        check_model(&mut wrong, case, &array);
        check_model(&mut wrong, case, &of(&by_api));
        check_sentence(&mut wrong, case, &of(&by_api));
        if let Some(shown) = &by_console {
            check_console(&mut wrong, case, &of(&by_api), &shown[case.name]);
        }
        check_words(&mut wrong, case, &array, &listed);
        check_metrics(&mut wrong, case, &array, &figures);
        let volume = json(&format!("{url}redfish/v1/Systems/1/Storage/openraid/Volumes/{}", case.name), &token);
        check_redfish(&mut wrong, case, &volume);
        if case.health == "offline" {
            let shown = by_console.as_ref().map(|shown| &shown[case.name]);
            check_offline(&mut wrong, case, &of_api(&by_api, case.name), &volume, shown);
        }
        if case.orders.iter().any(|order| order.starts_with("unlink:")) {
            let of = format!("openraid_member_displaced{{array=\"{}\",", case.name);
            let by_metrics = figures.iter().filter(|(key, _)| key.starts_with(&of)).map(|(_, value)| value).sum();
            let drives = volume["Links"]["Drives"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|drive| drive["@odata.id"].as_str());
            let drives = drives.map(|path| json(&format!("{}{path}", url.trim_end_matches('/')), &token));
            let by_redfish = drives.filter(|drive| drive["Status"]["Health"] == "Critical").count() as u64;
            let shown = by_console.as_ref().map(|shown| &shown[case.name]);
            check_displaced(&mut wrong, case, &of_api(&by_api, case.name), shown, (by_metrics, by_redfish));
        }
    }
    if let Some(shown) = &by_console {
        check_light(&mut wrong, &by_api, &shown["orders"]);
        let commands =
            HOSTILE.map(|name| openraid_status::shell_quoting::command_with("show", [name, "d 1"], "--follow"));
        wrong.same("commands of the console", &shown["commands"], &commands.to_vec().into());
        check_steps(&mut wrong, &shown["steps"]);
        check_instances(&mut wrong, &shown["instances"]);
        check_empty(&mut wrong, &shown["empty"], &shown["unreadable"]);
        super::roles::check(&mut wrong, server, &management, folder);
    }
    wrong
}
