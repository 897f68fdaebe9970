//! How far the parts of the core are apart: five numbers that may only fall.
//!
//! The first three are about rooms (see `floors.rs`): the number of files in the largest circle of imports, that of imports of a
//! higher room, and that of inherent `impl` blocks outside of the room of their type. The fourth counts functions that are
//! named like questions (`is_`, `has_`, `may_` and the like) and take `&mut self`: a question that changes something hides an
//! order of side effects. The fifth counts fields that more than the folder of their struct can reach: a rule about such a
//! field holds by agreement only. Besides, no room may import the rooms of control above it.
//!
//! The numbers are kept in xtask/layers.txt. A number that rises is an error; one that has fallen is written down, so
//! that it cannot rise again.

use crate::floors::{broken_ceilings, circle, foreign_impls, upward_imports};
use crate::purity::without_tests;
use crate::rust::Code;
use crate::step::{root, Outcome};
use crate::tree::{files, SourceFile};
use std::collections::BTreeMap;
use std::fs;

/// The source of the core, with the slash at its end.
const CORE: &str = "crates/core/src/";
/// The struct that owns the components: its fields may be visible.
const OWNER: &str = "Controller";
/// The part of it that components borrow as one: its fields are components too.
const BASE: &str = "Base";
/// Beginnings of names that ask.
const QUESTIONS: &[&str] = &["is_", "are_", "has_", "may_", "can_", "needs_", "waits_", "wants_", "ends_"];
/// The file that keeps the numbers, from the root.
const NUMBERS: &str = "xtask/layers.txt";
/// The names of the numbers in that file.
const ACTING: &str = "questions with &mut self";
const OPEN: &str = "open fields";

const CIRCLE: &str = "files of the largest circle";
const UPWARD: &str = "imports that run up";
const FOREIGN: &str = "foreign impl blocks";

/// Compare the numbers with the stored ones.
pub fn layers(files: &[SourceFile], complaints: &mut Vec<String>) {
    let acting = acting_questions(files);
    let known = fs::read_to_string(root().join(NUMBERS)).unwrap_or_default();
    complaints.extend(ratchet(&known, OPEN, open_fields(files).values().sum()));
    complaints.extend(ratchet(&known, CIRCLE, circle(files).len()));
    complaints.extend(ratchet(&known, UPWARD, upward_imports(files).len()));
    complaints.extend(ratchet(&known, FOREIGN, foreign_impls(files).len()));
    complaints.extend(broken_ceilings(files));
    let rises = ratchet(&known, ACTING, acting.len());
    if rises.is_some() {
        complaints.extend(acting);
    }
    complaints.extend(rises);
}

/// Print the open fields of each struct, the largest circle, the imports that run up, and the foreign `impl` blocks.
pub fn print() -> Outcome {
    let files = files()?;
    println!("{:5}  {ACTING}", acting_questions(&files).len());
    let open = open_fields(&files);
    for (name, count) in &open {
        println!("{count:5}  open fields of {name}");
    }
    println!("{:5}  {OPEN}", open.values().sum::<usize>());
    let lists = [(circle(&files), CIRCLE), (upward_imports(&files), UPWARD), (foreign_impls(&files), FOREIGN)];
    for (list, name) in lists {
        list.iter().for_each(|entry| println!("       {entry}"));
        println!("{:5}  {name}", list.len());
    }
    Ok(())
}

/// The fault of a number, by the text of the file that keeps it.
fn ratchet(known: &str, name: &str, found: usize) -> Option<String> {
    let line = known.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let Some(kept) = line.and_then(|number| number.trim().parse::<usize>().ok()) else {
        return Some(format!("{NUMBERS}: no line '{name}: <number>'; the number is {found}"));
    };
    match found {
        _ if found > kept => Some(format!("{name}: {found}, at most {kept} ({NUMBERS}); see `cargo xtask layers`")),
        _ if found < kept => Some(format!("{name}: {found}, better than {kept}; write {found} into {NUMBERS}")),
        _ => None,
    }
}

