//! Makes the golden superblocks of changes of shape again: `cargo run -p openraid-oracle --bin golden-changes -- FOLDER
//! [NAME...]`, then compare and move them into `crates/format/tests/golden`.
//!
//! For each change md makes an array, begins `mdadm --grow` and stands still at a sector of the members (`sync_max`), so
//! that its superblocks say exactly that position. They are kept then; for some changes also before the begin and after
//! the end. `crates/format/tests/golden/README.md` has the form of the files. Identifiers and times are those of the run.

#![forbid(unsafe_code)]

use openraid_oracle::{Guest, OracleError};
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(300);
/// Size of a member.
const MIB: u64 = 40;
/// The superblock of version 1.2 and its length with the role table that mdadm makes.
const SUPERBLOCK_AT: u64 = 4096;
const SUPERBLOCK_BYTES: usize = 512;
const ROW: usize = 32;
/// Sectors by which the data move up in a change that goes backwards.
const SHIFT_UP: u64 = 512;

/// A change and the words for mdadm.
struct Change {
    name: &'static str,
    /// mdadm's words at the creation.
    create: &'static str,
    /// Members at the creation.
    members: usize,
    /// Members that are added as spares before the change.
    spares: usize,
    /// Members that `--grow` itself adds; their devices follow its words.
    added: usize,
    /// mdadm's words at the change, or the kernel's attribute and its new value.
    grow: &'static str,
    /// Backwards. mdadm would want a file for a backup, so the kernel is told directly.
    backwards: bool,
    /// A smaller array, before its members become fewer: numerator and denominator.
    shrink: Option<(u64, u64)>,
    /// The sector of the members at which the change stands still.
    stand: u64,
    /// Are the superblocks before and after the change kept too?
    ends: bool,
}

const fn change(name: &'static str, create: &'static str, members: usize, grow: &'static str) -> Change {
    Change {
        name,
        create,
        members,
        spares: 0,
        added: 0,
        grow,
        backwards: false,
        shrink: None,
        stand: 8192,
        ends: false,
    }
}

fn changes() -> Vec<Change> {
    vec![
        Change { spares: 1, ends: true, ..change("raid5-4-to-5", "--level=5 --chunk=64", 4, "--raid-devices=5") },
        Change { spares: 2, ..change("raid5-3-to-5", "--level=5 --chunk=64", 3, "--raid-devices=5") },
        Change { spares: 1, ..change("raid6-4-to-5", "--level=6 --chunk=64", 4, "--raid-devices=5") },
        Change { spares: 1, ..change("raid4-3-to-4", "--level=4 --chunk=64", 3, "--raid-devices=4") },
        Change { spares: 1, ..change("raid5-to-raid6", "--level=5 --chunk=64", 3, "--level=6 --raid-devices=4") },
        change("raid6-to-raid5", "--level=6 --chunk=64", 5, "--level=5 --raid-devices=4"),
        Change { ends: true, ..change("raid5-chunk-128", "--level=5 --chunk=64", 4, "--chunk=128") },
        change("raid5-layout", "--level=5 --chunk=64", 4, "--layout=right-symmetric"),
        Change {
            backwards: true,
            shrink: Some((3, 4)),
            ends: true,
            ..change("raid5-5-to-4", "--level=5 --chunk=64 --size=32768", 5, "raid_disks 4")
        },
        Change {
            backwards: true,
            ..change("raid5-layout-backwards", "--level=5 --chunk=64 --size=32768", 4, "layout 3")
        },
        Change { spares: 1, ..change("raid10-4-to-5", "--level=10 --layout=n2 --chunk=64", 4, "--raid-devices=5") },
        change("raid10-chunk-128", "--level=10 --layout=n2 --chunk=64", 4, "--chunk=128"),
        Change { added: 1, ..change("raid0-3-to-4", "--level=0 --chunk=64", 3, "--raid-devices=4") },
    ]
}

/// Words for the job: keep the superblocks and mdadm's description of them, and wait until a change stands still.
const WORDS: &str = r#"
export MDADM_NO_SYSTEMCTL=1
keep() {
    local state=$1 n=0
    shift
    for device in "$@"; do
        dd if="$device" bs=4096 skip=1 count=1 iflag=direct status=none | head -c 512 | od -An -v -tx1 -w32 >"$state.$n.hex"
        mdadm --examine "$device" >"$state.$n.txt"
        n=$((n + 1))
    done
}
stand() {
    local last=none now same=0 try
    for try in $(seq 600); do
        now=$(cat "$sys/sync_completed")
        case $now in none | delayed) same=0 ;; "$last") same=$((same + 1)) ;; *) same=0 ;; esac
        [ $same -lt 12 ] || return 0
        last=$now
        sleep 0.1
    done
    echo "the change does not stand still: $now, $(cat "$sys/sync_action")"
    return 1
}
"#;

