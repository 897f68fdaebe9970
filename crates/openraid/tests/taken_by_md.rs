//! The kernel's md driver has the members of an array when the service starts, as after a boot whose initramfs gave them to
//! md: taken back if md has changed nothing, otherwise the message says what to do.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use support::guest::{is_inside, rerun, tool, Loop};
use support::Lab;

const MD: &str = "/dev/md9";

/// What the rules of udev do at boot.
fn give_to_md(members: &[Loop]) {
    fs::write("/sys/module/md_mod/parameters/start_ro", "1").expect("root");
    let nodes: Vec<&str> = members.iter().map(|device| device.0.as_str()).collect();
    tool(&format!("mdadm --assemble {MD} {}", nodes.join(" ")));
}

fn md_state() -> String {
    fs::read_to_string("/sys/block/md9/md/array_state").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The texts of the alarms about the start that hold now.
fn alarms(lab: &Lab) -> Vec<String> {
    let all = lab.line("alarms --json").json()["alarms"].clone();
    let of_start = |event: &Value| ["StartProblem", "DeviceDisappeared"].iter().any(|kind| event == kind);
    let is_open = |alarm: &&Value| alarm["until_seconds"].is_null() && of_start(&alarm["event"]);
    let open = all.as_array().expect("a list").iter().filter(is_open);
    open.map(|alarm| alarm["text"].as_str().expect("a text").to_owned()).collect()
}

/// Wait for the array, which the service starts by itself, and for the end of the alarms of the start.
fn wait_until_served(lab: &Lab) {
    lab.wait_for("data", |array| array["health"] == "optimal" && alarms(lab).is_empty());
}

#[test]
fn members_that_md_has_are_taken_back_if_it_changed_nothing() {
    const TEST: &str = "members_that_md_has_are_taken_back_if_it_changed_nothing";
    if !is_inside() {
        return rerun(TEST, "the kernel's md has to run");
    }
    let lab = Lab::new("taken");
    lab.drives(&["a", "b", "c"], 16);
    let members = ["a", "b", "c"].map(|name| Loop::over(&lab.path(name)));
    let nodes = members.iter().map(|device| device.0.as_str()).collect::<Vec<_>>().join(" ");
    lab.line(&format!("create data --level 5 --chunk 64K --assume-clean {nodes}")).expect(0);
    lab.configure("");
    // Complete, and with a member that is not there yet.
    for lacks in [0, 1] {
        if lacks == 0 {
            give_to_md(&members);
            assert_eq!(md_state(), "read-auto");
        } else {
            tool(&format!("mdadm --incremental {}", members[0].0));
        }
        let mut server = lab.serve_configured();
        wait_until_served(&lab);
        server.wait_for_news("Recovered", 1);
        assert_eq!(md_state(), "");
        let lines = server.stop();
        let told = lines.iter().filter(|line| line["news"]["event"] == "Recovered");
        let told: Vec<&str> = told.filter_map(|line| line["news"]["text"].as_str()).collect();
        assert!(told[0].starts_with("the kernel's md had the members of array data as /dev/md"), "{told:?}");
    }
}

#[test]
fn members_that_md_wrote_or_something_uses_are_left_to_it_until_it_ends() {
    const TEST: &str = "members_that_md_wrote_or_something_uses_are_left_to_it_until_it_ends";
    if !is_inside() {
        return rerun(TEST, "the kernel's md has to run");
    }
    let lab = Lab::new("taken-used");
    lab.drives(&["a", "b", "c"], 16);
    let members = ["a", "b", "c"].map(|name| Loop::over(&lab.path(name)));
    let nodes = members.iter().map(|device| device.0.as_str()).collect::<Vec<_>>().join(" ");
    lab.line(&format!("create data --level 5 --chunk 64K --assume-clean {nodes}")).expect(0);
    lab.configure("");
    for is_written in [true, false] {
        give_to_md(&members);
        // A mount holds it open in the same way.
        let user = (!is_written).then(|| File::open(MD).expect("it runs"));
        if is_written {
            tool(&format!("dd if=/dev/urandom of={MD} bs=64k count=3 oflag=direct conv=fsync status=none"));
            assert_ne!(md_state(), "read-auto");
        }
        let server = lab.serve_configured();
        assert_ne!(lab.line("list").code, 0, "an array that is not there is an error");
        let told = alarms(&lab);
        // One alarm for the array: the fault of its members is said once.
        let starts = format!("{}: the kernel's md has it as {MD} (", nodes.replace(' ', ", "));
        let says = format!("unmount {MD}, `mdadm --stop {MD}`, then `openraid assemble ARRAY`");
        let is_own =
            |text: &&String| text.starts_with("array data: ") && text.contains(&starts) && text.contains(&says);
        assert_eq!(told.iter().filter(is_own).count(), 1, "{told:#?}");
        let doctor = lab.line("doctor data");
        assert!(doctor.text().contains(&format!("mdadm --stop {MD}")), "{doctor:?}");
        assert_ne!(md_state(), "", "it is left alone");
        drop(user);
        if is_written {
            tool(&format!("mdadm --stop {MD}"));
        }
        // The service looks again by itself, and the alarms of the start end.
        wait_until_served(&lab);
        lab.line("check data --follow").expect(0);
        server.stop();
    }
}

/// The package's script that makes the initramfs, among programs of this lab: is it content?
fn renew(lab: &Lab) -> bool {
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/initramfs/renew"));
    let folder = lab.path("");
    let folder = folder.to_str().expect("UTF-8").trim_end_matches('/');
    let script = script.expect("it is packaged").replace("/usr/bin/openraid", &format!("{folder}/openraid"));
    let script = script.replace("/var/lib/openraid", &format!("{folder}/made"));
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    Command::new("sh").args(["-c", &script]).env("PATH", path).status().expect("a shell").success()
}

#[test]
fn an_initramfs_that_could_not_be_made_is_made_by_the_next_try() {
    let lab = Lab::new("renewed");
    let program = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("room");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    };
    let array = |uuid: &str| program("openraid", &format!("echo '# rules'; echo 'ENV{{ID_FS_UUID}}==\"{uuid}\"'"));
    let asked = || fs::read_to_string(lab.path("asked")).unwrap_or_default().lines().count();
    let folder = lab.path("");
    program("update-initramfs", &format!("cd {} && echo \"$*\" >>asked && [ -e room ]", folder.display()));
    program("openraid", "echo '# rules'");
    assert!(renew(&lab) && asked() == 0, "without an array the initramfs needs nothing");
    array("1");
    assert!(!renew(&lab) && asked() == 1, "there is no room");
    assert!(!renew(&lab) && asked() == 2, "a failure is no initramfs");
    fs::write(lab.path("room"), "").expect("room");
    assert!(renew(&lab) && asked() == 3);
    assert!(renew(&lab) && asked() == 3, "every initramfs has these rules");
    array("2");
    assert!(renew(&lab) && asked() == 4, "another array");
    program("openraid", "echo '# rules'");
    assert!(renew(&lab) && asked() == 5, "the array is gone");
    program("openraid", "exit 65");
    assert!(!renew(&lab) && asked() == 5, "the registry cannot be read");
    assert_eq!(fs::read_to_string(lab.path("asked")).expect("asked"), "-u -k all\n".repeat(5));
}
