//! The floors of the core, measured at its files: the largest circle of imports, the imports that run up, and the methods of a
//! type that live in another room than the type.
//!
//! A room is a folder, or one of the two folders of `io`. Rooms have an order; an import of a higher room runs up.
//!
//! A file imports the file that defines the name: by `use`, or by a path in the code (`crate::limits::Limits`). A re-export
//! (`pub use`) is followed to the definition and is no import itself, and neither is `mod`. Files that import each other, also through
//! further files, are one circle: none of them can be read, tested or changed alone.
//!
//! A method needs no import. So a type whose `impl` blocks are spread over folders ties them together in secret, and these
//! blocks are counted, too.

use crate::layers::core_sources;
use crate::tree::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// A module by its names from the root of the crate: `["array", "set"]`.
type Module = Vec<String>;
/// From a file to the files that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The rooms from the lowest floor to the highest. All other files are below them.
const ROOMS: &[&str] =
    &["array", "io/state", "ppl", "journal", "background", "requests", "cache", "io/steps", "controller"];
/// The folder that is not a room itself, but has two.
const DIVIDED: &str = "io";
/// The rooms that no lower room may import at all.
const CLOSED: &[&str] = &["io/steps", "controller"];

/// The room of a file; `None` for a file without a folder.
fn room_of(path: &str) -> Option<&str> {
    let (folder, rest) = path.split_once('/')?;
    let inner = rest.split_once('/').filter(|_| folder == DIVIDED);
    Some(inner.map_or(folder, |(inner, _)| &path[..folder.len() + 1 + inner.len()]))
}

/// The floor of a file, counted from the bottom.
fn floor_of(path: &str) -> usize {
    let module = path.trim_end_matches(".rs");
    let room = room_of(path).unwrap_or(module);
    ROOMS.iter().position(|known| *known == room).map_or(0, |place| place + 1)
}

/// The imports that run up, each as the importing file and the imported one.
fn upward(files: &[SourceFile]) -> Vec<(String, String)> {
    let graph = imports(&core_sources(files)).into_iter();
    let pairs = graph.flat_map(|(from, targets)| targets.into_iter().map(move |to| (from.clone(), to)));
    pairs.filter(|(from, to)| floor_of(from) < floor_of(to)).collect()
}

