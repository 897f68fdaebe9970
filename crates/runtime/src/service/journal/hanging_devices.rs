//! Devices of the journal that this process still has open although they are unused, because they do not answer:
//! commands without an answer keep a drive attached, and an abandoned thread keeps the devices that it opened.
//!
//! Such a device counts as silent until it answers. A device that is open for another reason never does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraid_core::admin::AdminError;
use openraid_sys::MemberError;
use openraid_units::{DriveId, Nanos};

use super::heartbeat::{PendingAnswer, Unanswered, Watch};
use super::JournalStartError;
use crate::member::{MemberSpec, OpenError, Place};
use crate::service::{DriveView, ServiceError, ServiceHandle};

/// The devices that hang, for a service.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hanging(Arc<Mutex<HangingDevices>>);

#[derive(Default, Debug)]
struct HangingDevices {
    /// Drives that could not be detached, with their names.
    drives: Vec<(DriveId, String)>,
    /// Abandoned threads, by the paths of their devices.
    given_up: Vec<GivenUp>,
}

/// An abandoned thread.
#[derive(Debug)]
struct GivenUp {
    path: PathBuf,
    watch: Watch,
    /// The thread opens the device itself. Until that has ended, another thread would hang there as well.
    opens: bool,
}

impl Hanging {
    fn known(&self) -> MutexGuard<'_, HangingDevices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gave_up<'a>(&self, specs: impl Iterator<Item = &'a MemberSpec>, watch: &Watch, opens: bool) {
        let given_up = specs.filter_map(|spec| match &spec.place {
            Place::Path(path) => Some(GivenUp { path: path.clone(), watch: watch.clone(), opens }),
            Place::Ram(_) | Place::Model(_) | Place::Remote(_) => None,
        });
        self.known().given_up.extend(given_up);
    }

    /// The paths of devices that hang. A path that another drive uses now does not hang, even if a device hung there
    /// before.
    fn paths(&self, attached: &[DriveView]) -> Vec<PathBuf> {
        let mut known = self.known();
        known.given_up.retain(|device| device.watch.goes_on());
        let drives = known.drives.iter().map(|(_, name)| name.into());
        let given_up = known.given_up.iter().map(|device| device.path.clone());
        let is_hanging = |drive| known.drives.iter().any(|(other, _)| *other == drive);
        let in_use = |path: &PathBuf| {
            let mut others = attached.iter().filter(|view| !is_hanging(view.drive));
            others.any(|view| Path::new(&view.member) == path)
        };
        drives.chain(given_up).filter(|path| !in_use(path)).collect()
    }

    /// Does an abandoned thread still wait for the open of this path?
    fn is_being_opened(&self, path: &Path) -> bool {
        let known = self.known();
        known.given_up.iter().any(|device| device.opens && device.path == path && device.watch.is_silent())
    }
}

/// The devices that hang, for a search, which adds to them.
#[derive(Clone, Default, Debug)]
pub(super) struct HangCheck {
    paths: Vec<PathBuf>,
    hanging: Hanging,
}

impl HangCheck {
    /// Devices hang by these paths.
    #[cfg(test)]
    pub(super) fn of(paths: Vec<PathBuf>) -> Self {
        Self { paths, hanging: Hanging::default() }
    }

    /// Wait for a thread's work with these devices. If they are silent, they count as hanging until the thread ends.
    pub(super) fn wait<'a, T>(
        &self,
        asked: PendingAnswer<T>,
        silence_max: Nanos,
        specs: impl Iterator<Item = &'a MemberSpec>,
    ) -> Result<T, Unanswered> {
        wait_or_note(asked, silence_max, |watch| self.hanging.gave_up(specs, watch, false))
    }

    /// The same for a thread that opens a device, and whose heartbeat beats for the first time after the open.
    pub(super) fn wait_for_opening<T>(
        &self,
        asked: PendingAnswer<T>,
        silence_max: Nanos,
        spec: &MemberSpec,
    ) -> Result<T, Unanswered> {
        wait_or_note(asked, silence_max, |watch| self.hanging.gave_up(std::iter::once(spec), watch, true))
    }

    /// Refuse a device if a thread hangs in its open, for example on a dead file server: another thread would hang too.
    /// A thread that has opened a device has a claim to it, which [`HangCheck::told`] sees.
    pub(super) fn check(&self, spec: &MemberSpec) -> Result<(), JournalStartError> {
        match &spec.place {
            Place::Path(path) if self.hanging.is_being_opened(path) => Err(JournalStartError::Hangs(spec.text.clone())),
            _ => Ok(()),
        }
    }

    /// The same error, but a device that is open because it hangs is silent.
    pub(super) fn told(&self, error: JournalStartError, spec: &MemberSpec) -> JournalStartError {
        match &error {
            JournalStartError::Open(OpenError::Local(MemberError::AlreadyOpen { open_as, .. }))
                if self.paths.contains(open_as) =>
            {
                JournalStartError::Hangs(spec.text.clone())
            }
            _ => error,
        }
    }
}

fn wait_or_note<T>(asked: PendingAnswer<T>, silence_max: Nanos, note: impl FnOnce(&Watch)) -> Result<T, Unanswered> {
    let watch = asked.watch();
    let answer = asked.wait(silence_max);
    if answer.is_err() {
        note(&watch);
    }
    answer
}

