//! The journal of systemd, by its native protocol: a datagram of `KEY=value` lines.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use super::{line, Batch, SEND_TIME_MAX};
use crate::alarms::AlarmModel;
use crate::events::Severity;

pub(super) fn send(socket: &Path, batch: &Batch) -> Result<(), String> {
    let refused = |error: std::io::Error| format!("{}: {error}", socket.display());
    let sender = UnixDatagram::unbound().map_err(refused)?;
    sender.set_write_timeout(Some(SEND_TIME_MAX)).map_err(refused)?;
    sender.connect(socket).map_err(refused)?;
    batch.alarms.iter().try_for_each(|alarm| sender.send(entry(alarm).as_bytes()).map(drop)).map_err(refused)
}

fn entry(alarm: &AlarmModel) -> String {
    // The levels of syslog: crit, warning, info; an end is a notice.
    let priority = match (alarm.until_seconds, alarm.what.level) {
        (Some(_), _) => 5,
        (None, Severity::Critical) => 2,
        (None, Severity::Warning) => 4,
        (None, Severity::Info) => 6,
    };
    let plain = |text: &str| text.replace(['\n', '\r'], " ");
    let mut entry = format!(
        "MESSAGE={}\nPRIORITY={priority}\nSYSLOG_IDENTIFIER=openraid\nOPENRAID_ALARM={}\nOPENRAID_EVENT={}\n",
        line(alarm),
        plain(&alarm.id),
        plain(&alarm.what.event)
    );
    for (key, value) in [("ARRAY", &alarm.what.array), ("MEMBER", &alarm.what.member)] {
        if let Some(value) = value {
            entry.push_str(&format!("OPENRAID_{key}={}\n", plain(value)));
        }
    }
    entry
}
