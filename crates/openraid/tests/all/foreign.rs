//! What other software has left on a drive is named, and is not overwritten without a word. Its makers are the real tools,
//! or the magic numbers of their formats.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::console::installed;
use crate::support::{missing, noise, write_at, Lab};

const MIB: u64 = 1 << 20;

/// Tools that write a signature to `IMG`, the name that libblkid gives it, and the size of the drive they need.
const MAKERS: [(&str, &str, u64); 22] = [
    ("mkfs.ext2 -q -F IMG", "ext2", 8),
    ("mkfs.ext3 -q -F IMG", "ext3", 16),
    ("mkfs.ext4 -q -F IMG", "ext4", 16),
    ("mkfs.ext4 -q -F -b 1024 IMG", "ext4", 16),
    ("mke2fs -q -F -O journal_dev IMG", "jbd", 16),
    ("mkfs.xfs -q -f IMG", "xfs", 320),
    ("mkfs.btrfs -q -f IMG", "btrfs", 128),
    ("mkfs.f2fs -q -f IMG", "f2fs", 64),
    ("mkfs.vfat -F 12 IMG", "vfat", 4),
    ("mkfs.vfat -F 16 IMG", "vfat", 32),
    ("mkfs.vfat -F 32 IMG", "vfat", 64),
    ("mkfs.exfat IMG", "exfat", 16),
    ("mkntfs -q -F -f IMG", "ntfs", 16),
    ("mkswap IMG", "swap", 4),
    ("mkswap -p 65536 IMG", "swap", 4),
    ("mksquashfs /etc/hostname IMG -noappend -quiet", "squashfs", 1),
    ("xorriso -outdev stdio:IMG -blank as_needed -map /etc/hostname /hostname", "iso9660", 4),
    ("echo secret | cryptsetup -q --type luks1 --pbkdf-force-iterations 1000 luksFormat IMG", "crypto_LUKS", 32),
    (
        "echo secret | cryptsetup -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 luksFormat IMG",
        "crypto_LUKS",
        32,
    ),
    ("printf 'label: gpt\\n,4M\\n' | sfdisk -q IMG", "gpt", 16),
    ("printf 'label: dos\\n,4M\\n,,\\n' | sfdisk -q IMG", "dos", 16),
    ("make-bcache -B IMG", "bcache", 16),
];

