//! The signatures that are recognised without `wipefs`, on members that mdadm made. What `wipefs` names is tested with the
//! program (`crates/openraid/tests/all/foreign.rs`).

mod common;

use common::Folder;
use openraid_format::{detect_foreign, Findings, ReadStretch, FOREIGN_HEAD, FOREIGN_TAIL};
use openraid_units::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn ours(path: &Path) -> Findings {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let read = |start: u64, len: u64| {
        let mut bytes = vec![0; usize::try_from(len.min(size)).unwrap()];
        file.read_exact_at(&mut bytes, start).unwrap();
        bytes
    };
    let tail_at = size.saturating_sub(FOREIGN_TAIL.0);
    let (head, tail) = (read(0, FOREIGN_HEAD.0), read(tail_at, FOREIGN_TAIL.0));
    let stretches =
        [ReadStretch { start: Bytes(0), bytes: &head }, ReadStretch { start: Bytes(tail_at), bytes: &tail }];
    detect_foreign(Bytes(size), &stretches)
}

fn names(findings: &Findings) -> Vec<String> {
    let mut names: Vec<_> = findings.list().iter().map(|it| it.kind.name().to_string()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn raid_members_of_every_kind_are_recognised() {
    let folder = Folder::new("raid");
    for (case, expected, description) in [
        ("foreign/md-0.90", "linux_raid_member", "Linux RAID member (md 0.90) (at byte 41877504)"),
        ("foreign/ddf", "ddf_raid_member", "DDF RAID member (at byte 41942528)"),
        ("raid1", "linux_raid_member", "Linux RAID member (md 1.x) (at byte 4096)"),
        ("raid1-10", "linux_raid_member", "Linux RAID member (md 1.x) (at byte 41934848)"),
        ("raid1-11", "linux_raid_member", "Linux RAID member (md 1.x) (at byte 0)"),
    ] {
        let member = &common::case(case)[0];
        let path = folder.image(&case.replace('/', "-"), member.size.bytes().get());
        let file = File::options().write(true).open(&path).unwrap();
        for area in &member.areas {
            file.write_all_at(&area.bytes, area.start).unwrap();
        }
        let found = ours(&path);
        assert_eq!(names(&found), [expected], "{case}");
        assert_eq!(found.list()[0].to_string(), description, "{case}");
    }
}
