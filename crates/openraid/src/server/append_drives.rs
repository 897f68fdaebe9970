//! A linear array gets drives at its end, one after the other.

use openraid_core::admin::AdminCommand;
use openraid_status::shell_quoting::{command_with, words};
use openraid_units::{ArrayId, Bytes};

use super::array_model::ServedArray;
use super::joining_members::JoinOutcome;
use super::member_orders::Consent;
use super::reshape::{NewMemberSeen, ReshapeOrder};
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::quantity::human;

impl Server {
    /// Let these drives join.
    pub(super) fn begin_on_linear(
        &self,
        served: &ServedArray,
        set: ArrayId,
        order: &ReshapeOrder,
        joining: &[NewMemberSeen],
        unnamed: Option<String>,
    ) -> Result<ServerAnswer, Failure> {
        let name = &served.name;
        let consent = Consent { overwrite: order.overwrite, split: order.yes };
        for (number, new) in joining.iter().enumerate() {
            self.remember_coming(served, &new.spec)?;
            let join = |array, member| AdminCommand::Append { array, member };
            let joined = self.join_as(join, (served, set), &new.spec, consent);
            let Err(why) = joined.and_then(JoinOutcome::or_refused) else { continue };
            self.note(name);
            let before: Vec<&str> = joining[..number].iter().map(|new| new.spec.as_str()).collect();
            let before = match before.as_slice() {
                [] => String::new(),
                some => format!("; {} joined before", some.join(", ")),
            };
            let text = format!("{} does not join {name}: {}{before}", new.spec, why.text());
            return Err(why.worded(text));
        }
        self.note(name);
        joining.iter().for_each(|new| self.let_in(&new.spec));
        let size = human(Bytes(self.array(name)?.size_bytes));
        let unnamed: String = unnamed.map(|note| format!("\n  {note}")).into_iter().collect();
        self.done(format!("{name} has {size} now; clients learn that when they connect again{unnamed}"), name)
    }

    /// The next start must find the drive as soon as superblocks name its slot: without it the array does not start.
    fn remember_coming(&self, served: &ServedArray, member: &str) -> Result<(), Failure> {
        let Some(mut entry) = self.registry.known(served.uuid().as_deref(), &served.name)? else { return Ok(()) };
        if entry.members.iter().any(|known| known == member) {
            return Ok(());
        }
        entry.members.push(member.to_owned());
        self.registry.remember(entry).map_err(|failure| {
            let again = command_with("reshape", [&served.name], &format!("--members {}", words([member])));
            failure.and(format_args!("nothing has changed, try it again: `{again}`"))
        })
    }
}
