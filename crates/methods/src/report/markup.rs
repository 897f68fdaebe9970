//! A writer for HTML and SVG. It cannot leave an element open or a character unescaped.
//!
//! Its output is well-formed XML and pure ASCII. Other characters become numeric references; characters that XML
//! forbids or that could change the direction of the text become U+FFFD. It must never accept text from outside as
//! markup: only [`Markup::fixed`] writes text unchanged, and it accepts only constants.

/// Attributes: name and value; values are escaped.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

/// The markup written so far.
#[derive(Debug, Default)]
pub struct Markup {
    out: String,
}

impl Markup {
    /// The text so far.
    #[must_use]
    pub fn finish(self) -> String {
        self.out
    }

    /// Writes an element with the output of `body` inside.
    pub fn inside(&mut self, tag: &'static str, attributes: Attributes<'_>, body: impl FnOnce(&mut Self)) {
        self.tag(tag, attributes);
        self.out.push_str(">\n");
        body(self);
        self.end(tag);
    }

    /// Writes an element that contains text.
    pub fn text(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.tag(tag, attributes);
        self.out.push('>');
        self.out.push_str(&escape(text));
        self.end(tag);
    }

    /// Writes an empty element: for SVG, and for the elements of HTML that are always empty.
    pub fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.out.push_str("/>\n");
    }

    /// Writes text between elements.
    pub fn words(&mut self, text: &str) {
        self.out.push_str(&escape(text));
        self.out.push('\n');
    }

    /// Writes markup that is a constant of the program.
    pub fn fixed(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    fn tag(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.out.push_str(&escape(value));
            self.out.push('"');
        }
    }

    fn end(&mut self, tag: &'static str) {
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push_str(">\n");
    }
}

/// Text as XML character data or attribute value, in ASCII, on one line, without blanks in a row.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for character in text.chars() {
        if character.is_whitespace() && character != '\u{a0}' {
            if !blank && !out.is_empty() {
                out.push(' ');
            }
            blank = true;
            continue;
        }
        blank = false;
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            ' '..='~' => out.push(character),
            other => out.push_str(&format!("&#{};", u32::from(if allowed(other) { other } else { '\u{fffd}' }))),
        }
    }
    while out.ends_with(' ') {
        out.pop();
    }
    // A number and its percent sign stay on one line.
    out.replace(" %", "&#160;%")
}

/// Is this character allowed in XML, without an effect on the direction of the text?
fn allowed(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // Code points whose last 16 bits are ffff or fffe are not characters in any plane.
    let none = u32::from(character) & 0xfffe == 0xfffe;
    !(turns || none || character.is_control())
}

/// A coordinate with one decimal place, as short as possible.
#[must_use]
pub fn px(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Minus zero would be written with a sign.
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_become_markup() {
        assert_eq!(escape("<b a='1'>&\"</b>"), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;&lt;/b&gt;");
        assert_eq!(escape("  a \n\t b  "), "a b");
        assert_eq!(escape("\u{1b}[2J\u{0}\u{202e}\u{fffe}"), "&#65533;[2J&#65533;&#65533;&#65533;");
        assert_eq!(escape("10 \u{b5}s, 97 %"), "10 &#181;s, 97&#160;%");
    }

    #[test]
    fn coordinates_are_short_and_have_no_minus_zero() {
        assert_eq!([px(1.0), px(1.26), px(-0.01), px(-3.75)], ["1", "1.3", "0", "-3.8"]);
    }
}