/// The core's files without tests: path from the source folder, and code.
pub fn core_sources(files: &[SourceFile]) -> Vec<(String, String)> {
    let sources = files.iter().filter(|file| file.is("rs") && !is_test(&file.path));
    let sources = sources.filter_map(|file| Some((file.path.strip_prefix(CORE)?, file.text()?)));
    sources.map(|(path, text)| (path.to_owned(), without_tests(&Code::of(text).lines()).join("\n"))).collect()
}

/// Is a file only for tests and benchmarks?
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("/fixture.rs")
}

fn code_of(text: &str) -> Vec<char> {
    without_tests(&Code::of(text).lines()).join("\n").chars().collect()
}

/// Functions with a question's name that may change the object.
fn acting_questions(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is("rs") && file.path.contains("/src/")) {
        let Some(text) = file.text() else { continue };
        let code = code_of(text);
        for method in methods(&code) {
            let asks = QUESTIONS.iter().any(|start| method.name.starts_with(start));
            if asks && method.changes_self {
                found.push(format!("{}: fn {} takes &mut self; name it by a verb", file.path, method.name));
            }
        }
    }
    found
}

/// Structs of the engine with fields that the whole core can reach: how many. What the engine shows to other crates does not
/// count, nor does the struct that owns everything.
fn open_fields(files: &[SourceFile]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (_, code) in core_sources(files) {
        let code: Vec<char> = code.chars().collect();
        for (start, _) in words(&code).filter(|(_, word)| word == "struct") {
            let Some((at, name)) = words(&code[start + 6..]).next() else { continue };
            let rest = &code[start + 6 + at..];
            let Some(open) = rest.iter().position(|c| matches!(c, '{' | ';' | '(')) else { continue };
            if name == OWNER || name == BASE || rest[open] != '{' {
                continue;
            }
            let before: String = code[..start].iter().rev().take_while(|c| **c != '\n').collect();
            let is_inner = before.chars().rev().collect::<String>().trim() == "pub(crate)";
            let body: String = block(&rest[open..]).iter().collect();
            let fields = body.lines().map(str::trim_start);
            let is_open = |line: &&str| line.starts_with("pub(crate) ") || is_inner && line.starts_with("pub ");
            let count = fields.filter(is_open).count();
            if count > 0 {
                *found.entry(name).or_default() += count;
            }
        }
    }
    found
}

/// From an opening brace to its closing one.
fn block(code: &[char]) -> &[char] {
    let mut depth = 0;
    let end = code.iter().position(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    &code[..end.unwrap_or(code.len())]
}

struct Method {
    name: String,
    changes_self: bool,
}

/// The code after a list of generic parameters, if it begins with one: `<F: Fn(u8) -> u8>`.
fn skip_generics(code: &[char]) -> &[char] {
    let begins = code.iter().find(|c| !c.is_whitespace()) == Some(&'<');
    let mut depth = 0;
    let end = code.iter().enumerate().position(|(at, c)| {
        match c {
            '<' => depth += 1,
            '>' if at == 0 || code[at - 1] != '-' => depth -= 1,
            _ => {}
        }
        depth == 0 && *c == '>'
    });
    end.filter(|_| begins).map_or(code, |end| &code[end + 1..])
}

/// The functions in a piece of code.
fn methods(code: &[char]) -> impl Iterator<Item = Method> + '_ {
    words(code).filter(|(_, word)| word == "fn").filter_map(|(start, _)| {
        let rest = &code[start + 2..];
        let (at, name) = words(rest).next()?;
        // A function type has its parenthesis at once.
        if rest[..at].iter().any(|c| !c.is_whitespace()) {
            return None;
        }
        let after = skip_generics(&rest[at + name.len()..]);
        let open = after.iter().position(|c| *c == '(')?;
        let first: String = after[open + 1..].iter().take_while(|c| !matches!(c, ',' | ')')).collect();
        let first: Vec<&str> = first.split_whitespace().filter(|word| !word.starts_with("&'")).collect();
        // `mut self`, `&mut self`, `&'a mut self`, `self: &mut Self`, `self: &'a mut Self`.
        let changes_self = matches!(first[..], ["&mut" | "mut", "self"] | ["self:", "&mut" | "mut", "Self"]);
        Some(Method { name, changes_self })
    })
}

