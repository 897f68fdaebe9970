//! Orders about members reach the member that they were given for, and no other; members that an array is started without are
//! named.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::support::{fingerprint, noise, Lab, Server, WRITE};
use serde_json::{json, Value};

fn state_of<'a>(array: &'a Value, member: &str) -> &'a Value {
    let members = array["members"].as_array().expect("a list");
    let named = |entry: &&Value| entry["member"].as_str().is_some_and(|name| name.ends_with(&format!("/{member}")));
    members.iter().find(named).map_or(&Value::Null, |entry| &entry["state"])
}

fn idle(array: &Value) -> bool {
    array["task"].is_null() && array["consistent_to_bytes"].is_null()
}

fn optimal(array: &Value) -> bool {
    idle(array) && array["health"] == "optimal"
}

fn served(options: &str) -> (Lab, Server) {
    let lab = Lab::new("orders");
    lab.line(&format!("create data --level 5 --chunk 64K --assume-clean --file-size 16M {options} d0 d1 d2")).expect(0);
    let server = lab.serve(&["data"]);
    (lab, server)
}

/// The server's answer to a request on its control socket.
fn asked(server: &Server, request: &Value) -> Value {
    let control = server.ready["control"].as_str().expect("a path");
    let mut stream = UnixStream::connect(control).expect("it listens");
    writeln!(stream, "{request}").expect("sent");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn after_a_failure_no_order_for_the_slot_reaches_the_spare_that_has_it_now() {
    let (lab, server) = served("--spare s0");
    let d0 = lab.path("d0").display().to_string();
    let said = lab.line("fail data slot:0").expect(0).text();
    assert!(said.contains(&format!("`openraid remove data {d0}`")), "{said}");
    // The state before the order is not told as that of the failed member.
    assert!(said.starts_with(&format!("{d0} (slot 0) of data has failed")), "{said}");
    lab.wait_for("data", |array| state_of(array, "s0") == "in-sync");
    for order in ["remove data slot:0", "fail data slot:0", "replace data slot:0"] {
        lab.line(order)
            .refused(65, &["s0 (slot 0, in sync)", "d0 (failed (by administrator), had slot 0)", "name the member"]);
    }
    assert_eq!(state_of(&lab.show("data"), "s0"), "in-sync");
    let shown = lab.line("show data").expect(0).text();
    assert!(shown.contains("failed (by administrator), had slot 0"), "{shown}");
    // The refusal for the failed member differs from the one for a member in use.
    lab.line("add data d0").refused(65, &["still listed", "remove it first", &format!("`openraid remove data {d0}`")]);
    lab.line("add data d1").refused(65, &["a member of data already"]);
    lab.line("remove data d0").expect(0);
    lab.line("add data d0").expect(0);
    // The slot can mean only its present member.
    lab.line("fail data slot:0").expect(0);
    lab.wait_for("data", |array| state_of(array, "d0") == "in-sync" && state_of(array, "s0") == "faulty");
    server.stop();
}

#[test]
fn a_working_member_is_not_taken_out_and_an_empty_slot_stands_for_the_one_that_left_it() {
    let (lab, server) = served("");
    lab.line("remove data slot:1")
        .refused(65, &["slot:1 of data holds", "d1 (slot 1, in sync)", "no member of data is faulty"]);
    lab.line("remove data d1").refused(65, &["d1 (slot 1, in sync) is a working member", "`openraid fail data"]);
    lab.line("fail data slot:1").expect(0);
    lab.wait_for("data", |array| state_of(array, "d1") == "faulty");
    lab.line("remove data slot:2").refused(65, &["faulty in data:", "d1"]);
    lab.line("remove data slot:1").expect(0);
    assert_eq!(state_of(&lab.show("data"), "d1"), &Value::Null);
    server.stop();
}

#[test]
fn an_order_for_a_member_that_was_seen_is_refused_when_another_one_has_its_place() {
    let (lab, server) = served("");
    let array = lab.show("data");
    let device = |slot: usize| array["members"][slot]["device"].as_str().expect("an identity").to_owned();
    let order = |device: String| json!({"v": 2, "do": "fail", "array": "data", "member": "slot:1", "device": device});
    let refused = asked(&server, &order(device(2)));
    assert_eq!(refused["error"]["exit"], 65);
    let text = refused["error"]["text"].as_str().expect("words");
    assert!(text.contains("d1 (slot 1, in sync) now, not the member that was asked for"), "{text}");
    assert_eq!(lab.show("data")["health"], "optimal");
    assert!(asked(&server, &order(device(1)))["ok"]["done"].is_object());
    server.stop();
}

#[test]
fn a_member_that_was_replaced_is_called_replaced() {
    let (lab, server) = served("");
    lab.drives(&["new"], 16);
    lab.line("replace data d2 --with new").expect(0);
    lab.wait_for("data", |array| optimal(array) && state_of(array, "new") == "in-sync");
    assert_eq!(state_of(&lab.show("data"), "d2"), "replaced");
    let shown = lab.line("show data").expect(0).text();
    assert!(shown.contains("replaced, had slot 2") && !shown.contains("faulty"), "{shown}");
    lab.line("fail data slot:2").refused(65, &["d2 (replaced, had slot 2)", "new (slot 2, in sync)"]);
    let said = lab.line("fail data d2").expect(0).text();
    assert!(said.contains("was replaced and is in no slot") && !said.contains("has failed"), "{said}");
    assert_eq!(state_of(&lab.show("data"), "d2"), "replaced");
    lab.line("remove data d2").expect(0);
    lab.line("fail data d1").expect(0).says(&["d1 of data has failed; take it out"]);
    lab.line("fail data d1").expect(0).says(&["d1 of data has failed already; take it out"]);
    server.stop();
}

#[test]
fn a_member_that_was_replaced_does_not_have_to_be_added_again() {
    let (lab, server) = served("");
    lab.drives(&["new"], 16);
    lab.line("replace data d2 --with new").expect(0);
    lab.wait_for("data", |array| optimal(array) && state_of(array, "new") == "in-sync");
    server.stop();
    let doctor = lab.line("doctor d0 d1 d2 new").expect(0);
    let path = lab.path("d2").display().to_string();
    let line = format!("{path}: no member any more: every slot of the array has another member");
    assert!(doctor.text().contains(&line) && !doctor.text().contains("added again"), "{}", doctor.text());
    let found = lab.line("doctor d0 d1 d2 new --json").expect(0).json();
    let members = found["sets"][0]["members"].as_array().expect("a list");
    let member = members.iter().find(|member| member["member"] == path.as_str()).expect("it is listed");
    assert_eq!(member["verdict"], "replaced");
    // While a slot is vacant, a member that failed has to be added.
    let without = lab.line("doctor d0 d1 d2").expect(1);
    assert!(
        without.text().contains("recorded as failed by the others; it has to be added again"),
        "{}",
        without.text()
    );
}

#[test]
fn members_with_the_same_name_are_distinguished_by_their_numbers() {
    let lab = Lab::new("same");
    let members = ["ram:64M"; 4];
    let server = lab.serve(&[&["--level", "5", "--name", "b"][..], &members].concat());
    for order in ["fail b ram:64M", "remove b ram:64M", "replace b ram:64M"] {
        lab.line(order).refused(
            65,
            &["names 4 members", "drive:0  ram:64M (slot 0, in sync", "drive:3  ram:64M (slot 3, in sync"],
        );
    }
    let said = lab.line("fail b drive:2").expect(0).text();
    assert!(said.contains("slot 2") && said.contains("`openraid remove b drive:2`"), "{said}");
    let state = |array: &Value, drive: u64| {
        let members = array["members"].as_array().expect("a list").iter();
        members.clone().find(|member| member["drive"] == drive).map_or(Value::Null, |member| member["state"].clone())
    };
    lab.wait_for("b", |array| state(array, 2) == "faulty");
    lab.line("remove b drive:1").refused(65, &["drive:1", "is a working member", "`openraid fail b drive:1`"]);
    lab.line("remove b drive:9").refused(65, &["drive:9 is not a member of array b", "drive:0, drive:1"]);
    lab.line("remove b drive:2").expect(0);
    let array = lab.show("b");
    assert_eq!(
        [0, 1, 2, 3].map(|drive| state(&array, drive)),
        [json!("in-sync"), json!("in-sync"), Value::Null, json!("in-sync")]
    );
    // A number that was seen a moment ago is not given to another drive at once.
    lab.drives(&["new"], 64);
    lab.line("add b new").expect(0);
    lab.line("remove b drive:2").refused(65, &["drive:2 is not a member"]);
    server.kill();
}

/// A mirror of which each half ran without the other one and was written to.
fn split(options: &str) -> Lab {
    let lab = Lab::new("split");
    lab.line(&format!("create data --level 1 --assume-clean --file-size 16M {options} d0 d1")).expect(0);
    for (half, place, times) in [("d0", 1 << 20, 1), ("d1", 3 << 20, 2)] {
        for _ in 0..times {
            let server = lab.serve(&[half]);
            support::ask(&lab, &server, &[(WRITE, place, &[7; 4096])]);
            server.stop();
        }
    }
    lab
}

#[test]
fn a_half_of_a_split_mirror_is_named_and_not_overwritten_unasked() {
    for options in ["", "--bitmap internal"] {
        let lab = split(options);
        let looked = lab.line("doctor d0 d1");
        let text = looked.text();
        let line = text.lines().find(|line| line.contains("split brain")).unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.contains("/d0:") && line.matches("event ").count() == 2 && line.matches(" UTC").count() == 2,
            "{line}"
        );
        // The next step is a choice between the halves, not an order that overwrites one of them.
        let next = text.split("next: ").nth(1).unwrap_or_else(|| panic!("{text}"));
        let (d0, d1) = (lab.path("d0").display().to_string(), lab.path("d1").display().to_string());
        for words in
            ["choose the half to keep", &format!("copy-out {d0}"), &format!("to keep {d1}: openraid serve {d1}")]
        {
            assert!(next.contains(words), "{words:?} is not in: {text}");
        }
        assert!(next.contains(&format!("to keep {d0}: openraid serve {d0}")) && !next.contains("NEW"), "{text}");
        // No half is served unasked, and the refusal names the command for each.
        let before = ["d0", "d1"].map(|half| fingerprint(&lab.path(half)));
        let choice = format!("`openraid serve {d1}` or `openraid serve {d0}`");
        for order in ["serve data", "serve d0 d1", "serve data --force", "serve data --read-only"] {
            let refused = lab.line(&format!("{order} --nbd-unix half.sock")).refused(65, &["split brain", &choice]);
            let output = &refused.err;
            assert!(output.matches("event ").count() == 2 && output.matches(" UTC").count() == 2, "{output}");
        }
        assert_eq!(["d0", "d1"].map(|half| fingerprint(&lab.path(half))), before, "nothing is written by a refusal");
        let before = fingerprint(&lab.path("d0"));
        let server = lab.serve(&["d1"]);
        lab.line("add data d0").refused(65, &["split brain", "event ", " UTC", "--yes"]);
        assert_eq!(fingerprint(&lab.path("d0")), before, "nothing is written before it is confirmed");
        lab.line("add data d0 --yes").expect(0);
        lab.wait_for("data", optimal);
        lab.line("check data --follow").expect(0);
        server.stop();
    }
}

