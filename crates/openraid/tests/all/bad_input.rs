//! Bad input: each ends in a clear error that names the thing and the remedy, no write happens to any member, and
//! nothing panics or hangs (the harness has a time limit for each command).

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::client::Client;
use crate::support::{is_root, noise, read_at, write_at, Lab, Ran, PROGRAM, WRITE};
use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;

const SUPERBLOCK: u64 = 4096;
/// An account without rights.
const OTHER: u32 = 65_534;

/// An array of three members of 8 MiB with some content.
fn three() -> (Lab, [&'static str; 3]) {
    let lab = Lab::new("bad");
    lab.line("create data --level 5 --chunk 64K --file-size 8M d0 d1 d2").expect(0);
    lab.pipe(&["copy-in", "data"], &noise(7, 1 << 20)).expect(0);
    (lab, ["d0", "d1", "d2"])
}

/// Verbs that read members and write nothing. The members' names follow these words.
const LOOKING: &[&[&str]] = &[&["examine"], &["doctor"], &["assemble", "--no-serve"], &["copy-out"], &["scan"]];

/// Every looking verb ends in order, and leaves the members as they are.
fn look_at(lab: &Lab, members: &[&str]) {
    let before = lab.fingerprints(members);
    for verb in LOOKING {
        let ran = lab.run(&[verb, members].concat());
        assert!([0, 1, 2, 4, 65].contains(&ran.code), "{verb:?}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "{verb:?}: {}", ran.err);
    }
    assert_eq!(lab.fingerprints(members), before, "one of {LOOKING:?} has written to a member");
}

fn change_superblock(lab: &Lab, member: &str, change: impl FnOnce(&mut Superblock)) {
    let path = lab.path(member);
    let bytes = read_at(&path, SUPERBLOCK, SUPERBLOCK_BYTES_MAX);
    let size = Sectors(fs::metadata(&path).expect("it is there").len() / 512);
    let mut superblock = Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a good superblock");
    change(&mut superblock);
    let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
    superblock.encode(&mut bytes);
    write_at(&path, SUPERBLOCK, &bytes);
}

/// A change to a good superblock.
type Change = fn(&mut Superblock);

#[test]
fn a_superblock_with_a_flipped_bit_is_refused_and_the_others_go_on_without_it() {
    let (lab, names) = three();
    let mut byte = read_at(&lab.path("d1"), SUPERBLOCK + 80, 1);
    byte[0] ^= 1;
    write_at(&lab.path("d1"), SUPERBLOCK + 80, &byte);
    look_at(&lab, &names);
    let examined = lab.line("examine d1").expect(2);
    assert!(examined.text().contains("damaged superblock: its checksum"), "{}", examined.text());
    let checked = lab.line("assemble d0 d1 d2 --no-serve").expect(1);
    assert!(checked.text().contains("d1: superblock 1.2: damaged superblock"), "{}", checked.text());
    assert!(checked.text().contains("starts degraded: slot 1"), "{}", checked.text());
    let out = lab.line("copy-out d0 d1 d2").expect(1).out;
    assert!(out[..1 << 20] == noise(7, 1 << 20));
}

#[test]
fn a_member_that_was_cut_short_is_refused_whatever_is_left_of_it() {
    let (lab, names) = three();
    let whole = fs::read(lab.path("d2")).expect("it is there");
    for len in [0, 1, 511, 4096, 4096 + 256, 6000, 1 << 20, (8 << 20) - 4096] {
        fs::write(lab.path("d2"), &whole).expect("room");
        File::options().write(true).open(lab.path("d2")).and_then(|file| file.set_len(len)).expect("cut");
        look_at(&lab, &names);
        let ran = lab.line("doctor d0 d1 d2").expect(1);
        assert!(ran.text().contains("starts degraded"), "{len}: {}", ran.text());
        assert!(ran.text().contains("d2"), "{len}: {}", ran.text());
    }
}

#[test]
fn a_member_of_another_array_is_recognised() {
    let (lab, _) = three();
    lab.line("create other --level 5 --chunk 64K --file-size 8M o0 o1 o2").expect(0);
    look_at(&lab, &["d0", "o1", "d2"]);
    let ran = lab.line("doctor d0 o1 d2").expect(2);
    assert!(ran.text().contains("array data") && ran.text().contains("array other"), "{}", ran.text());
    // The same, with the identity of the first and its own events: a disagreement, or too few.
    let text = lab.line("copy-out d0 d2").expect(1);
    assert!(text.out[..1 << 20] == noise(7, 1 << 20));
}

#[test]
fn a_stale_member_is_left_out_and_only_force_would_take_it() {
    let (lab, names) = three();
    change_superblock(&lab, "d1", |superblock| superblock.events -= 3);
    look_at(&lab, &names);
    let ran = lab.line("assemble d0 d1 d2 --no-serve").expect(1);
    assert!(ran.text().contains("d1: stale"), "{}", ran.text());
    lab.line("copy-out d1 d2").refused(2, &["not enough members", "--force"]);
    let forced = lab.line("copy-out --force d1 d2").expect(1);
    assert!(forced.err.contains("started by force"), "{}", forced.err);
}

#[test]
fn right_checksums_over_absurd_fields_are_refused() {
    let changes: &[(&str, Change)] = &[
        ("data offset", |superblock| superblock.data_offset.0 = u64::MAX - 7),
        ("data size", |superblock| superblock.data_size = Sectors(u64::MAX)),
        ("size", |superblock| superblock.size = Sectors(1 << 60)),
        ("chunk", |superblock| superblock.chunk = Sectors(3)),
        ("chunk huge", |superblock| superblock.chunk = Sectors(1 << 31)),
        ("slots", |superblock| superblock.raid_disks = u16::MAX),
        ("no slots", |superblock| superblock.raid_disks = 0),
        ("layout", |superblock| superblock.layout = 77),
        ("device number", |superblock| superblock.dev_number = 9999),
        ("super offset", |superblock| superblock.super_offset.0 = 1 << 40),
        ("bitmap", |superblock| superblock.set_bitmap_offset(Some(i32::MAX))),
        ("bad blocks", |superblock| superblock.bad_blocks.offset = i32::MIN),
        ("features", |superblock| superblock.features.0 = u32::MAX),
        ("journal", |superblock| superblock.features.0 |= 512),
        ("reshape", |superblock| superblock.features.0 |= 4),
        ("recovery", |superblock| superblock.set_recovery_offset(Some(openraid_units::MemberLba(u64::MAX - 1)))),
        ("events", |superblock| superblock.events = u64::MAX),
        ("resync", |superblock| superblock.resync_offset = u64::MAX - 1),
    ];
    let (lab, names) = three();
    let good = names.map(|name| read_at(&lab.path(name), SUPERBLOCK, SUPERBLOCK_BYTES_MAX));
    for (what, change) in changes {
        for (name, good) in names.iter().zip(&good) {
            write_at(&lab.path(name), SUPERBLOCK, good);
        }
        change_superblock(&lab, "d1", change);
        look_at(&lab, &names);
        // The same on all of them: nothing to compare with.
        for name in ["d0", "d2"] {
            change_superblock(&lab, name, change);
        }
        look_at(&lab, &names);
        assert!(!what.is_empty());
    }
}

#[test]
fn two_members_that_claim_one_slot_are_distinguished() {
    let (lab, _) = three();
    fs::copy(lab.path("d1"), lab.path("copy")).expect("room");
    look_at(&lab, &["d0", "d1", "d2", "copy"]);
    let ran = lab.line("assemble d0 d1 d2 copy --no-serve").expect(0);
    let said = ran.text();
    assert!(said.contains("a copy of") && said.contains("same device UUID") && said.contains("slot 1"), "{said}");
    // Two different members, both of slot 1.
    change_superblock(&lab, "copy", |superblock| superblock.dev_number = 2);
    look_at(&lab, &["d0", "d1", "copy"]);
}

#[test]
fn members_of_unequal_size_use_the_least_of_them() {
    let lab = Lab::new("unequal");
    lab.drives(&["a"], 8);
    lab.drives(&["b"], 16);
    lab.drives(&["c"], 12);
    let five = lab.line("create five --level 5 --chunk 64K a b c --dry-run --json").expect(0).json();
    let zero = lab.line("create zero --level 0 --chunk 64K a b c --dry-run --json").expect(0).json();
    let size = |made: &serde_json::Value| made["size_bytes"].as_u64().expect("a size");
    assert!(size(&five) <= 2 * (8 << 20) && size(&zero) > 3 * (8 << 20), "{five} {zero}");
    lab.line("create five --level 5 --chunk 64K --size 12M a b c").refused(65, &["size"]);
}

/// Creating with these words fails with this code, says these words, and writes nothing.
fn create_refused(lab: &Lab, members: &[&str], line: &str, code: i32, words: &[&str]) {
    let before = lab.fingerprints(members);
    lab.line(&format!("create x {line}")).refused(code, words);
    assert_eq!(lab.fingerprints(members), before, "{line}");
    assert_eq!(lab.line("list --json").json()["remembered"].as_array().map(Vec::len), Some(0), "{line}");
}

#[test]
fn an_impossible_array_is_refused_before_the_first_write() {
    let lab = Lab::new("create");
    let names = ["a", "b", "c", "d"];
    lab.drives(&names, 8);
    lab.drives(&["empty"], 0);
    fs::write(lab.path("tiny"), [0; 700]).expect("room");
    fs::write(lab.path("small"), vec![0; 256 << 10]).expect("room");
    symlink(lab.path("a"), lab.path("link")).expect("a link");
    symlink(lab.path("nowhere"), lab.path("dangling")).expect("a link");
    fs::hard_link(lab.path("a"), lab.path("hard")).expect("a link");
    fs::create_dir(lab.path("folder")).expect("a folder");
    assert!(Command::new("mkfifo").arg(lab.path("fifo")).status().expect("mkfifo").success());
    let refused = |line: &str, code: i32, words: &[&str]| create_refused(&lab, &names, line, code, words);
    refused("--level 5 a b a", 65, &["a:", "already in use here"]);
    refused("--level 5 a b link", 65, &["link:", "already in use here", "name each member once"]);
    refused("--level 5 a b hard", 65, &["hard:", "already in use here"]);
    refused("--level 5 a b ./c ../nothing/here", 65, &["there is no such file"]);
    refused("--level 5 a b dangling", 65, &["dangling:", "there is no such file"]);
    refused("--level 5 a b empty", 65, &["empty:", "too small"]);
    refused("--level 5 a b tiny", 65, &["tiny", "too small"]);
    refused("--level 5 a b small", 65, &["small:", "too small", "use a larger member"]);
    refused("--level 5 a b fifo", 65, &["fifo:", "named pipe"]);
    refused("--level 5 a b folder", 65, &["folder:", "directory"]);
    refused("--level 5 a b /dev/null", 65, &["/dev/null:", "character device"]);
    refused("--level 5 a b c --spare small", 65, &["small"]);
    refused("--level 5 a b ram:64M", 64, &["ram:64M", "serve"]);
    refused("--level 5 a b ram:x", 64, &["ram:x", "64M"]);
    refused("--level 5 a b http://host/", 64, &["http", "nbd://"]);
    for chunk in ["0", "1", "64", "-4K", "3K", "2K", "5K", "9999999T", "64Q", "4G"] {
        let ran = lab.run(&["create", "x", "--level", "5", &format!("--chunk={chunk}"), "a", "b", "c"]);
        assert_eq!(ran.code, 64, "{chunk}: {ran:?}");
        assert!(ran.err.contains("chunk"), "{chunk}: {}", ran.err);
    }
    for level in ["2", "3", "7", "-1", "55", "", "five", "0x5", "18446744073709551616"] {
        lab.run(&["create", "x", &format!("--level={level}"), "a", "b", "c"]).refused(64, &["unknown level"]);
    }
    refused("--level 6 a b c", 64, &["at least 4 members"]);
    refused("--level 5 a", 64, &["at least 2 members"]);
    refused("--level 5 a missing missing", 64, &["slots 1 and 2 are missing"]);
    refused("--level 5 missing missing missing", 64, &["at least one member"]);
    refused("--level 0 a missing", 64, &["missing"]);
    refused("--level 50 a b c", 64, &["shared out"]);
    refused("--level 10 --layout n5 a b c d", 64, &["5 copies"]);
    refused("--level 5 --layout sideways a b c", 64, &["left-symmetric"]);
    refused("--level 1 --chunk 64K a b", 64, &["no chunk"]);
    refused("--level 5 --metadata 0.90 a b c", 64, &["1.2"]);
    refused("--level 0 --spare c a b", 64, &["no redundancy"]);
    refused("--level 5 --size 100G a b c", 65, &["size"]);
    refused("--level jbod --chunk 64K a", 64, &["--chunk"]);
    refused("--level 5 --file-size 8M new1 a", 65, &["a: it exists already"]);
    assert!(!lab.path("new1").exists(), "a file that was made for a command that failed is removed");
    refused("--level 5", 64, &["MEMBER"]);
    lab.run(&["create", "a/b", "--level", "5", "a", "b", "c"]).refused(64, &["not an array name"]);
    lab.run(&["create", "x", "--level", "5", "a", "b", ""]).refused(64, &["no name"]);
}

#[test]
fn members_that_hold_something_are_used_only_when_their_loss_is_accepted() {
    let lab = Lab::new("foreign");
    let names = ["fs", "b", "c"];
    lab.drives(&names, 8);
    // An ext2 superblock: magic, and what makes it believable.
    write_at(&lab.path("fs"), 1024 + 56, &[0x53, 0xef]);
    let before = lab.fingerprints(&names);
    lab.line("create x --level 5 --chunk 64K fs b c").refused(65, &["fs: it holds ext2", "--yes --overwrite"]);
    lab.line("create x --level 5 --chunk 64K fs b c --yes").refused(65, &["fs: it holds"]);
    lab.line("create x --level 5 --chunk 64K fs b c --overwrite").refused(65, &["fs: it holds"]);
    let dry = lab.line("create x --level 5 --chunk 64K fs b c --yes --overwrite --dry-run").expect(0);
    assert!(dry.text().contains("would be lost") && dry.text().contains("ext2"), "{}", dry.text());
    assert_eq!(lab.fingerprints(&names), before);
    lab.line("create x --level 5 --chunk 64K fs b c --yes --overwrite").expect(0);
    assert!(!lab.line("examine fs").expect(0).text().contains("ext2"));
    // The members of an array are held as well.
    let before = lab.fingerprints(&names);
    lab.line("create y --level 1 fs b").refused(65, &["a member of array x"]);
    assert_eq!(lab.fingerprints(&names), before);
    // With metadata at the end, what stood at the start must not remain, or the drive would belong to two arrays.
    lab.line("create y --level 1 --metadata 1.0 fs b --yes --overwrite").expect(0);
    let found = lab.line("examine fs --json").expect(0).json();
    assert_eq!(found["members"][0]["superblock"]["version"], "1.0");
    assert_eq!(found["members"][0]["found"].as_array().map(Vec::len), Some(1), "{found:#}");
}

/// Give this file or folder, and all below it, to the account without rights.
fn give_away(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).expect("root");
    for entry in fs::read_dir(path).into_iter().flatten() {
        give_away(&entry.expect("an entry").path());
    }
}

#[test]
fn members_that_may_not_be_written_or_read_say_so() {
    let (lab, names) = three();
    let mode = |mode| fs::set_permissions(lab.path("d1"), fs::Permissions::from_mode(mode)).expect("own file");
    mode(0o444);
    // Permissions mean nothing to root: there another account runs the program, and has all but the one member.
    let program = lab.path("openraid");
    fs::copy(PROGRAM, &program).expect("copied");
    if is_root() {
        give_away(&lab.folder);
        chown(lab.path("d1"), Some(0), Some(0)).expect("root");
    }
    let line = |line: &str| {
        let mut command = lab.command_of(&program, &line.split(' ').collect::<Vec<_>>());
        if is_root() {
            command.uid(OTHER).gid(OTHER);
        }
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        Ran { code: output.status.code().unwrap_or(-1), out, err }
    };
    let before = lab.fingerprints(&names);
    line("copy-in d0 d1 d2").refused(65, &["d1: it is write-protected and a member of array data", "Make it writable"]);
    line("erase d1 --yes").refused(65, &["d1: permission denied"]);
    assert_eq!(lab.fingerprints(&names), before);
    // Permission to read is enough for these verbs.
    line("examine d1").expect(0);
    line("doctor d1 d2 d0").expect(0);
    mode(0o000);
    line("examine d1").expect(4);
    assert_eq!(lab.fingerprints(&["d0", "d2"]), [&before[..1], &before[2..]].concat());
}

#[test]
fn an_array_in_use_is_not_touched_by_anybody_else() {
    let (lab, names) = three();
    let server = lab.serve(&["data"]);
    let before = lab.fingerprints(&names);
    for verb in ["copy-out", "doctor", "assemble --no-serve", "copy-in", "erase --yes"] {
        // A holder may be about to end: it is waited for, here for less than the usual two seconds.
        let ran = lab.line(&format!("{verb} d0 d1 d2 --open-seconds 1"));
        assert!(ran.code != 0, "{verb}: {ran:?}");
        let said = format!("{}{}", ran.text(), ran.err);
        assert!(["locked by", "in use", "busy: process"].iter().any(|word| said.contains(word)), "{verb}: {said}");
    }
    lab.line("create other --level 1 d0 d1 --yes --overwrite --open-seconds 1")
        .refused(65, &["/d0, ", "/d1: locked by"]);
    lab.line("examine d0").expect(0);
    assert_eq!(lab.fingerprints(&names), before);
    server.stop();
}

#[test]
fn remote_members_that_are_not_there_or_never_answer_cost_their_time_limit_and_nothing_else() {
    let (lab, names) = three();
    let uri = |name: &str| format!("nbd+unix:///x?socket={}", lab.path(name).display());
    let before = lab.fingerprints(&names);
    lab.run(&["examine", &uri("nobody")]).expect(4);
    // A server that listens and never answers. The limit is ten seconds; a test need not wait so long for it.
    let _silent = UnixListener::bind(lab.path("silent")).expect("a socket");
    let short = ["--open-seconds", "1"];
    let ran = lab.run(&[&["examine", &uri("silent")][..], &short].concat()).expect(4);
    assert!(ran.text().contains("silent: no answer within 1 s"), "{}", ran.text());
    let checked = lab.run(&[&["assemble", "--no-serve", "d0", "d1", &uri("silent")][..], &short].concat()).expect(1);
    assert!(checked.text().contains("starts degraded"), "{}", checked.text());
    let (silent, nobody) = (uri("silent"), uri("nobody"));
    let line = [&["create", "x", "--level", "1", &silent, &nobody][..], &short].concat();
    lab.run(&line).refused(74, &["silent", "nobody"]);
    lab.run(&["examine", "d0", "--open-seconds", "0"]).refused(64, &["1..=600"]);
    lab.run(&["examine", "nbd://"]).refused(64, &["no host"]);
    lab.run(&["examine", "nbds://host/"]).refused(64, &["TLS"]);
    assert_eq!(lab.fingerprints(&names), before);
}

#[test]
fn a_hostile_remote_member_is_refused_in_words() {
    let lab = Lab::new("hostile-remote");
    for (nth, greeting) in [&b"NBDMAGIC garbage garbage garbage"[..], b"", b"\0", &[0xff; 4096]].iter().enumerate() {
        let path = lab.path(&format!("socket{nth}"));
        let listener = UnixListener::bind(&path).expect("a socket");
        let greeting = greeting.to_vec();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.write_all(&greeting);
            }
        });
        let uri = format!("nbd+unix:///x?socket={}", path.display());
        let ran = lab.run(&["examine", &uri]).expect(4);
        assert!(ran.text().contains("socket"), "{}", ran.text());
    }
}

