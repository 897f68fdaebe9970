//! Members on thin volumes of a pool that fills and is extended: the kernel's device mapper, in a Linux guest.

mod support;

use std::fs::{self, File};
use std::process::Command;

use serde_json::Value;
use support::client::Client;
use support::guest::{is_inside, rerun, tool, Loop};
use support::{Lab, FLUSH, READ, WRITE};

/// Sectors of a thin volume, of the pool's data at first, and of the device that holds the data.
const VOLUME: u64 = 64 << 11;
const POOL: u64 = 32 << 11;
const DATA: u64 = 256 << 11;
/// Rows of the array, each with a block of data and one of parity: more than the pool has room for.
const ROWS: u64 = 300;
const BLOCK: u64 = 64 << 10;
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

    fn extend(&self) {
        dmsetup(&["suspend", "pool"]);
        dmsetup(&["load", "pool", "--table", &self.table(DATA)]);
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
    let mut server = lab.serve(&["data"]);
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    let row = |number: u64| number * 2 * BLOCK;
    let refused = (0..ROWS).find(|number| client.ask(WRITE, row(*number), &[b'A'; 4096]) == NO_SPACE);
    let refused = refused.expect("the pool has no room for all rows");
    server.wait_for_news("NoRoom", 1);
    assert_eq!(lab.show("data")["health"], "optimal", "a lack of room is no failure");
    for number in 0..refused {
        assert_eq!(client.ask(READ, row(number), &[0; 4096]), 0, "row {number} is there");
    }
    pool.extend();
    let is_well = |member: &Value| member["full"].is_null() && member["bad_ranges"] == 0;
    lab.wait_for("data", |array| array["members"].as_array().expect("members").iter().all(is_well));
    for number in refused..ROWS {
        assert_eq!(client.ask(WRITE, row(number), &[b'A'; 4096]), 0, "there is room");
    }
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    lab.line("check data --follow").expect(0);
    let failures: Vec<Value> = server
        .stop()
        .into_iter()
        .filter(|line| ["Fail", "Timeout"].iter().any(|word| line["news"]["event"] == *word))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
