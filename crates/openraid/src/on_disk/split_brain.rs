//! The two halves of a split array: each ran without the other, so a person must choose the one that is served
//! ([decision](../../../../docs/decisions/array-start.md#split-arrays)).

use openraid_core::array::assemble::{self, AssembleOptions, Candidate};
use openraid_core::array::membership::Membership;
use openraid_format::Superblock;
use openraid_runtime::member::ProbedMember;
use openraid_status::shell_quoting::command;

use crate::failure::Failure;
use crate::on_disk::sets::{self, SetPlan};
use crate::quantity::utc;

/// Two halves that could each be the array.
#[derive(Clone, Debug)]
pub struct SplitBrain<'a> {
    pub name: String,
    /// The half with the newest superblock.
    newer: Vec<&'a ProbedMember>,
    /// The other half.
    other: Vec<&'a ProbedMember>,
}

impl<'a> SplitBrain<'a> {
    /// The halves of a set. None if nothing is split off, or if the members that are split off cannot start alone: then
    /// they hold no writes of their own.
    pub fn of(set: &SetPlan, members: &'a [ProbedMember]) -> Option<Self> {
        let with = |wanted: fn(Membership) -> bool| {
            let places = set.members.iter().filter(move |place| set.verdict(**place).is_some_and(wanted));
            places.map(|place| &members[*place]).collect::<Vec<_>>()
        };
        let other = with(|verdict| matches!(verdict, Membership::Split { .. }));
        let places = (0..).map(sets::number);
        let alone: Vec<Candidate> =
            other.iter().zip(places).filter_map(|(member, drive)| member.candidate(drive)).collect();
        let force = AssembleOptions { force: true, ..AssembleOptions::default() };
        if other.is_empty() || assemble::plan(&alone, force).is_err() {
            return None;
        }
        let newer = with(|verdict| !verdict.is_left_out());
        Some(Self { name: sets::array_name(&set.newest), newer, other })
    }

    /// The refusal to start the array: the state of both halves, and the commands that choose one: `verb` with the
    /// members of that half.
    pub fn refusal(&self, verb: &str) -> Failure {
        let (state, choice) = (self.state(), self.choice(verb));
        let fault = format!("{state}. To {choice}. The half that is not chosen is not written until you add it");
        Failure::refused(fault).of(format_args!("array {}", self.name)).remedy("`openraid copy-out` reads it")
    }

    /// The commands that choose a half.
    pub fn choice(&self, verb: &str) -> String {
        let serve = |half: &[&ProbedMember]| command(verb, half.iter().map(|member| &member.spec.text));
        format!("serve one half: `{}` or `{}`", serve(&self.newer), serve(&self.other))
    }

    /// The state of both halves.
    pub fn state(&self) -> String {
        format!(
            "split brain: two halves ran without each other, and each may hold writes that the other lacks: {}, and {}",
            half_text(&self.newer),
            half_text(&self.other)
        )
    }

    /// The answers that choose a half: the name of any of its members.
    pub fn answers(&self) -> String {
        format!("{} or {}", names(&self.newer), names(&self.other))
    }

    /// The half that is left out if this member was named; none if it is in neither half.
    pub fn left_out_for(&self, typed: &str) -> Option<Vec<String>> {
        let has = |half: &[&ProbedMember]| half.iter().any(|member| member.spec.text == typed);
        let all = |half: &[&ProbedMember]| half.iter().map(|member| member.spec.text.clone()).collect();
        match (has(&self.newer), has(&self.other)) {
            (true, false) => Some(all(&self.other)),
            (false, true) => Some(all(&self.newer)),
            _ => None,
        }
    }
}

fn names(half: &[&ProbedMember]) -> String {
    half.iter().map(|member| member.spec.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The members of a half with the event count and time of its newest superblock.
fn half_text(half: &[&ProbedMember]) -> String {
    let newest =
        half.iter().filter_map(|member| member.look.superblock.as_ref()).max_by_key(|superblock| superblock.events);
    let at = newest.map_or_else(String::new, |superblock| format!(" ({})", at_text(superblock)));
    format!("{}{at}", names(half))
}

/// The event count and time of a superblock.
pub fn at_text(superblock: &Superblock) -> String {
    format!("event {}, last updated {}", superblock.events, utc(superblock.updated.seconds()))
}