fn job(change: &Change, devices: &[String]) -> String {
    let first = devices[..change.members].join(" ");
    let spares = devices[change.members..][..change.spares].join(" ");
    let all = devices.join(" ");
    let bitmap = if change.create.contains("level=0") { "" } else { "--bitmap=none --assume-clean" };
    let mut job = String::from(WORDS);
    let mut line = |text: String| {
        job.push_str(&text);
        job.push('\n');
    };
    line(format!("create c --raid-devices={} {} --metadata=1.2 {bitmap} {first}", change.members, change.create));
    line(String::from("sys=/sys/block/${md[c]#/dev/}/md"));
    line(String::from("size=$(blockdev --getsize64 ${md[c]})"));
    if let Some((part, of)) = change.shrink {
        line(format!("mdadm --grow ${{md[c]}} --array-size=$((size / 1024 * {part} / {of}))"));
    }
    if change.spares > 0 {
        line(format!("mdadm ${{md[c]}} --add {spares}"));
    }
    if change.ends {
        line(format!("keep before {all}"));
    }
    line(String::from("echo 4000 >/proc/sys/dev/raid/speed_limit_max; echo 100 >/proc/sys/dev/raid/speed_limit_min"));
    let added = devices[change.members + change.spares..].join(" ");
    if change.added > 0 {
        // RAID 0 has no `sync_max`. It is there for the moment between the takeover to RAID 4 and the begin.
        line(format!("until echo {} >$sys/sync_max; do :; done 2>/dev/null &", change.stand));
        line(format!("mdadm --grow ${{md[c]}} {} --add {added} </dev/null &", change.grow));
        line(String::from("until [ -e $sys/sync_completed ]; do sleep 0.1; done"));
    } else if let (true, Some((attribute, value))) = (change.backwards, change.grow.split_once(' ')) {
        line(format!("echo {} >$sys/sync_max; echo backwards >$sys/reshape_direction", change.stand));
        line(format!("for it in $sys/dev-*; do echo $(($(cat $it/offset) + {SHIFT_UP})) >$it/new_offset; done"));
        line(format!("echo {value} >$sys/{attribute}; echo reshape >$sys/sync_action"));
    } else {
        line(format!("echo {} >$sys/sync_max", change.stand));
        line(format!("mdadm --grow ${{md[c]}} {} </dev/null", change.grow));
    }
    line(format!("stand; cat /proc/mdstat; keep middle {all}"));
    if change.ends {
        line(String::from(
            "echo 1000000 >/proc/sys/dev/raid/speed_limit_max; echo max >$sys/sync_max; sleep 1; settle c",
        ));
        line(format!("sleep 1; keep after {all}"));
    }
    line(String::from("echo frozen >$sys/sync_action; stop c"));
    job
}

/// Runs a change and writes its files.
fn make(change: &Change, folder: &Path) -> Result<(), OracleError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error| OracleError::File { path, error }
    };
    let images: Vec<_> = (0..change.members + change.spares + change.added)
        .map(|index| folder.join(format!("{}.{index}.img", change.name)))
        .collect();
    for image in &images {
        File::create(image).and_then(|file| file.set_len(MIB << 20)).map_err(failed(image))?;
    }
    let mut guest = Guest::new();
    let devices = guest.images(&images);
    guest.script(&job(change, &devices));
    let output = guest.run(TIMEOUT)?;
    for image in &images {
        fs::remove_file(image).map_err(failed(image))?;
    }
    let states: &[(&str, &str)] =
        if change.ends { &[("before", "-before"), ("middle", ""), ("after", "-after")] } else { &[("middle", "")] };
    for (state, suffix) in states {
        let mut text = String::new();
        // Members differ only in their number: the first one, and the last one, which is the new one if there is any.
        for index in [0, images.len() - 1] {
            let rows = output.file(&format!("{state}.{index}.hex"))?;
            let said = output.file(&format!("{state}.{index}.txt"))?;
            text.push_str(&member(index, &rows, &said));
        }
        let path = folder.join(format!("change-{}{suffix}.txt", change.name));
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// A member in the form of the golden files.
fn member(index: usize, rows: &str, said: &str) -> String {
    let mut text = format!("member {index} {}\narea {SUPERBLOCK_AT} {SUPERBLOCK_BYTES}\n", MIB << 11);
    let rows: Vec<String> = rows.lines().map(|row| row.split_whitespace().collect()).collect();
    let mut at = 0;
    while at < rows.len() {
        let times = rows[at..].iter().take_while(|row| **row == rows[at]).count();
        if rows[at].bytes().any(|digit| digit != b'0') {
            let place = SUPERBLOCK_AT + (at * ROW) as u64;
            let repeat = if times > 1 { format!(" x{times}") } else { String::new() };
            text.push_str(&format!("{place} {}{repeat}\n", rows[at]));
        }
        at += times;
    }
    text.push_str("examine\n");
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        text.push_str(&format!("| {line}\n"));
    }
    text
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, names)) = words.split_first() else {
        eprintln!("golden-changes FOLDER [NAME...]");
        return ExitCode::from(64);
    };
    for change in changes().iter().filter(|change| names.is_empty() || names.iter().any(|name| name == change.name)) {
        if let Err(error) = make(change, Path::new(folder)) {
            eprintln!("golden-changes: {}: {error}", change.name);
            return ExitCode::FAILURE;
        }
        println!("{}", change.name);
    }
    ExitCode::SUCCESS
}
