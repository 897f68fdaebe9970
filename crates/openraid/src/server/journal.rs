//! The journal of a server: opened before arrays are started, watched, shown; its entries are discarded by array.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use openraid_core::admin::{AdminCommand, Health, JournalLoss, JournalState, JournalStatus};
use openraid_format::{ForeignKind, Uuid};
use openraid_runtime::member::MemberSpec;
use openraid_runtime::service::journal::{
    look, missing, JoinRequest, JournalKeeper, JournalNews, JournalRequest, LastUse, LookFor,
};
use openraid_runtime::service::ServiceStatus;
use openraid_sys::Use;
use openraid_units::Sectors;

use super::array_model::{unprotected, ServedArray};
use super::change_settings::never_protected;
use super::joining_members::check_free;
use super::Server;
use crate::control::ServerAnswer;
use crate::events::{plain, News};
use crate::failure::{Failure, Obstacle};
use crate::members::{open_some, options, spec};
use crate::model::{
    JournalArrayModel, JournalCountersModel, JournalDeviceModel, JournalJoinModel, JournalModel, JournalWord, LossModel,
};
use crate::on_disk::unused_journals::{array_word, name_arrays};
use crate::output::discard_loss::LossEstimate;
use crate::quantity::counted;
use openraid_status::shell_quoting::command;
use openraid_status::EventName;

/// The journal that a server was started with.
#[derive(Debug)]
pub struct OwnJournal {
    keeper: JournalKeeper,
    /// When the registry was told last how far the journal has come, and the entry.
    told: Mutex<(Instant, u64)>,
}

/// How often the registry is told how far the journal has come, while it is written.
const TOLD_EVERY: Duration = Duration::from_secs(10);

