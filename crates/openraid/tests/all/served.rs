//! Arrays that are served: every verb that speaks to a server, and the state that it leaves.

use crate::support;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{noise, Lab, Server};
use serde_json::Value;

/// RAID 5 of four members with known content, served.
fn served(options: &str) -> (Lab, Server, Vec<u8>) {
    let lab = Lab::new("served");
    lab.line(&format!("create data --level 5 --chunk 64K --file-size 16M {options} d0 d1 d2 d3")).expect(0);
    let image = noise(3, 20 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    (lab, server, image)
}

fn optimal(array: &Value) -> bool {
    array["health"] == "optimal" && array["task"].is_null()
}

fn state_of<'a>(array: &'a Value, name: &str) -> &'a str {
    let members = array["members"].as_array().expect("members");
    let entry = members.iter().find(|m| m["member"].as_str().is_some_and(|path| path.ends_with(name)));
    entry.map_or("none", |member| member["state"].as_str().expect("a word"))
}

/// The content as it is on the members after a clean stop.
#[track_caller]
fn content_is(lab: &Lab, image: &[u8]) {
    let out = lab.line("copy-out data").expect(0).out;
    assert!(out[..image.len()] == *image, "the content has changed");
}

#[test]
fn a_member_fails_leaves_and_a_new_one_takes_its_place() {
    let (lab, server, image) = served("");
    lab.line("fail data d1").expect(0);
    let state = lab.wait_for("data", |array| state_of(array, "d1") == "faulty");
    assert_eq!((&state["health"], &state["survives"]), (&"degraded".into(), &0.into()));
    lab.line("show data").expect(1);
    lab.line("list").expect(1);
    // Another one must not go.
    lab.line("fail data d2").refused(65, &["needs this member"]);
    lab.line("add data --file-size 4M small").refused(65, &["small", "too small", "15 MiB"]);
    assert!(!lab.path("small").exists());
    lab.line("remove data d2").refused(65, &["fail it first"]);
    let removed = lab.line("remove data d1").expect(0);
    assert!(removed.text().contains("is out of data"), "{}", removed.text());
    lab.line("add data --file-size 16M d9").expect(0);
    lab.wait_for("data", optimal);
    let followed = lab.line("show data --follow").expect(0);
    assert!(followed.text().contains("optimal, idle"), "{}", followed.text());
    server.stop();
    content_is(&lab, &image);
    // The registry has the array's present members.
    let listed = lab.line("list --json").expect(0).json();
    let members = listed["remembered"][0]["members"].to_string();
    assert!(members.contains("d9") && !members.contains("d1"), "{members}");
    // The new one is a full member: without any other one everything is there.
    let out = lab.line("copy-out d0 d9 d3").expect(1).out;
    assert!(out[..image.len()] == image);
}

#[test]
fn a_spare_takes_over_by_itself_and_can_be_listed_added_and_removed() {
    let (lab, server, image) = served("--spare s0");
    let spares = || lab.line("spare list data --json").expect(0).json()["spares"].as_array().expect("a list").len();
    assert_eq!(spares(), 1);
    lab.line("spare add data --file-size 16M s1").expect(0);
    assert_eq!(spares(), 2);
    lab.line("spare remove data d0").refused(65, &["not a spare"]);
    lab.line("spare remove data s1").expect(0);
    assert_eq!(spares(), 1);
    lab.line("fail data slot:3").expect(0);
    let state = lab.wait_for("data", optimal);
    assert_eq!(state_of(&state, "s0"), "in-sync");
    assert_eq!(spares(), 0);
    server.stop();
    content_is(&lab, &image);
}

#[test]
fn a_working_member_is_replaced_without_a_moment_of_less_redundancy() {
    let (lab, server, image) = served("");
    lab.drives(&["new"], 16);
    lab.line("set data rebuild.rate=4M").expect(0);
    lab.line("replace data d2 --with new").expect(0);
    let state = lab.show("data");
    assert_eq!((&state["health"], &state["survives"]), (&"optimal".into(), &1.into()));
    assert_eq!(state["task"]["kind"], "replace");
    lab.line("set data rebuild.rate=none").expect(0);
    let state = lab.wait_for("data", |array| optimal(array) && state_of(array, "new") == "in-sync");
    assert_ne!(state_of(&state, "d2"), "in-sync");
    lab.line("replace data slot:0").refused(65, &["no spare"]);
    lab.line("replace data nothing").refused(65, &["is not a member"]);
    server.stop();
    // The old drive did not fail: the next start does not look for it.
    let server = lab.serve(&["data"]);
    assert_eq!(server.ready["left_out"].as_array().map(Vec::len), Some(0), "{}", server.ready);
    server.stop();
    content_is(&lab, &image);
    let out = lab.line("copy-out d0 d1 new").expect(1).out;
    assert!(out[..image.len()] == image);
}

