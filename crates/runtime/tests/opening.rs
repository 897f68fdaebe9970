//! What cannot be a member says so, in time, and nothing is written to anything.

mod support;

use std::time::{Duration, Instant};

use openraid_format::{MdLevel, SuperblockError};
use openraid_runtime::member::{open_all, MemberSpec, OpenError, OpenOptions};
use openraid_runtime::service::{AssembleRequest, StartError};
use openraid_sys::{MemberError, Use};
use openraid_units::Sectors;
use support::{noise, open_members, open_with, request, uri, Folder, Server};

fn refusal(name: &str) -> OpenError {
    let spec: MemberSpec = name.parse().expect("a name");
    let result = open_all(&[spec], OpenOptions::new(Use::Exclusive)).remove(0);
    result.err().unwrap_or_else(|| panic!("{name} was taken"))
}

#[test]
fn a_path_that_is_no_member_is_refused_with_its_name_and_a_remedy() {
    let folder = Folder::new("opening");
    let path = |name: &str| folder.path(name).display().to_string();
    assert!(matches!(refusal(&path("missing")), OpenError::Local(MemberError::Missing { .. })));
    assert!(matches!(refusal(&path("")), OpenError::Local(MemberError::NotAMember { .. })));
    folder.member("empty", 0);
    assert!(matches!(refusal(&path("empty")), OpenError::Local(MemberError::Empty { .. })));
    let made = std::process::Command::new("mkfifo").arg(path("fifo")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let begun = Instant::now();
    assert!(matches!(refusal(&path("fifo")), OpenError::Local(MemberError::NotAMember { .. })));
    assert!(begun.elapsed() < Duration::from_secs(5), "a FIFO was waited for");
    assert!(refusal(&path("fifo")).to_string().contains(&path("fifo")));
    let refused = refusal(&uri(&folder.path("nobody"), ""));
    assert!(matches!(refused, OpenError::Remote { .. }), "{refused:?}");
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let folder = Folder::new("silent");
    let socket = folder.path("silent");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let begun = Instant::now();
    let refused = refusal(&uri(&socket, ""));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(matches!(refused, OpenError::Remote { .. } | OpenError::Silent { .. }), "{refused:?}");
}

#[test]
fn a_member_named_twice_is_refused_whatever_the_path() {
    let folder = Folder::new("twice");
    let name = folder.member("m", 1 << 20);
    std::os::unix::fs::symlink(&name, folder.path("other")).expect("a link");
    let specs: Vec<MemberSpec> =
        [name, folder.path("other").display().to_string()].iter().map(|n| n.parse().expect("a name")).collect();
    let results = open_all(&specs, OpenOptions::new(Use::Exclusive));
    let refused = results.into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!(matches!(&refused[..], [OpenError::Local(MemberError::AlreadyOpen { .. })]), "{refused:?}");
    let remote: MemberSpec = "nbd+unix:///?socket=/nowhere".parse().expect("a name");
    let results = open_all(&[remote.clone(), remote], OpenOptions::new(Use::Exclusive));
    assert!(matches!(results[1], Err(OpenError::Twice { .. })));
}

#[test]
fn looking_at_members_changes_no_byte_of_them() {
    let folder = Folder::new("look");
    let server = Server::new("look");
    let members: Vec<String> = (0..3).map(|nth| folder.member(&format!("m{nth}"), 16 << 20)).collect();
    server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
    server.service.stop();
    let before: Vec<Vec<u8>> = members.iter().map(|name| std::fs::read(name).expect("a member")).collect();
    // A flipped bit in one, junk in another.
    let mut bad = before[1].clone();
    bad[4096 + 100] ^= 1;
    std::fs::write(&members[1], &bad).expect("a member");
    let junk = folder.member("junk", 1 << 20);
    std::fs::write(&junk, noise(3, 1 << 20)).expect("a file");

    let names = [&members[..], &[junk]].concat();
    for usage in [Use::Examine, Use::ReadExclusive, Use::Exclusive] {
        let probed = open_with(&names, OpenOptions::new(usage));
        let looks: Vec<_> = probed.iter().map(|(_, probed)| &probed.look).collect();
        assert_eq!(looks[0].superblock.as_ref().map(|s| (s.level, s.raid_disks)), Some((MdLevel::Raid5, 3)));
        assert!(looks[0].foreign.signatures.iter().any(|found| found.name() == "linux_raid_member"));
        assert!(matches!(looks[1].superblock_error, Some((_, SuperblockError::Checksum { .. }))), "{:?}", looks[1]);
        assert!(looks[3].superblock.is_none() && looks[3].superblock_error.is_none());
    }
    let service = Server::new("look-again");
    let started = service.handle.assemble(open_members(&names), AssembleRequest::default()).expect("it runs");
    assert_eq!((started.arrays.len(), started.failed.len()), (1, 2), "{:?}", started.failed);
    assert!(started.failed.iter().all(|(_, _, error)| matches!(error, StartError::NotAMember(..))));
    assert_eq!(std::fs::read(&members[1]).expect("a member"), bad, "the bad one was written");
}

#[test]
fn members_are_free_again_when_their_array_cannot_be_made() {
    let server = Server::new("free");
    let members = server.folder.members(3, 16 << 20);
    let mut wrong = request(MdLevel::Raid5, Sectors(3), &members);
    wrong.assume_clean = false;
    let refused = server.handle.create(wrong).expect_err("a chunk of 1.5 KiB");
    assert!(matches!(refused, StartError::Create(_)), "{refused:?}");
    assert!(server.handle.status().expect("it runs").drives.is_empty());
    server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
}
