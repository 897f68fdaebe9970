//! A device of the journal hangs while an array serves, and answers again.

#[path = "../../sys/tests/common/mod.rs"]
mod common;
mod support;

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Frozen, Small, TempDir};
use openraid_core::admin::{AdminCommand, JournalState, Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_format::{MdLevel, Uuid};
use openraid_runtime::member::{MemberSpec, OpenOptions};
use openraid_runtime::service::journal::{make, JoinRequest, JournalKeeper, JournalNews, JournalRequest, LastUse};
use openraid_runtime::service::ServiceStatus;
use openraid_runtime::ServiceConfig;
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, Nanos, Sectors};
use support::{noise, open_members, request, small_limits, Server};

const CONTROLLER: Uuid = Uuid([1; 16]);
const JOURNAL_BYTES: u64 = 16 << 20;
/// What does not come within this never does.
const PATIENCE: Duration = Duration::from_secs(180);

/// Commands that are not answered are given up soon, and not so soon that a device that works is left out.
fn impatient(config: ServiceConfig) -> ServiceConfig {
    let base = small_limits();
    let (cache, journal) = (Bytes::mib(8), Bytes::mib(4));
    let pool = base.pool + cache + journal;
    let limits = Limits { command_timeout: Nanos::from_secs(5), pool, cache, journal, ..base };
    ServiceConfig { limits, ..config }
}

/// An array in memory whose writes the journal on these files promises, and the keeper of that journal.
struct Rig {
    server: Server,
    keeper: JournalKeeper,
    wanted: JournalRequest,
    array: ArrayId,
    /// The notes that the server gave when it attached the journal.
    notes: Vec<String>,
}

impl Rig {
    /// With a new journal.
    fn new(name: &str, files: &[PathBuf]) -> Self {
        made(files);
        Self::with(name, files)
    }

    /// With the journal that these files hold.
    fn with(name: &str, files: &[PathBuf]) -> Self {
        let names = names(files);
        let server = Server::with(name, impatient);
        let devices: Vec<MemberSpec> = names.iter().map(|name| name.parse().expect("a name")).collect();
        let open = OpenOptions::new(Use::Exclusive);
        let wanted = JournalRequest {
            devices,
            controller: CONTROLLER,
            alone: false,
            last_uses: Vec::new(),
            seen: Vec::new(),
            open,
        };
        let notes = server.handle.attach_journal(&wanted).expect("a journal").notes;
        server.handle.wait_for_journal().expect("it works");
        let keeper = JournalKeeper::start(server.handle.clone(), wanted.clone()).expect("a thread");
        let journal = server.handle.status().expect("it runs").journal.expect("just attached");
        let devices = u8::try_from(files.len()).expect("few");
        keeper.remember_use(LastUse { journal: journal.uuid, epoch: journal.epoch, devices, entry: journal.durable });
        let members = vec!["ram:32M".to_owned(), "ram:32M".to_owned()];
        let array = server.create(request(MdLevel::Raid1, Sectors(0), &members));
        let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
        server.handle.admin(AdminCommand::SetPolicy { array, policy }).expect("it may");
        Self { server, keeper, wanted, array, notes }
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&ServiceStatus) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = self.server.handle.status().expect("it runs");
            if is_so(&status) {
                return;
            }
            assert!(Instant::now() < end, "not {what}: {:#?}, {:?}", status.journal, self.keeper.trouble());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_news(&self, what: &str, wanted: impl Fn(&JournalNews) -> bool) -> JournalNews {
        let (end, mut seen) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            let news = self.keeper.news();
            if let Some(found) = news.iter().find(|news| wanted(news)) {
                return found.clone();
            }
            seen.extend(news);
            assert!(Instant::now() < end, "not told that it is {what}: {seen:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_protection(&self) {
        self.wait_for("protected", |status| status.arrays.iter().all(|view| view.protection.is_ok()));
    }

    /// Until both devices carry the journal; meanwhile this is done again and again.
    fn wait_for_both(&self, meanwhile: impl Fn()) {
        self.wait_for("mirrored", |status| {
            meanwhile();
            status
                .journal
                .as_ref()
                .is_some_and(|journal| journal.devices.iter().filter(|(_, works)| *works).count() == 2)
        });
    }

    /// Write a MiB with its own content in small pieces, and check the content of earlier writes.
    fn write(&self, nth: u64) {
        for (at, piece) in (0_u64..).zip(noise(nth, 1 << 20).chunks(64 << 10)) {
            self.server.handle.write(self.array, (nth << 20) + (at << 16), piece, false).expect("it is written");
        }
        for nth in 0..=nth {
            let mut read = vec![0; 1 << 20];
            self.server.handle.read(self.array, nth << 20, &mut read).expect("it is read");
            assert!(read == noise(nth, 1 << 20), "MiB {nth}");
        }
    }

    /// Do these devices of the journal work, one by one?
    fn wait_for_devices(&self, what: &str, wanted: &[bool]) {
        self.wait_for(what, |status| {
            let Some(journal) = status.journal.as_ref().filter(|journal| journal.state == JournalState::Live) else {
                return false;
            };
            journal.devices.iter().map(|(_, works)| *works).eq(wanted.iter().copied())
        });
    }
}

fn names(files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|path| path.to_str().expect("UTF-8").into()).collect()
}

