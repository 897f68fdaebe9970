//! The configuration file at work: mistakes with their lines, a service made from a file, reload under a client, and what a
//! service manager hears.

use crate::support;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Lab, Server, READ, WRITE};
use serde_json::Value;

const EPERM: u32 = 1;
/// A datagram that does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(240);

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

/// Write the configuration; `@` stands for the folder.
fn configure(lab: &Lab, text: &str) {
    fs::write(lab.path("openraid.toml"), text.replace('@', lab.folder.to_str().expect("UTF-8"))).expect("room");
}

/// A server by the file, and its standard error until it was ready.
fn serve(lab: &Lab, arguments: &[&str]) -> (Server, String) {
    let mut command = lab.command(&[&["serve", "--json", "--config", "openraid.toml"], arguments].concat());
    command.stderr(File::create(lab.path("errors")).expect("room"));
    let server = Server::started(&mut command).unwrap_or_else(|line| panic!("not ready: {line:?}"));
    (server, fs::read_to_string(lab.path("errors")).expect("text"))
}

const LISTEN: &str = "[server]\nnbd-unix = \"@/nbd.sock\"\n";

#[test]
fn every_mistake_has_its_line_and_what_to_write() {
    let lab = Lab::new("mistakes");
    let text =
        "[server]\ncahce = \"64M\"\nmemory = \"lots\"\ndrive-depth = 500\nnbd = [\"host:port\"]\njournal = [\"j0\"]\n\
                [arrays.data]\nacces = \"read-only\"\naccess = \"readonly\"\nmembers = [\"/x\", \"/x\"]\n\
                [arrays.data.settings]\nrebuild.rate = \"fast\"\nprofil = \"balanced\"\nmirror-read = \"best\"\n\
                [arrays.\"no name\"]\n[[spares]]\nfor = \"data\"\n[colours]\n";
    configure(&lab, text);
    let ran = lab.line("config check openraid.toml --json").expect(65);
    let found = ran.json()["problems"].as_array().expect("a list").clone();
    let found: Vec<(u64, String, String)> = found
        .iter()
        .map(|problem| {
            let text = |key: &str| problem[key].as_str().expect("text").to_owned();
            (problem["line"].as_u64().expect("a number"), text("key"), format!("{}; {}", text("what"), text("remedy")))
        })
        .collect();
    let wanted = [
        (2, "server.cahce", "did you mean cache?"),
        (3, "server.memory", "\"lots\" is not a size"),
        (4, "server.drive-depth", "write a number from 1 to 128"),
        (5, "server.nbd", "write HOST:PORT"),
        (6, "server.journal", "not an absolute path"),
        (8, "arrays.data.acces", "did you mean access?"),
        (9, "arrays.data.access", "did you mean read-only?"),
        (10, "arrays.data.members", "used twice"),
        (12, "arrays.data.settings.rebuild.rate", "is not a size"),
        (13, "arrays.data.settings.profil", "did you mean profile?"),
        (14, "arrays.data.settings.mirror-read", "use one of primary, round-robin"),
        (15, "arrays.\"no name\"", "is not an array name"),
        (16, "spares.member", "a spare without a drive"),
        (18, "colours", "known keys here: server, management, arrays, spares, sinks, schedules"),
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for ((line, key, text), (wanted_line, wanted_key, words)) in found.iter().zip(wanted) {
        assert_eq!((*line, key.as_str()), (wanted_line, wanted_key), "{found:#?}");
        assert!(text.contains(words), "{words:?} is not in {text}");
        assert!(ran.err.contains(&format!("line {line}: {key}: ")), "{}", ran.err);
    }
    lab.line("serve --config openraid.toml").refused(65, &["14 problems, nothing of it takes effect", "line 2: "]);
    configure(&lab, "[server]\ncache = \"64M\n");
    lab.line("config check openraid.toml").refused(65, &["line 2: not TOML"]);
    configure(&lab, "[server]\ncache = \"64M\"\ncache = \"32M\"\n");
    lab.line("config check openraid.toml").refused(65, &["line 3: not TOML: duplicate key"]);
    fs::write(lab.path("openraid.toml"), [0xff, 0xfe]).expect("room");
    lab.line("config check openraid.toml").refused(65, &["is not UTF-8 text (byte 0)"]);
    lab.line("config check nowhere.toml").refused(65, &["nowhere.toml cannot be read"]);
    lab.line("config check .").refused(65, &["is not a regular file"]);
    lab.line("config check").refused(64, &["name it: openraid config check FILE"]);
    lab.line("reload").refused(4, &["no server runs"]);
}

#[test]
fn a_service_follows_its_file_and_the_command_line_overrides_it() {
    let lab = array("file");
    lab.line("forget data").expect(0);
    configure(
        &lab,
        &format!(
            "{LISTEN}cache = \"16M\"\nqueue-age = 5\n[arrays.data]\nmembers = [\"@/d0\", \"@/d1\", \"@/d2\"]\n\
             exports = [\"data\", \"vm1\"]\naccess = \"read-only\"\n[arrays.data.settings]\nrebuild.rate = \"50M\"\n\
             profile = \"protection\"\n[arrays.gone]\n[care]\nslow-window = \"90s\"\nsmart = \"never\"\nidle-probe = \"600s\"\n"
        ),
    );
    let checked = lab.line("config check openraid.toml").expect(0).text();
    assert!(!checked.contains("care.idle-probe"), "it has its default");
    for line in [
        "care.slow-window",
        "90s",
        "never",
        "no problems",
        "rebuild.rate",
        "exports  data, vm1",
        "array gone (not known yet)",
    ] {
        assert!(checked.contains(line), "{line:?} is not in {checked}");
    }
    let (server, said) = serve(&lab, &["--cache", "32M"]);
    assert!(said.contains("cache: 32 MiB of the command line overrides 16 MiB"), "{said}");
    assert!(said.contains("openraid.toml, line 3)"), "{said}");
    assert!(said.contains("array gone is not remembered, and the file names no members of it"), "{said}");
    let shown = lab.show("data");
    assert_eq!((&shown["settings"]["rebuild_rate"], &shown["access"]), (&(50 << 20).into(), &"read-only".into()));
    assert_eq!((&shown["profile"]["name"], &shown["cache"]["size_bytes"]), (&"protection".into(), &(32 << 20).into()));
    let socket = lab.path("nbd.sock");
    for export in ["data", "vm1"] {
        let mut client = Client::open(&socket, export);
        assert_eq!((client.ask(READ, 0, &[0; 512]), client.ask(WRITE, 0, &[0; 512])), (0, EPERM));
    }
    // After a restart the values of the file are in force again, and `set` says so. Values that the file does not name
    // are kept.
    let note = "says rebuild.rate=50M, which holds again after a restart or `openraid reload`";
    lab.line("set data rebuild.rate=7M scrub.rate=9M").expect(0).says(&[note]);
    let config = lab.line("config show --json").expect(0).json();
    let value = |list: &Value, key: &str| {
        let found = list.as_array().expect("a list").iter().find(|entry| entry["key"] == key).expect(key).clone();
        (found["value"].as_str().expect("text").to_owned(), found["from"].as_str().expect("text").to_owned())
    };
    assert_eq!(value(&config["server"], "cache"), ("32 MiB".into(), "command-line".into()));
    assert_eq!(value(&config["server"], "queue-age"), ("5".into(), "file".into()));
    let values = &config["arrays"][0]["values"];
    assert_eq!(value(values, "rebuild.rate"), ("50M".into(), "file".into()));
    assert_eq!(value(values, "scrub.rate"), ("9M".into(), "set".into()));
    let lines = values.as_array().expect("a list");
    let line = |key: &str| lines.iter().find(|entry| entry["key"] == key).expect(key)["line"].clone();
    assert_eq!(
        [line("access"), line("rebuild.rate"), line("profile"), line("scrub.rate")],
        [8.into(), 10.into(), 11.into(), Value::Null]
    );
    // A service continues without arrays.
    lab.line("stop data").expect(0);
    let listed = lab.line("list").expect(2).text();
    assert!(
        listed.contains("offline") && listed.contains("OFFLINE; line 12: array gone is not remembered"),
        "{listed}"
    );
    lab.line("stop --all").expect(0);
    assert_eq!(server.end().0, 0);
    let (server, _) = serve(&lab, &[]);
    let settings = lab.show("data")["settings"].clone();
    assert_eq!((&settings["rebuild_rate"], &settings["scrub_rate"]), (&(50 << 20).into(), &(9 << 20).into()));
    server.stop();
}

#[test]
fn a_reload_keeps_clients_and_names_changes_that_wait_for_a_restart() {
    let lab = array("reload");
    configure(&lab, LISTEN);
    let (mut server, _) = serve(&lab, &[]);
    let socket = lab.path("nbd.sock");
    let mut client = Client::open(&socket, "data");
    assert_eq!(client.ask(WRITE, 0, &[1; 4096]), 0);
    lab.line("reload").expect(0).says(&["nothing has changed"]);
    configure(
        &lab,
        &format!(
            "{LISTEN}cache = \"16M\"\n[arrays.data]\nexports = [\"data\", \"vm1\"]\n[arrays.data.settings]\n\
             rebuild.rate = \"50M\"\n[schedules.weekly]\ntask = \"check\"\nevery = \"7d\"\n"
        ),
    );
    let answer = lab.line("reload --json").expect(0).json();
    let list = |key: &str| answer[key].as_array().expect("a list").clone();
    assert_eq!(list("restart"), ["server.cache"]);
    assert_eq!(
        list("applied"),
        ["data: rebuild.rate 200 MiB/s -> 50 MiB/s", "data: export vm1 added", "schedule weekly added"]
    );
    assert_eq!((client.ask(WRITE, 0, &[2; 4096]), client.ask(READ, 0, &[0; 4096])), (0, 0));
    assert_eq!(Client::open(&socket, "vm1").ask(READ, 0, &[0; 512]), 0);
    // A signal does the same.
    configure(&lab, &format!("{LISTEN}[arrays.data]\naccess = \"read-only\"\n"));
    server.signal("-HUP");
    server.wait_for_news("ConfigurationRead", 1);
    assert_eq!((client.ask(WRITE, 0, &[3; 4096]), client.ask(READ, 0, &[0; 4096])), (EPERM, 0));
    let shown = lab.show("data");
    assert_eq!((&shown["settings"]["rebuild_rate"], &shown["access"]), (&(200 << 20).into(), &"read-only".into()));
    assert_eq!(shown["exports"], serde_json::json!(["data"]), "the file does not name the other one any more");
    // An export that the file names no more takes no new clients; its own stay.
    configure(&lab, &format!("{LISTEN}[arrays.data]\nexports = [\"data\", \"vm2\"]\naccess = \"read-only\"\n"));
    lab.line("reload").expect(0);
    let mut stays = Client::open(&socket, "vm2");
    configure(&lab, &format!("{LISTEN}[arrays.data]\naccess = \"read-only\"\n"));
    lab.line("reload").expect(0).says(&["data: export vm2 removed; its clients stay until they disconnect"]);
    assert_eq!(stays.ask(READ, 0, &[0; 512]), 0);
    let uri = format!("nbd+unix:///vm2?socket={}", socket.display());
    lab.line(&format!("examine {uri}")).expect(4).says(&["vm2"]);
    // A file that is wrong changes nothing.
    configure(&lab, "[arrays.data]\naccess = \"read-write\"\nexport = [\"x\"]\n");
    lab.line("reload").refused(65, &["line 3: arrays.data.export: unknown key; did you mean exports?"]);
    server.signal("-HUP");
    server.wait_for_news("ConfigurationRefused", 1);
    assert_eq!(client.ask(WRITE, 0, &[3; 4096]), EPERM);
    // An array that the file names since then is served.
    lab.line("create more --level 1 --assume-clean --file-size 16M m0 m1").expect(0);
    configure(&lab, &format!("{LISTEN}[arrays.more]\n"));
    lab.line("reload").expect(0).says(&["served now: more"]);
    assert_eq!(client.ask(WRITE, 0, &[3; 4096]), 0);
    assert_eq!(Client::open(&socket, "more").ask(READ, 0, &[0; 512]), 0);
    server.stop();
    let plain = lab.serve(&["data"]);
    lab.line("reload").refused(65, &["no configuration file"]);
    plain.stop();
}

#[test]
fn a_service_manager_hears_of_every_step_and_that_the_loop_answers() {
    let lab = array("notify");
    configure(&lab, LISTEN);
    let path = lab.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
    let mut command = lab.command(&["serve", "--json", "--config", "openraid.toml"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "900000");
    let server = Server::started(&mut command).expect("ready");
    let hear = |word: &str, times: usize| {
        let until = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while heard.iter().filter(|text: &&String| text.contains(word)).count() < times {
            assert!(Instant::now() < until, "{word} is not heard: {heard:?}");
            let mut bytes = [0; 1024];
            if let Ok(len) = socket.recv(&mut bytes) {
                heard.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
            }
        }
        heard
    };
    let first = hear("READY=1", 1).pop().expect("a message");
    assert!(first.contains("STATUS=1 array served, all optimal"), "{first}");
    hear("WATCHDOG=1", 3);
    lab.line("fail data d0").expect(0);
    hear("STATUS=1 array served; data degraded", 1);
    lab.line("reload").expect(0);
    let heard = hear("READY=1", 1);
    assert!(heard.iter().any(|text| text.starts_with("RELOADING=1\nMONOTONIC_USEC=")), "{heard:?}");
    server.signal("-TERM");
    hear("STOPPING=1", 1);
    assert_eq!(server.end().0, 0);
}

#[test]
fn an_array_is_found_by_its_uuid_which_goes_before_its_name() {
    let lab = array("uuid");
    let listed = lab.line("list --json").expect(0).json();
    let uuid = listed["remembered"][0]["uuid"].as_str().expect("a UUID").to_owned();
    configure(
        &lab,
        &format!(
            "{LISTEN}[arrays.data]\naccess = \"blocked\"\n[arrays.{uuid:?}]\naccess = \"read-only\"\n\
             settings.scrub.rate = \"3M\"\n"
        ),
    );
    let shown = lab.line("config show openraid.toml --json").expect(0).json();
    let of_array = shown["arrays"].as_array().expect("a list").iter().find(|array| array["remembered"] == true);
    assert_eq!(of_array.expect("it is remembered")["values"][0]["value"], "read-only");
    let (server, _) = serve(&lab, &[]);
    let shown = lab.show("data");
    assert_eq!((&shown["access"], &shown["settings"]["scrub_rate"]), (&"read-only".into(), &(3 << 20).into()));
    server.stop();
}

#[test]
fn an_array_that_cannot_be_started_does_not_keep_the_others_away() {
    let lab = array("others");
    lab.line("create more --level 1 --assume-clean --file-size 16M m0 m1").expect(0);
    lab.line("create gone --level 1 --assume-clean --file-size 16M g0 g1").expect(0);
    for name in ["g0", "g1"] {
        fs::remove_file(lab.path(name)).expect("it was there");
    }
    configure(&lab, LISTEN);
    let (server, said) = serve(&lab, &[]);
    assert!(said.contains("/g0: there is no such file or device"), "{said}");
    let names: Vec<&str> =
        server.ready["arrays"].as_array().expect("a list").iter().filter_map(|array| array["name"].as_str()).collect();
    assert_eq!(names, ["data", "more"]);
    lab.line("stop --all").expect(0);
    assert_eq!(server.end().0, 0);
    // Nothing at all is left: it waits for what comes.
    for name in ["data", "more", "gone"] {
        lab.line(&format!("forget {name}")).expect(0);
    }
    let (server, _) = serve(&lab, &[]);
    lab.line("assemble d0 d1 d2").expect(0).says(&["served now: data"]);
    lab.line("show data").expect(0);
    lab.line("stop data").expect(0);
    lab.line("stop --all").expect(0);
    assert_eq!(server.end().0, 0);
}

#[test]
fn spares_of_the_file_are_taken_in_when_they_are_needed() {
    let lab = array("pool");
    lab.drives(&["own", "all", "used"], 16);
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1").expect(0);
    configure(
        &lab,
        &format!(
            "{LISTEN}[[spares]]\nmember = \"@/own\"\nfor = \"other\"\n[[spares]]\nmember = \"@/o0\"\n[[spares]]\n\
             member = \"@/all\"\nfor = \"all\"\n"
        ),
    );
    let (mut server, _) = serve(&lab, &[]);
    let listed = lab.line("spare list other").expect(0).text();
    assert!(listed.contains("/own"), "{listed}");
    lab.line("fail data d1").expect(0);
    server.wait_for_news("SpareRefused", 1);
    server.wait_for_news("SpareTaken", 1);
    let all = lab.path("all").display().to_string();
    lab.wait_for("data", |array| {
        let members = array["members"].as_array().expect("a list");
        members.iter().any(|member| member["member"] == all.as_str() && member["state"] == "in-sync")
    });
    server.kill();
    // It is a member now: the next server has it, and it is not given twice.
    let (mut server, _) = serve(&lab, &[]);
    assert_eq!(lab.show("data")["health"], "optimal");
    // When the next member fails, no alarm advises to add a working member as a spare.
    lab.line("fail data d0").expect(0);
    server.wait_for_news("SpareRefused", 1);
    let told = lab.line("alarms --json --array data").expect(0).json()["alarms"].to_string();
    assert!(told.contains("DegradedArray") && !told.contains(&format!("spare add data {all}")), "{told}");
    assert!(lab.line("spare list other").expect(0).text().contains("/own"));
    // A spare that an order took out stays out, also after a restart, until an order adds it.
    lab.line("spare remove other own").expect(0);
    server.stop();
    let (server, said) = serve(&lab, &[]);
    assert!(said.contains("it was removed by a command"), "{said}");
    assert!(!lab.line("spare list other").expect(0).text().contains("/own"));
    let alarms = lab.line("alarms --json --array other").expect(0).json();
    assert_eq!(alarms["alarms"][0]["event"], "SparesMissing");
    let device = lab.path("own").display().to_string();
    lab.line(&format!("spare add other {device}")).expect(0);
    server.stop();
    let (server, said) = serve(&lab, &[]);
    assert!(!said.contains("taken out") && lab.line("spare list other").expect(0).text().contains("/own"), "{said}");
    server.stop();
}

#[test]
fn a_member_of_a_known_array_is_recognised_by_its_superblock_and_by_its_path() {
    let lab = array("member");
    lab.line("config member d1").expect(0).says(&["data"]);
    fs::rename(lab.path("d1"), lab.path("moved")).expect("the same folder");
    lab.line("config member moved").expect(0).says(&["data"]);
    lab.drives(&["stranger"], 8);
    lab.line("config member stranger")
        .refused(65, &["does not belong to an array of the registry or the configuration file"]);
    lab.line("config member nowhere").refused(65, &["does not belong to an array"]);
    lab.line("create raw --level jbod stranger").expect(0);
    lab.line("config member stranger").expect(0).says(&["raw"]);
}

/// blkid writes the identity into `ID_FS_UUID`, so it judges the rules.
#[test]
fn rules_of_udev_name_every_array_and_every_span_as_blkid_does() {
    let lab = array("udev");
    let spans: Vec<String> = (0..6).map(|number| format!("s{number}")).collect();
    lab.line(&format!("create wide --level 50 --spans 2 --assume-clean --file-size 16M {}", spans.join(" "))).expect(0);
    let rules = lab.line("config udev").expect(0).text();
    let identity = |file: &str| {
        let mut blkid = Command::new("/usr/sbin/blkid");
        let said = blkid
            .args(["-p", "-o", "value", "-s", "UUID"])
            .arg(lab.path(file))
            .output()
            .expect("blkid is a part of Debian");
        String::from_utf8(said.stdout).expect("ASCII").trim().to_owned()
    };
    for file in ["d0", "s0", "s5"] {
        let wanted = format!("ENV{{ID_FS_TYPE}}==\"linux_raid_member\", ENV{{ID_FS_UUID}}==\"{}\",", identity(file));
        assert!(rules.contains(&wanted), "{file}: {wanted} is not in {rules}");
    }
    assert_ne!(identity("s0"), identity("s5"), "spans are arrays of their own");
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1").expect(0);
    lab.line("forget other").expect(0);
    assert!(!lab.line("config udev").expect(0).text().contains(&identity("o0")), "a forgotten array is md's again");
}

#[test]
fn the_packaged_file_has_no_mistakes_with_and_without_its_examples() {
    let lab = Lab::new("packaged");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/openraid.toml");
    lab.run(&["config", "check", path]).expect(0).says(&["no problems"]);
    let text = fs::read_to_string(path).expect("the file");
    let example =
        |line: &str| line.strip_prefix("# ").filter(|rest| rest.starts_with('[') || rest.contains(" = ")).is_some();
    let lines = text.lines().map(|line| if example(line) { &line[2..] } else { line });
    fs::write(lab.path("openraid.toml"), lines.collect::<Vec<_>>().join("\n")).expect("room");
    // The only problems are files of the examples that this machine does not have.
    let ran = lab.line("config check openraid.toml").expect(65);
    let said = format!("{}{}", ran.text(), ran.err);
    assert!(said.contains("4 problems with the files and arrays that it names"), "{said}");
    assert_eq!(said.matches("/etc/openraid/").count(), said.matches("No such file").count(), "{said}");
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !["nbd-tls", "password-file", "user = "].iter().any(|word| line.contains(word)))
        .collect();
    let lines = without.iter().map(|line| if example(line) { &line[2..] } else { line });
    fs::write(lab.path("openraid.toml"), lines.collect::<Vec<_>>().join("\n")).expect("room");
    lab.line("config check openraid.toml").expect(0).says(&["spare /dev/disk/by-id/ata-4 for all arrays", "data, vm1"]);
}

#[test]
fn names_in_a_file_that_lead_nowhere_are_found() {
    let lab = array("nowhere");
    fs::write(lab.path("text"), "no program").expect("room");
    let good = "[[spares]]\nmember = \"@/d3\"\nfor = \"data\"\n[care]\nsmartctl = \"/bin/true\"\n";
    configure(&lab, good);
    lab.line("config check openraid.toml").expect(0);
    let bad =
        "[server]\nnbd = [\"10809\"]\nnbd-tls = [\"127.0.0.1:10809\"]\n[management]\nlisten = \"127.0.0.1:10809\"\n";
    configure(&lab, bad);
    let twice =
        ["line 3: server.nbd-tls: the address \"127.0.0.1:10809\" is used twice", "line 5: management.listen: "];
    lab.line("config check openraid.toml").refused(65, &twice);
    let bad = "[[spares]]\nmember = \"@/d3\"\nfor = \"dat\"\n[care]\nled = \"@/text\"\n[sinks.page]\nkind = \"exec\"\n\
               program = \"/nowhere/page\"\n[schedules.weekly]\ntask = \"check\"\nevery = \"7d\"\narrays = [\"data\", \"vm\"]\n";
    configure(&lab, bad);
    let words = [
        "4 problems",
        "spares.for: there is no array named dat; name an array",
        "line 5: care.led: ",
        "text is no program; name a program that can be executed",
        "sinks.page.program: /nowhere/page: No such file",
        "schedules.weekly.arrays: there is no array named vm",
    ];
    lab.line("config check openraid.toml").refused(65, &words);
}

/// A file of the package.
fn packaged(name: &str) -> String {
    format!("{}/../../packaging/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A program of systemd: whether it succeeded, and all that it said.
fn systemd(program: &str, words: &[&str]) -> Option<(bool, String)> {
    let out = Command::new(program).args(words).output().ok()?;
    Some((out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()))
}

#[test]
fn the_packaged_group_and_folder_are_made_by_systemds_own_programs() {
    let lab = Lab::new("sysusers");
    let root = format!("--root={}", lab.folder.display());
    fs::create_dir(lab.path("etc")).expect("room");
    for kind in ["sysusers.d", "tmpfiles.d"] {
        let folder = lab.path(&format!("usr/lib/{kind}"));
        fs::create_dir_all(&folder).expect("room");
        fs::copy(packaged(&format!("{kind}/openraid.conf")), folder.join("openraid.conf")).expect("room");
    }
    if !support::is_root() {
        return support::skipped("only root can make groups and give folders away");
    }
    let Some((fine, said)) = systemd("systemd-sysusers", &[&root, "openraid.conf"]) else {
        return support::skipped("systemd-sysusers is not installed");
    };
    assert!(fine, "{said}");
    let groups = fs::read_to_string(lab.path("etc/group")).expect("a file");
    let group =
        groups.lines().find_map(|line| line.strip_prefix("openraid:x:")?.split(':').next()?.parse::<u32>().ok());
    assert!(!lab.path("etc/passwd").exists(), "the server runs as root, and there is no other account");
    let Some((fine, said)) = systemd("systemd-tmpfiles", &[&root, "--create", "openraid.conf"]) else {
        return support::skipped("systemd-tmpfiles is not installed");
    };
    assert!(fine, "{said}");
    let folder = fs::metadata(lab.path("run/openraid-nbd")).expect("a folder");
    assert_eq!((folder.mode() & 0o7777, folder.uid(), Some(folder.gid())), (0o2750, 0, group));
    // The socket of a server in this folder belongs to the folder's group, whatever the umask of the unit is. The
    // socket of `lab.serve` belongs to its user.
    lab.line("create data --level 5 --assume-clean --file-size 8M d0 d1 d2").expect(0);
    let socket = lab.path("run/openraid-nbd/nbd.sock");
    let server = lab.serve(&["data", "--nbd-unix", &socket.display().to_string()]);
    let made = fs::metadata(&socket).expect("a socket");
    assert_eq!((made.mode() & 0o777, Some(made.gid())), (0o660, group));
    assert_eq!(fs::metadata(lab.path("nbd.sock")).expect("a socket").mode() & 0o777, 0o600);
    server.stop();
}

#[test]
fn the_packaged_unit_is_one_that_systemd_understands_and_calls_less_exposed() {
    let lab = Lab::new("unit");
    let unit = lab.path("openraid.service");
    // What the unit starts is somewhere else here, and its man pages are not installed.
    let text = fs::read_to_string(packaged("openraid.service")).expect("the unit");
    let text = text.replace("/usr/bin/openraid", support::PROGRAM);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Documentation=")).collect();
    fs::write(&unit, lines.join("\n")).expect("room");
    let path = unit.display().to_string();
    let [sockets, hosts] = ["openraid.socket", "openraid-hosts.target"].map(|name| {
        let unit = lab.path(name);
        let text = fs::read_to_string(packaged(name)).expect("the unit");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Documentation=")).collect();
        fs::write(&unit, lines.join("\n")).expect("room");
        unit.display().to_string()
    });
    let Some((fine, said)) = systemd("systemd-analyze", &["verify", "--man=no", &path, &sockets, &hosts]) else {
        return support::skipped("systemd-analyze is not installed");
    };
    assert!(fine && said.is_empty(), "{said}");
    // The scale ends at 100; with every capability, all of /usr and all system calls it would be above 90.
    let (fine, said) =
        systemd("systemd-analyze", &["security", "--offline=yes", "--threshold=45", &path]).expect("there");
    assert!(fine, "{said}");
}

/// At the default address every account of the machine could write the arrays.
#[test]
fn a_service_listens_for_clients_only_where_its_file_says() {
    let lab = Lab::new("config-no-address");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    fs::write(lab.path("openraid.toml"), "[management]\nlisten = \"127.0.0.1:0\"\n").expect("room");
    let mut command = lab.command(&["serve", "--json", "--config", "openraid.toml"]);
    command.stderr(File::create(lab.path("warnings")).expect("room"));
    let server = Server::started(&mut command).expect("ready");
    assert_eq!(server.ready["arrays"][0]["addresses"], serde_json::json!([]));
    assert_eq!(lab.show("data")["addresses"], serde_json::json!([]));
    let warnings = fs::read_to_string(lab.path("warnings")).expect("text");
    assert!(
        warnings.contains("names no address for clients: add nvme, nbd-unix, nbd, nbd-tls or vhost to [server]"),
        "{warnings}"
    );
    server.stop();
}
