//! How far the parts of the core are apart: seven numbers that may only fall.
//!
//! Two are of its files: the largest circle of imports, and the inherent `impl` blocks outside of the folder of their type
//! (see `floors.rs`). Five are of its code:
//!
//! The first counts calls of `self.name(...)` in `impl Controller` of crates/core whose method is defined in another
//! folder. Each of them is a place where one part of the engine reaches into another through the one struct that owns
//! everything. The second counts those of them that go upward by the order of [`LAYERS`]: a lower part that calls a higher
//! part knows what its news are for; it should leave a signal instead. The third counts functions that are named like questions (`is_`, `has_`, `may_` and the like) and take `&mut self`: a
//! question that changes something hides an order of side effects. The fourth counts fields that more than the folder of
//! their struct can reach: a rule about such a field holds by agreement only. The fifth counts uses of the controller's fields
//! that hold the state of a higher folder (`self.cache.` in `journal/`): such a use is a call upward of another form.
//!
//! The numbers are kept in xtask/layers.txt. A number that rises is an error; one that has fallen is written down, so
//! that it cannot rise again.

use crate::floors::{circle, foreign_impls};
use crate::purity::without_tests;
use crate::rust::Code;
use crate::step::{root, Outcome};
use crate::tree::{files, Entry};
use std::collections::BTreeMap;
use std::fs;

/// The source of the core, with the slash at its end.
const CORE: &str = "crates/core/src/";
/// The struct whose methods are counted.
const OWNER: &str = "Controller";
/// The part of it that components borrow as one: its fields are components too.
const BASE: &str = "Base";
/// The folders from top to bottom. The files next to them are the controller and what all folders share.
const LAYERS: &[&str] = &["(root)", "admin", "requests", "cache", "io", "background", "journal", "ppl", "array"];
/// Beginnings of names that ask.
const QUESTIONS: &[&str] = &["is_", "are_", "has_", "may_", "can_", "needs_", "waits_", "wants_", "ends_"];
/// The file that keeps the numbers, from the root.
const NUMBERS: &str = "xtask/layers.txt";
/// Fields of the controller that hold the state of a folder.
const HOMES: &[(&str, &str)] = &[
    ("admin", "admin"),
    ("requests", "requests"),
    ("cache", "cache"),
    ("ops", "io"),
    ("ended", "io"),
    ("locks", "io"),
    ("journal", "journal"),
];
/// The names of the numbers in that file.
const CALLS: &str = "cross-folder calls";
const UPWARD: &str = "upward calls";
const ACTING: &str = "questions with &mut self";
const OPEN: &str = "open fields";
const REACHING: &str = "uses of a higher folder's state";

const CIRCLE: &str = "files of the largest circle";
const FOREIGN: &str = "foreign impl blocks";

/// From a folder to a folder: calls.
type Matrix = BTreeMap<(String, String), usize>;

/// Compare the numbers with the stored ones.
pub fn layers(files: &[Entry], complaints: &mut Vec<String>) {
    let acting = acting_questions(files);
    let matrix = cross_folder_calls(files);
    let known = fs::read_to_string(root().join(NUMBERS)).unwrap_or_default();
    complaints.extend(ratchet(&known, CALLS, matrix.values().sum()));
    complaints.extend(ratchet(&known, UPWARD, upward(&matrix)));
    complaints.extend(ratchet(&known, REACHING, upward(&reaching(files))));
    complaints.extend(ratchet(&known, OPEN, open_fields(files).values().sum()));
    complaints.extend(ratchet(&known, CIRCLE, circle(files).len()));
    complaints.extend(ratchet(&known, FOREIGN, foreign_impls(files).len()));
    let rises = ratchet(&known, ACTING, acting.len());
    if rises.is_some() {
        complaints.extend(acting);
    }
    complaints.extend(rises);
}

