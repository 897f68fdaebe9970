//! Checks by schedule, their windows, and the history of checks.

use crate::support;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::Lab;

/// A window of three hours that opens `hours` - 1 hours after the present hour. At 0 it has been open for an hour.
fn window(hours: u64) -> String {
    let hour = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 3600 + 23 + hours;
    format!("window = \"{:02}:00-{:02}:00\"\n", hour % 24, (hour + 3) % 24)
}

#[test]
fn arrays_are_checked_when_due_and_the_history_has_the_findings() {
    let lab = Lab::new("schedules");
    lab.line("create data --level 6 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3").expect(0);
    lab.line("create stripe --level 0 --file-size 16M s0 s1").expect(0);
    lab.line("check data --history").expect(0).says(&["data: no check or repair is remembered"]);
    // A block of one member goes bad without a word of the drive.
    support::write_at(&lab.path("d1"), 12 << 20, &[7; 4096]);
    lab.configure("[schedules.weekly]\ntask = \"check\"\nevery = \"7d\"\n");
    lab.line("config check openraid.toml").expect(0).says(&["schedule weekly: check of all arrays every 7 d"]);
    let mut server = lab.serve_configured();
    server.wait_for_news("CheckFinished", 1);
    let answer = lab.line("check data --history --json").expect(0).json();
    let checks = answer["sets"][0]["checks"].as_array().expect("a list").clone();
    assert_eq!(checks.len(), 1, "{answer:#}");
    assert_eq!((&checks[0]["kind"], &checks[0]["mismatches"]), (&"check".into(), &8.into()));
    let members: Vec<u64> = checks[0]["members"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["mismatches"].as_u64().expect("a number"))
        .collect();
    assert_eq!(members, [0, 8, 0, 0]);
    lab.line("repair data --follow").expect(0);
    let text = lab.line("check data --history").expect(0).text();
    assert!(text.contains("check: 8 mismatched sectors") && text.contains("repair: repaired 8"), "{text}");
    assert!(text.contains(&format!("slot 1 ({}): 8 mismatched sectors", lab.path("d1").display())), "{text}");
    let lines = server.stop();
    let started = lines.iter().filter(|line| line["news"]["event"] == "CheckStarted").count();
    assert!(started <= 2, "one by schedule, one repair: {lines:#?}");
    assert!(lines.iter().all(|line| line["news"]["array"] != "stripe"), "a stripe has nothing to compare");
    // Without a server the history is the same; a check that is not due does not begin at the next start.
    assert_eq!(lab.line("check data --history").expect(0).text(), text);
    let server = lab.serve_configured();
    lab.line("show data").expect(0);
    assert!(server.stop().iter().all(|line| line["news"]["event"] != "CheckStarted"));
}

#[test]
fn a_check_keeps_to_its_window() {
    let lab = Lab::new("window");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 64M d0 d1 d2").expect(0);
    let schedule = |hours| {
        let settings = "[arrays.data.settings]\nscrub.rate = \"1M\"\n";
        lab.configure(&format!(
            "[schedules.night]\ntask = \"check\"\narrays = \"data\"\nevery = \"7d\"\n{}{settings}",
            window(hours)
        ));
    };
    schedule(6);
    let mut server = lab.serve_configured();
    lab.line("fail data d0").expect(0);
    server.wait_for_news("Fail", 1);
    schedule(0);
    lab.line("reload").expect(0);
    assert!(lab.show("data")["task"].is_null(), "a degraded array is not checked");
    lab.line("remove data d0").expect(0);
    lab.line("add data --file-size 64M d3").expect(0);
    lab.wait_for("data", |array| array["task"]["kind"] == "check" && array["task"]["paused"] == false);
    schedule(6);
    lab.line("reload").expect(0);
    lab.wait_for("data", |array| array["task"]["kind"] == "check" && array["task"]["paused"] == true);
    schedule(0);
    lab.line("reload").expect(0);
    lab.wait_for("data", |array| array["task"]["kind"] == "check" && array["task"]["paused"] == false);
    lab.line("check data --stop").expect(0);
    let lines = server.stop();
    let schedule = lines.iter().filter(|line| line["news"]["event"] == "Schedule").count();
    assert_eq!(schedule, 3, "begun, paused, resumed, and not begun again after an order to stop: {lines:#?}");
}

