//! Drives that are pulled out of a running machine, and put in again: SCSI disks of the kernel's test driver, and network block
//! devices, in a Linux guest.

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::client::Client;
use support::guest::{is_inside, rerun, tool, Disks, Loop};
use support::load::Load;
use support::web::Web;
use support::{Lab, Server, WRITE};

/// What the server prints if only its slow search finds that a drive is gone.
const BY_SEARCH: &str = "no message about it arrived";

/// A server of the configuration file, whose warnings go to a file.
fn serve(lab: &Lab) -> Server {
    let mut command = lab.command(&["serve", "--json", "--config", "openraid.toml"]);
    command.stderr(File::options().create(true).append(true).open(lab.path("warnings")).expect("room"));
    Server::started(&mut command).expect("ready")
}

fn warnings(lab: &Lab) -> String {
    fs::read_to_string(lab.path("warnings")).expect("it is there")
}

/// A RAID 5 of the first three disks, which is served.
fn array(lab: &Lab, disks: &Disks) -> Server {
    let nodes: Vec<String> = (0..3).map(|nth| disks.node(nth)).collect();
    let made = format!("create data --level 5 --chunk 64K --assume-clean --bitmap internal {}", nodes.join(" "));
    lab.line(&made).expect(0);
    lab.configure("[management]\nlisten = \"127.0.0.1:0\"\n");
    serve(lab)
}

fn wait_for_health(lab: &Lab, health: &str) -> Value {
    lab.wait_for("data", |array| array["health"] == health && array["task"].is_null())
}