impl Server {
    /// Open the journal, and watch it. Returns notes for the administrator.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open_journal(&self, request: JournalRequest) -> Result<Vec<String>, Failure> {
        let mut started = self.handle.attach_journal(&request)?;
        self.state().troubles.journal_half = started.damaged_half.take();
        self.handle.wait_for_journal()?;
        // Before any write is acknowledged: only these devices have acknowledged data from now on.
        let keeper = JournalKeeper::start(self.handle(), request)?;
        if self.journal.set(OwnJournal { keeper, told: Mutex::new((Instant::now(), 0)) }).is_err() {
            return Err(Failure::refused("the server has a journal already"));
        }
        started.notes.extend(self.remember_journal().err().map(|failure| failure.text()));
        Ok(started.notes)
    }

    /// Record the opening of the journal, and its number of devices.
    fn remember_journal(&self) -> Result<(), Failure> {
        let Some(journal) = self.status()?.journal else { return Ok(()) };
        let devices = u8::try_from(journal.devices.len()).unwrap_or(u8::MAX);
        let used = LastUse { journal: journal.uuid, epoch: journal.epoch, devices, entry: journal.durable };
        if let Some(log) = self.journal.get() {
            log.keeper.remember_use(used);
        }
        self.registry.remember_use(used)
    }

    /// Tell the registry from time to time how far the journal has come, so that an older copy is recognized at the next
    /// start. A registry that cannot be written does not matter: the members say it, too.
    pub fn tell_journal_position(&self) {
        let Some(log) = self.journal.get() else { return };
        let mut told = log.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.elapsed() < TOLD_EVERY {
            return;
        }
        told.0 = Instant::now();
        let journal = self.status().ok().and_then(|status| status.journal);
        if let Some(journal) = journal.filter(|journal| journal.durable > told.1) {
            told.1 = journal.durable;
            let _ = self.registry.note_entry(journal.uuid, journal.durable);
        }
    }

    /// Was the server started with a journal?
    pub(super) fn has_journal(&self) -> bool {
        self.journal.get().is_some()
    }

    /// News of the journal since the last call.
    pub fn journal_news(&self) -> Vec<News> {
        let Some(log) = self.journal.get() else { return Vec::new() };
        let news = log.keeper.news().into_iter().map(|news| match news {
            JournalNews::Back(mut notes) => {
                notes.extend(self.remember_journal().err().map(|failure| failure.text()));
                let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
                plain(EventName::JournalBack, format!("the journal is back and active again{notes}"))
            }
            JournalNews::DeviceAway(why) => {
                plain(EventName::JournalAway, format!("the other device of the journal cannot be brought back: {why}"))
            }
            JournalNews::StillAway(why) => {
                plain(EventName::JournalAway, format!("the journal cannot be brought back: {why}"))
            }
        });
        news.collect()
    }

    /// The status of the journal.
    ///
    /// # Errors
    /// The service has ended.
    pub fn journal_model(&self) -> Result<Option<JournalModel>, Failure> {
        let status = self.status()?;
        let log = self.journal.get();
        let trouble = log.and_then(|log| log.keeper.trouble());
        let mut model = match (&status.journal, log) {
            (Some(journal), _) => Some(self.model_of(&status, journal, trouble)),
            // The server is searching for it.
            (None, Some(log)) => Some(JournalModel {
                state: JournalWord::Lost,
                trouble,
                damage: None,
                uuid: None,
                controller: Some(log.keeper.request().controller.to_string()),
                devices: log
                    .keeper
                    .request()
                    .devices
                    .iter()
                    .map(|spec| JournalDeviceModel { device: spec.text.clone(), works: false })
                    .collect(),
                other_missing: false,
                joining: None,
                ring_bytes: 0,
                used_bytes: 0,
                entries: 0,
                kept_bytes: 0,
                kept_bytes_max: 0,
                arrays: Vec::new(),
                counters: None,
            }),
            (None, None) => None,
        };
        if let Some(model) = &mut model {
            name_arrays(model, &self.registry);
        }
        Ok(model)
    }

    fn model_of(&self, status: &ServiceStatus, journal: &JournalStatus, trouble: Option<String>) -> JournalModel {
        let name = |drive: openraid_units::DriveId| {
            status.drives.iter().find(|view| view.drive == drive).map_or_else(String::new, |v| v.member.clone())
        };
        let device = |(drive, works): &(openraid_units::DriveId, bool)| JournalDeviceModel {
            device: name(*drive),
            works: *works,
        };
        let mut devices: Vec<JournalDeviceModel> = journal.devices.iter().map(device).collect();
        // A device that was released because it does not answer.
        let away = self.journal.get().map(|log| missing(status, &log.keeper.request())).unwrap_or_default();
        for spec in away {
            if devices.iter().all(|known| known.device != spec.text) {
                devices.push(JournalDeviceModel { device: spec.text, works: false });
            }
        }
        let whole = devices.iter().all(|device| device.works);
        let array = |array: &openraid_core::admin::JournalArrayStatus| JournalArrayModel {
            uuid: array.set_uuid.to_string(),
            name: set_name(status, array.set_uuid),
            state: array_word(array.state),
            waiting_entries: array.waiting,
            data_bytes: None,
        };
        let bytes = |sectors: u64| Sectors(sectors).bytes().get();
        let counters = &journal.counters;
        JournalModel {
            state: state_word(journal.state),
            trouble: trouble.filter(|_| !whole || matches!(journal.state, JournalState::Lost(_))),
            damage: None,
            uuid: Some(journal.uuid.to_string()),
            controller: self.journal.get().map(|log| log.keeper.request().controller.to_string()),
            devices,
            other_missing: false,
            joining: journal.joining.map(|join| JournalJoinModel {
                device: name(join.drive),
                copied_bytes: join.copied.bytes().get(),
                total_bytes: join.total.bytes().get(),
            }),
            ring_bytes: journal.ring.bytes().get(),
            used_bytes: journal.used.bytes().get(),
            entries: journal.entries,
            kept_bytes: journal.kept.bytes().get(),
            kept_bytes_max: journal.keep_room.bytes().get(),
            arrays: journal.arrays.iter().map(array).collect(),
            counters: Some(JournalCountersModel {
                entries: counters.entries,
                written_bytes: bytes(counters.sectors),
                data_bytes: bytes(counters.data_sectors),
                redo_records: counters.redo_records,
                redo_bytes: bytes(counters.redo_sectors),
                rounds: counters.rounds,
                replayed_bytes: bytes(counters.replayed_sectors),
                replayed_redos: counters.replayed_redos,
            }),
        }
    }

    /// The note on the journal when an array that does not use it starts.
    pub(super) fn without_journal(&self, status: &ServiceStatus, served: &ServedArray) -> Option<Failure> {
        if !self.has_journal() {
            return None;
        }
        let (why, obstacle) = match never_protected(status, served) {
            Some(why) => (unprotected(why).to_owned(), Obstacle::Other),
            None => {
                let set = command("set", [&served.name, "write.cache=journal"]);
                (format!("write.cache=through; to use it: {set}"), Obstacle::Setting)
            }
        };
        Some(Failure::refused(format!("write journal not active: {why}")).hindered_by(obstacle))
    }

    /// Let a device join the journal: this one, or the dropped one.
    pub(super) fn join_journal(&self, device: Option<&str>, overwrite: bool) -> Result<ServerAnswer, Failure> {
        let status = self.status()?;
        let log = self.journal.get().ok_or_else(|| {
            Failure::refused("this server has no journal; start it with --journal DEVICE, once or twice")
        })?;
        let request = log.keeper.request();
        let away = missing(&status, &request);
        let device = match device {
            Some(text) => spec(text)?,
            None => away.first().cloned().ok_or_else(|| {
                Failure::refused("all devices of the journal that were named are in use; name another one: openraid journal attach DEVICE")
            })?,
        };
        let known = request.devices.contains(&device);
        let mut join = JoinRequest { device, controller: request.controller, overwrite, open: request.open };
        if !known && !overwrite {
            join.overwrite = self.is_blank(&join.device)?;
        }
        self.handle.join_journal(&join)?;
        let name = join.device.text.clone();
        if !known {
            let stays = request.devices.into_iter().filter(|spec| !away.contains(spec));
            log.keeper.set_devices(stays.chain([join.device]).collect());
        }
        let text = format!(
            "{name} is being brought up to date; event JournalMirrored says when it is, `openraid journal show` how far it is"
        );
        Ok(ServerAnswer::Done { text, array: None })
    }

    /// Is a device empty? Refused if it has anything other than a journal; the join checks a journal itself.
    fn is_blank(&self, device: &MemberSpec) -> Result<bool, Failure> {
        let (mut opened, mut failures) = open_some(std::slice::from_ref(device), options(Use::Examine));
        if let Some((_, failure)) = failures.pop() {
            return Err(failure);
        }
        let (_, probed) =
            opened.pop().ok_or_else(|| Failure::failed(format!("{}: it cannot be opened", device.text)))?;
        let blank = check_free(&probed, false);
        let journal = probed.look.foreign.signatures.iter().any(|found| found.is(ForeignKind::OpenraidJournal));
        match blank {
            Ok(()) => Ok(true),
            Err(_) if journal => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Open a full journal again: its entries will be written to members, or discarded.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open_full_journal(&self) -> Result<(), Failure> {
        let Some(log) = self.journal.get() else { return Ok(()) };
        let is_full = |state| state == JournalState::Lost(JournalLoss::Full);
        match self.handle.reopen_journal(&log.keeper.request(), is_full)? {
            Some(_) => self.remember_journal(),
            None => Ok(()),
        }
    }

    /// Discard the entries of an array that does not run; without `lost` only report them.
    pub(super) fn discard_journalled(&self, array: &str, lost: bool) -> Result<ServerAnswer, Failure> {
        let status = self.status()?;
        let log = self.journal.get().ok_or_else(|| {
            Failure::refused("this server has no journal; name the devices of one that no server uses with --on")
        })?;
        let uuids = self.sets_of(&status, array)?;
        let runs = status.arrays.iter().map(|view| &view.status).any(|status| {
            status.health != Health::Failed && status.superblock.as_ref().is_some_and(|s| uuids.contains(&s.set_uuid))
        });
        if runs {
            return Err(Failure::refused(format!(
                "{array} is running and has everything: there is nothing to discard"
            )));
        }
        let journal = status.journal.ok_or_else(|| Failure::failed("the journal is lost and was not found again"))?;
        let known: Vec<_> = journal.arrays.iter().filter(|known| uuids.contains(&known.set_uuid)).collect();
        if known.is_empty() {
            return Err(Failure::refused(format!(
                "the journal holds nothing for array {array}; there is nothing to discard"
            )));
        }
        let entries: u64 = known.iter().map(|known| known.waiting).sum();
        // Entries of an absent array stay in place during other writes.
        let found = look(&log.keeper.request().devices, options(Use::Examine), &LookFor::default()).ok();
        let loss = found.map(|found| LossEstimate::of(&found.journal, &uuids)).filter(|loss| loss.tally.entries > 0);
        let what = if let Some(loss) = &loss {
            format!("{}, which wait for {array} to be started", loss.text())
        } else if entries > 0 {
            let entries = counted(entries, "entry", "entries");
            format!("{entries} waiting for {array} to be started")
        } else {
            format!("the acknowledged writes of {array} that its members do not have yet")
        };
        let entries = Some(entries).filter(|entries| *entries > 0);
        let model = |given_up: bool, text: String| {
            ServerAnswer::Loss(match &loss {
                Some(loss) => loss.model(given_up, text),
                None => LossModel { given_up, entries, text, ..LossModel::default() },
            })
        };
        if !lost {
            let remedy = "bring the missing members back to get it, or add --lost to discard it";
            return Ok(model(false, format!("the journal holds {what}; {remedy}")));
        }
        // A discard must be recorded, and a lost journal writes nothing.
        self.open_full_journal()?;
        for known in known {
            let discard = AdminCommand::DiscardJournalled { set_uuid: known.set_uuid };
            self.handle.admin(discard).map_err(|error| Failure::from(error).of(array))?;
        }
        Ok(model(true, format!("discarded: {what}")))
    }

    /// The identities of an array's sets, for an array that is served or recorded, or by the identity of a set.
    fn sets_of(&self, status: &ServiceStatus, array: &str) -> Result<Vec<Uuid>, Failure> {
        if let Ok(served) = self.find(array) {
            let sets = served.sets();
            let views = status.arrays.iter().filter(|view| sets.contains(&view.status.array));
            return Ok(views.filter_map(|view| Some(view.status.superblock.as_ref()?.set_uuid)).collect());
        }
        if let Ok(uuid) = array.parse() {
            return Ok(vec![uuid]);
        }
        let entry = self.registry.find(array)?.ok_or_else(|| {
            Failure::refused(format!(
                "no array named {array:?} is served or remembered; name its identity, as `openraid journal show` has it"
            ))
        })?;
        let specs = entry.members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        let (opened, _) = open_some(&specs, options(Use::Examine));
        let mut uuids: Vec<Uuid> = Vec::new();
        for (_, probed) in opened {
            uuids.extend(
                probed.look.superblock.map(|superblock| superblock.set_uuid).filter(|uuid| !uuids.contains(uuid)),
            );
        }
        Ok(uuids)
    }
}

fn set_name(status: &ServiceStatus, uuid: Uuid) -> Option<String> {
    let mut superblocks = status.arrays.iter().filter_map(|view| view.status.superblock.as_ref());
    superblocks.find(|superblock| superblock.set_uuid == uuid).map(crate::on_disk::sets::array_name)
}

/// A word for the state of a journal.
const fn state_word(state: JournalState) -> JournalWord {
    match state {
        JournalState::None => JournalWord::Unused,
        JournalState::Opening => JournalWord::Opening,
        JournalState::Live => JournalWord::Live,
        JournalState::Closing => JournalWord::Closing,
        JournalState::Lost(JournalLoss::Device) => JournalWord::Lost,
        JournalState::Lost(JournalLoss::Full) => JournalWord::Full,
    }
}