#[test]
fn a_patrol_reads_every_drive_spares_too_and_keeps_to_its_window() {
    let lab = Lab::new("patrol");
    lab.line("create data --level 0 --file-size 16M d0 d1").expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1 --spare s0").expect(0);
    let patrol = |hours| {
        let rate = "task = \"patrol\"\nevery = \"7d\"\nrate = \"1G\"\n";
        lab.configure(&format!("[schedules.reads]\n{rate}{}", window(hours)));
    };
    patrol(6);
    lab.line("config check openraid.toml")
        .expect(0)
        .says(&["schedule reads: patrol of all arrays every 7 d", "1 GiB/s of each drive (line "]);
    lab.configure("[schedules.reads]\ntask = \"patrol\"\nevery = \"7d\"\nssd = true\n");
    lab.line("config check openraid.toml").expect(0).says(&["of each drive, SSDs too (line "]);
    patrol(6);
    let mut server = lab.serve_configured();
    let patrols = |name: &str| lab.line(&format!("check {name} --history --json")).expect(0).json()["patrols"].clone();
    assert_eq!(patrols("pair"), serde_json::json!([]));
    patrol(0);
    lab.line("reload").expect(0);
    // Begun and finished, of both arrays; an array without redundancy is read as well.
    server.wait_for_news("Schedule", 4);
    for (name, drives) in [("data", &["d0", "d1"][..]), ("pair", &["p0", "p1", "s0"])] {
        let found = patrols(name);
        let members = found[0]["members"].as_array().expect("a list");
        let read: Vec<(String, u64, u64)> = members
            .iter()
            .map(|member| {
                (
                    member["member"].as_str().expect("a name").into(),
                    member["read_bytes"].as_u64().expect("a number"),
                    member["errors"].as_u64().expect("a number"),
                )
            })
            .collect();
        let wanted: Vec<_> = drives.iter().map(|drive| (lab.path(drive).display().to_string(), 16 << 20, 0)).collect();
        assert_eq!(read, wanted);
        assert!(found[0]["ended_seconds"].is_u64(), "{found:#}");
    }
    lab.line("check pair --history").expect(0).says(&["patrol read\n", "/s0: 16777216 bytes, 0 places unreadable"]);
    server.stop();
    // It is not due at the next start.
    let server = lab.serve_configured();
    lab.line("show pair").expect(0);
    assert!(server.stop().iter().all(|line| line["news"]["event"] != "Schedule"));
    lab.configure("[schedules.a]\ntask = \"patrol\"\nevery = \"7d\"\nrate = \"1K\"\n[schedules.b]\ntask = \"check\"\nevery = \"7d\"\nrate = \"1M\"\n");
    lab.line("config check openraid.toml")
        .refused(65, &["line 6: schedules.a.rate: \"1K\" is too slow", "line 10: schedules.b.rate: unknown key"]);
}

#[test]
fn mistakes_of_a_schedule_are_named() {
    let lab = Lab::new("bad-schedules");
    lab.configure("[schedules.a]\ntask = \"scrub\"\nevery = \"1m\"\nwindow = \"1-2\"\n[schedules.b]\narray = \"x\"\n");
    lab.line("config check openraid.toml").refused(
        65,
        &[
            "line 4: schedules.a.task: \"scrub\" is not a task; write task = \"check\" or task = \"patrol\"",
            "line 5: schedules.a.every: \"1m\" is not an interval between checks",
            "line 6: schedules.a.window: \"1-2\" is not a window of time",
            "line 7: schedules.b.every: missing",
            "line 7: schedules.b.task: missing",
            "line 8: schedules.b.array: unknown key; did you mean arrays?",
        ],
    );
}
