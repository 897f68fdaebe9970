//! From a story's steps to its lines: each begin is joined with its end, with the time between.

use std::collections::BTreeMap;

use openraid_core::events::RequestKind;
use openraid_core::reason::Reason;
use openraid_core::request_steps::{OpName, Step, StepEvent, StepOwner, StepSubject};
use openraid_core::slot_set::SlotSet;
use openraid_units::{Instant, Sectors};

use super::model::{StepKind, StepModel, StoryModel};
use super::words::{
    asked_kind, asked_text, drive_name, job_kind, job_text, kind_word, made_text, planned_text, status_word,
};
use super::{Story, StoryNames, StoryOwner};
use crate::quantity::{counted, human};
use openraid_units::Bytes;

/// What a story's lines are made with.
struct Teller<'a> {
    names: &'a StoryNames,
    began: Instant,
    lines: Vec<StepModel>,
    /// Operations in the order in which they were made, and the slots that get their parity.
    ops: BTreeMap<OpName, (u32, SlotSet)>,
    /// Lines that have not ended: waits and computations by their owner, and commands.
    waits: BTreeMap<StepSubject, usize>,
    computing: BTreeMap<StepSubject, usize>,
    commands: Vec<(StepSubject, StepEvent, usize)>,
}

impl StoryModel {
    /// A story, and those of what it left in the cache; `all` are the stories among which it was found.
    pub fn of(story: &Story, all: &[Story], names: &StoryNames) -> Self {
        let later = story.later.iter().map(|place| Self::alone(&all[*place], names)).collect();
        Self { later, ..Self::alone(story, names) }
    }

    fn alone(story: &Story, names: &StoryNames) -> Self {
        let began = story.steps.first().map_or(Instant::ZERO, |step| step.at);
        let mut teller = Teller {
            names,
            began,
            lines: Vec::new(),
            ops: BTreeMap::new(),
            waits: BTreeMap::new(),
            computing: BTreeMap::new(),
            commands: Vec::new(),
        };
        story.steps.iter().for_each(|step| teller.take(step));
        let end = story.ended.and_then(|_| story.steps.iter().rev().find(|step| is_end(step)));
        let (request, unit, span) = match story.owner {
            StoryOwner::Request(number) => (Some(number), None, None),
            StoryOwner::Unit(set, unit) => (None, Some(unit), names.span(set)),
        };
        let mut model = Self {
            request,
            kind: if unit.is_some() { "destage".into() } else { "unknown".into() },
            offset_bytes: None,
            len_bytes: None,
            unit,
            span,
            began_ns: began.0,
            took_ns: end.map(|step| step.at.since(began).get()),
            status: end.map(|step| status_of(&step.event)),
            whole: story.whole,
            steps: teller.lines,
            later: Vec::new(),
        };
        if let Some(StepEvent::Arrived { kind, offset, len, .. }) = story.steps.first().map(|step| step.event) {
            model.kind = kind_word(kind).into();
            if kind != RequestKind::Flush {
                (model.offset_bytes, model.len_bytes) = (Some(offset.get()), Some(len));
            }
        }
        model
    }
}

fn is_end(step: &Step) -> bool {
    matches!(step.event, StepEvent::Replied { .. } | StepEvent::Done { .. })
}

fn status_of(event: &StepEvent) -> String {
    match event {
        StepEvent::Replied { status } | StepEvent::Done { error: Some(status) } => status_word(*status).into(),
        _ => "ok".into(),
    }
}