#[test]
fn a_new_member_takes_over_as_soon_as_its_partial_parity_log_is_ready() {
    let (lab, server, image) = served("--consistency-policy ppl");
    lab.drives(&["new"], 16);
    lab.line("replace data d2 --with new").expect(0);
    let state = lab.wait_for("data", |array| optimal(array) && state_of(array, "new") == "in-sync");
    assert_ne!(state_of(&state, "d2"), "in-sync");
    server.stop();
    content_is(&lab, &image);
}

#[test]
fn a_member_that_comes_back_needs_only_what_it_has_missed() {
    let (lab, server, image) = served("--bitmap internal");
    lab.wait_for("data", |array| array["bitmap"]["marked"] == 0);
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| state_of(array, "d1") == "faulty");
    lab.line("remove data d1").expect(0);
    let before = lab.show("data");
    let back = lab.line("add data d1").expect(0);
    assert!(back.text().contains("back in data"), "{}", back.text());
    let state = lab.wait_for("data", optimal);
    let written = |array: &Value| {
        array["members"]
            .as_array()
            .expect("members")
            .iter()
            .map(|m| m["written_bytes"].as_u64().expect("bytes"))
            .sum::<u64>()
    };
    let more = written(&state).saturating_sub(written(&before));
    assert!(more < 4 << 20, "nothing was missed, but {more} bytes were written");
    server.stop();
    content_is(&lab, &image);
}

#[test]
fn a_check_finds_what_does_not_fit_and_can_be_paused_and_ended() {
    let (lab, server, _) = served("");
    let checked = lab.line("check data --follow").expect(0);
    assert!(checked.text().contains("no mismatches"), "{}", checked.text());
    assert_eq!(lab.show("data")["last_check_mismatches"], 0);
    lab.line("set data scrub.rate=1M").expect(0);
    lab.line("check data").expect(0);
    lab.line("check data").refused(65, &["a check runs", "openraid check data --stop"]);
    lab.line("pause data").expect(0);
    let paused = lab.wait_for("data", |array| array["task"]["paused"] == true);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(lab.show("data")["task"]["done_bytes"], paused["task"]["done_bytes"]);
    assert!(paused["task"]["eta_seconds"].is_null(), "what is paused has no end in sight");
    lab.line("resume data").expect(0);
    lab.wait_for("data", |array| array["task"]["done_bytes"].as_u64() > paused["task"]["done_bytes"].as_u64());
    lab.line("check data --stop").expect(0);
    lab.wait_for("data", optimal);
    server.stop();
    // A byte is wrong on a member, unknown to the array.
    let path = lab.path("d2");
    let place = (2 << 20) + 12345;
    let mut byte = support::read_at(&path, place, 1);
    byte[0] ^= 0x55;
    support::write_at(&path, place, &byte);
    let server = lab.serve(&["data"]);
    let checked = lab.line("check data --follow").expect(3);
    assert!(checked.text().contains("1 mismatched sector (512 bytes)"), "{}", checked.text());
    let news = server.stop();
    assert!(news.iter().any(|line| line["news"]["event"] == "RowMismatch"), "{news:?}");
}