/// Print the calls from folder to folder, the open fields of each struct, the circle and the foreign `impl` blocks.
pub fn print() -> Outcome {
    let files = files()?;
    let matrix = cross_folder_calls(&files);
    for ((from, to), count) in &matrix {
        let way = if is_upward(from, to) { "  upward" } else { "" };
        println!("{count:5}  {from} -> {to}{way}");
    }
    println!("{:5}  {CALLS}", matrix.values().sum::<usize>());
    println!("{:5}  {UPWARD}", upward(&matrix));
    println!("{:5}  {ACTING}", acting_questions(&files).len());
    let reaching = reaching(&files);
    for ((from, to), count) in reaching.iter().filter(|((from, to), _)| is_upward(from, to)) {
        println!("{count:5}  {from} uses the state of {to}");
    }
    println!("{:5}  {REACHING}", upward(&reaching));
    let open = open_fields(&files);
    for (name, count) in &open {
        println!("{count:5}  open fields of {name}");
    }
    println!("{:5}  {OPEN}", open.values().sum::<usize>());
    for (list, name) in [(circle(&files), CIRCLE), (foreign_impls(&files), FOREIGN)] {
        list.iter().for_each(|entry| println!("       {entry}"));
        println!("{:5}  {name}", list.len());
    }
    Ok(())
}

/// Is a call from one folder to the other against the order of the layers? A folder without a place in it stands lowest.
fn is_upward(from: &str, to: &str) -> bool {
    let place = |folder: &str| LAYERS.iter().position(|own| *own == folder).unwrap_or(LAYERS.len());
    place(from) > place(to)
}

fn upward(matrix: &Matrix) -> usize {
    matrix.iter().filter(|((from, to), _)| is_upward(from, to)).map(|(_, count)| count).sum()
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
pub fn core_sources(files: &[Entry]) -> Vec<(String, String)> {
    let sources = files.iter().filter(|file| file.is("rs") && !is_test(&file.path));
    let sources = sources.filter_map(|file| Some((file.path.strip_prefix(CORE)?, file.text()?)));
    sources.map(|(path, text)| (path.to_owned(), without_tests(&Code::of(text).lines()).join("\n"))).collect()
}

/// Is a file only for tests and benchmarks?
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("/bench.rs")
}

/// The same as folder and code.
fn folder_sources(files: &[Entry]) -> Vec<(String, Vec<char>)> {
    core_sources(files).into_iter().map(|(path, code)| (folder_of(&path), code.chars().collect())).collect()
}

fn folder_of(path: &str) -> String {
    path.split_once('/').map_or("(root)", |(folder, _)| folder).to_owned()
}

fn code_of(text: &str) -> Vec<char> {
    without_tests(&Code::of(text).lines()).join("\n").chars().collect()
}

fn cross_folder_calls(files: &[Entry]) -> Matrix {
    let sources = folder_sources(files);
    let mut homes = BTreeMap::new();
    for (folder, code) in &sources {
        for body in bodies(code, OWNER) {
            homes.extend(methods(body).map(|method| (method.name, folder)));
        }
    }
    let mut matrix = Matrix::new();
    for (folder, code) in &sources {
        for body in bodies(code, OWNER) {
            let called = own_calls(body).into_iter().filter_map(|name| homes.get(&name).copied());
            for home in called.filter(|home| *home != folder) {
                *matrix.entry((folder.clone(), home.clone())).or_default() += 1;
            }
        }
    }
    matrix
}

/// From a folder to the folder whose state it uses through a field of the controller: uses of `self.field` in
/// `impl Controller`. Channels and sets lie below all folders that use them and are not counted.
fn reaching(files: &[Entry]) -> Matrix {
    let mut matrix = Matrix::new();
    for (folder, code) in folder_sources(files) {
        for body in bodies(&code, OWNER) {
            let homes = own_fields(body).into_iter().filter_map(|name| HOMES.iter().find(|(field, _)| *field == name));
            for (_, home) in homes.filter(|(_, home)| *home != folder) {
                *matrix.entry((folder.clone(), (*home).to_owned())).or_default() += 1;
            }
        }
    }
    matrix
}

