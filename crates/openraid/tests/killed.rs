//! Kills under load, one after the other: nothing that was acknowledged is lost, neither data nor settings, and alarms are right.
//!
//! A soak takes 200; `OPENRAID_KILLS` says how many. Each kill meets four clients that write, a client that changes a setting, and
//! every fourth an array that loses a member or gets it back.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::client::Client;
use support::{Lab, Server, WRITE};

/// Kills of one run, and of a soak.
const KILLS: (u64, u64) = (2, 200);
/// Number of clients that write, each in its own region.
const CLIENTS: u64 = 4;
/// Blocks of a region.
const BLOCKS: u64 = 256;
const BLOCK: u64 = 4096;
/// Number of acknowledged writes.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

/// A region of the array: for each block the last acknowledged write, and the last requested one.
struct Region {
    first: u64,
    acknowledged: Vec<u64>,
    asked: Vec<u64>,
}

/// The content of a block by its write.
fn content(block: u64, write: u64) -> Vec<u8> {
    (write << 16 | block).to_le_bytes().repeat(512)
}

impl Region {
    fn new(nth: u64) -> Self {
        let none = || vec![0; usize::try_from(BLOCKS).expect("few")];
        Self { first: nth * BLOCKS, acknowledged: none(), asked: none() }
    }

    /// Write until the server is gone. Writes are numbered from this one on; the number of the last.
    fn write(mut self, mut client: Client, mut write: u64) -> (Self, u64) {
        let mut drawn = write.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        loop {
            drawn ^= drawn << 13;
            drawn ^= drawn >> 7;
            drawn ^= drawn << 17;
            let place = usize::try_from(drawn % BLOCKS).expect("few");
            let block = self.first + drawn % BLOCKS;
            write += 1;
            self.asked[place] = write;
            match client.try_ask(WRITE, block * BLOCK, &content(block, write)) {
                Ok(0) => {
                    self.acknowledged[place] = write;
                    ANSWERS.fetch_add(1, Ordering::Relaxed);
                }
                Ok(error) => panic!("block {block}: refused with {error}"),
                Err(_) => return (self, write),
            }
        }
    }

    /// Every block has its last acknowledged write, or a later requested one.
    fn check(&mut self, client: &mut Client) {
        for place in 0..usize::try_from(BLOCKS).expect("few") {
            let block = self.first + place as u64;
            let bytes = client.read_block(block * BLOCK).expect("it is served");
            let word = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            let (write, last, asked) = (word >> 16, self.acknowledged[place], self.asked[place]);
            let wanted = if write == 0 { vec![0; bytes.len()] } else { content(block, write) };
            assert!(bytes == wanted, "block {block} is torn");
            assert!(
                write == last || write == asked,
                "block {block} has write {write}, {last} was acknowledged, {asked} asked for"
            );
            (self.acknowledged[place], self.asked[place]) = (write, write);
        }
    }
}