/// The imports that run up: "file -> file".
pub fn upward_imports(files: &[SourceFile]) -> Vec<String> {
    upward(files).iter().map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// A complaint for each import of a room that no lower room may import.
pub fn broken_ceilings(files: &[SourceFile]) -> Vec<String> {
    let is_closed = |to: &str| room_of(to).is_some_and(|room| CLOSED.contains(&room));
    let broken = upward(files).into_iter().filter(|(_, to)| is_closed(to));
    broken.map(|(from, to)| format!("{from} imports {to}, and no room below may")).collect()
}

/// The files of the largest circle of imports, in order; none if there is no circle.
pub fn circle(files: &[SourceFile]) -> Vec<String> {
    let graph = imports(&core_sources(files));
    let reach: Imports = graph.keys().map(|file| (file.clone(), reached(&graph, file))).collect();
    let circles = graph.keys().map(|file| {
        let around = reach[file].iter().filter(|other| reach.get(*other).is_some_and(|back| back.contains(file)));
        around.cloned().collect::<Vec<_>>()
    });
    circles.filter(|circle| circle.len() > 1).max_by_key(Vec::len).unwrap_or_default()
}

/// Each inherent `impl` block outside of the room of its type: "file: impl Type, which is in room".
pub fn foreign_impls(files: &[SourceFile]) -> Vec<String> {
    let sources = core_sources(files);
    let rooms: BTreeSet<&str> = sources.iter().filter_map(|(path, _)| room_of(path)).collect();
    let home_of = |path: &str| {
        let module = path.trim_end_matches(".rs");
        room_of(path).or_else(|| rooms.get(module).copied()).unwrap_or("(root)").to_owned()
    };
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in &sources {
        for name in defined(code) {
            homes.entry(name).or_default().insert(home_of(path));
        }
    }
    let mut found = Vec::new();
    for (path, code) in &sources {
        let foreign = |name: &String| homes.get(name).filter(|homes| !homes.contains(&home_of(path)));
        for name in inherent_impls(code) {
            let Some(home) = foreign(&name).and_then(|homes| homes.first()) else { continue };
            found.push(format!("{path}: impl {name}, which is in {home}"));
        }
    }
    found
}

/// All files that a file imports, directly and through others.
fn reached(graph: &Imports, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(file) = open.pop() {
        for next in graph.get(&file).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// The imports of each file but lib.rs, which is only the list of modules.
fn imports(sources: &[(String, String)]) -> Imports {
    let homes: BTreeMap<Module, &String> = sources.iter().map(|(path, _)| (module_of(path), path)).collect();
    let mut exports: BTreeMap<(Module, String), String> = BTreeMap::new();
    for (path, code) in sources {
        for (used, is_export) in uses(code) {
            if let Some(name) = used.rsplit("::").next().filter(|_| is_export) {
                exports.insert((module_of(path), name.to_owned()), used.clone());
            }
        }
    }
    let mut graph = Imports::new();
    for (path, code) in sources.iter().filter(|(path, _)| path != "lib.rs") {
        let module = module_of(path);
        let used = uses(code).into_iter().filter_map(|(used, is_export)| (!is_export).then_some(used));
        let targets = used.chain(paths(code)).filter_map(|used| target(&homes, &exports, &module, &used, 0));
        graph.insert(path.clone(), targets.filter(|target| target != path).collect());
    }
    graph
}

/// The module of a file, from the root of the crate.
fn module_of(path: &str) -> Module {
    let mut names: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|name| name == "mod" || name == "lib") {
        names.pop();
    }
    names
}

/// The file that defines what a path in a module names; `None` for a name from outside of the crate.
fn target(
    homes: &BTreeMap<Module, &String>,
    exports: &BTreeMap<(Module, String), String>,
    module: &Module,
    path: &str,
    depth: usize,
) -> Option<String> {
    let mut names = path.split("::").peekable();
    let mut at = match *names.peek()? {
        "crate" => Module::new(),
        "self" | "super" => module.clone(),
        child if homes.contains_key(&[module.clone(), vec![child.to_owned()]].concat()) => module.clone(),
        _ => return None,
    };
    while let Some(word) = names.next_if(|name| matches!(*name, "crate" | "self" | "super")) {
        if word == "super" {
            at.pop();
        }
    }
    for name in names {
        at.push(name.to_owned());
        if !homes.contains_key(&at) {
            at.pop();
            let export = exports.get(&(at.clone(), name.to_owned())).filter(|_| depth < 4);
            let defined = export.and_then(|export| target(homes, exports, &at, export, depth + 1));
            return defined.or_else(|| homes.get(&at).map(|home| (*home).clone()));
        }
    }
    homes.get(&at).map(|home| (*home).clone())
}

/// The paths of all `use` items, each with whether it is a re-export.
fn uses(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (start, item) in statements(code) {
        let is_export =
            code[..start].trim_end().rsplit([';', '}', ']']).next().is_some_and(|word| word.contains("pub"));
        found.extend(unfold(item).into_iter().map(|path| (path, is_export)));
    }
    found
}

/// Each `use` item: where the word begins, and the text between the word and the semicolon.
fn statements(code: &str) -> Vec<(usize, &str)> {
    let begins = code
        .match_indices("use ")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c == '_' || c == '#' || c.is_alphanumeric()));
    begins.filter_map(|(at, word)| Some((at, code[at + word.len()..].split_once(';')?.0))).collect()
}

/// `a::{b, c::{d, e as f}}` as `a::b`, `a::c::d`, `a::c::e`.
fn unfold(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, inside)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or(tree).trim().to_owned()];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in inside.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    let full = parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| unfold(part));
    full.map(|path| format!("{start}{path}")).collect()
}

/// The paths in the code that begin with `crate` or `super`, without those of `use` items and visibilities.
fn paths(code: &str) -> Vec<String> {
    let mut rest = code.to_owned();
    for (start, item) in statements(code) {
        rest.replace_range(start..start + 4 + item.len(), &" ".repeat(4 + item.len()));
    }
    let rest = rest.replace("pub(in crate", "pub(in ");
    let is_word = |c: char| c == '_' || c == ':' || c.is_alphanumeric();
    let words = rest.split(|c| !is_word(c)).filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    words.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

/// The names of the types that a file defines.
fn defined(code: &str) -> Vec<String> {
    let mut words = code.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if word == "struct" || word == "enum" {
            found.extend(words.next().map(str::to_owned));
        }
    }
    found
}

/// The names of the types of all `impl` blocks that are of no trait.
fn inherent_impls(code: &str) -> Vec<String> {
    let begins = code.split("\nimpl").skip(1).filter_map(|rest| rest.split_once('{'));
    let headers = begins.map(|(header, _)| header).filter(|header| !header.contains(" for "));
    headers.filter_map(type_of).collect()
}

