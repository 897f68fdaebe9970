//! `openraid repair`: reads and compares everything, and corrects errors that can be attributed to a member.

use super::{check, Context};
use crate::arguments::RepairArguments;
use crate::failure::Outcome;
use crate::history::last_checks::CheckWord;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &RepairArguments, context: &Context) -> Outcome {
    let kind = if arguments.trust_data { CheckWord::RepairTrustData } else { CheckWord::Repair };
    check::begin(context, &arguments.array, kind, arguments.follow)
}