/// Change a setting until the server is gone. Returns the last requested value, and the last acknowledged one.
fn change(server: &Server, mut rate: u64) -> JoinHandle<(u64, Option<u64>)> {
    let control = server.ready["control"].as_str().expect("a path").to_owned();
    thread::spawn(move || {
        let mut stream = UnixStream::connect(control).expect("it listens");
        let mut answers = BufReader::new(stream.try_clone().expect("a socket")).lines();
        let mut acknowledged = None;
        loop {
            rate += 1;
            let line = format!(r#"{{"v":2,"do":"set","array":"data","settings":[["rebuild.rate","{rate}M"]]}}"#);
            let asked = writeln!(stream, "{line}").ok().and_then(|()| answers.next()?.ok());
            match asked {
                Some(answer) => assert!(answer.contains(r#""ok""#) && !answer.contains("lasts until"), "{answer}"),
                None => return (rate, acknowledged),
            }
            acknowledged = Some(rate);
            thread::sleep(Duration::from_millis(3));
        }
    })
}

/// The alarm of a degraded array holds exactly if the array is degraded.
fn alarms_are_right(lab: &Lab, name: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let degraded = lab.show(name)["health"] != "optimal";
        let answer = lab.line("alarms --json").expect(0).json();
        let id = format!("{name}:DegradedArray");
        let is_it = |alarm: &&Value| alarm["id"] == id.as_str() && alarm["until_seconds"].is_null();
        let count = answer["alarms"].as_array().expect("a list").iter().filter(is_it).count();
        if count == usize::from(degraded) {
            return;
        }
        assert!(Instant::now() < until, "{name} is degraded: {degraded}, and has {count} such alarms: {answer:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the next server must still know.
struct Promised {
    regions: Vec<Region>,
    /// The number of the last write.
    write: u64,
    /// The rate that was requested last, and the last one that was acknowledged.
    rate: u64,
    kept: u64,
    /// A member of the mirror was failed by order.
    is_failed: bool,
}

impl Promised {
    /// Everything that was acknowledged is there, and alarms are right.
    fn check(&mut self, lab: &Lab, kill: u64) {
        let data = lab.show("data");
        let (found, kept, rate) =
            (data["settings"]["rebuild_rate"].as_u64().expect("a rate") >> 20, self.kept, self.rate);
        assert!(found == kept || found == rate, "kill {kill}: rate {found}; {kept} was acknowledged, {rate} asked for");
        self.kept = found;
        assert_eq!((&data["health"], &data["journal"]["protected"]), (&"optimal".into(), &true.into()), "kill {kill}");
        let pair = lab.show("pair");
        assert_eq!(pair["settings"]["scrub_rate"], 3 << 20, "the file holds");
        assert!(!self.is_failed || pair["health"] == "degraded", "kill {kill}: the failure of a member was forgotten");
        alarms_are_right(lab, "pair");
        alarms_are_right(lab, "data");
        let mut client = Client::open(&lab.path("nbd.sock"), "data");
        self.regions.iter_mut().for_each(|region| region.check(&mut client));
    }

    /// Load, orders, and a kill in the middle.
    fn kill(&mut self, lab: &Lab, server: Server, kill: u64) {
        let write_from = |region: Region| {
            let (client, write) = (Client::open(&lab.path("nbd.sock"), "data"), self.write);
            thread::spawn(move || region.write(client, write))
        };
        let answers = ANSWERS.load(Ordering::Relaxed);
        let clients: Vec<_> = std::mem::take(&mut self.regions).into_iter().map(write_from).collect();
        let setting = change(&server, self.rate);
        match kill % 4 {
            1 => {
                lab.line("fail pair p1").expect(0);
                self.is_failed = true;
            }
            3 => {
                let _ = lab.line("remove pair p1");
                let added = lab.line("add pair p1 --yes --overwrite");
                assert!([0, 1].contains(&added.code), "{added:?}");
                self.is_failed = false;
            }
            _ => {}
        }
        // The kill meets another moment each time. On a busy machine the first answer can be late, and every second kill waits for it.
        let until = Instant::now() + Duration::from_secs(60);
        while kill % 2 == 1 && ANSWERS.load(Ordering::Relaxed) == answers {
            assert!(Instant::now() < until, "no write is answered");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20 + kill * 37 % 300));
        server.kill();
        for client in clients {
            let (region, last) = client.join().expect("the client");
            self.regions.push(region);
            self.write = self.write.max(last);
        }
        let (rate, acknowledged) = setting.join().expect("the client");
        (self.rate, self.kept) = (rate, acknowledged.unwrap_or(self.kept));
    }
}

#[test]
fn kills_under_load_lose_nothing_that_was_acknowledged() {
    let wanted = std::env::var("OPENRAID_KILLS").ok().map(|count| count.parse().expect("OPENRAID_KILLS is a number"));
    let soak = std::env::var_os("OPENRAID_SOAK").map(|_| KILLS.1);
    let kills = wanted.or(soak).unwrap_or(KILLS.0);
    let lab = Lab::new("killed");
    lab.line("journal create --size 16M j0").expect(0);
    let policy = "--assume-clean --consistency-policy controller-journal";
    lab.line(&format!("create data --level 5 --chunk 64K {policy} --file-size 16M d0 d1 d2")).expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1").expect(0);
    let config = format!(
        "[server]\nnbd-unix = {:?}\njournal = [\"{}\"]\n[arrays.pair.settings]\nscrub.rate = \"3M\"\n",
        lab.path("nbd.sock"),
        lab.path("j0").display()
    );
    fs::write(lab.path("openraid.toml"), &config).expect("room");
    let regions = (0..CLIENTS).map(Region::new).collect();
    let mut promised = Promised { regions, write: 0, rate: 200, kept: 200, is_failed: false };
    for kill in 0..=kills {
        let mut command = lab.command(&["serve", "--json", "--config", "openraid.toml"]);
        command.stderr(fs::File::create(lab.path("said")).expect("room"));
        let server = Server::started(&mut command).unwrap_or_else(|line| panic!("kill {kill}: not ready: {line}"));
        promised.check(&lab, kill);
        if kill == kills {
            server.stop();
            break;
        }
        promised.kill(&lab, server, kill);
    }
    assert_eq!(fs::read_to_string(lab.path("openraid.toml")).ok(), Some(config), "people's file is people's");
    let log = lab.line("events --json").expect(0).json();
    assert_eq!(log["damaged"], 0);
    let Promised { regions, write, rate, .. } = promised;
    let done = regions.iter().flat_map(|region| &region.acknowledged).filter(|write| **write > 0).count();
    assert!(done > 0, "nothing was written");
    if soak.or(wanted).is_some() {
        let summary = format!("{kills} kills, {write} writes numbered, settings up to {rate}M: nothing lost");
        let _ = writeln!(std::io::stderr(), "{summary}");
    }
}