/// The texts of the news with this event.
fn texts(lines: &[Value], event: &str) -> Vec<String> {
    let told = lines.iter().filter(|line| line["news"]["event"] == event);
    told.map(|line| line["news"]["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_disk_that_is_pulled_is_failed_without_a_request_and_comes_back_under_another_name() {
    const TEST: &str = "a_disk_that_is_pulled_is_failed_without_a_request_and_comes_back_under_another_name";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    let (lab, disks) = (Lab::new("pulled"), Disks::new(3));
    let mut server = array(&lab, &disks);
    // A message that a drive is gone, although it is there, is no reason to fail it.
    let name = disks.node(0).replace("/dev/", "/sys/block/");
    ["remove", "change"].iter().for_each(|word| fs::write(Path::new(&name).join("uevent"), word).expect("root"));
    for (turn, nth) in [(1, 1), (2, 1), (3, 0)] {
        let before = disks.node(nth);
        disks.pull(nth);
        server.wait_for_news("Fail", turn);
        assert_eq!(lab.show("data")["health"], "degraded", "turn {turn}");
        let node = disks.put(nth);
        assert_ne!(before, node, "the server has the old device open, so its name is not free");
        server.wait_for_news("MemberReturned", turn);
        let shown = wait_for_health(&lab, "optimal");
        assert_eq!(shown["members"][nth]["member"], node, "turn {turn}");
    }
    // Under load the same, whatever error a request meets.
    let load = Load::start(&lab.path("nbd.sock"), "data", 16 << 20);
    let before = disks.node(2);
    disks.pull(2);
    server.wait_for_news("Fail", 4);
    disks.put(2);
    server.wait_for_news("MemberReturned", 4);
    load.stop();
    wait_for_health(&lab, "optimal");
    lab.line("check data --follow").expect(0);
    let lines = server.stop();
    let failures = texts(&lines, "Fail");
    assert!(failures.iter().all(|text| text.contains("failed (it vanished)")), "{failures:?}");
    let returned = texts(&lines, "MemberReturned");
    assert!(returned[3].contains(&format!(" (it was {before}) has returned")), "{returned:?}");
    assert!(!warnings(&lab).contains(BY_SEARCH), "{}", warnings(&lab));
    // The names by which it is known now are those of the next start.
    let server = serve(&lab);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

fn wait_until_clean(lab: &Lab) {
    let until = Instant::now() + Duration::from_secs(60);
    while !lab.line("show data").text().contains("consistency  clean") {
        assert!(Instant::now() < until, "{}", lab.line("show data").text());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// One block of an array, at the first byte.
fn block(lab: &Lab, array: &str) -> Vec<u8> {
    Client::open(&lab.path("nbd.sock"), array).read_block(0).expect("it can be read")
}

#[test]
fn a_failed_array_goes_on_by_itself_when_the_disks_are_back_that_know_the_last_writes() {
    const TEST: &str = "a_failed_array_goes_on_by_itself_when_the_disks_are_back_that_know_the_last_writes";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    let (lab, disks) = (Lab::new("pulled-all"), Disks::new(3));
    let mut server = array(&lab, &disks);
    assert_eq!(Client::open(&lab.path("nbd.sock"), "data").ask(WRITE, 0, &[5; 4096]), 0);
    wait_until_clean(&lab);
    disks.pull(1);
    disks.pull(2);
    wait_for_health(&lab, "failed");
    disks.put(1);
    disks.put(2);
    server.wait_for_news("NewArray", 1);
    wait_for_health(&lab, "optimal");
    assert!(block(&lab, "data") == [5; 4096], "nothing was lost");
    lab.line("check data --follow").expect(0);
    // The second disk that is pulled has a write that the first one lacks.
    disks.pull(1);
    wait_for_health(&lab, "degraded");
    assert_eq!(Client::open(&lab.path("nbd.sock"), "data").ask(WRITE, 0, &[9; 4096]), 0);
    wait_until_clean(&lab);
    disks.pull(2);
    wait_for_health(&lab, "failed");
    let node = disks.put(1);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(lab.show("data")["health"], "failed", "the first one lacks a write");
    }
    let text = lab.line(&format!("doctor {node}")).text();
    assert!(text.contains("openraid stop data, then openraid doctor data"), "{text}");
    disks.put(2);
    server.wait_for_news("NewArray", 2);
    wait_for_health(&lab, "optimal");
    assert!(block(&lab, "data") == [9; 4096], "the last write is there");
    lab.line("check data --follow").expect(0);
    server.stop();
}

#[test]
fn disks_with_one_serial_number_are_members_of_their_own() {
    const TEST: &str = "disks_with_one_serial_number_are_members_of_their_own";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    // The adapter's number is no part of the serial number then.
    let (lab, disks) = (Lab::new("pulled-serial"), Disks::with(3, "vpd_use_hostno=0"));
    let mut server = array(&lab, &disks);
    let shown = wait_for_health(&lab, "optimal");
    let of = |shown: &Value, key: &str| -> BTreeSet<String> {
        let members = shown["members"].as_array().expect("a list").iter();
        members.map(|member| member[key].as_str().unwrap_or("none").to_owned()).collect()
    };
    let counts = ["serial", "member", "device"].map(|key| of(&shown, key).len());
    assert_eq!(counts, [1, 3, 3], "{shown:#}");
    let drives = lab.line("list --json").expect(0).json()["served"][0].clone();
    assert_eq!(of(&drives, "member"), of(&shown, "member"));
    // In Redfish each is a drive of its own, with the number that is on it.
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token").expect(0).text().trim().into());
    let storage = web.get("/redfish/v1/Systems/1/Storage/openraid").expect(200).json();
    let paths =
        storage["Drives"].as_array().expect("a list").iter().map(|link| link["@odata.id"].as_str().expect("a path"));
    let drives: Vec<Value> = paths.map(|path| web.get(path).expect(200).json()).collect();
    let of_drives = |key: &str| drives.iter().map(|drive| drive[key].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(["@odata.id", "Id"].map(|key| of_drives(key).len()), [3, 3], "{drives:#?}");
    assert_eq!(of_drives("SerialNumber"), BTreeSet::from([shown["members"][0]["serial"].to_string()]));
    // And so for the API, from which the console draws.
    let drawn = web.get("/api/v1/arrays").expect(200).json()["arrays"][0].clone();
    assert_eq!(of(&drawn, "member"), of(&shown, "member"));
    let device = shown["members"][1]["device"].clone();
    disks.pull(1);
    server.wait_for_news("Fail", 1);
    let left = lab.show("data");
    let in_sync = left["members"].as_array().expect("a list").iter().filter(|member| member["state"] == "in-sync");
    assert_eq!(in_sync.map(|member| member["slot"].clone()).collect::<Vec<_>>(), [0, 2], "{left:#}");
    let node = disks.put(1);
    server.wait_for_news("MemberReturned", 1);
    let back = wait_for_health(&lab, "optimal")["members"][1].clone();
    assert_eq!((&back["member"], &back["device"]), (&node.into(), &device));
    server.stop();
}

/// Fill the queue of the server's messages, which it does not read now, until the kernel drops some.
fn drop_messages() {
    let dropped = || -> u64 {
        let listed = fs::read_to_string("/proc/net/netlink").expect("it is there");
        // Those about devices have the protocol 15; their loss stands in the ninth column.
        let rows = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.filter(|row| row[1] == "15").map(|row| row[8].parse::<u64>().expect("a number")).sum()
    };
    let before = dropped();
    let until = Instant::now() + Duration::from_secs(120);
    while dropped() == before {
        assert!(Instant::now() < until, "the queue has room for everything");
        (0..500).for_each(|_| fs::write("/sys/class/mem/null/uevent", "change").expect("root"));
    }
}

#[test]
fn messages_about_disks_may_be_lost_and_doubled() {
    const TEST: &str = "messages_about_disks_may_be_lost_and_doubled";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    let (lab, disks) = (Lab::new("pulled-unheard"), Disks::new(3));
    let mut server = array(&lab, &disks);
    server.signal("-STOP");
    drop_messages();
    disks.pull(1);
    server.signal("-CONT");
    server.wait_for_news("Fail", 1);
    assert_eq!(lab.show("data")["health"], "degraded");
    server.signal("-STOP");
    drop_messages();
    let node = disks.put(1);
    server.signal("-CONT");
    server.wait_for_news("MemberReturned", 1);
    assert_eq!(wait_for_health(&lab, "optimal")["members"][1]["member"], node);
    for word in ["add", "add", "change", "remove", "remove", "add"].repeat(20) {
        for nth in 0..3 {
            let name = disks.node(nth).replace("/dev/", "/sys/block/");
            fs::write(Path::new(&name).join("uevent"), word).expect("root");
        }
    }
    lab.line("check data --follow").expect(0);
    wait_for_health(&lab, "optimal");
    let lines = server.stop();
    assert_eq!(["Fail", "MemberReturned"].map(|event| texts(&lines, event).len()), [1, 1], "{lines:#?}");
    assert!(!warnings(&lab).contains(BY_SEARCH), "{}", warnings(&lab));
}

#[test]
fn a_spare_and_a_journal_that_are_pulled_are_noticed_and_a_spare_takes_over() {
    const TEST: &str = "a_spare_and_a_journal_that_are_pulled_are_noticed_and_a_spare_takes_over";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    let (lab, disks) = (Lab::new("pulled-spares"), Disks::new(6));
    let journal = disks.node(5);
    lab.line(&format!("journal create {journal}")).expect(0);
    lab.configure(&format!("journal = [{journal:?}]\n"));
    let nodes: Vec<String> = (0..3).map(|nth| disks.node(nth)).collect();
    let spares = [disks.node(3), disks.node(4)];
    let made = format!(
        "create data --level 5 --chunk 64K --assume-clean {} --spare {} --spare {}",
        nodes.join(" "),
        spares[0],
        spares[1]
    );
    lab.line(&made).expect(0);
    let mut server = serve(&lab);
    disks.pull(5);
    server.wait_for_news("JournalLost", 1);
    disks.pull(3);
    server.wait_for_news("FailSpare", 1);
    assert_eq!(lab.show("data")["health"], "optimal");
    disks.pull(0);
    server.wait_for_news("Fail", 1);
    let shown = wait_for_health(&lab, "optimal");
    assert_eq!(shown["members"][0]["member"], spares[1]);
    // Both come back, as spares.
    let back = [disks.put(0), disks.put(3)];
    server.wait_for_news("MemberReturned", 2);
    let shown = wait_for_health(&lab, "optimal");
    let members = shown["members"].as_array().expect("a list");
    let mut found: Vec<&str> = members
        .iter()
        .filter(|member| member["state"] == "spare")
        .filter_map(|member| member["member"].as_str())
        .collect();
    found.sort_unstable();
    let mut wanted = back.each_ref().map(String::as_str);
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    server.stop();
    assert!(!warnings(&lab).contains(BY_SEARCH), "{}", warnings(&lab));
}

/// The text of the alarm that a member stays out.
fn staying_out(lab: &Lab, words: &str) -> Value {
    let is_it =
        |alarm: &Value| alarm["event"] == "MemberStaysOut" && alarm["text"].as_str().is_some_and(|t| t.contains(words));
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let all = lab.show("data")["alarms"].clone();
        if let Some(alarm) = all.as_array().expect("a list").iter().find(|alarm| is_it(alarm)) {
            return alarm.clone();
        }
        assert!(Instant::now() < until, "not {words}: {all:#}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn what_comes_instead_of_a_pulled_disk_is_not_taken_for_it() {
    const TEST: &str = "what_comes_instead_of_a_pulled_disk_is_not_taken_for_it";
    if !is_inside() {
        return rerun(TEST, "disks have to be pulled");
    }
    let (lab, disks) = (Lab::new("pulled-other"), Disks::new(4));
    // As udev does it: a name by the serial number leads to whatever disk has that number.
    let by_serial = lab.path("SER1");
    symlink(disks.node(1), &by_serial).expect("room");
    let nodes = [disks.node(0), by_serial.display().to_string(), disks.node(2)];
    let made = format!("create data --level 5 --chunk 64K --assume-clean --bitmap internal {}", nodes.join(" "));
    lab.line(&made).expect(0);
    lab.configure("");
    let mut server = serve(&lab);
    // Content of the disk for later: its first 12 of 16 MiB.
    let (small, copy) = (lab.path("small"), disks.node(1));
    tool(&format!("dd if={copy} of={} bs=1M count=12 iflag=direct status=none", small.display()));
    disks.pull(1);
    server.wait_for_news("Fail", 1);
    // Taken out by a command, it would stay out after its return: the alarm does not advise that.
    let shown = lab.wait_for("data", |array| array["alarms"].to_string().contains("failed: "));
    let mut alarms = shown["alarms"].as_array().expect("a list").iter();
    let fail = alarms.find(|alarm| alarm["event"] == "Fail").expect("it has failed");
    assert_eq!(fail["next_step"], "openraid show data");
    assert!(
        fail["text"].as_str().is_some_and(|text| text.ends_with("connect it again, or add another drive")),
        "{fail}"
    );
    // Another disk with the same serial number.
    let lead_to = |place: &str| {
        fs::remove_file(&by_serial).and_then(|()| symlink(place, &by_serial)).expect("room");
    };
    let other = disks.node(3);
    let before = fs::read(&other).expect("it is there");
    lead_to(&other);
    let alarm = staying_out(&lab, "another drive is in its place");
    assert_eq!(alarm["next_step"], format!("openraid remove data {}", by_serial.display()));
    assert!(before == fs::read(&other).expect("it is there"), "nothing is written to it");
    // The same content on less room.
    let smaller = Loop::over(&small);
    lead_to(&smaller.0);
    // As udev does when its names are made.
    let sysfs = smaller.0.replace("/dev/", "/sys/block/");
    fs::write(Path::new(&sysfs).join("uevent"), "add").expect("root");
    staying_out(&lab, "the drive is smaller than it was");
    assert_eq!(lab.show("data")["health"], "degraded");
    // The disk itself is known under any name, whatever the old one leads to.
    let node = disks.put(1);
    server.wait_for_news("MemberReturned", 1);
    assert_eq!(wait_for_health(&lab, "optimal")["members"][1]["member"], node);
    lab.line("check data --follow").expect(0);
    server.stop();
    assert!(!warnings(&lab).contains(BY_SEARCH), "{}", warnings(&lab));
}