impl Teller<'_> {
    fn since(&self, at: Instant) -> u64 {
        at.since(self.began).get()
    }

    fn line(&mut self, step: &Step, kind: StepKind, text: String) -> &mut StepModel {
        let op = match step.subject {
            StepSubject::Op(name) => self.ops.get(&name).map(|(number, _)| *number),
            StepSubject::Request(_) | StepSubject::Entry(_) => None,
        };
        let entry = match step.subject {
            StepSubject::Entry(entry) => Some(entry),
            _ => None,
        };
        let at_ns = self.since(step.at);
        self.lines.push(StepModel { at_ns, op, step: kind, text, entry, ..StepModel::default() });
        self.lines.last_mut().expect("just put")
    }

    fn take(&mut self, step: &Step) {
        if let Some(wait) = self.waits.remove(&step.subject) {
            let since = self.since(step.at);
            self.lines[wait].took_ns = Some(since - self.lines[wait].at_ns);
        }
        match step.event {
            StepEvent::Arrived { .. }
            | StepEvent::Received { .. }
            | StepEvent::Cached { .. }
            | StepEvent::Found { .. }
            | StepEvent::Sending { .. }
            | StepEvent::Replied { .. } => self.of_request(step),
            StepEvent::Reason { reason, figure } => self.reason(step, reason, figure),
            StepEvent::Made { .. } => self.made(step),
            StepEvent::Planned { reason, rejected, parity, lost } => {
                if let StepSubject::Op(name) = step.subject {
                    if let Some(op) = self.ops.get_mut(&name) {
                        op.1 = parity;
                    }
                }
                let line = self.line(step, StepKind::Plan, planned_text(reason, rejected, parity, lost));
                line.reason = Some(reason.name().into());
            }
            // The wait that it ends has its time already.
            StepEvent::Granted => {}
            StepEvent::Asked { .. } => self.asked(step),
            StepEvent::Ended { .. } => self.ended(step),
            StepEvent::Computing { kind, columns, len } => {
                self.line(step, job_kind(kind), job_text(kind, columns, len));
                self.computing.insert(step.subject, self.lines.len() - 1);
            }
            StepEvent::Computed => {
                if let Some(at) = self.computing.remove(&step.subject) {
                    self.lines[at].took_ns = Some(self.since(step.at) - self.lines[at].at_ns);
                }
            }
            StepEvent::Logged { .. } | StepEvent::Sealed { .. } | StepEvent::Durable => self.of_journal(step),
            StepEvent::Done { error } => {
                let text = error.map_or_else(|| "done".into(), |error| format!("failed: {}", status_word(error)));
                self.line(step, StepKind::Done, text);
            }
        }
    }

    /// What happens to the request itself.
    fn of_request(&mut self, step: &Step) {
        let bytes = |len: u64| human(Bytes(len));
        match step.event {
            StepEvent::Arrived { kind: RequestKind::Flush, .. } => {
                self.line(step, StepKind::Arrived, "arrived: flush".into());
            }
            StepEvent::Arrived { kind, offset, len, .. } => {
                let text = format!("arrived: {}: {} at byte {}", kind_word(kind), bytes(len), offset.get());
                self.line(step, StepKind::Arrived, text);
            }
            StepEvent::Received { len } => {
                self.line(step, StepKind::Received, format!("payload has arrived: {}", bytes(len)));
            }
            StepEvent::Cached { unit, len, entry, .. } => {
                let promise = if entry == 0 { String::new() } else { format!(", in entry {entry} of the journal") };
                let text = format!("{} taken into the cache, dirty unit {unit}{promise}", human(len.bytes()));
                let line = self.line(step, StepKind::Cached, text);
                line.sectors = Some(len.get());
                line.entry = (entry != 0).then_some(entry);
            }
            StepEvent::Found { len } => {
                let line = self.line(step, StepKind::Found, format!("{} found in the cache", human(len.bytes())));
                line.sectors = Some(len.get());
            }
            StepEvent::Sending { len } => {
                self.line(step, StepKind::Sent, format!("sent to the client: {}", bytes(len)));
            }
            StepEvent::Replied { status } => {
                self.line(step, StepKind::Replied, format!("the client has its answer: {}", status_word(status)));
            }
            _ => unreachable!("asked for steps of requests"),
        }
    }

    /// What happens to a journal entry, and to the requests that wait for it.
    fn of_journal(&mut self, step: &Step) {
        match step.event {
            StepEvent::Logged { entry } => {
                let text = format!("the data to be written are in entry {entry} of the journal");
                self.line(step, StepKind::Logged, text).entry = Some(entry);
            }
            StepEvent::Sealed { sectors, records } => {
                let text = format!(
                    "the entry is written to the journal: {}, {}",
                    counted(records.into(), "record", "records"),
                    human(sectors.bytes())
                );
                self.line(step, StepKind::Journal, text).sectors = Some(sectors.get());
            }
            // The operation has the same step; one line is enough.
            StepEvent::Durable if matches!(step.subject, StepSubject::Entry(_)) => {
                self.line(step, StepKind::Durable, "the entry is durable".into());
            }
            _ => {}
        }
    }

    fn made(&mut self, step: &Step) {
        let (StepSubject::Op(name), StepEvent::Made { owner, set, work, place }) = (step.subject, step.event) else {
            return;
        };
        let number = u32::try_from(self.ops.len() + 1).unwrap_or(u32::MAX);
        self.ops.insert(name, (number, SlotSet::EMPTY));
        let span = self.names.span(set).map_or_else(String::new, |span| format!("span {span}: "));
        let line = self.line(step, StepKind::Operation, format!("{span}{}", made_text(work, place)));
        if let StepOwner::Unit(_, why) = owner {
            line.reason = Some(why.name().into());
            line.text.push_str(&format!(" ({})", why.text()));
        }
    }

    fn reason(&mut self, step: &Step, reason: Reason, figure: u32) {
        // The record goes to the members that keep it, and the operation waits until it is durable.
        let kind = match reason {
            Reason::PartialParityLogged => StepKind::Logged,
            _ if reason.is_wait() => StepKind::Wait,
            _ => StepKind::Reason,
        };
        let shows = figure > 0 && reason != Reason::PartialParityLogged;
        let text = if shows { format!("{} ({figure})", reason.text()) } else { reason.text().into() };
        self.line(step, kind, text).reason = Some(reason.name().into());
        if kind != StepKind::Reason {
            self.waits.insert(step.subject, self.lines.len() - 1);
        }
    }

    fn asked(&mut self, step: &Step) {
        let StepEvent::Asked { slot, drive, op, lba, len, .. } = step.event else { return };
        let parity = match step.subject {
            StepSubject::Op(name) => self.ops.get(&name).is_some_and(|(_, parity)| parity.contains(slot)),
            _ => false,
        };
        let member = drive_name(self.names, drive);
        let text = asked_text(op, slot, &member, lba, len, parity);
        let line = self.line(step, asked_kind(op), text);
        (line.slot, line.member) = (Some(slot.0), Some(member));
        if len > Sectors::ZERO {
            (line.sector, line.sectors) = (Some(lba.get()), Some(len.get()));
        }
        self.commands.push((step.subject, step.event, self.lines.len() - 1));
    }

    fn ended(&mut self, step: &Step) {
        let StepEvent::Ended { slot, drive, op, lba, len, asked, begun, ok } = step.event else { return };
        let same = |(subject, event, _): &(StepSubject, StepEvent, usize)| {
            let StepEvent::Asked { drive: other, op: other_op, lba: other_lba, .. } = *event else { return false };
            *subject == step.subject && (other, other_op, other_lba) == (drive, op, lba)
        };
        let at = match self.commands.iter().position(same) {
            Some(place) => self.commands.remove(place).2,
            None => {
                // A command of the journal, or one that began before the first step that is kept.
                let member = drive_name(self.names, drive);
                let at = Step { at: asked.max(self.began), ..*step };
                let text = match step.subject {
                    StepSubject::Entry(_) => format!("written to the journal's {member}: {}", human(len.bytes())),
                    _ => asked_text(op, slot, &member, lba, len, false),
                };
                let line = self.line(&at, asked_kind(op), text);
                line.member = Some(member);
                (line.sector, line.sectors) = (Some(lba.get()), Some(len.get()));
                self.lines.len() - 1
            }
        };
        let line = &mut self.lines[at];
        line.queued_ns = Some(begun.since(asked).get());
        line.took_ns = Some(step.at.since(begun).get());
        if !ok {
            line.text.push_str(": FAILED");
        }
    }
}
