//! The text output of an array, with the most important facts first, and the form of /proc/mdstat.

use openraid_format::{layout_from_word, MdLevel};
use openraid_units::{ArrayLevel, Bytes};

use super::checks::last_check;
use super::shape;
use super::table::TextTable;
use crate::alarms::AlarmModel;
use crate::events::Severity;
use crate::model::{
    AccessWord, ArrayModel, BitmapModel, HealthWord, LevelWord, MemberModel, PathWord, ProfileModel, ProtectionModel,
    SessionWord, StateWord, TaskModel, TaskWord,
};
use crate::quantity::{counted, human, human_rate, human_seconds, utc};

use openraid_status::shell_quoting::command;

pub use openraid_core::notice_text::VOLATILE;

/// An array in one line.
pub fn title(array: &ArrayModel) -> String {
    let mut parts = vec![array.level.to_string()];
    if array.spans.is_empty() {
        let plural = if array.slots == 1 { "" } else { "s" };
        parts.push(format!("{} slot{plural}", array.slots));
    } else {
        parts.push(format!("{} slots in {}", array.slots, counted(array.spans.len() as u64, "span", "spans")));
    }
    parts.extend(array.layout.clone());
    parts.extend(array.chunk_bytes.map(|chunk| format!("chunk {}", human(Bytes(chunk)))));
    parts.extend(array.outer_chunk_bytes.map(|chunk| format!("{} to a span", human(Bytes(chunk)))));
    parts.join(", ")
}

/// The word for a health.
pub const fn health_text(health: HealthWord) -> &'static str {
    match health {
        HealthWord::Optimal => "optimal",
        HealthWord::Degraded => "degraded",
        HealthWord::Failed => "FAILED",
        HealthWord::Offline => "OFFLINE",
    }
}

/// The losses that an array survives now, and those after the sync or rebuild.
pub fn survives(array: &ArrayModel) -> String {
    let now = survives_text(array.survives);
    if array.survives_later <= array.survives {
        return now;
    }
    let later = survives_text(array.survives_later);
    let is_synced = array.is_synced();
    format!("{now} for now; after the {}: {later}", if is_synced { "rebuild" } else { "sync" })
}

/// The losses that the array survives, in words.
pub fn survives_text(losses: u32) -> String {
    match losses {
        0 => "no further loss of a member".into(),
        1 => "the loss of any 1 member".into(),
        n => format!("the loss of any {n} members"),
    }
}

/// Mismatches that the last check or repair found and left, in words; `None` if there are none.
pub fn mismatches_text(array: &ArrayModel) -> Option<String> {
    let left: u64 = array.sets().iter().map(|set| set.mismatches_left()).sum();
    (left > 0).then(|| format!("{} at the last check", counted(left, "mismatched sector", "mismatched sectors")))
}

/// Health, and known mismatches.
pub fn health_line(array: &ArrayModel) -> String {
    let health = health_text(array.health);
    mismatches_text(array).map_or_else(|| health.into(), |found| format!("{health}, {found}"))
}

/// The state of an array, in a line.
pub fn state_line(array: &ArrayModel) -> String {
    let health = health_text(array.health);
    if array.stopping {
        return format!("{health}, being stopped");
    }
    let mut state = running_state(array, health);
    if array.sets().iter().any(|set| set.members.iter().any(|member| member.full.is_some())) {
        state.push_str(", no room for new data");
    }
    match mismatches_text(array).filter(|_| array.health != HealthWord::Failed) {
        Some(found) => format!("{state}, {found}"),
        None => state,
    }
}

fn running_state(array: &ArrayModel, health: &str) -> String {
    match array.health {
        HealthWord::Optimal if array.is_synced() => health.into(),
        HealthWord::Optimal => format!("{health}, {}", unsynced_text(array)),
        HealthWord::Failed => format!("{health}: its data cannot be read; see `openraid doctor` for what can be done"),
        HealthWord::Offline => format!("{health}: {}", array.offline.as_deref().unwrap_or("it is not served")),
        HealthWord::Degraded => {
            let is_nested = !array.spans.is_empty();
            let gone = array.sets().into_iter().enumerate().flat_map(|(span, set)| {
                let gone = set.members.iter().filter(|m| m.state != StateWord::InSync && !m.replacement);
                let slots = gone.filter_map(|m| m.slot);
                slots.map(move |slot| if is_nested { format!("{slot} of span {span}") } else { slot.to_string() })
            });
            format!("{health}: without slot {}", gone.collect::<Vec<String>>().join(", "))
        }
    }
}

