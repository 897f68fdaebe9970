//! The outstanding work in words, for the end of a run that got stuck.

use std::fmt::Write;

use openraid_units::ArrayId;

use super::World;

/// Limit of the lines of one kind.
const LINES_MAX: usize = 40;
/// Limit of the arrays that are listed.
const ARRAYS_MAX: u16 = 16;

impl World {
    /// All outstanding work.
    #[must_use]
    pub fn dump(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(format!("seed {}, at {:?}, {} actions so far", self.spec.seed, self.now, self.digest.actions));
        line(format!("next deadline {:?}", self.controller.next_deadline()));
        for (token, host) in self.hosts.iter().take(LINES_MAX) {
            line(format!("host {token:?} since {:?}: {:?}, {} bytes moved", host.submitted, host.request, host.issued));
        }
        for (token, since) in self.admin_waiting.iter().take(LINES_MAX) {
            line(format!("admin {token:?} since {since:?}"));
        }
        let mut inside = String::new();
        let _ = self.controller.write_waiting(&mut inside);
        line(inside);
        for action in self.in_flight.values().take(LINES_MAX) {
            line(format!("in flight {action:?}"));
        }
        if let Some(journal) = self.controller.journal_status() {
            line(format!("{journal:?}"));
        }
        for array in (0..ARRAYS_MAX).map(ArrayId) {
            if let Some(status) = self.status(array) {
                line(format!(
                    "array {array}: {:?}, {} of {:?}, active {}, events {}, consistent to {:?}, {} ops, bitmap {:?}, \
                     journal {:?}",
                    status.health,
                    status.capacity,
                    status.superblock.map(|superblock| superblock.level),
                    status.active,
                    status.events,
                    status.consistent_to,
                    status.ops,
                    status.bitmap,
                    status.session,
                ));
                line(format!("  task {:?}", status.task));
                for member in status.members {
                    line(format!("  {member:?}"));
                }
            }
        }
        for notice in self.notices.iter().rev().take(LINES_MAX) {
            let _ = writeln!(text, "notice {notice:?}");
        }
        text
    }
}
