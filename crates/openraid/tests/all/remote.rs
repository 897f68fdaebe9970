//! Members that are exports of another server: made, served, failed and copied like files.

use crate::support;

use crate::support::client::Client;
use crate::support::{noise, Lab, FLUSH, WRITE};

#[test]
fn an_array_over_remote_members_is_made_filled_served_and_loses_one() {
    let far = Lab::new("far");
    far.drives(&["x", "y", "z"], 8);
    far.line("create drives --level jbod x y z").expect(0);
    let drives = far.serve(&["drives"]);
    let uris: Vec<String> = drives.ready["arrays"]
        .as_array()
        .expect("arrays")
        .iter()
        .map(|array| array["addresses"][0].as_str().expect("an address").to_owned())
        .collect();
    assert_eq!(uris.len(), 3);
    let near = Lab::new("near");
    let [x, y, z] = [&uris[0], &uris[1], &uris[2]].map(String::as_str);
    near.run(&["create", "data", "--level", "5", "--chunk", "64K", x, y, z]).expect(0);
    let image = noise(4, 5 << 20);
    near.pipe(&["copy-in", "data"], &image).expect(0);
    let examined = near.run(&["examine", y, "--json"]).expect(0).json();
    assert_eq!(examined["members"][0]["superblock"]["array"], "data");
    near.run(&["create", "other", "--level", "1", x, x]).refused(65, &["twice"]);
    assert!(near.run(&["copy-out", x, z]).expect(1).out[..image.len()] == image);
    let server = near.serve(&["data"]);
    near.run(&["fail", "data", y]).expect(0);
    near.wait_for("data", |array| array["health"] == "degraded");
    near.run(&["remove", "data", y]).expect(0);
    near.line("add data --file-size 8M local").expect(0);
    near.wait_for("data", |array| array["health"] == "optimal");
    server.stop();
    assert!(near.run(&["copy-out", x, "local"]).expect(1).out[..image.len()] == image);
    near.run(&["erase", y, "--yes"]).expect(0);
    near.run(&["examine", y]).expect(2);
    drives.stop();
}

#[test]
fn a_remote_server_that_goes_away_costs_a_member_and_no_data() {
    let far = Lab::new("far-away");
    far.drives(&["x"], 8);
    far.line("create drive --level jbod x").expect(0);
    let drive = far.serve(&["drive"]);
    let uri = drive.uri();
    let near = Lab::new("near-by");
    near.drives(&["y"], 8);
    near.run(&["create", "data", "--level", "1", &uri, "y"]).expect(0);
    let image = noise(6, 3 << 20);
    near.pipe(&["copy-in", "data"], &image).expect(0);
    drive.kill();
    let found = near.line("doctor data").expect(1);
    assert!(found.text().contains("starts degraded"), "{}", found.text());
    let server = near.serve(&["data"]);
    assert_eq!(server.ready["arrays"][0]["health"], "degraded");
    server.stop();
    assert!(near.line("copy-out data").expect(1).out[..image.len()] == image);
}

#[test]
fn the_outage_and_the_return_of_a_remote_member_are_reported() {
    let far = Lab::new("far-restart");
    far.drives(&["x"], 8);
    far.line("create drive --level jbod x").expect(0);
    let drive = far.serve(&["drive"]);
    let uri = drive.uri();
    let near = Lab::new("near-restart");
    near.drives(&["y"], 8);
    near.run(&["create", "data", "--level", "1", "--assume-clean", &uri, "y"]).expect(0);
    let mut server = near.serve(&["data"]);
    // Answered and not flushed: it is written again after the return.
    support::ask(&near, &server, &[(WRITE, 4096, &[7; 4096])]);
    drive.kill();
    server.wait_for_news("RemoteLost", 1);
    let drive = far.serve(&["drive"]);
    server.wait_for_news("RemoteBack", 1);
    assert_eq!(near.show("data")["health"], "optimal");
    let news = server.stop();
    let texts: Vec<&str> = news.iter().filter_map(|line| line["news"]["text"].as_str()).collect();
    let lost = texts.iter().find(|text| text.contains("connection lost")).expect("the outage");
    assert!(lost.starts_with(&format!("data, {uri}: connection lost: ")) && lost.contains("reconnecting"), "{lost}");
    let back = texts.iter().find(|text| text.contains("connected again after ")).expect("the return");
    assert!(
        back.starts_with(&format!("data, {uri}: ")) && !back.contains(" 0 writes") && back.contains(" repeated"),
        "{back}"
    );
    drive.stop();
}

/// Two members are on one server, which is away for longer than commands wait.
#[test]
fn an_array_with_two_members_on_a_server_that_was_away_works_again_by_itself() {
    const BLOCK: u64 = 64 << 10;
    let far = Lab::new("far-away-too-long");
    far.drives(&["x", "y"], 16);
    far.line("create drives --level jbod x y").expect(0);
    let drives = far.serve(&["drives"]);
    let arrays = drives.ready["arrays"].as_array().expect("arrays").clone();
    let uris: Vec<&str> = arrays.iter().map(|array| array["addresses"][0].as_str().expect("an address")).collect();
    let near = Lab::new("near-too-long");
    near.drives(&["a", "b"], 16);
    near.run(&["create", "data", "--level", "5", "--chunk", "64K", "--assume-clean", uris[0], "a", uris[1], "b"])
        .expect(0);
    let mut server = near.serve(&["data"]);
    let mut client = Client::open(&near.path("nbd.sock"), "data");
    let mut image = vec![None; 300];
    let write = |client: &mut Client, image: &mut Vec<Option<u8>>, block: usize, byte: u8| {
        let answer = client.ask(WRITE, block as u64 * BLOCK, &[byte; 4096]);
        // A write that was refused may have been done.
        image[block] = (answer == 0).then_some(byte);
        answer
    };
    (0..100).for_each(|block| assert_eq!(write(&mut client, &mut image, block, 1), 0));
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    // These are not flushed when the server goes away.
    (50..150).for_each(|block| assert_eq!(write(&mut client, &mut image, block, 2), 0));
    drives.kill();
    // Commands wait for 30 s, then the array fails, and others end at once.
    let ends: Vec<u32> = (140..160).map(|block| write(&mut client, &mut image, block, 3)).collect();
    assert!(ends.iter().all(|end| *end != 0), "nothing is acknowledged: {ends:?}");
    near.wait_for("data", |array| array["health"] == "failed");
    let drives = far.serve(&["drives"]);
    server.wait_for_news("ArrayReturned", 1);
    (130..200).for_each(|block| assert_eq!(write(&mut client, &mut image, block, 4), 0));
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    near.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    near.line("check data --follow").expect(0);
    let news = server.stop();
    let texts: Vec<&str> = news.iter().filter_map(|line| line["news"]["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.starts_with("data: it works again")), "{texts:#?}");
    let found = near.line("copy-out data").expect(0).out;
    for (block, byte) in image.iter().enumerate() {
        let at = block * usize::try_from(BLOCK).expect("small");
        let block_bytes = &found[at..at + 4096];
        assert!(
            byte.is_none_or(|byte| block_bytes.iter().all(|value| *value == byte)),
            "block {block} is {byte:?}: {}",
            block_bytes[0]
        );
    }
    drives.stop();
}