impl ServiceHandle {
    /// Detach drives of the journal that are no longer used. A drive that does not answer stays attached, and is tried
    /// again before devices of the journal are opened the next time.
    ///
    /// # Errors
    /// The first one; all are tried.
    pub(super) fn detach_all(&self, drives: &[DriveId]) -> Result<(), JournalStartError> {
        let mut result = Ok(());
        for drive in drives {
            match self.detach(*drive) {
                Err(error) if is_outstanding(&error) => {
                    let status = self.status()?;
                    let view = status.drives.into_iter().find(|view| view.drive == *drive);
                    self.hanging.known().drives.extend(view.map(|view| (*drive, view.member)));
                }
                detached => result = result.and(detached.map_err(JournalStartError::from)),
            }
        }
        result
    }

    /// Detach drives that hung, if they have answered since then. Returns the devices that hang now.
    ///
    /// # Errors
    /// The service has ended.
    pub(super) fn held(&self) -> Result<HangCheck, JournalStartError> {
        let status = self.status()?;
        let known = self.hanging.known().drives.clone();
        for (drive, name) in known {
            let is_there = status.drives.iter().any(|view| view.drive == drive && view.member == name);
            if is_there && self.detach(drive).is_err_and(|error| is_outstanding(&error)) {
                continue;
            }
            self.hanging.known().drives.retain(|(other, _)| *other != drive);
        }
        Ok(HangCheck { paths: self.hanging.paths(&self.status()?.drives), hanging: self.hanging.clone() })
    }
}

fn is_outstanding(error: &ServiceError) -> bool {
    matches!(error, ServiceError::Admin(AdminError::CommandsOutstanding(_)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use openraid_core::events::DriveInfo;
    use openraid_core::occupancy::DriveLoad;
    use openraid_sys::Use;
    use openraid_units::{BlockSize, Sectors};

    use super::super::find::DeviceLook;
    use super::super::heartbeat::ask;
    use super::*;
    use crate::member::OpenOptions;

    fn drive(number: u16, name: &str) -> DriveView {
        let info = DriveInfo {
            capacity: Sectors::mib(16),
            block: BlockSize::B512,
            rotational: false,
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        };
        let load = DriveLoad::default();
        DriveView {
            drive: DriveId(number),
            member: name.into(),
            info,
            names: crate::member::DeviceNames::default(),
            notes: Vec::new(),
            lateness: None,
            trouble: None,
            is_back: false,
            load,
        }
    }

    #[test]
    fn a_hanging_device_is_known_until_it_answers_and_a_device_in_use_does_not_hang() {
        let hanging = Hanging::default();
        hanging.known().drives.push((DriveId(0), "j0".into()));
        let (answers, hangs) = mpsc::channel::<()>();
        let asked = ask("hangs", move |_| hangs.recv().is_ok()).expect("room for a thread");
        let watch = asked.watch();
        let held = HangCheck { paths: Vec::new(), hanging: hanging.clone() };
        let spec = "j1".parse().expect("a name");
        held.wait(asked, Nanos::ZERO, std::iter::once(&spec)).expect_err("it hangs");
        let paths = |attached: &[DriveView]| hanging.paths(attached);
        assert_eq!(paths(&[drive(0, "j0")]), [PathBuf::from("j0"), PathBuf::from("j1")]);
        assert_eq!(paths(&[drive(0, "j0"), drive(1, "j1")]), [PathBuf::from("j0")], "j1 is used by others");
        drop(answers);
        while watch.goes_on() {
            std::thread::yield_now();
        }
        assert_eq!(paths(&[drive(0, "j0")]), [PathBuf::from("j0")]);
    }

    #[test]
    fn no_second_thread_is_started_for_a_device_on_which_one_hangs() {
        let held = HangCheck::default();
        let (spec, other): (MemberSpec, MemberSpec) = ("j0".parse().expect("a name"), "j1".parse().expect("a name"));
        let (opens, is_open) = mpsc::channel::<()>();
        let (answers, hangs) = mpsc::channel::<()>();
        let (was_opened, opened) = mpsc::channel();
        let asked = ask("hangs", move |heartbeat| {
            let _ = is_open.recv();
            heartbeat.beat();
            was_opened.send(()).expect("it is heard");
            let _ = hangs.recv();
        });
        let asked = asked.expect("room for a thread");
        let watch = asked.watch();
        assert_eq!(held.check(&spec), Ok(()));
        held.wait_for_opening(asked, Nanos::ZERO, &spec).expect_err("it hangs");
        for _ in 0..2 {
            let refused = DeviceLook::begin(&spec, OpenOptions::new(Use::Exclusive), &held).wait(Nanos::ZERO);
            assert_eq!(refused.err(), Some(JournalStartError::Hangs("j0".into())));
        }
        assert_eq!(held.hanging.known().given_up.len(), 1, "no thread was sent after the first");
        assert_eq!(held.check(&other), Ok(()));
        // When the device is open, its claim shows others that it hangs. Its path may name another device by now, so a
        // look is not refused.
        drop(opens);
        opened.recv().expect("it is open");
        assert_eq!(held.check(&spec), Ok(()));
        drop(answers);
        while watch.goes_on() {
            std::thread::yield_now();
        }
        assert_eq!(held.check(&spec), Ok(()));
    }

    #[test]
    fn the_other_device_of_a_log_that_was_given_up_may_be_opened() {
        let held = HangCheck::default();
        let spec = "j1".parse().expect("a name");
        let (answers, hangs) = mpsc::channel::<()>();
        let asked = ask("hangs", move |_| hangs.recv().is_ok()).expect("room for a thread");
        held.wait(asked, Nanos::ZERO, std::iter::once(&spec)).expect_err("it hangs");
        assert_eq!(held.check(&spec), Ok(()));
        drop(answers);
    }
}
