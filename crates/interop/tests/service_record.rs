//! The events of a run of the service, replayed into a new engine, give the same actions, byte for byte.

#[path = "../../runtime/tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use openraid_core::admin::AdminCommand;
use openraid_core::Actions;
use openraid_format::MdLevel;
use openraid_nbd::NbdCommand;
use openraid_runtime::engine_recorder::{EngineCall, Recorder};
use openraid_runtime::ServiceConfig;
use openraid_sim::digest::Digest;
use openraid_sim::record::{Record, RecordEntry};
use openraid_units::{Instant, Sectors};
use support::random::Random;
use support::{request, small_limits, Server};

/// Keeps the stream of events in the simulator's form, and a hash of the resulting actions.
#[derive(Clone)]
struct Keeper(Arc<Mutex<(Record, Digest)>>);

impl Recorder for Keeper {
    fn event(&mut self, event: EngineCall<'_>) {
        let entry = match event {
            EngineCall::WallClock(at_zero) => RecordEntry::WallClock(at_zero),
            EngineCall::Submit(request) => RecordEntry::Submit(*request),
            EngineCall::Complete(completion) => RecordEntry::Complete(*completion),
            EngineCall::Admin(token, command) => RecordEntry::Admin(token, Box::new(command.clone())),
        };
        self.0.lock().expect("no panic").0.push(entry);
    }
    fn advanced(&mut self, now: Instant, actions: &Actions) {
        let mut kept = self.0.lock().expect("no panic");
        kept.0.push(RecordEntry::Advance(now));
        kept.1.advance(now, actions);
    }
}

#[test]
fn a_recorded_run_replays_to_the_same_actions() {
    let keeper = Keeper(Arc::new(Mutex::new((Record::new(small_limits()), Digest::default()))));
    let recorder: Option<Box<dyn Recorder>> = Some(Box::new(keeper.clone()));
    let server = Server::with("record", |config| ServiceConfig { recorder, ..config });
    let members = server.folder.members(4, 24 << 20);
    let array = server.create(request(MdLevel::Raid5, Sectors::kib(64), &members));
    let mut random = Random::new(3);
    let mut client = server.connect();
    let size = client.session().size.get();
    for round in 0..400 {
        let len = *random.pick(&[512u64, 4096, 5000, 65_536, 1 << 20]);
        let offset = random.below(usize::try_from(size - len).expect("small")) as u64;
        let command = *random.pick(&[
            NbdCommand::Read { dont_fragment: false },
            NbdCommand::Write { fua: round % 9 == 0 },
            NbdCommand::WriteZeroes { fua: false, no_hole: true, fast: false },
            NbdCommand::Flush,
        ]);
        let (offset, len) = if command == NbdCommand::Flush { (0, 0) } else { (offset, len) };
        let payload = if command.is_write() { random.bytes(usize::try_from(len).expect("small")) } else { vec![] };
        let request = client.request(command, offset, len);
        client.send(request, &payload);
        if round % 16 == 15 {
            (0..16).for_each(|_| assert_eq!(client.wait().1.result, Ok(())));
        }
        if round == 200 {
            let drive = server.handle.status().expect("it runs").drives[1].drive;
            server.handle.admin(AdminCommand::Fail { array, drive, unsynced: true }).expect("the array survives it");
        }
    }
    client.disconnect();
    server.service.stop();
    let (record, digest) = keeper.0.lock().expect("no panic").clone();
    assert!(record.entries.len() > 2000 && digest.actions > 2000, "the run was too small to prove anything");
    assert_eq!(record.replay(), digest);
    let bytes = record.encode();
    assert_eq!(Record::decode(&bytes).expect("its own bytes").replay(), digest);
}
