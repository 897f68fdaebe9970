//! Figures for Prometheus, as OpenMetrics text, or in the older text format for a client that takes no other.
//!
//! Every state of a member and every health is a series of its own, so that rules can ask for a state that no member is in:
//! a slot without a member counts as `removed`. By an option the figures that node_exporter takes from the kernel's md are given
//! as well, so that its dashboards and rules show these arrays.

use std::fmt::{Display, Write};

use openraid_status::alarm::Severity;
use openraid_status::{ArrayModel, HealthWord, JournalModel, JournalWord, MemberModel, StateWord};

use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The text format of Prometheus before OpenMetrics.
const CLASSIC_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const HEALTHS: [(HealthWord, &str); 4] = [
    (HealthWord::Optimal, "optimal"),
    (HealthWord::Degraded, "degraded"),
    (HealthWord::Failed, "failed"),
    (HealthWord::Offline, "offline"),
];
const STATES: [(StateWord, &str); 7] = [
    (StateWord::InSync, "in-sync"),
    (StateWord::Rebuilding, "rebuilding"),
    (StateWord::Spare, "spare"),
    (StateWord::Missing, "removed"),
    (StateWord::Failing, "failing"),
    (StateWord::Faulty, "faulty"),
    (StateWord::Replaced, "replaced"),
];

/// The figures.
pub fn reply(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = request.state.arrays()?;
    let journal = request.state.controller.journal()?;
    let server = request.state.controller.server()?;
    let events = request.state.controller.events()?;
    let open =
        |level: Severity| events.iter().filter(|event| event.level == level && !event.acknowledged).count() as u64;
    let accepts = request.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_classic = accepts.contains("text/plain") && !accepts.contains("openmetrics");
    let mut page = Page { is_classic, text: String::new() };
    page.family("openraid", "info", "The version of the server.");
    page.line("openraid_info", &[("version", &server.version)], 1);
    page.family("openraid_clients", "gauge", "Clients that are connected.");
    page.line("openraid_clients", &[], server.clients);
    page.family("openraid_events_open", "gauge", "Events of the log that are not acknowledged.");
    for level in Severity::ALL {
        page.line("openraid_events_open", &[("level", level.word())], open(level));
    }
    // The alarm of an array that is offline is one of the server, too.
    let of_arrays = || arrays.iter().flat_map(|array| &array.alarms);
    let of_server = || server.alarms.iter().filter(|alarm| of_arrays().all(|other| other.id != alarm.id));
    let alarms = || of_arrays().chain(of_server()).filter(|alarm| alarm.is_open());
    page.family("openraid_alarms_open", "gauge", "Alarms that hold and are not acknowledged.");
    for level in Severity::ALL {
        let count = alarms().filter(|alarm| alarm.what.level == level).count() as u64;
        page.line("openraid_alarms_open", &[("level", level.word())], count);
    }
    states(&mut page, &arrays);
    page.family("openraid_host_latency_seconds", "gauge", "Mean time of a request in the last seconds.");
    for array in arrays.iter() {
        if let Ok(limit) = request.state.controller.limit(&array.name) {
            let seconds = format!("{}.{:09}", limit.mean_ns / 1_000_000_000, limit.mean_ns % 1_000_000_000);
            page.line("openraid_host_latency_seconds", &[("array", &array.name)], seconds);
        }
    }
    page.family("openraid_sink_failed", "gauge", "1 if the last message to the sink of alarms did not arrive.");
    for sink in request.state.controller.sinks() {
        let labels = [("sink", sink.name.as_str()), ("kind", sink.kind.word())];
        page.line("openraid_sink_failed", &labels, u64::from(sink.error.is_some()));
    }
    if let Some(journal) = journal {
        of_journal(&mut page, &journal);
    }
    if request.state.metrics_md {
        of_md(&mut page, &arrays);
    }
    if is_classic {
        return Ok(HttpReply::text(CLASSIC_TYPE, page.text));
    }
    page.text.push_str("# EOF\n");
    Ok(HttpReply::text(TYPE, page.text))
}

