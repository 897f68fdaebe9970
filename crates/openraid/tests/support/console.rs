//! The console blocks of a page: commands, and what they print there.

use std::fs;
use std::path::{Path, PathBuf};

/// A command of the page, and its output there.
#[derive(Debug)]
pub struct Step {
    /// Its line in the page, from 1.
    pub line: usize,
    pub command: String,
    pub printed: Vec<String>,
}

/// A block of commands.
#[derive(Debug)]
pub struct Block {
    /// The word after `console`: why it does not run everywhere.
    pub word: String,
    pub steps: Vec<Step>,
}

/// A page of the repository.
pub fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).expect("the page")
}

/// The console blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, words) in page.lines().enumerate().map(|(index, words)| (index + 1, words)) {
        let Some(block) = &mut open else {
            if let Some(word) = words.strip_prefix("```console") {
                open = Some(Block { word: word.trim().into(), steps: Vec::new() });
            }
            continue;
        };
        if words == "```" {
            blocks.extend(open.take());
            continue;
        }
        let last = block.steps.last_mut();
        match (words.strip_prefix("$ "), last) {
            (Some(command), _) => block.steps.push(Step { line, command: command.into(), printed: Vec::new() }),
            (None, Some(step)) if step.printed.is_empty() && step.command.ends_with('\\') => {
                step.command.push('\n');
                step.command.push_str(words);
            }
            (None, Some(step)) => step.printed.push(words.into()),
            (None, None) => panic!("line {line}: a block begins with a command"),
        }
    }
    assert!(open.is_none(), "the last block is closed");
    blocks
}

/// Is this program installed?
pub fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|folder| Path::new(folder).join(program).exists())
}

/// The program that starts a Linux guest.
pub fn guest_program() -> PathBuf {
    neighbour("openraid-guest")
}

/// Another program of the repository: cargo builds it next to the program under test, if it builds the workspace.
pub fn neighbour(name: &str) -> PathBuf {
    Path::new(super::PROGRAM).with_file_name(name)
}
