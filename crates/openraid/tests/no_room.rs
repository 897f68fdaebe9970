//! Sparse members on a file system that becomes full while hosts write: nothing that was acknowledged is lost, no member
//! fails, and everything works again when there is room.

mod support;

use std::fs;

use support::client::Client;
use support::guest::Small;
use support::{Lab, FLUSH, READ, WRITE};

const CHUNK: u64 = 64 << 10;
/// Two blocks of data are in each of these rows, or one copy of each.
const ROWS: u64 = 30;
/// NBD's number for a lack of room.
const NO_SPACE: u32 = 28;

/// The address of the first block of a row.
const fn first(row: u64) -> u64 {
    row * 2 * CHUNK
}

/// The address of the second one.
const fn second(row: u64) -> u64 {
    (row * 2 + 1) * CHUNK
}

/// The first block of each row is written, the file system becomes full, and the second blocks are written. Some of these
/// are refused for a lack of room, and all first blocks can be read.
fn write_without_room(client: &mut Client, small: &Small, create: &str) {
    for row in 0..ROWS {
        assert_eq!(client.ask(WRITE, first(row), &[b'A'; 4096]), 0);
    }
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    small.fill();
    let ends: Vec<u32> = (0..ROWS).map(|row| client.ask(WRITE, second(row), &[b'B'; 4096])).collect();
    assert!(ends.iter().all(|end| [0, NO_SPACE].contains(end)), "{create}: {ends:?}");
    assert!(ends.contains(&NO_SPACE), "{create}: nothing was refused");
    for row in 0..ROWS {
        assert_eq!(client.ask(READ, first(row), &[0; 4096]), 0, "{create}: block {row} is there");
    }
}

/// There is room again: the file system's, the members' and the hosts'.
fn make_room(client: &mut Client, filled: &Lab, lab: &Lab, create: &str) {
    fs::remove_file(filled.path("filler")).expect("it filled the file system");
    let is_well = |member: &serde_json::Value| member["full"].is_null() && member["bad_ranges"] == 0;
    lab.wait_for("data", |array| array["members"].as_array().expect("members").iter().all(is_well));
    for row in 0..ROWS {
        assert_eq!(client.ask(WRITE, second(row), &[b'B'; 4096]), 0, "{create}: there is room");
    }
    assert_eq!(client.ask(FLUSH, 0, &[]), 0, "{create}");
    lab.line("check data --follow").expect(0);
}

/// An array of sparse files, half of which is written before the file system becomes full. False if the test ran in a guest.
fn fill_and_make_room(name: &str, test: &str, create: &str, members: &[&str]) -> bool {
    let lab = Lab::new(name);
    let Some(small) = Small::mount(&lab.folder, "32M", test) else { return false };
    lab.drives(members, 64);
    lab.line(&format!("create data {create} --chunk 64K --assume-clean {}", members.join(" "))).expect(0);
    let mut server = lab.serve(&["data"]);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    write_without_room(&mut client, &small, create);
    let full = lab.show("data");
    assert_eq!(full["health"], "optimal", "{create}");
    let text = full["members"].as_array().expect("members").iter().find_map(|member| member["full"].as_str());
    let mount = lab.folder.canonicalize().expect("a folder");
    assert!(text.expect("one is full").ends_with(&format!("at {}", mount.display())), "{text:?}");
    server.wait_for_news("NoRoom", 1);
    make_room(&mut client, &lab, &lab, create);
    server.wait_for_news("RoomAgain", 1);
    server.stop();
    let found = lab.line("doctor data --json").expect(0).json();
    let short = found["short_of_room"][0].as_str().expect("the files are larger than their file system");
    assert!(short.starts_with(&format!("the file system at {} has ", mount.display())), "{short}");
    let image = lab.line("copy-out data").expect(0).out;
    for (place, byte) in (0..ROWS).flat_map(|row| [(first(row), b'A'), (second(row), b'B')]) {
        let at = usize::try_from(place).expect("a small array");
        assert!(image[at..at + 4096].iter().all(|found| *found == byte), "{create}: at {place}");
    }
    true
}

#[test]
fn a_raid_5_of_sparse_files_loses_nothing_on_a_full_file_system() {
    let test = "a_raid_5_of_sparse_files_loses_nothing_on_a_full_file_system";
    for (number, policy) in ["resync", "bitmap", "ppl"].into_iter().enumerate() {
        let create = format!("--level 5 --consistency-policy {policy}");
        if !fill_and_make_room(&format!("no-room-{number}"), test, &create, &["a", "b", "c"]) {
            return;
        }
    }
}

#[test]
fn a_raid_6_of_sparse_files_loses_nothing_on_a_full_file_system() {
    let test = "a_raid_6_of_sparse_files_loses_nothing_on_a_full_file_system";
    fill_and_make_room("no-room-double", test, "--level 6", &["a", "b", "c", "d"]);
}

#[test]
fn a_mirror_of_sparse_files_loses_nothing_on_a_full_file_system() {
    let test = "a_mirror_of_sparse_files_loses_nothing_on_a_full_file_system";
    for (number, (level, members)) in
        [("10", &["a", "b", "c", "d"][..]), ("10 --layout f2", &["a", "b"][..])].into_iter().enumerate()
    {
        if !fill_and_make_room(&format!("no-room-mirror-{number}"), test, &format!("--level {level}"), members) {
            return;
        }
    }
}

/// The member's server answers NBD's ENOSPC.
#[test]
fn a_remote_member_stays_while_its_server_has_no_room() {
    let test = "a_remote_member_stays_while_its_server_has_no_room";
    let far = Lab::new("no-room-far");
    let Some(small) = Small::mount(&far.folder, "32M", test) else { return };
    far.drives(&["x"], 64);
    far.line("create drive --level jbod x").expect(0);
    let drive = far.serve(&["drive"]);
    let uri = drive.uri();
    let near = Lab::new("no-room-near");
    near.drives(&["a", "b"], 64);
    near.run(&["create", "data", "--level", "5", "--chunk", "64K", "--assume-clean", &uri, "a", "b"]).expect(0);
    let mut server = near.serve(&["data"]);
    let mut client = Client::open(&near.path("nbd.sock"), "data");
    write_without_room(&mut client, &small, "remote");
    let full = near.show("data");
    assert_eq!(full["health"], "optimal");
    let is_full: Vec<bool> =
        full["members"].as_array().expect("members").iter().map(|member| member["full"].is_string()).collect();
    assert_eq!(is_full, [true, false, false], "{full:#}");
    server.wait_for_news("NoRoom", 1);
    make_room(&mut client, &far, &near, "remote");
    server.wait_for_news("RoomAgain", 1);
    server.stop();
    drive.stop();
}

#[test]
fn allocated_members_take_every_write_on_a_full_file_system() {
    let lab = Lab::new("allocated-members");
    let test = "allocated_members_take_every_write_on_a_full_file_system";
    let Some(small) = Small::mount(&lab.folder, "48M", test) else { return };
    lab.line("create data --level 5 --assume-clean --file-size 8M --allocate a b c").expect(0);
    let sparse = lab.line("create twice --level 1 --assume-clean --file-size 40M d e").expect(0);
    assert_eq!(sparse.err.matches("the file system at ").count(), 1, "{}", sparse.err);
    assert!(
        sparse.err.contains("because sparse files take it when they are written") && sparse.err.contains("--allocate`")
    );
    small.fill();
    let server = lab.serve(&["data"]);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    for number in 0..7_u64 {
        assert_eq!(client.ask(WRITE, number << 20, &vec![7; 1 << 20]), 0, "all of it has room");
    }
    server.stop();
}