#[test]
fn repair_corrects_the_guilty_member_if_it_is_known() {
    let lab = Lab::new("repair");
    lab.line("create data --level 6 --chunk 64K --file-size 16M d0 d1 d2 d3 d4").expect(0);
    let image = noise(5, 16 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let path = lab.path("d2");
    let before = support::read_at(&path, 3 << 20, 4096);
    support::write_at(&path, 3 << 20, &noise(9, 4096));
    let server = lab.serve(&["data"]);
    lab.line("repair data --follow").expect(0);
    let checked = lab.line("check data --follow").expect(0);
    assert!(checked.text().contains("no mismatches"), "{}", checked.text());
    server.stop();
    assert!(support::read_at(&path, 3 << 20, 4096) == before, "the member holds again what it held");
    content_is(&lab, &image);
}

#[test]
fn settings_are_changed_shown_and_refused_by_name() {
    let (lab, server, _) = served("");
    let set = lab.line("set data rebuild.rate=50M write.partial=rmw background.depth=3").expect(0);
    assert!(set.text().contains("rebuild.rate=50 MiB/s") && set.text().contains("write.partial=rmw"), "{}", set.text());
    let settings = lab.show("data")["settings"].clone();
    assert_eq!(settings["rebuild_rate"], 50 << 20);
    lab.line("set data rebuild.rate=1M cache=wb").refused(64, &["unknown setting \"cache\""]);
    assert_eq!(lab.show("data")["settings"], settings, "nothing changes where one of them is wrong");
    lab.line("set data rebuild.rate").refused(64, &["KEY=VALUE"]);
    assert!(lab.line("set data").expect(0).text().contains("background.depth=3"));
    let set =
        lab.line("set data read-ahead=none mirror-read=twinstor split-section=64K sorting=off adaptive=on").expect(0);
    for text in ["read-ahead=none", "mirror-read=twinstor", "split-section=64 KiB", "sorting=off", "adaptive=on"] {
        assert!(set.text().contains(text), "{text}: {}", set.text());
    }
    let shown = lab.show("data");
    assert_eq!((&shown["settings"]["mirror_read"], &shown["adaptive"]["switches"]), (&"twinstor".into(), &0.into()));
    assert!(lab.line("explain data").expect(0).text().contains("adaptive, 0 changes"));
    lab.line("set data mirror-read=best").refused(64, &["use one of primary, round-robin"]);
    // An impossible setting is refused without a question for a confirmation.
    for risk in ["profile=performance", "write.cache=volatile", "write.cache=volatile --yes"] {
        lab.line(&format!("set data {risk}"))
            .refused(65, &["data: the server has no cache; start it with --cache SIZE"]);
    }
    lab.line("set data read-ahead-max=0").refused(64, &["at least 4 KiB", "read-ahead=none"]);
    // Settings without an effect here get a note.
    let set = lab.line("set data read-ahead=always mirror-read=primary").expect(0).text();
    assert!(set.contains("note: read-ahead=always has no effect: the server has no cache"), "{set}");
    assert!(set.contains("note: mirror-read=primary has no effect: data has no copies"), "{set}");
    // The caches of the drives: files have none, and nothing is half set.
    let before = lab.show("data")["settings"].clone();
    lab.line("set data sorting=on drive.cache=off")
        .refused(65, &["d0: it is not a block device", "nothing was changed"]);
    lab.line("set data drive.cache=sometimes").refused(64, &["on, off, unchanged"]);
    assert_eq!(lab.show("data")["settings"], before);
    assert_eq!(before["drive_cache"], "unchanged");
    assert!(lab.line("set data drive.cache=as-found").expect(0).text().contains("drive.cache=unchanged"));
    assert!(lab.line("set data adaptive=reset").expect(0).text().contains("adaptive=on"));
    assert!(lab.line("set data profile=balanced").expect(0).text().contains("adaptive=off"));
    // The same again changes nothing, and is no news.
    lab.line("set data profile=balanced").expect(0);
    let news = server.stop();
    let changed: Vec<&Value> = news.iter().filter(|line| line["news"]["event"] == "PolicyChanged").collect();
    assert_eq!(changed.len(), 4, "{changed:#?}");
    let first = &changed[0]["news"];
    let text = first["text"].as_str().expect("a text");
    let words =
        "settings changed: rebuild.rate 200 MiB/s -> 50 MiB/s, write.partial fewest -> rmw, background.depth 8 -> 3";
    assert_eq!((text, &first["array"]), (format!("data: {words}").as_str(), &"data".into()));
    let change = serde_json::json!({ "setting": "write.partial", "from": "fewest", "to": "rmw" });
    assert_eq!(first["changes"][1], change);
}

#[test]
fn memory_that_is_not_there_is_refused_with_figures_before_anything_is_served() {
    let lab = Lab::new("memory");
    let serve =
        |options: &str| lab.line(&format!("serve --nbd 127.0.0.1:0 --level 1 --name x ram:8M ram:8M {options}"));
    serve("--cache 3T").refused(65, &["the server would need 3.", "--cache 3 TiB", "there are", "at most"]);
    serve("--cache 5T").refused(64, &["more than 4 TiB cannot be addressed; give less"]);
    serve("--cache 64K").refused(64, &["--cache 64 KiB", "give 80 KiB at least"]);
}

#[test]
fn every_answer_in_json_names_its_schema_and_parses() {
    let (lab, server, _) = served("");
    for line in [
        "list",
        "show data",
        "explain data",
        "spare list data",
        "set data",
        "pause data",
        "resume data",
        "fail data d0",
        "examine d1",
        "scan .",
        "doctor d1",
        "show data --mdstat",
        "check nobody",
        "remove data d0",
        "stop data",
    ] {
        let ran = lab.line(&format!("{line} --json"));
        let document = ran.json();
        let schema = document["schema"].as_str().expect("a schema");
        let verb = line.split(' ').next().expect("a verb");
        let (form, number) = schema.rsplit_once('/').expect("a form has a number");
        let expected = if ran.err.is_empty() { format!("openraid/{verb}") } else { "openraid/error".into() };
        assert_eq!(form, expected, "{line}: {ran:?}");
        assert!(number.parse::<u32>().is_ok(), "{line}: {schema}");
        assert_eq!(document["exit"], ran.code, "{line}");
    }
    let (code, _) = server.end();
    assert_eq!(code, 0, "a server whose last array was stopped ends");
}

#[test]
fn explain_counts_the_requests_of_clients_and_the_reasons_of_decisions() {
    let (lab, server, _) = served("");
    if !has("qemu-io") {
        return support::missing("qemu-io is not installed (package qemu-utils)");
    }
    let uri = server.uri();
    // Three data columns of 64 KiB: one whole stripe, then a part of one.
    for command in ["write -P 7 0 192k", "write -P 8 1M 4k"] {
        let done = Command::new("qemu-io").args(["-f", "raw", "-c", command, &uri]).stdout(Stdio::null()).status();
        assert!(done.expect("qemu-io runs").success());
    }
    let explained = lab.line("explain data --json").expect(0).json();
    let count = |reason: &str| {
        let reasons = explained["reasons"].as_array().expect("reasons");
        reasons
            .iter()
            .find(|entry| entry["reason"] == reason)
            .map_or(0, |entry| entry["count"].as_u64().expect("a count"))
    };
    assert!(count("FullStripe") >= 1, "{explained:#}");
    assert!(
        count("ReadModifyWriteFewer") + count("ReconstructFewer") + count("ReconstructEqual") >= 1,
        "{explained:#}"
    );
    assert!(explained["host"]["writes"].as_u64() >= Some(2));
    assert!(lab.line("explain data").expect(0).text().contains("full stripe"));
    server.stop();
}

#[test]
fn the_programs_own_reads_of_an_array_are_no_requests_of_a_host() {
    let figures = |state: &Value| {
        let host = &state["host"];
        [&host["reads"], &host["read_bytes"], &host["writes"], &host["flushes"]]
            .map(|value| value.as_u64().expect("a number"))
    };
    for level in ["--level 5", "--level 50 --spans 2"] {
        let lab = Lab::new("hosts");
        let made = format!("create data {level} --chunk 64K --file-size 16M --assume-clean d0 d1 d2 d3 d4 d5");
        lab.line(&made).expect(0);
        let looked = lab.line("show data --json").expect(0).json();
        assert_eq!((&looked["served"], figures(&looked["array"])), (&false.into(), [0; 4]), "{level}");
        let server = lab.serve(&["data", "--cache", "8M"]);
        let state = lab.show("data");
        let spans = state["spans"].as_array().expect("a list");
        assert!([&state].into_iter().chain(spans).all(|model| figures(model) == [0; 4]), "{state:#}");
        assert_eq!((&state["cache"]["read_hit_bytes"], &state["cache"]["read_miss_bytes"]), (&0.into(), &0.into()));
        support::ask(&lab, &server, &[(support::READ, 8 << 20, &[0; 4096]), (support::READ, 8 << 20, &[0; 4096])]);
        let state = lab.show("data");
        assert_eq!(figures(&state), [2, 8192, 0, 0], "{level}");
        let cache = &state["cache"];
        assert_eq!((&cache["read_hit_bytes"], &cache["read_miss_bytes"]), (&4096.into(), &4096.into()), "{cache:#}");
        server.stop();
    }
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

#[test]
fn the_form_of_mdstat_is_that_of_the_kernel() {
    let (lab, server, _) = served("");
    let text = lab.line("show data --mdstat").expect(0).text();
    let expected = "data : active raid5 d0[0] d1[1] d2[2] d3[3]\n      46080 blocks super 1.2 level 5, 64k chunk, \
                    algorithm 2 [4/4] [UUUU]\n";
    assert!(text.starts_with("Personalities : ") && text.contains(expected), "{text}");
    lab.line("fail data d2").expect(0);
    lab.wait_for("data", |array| state_of(array, "d2") == "faulty");
    let text = lab.line("show data --mdstat").expect(1).text();
    assert!(text.contains("d2[4](F)") && text.contains("[4/3] [UU_U]"), "{text}");
    server.stop();
    let (lab, server, _) = served("--bitmap internal");
    lab.wait_for("data", |array| array["bitmap"]["marked"] == 0);
    let chunk = lab.line("examine d0 --json").expect(0).json()["members"][0]["bitmap"]["chunk_bytes"].as_u64();
    let kib = chunk.expect("it has a bitmap") / 1024;
    let text = lab.line("show data --mdstat").expect(0).text();
    let expected = format!(" [4/4] [UUUU]\n      bitmap: 0/1 pages [0KB], {kib}KB chunk\n\nunused devices");
    assert!(text.contains(&expected), "{text}");
    support::ask(&lab, &server, &[(support::WRITE, 0, &[7; 4096])]);
    let text = lab.line("show data --mdstat").expect(0).text();
    assert!(text.contains(&format!("      bitmap: 1/1 pages [4KB], {kib}KB chunk\n")), "{text}");
    let text = lab.line("show data").expect(0).text();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["policy", "bitmap"])), "{text}");
    server.stop();
}