struct Page {
    is_classic: bool,
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // The older format names a family as its lines, and knows no info.
        let (name, kind) = match kind {
            "counter" if self.is_classic => (format!("{name}_total"), kind),
            "info" if self.is_classic => (format!("{name}_info"), "gauge"),
            _ => (name.to_owned(), kind),
        };
        let _ = write!(self.text, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (nth, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{text}\"", if nth == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A gauge of every array.
    fn gauge(&mut self, arrays: &[ArrayModel], name: &str, help: &str, value: impl Fn(&ArrayModel) -> u64) {
        self.family(name, "gauge", help);
        arrays.iter().for_each(|array| self.line(name, &[("array", &array.name)], value(array)));
    }
}

fn states(page: &mut Page, arrays: &[ArrayModel]) {
    page.family("openraid_array_health", "gauge", "1 for the health that the array has.");
    for array in arrays {
        let level = array.level.to_string();
        for (health, word) in HEALTHS {
            let labels = [("array", array.name.as_str()), ("level", &level), ("health", word)];
            page.line("openraid_array_health", &labels, u64::from(array.health == health));
        }
    }
    page.gauge(arrays, "openraid_array_size_bytes", "Capacity.", |array| array.size_bytes);
    page.gauge(arrays, "openraid_array_survives", "Members that can be lost now.", |array| array.survives.into());
    page.gauge(arrays, "openraid_array_slots", "Slots for members.", |array| array.slots.into());
    let unprotected = |array: &ArrayModel| array.journal.as_ref().is_some_and(|journal| !journal.protected).into();
    let help = "1 if the array's policy asks for the journal, and the journal does not protect its writes.";
    page.gauge(arrays, "openraid_array_unprotected", help, unprotected);
    let unsynced = |array: &ArrayModel| u64::from(!array.is_synced());
    page.gauge(arrays, "openraid_array_unsynced", "1 if parity or copies are not in sync everywhere.", unsynced);
    let left = |array: &ArrayModel| {
        array.sets().iter().filter_map(|set| set.last_check.as_ref()).map(|check| check.left()).sum()
    };
    page.gauge(arrays, "openraid_array_mismatches", "Sectors that the last check left different.", left);
    page.family("openraid_array_last_check_seconds", "gauge", "Seconds since 1970 at the end of the last check.");
    for array in arrays {
        let ends = array.sets().into_iter().filter_map(|set| set.last_check.as_ref()).map(|check| check.at_seconds);
        if let Some(at) = ends.min() {
            page.line("openraid_array_last_check_seconds", &[("array", &array.name)], at);
        }
    }
    page.family("openraid_members", "gauge", "Members by state; a slot without a member is removed.");
    for array in arrays {
        for (state, word) in STATES {
            let labels = [("array", array.name.as_str()), ("state", word)];
            page.line("openraid_members", &labels, array.count(state));
        }
    }
    tasks(page, arrays);
    hosts(page, arrays);
    members(page, arrays);
}

fn tasks(page: &mut Page, arrays: &[ArrayModel]) {
    let each = |page: &mut Page, name: &str, value: fn(&openraid_status::TaskModel) -> u64| {
        for array in arrays {
            let nested = !array.spans.is_empty();
            for (nth, set) in array.sets().into_iter().enumerate() {
                let Some(task) = &set.task else { continue };
                let span = if nested { nth.to_string() } else { String::new() };
                let labels = [("array", array.name.as_str()), ("span", &span), ("task", task.kind.text())];
                page.line(name, &labels, value(task));
            }
        }
    };
    page.family("openraid_task_done_bytes", "gauge", "Bytes of each member that a background task has done.");
    each(page, "openraid_task_done_bytes", |task| task.done_bytes);
    page.family("openraid_task_total_bytes", "gauge", "Bytes of each member that a background task has to do.");
    each(page, "openraid_task_total_bytes", |task| task.total_bytes);
    page.family("openraid_task_paused", "gauge", "1 if the background task is held.");
    each(page, "openraid_task_paused", |task| task.paused.into());
    reshapes(page, arrays);
}

fn reshapes(page: &mut Page, arrays: &[ArrayModel]) {
    type Value = fn(&openraid_status::ReshapeModel) -> u64;
    let families: [(&str, &str, Value); 3] = [
        ("openraid_reshape_moved_bytes", "Bytes of an array that a change of shape has moved.", |of| of.moved_bytes),
        ("openraid_reshape_recorded_bytes", "Bytes of an array that are recorded as moved.", |of| of.recorded_bytes),
        ("openraid_reshape_total_bytes", "Bytes of an array that a change of shape moves.", |of| of.total_bytes),
    ];
    for (name, about, value) in families {
        page.family(name, "gauge", about);
        for array in arrays {
            if let Some(change) = &array.shape {
                page.line(name, &[("array", &array.name)], value(change));
            }
        }
    }
}

fn hosts(page: &mut Page, arrays: &[ArrayModel]) {
    page.family("openraid_host_requests", "counter", "Requests of clients.");
    for array in arrays {
        let host = &array.host;
        let kinds = [("read", host.reads), ("write", host.writes), ("flush", host.flushes), ("other", host.others)];
        for (kind, value) in kinds {
            page.line("openraid_host_requests_total", &[("array", &array.name), ("kind", kind)], value);
        }
    }
    page.family("openraid_host_bytes", "counter", "Bytes that clients have read and written.");
    for array in arrays {
        for (kind, value) in [("read", array.host.read_bytes), ("write", array.host.written_bytes)] {
            page.line("openraid_host_bytes_total", &[("array", &array.name), ("kind", kind)], value);
        }
    }
    page.family("openraid_cache_dirty_bytes", "gauge", "Data in the cache of the server that members do not have yet.");
    if let Some(cache) = arrays.iter().find_map(|array| array.cache.as_ref()) {
        page.line("openraid_cache_dirty_bytes", &[], cache.dirty_bytes);
    }
    page.family("openraid_reasons", "counter", "Decisions of the engine, by reason.");
    for array in arrays {
        for reason in &array.reasons {
            let labels = [("array", array.name.as_str()), ("reason", &reason.reason)];
            page.line("openraid_reasons_total", &labels, reason.count);
        }
    }
}

fn members(page: &mut Page, arrays: &[ArrayModel]) {
    let each = |page: &mut Page, name: &str, value: &dyn Fn(&MemberModel) -> Vec<(&'static str, u64)>| {
        for array in arrays {
            for member in array.sets().into_iter().flat_map(|set| &set.members) {
                let (Some(path), Some(drive)) = (&member.member, member.drive) else { continue };
                let (drive, serial) = (drive.to_string(), member.serial.clone().unwrap_or_default());
                for (kind, value) in value(member) {
                    let all = [
                        ("array", array.name.as_str()),
                        ("drive", &drive),
                        ("member", path),
                        ("serial", &serial),
                        ("kind", kind),
                    ];
                    page.line(name, if kind.is_empty() { &all[..4] } else { &all }, value);
                }
            }
        }
    };
    page.family("openraid_member_commands", "counter", "Commands to a member.");
    each(page, "openraid_member_commands_total", &|member| {
        vec![("read", member.reads), ("write", member.writes), ("flush", member.flushes)]
    });
    page.family("openraid_member_bytes", "counter", "Bytes read from and written to a member.");
    each(page, "openraid_member_bytes_total", &|member| {
        vec![("read", member.read_bytes), ("write", member.written_bytes)]
    });
    page.family("openraid_member_media_errors", "counter", "Places that could not be read since the start.");
    each(page, "openraid_member_media_errors_total", &|member| vec![("", member.media_errors.into())]);
    page.family("openraid_member_bad_ranges", "gauge", "Ranges that are known to be bad.");
    each(page, "openraid_member_bad_ranges", &|member| vec![("", member.bad_ranges.into())]);
    page.family("openraid_member_displaced", "gauge", "1 if the member is not at its path any more.");
    each(page, "openraid_member_displaced", &|member| vec![("", member.displaced.is_some().into())]);
    page.family("openraid_member_celsius", "gauge", "Temperature of the drive, as it reports it.");
    each(page, "openraid_member_celsius", &|member| {
        let now = member.smart.as_ref().and_then(|smart| u64::try_from(smart.temperature_celsius?).ok());
        now.map(|now| ("", now)).into_iter().collect()
    });
    page.family("openraid_member_outstanding", "gauge", "Commands that the member works on.");
    each(page, "openraid_member_outstanding", &|member| vec![("", member.outstanding.into())]);
}

fn of_journal(page: &mut Page, journal: &JournalModel) {
    page.family("openraid_journal_live", "gauge", "1 if the journal works.");
    page.line("openraid_journal_live", &[], u64::from(journal.state == JournalWord::Live));
    page.family("openraid_journal_device_works", "gauge", "1 if the device of the journal works.");
    for device in &journal.devices {
        page.line("openraid_journal_device_works", &[("device", &device.device)], u64::from(device.works));
    }
    page.family("openraid_journal_used_bytes", "gauge", "Bytes of the ring that entries take.");
    page.line("openraid_journal_used_bytes", &[], journal.used_bytes);
    page.family("openraid_journal_ring_bytes", "gauge", "Bytes of the ring.");
    page.line("openraid_journal_ring_bytes", &[], journal.ring_bytes);
}

/// The names of node_exporter's mdadm collector. It has no series for a slot without a member, so that its rules cannot see it:
/// `removed` is added.
fn of_md(page: &mut Page, arrays: &[ArrayModel]) {
    page.family("node_md_state", "gauge", "1 for the state of the array.");
    for array in arrays {
        let task = array.tasks().next().map(|(_, task)| task.kind);
        let now = match task {
            Some(openraid_status::TaskWord::Check | openraid_status::TaskWord::Repair) => "check",
            Some(openraid_status::TaskWord::Resync) => "resync",
            Some(_) => "recovering",
            None if !array.is_usable() => "inactive",
            None => "active",
        };
        for state in ["active", "inactive", "recovering", "resync", "check"] {
            page.line("node_md_state", &[("device", &array.name), ("state", state)], u64::from(state == now));
        }
    }
    page.family("node_md_disks", "gauge", "Members by state.");
    for array in arrays {
        let failed = array.count(StateWord::Faulty) + array.count(StateWord::Failing);
        let active = array.count(StateWord::InSync);
        let states = [
            ("active", active),
            ("failed", failed),
            ("spare", array.count(StateWord::Spare) + array.count(StateWord::Rebuilding)),
            ("removed", u64::from(array.slots).saturating_sub(active)),
        ];
        for (state, value) in states {
            page.line("node_md_disks", &[("device", &array.name), ("state", state)], value);
        }
    }
    page.family("node_md_disks_required", "gauge", "Members that the array has if none is missing.");
    for array in arrays {
        page.line("node_md_disks_required", &[("device", &array.name)], u64::from(array.slots));
    }
    page.family("node_md_blocks", "gauge", "Blocks of 1024 bytes.");
    for array in arrays {
        page.line("node_md_blocks", &[("device", &array.name)], array.size_bytes / 1024);
    }
    page.family("node_md_blocks_synced", "gauge", "Blocks that are in sync.");
    for array in arrays {
        let (done, total) = array.tasks().next().map_or((1, 1), |(_, task)| (task.done_bytes, task.total_bytes.max(1)));
        let synced = u128::from(array.size_bytes / 1024) * u128::from(done) / u128::from(total);
        let synced = u64::try_from(synced).unwrap_or(u64::MAX);
        page.line("node_md_blocks_synced", &[("device", &array.name)], synced);
    }
}
