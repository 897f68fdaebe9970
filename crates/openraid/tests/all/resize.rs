//! Larger drives: an array that is served uses their room when the last smaller one has been replaced.

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
fn another_size_than_all_and_other_wishes_with_it_are_refused() {
    let (lab, server, _) = served();
    lab.line("reshape data --size 10M").refused(64, &["--size max"]);
    lab.line("reshape data --size max --chunk 16K").refused(64, &["--chunk"]);
    server.stop();
}