#[test]
fn a_killed_server_leaves_an_array_that_starts_again() {
    let (lab, server, image) = served("");
    server.kill();
    // The dead server's control socket is still there, and no server answers.
    lab.line("show data").expect(0);
    let server = lab.serve(&["data"]);
    lab.wait_for("data", optimal);
    server.stop();
    content_is(&lab, &image);
}

#[test]
fn nested_arrays_are_served_as_one_and_their_spans_are_managed() {
    let lab = Lab::new("nested");
    lab.line("create data --level 50 --chunk 16K --file-size 16M a0 a1 a2 b0 b1 b2").expect(0);
    let image = noise(8, 24 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["--scan", "."]);
    assert_eq!(server.ready["arrays"][0]["level"], "raid50");
    // Two data members of 16 KiB: the outer array places 32 KiB on a span before the next one.
    let array = lab.show("data");
    assert_eq!((&array["chunk_bytes"], &array["outer_chunk_bytes"]), (&16384.into(), &32768.into()));
    let text = lab.line("show data").expect(0).text();
    assert!(text.contains("left-symmetric, chunk 16 KiB, 32 KiB to a span"), "{text}");
    lab.line("fail data slot:1.2").expect(0);
    lab.line("fail data slot:2").refused(65, &["slot:SPAN.SLOT"]);
    let state = lab.wait_for("data", |array| {
        array["spans"][1]["members"][2]["state"] == "faulty"
            || array["spans"][1]["members"].to_string().contains("faulty")
    });
    assert_eq!((&state["health"], &state["survives"]), (&"degraded".into(), &0.into()));
    lab.line("fail data a0").expect(0);
    lab.line("remove data b2").expect(0);
    // The spans that need one get one each.
    lab.line("add data --file-size 16M n1 --span 1").expect(0);
    lab.line("add data --file-size 16M n0").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    lab.line("spare add data --file-size 16M n2").refused(65, &["--span"]);
    lab.line("spare add data --file-size 16M n2 --span 7").refused(65, &["spans 0 to 1"]);
    // The name that the option had before.
    lab.line("spare add data --file-size 16M n2 --leg 7").refused(65, &["spans 0 to 1"]);
    lab.line("check data --follow").expect(0);
    server.stop();
    let out = lab.line("copy-out a1 a2 n0 b0 b1 n1").expect(0).out;
    assert!(out[..image.len()] == image);
}