fn consistency(array: &ArrayModel) -> String {
    let unsynced = |to| format!("{} from {} on", unsynced_text(array), human(Bytes(to)));
    match (array.active, array.consistent_to_bytes) {
        (true, Some(to)) => format!("dirty (not marked clean yet); {}", unsynced(to)),
        (true, None) => "dirty (not marked clean yet)".into(),
        (false, Some(to)) => unsynced(to),
        (false, None) => "clean".into(),
    }
}

/// Missing redundancy, in words.
pub fn unsynced_text(array: &ArrayModel) -> &'static str {
    unsynced_words(&array.level)
}

/// The same for a level.
pub const fn unsynced_words(level: &LevelWord) -> &'static str {
    match level {
        LevelWord::Of(ArrayLevel::Raid1 | ArrayLevel::Raid10) => "copies not in sync",
        _ => "parity not in sync",
    }
}

/// The journal's state for an array, in a line.
pub fn protection_text(journal: &ProtectionModel) -> String {
    match &journal.reason {
        None if journal.session == SessionWord::On => "active, holds writes that the members do not have yet".into(),
        None => "active, empty".into(),
        Some(reason) => format!("NOT PROTECTED: {reason}"),
    }
}

/// A task, in a line.
pub fn task_line(task: &TaskModel) -> String {
    let percent = task.percent();
    let done = format!(
        "{} {percent} % ({} of {})",
        task.kind.text(),
        human(Bytes(task.done_bytes)),
        human(Bytes(task.total_bytes))
    );
    let found = match task.kind {
        TaskWord::Check | TaskWord::Repair if task.mismatches == 0 => ", no mismatches".into(),
        TaskWord::Check | TaskWord::Repair => format!(", {}", counted(task.mismatches, "mismatch", "mismatches")),
        _ => String::new(),
    };
    if task.paused {
        return format!("{done}{found}, paused");
    }
    let eta = match task.eta_seconds {
        Some(seconds) => format!(", {} left", human_seconds(seconds)),
        None => String::new(),
    };
    let rate = if task.rate > 0 { format!(", {}", human_rate(task.rate)) } else { String::new() };
    format!("{done}{found}{rate}{eta}")
}

/// The state of a member, in words.
pub fn state_text(member: &MemberModel) -> String {
    let displaced = member.displaced.as_ref().map_or_else(String::new, |why| format!("; {}", why.to_uppercase()));
    state_alone(member) + &displaced
}

fn state_alone(member: &MemberModel) -> String {
    let reason = member.reason.as_deref().unwrap_or_default();
    match member.state {
        StateWord::Missing => "missing".into(),
        StateWord::Spare => "spare".into(),
        StateWord::InSync => "in sync".into(),
        StateWord::Rebuilding => {
            let done = human(Bytes(member.done_bytes.unwrap_or(0)));
            let what = if member.replacement { "being copied to" } else { "rebuilding" };
            format!("{what}, {done} done")
        }
        StateWord::Failing => format!("failing ({reason})"),
        StateWord::Faulty => format!("failed ({reason}){}", had_slot(member)),
        StateWord::Replaced => format!("replaced{}", had_slot(member)),
    }
}

fn had_slot(member: &MemberModel) -> String {
    member.left_slot.map_or_else(String::new, |slot| format!(", had slot {slot}"))
}

/// Are its writes acknowledged from the cache? The settings of an offline array are not known.
pub fn is_volatile(array: &ArrayModel) -> bool {
    array.settings.get("write_cache").is_some_and(|word| word == "volatile")
}

/// Does a setting ask for acknowledgements before the members have the data?
fn is_cached(array: &ArrayModel) -> bool {
    array.settings.get("write_cache").is_some_and(|word| word != "through")
}