/// `<'a, T> Name<'a, T> ` is `Name`.
fn type_of(header: &str) -> Option<String> {
    let mut depth = 0;
    let outside = header.chars().filter(|c| {
        depth += i32::from(*c == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*c == '>');
        is_outside
    });
    let name = outside.collect::<String>().split_whitespace().next()?.to_owned();
    name.rsplit("::").next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry((path, text): &(&str, &str)) -> SourceFile {
        SourceFile { path: format!("crates/core/src/{path}"), bytes: (*text).into() }
    }

    fn circle_of(files: &[(&str, &str)]) -> Vec<String> {
        circle(&files.iter().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn files_that_import_each_other_through_others_are_one_circle() {
        let files = [
            ("lib.rs", "pub mod a;\npub use a::A;\nuse crate::b;\n"),
            ("a/mod.rs", "pub mod x;\npub use x::X;\nuse crate::b::{self, c::{D as E, F}};\nstruct A;\n"),
            ("a/x.rs", "// use crate::e::E;\nstruct X;\n"),
            ("b/mod.rs", "mod c;\n"),
            ("b/c.rs", "use core::fmt;\nstruct D;\nfn f(x: crate::e::E) {}\n"),
            ("e.rs", "use super::a::A;\nuse crate::a::X;\n#[cfg(test)]\nmod tests {\n    use crate::f::F;\n}\n"),
            ("f.rs", "use crate::e::E;\nuse crate::g::G;\n"),
            ("g.rs", "pub(in crate::f) struct G;\n"),
        ];
        assert_eq!(circle_of(&files), ["a/mod.rs", "b/c.rs", "e.rs"]);
        assert!(circle_of(&files[..5]).is_empty());
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines_the_name() {
        let files = [
            ("a/mod.rs", "mod x;\npub(crate) use x::X;\n"),
            ("a/x.rs", "use crate::b::B;\nstruct X;\n"),
            ("b.rs", "use crate::a::X;\nstruct B;\n"),
        ];
        assert_eq!(circle_of(&files), ["a/x.rs", "b.rs"]);
    }

    #[test]
    fn imports_of_a_higher_room_run_up_and_two_rooms_are_closed_to_all_below() {
        let files = [
            ("array/mod.rs", "pub mod set;\n"),
            ("array/set.rs", "use crate::cache::C;\nuse crate::slots::S;\nstruct A;\n"),
            ("cache/mod.rs", "use crate::array::set::A;\nuse crate::io::state::op::Op;\nstruct C;\n"),
            ("controller/mod.rs", "use crate::io::steps::step::go;\n"),
            ("io/mod.rs", "pub mod state;\npub mod steps;\n"),
            ("io/state/mod.rs", "pub mod op;\n"),
            ("io/state/op.rs", "use super::super::steps::step::go;\nstruct Op;\n"),
            ("io/steps/mod.rs", "pub mod step;\n"),
            ("io/steps/step.rs", "use crate::io::state::op::Op;\nfn go() {}\n"),
            ("slots.rs", "use crate::array::set::A;\n"),
        ];
        let files: Vec<_> = files.iter().map(entry).collect();
        let up = ["array/set.rs -> cache/mod.rs", "io/state/op.rs -> io/steps/step.rs", "slots.rs -> array/set.rs"];
        assert_eq!(upward_imports(&files), up);
        assert_eq!(broken_ceilings(&files), ["io/state/op.rs imports io/steps/step.rs, and no room below may"]);
    }

    #[test]
    fn methods_outside_of_the_room_of_their_type_are_foreign() {
        let files = [
            ("a/x.rs", "pub struct X;\nimpl X {}\nimpl<'a, T: Fn(u8)> Y<'a, T> {\n}\n"),
            ("a/z.rs", "impl X {\n}\nimpl Display for Y<'_> {\n}\nimpl Z {\n}\n"),
            ("b/y.rs", "struct Y<'a, T>(T);\nimpl crate::a::x::X {\n}\n"),
            ("a.rs", "impl X {\n}\n"),
            ("z.rs", "enum Z {}\n#[cfg(test)]\nmod tests {\n    impl X {}\n}\n"),
            ("io/state/op.rs", "struct Op;\n"),
            ("io/steps/step.rs", "use crate::io::state::op::Op;\nimpl Op {\n}\n"),
        ];
        let found = foreign_impls(&files.iter().map(entry).collect::<Vec<_>>());
        let wanted = [
            "a/x.rs: impl Y, which is in b",
            "a/z.rs: impl Z, which is in (root)",
            "b/y.rs: impl X, which is in a",
            "io/steps/step.rs: impl Op, which is in io/state",
        ];
        assert_eq!(found, wanted);
    }
}