#[test]
fn wrong_usage_ends_with_its_code() {
    let lab = Lab::new("usage");
    for line in ["", "explode", "create", "create x", "show", "fail x", "copy-out", "serve --nbd nonsense", "set"] {
        let ran = lab.line(line);
        assert_eq!(ran.code, 64, "{line}: {ran:?}");
        assert!(!ran.err.is_empty() || !ran.out.is_empty(), "{line}");
    }
    lab.line("serve").refused(65, &["no array is remembered"]);
    lab.line("serve nobody").refused(65, &["nobody: no array of this name"]);
    lab.line("serve --memory 1M nobody").refused(64, &[]);
    lab.line("create a --level 1 --assume-clean --file-size 8M a0 a1").expect(0);
    let little =
        lab.line("serve --memory 1K a").refused(64, &["--memory 1 KiB: it is too little to work", " at least"]);
    let least = little.err.rsplit("give ").next().and_then(|rest| rest.split_once(" at least")).expect("a figure").0;
    let server = lab.serve(&["a", "--memory", &least.replace(" MiB", "M")]);
    // Errors begin with what can be typed.
    for (line, verb) in [("explain a --request last", "explain"), ("journal show nothing", "journal show")] {
        let ran = lab.line(line);
        assert!(ran.code != 0 && ran.err.starts_with(&format!("openraid {verb}: ")), "{ran:?}");
    }
    server.stop();
    lab.line("assemble").refused(64, &["no members"]);
    lab.line("assemble x --forget").refused(65, &["no array named"]);
    for line in ["--help", "help create", "create --help", "--version"] {
        lab.line(line).expect(0);
    }
}