/// Functions with a question's name that may change the object.
fn acting_questions(files: &[Entry]) -> Vec<String> {
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
fn open_fields(files: &[Entry]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (_, code) in folder_sources(files) {
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

/// The insides of all `impl` blocks of a type, including those for traits.
fn bodies<'a>(code: &'a [char], owner: &str) -> Vec<&'a [char]> {
    let mut found = Vec::new();
    for (start, word) in words(code).filter(|(_, word)| word == "impl") {
        let start = start + word.len();
        let Some(open) = code[start..].iter().position(|c| *c == '{') else { continue };
        let header: String = code[start..start + open].iter().collect();
        let is_of_owner = header.rsplit(" for ").next().is_some_and(|kind| kind.trim() == owner);
        if is_of_owner {
            found.push(block(&code[start + open..]));
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

/// The names in `self.name(...)`.
fn own_calls(code: &[char]) -> Vec<String> {
    own_names(code).into_iter().filter_map(|(name, is_call)| is_call.then_some(name)).collect()
}

/// The names in `self.name` that are not called.
fn own_fields(code: &[char]) -> Vec<String> {
    own_names(code).into_iter().filter_map(|(name, is_call)| (!is_call).then_some(name)).collect()
}

/// The names in `self.name`, and whether each is called.
fn own_names(code: &[char]) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (start, _) in words(code).filter(|(_, word)| word == "self") {
        let blank = |at: usize| at + code[at..].iter().take_while(|c| c.is_whitespace()).count();
        let dot = blank(start + 4);
        if code.get(dot) != Some(&'.') {
            continue;
        }
        let Some((at, name)) = words(&code[dot + 1..]).next() else { continue };
        let end = dot + 1 + at + name.len();
        let is_next = code[dot + 1..dot + 1 + at].iter().all(|c| c.is_whitespace());
        if is_next {
            found.push((name, code.get(end) == Some(&'(')));
        }
    }
    found
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

    fn entry(path: &str, text: &str) -> Entry {
        Entry { path: format!("{CORE}{path}"), bytes: text.into() }
    }

    #[test]
    fn a_call_of_a_method_that_another_folder_defines_is_counted() {
        let files = [
            entry("controller.rs", "impl Controller {\n    fn run(&mut self) {\n        self.step(1);\n        self.own();\n    }\n    fn own(&self) {}\n}\n"),
            entry("io/step.rs", "impl Controller {\n    fn step(&mut self, n: u32) { self\n        .mark(n); self.step(n); self.sets.mark(n); }\n}\nimpl Set { fn f(&self) { self.mark(1) } }\n"),
            entry("array/mark.rs", "impl Controller {\n    fn mark(&self, n: u32) {} // self.step(n)\n}\n#[cfg(test)]\nmod tests {\n    impl Controller { fn t(&self) { self.step(1) } }\n}\n"),
        ];
        let matrix = cross_folder_calls(&files);
        let found: Vec<_> = matrix.iter().map(|((from, to), n)| (from.as_str(), to.as_str(), *n)).collect();
        assert_eq!(found, [("(root)", "io", 1), ("io", "array", 1)]);
        assert_eq!(upward(&matrix), 0);
    }

    #[test]
    fn a_use_of_the_state_of_a_higher_folder_is_counted() {
        let files = [
            entry("controller.rs", "impl Controller {\n    fn a(&mut self) { self.ops.wake(1); self.cache.b(); }\n}\n"),
            entry("io/a.rs", "impl Controller {\n    fn a(&mut self) { self.ops.a(); self.cache.b(); self.requests[self.x()].c = 1; self.journal.d(); }\n}\nimpl A { fn a(&self) { self.cache.b() } }\n"),
            entry("journal/a.rs", "impl Controller {\n    fn a(&mut self) { self\n        .ops[1] = 2; self.ops(); self.journal.d() }\n}\n"),
        ];
        let matrix = reaching(&files);
        assert_eq!((matrix.values().sum::<usize>(), upward(&matrix)), (6, 3), "{matrix:?}");
    }

    #[test]
    fn a_call_of_a_higher_folder_is_upward() {
        assert!(is_upward("array", "io") && is_upward("io", "cache") && is_upward("io", "(root)"));
        assert!(!is_upward("cache", "io") && !is_upward("(root)", "array") && is_upward("elsewhere", "array"));
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
        assert!(["fn is_a", "fn has_b", "fn may_c"].iter().all(|own| forms.contains(own)), "{forms}");
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
        let known = format!("{CALLS}: 12\n{ACTING}: 3\n");
        assert_eq!(ratchet(&known, CALLS, 12), None);
        assert!(ratchet(&known, CALLS, 13).is_some_and(|why| why.contains("13, at most 12")));
        assert!(ratchet(&known, CALLS, 11).is_some_and(|why| why.contains("write 11 into")));
        assert!(ratchet("", ACTING, 0).is_some_and(|why| why.contains("no line")));
    }
}
