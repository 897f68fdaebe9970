//! The engine's notices, with the names of array and member. The texts themselves are the engine's.

use openraid_core::actions::{Notice, NoticeKind};
use openraid_core::admin::MemberStatus;
use openraid_runtime::member::remote::RemoteNews;
use openraid_runtime::service::ServiceEvent;
use openraid_units::DriveId;

use super::Server;
use crate::events::{plain, News, Severity};
use crate::model::{ChangeModel, StateWord};
use crate::output;
use crate::quantity::counted;
use openraid_status::EventName;

impl Server {
    /// The news of an event, with names; `None` if the event is not news.
    pub fn news(&self, event: &ServiceEvent) -> Option<News> {
        match event {
            ServiceEvent::Notice(notice) => self.notice(notice),
            ServiceEvent::NoticesLost(count) => {
                Some(plain(EventName::NoticesLost, format!("{} lost", counted(*count, "notice was", "notices were"))))
            }
            ServiceEvent::StopFailed(array, error) => {
                let name = self.name_of(*array).map_or_else(|| array.to_string(), |(name, _)| name);
                Some(plain(EventName::StopFailed, format!("{name} did not stop cleanly: {error}")))
            }
            ServiceEvent::StoodStill(time) => {
                let seconds = time.as_secs();
                let why = "the process was stopped, or the machine was suspended; time limits of members were extended";
                Some(plain(EventName::StoodStill, format!("the server did not run for {seconds} s: {why}")))
            }
            ServiceEvent::MachineRefused(array, why) => {
                let (name, _) = self.name_of(*array)?;
                let text = format!("{name}, virtual machine: {why}");
                Some(News { array: Some(name), ..plain(EventName::MachineRefused, text) })
            }
            ServiceEvent::Remote(drive, news) => Some(self.remote(*drive, news)),
            ServiceEvent::Signal(_) | ServiceEvent::AwaitsMark(_) | ServiceEvent::Stopped => None,
        }
    }

    /// Replaced members do not belong to the array any more: the next server must not search for them and report them
    /// as failed.
    fn forget_replaced(&self, name: &str) {
        let Ok(array) = self.array(name) else { return };
        let mut members = array.sets().into_iter().flat_map(|set| &set.members);
        if members.any(|member| member.state == StateWord::Replaced) {
            if let Err(failure) = self.remember(name) {
                output::warn(&failure.text());
            }
        }
    }

    /// News of the connection to a remote member.
    fn remote(&self, drive: DriveId, news: &RemoteNews) -> News {
        let status = self.handle.status().ok();
        let is_own = |member: &MemberStatus| member.drive == Some(drive);
        let array = status.as_ref().and_then(|status| {
            let view = status.arrays.iter().find(|view| view.status.members.iter().any(is_own))?;
            self.name_of(view.status.array)
        });
        let (array, span) = array.map_or((None, None), |(name, span)| (Some(name), span));
        let member = self.member_name(drive);
        let (event, what) = match news {
            RemoteNews::Lost(why) => {
                (EventName::RemoteLost, format!("connection lost: {why}; reconnecting, commands wait meanwhile"))
            }
            RemoteNews::Back { after, repeated } => {
                let writes = counted(*repeated, "write", "writes");
                let seconds = after.get() / 1_000_000_000;
                let tenths = after.get() / 100_000_000 % 10;
                (EventName::RemoteBack, format!("connected again after {seconds}.{tenths} s, {writes} repeated"))
            }
        };
        let place: Vec<&str> = array.as_deref().into_iter().chain(member.as_deref()).collect();
        let text = format!("{}: {what}", place.join(", "));
        News { array, span, member, ..plain(event, text) }
    }

    fn notice(&self, notice: &Notice) -> Option<News> {
        if matches!(notice.kind, NoticeKind::CheckStarted(_) | NoticeKind::CheckEnded(_)) {
            // An error means that the service is ending.
            if let Ok(status) = self.handle.status() {
                self.note_checks(&status);
            }
        }
        if let NoticeKind::Fail(reason) = notice.kind {
            self.note_failed(notice, reason);
        }
        let (array, mut span) = self.name_of(notice.array).map_or((None, None), |(name, span)| (Some(name), span));
        if let (NoticeKind::RebuildFinished(_), Some(name)) = (notice.kind, &array) {
            self.forget_replaced(name);
        }
        let mut changes = Vec::new();
        if let NoticeKind::PolicyChanged { from, to } = notice.kind {
            // All spans of a nested array have the same settings: the first one represents the array.
            if span.take().is_some_and(|span| span > 0) {
                return None;
            }
            changes = from.changes_to(&to).map(ChangeModel::from).collect();
        }
        if let NoticeKind::AdaptiveSwitched { from, to, .. } = notice.kind {
            changes = from.changes_to(&to).map(ChangeModel::from).collect();
        }
        let member = notice.drive.and_then(|drive| self.member_name(drive));
        let about_journal = notice.kind.is_about_journal();
        let (array, span) = if about_journal { (None, None) } else { (array, span) };
        let mut place = match &array {
            _ if about_journal => "journal".into(),
            Some(array) => array.clone(),
            None => format!("array {}", notice.array),
        };
        if let Some(span) = span {
            place.push_str(&format!(", span {span}"));
        }
        // The array is degraded or failed; slot and member only name the cause.
        let is_of_member = !matches!(notice.kind, NoticeKind::Degraded { .. } | NoticeKind::Failed);
        if let Some(slot) = notice.slot.filter(|_| is_of_member) {
            place.push_str(&format!(", slot {slot}"));
        }
        if let Some(member) = member.as_ref().filter(|_| is_of_member) {
            place.push_str(&format!(" ({member})"));
        }
        let about = self.about_reshape(notice);
        let text = format!("{place}: {}{about}", notice.kind);
        let (event, level) = match notice.kind {
            NoticeKind::Fail(_) if notice.slot.is_none() => (EventName::FailSpare.word(), None),
            NoticeKind::Degraded { tolerated } => (notice.kind.event(), Some(Severity::of_degraded(tolerated.into()))),
            _ => (notice.kind.event(), None),
        };
        let news = News { event, array, span, slot: notice.slot.map(|slot| slot.0), member, changes, text, level };
        self.glimpse(&news);
        Some(news)
    }

    fn member_name(&self, drive: DriveId) -> Option<String> {
        let status = self.handle.status().ok()?;
        status.drives.into_iter().find(|view| view.drive == drive).map(|view| view.member)
    }
}