#[test]
fn raw_drives_and_arrays_in_memory_are_served() {
    let lab = Lab::new("raw");
    lab.drives(&["x", "y"], 4);
    lab.line("create one --level jbod x").expect(0);
    let server = lab.serve(&["one"]);
    assert_eq!(server.ready["arrays"][0]["size_bytes"], 4 << 20);
    assert_eq!(lab.line("list --json").json()["remembered"].as_array().map(Vec::len), Some(0), "it is served");
    server.stop();
    lab.line("create two --level jbod x y").expect(0);
    let server = lab.serve(&["two"]);
    let names: Vec<&str> = server.ready["arrays"]
        .as_array()
        .expect("arrays")
        .iter()
        .map(|a| a["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["two-0", "two-1"]);
    // The name given to `serve` shows the arrays that are served under it.
    let shown = lab.line("show two --wait 60").expect(0).text();
    assert!(shown.contains("two-0: jbod") && shown.contains("two-1: jbod") && shown.contains("/x"), "{shown}");
    let shown = lab.line("show two --json").expect(0).json();
    assert_eq!((&shown["served"], &shown["array"]), (&true.into(), &Value::Null));
    assert_eq!((&shown["arrays"][0]["name"], &shown["arrays"][1]["name"]), (&"two-0".into(), &"two-1".into()));
    server.stop();
    lab.line("show two").refused(4, &["two is not served", "openraid serve two"]);
    let server = lab.serve(&["--level", "6", "--name", "scratch", "ram:8M", "ram:8M", "ram:8M", "ram:8M"]);
    assert_eq!(server.ready["arrays"][0]["health"], "optimal");
    lab.line("fail scratch slot:1").expect(0);
    lab.line("check scratch").expect(0);
    lab.line("stop --all").expect(0);
    assert_eq!(server.end().0, 0);
    assert_eq!(
        lab.line("list --json").json()["remembered"].as_array().map(Vec::len),
        Some(2),
        "memory is not remembered"
    );
}

#[test]
fn a_raw_drive_that_is_missing_is_offline_though_another_name_begins_with_its_name() {
    let lab = Lab::new("raw-names");
    lab.drives(&["x", "y", "z"], 4);
    lab.line("create data --level jbod x").expect(0);
    lab.line("create database --level jbod y z").expect(0);
    fs::remove_file(lab.path("x")).expect("it was there");
    let server = lab.serve(&["data", "database"]);
    let served = server.ready["arrays"].as_array().expect("arrays").len();
    let offline = server.ready["offline"].as_array().expect("a list").clone();
    assert_eq!((served, offline.len(), &offline[0]["name"]), (2, 1, &"data".into()), "{offline:?}");
    let reason = offline[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("x"), "{reason}");
    server.stop();
}

#[test]
fn a_running_server_takes_an_array_over() {
    let lab = Lab::new("handed-over");
    lab.line("create one --level 1 --file-size 8M a0 a1").expect(0);
    lab.line("create two --level 1 --file-size 8M b0 b1").expect(0);
    lab.line("assemble two --forget").expect(0);
    let server = lab.serve(&["one"]);
    let ran = lab.line("assemble b0 b1").expect(0);
    assert!(ran.text().contains("served now: two"), "{}", ran.text());
    assert_eq!(lab.show("two")["health"], "optimal");
    // The same again: they are in use now.
    let again = lab.line("assemble b0 b1").expect(65);
    assert!(again.text().contains("locked by") && !again.text().contains("scan DIR"), "{}", again.text());
    lab.line("stop one").expect(0);
    lab.line("stop two").expect(0);
    assert_eq!(server.end().0, 0);
}

#[test]
fn doctor_waits_for_all_members_that_a_server_holds_at_once() {
    let lab = Lab::new("held");
    lab.line("create data --level 6 --chunk 64K --file-size 8M --assume-clean m0 m1 m2 m3 m4 m5 m6 m7").expect(0);
    let server = lab.serve(&["data"]);
    // Each member is tried again for some time, and all share one time limit. If they were tried one after the other,
    // the last ones would not even be reported as locked.
    let text = lab.line("doctor m0 m1 m2 m3 m4 m5 m6 m7").expect(4).text();
    assert_eq!(text.matches(": locked by process ").count(), 8, "{text}");
    assert!(text.contains("nothing was tried: no member could be opened"), "{text}");
    let text = lab.line("doctor data").expect(4).text();
    assert!(
        text.contains("nothing was tried: a server has the members; it shows their state: openraid show data"),
        "{text}"
    );
    server.stop();
}

#[test]
fn a_second_array_of_one_name_is_served_under_another() {
    let lab = Lab::new("names");
    lab.line("create data --level 1 --file-size 8M a0 a1").expect(0);
    lab.line("assemble data --forget").expect(0);
    lab.line("create data --level 1 --file-size 8M b0 b1").expect(0);
    let server = lab.serve(&["a0", "a1", "b0", "b1"]);
    let names: Vec<&str> = server.ready["arrays"]
        .as_array()
        .expect("arrays")
        .iter()
        .map(|a| a["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names[0] == "data" && names[1].starts_with("data-"), "{names:?}");
    server.stop();
}

#[test]
fn an_array_left_over_inside_another_one_does_not_hide_it() {
    let lab = Lab::new("left-over");
    lab.line("create old --level 50 --chunk 16K --file-size 16M a0 a1 a2 b0 b1 b2").expect(0);
    lab.line("erase a0 a1 a2 b0 b1 b2 --yes").expect(0);
    assert_eq!(lab.line("list --json").json()["remembered"].as_array().map(Vec::len), Some(0));
    // Only superblocks were wiped: there is data on the drives.
    lab.line("create new --level 5 --chunk 16K a0 a1 a2 --yes --overwrite").expect(0);
    let server = lab.serve(&["new"]);
    assert_eq!(server.ready["arrays"][0]["name"], "new");
    server.stop();
    // A client's own stripe inside an array must not be assembled. The message has the remedy.
    lab.line("create outer --level 50 --chunk 16K --file-size 16M c0 c1 c2 e0 e1 e2").expect(0);
    lab.line("copy-out c0 c1 c2").refused(2, &["only 1 of the 2 spans", "--flat"]);
    lab.line("copy-out --flat c0 c1 c2").expect(0);
    let server = lab.serve(&["--flat", "c0", "c1", "c2"]);
    assert_eq!(server.ready["arrays"][0]["name"], "outer.0");
    server.stop();
}

#[test]
fn the_control_socket_survives_whatever_is_said_to_it() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    let (lab, server, _) = served("");
    let path = server.ready["control"].as_str().expect("a path").to_owned();
    let mode = fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut all: Vec<Vec<u8>> =
        vec![b"\n".to_vec(), b"{}\n".to_vec(), vec![0xff; 100], b"{\"v\":2".to_vec(), Vec::new()];
    all.push(b"{\"v\":2,\"do\":\"fail\",\"array\":\"data\"}\n".to_vec());
    all.push(vec![b'['; 2 << 20]);
    all.push([&b"{\"v\":2,\"do\":\"show\",\"array\":\""[..], &vec![b'x'; 900 << 10], b"\"}\n"].concat());
    for bytes in all {
        let mut stream = UnixStream::connect(&path).expect("the server listens");
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"{\"v\":2,\"error\""), "{}", String::from_utf8_lossy(&answer));
    }
    // Many silent clients do not hold up a client that sends a request.
    let _silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).expect("the server listens")).collect();
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
    assert!(!std::path::Path::new(&path).exists(), "the socket is gone with its server");
}

