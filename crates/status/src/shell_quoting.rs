//! Commands that people paste into a shell: names come from superblocks of any drive, and paths from anywhere.
//!
//! ```text
//!  plain                 as it is
//!  space ; $ ` ' " ...   'quoted'
//!  control characters    $'with octal numbers', which no terminal obeys
//!  a name with a dash    after --, and after the options of the command
//! ```

use std::borrow::Cow;

/// A word as a shell must read it.
#[must_use]
pub fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:=,@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_unseen) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut all = String::from("$'");
    for letter in text.chars() {
        match letter {
            '\\' | '\'' => all.extend(['\\', letter]),
            _ if is_unseen(letter) => {
                letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| all.push_str(&format!("\\{byte:03o}")));
            }
            _ => all.push(letter),
        }
    }
    all + "'"
}

/// A path as a shell must read it, and a command that takes paths and options.
#[must_use]
pub fn path(text: &str) -> String {
    if text.starts_with('-') {
        return word(&format!("./{text}"));
    }
    word(text)
}

/// Words as a shell must read them, with spaces between them.
pub fn words<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|argument| word(argument.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A command line of openraid: a verb with its first options, the words, and further options.
pub fn command_with<T: AsRef<str>>(verb: &str, all: impl IntoIterator<Item = T>, options: &str) -> String {
    let all: Vec<T> = all.into_iter().collect();
    let space = if options.is_empty() { "" } else { " " };
    match all.iter().any(|argument| argument.as_ref().starts_with('-')) {
        true => format!("openraid {verb}{space}{options} -- {}", words(all)),
        false => format!("openraid {verb} {}{space}{options}", words(all)),
    }
}

/// The same without further options.
pub fn command<T: AsRef<str>>(verb: &str, all: impl IntoIterator<Item = T>) -> String {
    command_with(verb, all, "")
}

/// Does a terminal obey it, or show nothing, or turn the direction of what follows?
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text for a terminal, which may have several lines: what the terminal would obey is shown as a number.
#[must_use]
pub fn seen(text: &str) -> Cow<'_, str> {
    let is_kept = |letter: char| !is_unseen(letter) || matches!(letter, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|letter| if is_kept(letter) { letter.to_string() } else { letter.escape_unicode().to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Words that would do harm, or would not be one word.
    const HOSTILE: [&str; 18] = [
        "a;id",
        "$(id)",
        "`id`",
        "my raid",
        "-x",
        "--force",
        "it's",
        "\"",
        "\\",
        "a\\'b",
        "~",
        "*",
        "#",
        "!!",
        "",
        "{a,b}",
        "a\u{1b}[2Jb\n\u{9b}c",
        "\u{202e}\u{e9}",
    ];

    /// What bash takes a text for: its words.
    fn split(text: &str) -> Vec<String> {
        let script = format!("printf '%s\\0' {text}");
        let ran = Command::new("bash").args(["-c", &script]).output().expect("bash");
        assert!(ran.status.success() && ran.stderr.is_empty(), "{text}");
        let out = String::from_utf8(ran.stdout).expect("UTF-8");
        out.strip_suffix('\0').expect("an end").split('\0').map(str::to_owned).collect()
    }

    #[test]
    fn a_shell_reads_every_word_back_and_runs_nothing() {
        assert_eq!(split(&words(HOSTILE)), HOSTILE);
        for text in HOSTILE {
            let written = word(text);
            assert!(!written.chars().any(is_unseen), "{written:?}");
            assert_eq!(split(&written), [text]);
        }
        for plain in ["data", "/dev/disk/by-id/ata-1", "slot:3", "nbd://host:10809/x", "write.cache=journal"] {
            assert_eq!(word(plain), plain);
        }
    }

    #[test]
    fn words_with_a_dash_come_last_and_after_two_dashes() {
        assert_eq!(command_with("show", ["data"], "--follow"), "openraid show data --follow");
        assert_eq!(command_with("show", ["-x"], "--follow"), "openraid show --follow -- -x");
        assert_eq!(command("spare add", ["a b", "/d"]), "openraid spare add 'a b' /d");
    }

    #[test]
    fn a_terminal_gets_lines_and_no_orders() {
        assert_eq!(seen("a\u{e9}\n\tb"), "a\u{e9}\n\tb");
        assert_eq!(seen("a\u{1b}[2J\r\u{202e}"), "a\\u{1b}[2J\\u{d}\\u{202e}");
    }
}
