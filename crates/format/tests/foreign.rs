//! Compares the detector of foreign signatures with `wipefs`, on file systems and tables that their own tools made.

mod common;

use common::{has, run, Folder};
use openraid_format::{detect_foreign, Findings, Stretch, FOREIGN_HEAD, FOREIGN_TAIL};
use openraid_units::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MIB: u64 = 1 << 20;

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
    let stretches = [Stretch { start: Bytes(0), bytes: &head }, Stretch { start: Bytes(tail_at), bytes: &tail }];
    detect_foreign(Bytes(size), &stretches)
}

fn names(findings: &Findings) -> Vec<String> {
    assert_eq!(findings.unlisted, 0);
    let mut names: Vec<_> = findings.list().iter().map(|it| it.kind.name().to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// The names that `wipefs` finds; `None` if it is not installed.
fn wipefs(path: &Path) -> Option<Vec<String>> {
    if !has("wipefs") {
        return None;
    }
    let text = run(&format!("wipefs --no-act --noheadings --output TYPE {}", path.display()));
    let mut names: Vec<_> = text.lines().map(|line| line.trim().to_string()).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    Some(names)
}

/// Tools that write a signature to `IMG`, the expected finding, and the size of the drive they need.
const MAKERS: [(&str, &[&str], u64); 22] = [
    ("mkfs.ext2 -q -F IMG", &["ext2"], 8),
    ("mkfs.ext3 -q -F IMG", &["ext3"], 16),
    ("mkfs.ext4 -q -F IMG", &["ext4"], 16),
    ("mkfs.ext4 -q -F -b 1024 IMG", &["ext4"], 16),
    ("mke2fs -q -F -O journal_dev IMG", &["jbd"], 16),
    ("mkfs.xfs -q -f IMG", &["xfs"], 320),
    ("mkfs.btrfs -q -f IMG", &["btrfs"], 128),
    ("mkfs.f2fs -q -f IMG", &["f2fs"], 64),
    ("mkfs.vfat -F 12 IMG", &["vfat"], 4),
    ("mkfs.vfat -F 16 IMG", &["vfat"], 32),
    ("mkfs.vfat -F 32 IMG", &["vfat"], 64),
    ("mkfs.exfat IMG", &["exfat"], 16),
    ("mkntfs -q -F -f IMG", &["ntfs"], 16),
    ("mkswap IMG", &["swap"], 4),
    ("mkswap -p 65536 IMG", &["swap"], 4),
    ("mksquashfs /etc/hostname IMG -noappend -quiet", &["squashfs"], 1),
    ("xorriso -outdev stdio:IMG -blank as_needed -map /etc/hostname /hostname", &["iso9660"], 4),
    ("echo secret | cryptsetup -q --type luks1 --pbkdf-force-iterations 1000 luksFormat IMG", &["crypto_LUKS"], 32),
    (
        "echo secret | cryptsetup -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 luksFormat IMG",
        &["crypto_LUKS"],
        32,
    ),
    ("printf 'label: gpt\\n,4M\\n' | sfdisk -q IMG", &["PMBR", "gpt"], 16),
    ("printf 'label: dos\\n,4M\\n,,\\n' | sfdisk -q IMG", &["dos"], 16),
    ("make-bcache -B IMG", &["bcache"], 16),
];

#[test]
fn content_of_other_tools_is_recognised_as_wipefs_does() {
    let folder = Folder::new("foreign");
    let mut seen = 0;
    for (index, (line, expected, mib)) in MAKERS.iter().enumerate() {
        let path = folder.image(&format!("{index}.img"), mib * MIB);
        // The tool of a pipe is its second command.
        let tool = line.rsplit("| ").next().unwrap().split_whitespace().next().unwrap();
        if !has(tool) {
            continue;
        }
        run(&line.replace("IMG", &path.display().to_string()));
        let found = ours(&path);
        assert_eq!(names(&found), *expected, "{line}: {:?}", found.list());
        if let Some(mut theirs) = wipefs(&path) {
            // wipefs takes the boot sector of exFAT for an empty partition table.
            theirs.retain(|name| name != "dos" || expected.contains(&"dos"));
            assert_eq!(names(&found), theirs, "{line}");
        }
        seen += 1;
    }
    println!("{seen} of {} kinds were made", MAKERS.len());
}

#[test]
fn raid_members_of_every_kind_are_recognised_as_wipefs_does() {
    let folder = Folder::new("raid");
    for (case, expected, description) in [
        ("foreign/md-0.90", "linux_raid_member", "Linux RAID member (md 0.90) (at byte 41877504)"),
        ("foreign/ddf", "ddf_raid_member", "DDF RAID member (at byte 41942528)"),
        ("foreign/imsm", "isw_raid_member", "Intel RAID member (at byte 41942016)"),
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
        // For DDF wipefs requires more than the anchor that was kept.
        if let Some(theirs) = wipefs(&path).filter(|_| expected != "ddf_raid_member") {
            assert_eq!(names(&found), theirs, "{case}");
        }
    }
}

#[test]
fn the_backup_of_a_partition_table_is_found_when_its_start_is_gone() {
    if !has("sfdisk") {
        return;
    }
    let folder = Folder::new("leftovers");
    let path = folder.image("backup.img", 64 * MIB);
    run(&format!("printf 'label: gpt\\n,4M\\n' | sfdisk -q {}", path.display()));
    File::options().write(true).open(&path).unwrap().write_all_at(&[0; 1 << 20], 0).unwrap();
    let found = ours(&path);
    assert_eq!(names(&found), ["gpt"]);
    assert_eq!(found.list()[0].at, Bytes(64 * MIB - 512));
}