/// The whole text of an array.
pub fn text(array: &ArrayModel) -> String {
    let mut lines = vec![format!("{}: {}", array.name, title(array))];
    let mut facts = TextTable::plain().indented(2);
    facts.row(["state", &state_line(array)]);
    facts.row(["survives", &survives(array)]);
    for (place, line) in alarm_lines(array).iter().enumerate() {
        facts.row([if place == 0 { "alarms" } else { "" }, line]);
    }
    size_facts(array, &mut facts);
    if let Some(block) = block_text(array) {
        facts.row(["logical block", &block]);
    }
    if let Some(forced) = &array.forced {
        facts.row(["by force", forced]);
    }
    if array.spans.is_empty() {
        set_facts(array, &mut facts);
    }
    if let Some(uuid) = &array.uuid {
        facts.row(["uuid", uuid]);
    }
    if let Some(version) = &array.metadata {
        facts.row(["metadata", &format!("{version}, {}", counted(array.events, "event", "events"))]);
    }
    if let Some(journal) = &array.journal {
        facts.row(["journal", &protection_text(journal)]);
    }
    if is_volatile(array) {
        facts.row(["write cache", VOLATILE]);
    }
    if let Some(profile) = &array.profile {
        for (place, line) in profile_lines(profile).iter().enumerate() {
            facts.row([if place == 0 { "profile" } else { "" }, line]);
        }
    }
    if !matches!(array.access, AccessWord::Unknown | AccessWord::ReadWrite) {
        facts.row(["access", access_text(array.access)]);
    }
    host_facts(array, &mut facts);
    lines.push(facts.text().trim_end().into());
    if array.spans.is_empty() {
        lines.push(members_text(array, 2));
    }
    for (number, span) in array.spans.iter().enumerate() {
        lines.push(format!("  span {number}: {} ({})", span.name, title(span)));
        let mut facts = TextTable::plain().indented(4);
        facts.row(["state", &state_line(span)]);
        facts.row(["survives", &survives(span)]);
        set_facts(span, &mut facts);
        lines.push(facts.text().trim_end().into());
        lines.push(members_text(span, 4));
    }
    lines.join("\n")
}

/// The requests of hosts, and where hosts find the array, or why they are refused.
fn host_facts(array: &ArrayModel, facts: &mut TextTable) {
    let host = &array.host;
    facts.row([
        "hosts",
        &format!(
            "{} of {}, {} of {}, {} since the start",
            counted(host.reads, "read", "reads"),
            human(Bytes(host.read_bytes)),
            counted(host.writes, "write", "writes"),
            human(Bytes(host.written_bytes)),
            counted(host.flushes, "flush", "flushes")
        ),
    ]);
    if let Some(refused) = &array.refused {
        facts.row(["", &format!("REFUSED: {refused}")]);
    }
    match array.path {
        PathWord::Inaccessible => {
            let again = command("path", [&*array.name, PathWord::Optimized.word()]);
            facts.row(["path", &format!("inaccessible: NVMe hosts wait, or take other paths, until `{again}`")]);
        }
        PathWord::NonOptimized => facts.row(["path", "non-optimized: NVMe hosts prefer other paths"]),
        PathWord::Optimized | PathWord::Unknown => {}
    }
    for address in &array.addresses {
        facts.row(["export", address]);
    }
}

/// Alarms above the level of information, one a line.
fn alarm_lines(array: &ArrayModel) -> Vec<String> {
    let alarms = array.alarms.iter().filter(|alarm| alarm.what.level > Severity::Info);
    let line = |alarm: &AlarmModel| {
        let acknowledged = if alarm.is_open() { "" } else { ", acknowledged" };
        format!("{} {} since {}{acknowledged}", alarm.what.level.word(), alarm.what.event, utc(alarm.since_seconds))
    };
    alarms.map(line).collect()
}

/// The profile in force, the differences from it, and the settings while the array is degraded.
fn profile_lines(profile: &ProfileModel) -> Vec<String> {
    let unset = if profile.set { "" } else { " (default)" };
    let changes: Vec<String> =
        profile.changes.iter().map(|change| format!("{}={}", change.setting, change.to)).collect();
    let changed = if changes.is_empty() { String::new() } else { format!(", changed: {}", changes.join(" ")) };
    let rate = match profile.degraded.rebuild_rate {
        0 => "as fast as the members allow".into(),
        rate => format!("at most {} of each member", human_rate(rate)),
    };
    let rows = counted(profile.degraded.depth.into(), "row", "rows");
    let degraded = format!("when degraded: rebuilds {rate}, {rows} at once; the other settings stay");
    vec![format!("{}{unset}{changed}", profile.name), degraded]
}

