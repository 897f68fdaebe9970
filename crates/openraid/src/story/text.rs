//! A story as text: one line for each step, with the time since the beginning and its duration.

use openraid_units::Bytes;

use super::model::{StepModel, StoryModel};
use crate::quantity::human;

/// The story as lines.
pub fn text(story: &StoryModel) -> String {
    let mut lines = vec![head(story)];
    body(story, 2, &mut lines);
    for later in &story.later {
        let after = later.began_ns.saturating_sub(story.began_ns);
        lines.push(format!("  {:>11}  later: {}", millis(after), head(later)));
        body(later, 4, &mut lines);
    }
    lines.join("\n")
}

fn head(story: &StoryModel) -> String {
    let name = match (story.request, story.unit) {
        (Some(number), _) => format!("request {number}"),
        (None, Some(unit)) => format!("dirty unit {unit}"),
        (None, None) => "unknown request".into(),
    };
    let what = match (story.offset_bytes, story.len_bytes) {
        (Some(offset), Some(len)) => format!("{} {} at byte {offset}", story.kind, human(Bytes(len))),
        _ => story.kind.clone(),
    };
    let span = story.span.map_or_else(String::new, |span| format!(" of span {span}"));
    let end = match (&story.status, story.took_ns) {
        (Some(status), Some(took)) => format!("{status} after {}", millis(took)),
        _ => "still under way".into(),
    };
    let cut = if story.whole { "" } else { " (its beginning is not kept any more)" };
    format!("{name}{span}: {what}: {end}{cut}")
}

fn body(story: &StoryModel, indent: usize, lines: &mut Vec<String>) {
    let many = story.steps.iter().filter_map(|step| step.op).max().unwrap_or(0) > 1;
    for step in &story.steps {
        let op = step.op.filter(|_| many).map_or_else(String::new, |op| format!("[{op}] "));
        lines.push(format!("{:indent$}{:>11}  {op}{}{}", "", millis(step.at_ns), step.text, time(step)));
    }
}

fn time(step: &StepModel) -> String {
    let queued = step.queued_ns.filter(|queued| *queued > 0);
    let queued = queued.map_or_else(String::new, |queued| format!(" after {} in the queue", millis(queued)));
    match step.took_ns {
        Some(took) if took > 0 || step.queued_ns.is_some() => format!(": {}{queued}", millis(took)),
        _ if step.step.is_of_member() && step.took_ns.is_none() => ": NO ANSWER YET".into(),
        _ => queued,
    }
}

/// Milliseconds with three decimals.
fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1000 % 1000)
}
