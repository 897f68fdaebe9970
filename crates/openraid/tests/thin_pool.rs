//! Members on thin volumes of a pool that fills and is extended: the kernel's device mapper, in a Linux guest.

mod support;

use std::fs::{self, File};
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::client::Client;
use support::guest::{is_inside, rerun, tool, Loop};
use support::{Lab, FLUSH, WRITE};

/// Sectors of a thin volume, of the pool's data at first and after it is extended a little, and of the device that holds
/// the data.
const VOLUME: u64 = 64 << 11;
const POOL: u64 = 32 << 11;
const MORE: u64 = 33 << 11;
const DATA: u64 = 256 << 11;
/// Rows of the array that hosts use. The pool has room for one block of data and one of parity in each of them, and not
/// for all of the second blocks of data.
const ROWS: u64 = 180;
const BLOCK: u64 = 64 << 10;
/// Time between two looks at the pool.
const LOOK: Duration = Duration::from_millis(100);
/// NBD's number for a lack of room.
const NO_SPACE: u32 = 28;

#[track_caller]
fn dmsetup(words: &[&str]) {
    let output = Command::new("dmsetup").args(words).output().expect("the package dmsetup is installed");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A pool with three thin volumes, whose data is in a sparse file.
struct Pool {
    meta: Loop,
    data: Loop,
}

impl Pool {
    fn new(lab: &Lab) -> Self {
        let folder = format!("/usr/lib/uml/modules/{}/kernel", tool("uname -r"));
        for module in [
            "drivers/md/dm-bufio",
            "drivers/md/persistent-data/dm-persistent-data",
            "drivers/md/dm-bio-prison",
            "drivers/md/dm-thin-pool",
        ] {
            tool(&format!("insmod {folder}/{module}.ko"));
        }
        // Longer than the time limit of a command, and shorter than the kernel's 60 s.
        fs::write("/sys/module/dm_thin_pool/parameters/no_space_timeout", "35").expect("root");
        let sparse = |name: &str, len: u64| {
            let path = lab.path(name);
            File::create(&path).expect("room").set_len(len).expect("room");
            Loop::over(&path)
        };
        let files = Self { meta: sparse("meta", 4 << 20), data: sparse("pool", DATA * 512) };
        dmsetup(&["create", "pool", "--table", &files.table(POOL)]);
        for number in ["0", "1", "2"] {
            dmsetup(&["message", "pool", "0", &format!("create_thin {number}")]);
            let table = format!("0 {VOLUME} thin /dev/dm-0 {number}");
            dmsetup(&["create", &format!("thin{number}"), "--table", &table]);
        }
        files
    }

    /// As LVM makes it: the pool keeps writes for a time when it has no room.
    fn table(&self, sectors: u64) -> String {
        format!("0 {sectors} thin-pool {} {} 128 0", self.meta.0, self.data.0)
    }

    fn extend(&self, sectors: u64) {
        dmsetup(&["suspend", "--noflush", "pool"]);
        dmsetup(&["load", "pool", "--table", &self.table(sectors)]);
        dmsetup(&["resume", "pool"]);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for name in ["thin0", "thin1", "thin2", "pool"] {
            let _ = Command::new("dmsetup").args(["remove", "--force", name]).output();
        }
    }
}

/// The content of the first column of a row, and the older one of the second column.
fn first(row: u64) -> [u8; 4096] {
    [b'A' + u8::try_from(row % 26).expect("a letter"); 4096]
}
fn second(row: u64) -> [u8; 4096] {
    [b'a' + u8::try_from(row % 26).expect("a letter"); 4096]
}

fn first_at(row: u64) -> u64 {
    row * 2 * BLOCK
}
fn second_at(row: u64) -> u64 {
    first_at(row) + BLOCK
}

/// A host that fills the first column of one row after the other in a thread of its own, until a write is not carried
/// out. It has ended as many rows as the counter says.
struct Writer {
    ended: Arc<AtomicU64>,
    thread: thread::JoinHandle<(u64, u32)>,
}

impl Writer {
    fn begin(mut client: Client, rows: Range<u64>) -> Self {
        let ended = Arc::new(AtomicU64::new(rows.start));
        let counter = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            for row in rows.clone() {
                let error = client.ask(WRITE, first_at(row), &first(row));
                if error != 0 {
                    return (row, error);
                }
                counter.store(row + 1, Ordering::SeqCst);
            }
            (rows.end, 0)
        });
        Self { ended, thread }
    }

    /// Wait until the pool keeps a write. Returns its row.
    fn kept(&self) -> u64 {
        while !tool("dmsetup status --noflush pool").contains("out_of_data_space") {
            assert!(self.is_writing(), "the pool has no room for all rows, and keeps writes");
            thread::sleep(LOOK);
        }
        self.ended.load(Ordering::SeqCst)
    }

    fn is_writing(&self) -> bool {
        !self.thread.is_finished()
    }

    /// The first row that was not written, and the error of its write.
    fn end(self) -> (u64, u32) {
        self.thread.join().expect("the writer")
    }
}

