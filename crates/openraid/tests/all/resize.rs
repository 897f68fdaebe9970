//! Larger drives: an array that is served uses their room when the last smaller one has been replaced. An array whose end an
//! administrator has cut off uses less of each member, or fewer members.

use crate::support::client::Client;
use crate::support::{noise, Lab, Server, WRITE};

fn served() -> (Lab, Server, Vec<u8>) {
    let lab = Lab::new("resize");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let size = lab.line("show data --json").json()["array"]["size_bytes"].as_u64().expect("a size");
    let image = noise(9, usize::try_from(size).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    (lab, server, image)
}

#[test]
fn larger_drives_give_their_room_when_the_last_small_one_is_replaced() {
    let (lab, server, image) = served();
    let larger = ["e0", "e1", "e2"];
    lab.drives(&larger, 24);
    for (slot, new) in larger.iter().enumerate() {
        lab.line("reshape data --size max").refused(65, &["replace each smaller drive first"]);
        lab.line(&format!("replace data d{slot} --with {new}")).expect(0);
        lab.wait_for("data", |array| {
            let member = &array["members"][slot];
            array["task"].is_null() && member["state"] == "in-sync" && member["member"].to_string().contains(new)
        });
        lab.line(&format!("remove data d{slot}")).expect(0);
    }
    let plan = lab.line("reshape data --size max --plan --json").expect(0).json();
    let sizes = [&plan["from"], &plan["to"]].map(|shape| shape["size_bytes"].as_u64().expect("a size"));
    assert!(sizes[0] == image.len() as u64 && sizes[1] == sizes[0] + (16 << 20), "{plan:#}");
    lab.line("reshape data --size max").refused(65, &["--yes"]);
    lab.line("reshape data --size max --yes").expect(0).says(&["a resync of the new part follows"]);
    lab.wait_for("data", |array| array["size_bytes"] == sizes[1] && array["task"].is_null());
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.size(), sizes[1]);
    let end = noise(11, 65536);
    assert_eq!(client.ask(WRITE, sizes[1] - 65536, &end), 0);
    lab.line("check data --follow").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content[..image.len()] == image && content[content.len() - end.len()..] == end, "the content has changed");
}

#[test]
fn an_array_is_cut_off_for_a_trial_and_then_made_smaller() {
    let (lab, server, image) = served();
    let socket = lab.path("nbd.sock");
    let whole = image.len() as u64;
    lab.line("reshape data --size 8M").refused(65, &["--array-size 16384K", "nothing is lost yet"]);
    lab.line("reshape data --size 8M --plan")
        .expect(0)
        .says(&["FIRST: `openraid reshape data --array-size 16384K`", "no data of the array any longer"]);
    lab.line("reshape data --array-size 16M").refused(65, &["requests beyond that are refused", "--yes"]);
    lab.line("reshape data --array-size 99M --yes").refused(65, &["hosts can have"]);
    let mut old = Client::open(&socket, "data");
    lab.line("reshape data --array-size 16M --yes").expect(0).says(&["until it is served again", "--array-size max"]);
    assert_ne!(old.ask(WRITE, whole - 4096, &[1; 4096]), 0, "the end is cut off");
    assert_eq!(old.ask(WRITE, (16 << 20) - 4096, &image[(16 << 20) - 4096..16 << 20]), 0);
    assert_eq!(Client::open(&socket, "data").size(), 16 << 20);
    lab.line("reshape data --array-size max").expect(0).says(&["hosts have all of data again"]);
    assert_eq!(Client::open(&socket, "data").size(), whole);
    assert_eq!(old.ask(WRITE, whole - 4096, &image[image.len() - 4096..]), 0, "nothing was lost");

    lab.line("grow data -Z 16M --yes").expect(0);
    lab.line("reshape data --size 8M").refused(65, &["are lost for good", "--yes"]);
    lab.line("reshape data --size 8M --yes").expect(0).says(&["data has 16 MiB now"]);
    lab.wait_for("data", |array| array["size_bytes"] == 16 << 20 && array["shape"].is_null());
    lab.line("check data --follow").expect(0);
    lab.wait_for_events(|texts| {
        let has = |event: &str| texts.iter().any(|text| text.starts_with(&format!("{event:?}: \"data: ")));
        has("CapacityLimited") && has("ReshapeFinished")
    });
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content.len() == 16 << 20 && content[..] == image[..16 << 20], "the content has changed");
}