/// The words of a piece of code with the places where they begin.
fn words(code: &[char]) -> impl Iterator<Item = (usize, String)> + '_ {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += code[at..].iter().take_while(|c| !is_word(**c)).count();
        let word: String = code[at..].iter().take_while(|c| is_word(**c)).collect();
        let start = at;
        at += word.chars().count();
        (!word.is_empty()).then_some((start, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, text: &str) -> SourceFile {
        SourceFile { path: format!("{CORE}{path}"), bytes: text.into() }
    }

    #[test]
    fn a_question_that_takes_itself_mutably_is_found() {
        let text = "impl A {\n    fn is_a(&mut self) {}\n    fn is_b(&self, x: &mut u8) {}\n    fn has_c<'a>(&'a mut self) {}\n    fn may_d(\n        &mut self,\n    ) {}\n    fn make(&mut self) {}\n    fn island(&mut self) {}\n}\n";
        let found = acting_questions(&[entry("a.rs", text)]).join("\n");
        assert_eq!(found.lines().count(), 3, "{found}");
        let text = "impl A {\n    fn is_a<F: Fn(u8) -> u8>(&mut self, f: F) {}\n    fn has_b(self: &mut Self) {}\n    \
            fn may_c<'a>(self: &'a mut Self, x: u8) {}\n    fn is_d<T: Into<Vec<u8>>>(&self, x: T) {}\n    \
            fn is_e(self: &Self, x: &mut u8) {}\n    fn is_f<F: FnMut(&mut u8)>(&self, f: F) {}\n}\n";
        let forms = acting_questions(&[entry("a.rs", text)]).join("\n");
        assert_eq!(forms.lines().count(), 3, "{forms}");
        assert!(["fn is_a", "fn has_b", "fn may_c"].iter().all(|form| forms.contains(form)), "{forms}");
        assert!(found.contains("fn is_a") && found.contains("fn has_c") && found.contains("fn may_d"), "{found}");
    }

    #[test]
    fn a_field_that_the_whole_core_can_reach_is_counted() {
        let text = "pub(crate) struct A<T> {\n    pub a: u8,\n    #[x]\n    pub(crate) b: T,\n    pub(super) c: u8,\n    d: u8, // pub e\n}\n\
            pub struct B {\n    pub a: u8,\n    pub(crate) b: u8,\n}\nstruct C {\n    pub a: u8,\n}\n\
            pub(crate) struct D(pub u8);\npub struct Controller {\n    pub(crate) a: u8,\n}\n\
            #[cfg(test)]\nmod tests {\n    pub(crate) struct E {\n        pub a: u8,\n    }\n}\n";
        let found: Vec<_> = open_fields(&[entry("io/a.rs", text)]).into_iter().collect();
        assert_eq!(found, [("A".to_owned(), 2), ("B".to_owned(), 1)]);
    }

    #[test]
    fn a_number_may_neither_rise_nor_fall_unwritten() {
        let known = format!("{OPEN}: 12\n{ACTING}: 3\n");
        assert_eq!(ratchet(&known, OPEN, 12), None);
        assert!(ratchet(&known, OPEN, 13).is_some_and(|why| why.contains("13, at most 12")));
        assert!(ratchet(&known, OPEN, 11).is_some_and(|why| why.contains("write 11 into")));
        assert!(ratchet("", ACTING, 0).is_some_and(|why| why.contains("no line")));
    }
}
