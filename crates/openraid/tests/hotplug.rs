//! Drives that appear while a server runs: members that vanished come back by themselves, others stay out with an alarm.

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use support::guest::{is_inside, rerun, tool, Loop, Small};
use support::Lab;

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --bitmap internal --file-size 16M d0 d1 d2").expect(0);
    lab
}

fn away(lab: &Lab, names: &[&str]) {
    names.iter().for_each(|name| fs::rename(lab.path(name), lab.path(&format!("{name}.away"))).expect("it is there"));
}

fn back(lab: &Lab, names: &[&str]) {
    names
        .iter()
        .for_each(|name| fs::rename(lab.path(&format!("{name}.away")), lab.path(name)).expect("it was put away"));
}

/// The alarm that a member stays out, when there is one.
fn staying_out(lab: &Lab) -> Value {
    lab.wait_for("data", |array| {
        array["alarms"].as_array().is_some_and(|all| all.iter().any(|alarm| alarm["event"] == "MemberStaysOut"))
    })["alarms"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|alarm| alarm["event"] == "MemberStaysOut")
        .expect("just seen")
        .clone()
}

#[test]
fn a_file_that_is_deleted_or_replaced_while_it_is_served_is_an_alarm_until_it_is_back() {
    let lab = array("displaced");
    lab.line("journal create --size 16M j0").expect(0);
    let server = lab.serve(&["data", "--journal", "j0"]);
    let open = || {
        let all = lab.line("alarms --json").json()["alarms"].clone();
        let all = all.as_array().expect("a list").clone().into_iter();
        all.filter(|alarm| alarm["event"] == "MemberDisplaced" && alarm["until_seconds"].is_null()).collect::<Vec<_>>()
    };
    let wait = |count: usize, words: &str| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let all = open();
            if all.len() == count
                && all.iter().all(|alarm| alarm["text"].as_str().is_some_and(|text| text.contains(words)))
            {
                return all;
            }
            assert!(std::time::Instant::now() < until, "not {count} of {words}: {all:#?}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    away(&lab, &["d1"]);
    let alarm =
        wait(1, "nothing is at its path any more: its data lives only while the server runs: copy it out").remove(0);
    let next = alarm["next_step"].as_str().expect("a command");
    assert!(next.starts_with("openraid replace data drive:") && next.ends_with(" --with DRIVE"), "{next}");
    fs::copy(lab.path("d1.away"), lab.path("d1")).expect("room");
    wait(1, "another file or device is at its path");
    fs::remove_file(lab.path("d1")).and_then(|()| fs::create_dir(lab.path("d1"))).expect("room");
    wait(1, "a directory is at its path");
    fs::remove_dir(lab.path("d1")).and_then(|()| symlink(lab.path("d2"), lab.path("d1"))).expect("a link");
    wait(1, "another file or device is at its path");
    fs::remove_file(lab.path("d1")).expect("it is there");
    back(&lab, &["d1"]);
    wait(0, "");
    away(&lab, &["j0"]);
    let alarm = wait(1, "the journal device").remove(0);
    assert_eq!(alarm["next_step"], "openraid journal attach DEVICE");
    back(&lab, &["j0"]);
    wait(0, "");
    // What the alarm says helps: the copy is at a path that lasts.
    away(&lab, &["d1"]);
    let alarm = wait(1, "nothing is at its path").remove(0);
    let next = alarm["next_step"].as_str().expect("a command").replace("DRIVE", "d3").replacen("openraid ", "", 1);
    lab.drives(&["d3"], 16);
    lab.line(&next).expect(0);
    lab.wait_for("data", |array| {
        array["task"].is_null() && array["members"][1]["member"].as_str().is_some_and(|path| path.ends_with("d3"))
    });
    wait(0, "");
    server.stop();
}

#[test]
fn an_array_whose_files_are_deleted_is_not_stopped_without_a_consent_and_the_loss_is_an_event() {
    let lab = array("deleted");
    let mut server = lab.serve(&["data"]);
    away(&lab, &["d0"]);
    fs::remove_file(lab.path("d1")).expect("it is there");
    lab.drives(&["d1"], 16);
    let path = |name: &str| lab.path(name).display().to_string();
    let words = [
        format!(
            "data: {}: nothing is at its path any more, {}: another file or device is at its path",
            path("d0"),
            path("d1")
        ),
        "The data lives only while the server runs: copy it out first, as by `openraid replace data drive:".into(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    lab.line("stop data").refused(65, &[&words[..], &["`openraid stop data --yes`"]].concat());
    lab.line("stop --all").refused(65, &[&words[..], &["`openraid stop --all --yes`"]].concat());
    assert_eq!(lab.show("data")["health"], "optimal", "it is served on");
    server.wait_for_news("MemberDisplaced", 2);
    for name in ["d0", "d1"] {
        let of = |text: &&String| text.starts_with("\"MemberDisplaced\"") && text.contains(&path(name));
        lab.wait_for_events(|texts| texts.iter().filter(of).count() == 1);
    }
    // A device or file that is back, and one that failed, are no loss.
    back(&lab, &["d0"]);
    lab.line("fail data drive:1").expect(0);
    lab.line("stop data").expect(0);
    server.end();
}

/// Wait until these open alarms name things that are not at their paths, and no others.
#[track_caller]
fn displaced(lab: &Lab, wanted: &[(&str, &str)]) -> Vec<Value> {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let all = lab.line("alarms --json").json()["alarms"].clone();
        let all = all.as_array().expect("a list").clone().into_iter();
        let open: Vec<Value> =
            all.filter(|alarm| alarm["event"] == "MemberDisplaced" && alarm["until_seconds"].is_null()).collect();
        let has = |(level, words): &(&str, &str)| {
            open.iter().any(|alarm| {
                alarm["level"] == *level && alarm["text"].as_str().is_some_and(|text| text.contains(words))
            })
        };
        if open.len() == wanted.len() && wanted.iter().all(has) {
            return open;
        }
        assert!(std::time::Instant::now() < until, "not {wanted:?}: {open:#?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn a_node_a_spare_and_a_file_system_that_are_gone_from_their_paths_are_alarms() {
    const TEST: &str = "a_node_a_spare_and_a_file_system_that_are_gone_from_their_paths_are_alarms";
    if !is_inside() {
        return rerun(TEST, "a node has to be made, and a file system unmounted");
    }
    let lab = Lab::new("nodes");
    fs::create_dir(lab.path("small")).expect("room");
    let small = lab.path("small");
    let Some(_small) = Small::mount(&small, "40M", TEST) else { return };
    lab.drives(&["a", "b", "small/d1", "d2", "s"], 16);
    let loops = ["a", "b"].map(|name| Loop::over(&lab.path(name)));
    let minor = |device: &Loop| device.0.trim_start_matches("/dev/loop").to_owned();
    let node = lab.path("node").display().to_string();
    tool(&format!("mknod {node} b 7 {}", minor(&loops[0])));
    lab.line("create data --level 5 --chunk 64K --assume-clean node small/d1 d2 --spare s").expect(0);
    let server = lab.serve(&["data"]);
    displaced(&lab, &[]);
    // The node of a device is deleted, leads to another device, and is made again.
    let later = "the device is still used, but the next start does not find it there: make its node again";
    fs::remove_file(&node).expect("it is there");
    displaced(&lab, &[("critical", &format!("data: slot 0 ({node}): nothing is at its path any more: {later}"))]);
    tool(&format!("mknod {node} b 7 {}", minor(&loops[1])));
    displaced(&lab, &[("critical", &format!("another file or device is at its path: {later}"))]);
    fs::remove_file(&node).expect("it is there");
    tool(&format!("mknod {node} b 7 {}", minor(&loops[0])));
    displaced(&lab, &[]);
    // The file of a spare is deleted, and replaced.
    let spare = format!("data: the spare {}: ", lab.path("s").display());
    away(&lab, &["s"]);
    displaced(&lab, &[("warning", &format!("{spare}nothing is at its path any more"))]);
    lab.drives(&["s"], 16);
    let alarm = displaced(&lab, &[("warning", &format!("{spare}another file or device is at its path"))]).remove(0);
    let next = alarm["next_step"].as_str().expect("a command").replacen("openraid ", "", 1);
    lab.line(&next).expect(0);
    displaced(&lab, &[]);
    // A file system that is unmounted lazily stays with the files that are open.
    tool(&format!("umount -l {}", lab.path("small").display()));
    let lost = "nothing is at its path any more: its data lives only while the server runs: copy it out";
    displaced(&lab, &[("critical", &format!("data: slot 1 ({}): {lost}", lab.path("small/d1").display()))]);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn a_member_that_was_absent_comes_back_by_itself_with_what_it_missed() {
    let lab = array("absent");
    away(&lab, &["d1"]);
    lab.configure("");
    let mut server = lab.serve_configured();
    assert_eq!(lab.show("data")["health"], "degraded");
    support::write_some(&lab, &server);
    back(&lab, &["d1"]);
    server.wait_for_news("MemberReturned", 1);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    lab.line("check data --follow").expect(0);
    assert_eq!(lab.show("data")["members"][1]["member"], lab.path("d1").display().to_string());
    server.stop();
    // It is a member like the others at the next start.
    let server = lab.serve_configured();
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn a_member_that_an_order_failed_stays_out_until_an_order_adds_it() {
    let lab = array("by-order");
    lab.configure("");
    let mut server = lab.serve_configured();
    lab.line("fail data d1").expect(0);
    server.wait_for_news("Fail", 1);
    support::write_some(&lab, &server);
    server.stop();
    let server = lab.serve_configured();
    let alarm = staying_out(&lab);
    let d1 = lab.path("d1").display().to_string();
    assert_eq!(
        alarm["text"],
        format!("data: the former member {d1} has returned, and stays out: it was failed by a command")
    );
    assert_eq!(alarm["next_step"], format!("openraid add data {d1}"));
    assert_eq!(lab.show("data")["health"], "degraded");
    lab.line("add data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["alarms"] == Value::Array(Vec::new()));
    assert!(server.stop().iter().all(|line| line["news"]["event"] != "MemberReturned"));
}

#[test]
fn a_member_that_was_removed_while_it_was_away_stays_out_until_an_order_adds_it() {
    let lab = array("removed-away");
    away(&lab, &["d1"]);
    lab.configure("");
    let server = lab.serve_configured();
    assert_eq!(lab.show("data")["health"], "degraded");
    lab.line("remove data d1").expect(0).says(&["d1 stays out of data when it comes back", "`openraid add data "]);
    back(&lab, &["d1"]);
    // The search comes every two seconds.
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_secs(1));
        let shown = lab.show("data");
        assert_eq!(shown["health"], "degraded");
        assert!(!shown["alarms"].to_string().contains("MemberStaysOut"), "{shown:#}");
    }
    server.stop();
    // Another start does not take it in either.
    let server = lab.serve_configured();
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(lab.show("data")["health"], "degraded");
    lab.line("add data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    server.stop();
}

#[test]
fn the_setting_and_a_strange_drive_keep_a_member_out() {
    let lab = array("never");
    away(&lab, &["d1"]);
    lab.configure("[arrays.data.settings]\nmembers.readd = \"never\"\n");
    let mut server = lab.serve_configured();
    assert_eq!(lab.show("data")["settings"]["members_readd"], "never");
    support::write_some(&lab, &server);
    back(&lab, &["d1"]);
    let text = staying_out(&lab)["text"].to_string();
    assert!(text.contains("stays out: members.readd=never"), "{text}");
    away(&lab, &["d1"]);
    lab.wait_for("data", |array| !array["alarms"].to_string().contains("MemberStaysOut"));
    // A blank drive in its place is not touched.
    lab.drives(&["d1"], 16);
    let before = lab.fingerprints(&["d1"]);
    lab.line("set data members.readd=auto")
        .expect(0)
        .says(&["members.readd=auto", "which holds again after a restart"]);
    lab.wait_for("data", |array| array["alarms"].to_string().contains("another drive is in its place"));
    assert_eq!(lab.fingerprints(&["d1"]), before);
    fs::remove_file(lab.path("d1")).expect("it is there");
    lab.wait_for("data", |array| !array["alarms"].to_string().contains("MemberStaysOut"));
    back(&lab, &["d1"]);
    server.wait_for_news("MemberReturned", 1);
    lab.wait_for("data", |array| array["health"] == "optimal");
    lab.line("set data members.readd=maybe").refused(64, &["members.readd=maybe: use auto or never"]);
    server.stop();
}

#[test]
fn arrays_and_spares_that_appear_are_taken_in() {
    let lab = array("appear");
    away(&lab, &["d0", "d1", "d2"]);
    lab.configure("[[spares]]\nmember = \"@/own\"\nfor = \"data\"\n");
    let mut server = lab.serve_configured();
    lab.line("list").expect(2).says(&["data", "OFFLINE"]);
    // Two of three would start it degraded, after a time in which the third one comes.
    back(&lab, &["d0", "d1"]);
    back(&lab, &["d2"]);
    server.wait_for_news("NewArray", 1);
    assert_eq!(lab.show("data")["health"], "optimal");
    lab.drives(&["own"], 16);
    lab.wait_for("data", |array| array["members"].to_string().contains("/own"));
    server.stop();
}

#[test]
fn an_offline_array_starts_degraded_when_enough_members_are_back_and_its_reasons_end() {
    let lab = array("enough");
    away(&lab, &["d0", "d1", "d2"]);
    lab.configure("");
    let mut server = lab.serve_configured();
    let alarms = || {
        let all = lab.line("alarms --json").json()["alarms"].clone();
        let open = |alarm: &&Value| alarm["until_seconds"].is_null();
        all.as_array().expect("a list").iter().filter(open).map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(alarms().contains("none of its 3 members could be opened"), "{}", alarms());
    back(&lab, &["d0"]);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while alarms().contains("none of its 3 members") {
        assert!(std::time::Instant::now() < until, "the reason is the old one: {}", alarms());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    lab.line("list").expect(2).says(&["data", "OFFLINE"]);
    back(&lab, &["d1"]);
    server.wait_for_news("NewArray", 1);
    assert_eq!(lab.show("data")["health"], "degraded");
    back(&lab, &["d2"]);
    server.wait_for_news("MemberReturned", 1);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    assert!(!alarms().contains("StartProblem"), "{}", alarms());
    lab.line("check data --follow").expect(0);
    server.stop();
}

/// A drive that goes away while its array works fails after the time limit of commands: half a minute, so this is for a soak.
#[test]
fn a_member_that_was_gone_for_too_long_comes_back_without_a_restart() {
    if std::env::var_os("OPENRAID_SOAK").is_none() {
        return;
    }
    let far = Lab::new("gone-far");
    far.drives(&["x"], 16);
    far.line("create drive --level jbod x").expect(0);
    let drive = far.serve(&["drive"]);
    let uri = drive.uri();
    let lab = Lab::new("gone");
    lab.drives(&["y"], 16);
    lab.run(&["create", "data", "--level", "1", "--assume-clean", "--bitmap", "internal", &uri, "y"]).expect(0);
    lab.configure("");
    let mut server = lab.serve_configured();
    support::write_some(&lab, &server);
    drive.kill();
    server.wait_for_news("Fail", 1);
    let array = lab.wait_for("data", |array| array["health"] == "degraded");
    assert!(
        array["members"].to_string().contains("gone") || array["members"].to_string().contains("time"),
        "{array:#}"
    );
    support::write_some(&lab, &server);
    let drive = far.serve(&["drive"]);
    server.wait_for_news("MemberReturned", 1);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    lab.line("check data --follow").expect(0);
    server.stop();
    drive.stop();
}

/// Half of a mirror that is served alone on purpose: the other half stays as it is, however long that lasts.
#[test]
fn a_member_that_a_command_left_out_stays_out() {
    let lab = Lab::new("left-out");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    let before = fs::read(lab.path("d1")).expect("it is there");
    let server = lab.serve(&["d0"]);
    let text = |array: &Value| array["alarms"].to_string();
    let shown = lab.wait_for("data", |array| text(array).contains("MemberStaysOut"));
    assert!(text(&shown).contains("d1 has returned, and stays out"), "{shown:#}");
    server.stop();
    assert!(before == fs::read(lab.path("d1")).expect("it is there"), "nothing is written to it");
}