/// The access of hosts, in words.
pub const fn access_text(access: AccessWord) -> &'static str {
    match access {
        AccessWord::ReadOnly => "read-only: writes of clients are refused",
        AccessWord::Blocked => "blocked: no client can connect; rebuilds and checks run",
        AccessWord::ReadWrite | AccessWord::Unknown => access.word(),
    }
}

/// The logical block if it is not 512 bytes, or if the superblocks name it.
fn block_text(array: &ArrayModel) -> Option<String> {
    let named = array.sets().into_iter().chain([array]).find_map(|set| set.superblock_block_bytes);
    match named {
        Some(_) => {
            let note = crate::on_disk::kernels_before_6_19::REFUSED_BEFORE_6_19;
            Some(format!("{} bytes, named in the superblocks ({note})", array.block_bytes))
        }
        None => (array.block_bytes != 512).then(|| format!("{} bytes", array.block_bytes)),
    }
}

/// The size now and after a change of shape, and clients that know another one.
fn size_facts(array: &ArrayModel, facts: &mut TextTable) {
    let later = array.shape.as_ref().and_then(|change| shape::size_after(change, array.size_bytes)).unwrap_or_default();
    facts.row(["size", &format!("{} ({} bytes){later}", human(Bytes(array.size_bytes)), array.size_bytes)]);
    if let Some(clients) = shape::other_sizes(&array.other_sizes) {
        facts.row(["old size", &clients]);
    }
}

fn set_facts(set: &ArrayModel, facts: &mut TextTable) {
    if set.level == ArrayLevel::Jbod {
        return;
    }
    if let Some(task) = &set.task {
        facts.row(["task", &task_line(task)]);
    }
    if let Some(change) = &set.shape {
        facts.row(["shape", &change.text]);
        if is_cached(set) {
            facts.row(["", "writes are acknowledged when they are on the members, until the end of the change"]);
        }
    }
    facts.row(["consistency", &consistency(set)]);
    if let Some(policy) = &set.consistency_policy {
        facts.row(["policy", policy.word()]);
    }
    if let Some(bitmap) = &set.bitmap {
        facts.row(["bitmap", &format!("{} of {} marked", bitmap.marked, counted(bitmap.regions, "region", "regions"))]);
    }
    if let Some(check) = &set.last_check {
        for (place, line) in last_check(check, set).iter().enumerate() {
            facts.row([if place == 0 { "last check" } else { "" }, line]);
        }
    }
    if let Some(check) = &set.last_complete_check {
        for (place, line) in last_check(check, set).iter().enumerate() {
            facts.row([if place == 0 { "before that" } else { "" }, line]);
        }
    }
}

/// A text of a member for a column.
type Cell = fn(&MemberModel) -> Option<&String>;

fn members_text(set: &ArrayModel, indent: usize) -> String {
    // Columns of devices; files have none of these.
    let of_devices: [(&str, Cell); 3] = [
        ("SERIAL", |member| member.serial.as_ref()),
        ("MODEL", |member| member.model.as_ref()),
        ("BAY", |member| member.bay.as_ref()),
    ];
    let of_devices = of_devices.into_iter().filter(|(_, cell)| set.members.iter().any(|member| cell(member).is_some()));
    let of_devices: Vec<_> = of_devices.collect();
    let mut heads = vec!["SLOT", "DRIVE", "MEMBER", "STATE", "MEDIA ERRORS", "BAD RANGES"];
    heads.extend(of_devices.iter().map(|(head, _)| *head));
    let mut table = TextTable::new(&heads).indented(indent);
    let number = |number: Option<u16>| number.map_or_else(|| "-".into(), |number| number.to_string());
    for member in &set.members {
        let mut cells = vec![
            number(member.slot),
            number(member.drive),
            member.member.clone().unwrap_or_else(|| "-".into()),
            state_text(member),
            member.media_errors.to_string(),
            member.bad_ranges.to_string(),
        ];
        cells.extend(of_devices.iter().map(|(_, cell)| cell(member).cloned().unwrap_or_else(|| "-".into())));
        table.row(cells);
    }
    let mut text = table.text().trim_end().to_owned();
    if let Some(caches) = drive_caches(set) {
        text.push_str(&format!("\n{}drive caches: {caches}", " ".repeat(indent)));
    }
    for member in set.members.iter().filter(|member| member.smart.is_some()) {
        let (name, health) = (member.member.as_deref().unwrap_or("-"), member.smart.as_deref().map(smart_text));
        text.push_str(&format!("\n{}health: {name}: {}", " ".repeat(indent), health.unwrap_or_default()));
    }
    for full in set.members.iter().filter_map(|member| member.full.as_ref()) {
        text.push_str(&format!("\n{}note: {full}", " ".repeat(indent)));
    }
    for (member, note) in set.members.iter().flat_map(|member| member.notes.iter().map(move |note| (member, note))) {
        let name = member.member.as_deref().unwrap_or("-");
        text.push_str(&format!("\n{}note: {name}: {note}", " ".repeat(indent)));
    }
    text
}

