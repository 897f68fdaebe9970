//! The work next to a running server: prints notices, handles signals, and reports to the service manager that the
//! server answers.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use openraid_core::actions::{Notice, NoticeKind};
use openraid_runtime::service::{Service, ServiceEvent};
use openraid_sys::ProcessSignal;
use serde::Serialize;

use super::super::Context;
use super::arrays_to_serve::OfflineArray;
use super::early_notices::EarlyNotices;
use super::lost_sector_lines::LostRanges;
use crate::control::{Answerer, Command};
use crate::events::News;
use crate::events::{Draft, EventWriter};
use crate::failure::Exit;
use crate::model::ArrayModel;
use crate::output::server_messages::Voice;
use crate::output::verdicts::LeftOut;
use crate::quantity::{counted, utc};
use crate::server::Server;

/// Time between two samples of tasks, and between two updates of the state on the terminal.
const TICK: Duration = Duration::from_millis(500);

/// The output of `serve --json`, one document a line.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ServeLine<'a> {
    /// Clients can come.
    Ready {
        /// The arrays that are served.
        arrays: &'a [ArrayModel],
        /// Requested arrays that are not served, and why.
        offline: &'a [OfflineArray],
        /// Path of the control socket.
        control: String,
        /// Arrays that were not clean at the start, a sentence each.
        recovered: &'a [String],
        /// Members that are missing in started arrays.
        left_out: &'a [LeftOut],
        /// Address of the console, if it is on.
        console: Option<String>,
        /// A link that signs in to the console once, while no user has a password.
        login: Option<String>,
    },
    /// A piece of news.
    News(NewsBody<'a>),
    /// The end.
    Stopped,
}

/// A piece of news.
#[derive(Serialize, utoipa::ToSchema)]
pub struct NewsBody<'a> {
    /// The event.
    news: &'a News,
}

/// A running server.
pub struct MainLoop<'a> {
    /// Form of the output.
    pub context: &'a Context,
    pub service: &'a Service,
    pub server: &'a Arc<Server>,
    /// The event log.
    pub events: &'a EventWriter,
    /// The lines of the server, and the state on the terminal.
    pub voice: Voice,
}

impl MainLoop<'_> {
    /// Prints notices and shows the state until the service ends. The voice may still have lines to write.
    pub fn until_the_end(mut self) -> (Exit, Voice) {
        let notifier = self.server.notifier();
        let tick = notifier.tick(TICK);
        let mut exit = Exit::Fine;
        let mut next = Instant::now();
        let mut status = String::new();
        let mut lost = LostRanges::default();
        let mut unnamed = EarlyNotices::default();
        self.server.begin_following_devices();
        loop {
            for event in unnamed.take(|array| self.server.name_of(array).is_some()) {
                self.print_event(&event, &mut lost);
            }
            match self.service.events().recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(ServiceEvent::Stopped) | Err(RecvTimeoutError::Disconnected) => {
                    // Notices since the last tick are also printed.
                    unnamed.take(|_| true).iter().for_each(|event| self.print_event(event, &mut lost));
                    lost.take().iter().for_each(|news| self.print_news(news));
                    self.print_collected_news();
                    return (exit, self.voice);
                }
                Ok(event) => {
                    match event {
                        ServiceEvent::StopFailed(array, _) => {
                            self.server.keep_mark(array);
                            exit = Exit::Error;
                        }
                        ServiceEvent::Notice(Notice { kind: NoticeKind::DirtyLost { .. }, array, .. }) => {
                            self.server.keep_mark(array);
                        }
                        ServiceEvent::AwaitsMark(_) => self.server.follow_marks(),
                        ServiceEvent::Signal(ProcessSignal::HangUp) => self.begin_reload(),
                        ServiceEvent::Signal(_) => notifier.stopping(),
                        _ => {}
                    }
                    let is_named = |array| self.server.name_of(array).is_some();
                    if let Some(event) = unnamed.hold(event, is_named) {
                        self.print_event(&event, &mut lost);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    next = Instant::now() + tick;
                    unnamed.tick();
                    // The shard has answered. A shard that does not answer is not reported as alive. An error means
                    // that the service is ending; the event follows.
                    if self.server.sample().is_ok() {
                        notifier.alive();
                    }
                    self.server.follow_marks();
                    let arrays = self.server.watch();
                    self.server.follow_schedules(&arrays);
                    self.server.begin_patrol(&arrays);
                    lost.take().iter().for_each(|news| self.print_news(news));
                    self.print_collected_news();
                    self.server.begin_giving_spares();
                    self.server.begin_looking_for_drives();
                    self.server.begin_care();
                    self.server.start_late_console();
                    self.server.tell_journal_position();
                    self.show(&arrays, &mut status);
                    if self.server.is_emptied() {
                        notifier.stopping();
                        self.service.handle().begin_stop();
                    }
                }
            }
        }
    }

    /// Prints an event that is news; a lost sector waits in `lost` for its neighbours.
    fn print_event(&mut self, event: &ServiceEvent, lost: &mut LostRanges) {
        let news = self.server.news(event).and_then(|news| match event {
            ServiceEvent::Notice(notice) => lost.collect(notice, news),
            _ => Some(news),
        });
        if let Some(news) = news {
            self.print_news(&news);
        }
    }

    fn show(&mut self, arrays: &[ArrayModel], before: &mut String) {
        self.voice.show(arrays);
        let now = self.server.summary();
        if now != *before {
            self.server.notifier().status(&now);
            *before = now;
        }
    }

    /// A reload may open members, which takes time. Notices must not wait for it.
    fn begin_reload(&self) {
        let server = Arc::clone(self.server);
        // The result is news of the server, as after `openraid reload`.
        let reload = move || drop(server.answer(Command::Reload));
        if let Err(error) = thread::Builder::new().name("reload".into()).spawn(reload) {
            self.context.output.warn(&format!("the configuration is not read: {error}"));
        }
    }

    fn print_collected_news(&mut self) {
        for news in self.server.journal_news().into_iter().chain(self.server.take_news()) {
            self.print_news(&news);
        }
    }

    fn print_news(&mut self, news: &News) {
        self.events.note(Draft::now(news));
        let left_out = self.voice.take_left_out();
        if self.context.output.json {
            return self.voice.say(self.context.output.line_of(Exit::Fine, &ServeLine::News(NewsBody { news })));
        }
        let now = utc(openraid_sys::clock::wall_seconds());
        if left_out > 0 {
            let lines = counted(left_out, "line", "lines");
            self.voice
                .say(format!("{now}  {lines} left out, because the output was not read: `openraid events` has them"));
        }
        self.voice.say(format!("{now}  {}", news.text));
    }
}