#[test]
fn an_array_gets_fewer_members_when_its_end_is_cut_off_and_there_is_room() {
    let lab = Lab::new("fewer");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3").expect(0);
    let server = lab.serve(&["data"]);
    let size = lab.show("data")["size_bytes"].as_u64().expect("a size");
    let image = noise(13, usize::try_from(size).expect("small"));
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    for (number, part) in image.chunks(1 << 20).enumerate() {
        assert_eq!(client.ask(WRITE, (number << 20) as u64, part), 0);
    }
    lab.line("reshape data --raid-devices 3 --plan").refused(65, &["(--size)"]);
    lab.line("reshape data --array-size 24M --yes").expect(0);
    lab.line("reshape data --size 8M --yes").expect(0);
    lab.wait_for("data", |array| array["size_bytes"] == 24 << 20 && array["shape"].is_null());
    lab.line("reshape data --raid-devices 3").refused(65, &["--array-size 16384K"]);
    lab.line("reshape data --array-size 16M --yes").expect(0);
    lab.line("reshape data --raid-devices 3 --yes").expect(0);
    lab.wait_for("data", |array| array["size_bytes"] == 16 << 20 && array["shape"].is_null());
    lab.line("check data --follow").expect(0);
    assert_eq!(lab.show("data")["members"][3]["state"], "spare");
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    assert!(content.len() == 16 << 20 && content[..] == image[..16 << 20], "the content has changed");
}

#[test]
fn a_size_without_meaning_and_other_wishes_with_it_are_refused() {
    let (lab, server, _) = served();
    lab.line("reshape data --size ten").refused(64, &["--size ten"]);
    lab.line("reshape data --size 8193K").refused(65, &["ask for 8 MiB"]);
    lab.line("reshape data --size 10G").refused(65, &["the smallest has"]);
    lab.line("reshape data --size max --chunk 16K").refused(64, &["--chunk"]);
    lab.line("reshape data --array-size 8M --size 8M").refused(64, &["--size"]);
    server.stop();
}

#[test]
fn a_linear_array_gets_drives_at_its_end_while_a_client_writes() {
    let lab = Lab::new("linear");
    lab.line("create data --level linear --file-size 16M d0 d1").expect(0);
    lab.drives(&["e0", "e1", "e2"], 24);
    let server = lab.serve(&["data"]);
    let socket = lab.path("nbd.sock");
    let size = lab.show("data")["size_bytes"].as_u64().expect("a size");
    let mut client = Client::open(&socket, "data");
    let end = noise(17, 65536);
    assert_eq!(client.ask(WRITE, size - 65536, &end), 0);
    lab.line("add data e0").refused(65, &["linear has no spares", "--members"]);
    lab.line("reshape data --raid-devices 3").refused(65, &["at its end (--members DRIVE)"]);
    lab.line("reshape data --members e0 --chunk 128K").refused(65, &["at its end (--members DRIVE)"]);
    let plan = lab.line("reshape data --members e0 --plan").expect(0);
    plan.says(&["e0 gets its superblock, and then the others name its slot", "cannot be taken out again"]);
    lab.line("reshape data --members e0").refused(65, &["--yes"]);
    lab.line("reshape data --members e0 e1 --yes").expect(0).says(&["data has"]);
    let now = lab.show("data");
    let larger = now["size_bytes"].as_u64().expect("a size");
    assert!(
        larger > size + (40 << 20) && now["members"].as_array().is_some_and(|members| members.len() == 4),
        "{now:#}"
    );
    let mut new = Client::open(&socket, "data");
    assert_eq!(new.size(), larger);
    assert_eq!(new.ask(WRITE, larger - 65536, &end), 0);
    assert_eq!(client.ask(WRITE, 0, &end), 0);
    server.stop();
    // The registry names the drives.
    let server = lab.serve(&["data"]);
    lab.line("reshape data --members e2 --yes").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(0).out;
    let at = |offset: u64| {
        let offset = usize::try_from(offset).expect("small");
        content[offset..offset + end.len()] == end
    };
    assert!(
        content.len() as u64 > larger && at(0) && at(size - 65536) && at(larger - 65536),
        "the content has changed"
    );
}

#[test]
fn a_single_drive_becomes_a_mirror_and_a_raw_drive_says_why_it_cannot() {
    let lab = Lab::new("single");
    lab.line("create data --level single --file-size 16M d0").expect(0);
    lab.drives(&["e0", "e1", "raw0"], 16);
    lab.line("create raw --level jbod raw0").expect(0);
    let server = lab.serve(&["data", "raw"]);
    let size = lab.show("data")["size_bytes"].as_u64().expect("a size");
    let image = noise(19, 1 << 20);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.ask(WRITE, size - image.len() as u64, &image), 0);
    lab.line("reshape raw --members e1 --yes").refused(65, &["its data has all of it", "openraid create"]);
    lab.line("add data e0").refused(65, &["has no spares", "openraid reshape data --members", "makes it a mirror"]);
    lab.line("reshape data --members e0 --plan").expect(0);
    lab.line("reshape data --members e0 --yes").expect(0);
    let two = |array: &serde_json::Value| {
        array["health"] == "optimal" && array["task"].is_null() && array["members"][1]["state"] == "in-sync"
    };
    let now = lab.wait_for("data", two);
    assert_eq!((&now["level"], &now["size_bytes"]), (&"raid1".into(), &size.into()), "{now:#}");
    lab.line("fail data d0 --yes").expect(0);
    server.stop();
    let content = lab.line("copy-out data").expect(1).out;
    assert!(content[content.len() - image.len()..] == image, "the content has changed");
}