/// The health that a drive reports, in words.
fn smart_text(smart: &openraid_status::care::SmartModel) -> String {
    let mut parts = vec![match smart.passed {
        Some(true) => "passed".to_owned(),
        Some(false) => "FAILING".into(),
        None => "no verdict".into(),
    }];
    parts.extend(smart.temperature_celsius.map(|now| format!("{now} C")));
    parts.extend(smart.power_on_hours.map(|hours| format!("{hours} h")));
    parts.extend(smart.used_percent.map(|used| format!("{used} % worn")));
    let counts = [
        (smart.reallocated_sectors, "reallocated"),
        (smart.pending_sectors, "pending"),
        (smart.uncorrectable_sectors, "uncorrectable"),
    ];
    parts
        .extend(counts.into_iter().filter_map(|(count, word)| count.filter(|n| *n > 0).map(|n| format!("{n} {word}"))));
    parts.join(", ")
}

/// The members whose drives have a known write cache: first the members with the cache on, then the members with it
/// off.
fn drive_caches(set: &ArrayModel) -> Option<String> {
    let with = |word: &str| {
        let with_word = set.members.iter().filter(|member| member.drive_cache.as_deref() == Some(word));
        let names: Vec<&str> = with_word.filter_map(|member| member.member.as_deref()).collect();
        (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
    };
    let parts: Vec<String> = [with("on"), with("off")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The form of /proc/mdstat, one array after the other.
pub fn mdstat(arrays: &[&ArrayModel]) -> String {
    let mut text = String::from("Personalities : [linear] [raid0] [raid1] [raid4] [raid5] [raid6] [raid10]\n");
    for array in arrays {
        for set in array.sets() {
            text.push_str(&mdstat_set(set));
        }
        if !array.spans.is_empty() {
            let spans: Vec<String> =
                array.spans.iter().enumerate().map(|(n, span)| format!("{}[{n}]", span.name)).collect();
            let chunk = array.outer_chunk_bytes.unwrap_or(0) / 1024;
            text.push_str(&format!(
                "{} : active raid0 {}\n      {} blocks super 1.2 {chunk}k chunks\n\n",
                array.name,
                spans.join(" "),
                array.size_bytes / 1024
            ));
        }
    }
    text.push_str("unused devices: <none>\n");
    text
}

fn mdstat_set(set: &ArrayModel) -> String {
    let mark = |member: &MemberModel| match member.state {
        StateWord::Faulty | StateWord::Failing | StateWord::Replaced => "(F)",
        StateWord::Spare => "(S)",
        StateWord::Rebuilding if member.replacement => "(R)",
        _ if member.flags.iter().any(|flag| flag == "write-mostly") => "(W)",
        _ => "",
    };
    // Members without a slot get the numbers after the slots, as md numbers spares.
    let mut beyond = set.slots..;
    let present = set.members.iter().filter_map(|member| Some((member, member.member.as_deref()?)));
    let members: Vec<String> = present
        .map(|(member, path)| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let number = member.slot.map(u32::from).or_else(|| beyond.next()).unwrap_or(0);
            format!("{name}[{number}]{}", mark(member))
        })
        .collect();
    let level = match &set.level {
        LevelWord::Of(ArrayLevel::Single) => &LevelWord::Of(ArrayLevel::Raid1),
        level => level,
    };
    let mut text =
        format!("{} : active {level} {}\n      {} blocks", set.name, members.join(" "), set.size_bytes / 1024);
    if let Some(version) = &set.metadata {
        text.push_str(&format!(" super {version}"));
    }
    let md = match level {
        LevelWord::Of(ArrayLevel::Raid4) => Some(MdLevel::Raid4),
        LevelWord::Of(ArrayLevel::Raid5) => Some(MdLevel::Raid5),
        LevelWord::Of(ArrayLevel::Raid6) => Some(MdLevel::Raid6),
        _ => None,
    };
    if let (Some(md), Some(chunk)) = (md, set.chunk_bytes) {
        let layout = set.layout.as_deref().and_then(|layout| layout_from_word(md, layout));
        let (number, algorithm) = (md.number(), layout.unwrap_or(0));
        text.push_str(&format!(" level {number}, {}k chunk, algorithm {algorithm}", chunk / 1024));
    } else if let Some(chunk) = set.chunk_bytes {
        let word = if *level == ArrayLevel::Linear { "rounding" } else { "chunks" };
        text.push_str(&format!(" {}k {word}", chunk / 1024));
    }
    if !matches!(level, LevelWord::Of(ArrayLevel::Raid0 | ArrayLevel::Linear | ArrayLevel::Jbod)) {
        text.push_str(&up_map(set));
    }
    text.push('\n');
    if is_volatile(set) {
        text.push_str("      write cache: VOLATILE\n");
    }
    if let Some(task) = &set.task {
        text.push_str(&mdstat_task(task));
    }
    if let Some(bitmap) = &set.bitmap {
        text.push_str(&mdstat_bitmap(bitmap));
    }
    text.push('\n');
    text
}

/// ` [4/3] [UU_U]`
fn up_map(set: &ArrayModel) -> String {
    let up = |slot: u32| {
        let is_of_slot = |m: &&MemberModel| m.slot.map(u32::from) == Some(slot) && !m.replacement;
        set.members.iter().find(is_of_slot).is_some_and(|member| member.state == StateWord::InSync)
    };
    let map: String = (0..set.slots).map(|slot| if up(slot) { 'U' } else { '_' }).collect();
    format!(" [{}/{}] [{map}]", set.slots, map.matches('U').count())
}

/// md counts the pages of its counters in memory: the pages with a marked region.
fn mdstat_bitmap(bitmap: &BitmapModel) -> String {
    const PAGE_KIB: u64 = 4;
    let BitmapModel { chunk_bytes, pages, pages_marked, .. } = bitmap;
    let chunk = match chunk_bytes / 1024 {
        0 => format!("{chunk_bytes}B"),
        kib => format!("{kib}KB"),
    };
    format!("      bitmap: {pages_marked}/{pages} pages [{}KB], {chunk} chunk\n", pages_marked * PAGE_KIB)
}

fn mdstat_task(task: &TaskModel) -> String {
    const WIDTH: u64 = 20;
    let word = match task.kind {
        TaskWord::Rebuild | TaskWord::Replace => "recovery",
        TaskWord::Resync => "resync",
        TaskWord::Check => "check",
        TaskWord::Repair => "repair",
        TaskWord::Reshape => "reshape",
    };
    let (done, total) = (task.done_bytes / 1024, (task.total_bytes / 1024).max(1));
    let filled = usize::try_from(WIDTH * done.min(total) / total).unwrap_or(0);
    let empty = usize::try_from(WIDTH).unwrap_or(0) - filled;
    let per_mille = done.saturating_mul(1000) / total;
    let bar = format!("[{}>{}]", "=".repeat(filled), ".".repeat(empty));
    let percent = format!("{}.{}%", per_mille / 10, per_mille % 10);
    if task.paused {
        return format!("      {bar}  {word} = {percent} ({done}/{total}) PAUSED\n");
    }
    let finish =
        task.eta_seconds.map_or_else(|| "?".into(), |seconds| format!("{}.{}min", seconds / 60, seconds % 60 / 6));
    format!("      {bar}  {word} = {percent} ({done}/{total}) finish={finish} speed={}K/sec\n", task.rate / 1024)
}