/// A new journal on these files.
fn made(files: &[PathBuf]) {
    let opened: Vec<_> = open_members(&names(files)).into_iter().map(|(opened, _)| opened).collect();
    make(&opened, Uuid([2; 16]), CONTROLLER).expect("a journal");
}

/// A file for the journal that has all its room.
fn journal_on(frozen: &Frozen) -> PathBuf {
    frozen.file("j", &vec![0; usize::try_from(JOURNAL_BYTES).expect("16 MiB")])
}

#[test]
fn a_journal_whose_only_device_hung_is_back_when_it_answers_again() {
    let dir = TempDir::quick();
    let Some(frozen) = Frozen::make(&dir) else { return };
    let rig = Rig::new("hang-only", &[journal_on(&frozen)]);
    rig.wait_for_protection();
    rig.write(0);
    frozen.freeze();
    rig.write(1);
    // The journal is lost, and the server tries the device while the device hangs. The server reports another reason
    // until the device is no longer in use.
    rig.wait_for_news(
        "away",
        |news| matches!(news, JournalNews::StillAway(why) if why.contains("has not finished earlier commands")),
    );
    rig.write(2);
    frozen.thaw();
    rig.wait_for_news("back", |news| matches!(news, JournalNews::Back(_)));
    rig.wait_for_protection();
    rig.write(3);
    let status = rig.server.handle.status().expect("it runs");
    assert_eq!(status.drives.len(), 3, "a drive is left over: {:#?}", status.drives);
}

#[test]
fn the_device_that_carried_the_journal_alone_is_used_while_the_other_one_hangs() {
    let dir = TempDir::quick();
    let (Some(frozen), Some(small)) = (Frozen::make(&dir), Small::make(&dir, 20)) else { return };
    let rig = Rig::new("hang-one", &[journal_on(&frozen), small.file("j", JOURNAL_BYTES)]);
    rig.wait_for_protection();
    rig.write(0);
    frozen.freeze();
    rig.write(1);
    rig.wait_for_devices("carried by one", &[false, true]);
    let filler = small.fill();
    // It is lost, and may be back, to be lost again, before there is room.
    (2..6).for_each(|nth| rig.write(nth));
    std::fs::remove_file(&filler).expect("it is there");
    let back = rig.wait_for_news("back", |news| matches!(news, JournalNews::Back(_)));
    let JournalNews::Back(notes) = back else { panic!("{back:?}") };
    let alone =
        |note: &String| note.contains("has not finished earlier commands") && note.contains("has carried it alone");
    assert!(notes.iter().any(alone), "{notes:?}");
    rig.wait_for_protection();
    rig.wait_for_devices("on one", &[true]);
    rig.write(6);
    frozen.thaw();
    // The keeper does so, too, when it looks next.
    let device = rig.wanted.devices[0].clone();
    let join = JoinRequest { device, controller: CONTROLLER, overwrite: false, open: rig.wanted.open };
    rig.wait_for_both(|| {
        let _ = rig.server.handle.join_journal(&join);
    });
    rig.write(7);
}

#[test]
fn a_stale_device_that_accepts_no_write_does_not_delay_a_start() {
    let dir = TempDir::quick();
    let Some(frozen) = Frozen::make(&dir) else { return };
    let (behind, [whole, other]) = (journal_on(&frozen), ["whole", "other"].map(|name| dir.path(name)));
    for path in [&whole, &other] {
        std::fs::File::create(path).and_then(|file| file.set_len(JOURNAL_BYTES)).expect("a file");
    }
    made(&[whole.clone(), other.clone()]);
    std::fs::copy(&other, &behind).expect("room");
    let rig = Rig::with("behind-made", &[whole.clone(), other]);
    rig.wait_for_protection();
    rig.write(0);
    drop(rig);
    // It can be read.
    frozen.freeze();
    let (sender, is_started) = mpsc::channel();
    thread::spawn(move || {
        let _ = sender.send(Rig::with("behind", &[whole, behind]));
    });
    let rig = is_started.recv_timeout(PATIENCE).expect("it starts without that device");
    let left_out = |note: &String| note.contains("no answer for") && note.contains("whole is used alone");
    assert!(rig.notes.iter().any(left_out), "{:?}", rig.notes);
    rig.wait_for_protection();
    rig.write(0);
    frozen.thaw();
    rig.wait_for_both(|| ());
    rig.write(1);
}
