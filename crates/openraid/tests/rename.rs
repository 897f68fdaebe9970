//! A served array gets another name: superblocks, registry, export; settings and clients stay.

mod support;

use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use support::client::Client;
use support::{read_at, Lab, READ};

/// The name in the superblock of a member.
fn name_on(lab: &Lab, member: &str) -> String {
    let bytes = read_at(&lab.path(member), 4096, SUPERBLOCK_BYTES_MAX);
    let superblock = Superblock::decode(&bytes, MinorVersion::V1_2, Sectors::mib(16)).expect("a superblock");
    superblock.set_name.name().to_owned()
}

#[test]
fn a_served_array_is_renamed_everywhere_and_keeps_its_settings_and_clients() {
    let lab = Lab::new("rename");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1").expect(0);
    let server = lab.serve(&["data", "other"]);
    lab.line("set data rebuild.rate=7M").expect(0);
    let uuid = lab.show("data")["uuid"].clone();
    let mut before = Client::open(&lab.path("nbd.sock"), "data");
    lab.line("rename data other").refused(65, &["other: another array has this name"]);
    lab.line("rename data no/name").refused(64, &["no/name"]);
    lab.line("rename nobody x").refused(65, &["nobody"]);
    lab.line("rename data fresh").expect(0).says(&["data is fresh from now on", "connected ones stay"]);
    assert_eq!(before.ask(READ, 0, &[0; 4096]), 0, "a client that was connected is not disturbed");
    let mut after = Client::open(&lab.path("nbd.sock"), "fresh");
    assert_eq!(after.ask(READ, 0, &[0; 4096]), 0);
    let array = lab.show("fresh");
    assert_eq!((&array["uuid"], &array["exports"]), (&uuid, &serde_json::json!(["fresh"])));
    lab.line("show data").refused(65, &["data"]);
    drop((before, after));
    server.stop();
    for member in ["d0", "d1", "d2"] {
        assert_eq!(name_on(&lab, member), "fresh", "{member}");
    }
    let server = lab.serve(&["fresh"]);
    assert_eq!(lab.show("fresh")["settings"]["rebuild_rate"], 7 << 20);
    lab.line("stop fresh").expect(0);
    assert_eq!(server.end().0, 0);
    // The array of the old name is forgotten, and can be made again.
    lab.line("create data --level 1 --assume-clean --file-size 16M n0 n1").expect(0);
}

#[test]
fn a_nested_array_is_not_renamed_and_the_refusal_says_how_to_do_it() {
    let lab = Lab::new("rename-nested");
    lab.line("create wide --level 50 --spans 2 --chunk 64K --assume-clean --file-size 16M w0 w1 w2 w3 w4 w5").expect(0);
    let server = lab.serve(&["wide"]);
    let before = lab.show("wide")["uuid"].clone();
    lab.line("rename wide other").refused(65, &["wide is a nested array", "its name stands in the data of its spans"]);
    let array = lab.show("wide");
    assert_eq!(
        (&array["uuid"], &array["health"], &array["exports"]),
        (&before, &"optimal".into(), &serde_json::json!(["wide"]))
    );
    server.stop();
}
