//! A shell that completes a command line.

use std::path::Path;

use super::console::installed;
use super::{missing, Lab, PROGRAM};

/// A line as readline divides it: at blanks, and before and after `=` and `:`.
fn readline_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in line.chars() {
        let last = words.last_mut().expect("one word");
        match letter {
            ' ' => words.push(String::new()),
            '=' | ':' if last.is_empty() => last.push(letter),
            '=' | ':' => words.push(letter.into()),
            _ if last == "=" || last == ":" => words.push(letter.into()),
            _ => last.push(letter),
        }
    }
    words
}

/// The words that bash offers for the last word of a line, by the script that its first word prints.
pub fn completed(lab: &Lab, line: &[&str]) -> Vec<String> {
    let path = format!("{}:/usr/bin:/bin", Path::new(PROGRAM).parent().expect("a folder").display());
    let script = "source <($2 completions bash); COMP_LINE=$1; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
                  COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; _$1; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let whole = line.join(" ");
    let words = readline_words(&whole);
    let mut command = lab.command_of(Path::new("bash"), &["-c", script, "bash"]);
    let out = command.arg(&whole).args(words).env("PATH", path).output().expect("bash starts");
    String::from_utf8(out.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// What becomes of a line in zsh when its last word is completed, by the script of the program; `None` without zsh, which runs in a terminal
/// of its own.
pub fn completed_by_zsh(lab: &Lab, line: &str) -> Option<String> {
    const STEPS: &str = r"
        zmodload zsh/zpty
        export LINE=$1
        zpty shell 'PS1= TERM=dumb zsh -f -i'
        zpty -w shell 'autoload -U compinit; compinit -u -D; source =(openraid completions zsh)'
        zpty -w shell 'zle-line-init() { BUFFER=$LINE CURSOR=$#LINE; zle complete-word; print -r -- $BUFFER >part; mv part line }'
        zpty -w shell 'zle -N zle-line-init'
        until [[ -e line ]] { zpty -r -t shell seen; sleep 0.02 }
        cat line; rm line";
    let path = format!("{}:/usr/bin:/bin", Path::new(PROGRAM).parent().expect("a folder").display());
    let mut command = lab.command_of(Path::new("timeout"), &["60", "zsh", "-f", "-c", STEPS, "zsh", line]);
    if !installed("zsh") {
        missing("zsh is not installed");
        return None;
    }
    let out = command.env("PATH", path).output().expect("it starts");
    assert!(out.status.success(), "{line}: {out:?}");
    Some(String::from_utf8(out.stdout).expect("text").trim_end().to_owned())
}
