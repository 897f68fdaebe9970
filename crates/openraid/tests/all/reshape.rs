//! Changes of shape of arrays that are served: the plan, more members under writes, a kill in the middle, another chunk, and refusals.

use crate::support::client::Client;
use crate::support::{noise, Lab, Server, WRITE};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// RAID 5 of three members with known content, served.
fn served() -> (Lab, Server, Vec<u8>) {
    let lab = Lab::new("reshape");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 48M d0 d1 d2").expect(0);
    let size = lab.line("show data --json").json()["array"]["size_bytes"].as_u64().expect("a size");
    let image = noise(5, usize::try_from(size).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    (lab, server, image)
}

fn is_over(array: &Value) -> bool {
    array["shape"].is_null() && array["task"].is_null() && array["health"] == "optimal"
}

/// Write on both sides of the boundary, until a part of the data has moved durably.
fn write_until_moved(lab: &Lab, client: &mut Client, image: &mut [u8]) {
    let mut writes = 0;
    while lab.show("data")["shape"]["recorded_bytes"].as_u64().is_some_and(|recorded| recorded < 8 * MIB) {
        for block in [writes % 64, 12 * 256 + writes % 64, client.size() / 4096 - 1 - writes % 64] {
            let bytes = noise(writes + block, 4096);
            assert_eq!(client.ask(WRITE, block * 4096, &bytes), 0);
            let at = usize::try_from(block * 4096).expect("small");
            image[at..at + 4096].copy_from_slice(&bytes);
        }
        writes += 1;
    }
}

/// Each of these events of the array is in the log.
fn wait_for_news(lab: &Lab, events: [&str; 2]) {
    lab.wait_for_events(|texts| {
        let has = |event| texts.iter().any(|text| text.starts_with(&format!("{event:?}: \"data: ")));
        events.into_iter().all(has)
    });
}

/// After the end and a clean stop: four full members, which are remembered and hold everything.
fn is_whole(lab: &Lab, image: &[u8], end: &[u8], size: u64) {
    let listed = lab.line("list --json").expect(0).json();
    let members = listed["remembered"][0]["members"].as_array().expect("members").len();
    assert_eq!(members, 4, "{listed:#}");
    let content = lab.line("copy-out data").expect(0).out;
    assert_eq!(content.len() as u64, size);
    assert!(content[..image.len()] == *image, "the content has changed");
    assert!(content[content.len() - end.len()..] == *end);
    let content = lab.line("copy-out d0 d2 d3").expect(1).out;
    assert!(content[..image.len()] == *image, "the content has changed");
    let server = lab.serve(&["data"]);
    assert_eq!(server.ready["left_out"].as_array().map(Vec::len), Some(0), "{}", server.ready);
    server.stop();
}

#[test]
fn a_plan_says_what_would_happen_and_changes_nothing() {
    let (lab, server, image) = served();
    let size = image.len() as u64;
    lab.line("set data rebuild.rate=4M").expect(0);
    let plan = lab.line("reshape data --members d3 --file-size 48M --plan --json").expect(0).json();
    assert_eq!((&plan["joins"][0]["slot"], &plan["joins"][0]["is_spare"]), (&3.into(), &false.into()), "{plan:#}");
    assert_eq!((&plan["to"]["members"], &plan["survives"]), (&4.into(), &1.into()));
    assert!(plan["seconds"].as_u64().is_some_and(|seconds| seconds > 3), "{plan:#}");
    assert_eq!(plan["to"]["size_bytes"], size / 2 * 3);
    lab.line("reshape data --members d3 --file-size 48M --plan")
        .expect(0)
        .says(&["Begin it with `openraid reshape data"]);
    lab.line("reshape data --members d3 --file-size 48M").refused(65, &["raid5 of 4 members", "--yes"]);
    assert!(!lab.path("d3").exists());
    assert_eq!(lab.show("data")["members"].as_array().map(Vec::len), Some(3));
    server.stop();
}

#[test]
fn an_array_grows_under_writes_and_a_kill_and_new_clients_get_the_size() {
    let (lab, server, mut image) = served();
    let socket = lab.path("nbd.sock");
    lab.line("set data rebuild.rate=4M").expect(0);
    let mut old = Client::open(&socket, "data");
    let (before, after) = (old.size(), old.size() / 2 * 3);
    assert_eq!(before, image.len() as u64);
    let begun = lab.line("grow data --add d3 --raid-devices 4 --file-size 48M --yes").expect(0);
    assert!(begun.text().contains("is the member of slot 3"), "{}", begun.text());
    let now = lab.show("data");
    assert_eq!((&now["shape"]["from"]["members"], &now["shape"]["to"]["members"]), (&3.into(), &4.into()));
    assert_eq!(now["task"]["kind"], "reshape");
    lab.line("check data").refused(65, &["reshape"]);
    lab.line("show data --mdstat").expect(0).says(&["reshape ="]);
    write_until_moved(&lab, &mut old, &mut image);
    lab.line("pause data").expect(0);
    assert_eq!(lab.show("data")["task"]["paused"], true);
    lab.wait_for_alarms(|text| text.contains("reshape is paused"));
    lab.line("resume data").expect(0);
    wait_for_news(&lab, ["ReshapePaused", "ReshapeContinued"]);
    server.kill();

    // The members and the registry are enough to go on.
    let shown = lab.line("show data --json").json();
    assert!(shown["array"]["shape"]["recorded_bytes"].as_u64().is_some_and(|done| done >= 8 * MIB), "{shown:#}");
    let server = lab.serve(&["data"]);
    let mut old = Client::open(&socket, "data");
    assert_eq!(old.size(), before, "the new size comes at the end");
    lab.line("set data rebuild.rate=none").expect(0);
    let grown = lab.wait_for("data", is_over);
    assert_eq!((&grown["size_bytes"], &grown["other_sizes"][0]["size_bytes"]), (&after.into(), &before.into()));
    lab.line("show data").says(&["1 client of"]);
    assert_eq!(old.ask(WRITE, 0, &image[..4096]), 0, "a connected client works on");
    let mut new = Client::open(&socket, "data");
    assert_eq!(new.size(), after);
    let end = noise(9, 4096);
    assert_eq!(new.ask(WRITE, after - 4096, &end), 0);
    drop((old, new));
    lab.wait_for("data", |array| array["other_sizes"].as_array().is_some_and(Vec::is_empty));
    wait_for_news(&lab, ["ReshapeBegun", "ReshapeFinished"]);
    lab.line("check data --follow").expect(0);
    server.stop();
    is_whole(&lab, &image, &end, after);
}

#[test]
fn the_configuration_file_must_name_new_members() {
    let lab = Lab::new("reshape-file");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.configure("[arrays.data]\nmembers = [\"@/d0\", \"@/d1\", \"@/d2\"]\n");
    let server = lab.serve_configured();
    let begun = lab.line("reshape data --members d3 --file-size 16M --yes --follow").expect(0);
    assert!(begun.text().contains("openraid.toml names the members of data: add"), "{}", begun.text());
    lab.wait_for("data", is_over);
    server.stop();
    lab.configure("[arrays.data]\nmembers = [\"@/d0\", \"@/d1\", \"@/d2\", \"@/d3\"]\n");
    let server = lab.serve_configured();
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn another_chunk_and_layout_need_no_drive() {
    let (lab, server, image) = served();
    lab.line("reshape data --chunk 128K --layout ra --yes --follow").expect(0);
    let changed = lab.wait_for("data", is_over);
    assert_eq!((&changed["chunk_bytes"], &changed["layout"]), (&(128 << 10).into(), &"right-asymmetric".into()));
    assert_eq!(changed["size_bytes"], image.len() as u64);
    lab.line("check data --follow").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content == image, "the content has changed");
}

/// The level, the number of members, and spares of an array that is at rest.
fn shape_of(lab: &Lab) -> (String, u64, usize) {
    let array = lab.show("data");
    let spares = array["members"].as_array().expect("a list").iter().filter(|member| member["state"] == "spare");
    (array["level"].as_str().expect("a word").into(), array["slots"].as_u64().expect("a number"), spares.count())
}

#[test]
fn levels_change_in_steps_and_back() {
    let (lab, server, image) = served();
    let is_there = |level: &'static str| move |array: &Value| is_over(array) && array["level"] == level;
    let plan = lab.line("reshape data --level 6 --members d3 --file-size 48M --plan --json").expect(0).json();
    assert_eq!((&plan["to"]["level"], &plan["to"]["members"]), (&"raid6".into(), &4.into()), "{plan:#}");
    lab.line("reshape data --level 6 --members d3 --file-size 48M --yes --follow").expect(0);
    lab.wait_for("data", is_there("raid6"));
    lab.line("check data --follow").expect(0);
    assert_eq!(shape_of(&lab), ("raid6".into(), 4, 0));

    // Q comes to the last member, and then the level changes by itself; a restart in between loses nothing.
    let back = lab.line("reshape data --level 5 --plan --json").expect(0).json();
    assert_eq!((&back["to"]["level"], &back["to"]["members"]), (&"raid5".into(), &3.into()), "{back:#}");
    lab.line("set data rebuild.rate=4M").expect(0);
    lab.line("reshape data --level 5 --yes").expect(0);
    lab.wait_for("data", |array| array["shape"]["moved_bytes"].as_u64() > Some(0));
    server.kill();
    let server = lab.serve(&["data"]);
    lab.line("set data rebuild.rate=none").expect(0);
    lab.wait_for("data", is_there("raid5"));
    lab.line("check data --follow").expect(0);
    assert_eq!(shape_of(&lab), ("raid5".into(), 3, 1));
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content == image, "the content has changed");
}

