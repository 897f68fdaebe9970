//! Reads Rust sources just well enough to count: which characters are code, where functions begin and end.
//!
//! A parser would be a heavy dependency for two numbers. It understands line and nested block comments, strings, raw
//! strings, byte strings, characters and lifetimes. It does not understand macros that take their own syntax apart; a
//! function inside `macro_rules!` is counted as one.

/// A source text in which everything that is no code is blanked out, line breaks kept.
pub struct Code {
    text: Vec<char>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of the word `fn`, from 1.
    pub line: usize,
    /// Lines from the word `fn` to the closing brace, both included.
    pub lines: usize,
}

impl Code {
    /// Blank out comments and the insides of strings and characters.
    pub fn of(source: &str) -> Self {
        let source: Vec<char> = source.chars().collect();
        let mut text = Vec::with_capacity(source.len());
        let mut at = 0;
        while at < source.len() {
            let end = skip(&source, at).unwrap_or(at);
            if end > at {
                text.extend(source[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
                at = end;
            } else {
                text.push(source[at]);
                at += 1;
            }
        }
        Self { text }
    }

    pub fn lines(&self) -> Vec<String> {
        self.text.split(|c| *c == '\n').map(|line| line.iter().collect()).collect()
    }

    /// All functions that have a body, nested ones too, in the order of their beginnings.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        let mut line = 1;
        for at in 0..self.text.len() {
            if self.text[at] == '\n' {
                line += 1;
            }
            if self.word_at(at, "fn") {
                functions.extend(self.function(at, line));
            }
        }
        functions
    }

    /// The words (identifiers) of the code with their lines.
    pub fn words(&self) -> Vec<(usize, String)> {
        let mut words = Vec::new();
        for (number, line) in self.lines().iter().enumerate() {
            let found = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
            words.extend(found.map(|word| (number + 1, word.to_owned())));
        }
        words
    }

    fn word_at(&self, at: usize, word: &str) -> bool {
        let end = at + word.len();
        let before = at == 0 || !is_word(self.text[at - 1]);
        let after = self.text.get(end).is_none_or(|c| !is_word(*c));
        before && after && word.chars().enumerate().all(|(n, c)| self.text.get(at + n) == Some(&c))
    }

    fn function(&self, start: usize, line: usize) -> Option<Function> {
        let rest = &self.text[start + 2..];
        let name: String = rest.iter().skip_while(|c| c.is_whitespace()).take_while(|c| is_word(**c)).collect();
        if name.is_empty() {
            return None; // a function type
        }
        // The body begins at the first brace outside of parentheses and brackets; a semicolon there means none.
        let mut depth = 0;
        let open = rest.iter().position(|c| {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                _ => {}
            }
            depth == 0 && matches!(c, '{' | ';')
        })?;
        if rest[open] == ';' {
            return None;
        }
        let mut depth = 0;
        let close = rest[open..].iter().position(|c| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        let lines = 1 + rest[..open + close].iter().filter(|c| **c == '\n').count();
        Some(Function { name, line, lines })
    }
}

/// The insides of all strings, in order.
pub fn strings(source: &str) -> Vec<String> {
    let source: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let Some(end) = skip(&source, at).filter(|end| *end > at) else {
            at += 1;
            continue;
        };
        let text: String = source[at..end].iter().collect();
        if !text.starts_with(['/', '\'']) {
            let inside = text.trim_start_matches(['r', 'b', 'c', '#']).trim_end_matches('#');
            found.push(inside.trim_matches('"').into());
        }
        at = end;
    }
    found
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The end of the comment, string or character that begins at `at`; `None` if none begins there.
fn skip(source: &[char], at: usize) -> Option<usize> {
    let next = |n: usize| source.get(at + n).copied();
    match source[at] {
        '/' if next(1) == Some('/') => Some(line_end(source, at)),
        '/' if next(1) == Some('*') => Some(block_comment(source, at)),
        '"' => Some(string(source, at + 1)),
        '\'' => character(source, at),
        'r' | 'b' | 'c' if at == 0 || !is_word(source[at - 1]) => prefixed(source, at),
        _ => None,
    }
}

fn line_end(source: &[char], at: usize) -> usize {
    source[at..].iter().position(|c| *c == '\n').map_or(source.len(), |n| at + n)
}

fn block_comment(source: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < source.len() {
        match (source[at], source.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 1;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 1;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(source.len())
}

/// `at` is the place after the opening quote.
fn string(source: &[char], mut at: usize) -> usize {
    while at < source.len() {
        match source[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    source.len()
}

/// A character, or nothing for a lifetime.
fn character(source: &[char], at: usize) -> Option<usize> {
    if source.get(at + 1) == Some(&'\\') {
        let close = source.get(at + 3..)?.iter().position(|c| *c == '\'')?;
        return Some(at + 4 + close);
    }
    (source.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

/// Raw, byte and C strings, byte characters.
fn prefixed(source: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    while matches!(source.get(at), Some('r' | 'b' | 'c')) && at - start < 2 {
        at += 1;
    }
    let raw = source[start..at].contains(&'r');
    if source.get(at) == Some(&'\'') && source[start] == 'b' {
        return character(source, at);
    }
    if !raw {
        return (source.get(at) == Some(&'"')).then(|| string(source, at + 1));
    }
    let hashes = source[at..].iter().take_while(|c| **c == '#').count();
    if source.get(at + hashes) != Some(&'"') {
        return None; // a raw identifier
    }
    let mut end = at + hashes + 1;
    while end < source.len() {
        if source[end] == '"' && source[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return Some(end + 1 + hashes);
        }
        end += 1;
    }
    Some(source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(source: &str) -> String {
        Code::of(source).lines().join("\n")
    }

    #[test]
    fn strings_characters_and_comments_are_no_code() {
        assert_eq!(blank("a /* { /* } */ */ b"), format!("a {} b", " ".repeat(15)));
        assert_eq!(blank("a // {\nb"), "a     \nb");
        assert_eq!(blank(r#"f("{\"", '{', '\'', b'}')"#), format!("f({}, {}, {}, {})", "     ", "   ", "    ", "    "));
        assert_eq!(
            blank("r#\"{\"# + br##\"\"#{\"## + b\"{\""),
            format!("{} + {} + {}", " ".repeat(6), " ".repeat(11), " ".repeat(4))
        );
        assert_eq!(blank("'\\u{7f}' x"), format!("{} x", " ".repeat(8)));
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(blank("fn f<'a>(x: &'a str, r#in: u8) {}"), "fn f<'a>(x: &'a str, r#in: u8) {}");
        assert_eq!(blank("'outer: loop { break 'outer; }"), "'outer: loop { break 'outer; }");
    }

    #[test]
    fn functions_are_measured_from_the_word_to_the_brace() {
        let source = "trait T {\n    fn bare(&self) -> [u8; 4];\n}\n\
            fn one() { \"}\"; }\n\
            pub const fn many(x: [u8; { 1 + 1 }]) -> fn() {\n    fn inner() {\n    }\n    // }\n    inner\n}\n";
        let found: Vec<(String, usize, usize)> =
            Code::of(source).functions().into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        let wanted = [("one", 4, 1), ("many", 5, 6), ("inner", 6, 2)];
        assert_eq!(found, wanted.map(|(name, line, lines)| (name.to_owned(), line, lines)));
    }

    #[test]
    fn an_unfinished_source_ends() {
        for source in ["\"", "'", "/*", "r#\"", "b'", "'\\", "fn f() {", "fn", "fn f(", "r", "br##"] {
            let _ = Code::of(source).functions();
        }
    }
}