#[test]
fn without_a_server_the_verbs_that_need_one_say_how_to_start_it() {
    let (lab, _) = three();
    for line in [
        "fail data d1",
        "locate data d1",
        "remove data d1",
        "add data d1",
        "replace data d1",
        "spare list data",
        "check data",
        "repair data",
        "pause data",
        "resume data",
        "set data rebuild.rate=1M",
        "explain data",
        "stop data",
        "show data --follow",
    ] {
        lab.line(line).refused(4, &["data is not served", "openraid serve data"]);
    }
    lab.line("stop --all").refused(4, &["no server runs"]);
    lab.line("show nobody").refused(65, &["nobody"]);
    let socket = lab.path("none.sock");
    lab.run(&["show", "data", "--control", socket.to_str().expect("UTF-8")]).refused(4, &["no server answers"]);
}

#[test]
fn trying_an_array_out_writes_nothing_even_where_serving_it_would() {
    let names = ["d0", "d1", "d2", "d3"];
    let served_and_written = |lab: &Lab| {
        let server = lab.serve(&["data"]);
        assert_eq!(Client::open(&lab.path("nbd.sock"), "data").ask(WRITE, 0, &[9; 4096]), 0);
        server
    };
    // Not synced yet, so that the engine would begin to; and marked active, as after a crash.
    let fresh = Lab::new("fresh");
    fresh.line("create data --level 5 --chunk 64K --file-size 8M d0 d1 d2 d3").expect(0);
    let crashed = Lab::new("crashed");
    crashed.line("create data --level 6 --chunk 64K --file-size 8M --bitmap internal d0 d1 d2 d3").expect(0);
    served_and_written(&crashed).kill();
    for lab in [fresh, crashed] {
        let before = lab.fingerprints(&names);
        for line in ["doctor data --read 10M", "copy-out data", "show data", "assemble data --no-serve", "examine d0"] {
            lab.line(line).expect(0);
            assert_eq!(lab.fingerprints(&names), before, "{line} has written to a member");
        }
        lab.line("copy-out --force d1 d2 d3").expect(1);
        assert_eq!(lab.fingerprints(&names), before, "a copy by force has written to a member");
        // A host's write is what changes the members.
        served_and_written(&lab).stop();
        assert_ne!(lab.fingerprints(&names), before);
    }
}
