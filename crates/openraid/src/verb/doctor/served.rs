//! Members of a served array that the server does not use: half of a split mirror, or a member that was left out.

use openraid_runtime::member::ProbedMember;
use openraid_status::shell_quoting::command;
use openraid_status::VerdictWord;
use openraid_sys::Use;
use serde::Serialize;

use super::super::Context;
use crate::members::{open_some, options, spec};
use crate::model::{ArrayModel, HealthWord, StateWord};
use crate::output::verdicts::{MemberVerdict, SetVerdict};

/// A served array, and members that it does not use.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ServedElsewhere {
    /// The name of the array that is served.
    array: String,
    /// The set that the members belong to: its identity.
    uuid: String,
    /// Members that the server uses for this array.
    used: Vec<String>,
    /// Listed members that it does not use.
    listed: Vec<String>,
    /// Probed members that it does not use.
    unused: Vec<String>,
    /// It has failed: nothing can be added.
    failed: bool,
}

impl ServedElsewhere {
    /// The served arrays to which some of these members belong.
    pub fn find(probed: &[ProbedMember], context: &Context) -> Vec<Self> {
        let connections = context.servers.connect().unwrap_or_default();
        let arrays = connections.into_iter().flat_map(|mut server| server.list().unwrap_or_default());
        arrays.flat_map(|array| Self::of(&array, probed)).collect()
    }

    fn of(array: &ArrayModel, probed: &[ProbedMember]) -> Vec<Self> {
        let with_unused = |set: &ArrayModel| {
            let uuid = set.uuid.clone()?;
            let is_of_array = |member: &&ProbedMember| {
                member.look.superblock.as_ref().is_some_and(|superblock| superblock.set_uuid.to_string() == uuid)
            };
            let works = |state| matches!(state, StateWord::InSync | StateWord::Rebuilding | StateWord::Spare);
            let named = |is_used| {
                let members = set.members.iter().filter(move |member| works(member.state) == is_used);
                members.filter_map(|member| member.member.clone()).collect()
            };
            let (used, listed): (Vec<String>, Vec<String>) = (named(true), named(false));
            let names = probed.iter().filter(is_of_array).map(|member| member.spec.text.clone());
            // A server that only reads shares its members.
            let unused: Vec<String> = names.filter(|name| !used.contains(name)).collect();
            let (array, failed) = (array.name.clone(), array.health == HealthWord::Failed);
            (!unused.is_empty()).then_some(Self { array, uuid, used, listed, unused, failed })
        };
        array.sets().into_iter().filter_map(with_unused).collect()
    }

    /// Probes the members that the server uses, without their locks.
    pub fn look_at_used(&self) -> Vec<ProbedMember> {
        let specs: Vec<_> = self.used.iter().filter_map(|text| spec(text).ok()).collect();
        let (opened, _) = open_some(&specs, options(Use::Examine));
        opened.into_iter().map(|(_, probed)| probed).collect()
    }

    /// Is this a member that the server does not use?
    pub fn leaves(&self, member: &str) -> bool {
        self.unused.iter().any(|unused| unused == member)
    }

    /// The advice for members that the server does not use.
    pub fn text(&self, sets: &[SetVerdict]) -> String {
        let name = &self.array;
        let members = sets.iter().filter(|set| set.uuid == self.uuid).flat_map(|set| &set.members);
        let (unused, used): (Vec<_>, Vec<_>) = members.partition(|member| self.leaves(&member.member));
        // The newest superblock may be that of the half that is not served.
        let is_served_split = used.iter().any(|member| member.verdict == VerdictWord::Split);
        let is_half = |member: &&MemberVerdict| {
            let is_member = matches!(member.verdict, VerdictWord::Member | VerdictWord::Rebuilding);
            member.verdict == VerdictWord::Split || is_served_split && is_member
        };
        let (halves, others): (Vec<_>, Vec<_>) = unused.into_iter().partition(is_half);
        let mut lines = vec![format!("  {name}: not tried: a server has it, with {}", self.used.join(", "))];
        if self.failed {
            let (stop, doctor) = (command("stop", [name]), command("doctor", [name]));
            lines.push(
                "    it has failed, and goes on by itself when enough members are back and nothing was lost".into(),
            );
            lines.push(format!("    next, if it does not: {stop}, then {doctor}: it tries the members in memory"));
            return lines.join("\n");
        }
        if !halves.is_empty() {
            let halves: Vec<&str> = halves.iter().map(|half| half.member.as_str()).collect();
            lines.push(self.choice_text(&halves));
        }
        lines.extend(others.iter().map(|member| match member.verdict {
            VerdictWord::Duplicate => {
                format!("    next: {}: it has the member itself; {} is a copy", command("show", [name]), member.member)
            }
            _ if self.listed.contains(&member.member) => {
                let both = [name, &member.member];
                format!("    next: {}, then {}", command("remove", both), command("add", both))
            }
            _ => format!("    next: {}", command("add", [name, &member.member])),
        }));
        lines.join("\n")
    }

    /// The served half continues by itself. The other half has writes of its own, and `add` overwrites them.
    fn choice_text(&self, halves: &[&str]) -> String {
        let (name, served, other) = (&self.array, self.used.join(" "), halves.join(" "));
        [
            format!(
                "    next: choose the half to keep. `{}` reads the half that is not served",
                command("copy-out", halves)
            ),
            format!("      to keep {served}: {}; this overwrites {other}", super::add_over(name, halves)),
            format!(
                "      to keep {other}: {}; {}; {}; this overwrites {served}",
                command("stop", [name]),
                command("serve", halves),
                super::add_over(name, &self.used)
            ),
        ]
        .join("\n")
    }
}
