//! A served array gets another name: superblocks, registry, export; settings and clients stay.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::client::Client;
use crate::support::{noise, read_at, Lab, READ};
use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_oracle::{answer, Guest};
use openraid_units::Sectors;

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

/// Where the superblock of a stripe stands on the first member of a span: at byte 4096 of its data.
fn outer_at(lab: &Lab, member: &str) -> u64 {
    let shown = &lab.line(&format!("examine {member} --json")).expect(0).json()["members"][0];
    shown["superblock"]["data_offset_sectors"].as_u64().expect("an offset") * 512 + 4096
}

const MEMBERS: [&str; 6] = ["w0", "w1", "w2", "w3", "w4", "w5"];

#[test]
fn a_nested_array_is_renamed_on_all_spans_and_md_sees_it() {
    let lab = Lab::new("rename-nested");
    let members = MEMBERS.join(" ");
    lab.line(&format!("create wide --level 50 --spans 2 --chunk 64K --assume-clean --file-size 16M {members}"))
        .expect(0);
    let image = noise(50, 4 << 20);
    lab.pipe(&["copy-in", "wide"], &image).expect(0);
    let server = lab.serve(&["wide"]);
    let uuid = lab.show("wide")["uuid"].clone();
    lab.line("set wide rebuild.rate=7M").expect(0);
    // The superblocks of the stripe are data of the spans, one of which lacks a member.
    lab.line("fail wide w0").expect(0);
    let mut before = Client::open(&lab.path("nbd.sock"), "wide");
    lab.line("rename wide broad").expect(0).says(&["wide is broad from now on"]);
    assert_eq!(before.ask(READ, 0, &[0; 4096]), 0, "a client that was connected is not disturbed");
    let array = lab.show("broad");
    assert_eq!((&array["uuid"], &array["exports"]), (&uuid, &serde_json::json!(["broad"])));
    assert_eq!((&array["spans"][0]["name"], &array["spans"][1]["name"]), (&"broad.0".into(), &"broad.1".into()));
    drop(before);
    lab.line("remove broad w0").expect(0);
    lab.line("add broad w0 --yes").expect(0);
    lab.wait_for("broad", |array| array["health"] == "optimal" && array["spans"][0]["task"].is_null());
    server.stop();
    for (member, span) in MEMBERS.iter().zip([0, 0, 0, 1, 1, 1]) {
        assert_eq!(name_on(&lab, member), format!("broad.{span}"), "{member}");
    }
    for member in ["w0", "w3"] {
        let bytes = read_at(&lab.path(member), outer_at(&lab, member), SUPERBLOCK_BYTES_MAX);
        let outer = Superblock::decode(&bytes, MinorVersion::V1_2, Sectors::mib(32)).expect("a superblock");
        assert_eq!(outer.set_name.name(), "broad", "{member}");
    }
    // It is found by its new name, with its settings.
    let server = lab.serve(&["broad"]);
    assert_eq!(lab.show("broad")["settings"]["rebuild_rate"], 7 << 20);
    lab.line("stop broad").expect(0);
    assert_eq!(server.end().0, 0);
    lab.line("check broad").refused(4, &["not served"]);
    md_sees(&lab, &image);
}

/// Linux assembles the spans and the stripe over them, calls them by the new names, and finds parity and data right.
fn md_sees(lab: &Lab, image: &[u8]) {
    let mut guest = Guest::new();
    guest.without_raid6();
    let drives: Vec<String> = MEMBERS.iter().map(|name| guest.image(lab.path(name))).collect();
    guest.script(&format!(
        "assemble s0 {}\nassemble s1 {}\ncheck s0\ncheck s1\nassemble wide ${{md[s0]}} ${{md[s1]}}\n\
         name() {{ say \"$1.name\" \"$(mdadm --detail ${{md[$1]}} | sed -n 's/^ *Name : *\\([^ ]*\\).*/\\1/p')\"; }}\n\
         name s0\nname s1\nname wide\n\
         say wide.start \"$(head -c {} ${{md[wide]}} | sha256sum | cut -d' ' -f1)\"\nstop wide\nstop s0\nstop s1",
        drives[..3].join(" "),
        drives[3..].join(" "),
        image.len(),
    ));
    let Some(output) = answer(guest.run(Duration::from_secs(240))) else { return };
    let value = |key: &str| output.value(key).expect("it was said").to_owned();
    for (key, wanted) in [
        ("wide.assembled", "yes"),
        ("s0.mismatch_cnt", "0"),
        ("s1.mismatch_cnt", "0"),
        ("s0.name", "broad.0"),
        ("s1.name", "broad.1"),
        ("wide.name", "broad"),
    ] {
        assert_eq!(value(key), wanted, "{key}: {}", output.log);
    }
    let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("coreutils");
    sum.stdin.take().expect("a pipe").write_all(image).expect("it is read");
    let sum = sum.wait_with_output().expect("it ends");
    assert_eq!(value("wide.start"), String::from_utf8_lossy(&sum.stdout).split(' ').next().unwrap_or_default());
}
