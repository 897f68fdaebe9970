//! News for the administrator about lost connections.

use openraid_units::{Instant, Nanos};

use super::link::RemoteError;
use super::resume::LinkStage;
use super::Remote;

/// News of the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteNews {
    /// It is lost and being made again; commands wait until then.
    Lost(RemoteError),
    /// The member serves again.
    Back {
        /// The time without connection.
        after: Nanos,
        /// Writes that were repeated, because the server may have lost them.
        repeated: u64,
    },
}

/// News that were reported, and news to report.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    /// Writes repeated on the connection that is used now.
    repeated: u64,
    /// At most one loss and one return.
    news: Vec<RemoteNews>,
}

impl Remote {
    /// News since the last call, oldest first.
    pub fn take_news(&mut self) -> Vec<RemoteNews> {
        std::mem::take(&mut self.outage.news)
    }

    /// A connection in use is lost. If the member is lost with it, the engine reports that.
    pub(super) fn note_outage(&mut self, now: Instant, why: RemoteError) {
        if self.lost.is_none() && self.outage.since.is_none() {
            self.outage.since = Some(now);
            self.outage.news.push(RemoteNews::Lost(why));
        }
    }

    /// Writes begin to be repeated.
    pub(super) fn note_repeats(&mut self, count: u64) {
        self.outage.repeated = count;
    }

    /// If the member was unreachable and serves again, report that.
    pub(super) fn note_return(&mut self, now: Instant) {
        if self.lost.is_none() && matches!(self.stage, LinkStage::Serving) {
            if let Some(since) = self.outage.since.take() {
                let news = RemoteNews::Back { after: now.since(since), repeated: self.outage.repeated };
                self.outage.news.push(news);
            }
        }
    }
}