#[test]
fn a_cancelled_change_moves_the_data_back() {
    let (lab, server, image) = served();
    lab.line("reshape data --cancel").refused(65, &["does not change its shape"]);
    lab.line("set data rebuild.rate=4M").expect(0);
    lab.line("reshape data --members d3 --file-size 48M --yes").expect(0);
    lab.wait_for("data", |array| array["shape"]["recorded_bytes"].as_u64() > Some(0));
    lab.line("reshape data --cancel").expect(0).says(&["turns around"]);
    lab.wait_for("data", |array| array["shape"]["direction"] == "backwards");
    lab.line("set data rebuild.rate=none").expect(0);
    lab.wait_for("data", is_over);
    wait_for_news(&lab, ["ReshapeCancelled", "ReshapeFinished"]);
    assert_eq!(shape_of(&lab), ("raid5".into(), 3, 1));
    lab.line("check data --follow").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content == image, "the content has changed");
}

#[test]
fn a_mirror_gets_a_copy_and_becomes_raid_5() {
    let lab = Lab::new("reshape-mirror");
    lab.line("create data --level 1 --assume-clean --file-size 24M d0 d1").expect(0);
    let size = lab.line("show data --json").json()["array"]["size_bytes"].as_u64().expect("a size");
    let image = noise(7, usize::try_from(size).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    lab.line("reshape data --raid-devices 3 --members d2 --file-size 24M --yes").expect(0);
    lab.wait_for("data", is_over);
    assert_eq!(shape_of(&lab), ("raid1".into(), 3, 0));
    lab.line("check data --follow").expect(0);
    lab.line("reshape data --level 5 --yes").expect(0);
    lab.wait_for("data", |array| is_over(array) && array["level"] == "raid5" && array["slots"] == 3);
    assert_eq!(shape_of(&lab), ("raid5".into(), 3, 0));
    lab.line("check data --follow").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content.len() >= image.len() * 2 && content[..image.len()] == image, "the content has changed");
}

