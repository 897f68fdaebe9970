//! `openraid spare`: adds and removes hot spares of an array.

use serde::Serialize;

use super::{add, remove, Context};
use crate::arguments::{SpareArguments, SpareVerb};
use crate::failure::{Exit, Outcome};
use crate::model::{MemberModel, StateWord};
use crate::output::table::TextTable;
use crate::quantity::human;
use openraid_units::Bytes;

/// Spares of an array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct SpareBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// The spares of the array.
    spares: Vec<&'a MemberModel>,
}

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &SpareArguments, context: &Context) -> Outcome {
    match &arguments.verb {
        SpareVerb::Add(arguments) => add::run(arguments, context),
        SpareVerb::Remove(arguments) => remove::order(arguments, true, context),
        SpareVerb::List(arguments) => list(&arguments.array, context),
    }
}

fn list(name: &str, context: &Context) -> Outcome {
    let array = context.servers.must_serve(name)?.show(name)?;
    let members = array.sets().into_iter().flat_map(|set| &set.members);
    let spares: Vec<&MemberModel> = members.filter(|member| member.state == StateWord::Spare).collect();
    let mut table = TextTable::new(&["SPARE", "SIZE"]);
    for spare in &spares {
        let size = spare.size_bytes.map_or_else(String::new, |bytes| human(Bytes(bytes)));
        table.row([spare.member.clone().unwrap_or_default(), size]);
    }
    let text = if spares.is_empty() { format!("{name} has no spares") } else { table.text() };
    Ok(context.output.answer(Exit::Fine, &SpareBody { array: name, spares }, &text))
}
