//! Care for drives: their health by smartctl, reads of idle ones, lights; and the messages if the programs are not there.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::load::Load;
use crate::support::web::Web;
use crate::support::Lab;
use serde_json::{json, Value};

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 --spare s0").expect(0);
    lab
}

fn script(lab: &Lab, name: &str, text: &str) {
    let path = lab.path(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// What the drive of a member will say.
fn say(lab: &Lab, member: &str, health: &Value) {
    let path = lab.path(&format!("{member}.health"));
    fs::write(path.with_extension("new"), health.to_string()).expect("room");
    fs::rename(path.with_extension("new"), path).expect("the same folder");
}

fn health(passed: bool, pending: u64, used: u64) -> Value {
    json!({
        "smartctl": {"exit_status": 0}, "model_name": "Disk 1", "serial_number": "S1", "smart_status": {"passed": passed},
        "ata_smart_attributes": {"table": [{"id": 197, "name": "Current_Pending_Sector", "raw": {"value": pending}}]},
        "endurance_used": {"current_percent": used}, "temperature": {"current": 33}, "power_on_time": {"hours": 5}
    })
}

/// Wait until the array has this alarm for this member; its text.
fn alarm(lab: &Lab, event: &str, member: &str) -> String {
    let path = lab.path(member).display().to_string();
    let is_it = |alarm: &&Value| alarm["event"] == event && alarm["member"] == path.as_str();
    let find = |array: &Value| array["alarms"].as_array().expect("a list").iter().find(is_it).cloned();
    let found = find(&lab.wait_for("data", |array| find(array).is_some())).expect("just seen");
    found["text"].as_str().expect("a text").to_owned()
}

fn wait_for_end(lab: &Lab, event: &str) {
    lab.wait_for("data", |array| !array["alarms"].to_string().contains(event));
}

#[test]
fn the_health_that_drives_report_is_shown_and_raises_alarms() {
    let lab = array("health");
    // As smartctl is called: --json --all --nocheck=standby DEVICE.
    script(&lab, "smartctl", "[ \"$1 $2 $3\" = '--json --all --nocheck=standby' ] && cat \"$4.health\"");
    for member in ["d0", "d2", "s0"] {
        say(&lab, member, &json!({"smart_status": {"passed": true}, "serial_number": member}));
    }
    say(&lab, "d1", &health(true, 2, 10));
    lab.configure("[care]\nsmartctl = \"@/smartctl\"\nsmart = \"1s\"\n");
    let server = lab.serve_configured();
    let shown = lab.wait_for("data", |array| array["members"][1]["smart"]["passed"] == true);
    let smart = &shown["members"][1]["smart"];
    assert_eq!((&smart["temperature_celsius"], &smart["pending_sectors"]), (&33.into(), &2.into()));
    assert_eq!(shown["alarms"], json!([]), "pending sectors that were there at first are no news");
    lab.line("show data").expect(0).says(&["/d1: passed, 33 C, 5 h, 10 % worn, 2 pending"]);
    say(&lab, "d1", &health(true, 3, 92));
    assert!(alarm(&lab, "DriveErrorsGrow", "d1").contains("3 pending sectors, 2 when first seen"));
    assert!(alarm(&lab, "DriveWorn", "d1").contains("92 % of its rated writes"));
    say(&lab, "d1", &health(false, 2, 10));
    assert!(alarm(&lab, "DrivePredictiveFailure", "d1").contains("failing"));
    wait_for_end(&lab, "DriveWorn");
    // Invalid answers, and a drive that cannot be asked, are reported and have no other effect.
    fs::write(lab.path("d0.health"), "smartctl 6.6 2017\n").expect("room");
    assert!(alarm(&lab, "HealthUnknown", "d0").contains("smartctl printed no JSON"));
    fs::remove_file(lab.path("d2.health")).expect("it is there");
    assert!(alarm(&lab, "HealthUnknown", "d2").contains("exit status: 1"));
    assert_eq!(lab.show("data")["health"], "optimal");
    server.kill();
    // The first state is remembered.
    say(&lab, "d1", &health(true, 7, 10));
    let server = lab.serve_configured();
    assert!(alarm(&lab, "DriveErrorsGrow", "d1").contains("7 pending sectors, 2 when first seen"));
    server.stop();
}

#[test]
fn a_drive_that_was_away_is_asked_for_its_health_when_it_is_back() {
    let lab = array("health-back");
    script(&lab, "smartctl", "cat \"$4.health\"");
    lab.configure("[care]\nsmartctl = \"@/smartctl\"\nsmart = \"30m\"\n");
    let server = lab.serve_configured();
    assert!(alarm(&lab, "HealthUnknown", "d1").contains("exit status: 1"));
    ["d0", "d1", "d2", "s0"].into_iter().for_each(|member| say(&lab, member, &health(true, 0, 10)));
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    lab.line("remove data d1").expect(0);
    lab.line("add data d1 --yes").expect(0);
    let d1 = lab.path("d1").display().to_string();
    lab.wait_for("data", |array| {
        let members = array["members"].as_array().expect("a list");
        members.iter().any(|member| member["member"] == d1.as_str() && member["smart"]["passed"] == true)
    });
    let alarms = lab.show("data")["alarms"].to_string();
    assert!(
        !alarms.contains(&d1) && alarms.contains("HealthUnknown"),
        "the others are asked in half an hour: {alarms}"
    );
    server.stop();
}

#[test]
fn a_dead_spare_is_known_before_it_is_needed_and_lights_follow() {
    let lab = array("idle");
    script(&lab, "led", "echo \"$@\" >> \"$(dirname \"$0\")/lights\"");
    let listen = "[management]\nlisten = \"127.0.0.1:0\"\n";
    lab.configure(&format!("{listen}[care]\nidle-probe = \"1s\"\nsmartctl = \"/nowhere/smartctl\"\nled = \"@/led\"\n"));
    let mut server = lab.serve_configured();
    assert!(alarm(&lab, "HealthUnknown", "d0").contains("/nowhere/smartctl cannot be started"));
    lab.line("alarms").says(&["next step  smartctl --all "]);
    assert_eq!(lab.show("data")["health"], "optimal");
    fs::rename(lab.path("s0"), lab.path("s0.away")).expect("it is there");
    let text = alarm(&lab, "DriveSilent", "s0");
    assert!(text.contains("it is idle, and cannot be read"), "{text}");
    server.wait_for_news("DriveSilent", 1);
    fs::rename(lab.path("s0.away"), lab.path("s0")).expect("it is there");
    server.wait_for_news("DriveAnswers", 1);
    wait_for_end(&lab, "DriveSilent");
    lab.line("locate data slot:1").expect(0).says(&["the light of ", "/d1 --off` ends it"]);
    lab.line("locate data d1 --off").expect(0).says(&["/d1 is off"]);
    lab.line("locate data slot:9").refused(65, &["slot:9"]);
    let drive = lab.path("d1").display().to_string();
    let lights = fs::read_to_string(lab.path("lights")).expect("called");
    assert_eq!(lights, format!("locate {drive} data 1\nlocate_off {drive} data 1\n"));
    // The same over HTTP.
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let light = |web: &Web, body: Value| web.post("/api/v1/arrays/data/locate", &body.to_string());
    let done = light(&web, json!({"member": "slot:2"})).expect(200).json();
    assert!(done["text"].as_str().is_some_and(|text| text.contains("d2 is on")), "{done}");
    light(&web, json!({"member": "slot:2", "off": true})).expect(200);
    light(&web, json!({"member": "slot:9"})).refused(409, &["slot:9"]);
    light(&web, json!({"member": "slot:2", "on": true})).refused(400, &["unknown field `on`"]);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    light(&web, json!({"member": "slot:2"})).refused(403, &["Operator"]);
    let other = lab.path("d2").display().to_string();
    let lights = fs::read_to_string(lab.path("lights")).expect("called").split_off(lights.len());
    assert_eq!(lights, format!("locate {other} data 2\nlocate_off {other} data 2\n"));
    lab.line("fail data d1").expect(0);
    let wanted = format!("failure {} data 1", lab.path("d1").display());
    lab.wait_for("data", |_| fs::read_to_string(lab.path("lights")).is_ok_and(|text| text.contains(&wanted)));
    // A failed program, and none.
    script(&lab, "led", "exit 3");
    lab.line("locate data d0").refused(74, &["the light of", "/led ended with exit status: 3"]);
    lab.wait_for("data", |array| array["health"] == "optimal");
    lab.line("fail data d0").expect(0);
    server.wait_for_news("LightFailed", 1);
    lab.configure(&format!("{listen}[care]\nsmart = \"never\"\n"));
    lab.line("reload").expect(0);
    lab.line("locate data d0").refused(65, &["no program switches the lights of drives", "led = "]);
    server.stop();
}

#[test]
fn mistakes_in_the_table_are_named() {
    let lab = Lab::new("bad-care");
    lab.configure("[care]\nsmart = \"often\"\nled = \"led\"\nidle-probes = \"10m\"\nidle-probe = \"0s\"\n");
    lab.line("config check openraid.toml").refused(
        65,
        &[
            "line 4: care.smart: \"often\" is not an interval between two looks; write seconds to days, as in 30s, \
             10m, 1h, 7d, or never",
            "line 5: care.led: \"led\" is not an absolute path",
            "line 6: care.idle-probes: unknown key; did you mean idle-probe?",
            "line 7: care.idle-probe: \"0s\" is not an interval between two looks",
        ],
    );
}

/// A server of a file, each request of which takes this many milliseconds longer.
fn delayed(lab: &Lab, millis: u32) -> Option<Child> {
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.current_dir(lab.path(".")).args(["-f", "-U", "r0.sock", "--filter=delay", "file", "r0"]);
    let child = nbdkit.arg(format!("delay-read={millis}ms")).arg(format!("delay-write={millis}ms")).spawn().ok()?;
    let until = Instant::now() + Duration::from_secs(10);
    while !lab.path("r0.sock").exists() {
        assert!(Instant::now() < until, "nbdkit makes no socket");
        thread::sleep(Duration::from_millis(10));
    }
    Some(child)
}

#[test]
#[ignore = "some twenty seconds of load"]
fn a_slow_member_is_an_alarm_through_a_silence_until_it_is_as_fast_as_the_others() {
    let lab = Lab::new("slow-member");
    for name in ["d0", "d1", "d2", "r0"] {
        fs::File::create(lab.path(name)).and_then(|file| file.set_len(32 << 20)).expect("room");
    }
    let Some(mut remote) = delayed(&lab, 25) else { return support::missing("nbdkit is not installed") };
    let member = format!("nbd+unix:///?socket={}", lab.path("r0.sock").display());
    lab.run(&["create", "data", "--level", "5", "--chunk", "64K", "--assume-clean", "d0", "d1", "d2", &member])
        .expect(0);
    lab.configure("[care]\nsmart = \"never\"\nslow-window = \"1s\"\n");
    let server = lab.serve_configured();
    let begin = || Load::start(&lab.path("nbd.sock"), "data", 64 << 20);
    let load = begin();
    let slow = |array: &Value| {
        let alarms = array["alarms"].as_array().expect("a list").clone();
        let text = |alarm: &Value| alarm["text"].as_str().expect("a text").to_owned();
        let found: Vec<(Value, String)> = alarms
            .iter()
            .filter(|alarm| alarm["event"] == "DriveSlow")
            .map(|alarm| (alarm["member"].clone(), text(alarm)))
            .collect();
        found
    };
    let found = slow(&lab.wait_for("data", |array| !slow(array).is_empty()));
    assert_eq!((found.len(), &found[0].0), (1, &Value::from(member)));
    assert!(found[0].1.contains("it is slow: a command takes ") && found[0].1.contains("with most other members"));
    load.stop();
    // Without commands nothing is known: it stays.
    thread::sleep(Duration::from_secs(4));
    assert_eq!(slow(&lab.show("data")).len(), 1);
    remote.kill().and_then(|()| remote.wait()).expect("ours");
    fs::remove_file(lab.path("r0.sock")).expect("a socket");
    let mut remote = delayed(&lab, 0).expect("nbdkit");
    let load = begin();
    lab.wait_for("data", |array| slow(array).is_empty());
    load.stop();
    lab.line("alarms --ended").says(&["DriveSlow"]);
    server.stop();
    let _ = remote.kill().and_then(|()| remote.wait());
}