#[test]
fn what_cannot_be_is_refused_with_what_would_help() {
    let (lab, server, image) = served();
    let names = ["d0", "d1", "d2"];
    lab.line("reshape data").refused(64, &["--members"]);
    lab.line("reshape data --raid-devices 4").refused(65, &["needs 1 more drive", "0 spares", "add 1"]);
    lab.line("reshape data --raid-devices 2").refused(65, &["fewer members", "no room", "--size"]);
    lab.line("reshape data --raid-devices 3").refused(65, &["has this shape already"]);
    lab.line("reshape data --level 6").refused(65, &["needs 1 more drive", "0 spares"]);
    lab.line("reshape data --level 10").refused(65, &["RAID 5", "new array"]);
    lab.line("reshape data --level 7").refused(64, &["known levels"]);
    lab.drives(&["small"], 16);
    lab.line("reshape data --members small --yes").refused(65, &["small", "too small"]);
    lab.line("reshape data --members d1 --yes").refused(65, &["d1"]);
    lab.line("reshape nothing --raid-devices 4").refused(65, &["nothing"]);
    lab.line("fail data d1").expect(0);
    lab.line("reshape data --members d9 --file-size 48M --yes").refused(65, &["members are missing"]);
    assert!(!lab.path("d9").exists());
    server.stop();
    lab.line("reshape data --raid-devices 4").refused(4, &["is not served", "openraid serve data"]);
    assert!(names.iter().all(|name| lab.path(name).exists()));
    let content = lab.line("copy-out data").expect(1).out;
    assert!(content[..image.len()] == image, "the content has changed");
}