/// Both sides of every place where 32 bits of sectors end: in a member, and in the array.
#[test]
fn arrays_and_members_beyond_two_tib_are_served_to_their_last_byte() {
    if !has("qemu-io") {
        return support::missing("qemu-io is not installed (package qemu-utils)");
    }
    const TIB: u64 = 1 << 40;
    for (create, data_members) in [("--level 5 --chunk 512K", 2), ("--level linear", 3), ("--level 10 --chunk 64K", 1)]
    {
        let lab = Lab::new("large");
        let names = ["m0", "m1", "m2"];
        lab.drives(&names, 3 << 20);
        let made =
            lab.line(&format!("create data {create} --assume-clean {} --json", names.join(" "))).expect(0).json();
        let size = made["size_bytes"].as_u64().expect("a size");
        assert!(size > 2 * TIB * data_members, "{create}: {size}");
        let mut places: Vec<u64> =
            (1..=3 * data_members).map(|tib| tib * TIB).filter(|at| at + 65_536 < size).collect();
        places.extend([0, size - 65_536]);
        let server = lab.serve(&["data"]);
        let uri = format!("nbd+unix:///data?socket={}", lab.path("nbd.sock").display());
        let io = |words: &[String]| {
            let mut command = Command::new("qemu-io");
            command.args(["-f", "raw"]);
            for word in words {
                command.args(["-c", word]);
            }
            let ran = command.arg(&uri).output().expect("qemu-io runs");
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(ran.status.success() && !said.contains("failed"), "{create}: {said}");
        };
        let at = |place: u64| place.saturating_sub(32_768).min(size - 65_536);
        let pattern = |number: usize| 1 + number % 250;
        let each = |verb: &str| -> Vec<String> {
            (0..)
                .zip(&places)
                .map(|(number, place)| format!("{verb} -P {} {} 64k", pattern(number), at(*place)))
                .collect()
        };
        io(&each("write"));
        io(&each("read"));
        server.stop();
        // The same while degraded, from the members' content.
        let few = if create.contains("linear") { &names[..] } else { &names[1..] };
        let server = lab.serve(few);
        io(&each("read"));
        server.stop();
    }
}

