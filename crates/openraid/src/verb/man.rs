//! `openraid man`: writes a page for the command and one for each verb, from the definition of the command line.

use std::path::Path;

use super::Context;
use crate::failure::{Exit, Failure, Outcome};

/// The written manual pages.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub struct ManBody {
    /// Paths of the pages that were written.
    pages: Vec<String>,
}

/// Writes the pages of this command.
///
/// # Errors
/// The folder cannot be written.
pub fn run(mut command: clap::Command, folder: &Path, context: &Context) -> Outcome {
    let refuse = |error| Failure::failed(format!("{}: the man pages cannot be written: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(refuse)?;
    command.build();
    let mut pages = Vec::new();
    write(&command, folder, &mut pages).map_err(refuse)?;
    let text = format!("{} pages in {}", pages.len(), folder.display());
    Ok(context.output.answer(Exit::Fine, &ManBody { pages }, &text))
}

fn write(command: &clap::Command, folder: &Path, pages: &mut Vec<String>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    let title = clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).date(date());
    title.source(format!("openraid {}", env!("CARGO_PKG_VERSION"))).manual("openraid").render(&mut page)?;
    let file = format!("{name}.1");
    std::fs::write(folder.join(&file), tidied(&String::from_utf8_lossy(&page)))?;
    pages.push(file);
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set()) {
        write(verb, folder, pages)?;
    }
    Ok(())
}

/// The date of a page: that of the sources if a package is made, otherwise today.
fn date() -> String {
    let of_sources = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse::<u64>().ok());
    let seconds = of_sources.unwrap_or_else(openraid_sys::clock::wall_seconds);
    openraid_status::date::rfc3339(seconds).split('T').next().unwrap_or_default().to_owned()
}

/// The longest line of a page.
const LINE_BYTES_MAX: usize = 80;

/// A page as `mandoc -T lint` wants it: short lines without blanks at their ends, and no break next to a space.
fn tidied(page: &str) -> String {
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    let mut tidied = String::new();
    for (place, line) in lines.iter().enumerate() {
        let before = place.checked_sub(1).map_or("", |place| lines[place]);
        // An empty line is a space.
        if *line == ".br" && (before.is_empty() || lines.get(place + 1).is_some_and(|next| next.is_empty())) {
            continue;
        }
        // The line after .TP is the whole tag. A blank or a dot at the beginning has a meaning.
        let is_text = before != ".TP" && !line.starts_with([' ', '.', '\'']);
        let mut rest = *line;
        while is_text && rest.len() > LINE_BYTES_MAX {
            let is_end = |at: &usize| !rest[at + 1..].starts_with([' ', '.', '\'']);
            let blanks = rest.match_indices(' ').map(|(at, _)| at).filter(is_end);
            let Some(at) = blanks.take_while(|at| *at <= LINE_BYTES_MAX).last() else { break };
            tidied.push_str(rest[..at].trim_end());
            tidied.push('\n');
            rest = &rest[at + 1..];
        }
        tidied.push_str(rest);
        tidied.push('\n');
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::{tidied, LINE_BYTES_MAX};

    #[test]
    fn a_page_keeps_its_words_and_has_short_lines_without_blanks_at_their_ends() {
        let long = "word ".repeat(40);
        let page = format!(".TP\n{long}\n{long}\n.br\n\ntext \n.br\nmore\n{}.x {}\n", "y ".repeat(38), "z".repeat(20));
        let found = tidied(&page);
        let words =
            |text: &str| text.split_whitespace().filter(|word| *word != ".br").map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&found), words(&page));
        assert_eq!(found.matches(".br").count(), 1, "one stands next to a space");
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[1], long.trim_end(), "a tag is one line");
        assert!(lines[2..].iter().all(|line| line.len() <= LINE_BYTES_MAX && !line.ends_with(' ')), "{found}");
        assert!(!lines.contains(&".x"), "no word becomes a request: {found}");
        assert!(lines.iter().all(|line| !line.starts_with(".x")), "{found}");
    }
}
