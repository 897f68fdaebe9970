//! `openraid-lab merge`: merges the parts of a review or of a plan.

use super::{compare, plan, review};
use crate::arguments::MergeArguments;
use crate::shared_parts::library;
use openraid::failure::{Failure, Outcome};
use openraid::verb::Context;

/// Runs the verb.
///
/// # Errors
/// A part cannot be read, is missing, or does not belong to the others.
pub fn run(arguments: &MergeArguments, context: &Context) -> Outcome {
    if let Some(absent) = arguments.parts.iter().find(|part| !part.exists()) {
        return Err(Failure::usage(format!(
            "{}: there is no such part; name the parts that were written",
            absent.display()
        )));
    }
    let folders = arguments.parts.iter().filter(|part| part.is_dir()).count();
    if folders == 0 {
        if arguments.out.is_some() {
            let text = "--out is the directory of a joined review; the joined plan is printed: leave it out";
            return Err(Failure::usage(text));
        }
        return plan::join(&arguments.parts, context);
    }
    if folders < arguments.parts.len() {
        return Err(Failure::usage("some parts are directories of reviews, others are files of plans; join one kind"));
    }
    let Some(out) = &arguments.out else {
        return Err(Failure::usage("give the directory of the joined review with --out"));
    };
    let parts = arguments.parts.iter().map(|part| compare::read(part)).collect::<Result<Vec<_>, Failure>>()?;
    let library = library(arguments.models.as_deref())?;
    review::join_into(out, parts, &library, context)
}
