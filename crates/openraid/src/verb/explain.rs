//! `openraid explain`: shows the limit of an array, the engine's decisions by reason, and the stories of its requests.

use std::time::Duration;

use openraid_units::Bytes;

use super::Context;
use crate::arguments::{ExplainArguments, RequestWord, SwitchWord};
use crate::control::{Command, ControlConnection, ServerAnswer};
use crate::exit::{Exit, Failure, Outcome};
use crate::model::{ArrayModel, CacheModel, LimitModel};
use crate::output::cache::{amplification, ratio, Amplification};
use crate::output::table::TextTable;
use crate::quantity::{counted, human, human_millis, human_seconds};
use crate::story::{self, StoriesModel, StoryModel};

/// The decisions of an array, and their reasons.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct ExplainBody<'a> {
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
pub(super) struct StoriesBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// The stories that were asked for.
    stories: &'a [StoryModel],
    /// Number of stories that were left out.
    left_out: u64,
    /// Number of steps that were lost because too many came at once.
    lost_steps: u64,
}

/// Recording was switched.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct ExplainRecordBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// The result in a sentence.
    done: &'a str,
}

/// Time between two queries for requests that have ended.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the request is not recorded.
pub fn run(arguments: &ExplainArguments, context: &Context) -> Outcome {
    let name = arguments.array.as_str();
    let mut server = context.servers.must_serve(name)?;
    if let Some(switch) = arguments.record {
        let answer = server.ask(&Command::Record { on: switch == SwitchWord::On })?;
        let ServerAnswer::Done { text, .. } = answer else { return Err(strange()) };
        return Ok(context.output.answer(Exit::Fine, &ExplainRecordBody { array: name, done: &text }, &text));
    }
    if arguments.follow {
        return follow(&mut server, name, context);
    }
    if arguments.tells_stories() {
        let array = name.to_owned();
        let command = match (arguments.request, arguments.slowest) {
            (Some(RequestWord::Number(number)), _) => Command::Story { array, request: Some(number) },
            (_, Some(count)) => Command::Slowest { array, count: usize::from(count) },
            _ => Command::Story { array, request: None },
        };
        return Ok(print_stories(&stories(&mut server, &command)?, name, context));
    }
    totals(&mut server, name, context)
}

fn strange() -> Failure {
    Failure::cannot_tell("unexpected answer of the server: it may be of another version")
}

fn stories(server: &mut ControlConnection, command: &Command) -> Result<StoriesModel, Failure> {
    match server.ask(command)? {
        ServerAnswer::Stories(stories) => Ok(*stories),
        _ => Err(strange()),
    }
}

/// Prints stories when their requests end, until the server ends or the user stops the program.
fn follow(server: &mut ControlConnection, name: &str, context: &Context) -> Outcome {
    // Requests that ended before are not printed.
    let mut since = stories(server, &Command::Stories { array: name.into(), since: u64::MAX })?.next;
    loop {
        std::thread::sleep(FOLLOW_INTERVAL);
        let found = stories(server, &Command::Stories { array: name.into(), since })?;
        since = found.next;
        if !found.stories.is_empty() || found.lost_steps > 0 {
            print_stories(&found, name, context);
        }
    }
}

fn print_stories(found: &StoriesModel, name: &str, context: &Context) -> Exit {
    let StoriesModel { stories, left_out, lost_steps, .. } = found;
    let mut texts: Vec<String> = stories.iter().map(story::text).collect();
    if *left_out > 0 {
        texts.push(format!("(left out: {} that ended meanwhile)", counted(*left_out, "story", "stories")));
    }
    if *lost_steps > 0 {
        texts.push(format!(
            "({} not recorded, because requests came too fast: stories are missing)",
            counted(*lost_steps, "step was", "steps were")
        ));
    }
    let body = StoriesBody { array: name, stories, left_out: *left_out, lost_steps: *lost_steps };
    context.output.answer(Exit::Fine, &body, &texts.join("\n"))
}

/// The limit of the array, and totals by reason.
fn totals(server: &mut ControlConnection, name: &str, context: &Context) -> Outcome {
    let array = server.show(name)?;
    let ServerAnswer::Limit(limit) = server.ask(&Command::Limit { array: name.into() })? else { return Err(strange()) };
    let body = body(&array, &limit);
    let text = text(&array, &body);
    Ok(context.output.answer(array.exit(), &body, &text))
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

fn body<'a>(array: &'a ArrayModel, limit: &'a LimitModel) -> ExplainBody<'a> {
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

fn text(array: &ArrayModel, body: &ExplainBody<'_>) -> String {
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