#[test]
fn doctor_on_one_half_of_a_split_mirror_tells_of_the_other_half_that_is_served() {
    // d1 is the newer half. Either half may be the one that is served.
    for (served, other) in [("d1", "d0"), ("d0", "d1")] {
        let lab = split("");
        let server = lab.serve(&[served]);
        let (path, other_path) = (lab.path(served).display().to_string(), lab.path(other).display().to_string());
        let looked = lab.run(&["doctor", &other_path]).expect(1);
        let text = looked.text();
        let line = text.lines().find(|line| line.contains("split brain")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.matches("event ").count() == 2 && line.matches(" UTC").count() == 2, "{line}");
        let next = text.split("next: ").nth(1).unwrap_or_else(|| panic!("{text}"));
        for words in [
            format!("choose the half to keep. `openraid copy-out {other_path}`"),
            format!("to keep {path}: openraid add data {other_path} --yes; this overwrites {other_path}"),
            format!(
                "to keep {other_path}: openraid stop data; openraid serve {other_path}; openraid add data {path} --yes; this overwrites {path}"
            ),
        ] {
            assert!(next.contains(&words), "{words:?} is not in: {text}");
        }
        assert!(!text.contains("it starts degraded; ") && !text.contains("NEW"), "{text}");
        let json = lab.run(&["doctor", &other_path, "--json"]).expect(1).json();
        assert_eq!(json["served"][0]["used"], json!([path]));
        assert_eq!(json["served"][0]["unused"], json!([other_path]));
        assert_eq!(json["tried"], json!([]));
        // The command that the message names works.
        lab.run(&["copy-out", &other_path]).expect(1);
        lab.run(&["add", "data", &other_path, "--yes"]).expect(0);
        lab.wait_for("data", optimal);
        server.stop();
    }
}

