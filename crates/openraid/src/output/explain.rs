//! The limit of an array, the engine's decisions by reason, and stories of requests: as documents and in words.

use openraid_units::Bytes;

use super::cache::{amplification, ratio, Amplification};
use super::table::TextTable;
use crate::failure::Failure;
use crate::model::{ArrayModel, CacheModel, LimitModel};
use crate::quantity::{counted, human, human_millis, human_seconds};
use crate::story::{StoriesModel, StoryModel};

/// The decisions of an array, and their reasons.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct ExplainBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// Requests of clients since the array was started.
    host: &'a crate::model::HostModel,
    /// Reads of members for each read of a host; two decimals.
    member_reads_per_host_request: String,
    /// Writes of members for each write of a host; two decimals.
    member_writes_per_host_request: String,
    /// The engine's decisions since the array was started, with the number of each.
    reasons: &'a [crate::model::ReasonModel],
    /// The choices of the adaptive policy, while it is on.
    adaptive: &'a Option<crate::model::AdaptiveModel>,
    /// The state of the journal for this array, if its policy asks for the journal.
    journal: Option<&'a crate::model::ProtectionModel>,
    /// The effect of the cache for it.
    cache: Option<&'a CacheModel>,
    /// Bytes written to each member for each byte that hosts wrote.
    write_amplification: Vec<Amplification>,
    /// The part that limits the array now.
    limit: &'a LimitModel,
    /// The set of the array; of each span for a nested array.
    sets: Vec<&'a ArrayModel>,
}

/// Stories of requests.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct StoriesBody<'a> {
    /// Name of the array.
    pub array: &'a str,
    /// The stories that were asked for.
    pub stories: &'a [StoryModel],
    /// Number of stories that were left out.
    pub left_out: u64,
    /// Number of steps that were lost because too many came at once.
    pub lost_steps: u64,
}

/// The decisions of an array and their reasons, as a document.
///
/// # Errors
/// The document cannot be written.
pub fn document(array: &ArrayModel, limit: &LimitModel) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(body(array, limit)).map_err(Failure::failed)
}

/// Stories as a document.
///
/// # Errors
/// The document cannot be written.
pub fn stories_document(array: &str, found: &StoriesModel) -> Result<serde_json::Value, Failure> {
    let StoriesModel { stories, left_out, lost_steps, .. } = found;
    let body = StoriesBody { array, stories, left_out: *left_out, lost_steps: *lost_steps };
    serde_json::to_value(body).map_err(Failure::failed)
}

/// The decisions of an array, and its limit.
pub fn body<'a>(array: &'a ArrayModel, limit: &'a LimitModel) -> ExplainBody<'a> {
    let host = &array.host;
    let requests = host.reads + host.writes;
    let sum = |of: fn(&crate::model::MemberModel) -> u64| -> u64 {
        array.sets().into_iter().flat_map(|set| &set.members).map(of).sum()
    };
    ExplainBody {
        array: &array.name,
        host,
        member_reads_per_host_request: ratio(sum(|member| member.reads), requests),
        member_writes_per_host_request: ratio(sum(|member| member.writes), requests),
        reasons: &array.reasons,
        adaptive: &array.adaptive,
        journal: array.journal.as_ref(),
        cache: array.cache.as_ref(),
        write_amplification: amplification(array),
        limit,
        sets: array.sets(),
    }
}

/// The same in words.
pub fn text(array: &ArrayModel, body: &ExplainBody<'_>) -> String {
    let host = body.host;
    let mut lines = vec![
        format!("{}:", array.name),
        format!("  {}", body.limit.text),
        format!("  suggestion: {}", body.limit.suggestion),
        parts(body.limit),
        format!("{}, since it was started:", array.name),
        format!(
            "  requests of hosts: {} ({}), {} ({}), {}, others: {}",
            counted(host.reads, "read", "reads"),
            human(Bytes(host.read_bytes)),
            counted(host.writes, "write", "writes"),
            human(Bytes(host.written_bytes)),
            counted(host.flushes, "flush", "flushes"),
            host.others
        ),
        format!(
            "  for each read or write of a host: {} member reads, {} member writes (background work included)",
            body.member_reads_per_host_request, body.member_writes_per_host_request
        ),
    ];
    if let Some(journal) = &array.journal {
        lines.push(format!("  journal: {}", crate::output::array::protection_text(journal)));
    }
    lines.extend(crate::output::cache::lines(array));
    let mut reasons: Vec<_> = array.reasons.iter().collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    let total: u64 = reasons.iter().map(|reason| reason.count).sum();
    let mut table = TextTable::new(&["COUNT", "SHARE", "DECISION"]).indented(2);
    for reason in reasons {
        let share = u128::from(reason.count) * 100 / u128::from(total.max(1));
        table.row([reason.count.to_string(), format!("{share} %"), reason.text.clone()]);
    }
    lines.push(table.text().trim_end().into());
    lines.extend(adaptive(array));
    let mut members =
        TextTable::new(&["MEMBER", "READS", "READ", "WRITES", "WRITTEN", "PER HOST BYTE", "FLUSHES"]).indented(2);
    for member in array.sets().into_iter().flat_map(|set| &set.members) {
        members.row([
            member.member.clone().unwrap_or_else(|| "-".into()),
            member.reads.to_string(),
            human(Bytes(member.read_bytes)),
            member.writes.to_string(),
            human(Bytes(member.written_bytes)),
            ratio(member.written_bytes, host.written_bytes),
            member.flushes.to_string(),
        ]);
    }
    lines.push(members.text());
    lines.join("\n")
}

/// The parts that were examined.
fn parts(limit: &LimitModel) -> String {
    let mut table = TextTable::new(&["PART", "BUSY", "DEPTH", "COMMANDS", "EACH", "WAITED"]).indented(2);
    let millis = |nanos: u64| format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1000 % 1000);
    for part in &limit.parts {
        let name = match (&part.name, part.slot) {
            (Some(name), Some(slot)) => format!("slot {slot}, {name}"),
            (Some(name), None) => format!("{}, {name}", part.part),
            _ => part.part.to_string(),
        };
        let mut row = vec![name, format!("{} %", part.busy_percent)];
        if part.name.is_some() {
            row.push(format!("{}.{}", part.depth_tenths / 10, part.depth_tenths % 10));
            row.extend([part.commands.to_string(), millis(part.service_ns), millis(part.queued_ns)]);
        }
        table.row(row);
    }
    table.text().trim_end().into()
}

/// The present choice of the adaptive policy, and its reason.
fn adaptive(array: &ArrayModel) -> Vec<String> {
    let Some(adaptive) = &array.adaptive else { return Vec::new() };
    let words = |tuning: &crate::model::TuningModel| {
        format!(
            "read-ahead {}, mirror reads {}, dirty data waits {}",
            tuning.read_ahead,
            tuning.mirror_read,
            human_millis(tuning.destage_millis)
        )
    };
    let mut lines = vec![format!(
        "  adaptive, {} after {}; now: {}",
        counted(adaptive.switches, "change", "changes"),
        counted(adaptive.windows, "look", "looks"),
        words(&adaptive.now)
    )];
    for switch in &adaptive.last {
        lines.push(format!("    {} ago: {}", human_seconds(switch.ago_seconds), words(&switch.to)));
        lines.push(format!("      because of {}", switch.why));
    }
    lines
}