/// Every view of the array shows a volatile cache, and a user must confirm the setting.
fn is_said_and_confirmed(lab: &Lab, server: &Server) {
    assert!(lab.line("show data").expect(0).text().contains("VOLATILE: unflushed data is lost"));
    assert!(lab.line("show data --mdstat").expect(0).text().contains("write cache: VOLATILE"));
    // It is an alarm, which a user may acknowledge, and which ends with the cache.
    lab.wait_for_alarms(|text| text.contains("data: write cache VOLATILE"));
    lab.line("alarms acknowledge data:CacheVolatile").expect(0);
    let alarm = |text: &str| text.contains("write cache VOLATILE");
    assert!(alarm(&lab.line("alarms").text()));
    lab.line("set data write.cache=through").expect(0);
    lab.wait_for_alarms(|text| !alarm(text));
    let control = std::path::PathBuf::from(server.ready["control"].as_str().expect("a path"));
    let ask = |yes: &str| {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&control).expect("the server listens");
        let set = format!(r#"{{"v":2,"do":"set","array":"data","settings":[["write.cache","volatile"]]{yes}}}"#);
        writeln!(stream, "{set}").expect("it takes it");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("it answers");
        line
    };
    assert!(ask("").contains("add --yes"), "without a confirmation on the socket either");
    assert_eq!(lab.show("data")["settings"]["write_cache"], "through");
    assert!(ask(r#","yes":true"#).contains("write.cache=volatile"));
}

/// 41 MiB and 5 KiB were written, and flushed.
fn figures_fit(lab: &Lab, explained: &Value) {
    let cache = |key: &str| explained["cache"][key].as_u64().unwrap_or_else(|| panic!("{key}: {explained:#}"));
    let flushed = cache("written_bytes") - cache("merged_bytes");
    assert_eq!((cache("size_bytes"), cache("destaged_bytes")), (8 << 20, flushed), "all of it was flushed");
    assert_eq!(cache("written_bytes"), (41 << 20) + (4 << 10) + 1024);
    assert!(cache("read_hit_bytes") > 0 && cache("destaged_units") > 0);
    let amplified = explained["write_amplification"].as_array().expect("a list");
    assert_eq!((amplified.len(), &amplified[0]["slot"]), (4, &0.into()));
    let text = lab.line("explain data").expect(0).text();
    for word in ["hit rate", "replaced dirty data", "PER HOST BYTE"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_volatile_cache_takes_writes_answers_reads_and_is_empty_after_a_stop() {
    if !has("qemu-io") {
        return support::missing("qemu-io is not installed (package qemu-utils)");
    }
    let lab = Lab::new("cached");
    lab.line("create data --level 5 --chunk 64K --file-size 32M --assume-clean d0 d1 d2 d3").expect(0);
    let server = lab.serve(&["data"]);
    lab.line("set data write.cache=volatile --yes").refused(65, &["--cache"]);
    server.stop();
    let server = lab.serve(&["data", "--cache", "8M"]);
    lab.line("set data write.cache=volatile").refused(65, &["--yes", "flush"]);
    lab.line("set data write.cache=volatile --yes").expect(0);
    assert_eq!(lab.show("data")["settings"]["write_cache"], "volatile");
    is_said_and_confirmed(&lab, &server);
    let uri = server.uri();
    let io = |words: &[&str]| {
        let mut command = Command::new("qemu-io");
        command.args(["-f", "raw", "-t", "writeback"]);
        for word in words {
            command.args(["-c", word]);
        }
        let ran = command.arg(&uri).output().expect("qemu-io runs");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && !said.contains("failed"), "{said}");
    };
    // More than the cache holds, small and large, over each other, read back at once.
    io(&["write -P 1 0 40M", "write -P 2 1M 4k", "write -P 3 20M 1M", "write -P 4 20991k 1k", "flush"]);
    io(&["read -P 2 1M 4k", "read -P 3 20M 500k", "read -P 4 20991k 1k", "read -P 1 2M 18M"]);
    let explained = lab.line("explain data --json").expect(0).json();
    let reasons = explained["reasons"].as_array().expect("reasons").clone();
    let count = |name: &str| {
        reasons
            .iter()
            .find(|entry| entry["reason"] == name)
            .map_or(0, |entry| entry["count"].as_u64().expect("a count"))
    };
    assert!(count("WriteCached") > 0 && count("ReadCached") > 0 && count("FullStripe") > 100, "{explained:#}");
    figures_fit(&lab, &explained);
    io(&["write -P 5 3M 64k"]);
    let news = server.stop();
    let warned = |line: &Value| {
        line["news"]["text"].as_str().is_some_and(|text| text.contains("-> volatile; write cache VOLATILE"))
    };
    assert_eq!(news.iter().filter(|line| warned(line)).count(), 2, "{news:?}");
    let out = lab.line("copy-out data").expect(0).out;
    let is =
        |from: usize, len: usize, byte: u8| assert!(out[from..from + len].iter().all(|value| *value == byte), "{from}");
    is(0, 1 << 20, 1);
    is(1 << 20, 4096, 2);
    is(3 << 20, 64 << 10, 5);
    is(20 << 20, 500 << 10, 3);
    is(20_991 << 10, 1024, 4);
}

/// A value of the kernel's status of the server's process, in KiB.
fn figure_of(server: &Server, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it lives");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    line.trim().strip_suffix(" kB").and_then(|number| number.parse().ok()).expect("KiB")
}

#[test]
fn memory_of_the_cache_is_taken_with_its_use_only() {
    let lab = Lab::new("served-cache-memory");
    let array = ["--level", "1", "--name", "scratch", "ram:8M", "ram:8M", "--memory", "32M"];
    let figures = |cache: &str| {
        let server = lab.serve(&[&array[..], &["--cache", cache]].concat());
        let figures = ["VmPin:", "VmRSS:"].map(|name| figure_of(&server, name));
        server.stop();
        figures
    };
    let ([pinned, _], [more_pinned, resident]) = (figures("1M"), figures("512M"));
    // Memory that commands point to may be pinned: the size of --memory, and a huge page of rounding. The cache is not
    // pinned.
    assert!(pinned.max(more_pinned) <= 34 << 10, "{pinned} KiB are pinned, and {more_pinned} with a larger cache");
    assert!(resident < 256 << 10, "{resident} KiB are taken at the start with an unused cache of 512 MiB");
}

#[test]
fn a_socket_for_clients_in_the_folder_of_servers_is_no_second_server() {
    let lab = Lab::new("one-server");
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    let first = lab.serve(&["data"]);
    let socket = first.ready["control"].as_str().expect("a path").to_owned();
    let beside = std::path::Path::new(&socket).with_file_name("nbd.sock").display().to_string();
    first.stop();
    let server = Server::started(&mut lab.command(&["serve", "data", "--json", "--nbd-unix", &beside]));
    let server = server.expect("ready");
    lab.line("config show").expect(0);
    lab.line("list").expect(0).says(&["data", "optimal"]);
    server.stop();
}

#[test]
fn an_array_that_is_made_under_a_running_server_is_served_by_the_line_that_create_prints() {
    let lab = Lab::new("made-under");
    lab.line("create one --level 1 --assume-clean --file-size 16M a0 a1").expect(0);
    let server = lab.serve(&["one"]);
    let made = lab.line("create two --level 1 --assume-clean --file-size 16M b0 b1").expect(0).text();
    let line = made.lines().find_map(|line| line.strip_prefix("the running server serves it after: openraid "));
    lab.line(line.unwrap_or_else(|| panic!("no line in {made}"))).expect(0).says(&["served now: two"]);
    assert_eq!(lab.show("two")["health"], "optimal");
    server.stop();
}