#[test]
fn doctor_says_how_a_member_left_out_by_its_server_is_added_again() {
    let lab = Lab::new("stale");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    let server = lab.serve(&["d0"]);
    support::ask(&lab, &server, &[(WRITE, 4096, &[7; 4096])]);
    let d1 = lab.path("d1").display().to_string();
    let text = lab.run(&["doctor", &d1]).expect(1).text();
    assert!(text.contains(&format!("next: openraid add data {d1}")) && !text.contains("split brain"), "{text}");
    lab.run(&["add", "data", &d1]).expect(0);
    lab.wait_for("data", optimal);
    server.stop();
}

#[test]
fn a_service_starts_neither_half_of_a_split_array_until_one_is_chosen() {
    let lab = split("");
    fs::write(lab.path("openraid.toml"), format!("[server]\nnbd-unix = {:?}\n", lab.path("nbd.sock"))).expect("room");
    let control = lab.path("service.sock").display().to_string();
    let serve = || {
        let mut command = lab.command(&["--control", &control, "serve", "--json", "--config", "openraid.toml"]);
        Server::started(&mut command).expect("ready")
    };
    let problems = || {
        let answer = lab.line(&format!("alarms --json --control {control}")).expect(0).json();
        let all = answer["alarms"].as_array().expect("a list").clone();
        let of_start = all.into_iter().filter(|alarm| alarm["event"] == "StartProblem");
        of_start.map(|alarm| alarm["text"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    let server = serve();
    let (d0, d1) = (lab.path("d0").display().to_string(), lab.path("d1").display().to_string());
    let [problem] = problems().try_into().expect("one problem");
    for words in ["split brain".into(), format!("`openraid assemble {d1}`"), format!("`openraid assemble {d0}`")] {
        assert!(problem.contains(&words), "{words:?} is not in: {problem}");
    }
    lab.line(&format!("assemble d0 d1 --control {control}")).refused(65, &["split brain"]);
    lab.line(&format!("assemble d0 --control {control}")).expect(1).says(&["served now: data"]);
    assert_eq!(problems(), [""; 0], "the problem is over");
    server.stop();
    // The half that was chosen is the array from now on.
    let server = serve();
    assert_eq!(problems(), [""; 0]);
    let shown = lab.line(&format!("show data --json --control {control}")).expect(1).json();
    assert_eq!(state_of(&shown["array"], "d0"), "in-sync");
    server.stop();
}

#[test]
fn scan_of_a_moved_member_leads_to_the_whole_array() {
    let lab = Lab::new("moved");
    lab.line("create data --level 5 --assume-clean --file-size 16M d0 d1 d2").expect(0);
    fs::create_dir(lab.path("m")).expect("room");
    fs::rename(lab.path("d1"), lab.path("m/d1")).expect("it moves");
    let output = lab.line("scan m").expect(2).text();
    let (d0, d2) = (lab.path("d0").display().to_string(), lab.path("d2").display().to_string());
    let step = format!("assemble --scan m {d0} {d2}");
    assert!(output.contains(&format!("next: `openraid {step}`")), "{output}");
    lab.line(&step).expect(0).says(&["it starts with all members"]);
}

#[test]
fn halves_of_the_same_age_are_split_as_well() {
    let lab = Lab::new("even");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    for half in ["d0", "d1"] {
        let server = lab.serve(&[half]);
        support::ask(&lab, &server, &[(WRITE, 4096, &[7; 4096])]);
        server.stop();
    }
    let looked = lab.line("assemble d0 d1 --no-serve --json").json();
    let members = looked["sets"][0]["members"].as_array().expect("a list");
    let verdicts: Vec<&Value> = members.iter().map(|entry| &entry["verdict"]).collect();
    assert_eq!(verdicts, ["member", "split"]);
}

#[test]
fn serve_names_the_members_that_it_leaves_out() {
    let lab = Lab::new("left");
    lab.line("create data --level 1 --file-size 16M --assume-clean d0 d1").expect(0);
    fs::copy(lab.path("d1"), lab.path("copy")).expect("room");
    let server = lab.serve(&["d0", "d1", "copy"]);
    let left = server.ready["left_out"][0].clone();
    assert_eq!(left["verdict"], "duplicate");
    let text = left["text"].as_str().expect("words");
    assert!(text.contains("a copy of") && text.contains("d1 (same device UUID)") && text.contains("slot 1"), "{text}");
    lab.line("add data copy").refused(65, &["copy of", "d1 (slot 1, in sync)", "--yes --overwrite"]);
    lab.line("add data copy --yes --overwrite").expect(0);
    let devices = lab.show("data")["members"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| line["device"].to_string())
        .collect::<Vec<_>>();
    assert!(devices[2] != devices[1], "it has an identity of its own now: {devices:?}");
    lab.line("remove data copy").expect(0);
    server.stop();
    let server = lab.serve(&["d0"]);
    support::ask(&lab, &server, &[(WRITE, 4096, &noise(1, 4096))]);
    server.stop();
    let server = lab.serve(&["d0", "d1"]);
    let left = server.ready["left_out"].as_array().expect("a list");
    assert!(left.iter().any(|entry| entry["member"].as_str().is_some_and(|name| name.ends_with("/d1"))), "{left:?}");
    server.stop();
}

#[test]
fn doctor_names_moved_members_by_their_paths_and_the_order_works() {
    let lab = Lab::new("orders");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let server = lab.serve(&["data"]);
    lab.line("fail data d2").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    server.stop();
    let text = lab.line("doctor data").text();
    assert!(text.contains("next: openraid serve data, then a new member"), "{text}");
    let path = lab.path("d0").display().to_string();
    let text = lab.line("doctor data d0").text();
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with(&path)).count(), 1, "d0 counts once: {text}");
    let moved = ["d0", "d1"].map(|name| lab.path(&format!("moved-{name}")));
    for (name, to) in ["d0", "d1"].iter().zip(&moved) {
        fs::rename(lab.path(name), to).expect("it is moved");
    }
    let moved = moved.map(|path| path.display().to_string());
    let text = lab.run(&["doctor", &moved[0], &moved[1]]).text();
    assert!(text.contains(&format!("next: openraid serve {}, then", moved.join(" "))), "{text}");
    let server = lab.serve(&[&moved[0], &moved[1]]);
    assert_eq!(lab.show("data")["health"], "degraded");
    server.stop();
}

#[test]
fn an_array_that_is_served_already_is_said_to_be() {
    let lab = Lab::new("orders");
    lab.line("create data --level 1 --file-size 16M d0 d1").expect(0);
    let server = lab.serve(&["data"]);
    for names in [&["data"][..], &["d0", "d1"]] {
        let socket = lab.path("other.sock").display().to_string();
        let line = [&["serve", "--nbd-unix", &socket][..], names].concat();
        lab.run(&line).refused(65, &["data is served already: `openraid show data`", "busy: process"]);
    }
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}
