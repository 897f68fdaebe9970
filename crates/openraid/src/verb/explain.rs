//! `openraid explain`: how often the engine decided what, and what that cost.

use openraid_units::Bytes;

use super::Context;
use crate::arguments::ArrayArgument;
use crate::exit::Outcome;
use crate::model::ArrayModel;
use crate::output::table::Table;
use crate::quantity::human;

#[derive(serde::Serialize)]
struct Body<'a> {
    array: &'a str,
    host: &'a crate::model::HostModel,
    member_reads_per_host_request: String,
    member_writes_per_host_request: String,
    reasons: &'a [crate::model::ReasonModel],
    adaptive: &'a Option<crate::model::AdaptiveModel>,
    journal: Option<&'a crate::model::ProtectionModel>,
    sets: Vec<&'a ArrayModel>,
}

/// Do it.
///
/// # Errors
/// Nobody serves the array.
pub fn run(arguments: &ArrayArgument, context: &Context) -> Outcome {
    let array = context.servers.must_serve(&arguments.array)?.show(&arguments.array)?;
    let host = &array.host;
    let requests = host.reads + host.writes;
    let sum = |of: fn(&crate::model::MemberModel) -> u64| -> u64 {
        array.sets().into_iter().flat_map(|set| &set.members).map(of).sum()
    };
    let body = Body {
        array: &array.name,
        host,
        member_reads_per_host_request: ratio(sum(|member| member.reads), requests),
        member_writes_per_host_request: ratio(sum(|member| member.writes), requests),
        reasons: &array.reasons,
        adaptive: &array.adaptive,
        journal: array.journal.as_ref(),
        sets: array.sets(),
    };
    let text = text(&array, &body);
    Ok(context.output.answer(array.exit(), &body, &text))
}

/// With two decimals; a dash where there is nothing to divide by.
fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = u128::from(part) * 100 / u128::from(whole);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn text(array: &ArrayModel, body: &Body<'_>) -> String {
    let host = body.host;
    let mut lines = vec![
        format!("{}: since it was started", array.name),
        format!(
            "  hosts asked for {} reads ({}), {} writes ({}), {} flushes, {} others",
            host.reads,
            human(Bytes(host.read_bytes)),
            host.writes,
            human(Bytes(host.written_bytes)),
            host.flushes,
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
    let mut reasons: Vec<_> = array.reasons.iter().collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    let total: u64 = reasons.iter().map(|reason| reason.count).sum();
    let mut table = Table::new(&["COUNT", "SHARE", "DECISION"]).indented(2);
    for reason in reasons {
        let share = u128::from(reason.count) * 100 / u128::from(total.max(1));
        table.row([reason.count.to_string(), format!("{share} %"), reason.text.clone()]);
    }
    lines.push(table.text().trim_end().into());
    lines.extend(adaptive(array));
    let mut members = Table::new(&["MEMBER", "READS", "READ", "WRITES", "WRITTEN", "FLUSHES"]).indented(2);
    for member in array.sets().into_iter().flat_map(|set| &set.members) {
        members.row([
            member.member.clone().unwrap_or_else(|| "-".into()),
            member.reads.to_string(),
            human(Bytes(member.read_bytes)),
            member.writes.to_string(),
            human(Bytes(member.written_bytes)),
            member.flushes.to_string(),
        ]);
    }
    lines.push(members.text());
    lines.join("\n")
}

/// What the adaptive policy does, and why.
fn adaptive(array: &ArrayModel) -> Vec<String> {
    let Some(adaptive) = &array.adaptive else { return Vec::new() };
    let words = |tuning: &crate::model::TuningModel| {
        format!(
            "read-ahead {}, mirror reads {}, dirty data waits {} s",
            tuning.read_ahead,
            tuning.mirror_read,
            tuning.destage_millis / 1000
        )
    };
    let mut lines = vec![format!(
        "  adaptive, {} changes after {} looks; now: {}",
        adaptive.switches,
        adaptive.windows,
        words(&adaptive.now)
    )];
    for switch in &adaptive.last {
        lines.push(format!("    at {} s: {}", switch.at_seconds, words(&switch.to)));
        lines.push(format!("      because of {}", switch.why));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn ratios_have_two_decimals_and_nothing_is_divided_by_nothing() {
        assert_eq!(ratio(0, 0), "-");
        assert_eq!((ratio(1, 3), ratio(2, 1), ratio(5, 4)), ("0.33".into(), "2.00".into(), "1.25".into()));
    }
}
