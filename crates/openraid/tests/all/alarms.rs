//! Alarms: they begin and end with the state, also at a start, are kept over kills, and can be acknowledged.

use crate::support;

use std::fs;

use crate::support::{Lab, Server};
use serde_json::Value;

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

fn alarms(lab: &Lab, options: &str) -> Vec<Value> {
    let answer = lab.line(&format!("alarms --json {options}")).expect(0).json();
    answer["alarms"].as_array().expect("a list").clone()
}

fn ids(alarms: &[Value]) -> Vec<&str> {
    alarms.iter().map(|alarm| alarm["id"].as_str().expect("a name")).collect()
}

fn find(alarms: &[Value], id: &str) -> Value {
    alarms.iter().find(|alarm| alarm["id"] == id).unwrap_or_else(|| panic!("{id} is not in {alarms:#?}")).clone()
}

#[test]
fn a_degraded_array_is_one_alarm_from_its_beginning_over_a_kill_to_its_end() {
    let lab = array("alarms");
    lab.line("alarms").expect(0).says(&["no alarms"]);
    let server = lab.serve(&["data"]);
    assert_eq!(alarms(&lab, ""), [Value::Null; 0]);
    lab.line("fail data d1").expect(0);
    let fail_id = format!("data:Fail:{}", lab.path("d1").display());
    let found = alarms(&lab, "");
    assert_eq!(ids(&found), ["data:DegradedArray", &fail_id]);
    let degraded = find(&found, "data:DegradedArray");
    let wanted = [
        ("level", "critical".into()),
        ("event", "DegradedArray".into()),
        ("message_id", "StorageDevice.1.2.VolumeDegraded".into()),
        ("array", "data".into()),
        ("text", "data: degraded: without slot 1; the loss of one more member loses data".into()),
        ("next_step", "openraid add data DRIVE".into()),
        ("until_seconds", Value::Null),
        ("acknowledged_seconds", Value::Null),
    ];
    for (key, value) in wanted {
        assert_eq!(degraded[key], value, "{key} of {degraded:#}");
    }
    assert_eq!(find(&found, &fail_id)["message_id"], "StorageDevice.1.2.DriveFailure");
    // The same stands in `show`, `list` counts it.
    assert_eq!(ids(lab.show("data")["alarms"].as_array().expect("a list")), ["data:DegradedArray", &fail_id]);
    lab.line("show data").expect(1).says(&["critical DegradedArray since "]);
    lab.line("list").expect(1).says(&["2 open alarms; see `openraid alarms`"]);
    lab.line("alarms acknowledge data:DegradedArray").expect(0).says(&["1 alarm acknowledged"]);
    lab.line("alarms acknowledge data:DegradedArray").expect(0).says(&["0 alarms acknowledged"]);
    lab.line("alarms acknowledge data:Other").refused(65, &["there is no alarm data:Other"]);
    lab.line("list").expect(1).says(&["1 open alarm; see `openraid alarms`"]);
    // A thread of the server writes its alarms down; another process reads the file.
    let acknowledged = find(&alarms(&lab, ""), "data:DegradedArray");
    assert!(acknowledged["acknowledged_seconds"].is_u64(), "{acknowledged:#}");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let file = lab.path("state/openraid/registry.json.alarms");
    while !String::from_utf8_lossy(&fs::read(&file).expect("the file")).contains("\"acknowledged\":1") {
        assert!(std::time::Instant::now() < until, "it is not written down");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server.kill();
    // Without a server they are as it left them.
    assert_eq!(find(&alarms(&lab, ""), "data:DegradedArray"), acknowledged);
    let gone = format!("--control {}", lab.path("gone.sock").display());
    assert_eq!(find(&alarms(&lab, &gone), "data:DegradedArray"), acknowledged);
    let server = lab.serve(&["data"]);
    let found = alarms(&lab, "");
    assert_eq!(find(&found, "data:DegradedArray"), acknowledged, "it is the same alarm");
    // Its thread looks every two seconds.
    let stays_out = format!("data:MemberStaysOut:{}", lab.path("d1").display());
    lab.wait_for("data", |array| ids(array["alarms"].as_array().expect("a list")).contains(&stays_out.as_str()));
    lab.line("add data --file-size 16M d3").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    assert_eq!(ids(&alarms(&lab, "")), [""; 0]);
    let ended = find(&alarms(&lab, "--ended"), "data:DegradedArray");
    assert_eq!(ended["since_seconds"], acknowledged["since_seconds"]);
    assert!(ended["until_seconds"].as_u64() >= ended["since_seconds"].as_u64(), "{ended:#}");
    server.stop();
}

#[test]
fn a_fault_found_at_a_start_is_an_alarm() {
    let lab = array("start");
    lab.line("create gone --level 1 --assume-clean --file-size 16M g0 g1").expect(0);
    for name in ["d2", "g0", "g1"] {
        fs::remove_file(lab.path(name)).expect("it was there");
    }
    fs::write(
        lab.path("openraid.toml"),
        format!(
            "[server]\nnbd-unix = {:?}\n[[spares]]\nmember = \"/nowhere/spare\"\nfor = \"data\"\n",
            lab.path("nbd.sock")
        ),
    )
    .expect("room");
    let control = lab.path("service.sock").display().to_string();
    let serve = || {
        let mut command = lab.command(&["--control", &control, "serve", "--json", "--config", "openraid.toml"]);
        Server::started(&mut command).expect("ready")
    };
    let server = serve();
    let options = format!("--control {control}");
    let found = alarms(&lab, &options);
    let lost = find(&found, "gone:DeviceDisappeared");
    assert_eq!((&lost["level"], &lost["message_id"]), (&"critical".into(), &"StorageDevice.1.2.VolumeOffline".into()));
    assert_eq!(
        find(&found, "data:DegradedArray")["text"],
        "data: degraded: without slot 2; the loss of one more member loses data"
    );
    assert_eq!(find(&found, "data:SparesMissing:/nowhere/spare")["level"], "warning");
    // One for the array, not one for each of its members.
    let problem = find(&found, "gone:StartProblem");
    assert!(problem["text"].as_str().expect("text").contains("none of its 2 members could be opened: "), "{problem:#}");
    assert!(ids(&found).iter().all(|id| !id.ends_with("/g0") && !id.ends_with("/g1")), "{found:#?}");
    // A file that is refused is an alarm until it is read.
    let good = fs::read_to_string(lab.path("openraid.toml")).expect("the file");
    fs::write(lab.path("openraid.toml"), "[serve]\n").expect("room");
    lab.line(&format!("reload {options}")).expect(65);
    find(&alarms(&lab, &options), "server:ConfigurationRefused");
    fs::write(lab.path("openraid.toml"), good).expect("room");
    lab.line(&format!("reload {options}")).expect(0);
    assert!(!ids(&alarms(&lab, &options)).contains(&"server:ConfigurationRefused"));
    server.kill();
    // The next server with this name takes the alarms over. An alarm whose fault is gone ends.
    lab.line("forget gone").expect(0);
    let server = serve();
    let found = alarms(&lab, &options);
    assert!(ids(&found).iter().all(|id| !id.starts_with("gone:")), "{found:#?}");
    assert_eq!(ids(&alarms(&lab, &format!("{options} --array data --level critical"))), ["data:DegradedArray"]);
    server.stop();
}

#[test]
fn an_event_and_the_alarm_of_a_lost_member_have_the_same_level() {
    let lab = Lab::new("levels");
    lab.line("create data --level 6 --assume-clean --file-size 16M d0 d1 d2 d3 --spare s0").expect(0);
    let server = lab.serve(&["data"]);
    let event = |name: &str, count: usize| loop {
        let answer = lab.line("events --json").expect(0).json();
        let all = answer["events"].as_array().expect("a list").clone();
        let fresh: Vec<Value> = all.into_iter().filter(|event| event["event"] == name).collect();
        if fresh.len() >= count {
            return fresh[count - 1].clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    lab.line("fail data s0").expect(0);
    let spare = format!("data:FailSpare:{}", lab.path("s0").display());
    assert_eq!(
        (&find(&alarms(&lab, ""), &spare)["level"], &event("FailSpare", 1)["level"]),
        (&"warning".into(), &"warning".into())
    );
    for (nth, level) in [(1, "warning"), (2, "critical")] {
        lab.line(&format!("fail data d{nth}")).expect(0);
        let found = alarms(&lab, "");
        let fail = format!("data:Fail:{}", lab.path(&format!("d{nth}")).display());
        for (id, name, level) in [("data:DegradedArray", "DegradedArray", level), (&fail, "Fail", "critical")] {
            assert_eq!(
                (&find(&found, id)["level"], &event(name, nth)["level"]),
                (&level.into(), &level.into()),
                "{id}"
            );
        }
    }
    server.stop();
}

#[test]
fn recorded_arrays_are_listed_and_assembled_where_the_named_server_does_not_answer() {
    let lab = array("dead");
    let gone = format!("--control {}", lab.path("gone.sock").display());
    let listed = lab.line(&format!("list {gone}")).expect(0).says(&["data", "offline"]);
    assert!(listed.err.contains("no server answers at") && listed.err.contains("gone.sock"), "{}", listed.err);
    lab.line("forget data").expect(0);
    let assembled = lab.line(&format!("assemble d0 d1 d2 {gone}")).expect(0).says(&["serve with: openraid serve data"]);
    assert!(assembled.err.contains("no server answers at"), "{}", assembled.err);
    lab.line("list").expect(0).says(&["data", "offline"]);
}

#[test]
fn a_forced_start_is_an_alarm_until_it_is_acknowledged() {
    let lab = array("forced-alarm");
    let server = lab.serve(&["data"]);
    lab.line("fail data d0").expect(0);
    support::kill_under_writes(&lab, server);
    let server = lab.serve(&["data", "--force"]);
    let forced = find(&alarms(&lab, ""), "data:ForcedStart");
    assert_eq!((&forced["level"], &forced["until_acknowledged"]), (&"critical".into(), &true.into()));
    assert_eq!(forced["next_step"], "openraid alarms acknowledge data:ForcedStart");
    server.stop();
    let server = lab.serve(&["data"]);
    assert_eq!(find(&alarms(&lab, ""), "data:ForcedStart"), forced, "this start was not forced");
    lab.line("alarms acknowledge data").expect(0);
    assert!(!ids(&alarms(&lab, "")).contains(&"data:ForcedStart"));
    // Stopped by order: nothing is wrong here any more.
    lab.line("stop data").expect(0);
    assert_eq!(server.end().0, 0);
    assert_eq!(alarms(&lab, ""), [Value::Null; 0]);
    assert!(ids(&alarms(&lab, "--ended")).contains(&"data:DegradedArray"));
}

#[test]
fn an_expired_certificate_and_a_spare_for_no_array_are_alarms_from_the_start() {
    let lab = Lab::new("alarms-certificate");
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    (parameters.not_before, parameters.not_after) =
        (rcgen::date_time_ymd(1999, 1, 1), rcgen::date_time_ymd(2001, 2, 3));
    let key = rcgen::KeyPair::generate().expect("a key");
    fs::write(lab.path("own.pem"), parameters.self_signed(&key).expect("a certificate").pem()).expect("room");
    fs::write(lab.path("own.key"), key.serialize_pem()).expect("room");
    lab.configure(
        "[management]\nlisten = \"127.0.0.1:0\"\ncertificate = \"@/own.pem\"\nkey = \"@/own.key\"\n[arrays.data]\n\
         [[spares]]\nmember = \"@/s0\"\nfor = \"date\"\n[schedules.weekly]\ntask = \"check\"\nevery = \"7d\"\n\
         arrays = [\"data\"]\n",
    );
    let server = lab.serve_configured();
    let alarms = lab.line("alarms --json").expect(0).json()["alarms"].clone();
    let alarm = |event: &str| {
        let found = alarms.as_array().expect("a list").iter().find(|alarm| alarm["event"] == event);
        found.unwrap_or_else(|| panic!("{event} is not in {alarms}")).clone()
    };
    let expired = alarm("CertificateExpires");
    assert_eq!((&expired["level"], &expired["member"]), (&"critical".into(), &lab.path("own.pem").to_str().into()));
    assert!(expired["text"].as_str().expect("text").contains("expired on 2001-02-03"), "{expired}");
    let spare = alarm("SparesMissing");
    assert!(spare["text"].as_str().expect("text").contains("is for date, and no array has this name"), "{spare}");
    // A file that says the old name is told line by line.
    let renamed = lab.line("rename data fresh").expect(0);
    renamed
        .says(&["line 7 of the configuration file still says data; write fresh, or the array's UUID,", "line 11 of"]);
    server.stop();
}

#[test]
fn a_log_and_alarms_of_which_nothing_can_be_read_are_told_once_and_new_ones_are_kept() {
    let lab = array("damaged-stores");
    lab.serve(&["data"]).stop();
    let alarms = lab.path("state/openraid/registry.json.alarms");
    let folder = fs::read_dir(lab.path("state/openraid/registry.json.events")).expect("the log");
    let logs = folder
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    for path in logs.chain([alarms]) {
        assert!(fs::metadata(&path).expect("a file").len() > 100_000, "{}", path.display());
        fs::write(path, support::noise(7, 3000)).expect("room");
    }
    let texts = |event: &str| {
        let answer = lab.line("events --json").expect(0).json();
        let all = answer["events"].as_array().expect("a list").clone();
        all.iter().filter(|alarm| alarm["event"] == event).map(|alarm| alarm["text"].to_string()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        lab.serve(&["data"]).stop();
        let (lost, problem) = (texts("EventsLost"), texts("StartProblem"));
        assert!(lost.len() == 1 && lost[0].contains("1 file of the event log cannot be read"), "{lost:?}");
        assert!(problem.len() == 1 && problem[0].contains("the stored alarms cannot be read"), "{problem:?}");
    }
}