/// Size of the drives that are written by hand.
const DRIVE: u64 = 16 * MIB;
/// Magic numbers of formats whose makers are in no package here: the name that libblkid gives them, where, and which.
const MAGICS: [(&str, u64, &[u8]); 12] = [
    ("ceph_bluestore", 0, b"bluestore block device\n"),
    ("ocfs2", 1024, b"OCFSV2"),
    ("vdo", 0, b"dmvdo001"),
    ("VMFS_volume_member", MIB, b"\x0d\xd0\x01\xc0"),
    ("drbd", DRIVE - 4096 + 60, b"\x83\x74\x02\x6b"),
    ("drbd", DRIVE - 4096 + 60, b"\x83\x74\x02\x6d"),
    ("ufs", 8192 + 1372, b"\x19\x54\x01\x19"),
    ("ubi", 0, b"UBI#\x01"),
    ("isw_raid_member", DRIVE - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00\0\0"),
    ("LVM2_member", 512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001"),
    ("promise_fasttrack_raid_member", DRIVE - 63 * 512, b"Promise Technology, Inc."),
    ("ddf_raid_member", DRIVE - 100 * 512, b"\xde\x11\xde\x11"),
];

fn has_wipefs() -> bool {
    let found = Path::new("/usr/sbin/wipefs").exists() || Path::new("/sbin/wipefs").exists() || installed("wipefs");
    if !found {
        missing("wipefs");
    }
    found
}

/// `create` names the content of `f0`, and changes nothing.
fn is_refused(lab: &Lab, name: &str, maker: &str) {
    let before = lab.fingerprints(&["f0"]);
    let ran = lab.line("create x --level 1 f0 missing");
    assert_eq!(ran.code, 65, "{maker}: {ran:?}");
    // What openraid reads itself has words of its own.
    let shown = if name == "ddf_raid_member" { "DDF RAID member" } else { name };
    assert!(ran.err.contains(shown) && ran.err.contains("--yes --overwrite"), "{maker}: {ran:?}");
    assert_eq!(lab.fingerprints(&["f0"]), before, "{maker}");
    let found = lab.line("examine f0 --json").json();
    let found = found["members"][0]["found"].as_array().expect("a list").clone();
    assert!(found.iter().any(|signature| signature["kind"] == name), "{maker}: {found:?}");
}

#[test]
fn magic_numbers_of_other_software_are_named_and_not_overwritten() {
    if !has_wipefs() {
        return;
    }
    let lab = Lab::new("foreign-magics");
    for (name, at, magic) in MAGICS {
        lab.drives(&["f0"], DRIVE / MIB);
        write_at(&lab.path("f0"), at, magic);
        is_refused(&lab, name, name);
    }
}

#[test]
fn doctor_has_a_next_step_for_a_gpt_without_its_header() {
    if !has_wipefs() {
        return;
    }
    let lab = Lab::new("foreign-pmbr");
    lab.drives(&["f0"], DRIVE / MIB);
    // A partition of type EE from sector 1 to the end, and the signature of the sector.
    write_at(&lab.path("f0"), 446, b"\0\0\x02\0\xee\xff\xff\xff\x01\0\0\0\xff\x7f\0\0");
    write_at(&lab.path("f0"), 510, b"\x55\xaa");
    lab.line("doctor f0").says(&[
        "PMBR partition table",
        "whose header is damaged",
        "sgdisk --verify",
        "docs/recovery.md",
    ]);
}

#[test]
fn what_real_tools_made_is_named_as_wipefs_names_it_and_gone_after_an_overwriting_create() {
    if !has_wipefs() {
        return;
    }
    let lab = Lab::new("foreign-tools");
    let image = lab.path("f0").display().to_string();
    for (line, name, mib) in MAKERS {
        // The tool of a pipe is its second command.
        let tool = line.rsplit("| ").next().expect("a command").split_whitespace().next().expect("a word");
        let tools = format!("PATH=$PATH:/usr/sbin:/sbin; command -v {tool}");
        if !Command::new("sh").args(["-c", &tools]).stdout(Stdio::null()).status().expect("a shell").success() {
            missing(tool);
            continue;
        }
        lab.drives(&["f0"], mib);
        let line = format!("PATH=$PATH:/usr/sbin:/sbin; {}", line.replace("IMG", &image));
        let made = Command::new("sh").args(["-c", &line]).output().expect("a shell");
        assert!(made.status.success(), "{line}: {made:?}");
        is_refused(&lab, name, &line);
        if mib < 8 {
            continue;
        }
        lab.line("create x --level 1 f0 missing --yes --overwrite --assume-clean").expect(0);
        lab.line("forget x").expect(0);
        let listed = "PATH=$PATH:/usr/sbin:/sbin; wipefs -n -i -O TYPE \"$0\"";
        let listed = Command::new("sh").args(["-c", listed, &image]).output().expect("a shell").stdout;
        assert_eq!(String::from_utf8_lossy(&listed).trim(), "linux_raid_member", "{line}");
    }
}

/// Bytes without a name are no free space, for no verb that would write over them.
#[test]
fn data_without_a_name_is_not_overwritten_by_any_verb() {
    let lab = Lab::new("foreign-unknown");
    let unknown = "data that openraid does not know";
    for at in [700, 3 * MIB + 5, DRIVE - 1] {
        lab.drives(&["f0"], DRIVE / MIB);
        write_at(&lab.path("f0"), at, &[7]);
        let word = format!("{unknown} (at byte {})", at / 4096 * 4096);
        lab.line("create x --level 1 f0 missing").refused(65, &["f0: it holds", &word, "--yes --overwrite"]);
        lab.line("journal create f0").refused(65, &["f0: it holds", &word]);
    }
    lab.line("create data --level 5 --chunk 64K --file-size 8M d0 d1 d2").expect(0);
    let server = lab.serve(&["data"]);
    write_at(&lab.path("f0"), MIB, &noise(3, 4096));
    let before = lab.fingerprints(&["f0"]);
    for line in ["add data f0", "replace data d1 --with f0", "spare add data f0"] {
        let ran = lab.line(line);
        assert!(ran.code == 65 && ran.err.contains(unknown), "{line}: {ran:?}");
    }
    assert_eq!(lab.fingerprints(&["f0"]), before);
    lab.line("add data f0 --yes --overwrite").expect(0);
    server.stop();
    if !has_wipefs() {
        return;
    }
    // What hosts have written is not overwritten without a word either, if it has a name.
    let mut image = vec![0; 1 << 20];
    image[4086..4096].copy_from_slice(b"SWAPSPACE2");
    image[1024..1040].copy_from_slice(&[1, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    lab.pipe(&["copy-in", "data"], &noise(5, 8192)).refused(65, &["data: it holds swap", "--yes --overwrite"]);
    lab.pipe(&["copy-in", "data", "--yes", "--overwrite"], &noise(5, 8192)).expect(0);
}
