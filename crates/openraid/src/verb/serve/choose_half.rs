//! The question on a terminal: which half of a split array is to be served?

use std::io::IsTerminal;

use openraid_runtime::member::{OpenedMember, ProbedMember};

use super::super::{typed_line, Context};
use crate::failure::Failure;
use crate::on_disk::sets;
use crate::on_disk::split_brain::SplitBrain;

/// Ask for each split array, and leave out the members of the half that was not chosen. Without a terminal nothing is
/// left out, and the array is refused later.
///
/// # Errors
/// The answer names neither half.
pub fn choose(context: &Context, opened: &mut Vec<(OpenedMember, ProbedMember)>, force: bool) -> Result<(), Failure> {
    if context.output.json || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    for halves in sets::plan(&probed, force).0.iter().filter_map(|set| SplitBrain::of(set, &probed)) {
        let (state, answers) = (halves.state(), halves.answers());
        context.output.warn(&format!(
            "array {}: {state}. Type the name of a member of the half to serve ({answers}), anything else to stop:",
            halves.name
        ));
        let typed = typed_line()?;
        let left_out = halves.left_out_for(typed.trim()).ok_or_else(|| halves.refusal("serve"))?;
        opened.retain(|(_, probed)| !left_out.contains(&probed.spec.text));
    }
    Ok(())
}
