//! The words of a check: names, numbers, texts and signs, each with its place.

use super::{wrong, CheckError};

/// A word of a check.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckToken {
    /// A name or a keyword.
    Word(String),
    /// A whole number.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A text in quotes, without them.
    Text(String),
    /// One of [`SIGNS`].
    Sign(&'static str),
    /// The end of the check.
    End,
}

/// All signs. A sign that begins with another one precedes it.
const SIGNS: [&str; 24] = [
    "<<", ">>", "<=", ">=", "==", "!=", "//", "(", ")", "[", "]", "{", "}", ",", ":", ".", "+", "-", "*", "/", "%",
    "<", ">", "=",
];

/// The words of a check. Each has its place: characters of the check that precede it.
///
/// # Errors
/// A character, a number or a text that the language does not have.
pub fn tokens(check: &str) -> Result<Vec<(usize, CheckToken)>, CheckError> {
    let letters: Vec<char> = check.chars().collect();
    let mut reader = Reader { letters: &letters, at: 0 };
    let mut tokens = Vec::new();
    loop {
        reader.take_while(char::is_whitespace);
        let at = reader.at;
        let token = reader.token().map_err(|error| error.or_at(at))?;
        let ended = token == CheckToken::End;
        tokens.push((at, token));
        if ended {
            return Ok(tokens);
        }
    }
}

struct Reader<'t> {
    letters: &'t [char],
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take_while(&mut self, is: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.next().is_some_and(&is) {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }

    fn token(&mut self) -> Result<CheckToken, CheckError> {
        let Some(letter) = self.next() else { return Ok(CheckToken::End) };
        let follows = self.letters.get(self.at + 1);
        match letter {
            'a'..='z' | 'A'..='Z' | '_' => {
                Ok(CheckToken::Word(self.take_while(|letter| letter == '_' || letter.is_ascii_alphanumeric())))
            }
            '0'..='9' => self.number(),
            '.' if follows.is_some_and(char::is_ascii_digit) => self.number(),
            '\'' | '"' => self.text(letter),
            _ => self.sign(letter),
        }
    }

    fn sign(&mut self, letter: char) -> Result<CheckToken, CheckError> {
        let is_here = |sign: &&&str| {
            sign.chars().enumerate().all(|(index, letter)| self.letters.get(self.at + index) == Some(&letter))
        };
        let Some(sign) = SIGNS.iter().find(is_here) else {
            let shown: String = letter.escape_default().collect();
            return Err(wrong(format!("'{shown}' is no sign of the check language; remove it")));
        };
        self.at += sign.len();
        Ok(CheckToken::Sign(sign))
    }

    fn number(&mut self) -> Result<CheckToken, CheckError> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let mut text = self.take_while(is_digit);
        let mut is_whole = true;
        if self.next() == Some('.') {
            (self.at, is_whole) = (self.at + 1, false);
            text = format!("{text}.{}", self.take_while(is_digit));
        }
        if matches!(self.next(), Some('e' | 'E')) {
            (self.at, is_whole) = (self.at + 1, false);
            let sign = self.take_while(|letter| letter == '+' || letter == '-');
            text = format!("{text}e{sign}{}", self.take_while(is_digit));
        }
        let rest = self.take_while(|letter| letter == '_' || letter.is_alphanumeric());
        if !rest.is_empty() {
            return Err(wrong("a number is directly followed by a letter; write digits alone, or quote a name"));
        }
        if is_whole {
            let number = text.parse().map_err(|_| wrong(format!("a whole number is too large; at most {}", i64::MAX)));
            return number.map(CheckToken::Int);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(CheckToken::Float).ok_or_else(|| wrong("this is not a number; write it as 12, 1.5 or 2e6"))
    }

    fn text(&mut self, quote: char) -> Result<CheckToken, CheckError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(letter) = self.next() else { return Err(wrong("a text does not end; close its quote")) };
            self.at += 1;
            if letter == quote {
                return Ok(CheckToken::Text(text));
            }
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            match self.next() {
                Some(letter @ ('\\' | '\'' | '"')) => text.push(letter),
                _ => return Err(wrong("only \\\\, \\' and \\\" may follow a backslash in a text")),
            }
            self.at += 1;
        }
    }
}