/// The second column of all rows has its older data, and the first one has the new data of the rows that were written.
fn compare(client: &mut Client, written: Range<u64>, but: u64) {
    for row in (0..ROWS).filter(|row| *row != but) {
        assert_eq!(client.read_block(second_at(row)).expect("it is there"), second(row), "row {row}, older data");
    }
    for row in written {
        assert_eq!(client.read_block(first_at(row)).expect("it is there"), first(row), "row {row}");
    }
}

#[test]
fn members_on_a_pool_that_is_full_stay_and_go_on_when_it_is_extended() {
    const TEST: &str = "members_on_a_pool_that_is_full_stay_and_go_on_when_it_is_extended";
    if !is_inside() {
        return rerun(TEST, "a pool of the device mapper has to be made");
    }
    let lab = Lab::new("thin-pool");
    let pool = Pool::new(&lab);
    let made = "create data --level 5 --chunk 64K --assume-clean /dev/dm-1 /dev/dm-2 /dev/dm-3";
    lab.line(made).expect(0);
    lab.drives(&["a", "b"], 16);
    lab.line("create other --level 1 --assume-clean a b").expect(0);
    let mut server = lab.serve(&["data", "other"]);
    let open = |array| Client::open(&lab.path("nbd.sock"), array);
    let (mut client, mut other) = (open("data"), open("other"));
    for row in 0..ROWS {
        assert_eq!(client.ask(WRITE, second_at(row), &second(row)), 0, "there is room for the older data");
    }
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);

    // While the pool keeps a write, reads and other arrays go on.
    let writer = Writer::begin(open("data"), 0..ROWS);
    let kept = writer.kept();
    compare(&mut client, 0..kept, kept);
    assert_eq!(other.ask(WRITE, 0, &[b'O'; 4096]), 0, "the other array has room");
    assert_eq!(other.read_block(0).expect("it is there"), [b'O'; 4096]);
    assert!(writer.is_writing(), "all of that was answered before the pool gave up");

    // The pool gives up: that is a lack of room and nothing else.
    assert_eq!(writer.end(), (kept, NO_SPACE));
    server.wait_for_news("NoRoom", 1);
    lab.wait_for_alarms(|alarms| alarms.contains("no room for /dev/dm-"));
    assert_eq!(lab.show("data")["health"], "optimal", "a lack of room is no failure");
    compare(&mut client, 0..kept, ROWS);
    pool.extend(MORE);
    let is_well = |member: &Value| member["full"].is_null() && member["bad_ranges"] == 0;
    let is_all_well = |array: &Value| array["members"].as_array().expect("members").iter().all(is_well);
    lab.wait_for("data", is_all_well);

    // The pool is extended while it keeps a write, which ends well.
    let writer = Writer::begin(open("data"), kept..ROWS);
    let kept = writer.kept();
    pool.extend(DATA);
    assert_eq!(writer.end(), (ROWS, 0), "the pool kept the write of row {kept}, and then there was room");
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    lab.line("check data --follow").expect(0);
    compare(&mut client, 0..ROWS, ROWS);
    let failures: Vec<Value> = server
        .stop()
        .into_iter()
        .filter(|line| ["Fail", "Timeout"].iter().any(|word| line["news"]["event"] == *word))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
