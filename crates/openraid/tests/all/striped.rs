//! A RAID 0 that is served gets parity or copies, and becomes RAID 0 again.

use crate::support::client::Client;
use crate::support::{noise, Lab, Server, WRITE};
use serde_json::Value;

fn served() -> (Lab, Server, Vec<u8>) {
    let lab = Lab::new("striped");
    lab.line("create data --level 0 --chunk 64K --file-size 16M d0 d1").expect(0);
    let size = lab.line("show data --json").json()["array"]["size_bytes"].as_u64().expect("a size");
    let image = noise(17, usize::try_from(size).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    (lab, server, image)
}

fn is_whole(array: &Value, level: &str) -> bool {
    array["level"] == level && array["shape"].is_null() && array["task"].is_null() && array["health"] == "optimal"
}

#[test]
fn a_raid_0_gets_parity_and_loses_it_and_gets_copies() {
    let (lab, server, mut image) = served();
    let parity = "reshape data --level 5 --layout parity-last --members p0 --file-size 16M";
    let plan = lab.line(&format!("{parity} --plan --json")).expect(0).json();
    assert_eq!((&plan["joins"][0]["slot"], &plan["written_bytes"]), (&2.into(), &0.into()), "{plan:#}");
    assert_eq!(plan["to"]["size_bytes"], image.len());
    lab.line(&format!("{parity} --plan")).expect(0).says(&["until then there is no redundancy", "(added then)"]);
    lab.line(&format!("{parity} --yes")).expect(0).says(&["data is raid5 now"]);
    lab.wait_for("data", |array| is_whole(array, "raid5"));
    lab.line("check data --follow").expect(0);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    let bytes = noise(19, 8192);
    assert_eq!(client.ask(WRITE, 1 << 20, &bytes), 0);
    image[1 << 20..(1 << 20) + 8192].copy_from_slice(&bytes);

    lab.line("reshape data --level 0 --yes").refused(65, &["the parity member in slot 2 is removed"]);
    lab.line("fail data p0").expect(0);
    lab.line("reshape data --level 0 --yes").refused(65, &["openraid remove"]);
    lab.line("remove data p0").expect(0);
    lab.line("reshape data --level 0").refused(65, &["--yes"]);
    lab.line("reshape data --level 0 --yes").expect(0);
    lab.wait_for("data", |array| is_whole(array, "raid0"));

    lab.line("reshape data --level 10 --members e0 e1 --file-size 16M --yes").expect(0).says(&["data is raid10 now"]);
    lab.wait_for("data", |array| is_whole(array, "raid10"));
    lab.line("check data --follow").expect(0);
    server.stop();
    assert!(lab.line("copy-out data").expect(0).out == image, "the content has changed");
    assert!(lab.line("copy-out e0 e1").expect(1).out == image, "the copies differ");
}

#[test]
fn a_raid_0_becomes_raid_5_with_parity_on_all_members_in_two_steps() {
    let (lab, server, image) = served();
    lab.line("reshape data --members p0 --file-size 16M").refused(65, &["give it redundancy first"]);
    let order = "reshape data --level 5 --members p0 --file-size 16M";
    lab.line(&format!("{order} --plan")).expect(0).says(&["then the next change begins by itself", "left-symmetric"]);
    lab.line(&format!("{order} --yes")).expect(0);
    lab.wait_for("data", |array| is_whole(array, "raid5") && array["layout"] == "left-symmetric");
    lab.line("check data --follow").expect(0);
    server.stop();
    assert!(lab.line("copy-out data").expect(0).out == image, "the content has changed");
    assert!(lab.line("copy-out d1 p0").expect(1).out == image, "parity does not match");
}

#[test]
fn a_raid_0_without_another_drive_says_that_nothing_protects_it() {
    let (lab, server, image) = served();
    lab.line("reshape data --level 4 --plan").expect(0).says(&["there is no redundancy until `openraid add`"]);
    lab.line("reshape data --level 4 --yes").expect(0).says(&["without redundancy until `openraid add`"]);
    lab.line("add data p0 --file-size 16M").expect(0);
    lab.wait_for("data", |array| is_whole(array, "raid4"));
    server.stop();
    assert!(lab.line("copy-out data").expect(0).out == image, "the content has changed");
}
