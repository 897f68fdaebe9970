//! `openraid man`: writes a page for the command and one for each verb, from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;

use super::Context;
use crate::arguments::Arguments;
use crate::exit::{Exit, Failure, Outcome};

/// The written manual pages.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct Body {
    /// Paths of the pages that were written.
    pages: Vec<String>,
}

/// Writes the pages.
///
/// # Errors
/// The folder cannot be written.
pub fn run(folder: &Path, context: &Context) -> Outcome {
    let refuse = |error| Failure::failed(format!("{}: the man pages cannot be written: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(refuse)?;
    let mut command = Arguments::command();
    command.build();
    let mut pages = Vec::new();
    write(&command, folder, &mut pages).map_err(refuse)?;
    let text = format!("{} pages in {}", pages.len(), folder.display());
    Ok(context.output.answer(Exit::Fine, &Body { pages }, &text))
}

fn write(command: &clap::Command, folder: &Path, pages: &mut Vec<String>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(&name).render(&mut page)?;
    let file = format!("{name}.1");
    std::fs::write(folder.join(&file), page)?;
    pages.push(file);
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        write(verb, folder, pages)?;
    }
    Ok(())
}
