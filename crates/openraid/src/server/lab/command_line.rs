//! A job as the command line that does it. Every word is one that is known, or is checked: none can become an option or a path.

use std::sync::OnceLock;

use openraid_lab::cell::Subject;
use openraid_lab::method::{find, methods};
use openraid_management::lab::{ChoiceModel, ChoicesModel, ComparisonInput, JobInput, PlanInput, ReviewInput};
use openraid_models::{DriveKind, Library};
use openraid_status::shell::words;

use super::folder::{check_name, Folder};
use crate::exit::Failure;
use crate::laboratory::{load_names, LOADS};

/// Maximum number of arrays, methods, levels, numbers of drives or profiles of one job.
const LIST_MAX: usize = 24;
/// Maximum number of members of a simulated array.
const DRIVES_MAX: u16 = 64;
/// The controller if none is named.
pub const SYSTEM: &str = "openraid";

/// The built-in profiles.
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(Library::builtin)
}

/// Systems, drives and patterns of the simulator.
pub fn choices() -> ChoicesModel {
    let choice = |(name, title): (&str, &str)| ChoiceModel { name: name.into(), title: title.into() };
    let real = |kind: &DriveKind| !matches!(kind, DriveKind::Constant(_));
    ChoicesModel {
        systems: library().controllers().map(|own| choice((&own.head.name, &own.head.title))).collect(),
        drives: library()
            .drives()
            .filter(|own| real(&own.kind))
            .map(|own| choice((&own.head.name, &own.head.title)))
            .collect(),
        methods: methods().iter().map(|own| choice((own.name, own.question))).collect(),
        loads: LOADS.into_iter().map(choice).collect(),
    }
}

/// The arguments of a job. The report goes to its folder.
///
/// # Errors
/// A word that is not known; too many of them.
pub fn arguments(input: &JobInput, folder: &Folder) -> Result<Vec<String>, Failure> {
    check_name(input.name())?;
    match input {
        JobInput::Review(review) => of_review(review, folder),
        JobInput::Plan(plan) => of_plan(plan),
        JobInput::Comparison(comparison) => of_comparison(comparison, folder),
    }
}

/// The command line as a user would type it.
pub fn command(arguments: &[String]) -> String {
    format!("openraid {}", words(arguments))
}

fn text(word: &str) -> String {
    word.to_owned()
}

fn machine(
    words: &mut Vec<String>,
    system: Option<&str>,
    drives: &[String],
    cache_mib: Option<u32>,
) -> Result<(), Failure> {
    let system = system.unwrap_or(SYSTEM);
    library().controller(system).map_err(Failure::usage)?;
    few("drives", drives.len())?;
    for drive in drives {
        library().drive(drive).map_err(Failure::usage)?;
    }
    if !drives.is_empty() {
        words.extend([text("--drive"), drives.join(",")]);
    }
    words.extend(cache_mib.into_iter().flat_map(|mib| [text("--cache-mib"), mib.to_string()]));
    Ok(())
}

fn few(what: &str, count: usize) -> Result<(), Failure> {
    if count <= LIST_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!("{what}: give {LIST_MAX} at most")))
}

fn of_review(input: &ReviewInput, folder: &Folder) -> Result<Vec<String>, Failure> {
    let ReviewInput { name, system, drive, arrays, methods, cache_mib, thorough } = input;
    let system = system.as_deref().unwrap_or(SYSTEM);
    let mut words = vec![text("review"), text("--target"), format!("sim:{system}")];
    machine(&mut words, Some(system), drive.as_slice(), *cache_mib)?;
    few("arrays", arrays.len())?;
    few("methods", methods.len())?;
    if arrays.is_empty() || methods.is_empty() {
        return Err(Failure::usage("a review needs arrays, as in raid5x4, and methods"));
    }
    for array in arrays {
        let subject: Subject = array.parse().map_err(Failure::usage)?;
        if subject.members() > DRIVES_MAX {
            return Err(Failure::usage(format!("{array}: give {DRIVES_MAX} members at most")));
        }
    }
    if let Some(other) = methods.iter().find(|method| find(method).is_none()) {
        return Err(Failure::usage(format!("there is no method {other:?}")));
    }
    words.extend([text("--arrays"), arrays.join(","), text("--methods"), methods.join(",")]);
    words.extend([text("--effort"), text(if *thorough { "normal" } else { "quick" }), text("--jobs"), text("1")]);
    words.extend([text("--out"), folder.of(name).display().to_string()]);
    Ok(words)
}

fn of_plan(input: &PlanInput) -> Result<Vec<String>, Failure> {
    let PlanInput { name: _, system, drive, drives, levels, load, depth, reads, cache_mib } = input;
    let mut words = vec![text("plan"), text("--effort"), text("quick")];
    words.extend(system.iter().flat_map(|system| [text("--system"), system.clone()]));
    few("numbers of drives", drives.len())?;
    few("levels", levels.len())?;
    if drives.is_empty() || drives.iter().any(|count| !(1..=DRIVES_MAX).contains(count)) {
        return Err(Failure::usage(format!("drives: give numbers from 1 to {DRIVES_MAX}")));
    }
    let drives: Vec<String> = drives.iter().map(u16::to_string).collect();
    words.extend([text("--drives"), drives.join(",")]);
    machine(&mut words, system.as_deref(), drive, *cache_mib)?;
    for level in levels {
        crate::words::level(level).map_err(Failure::usage)?;
    }
    if !levels.is_empty() {
        words.extend([text("--levels"), levels.join(",")]);
    }
    words.extend([text("--load"), load_of(load.as_deref())?]);
    words.extend(depth.iter().flat_map(|depth| [text("--depth"), depth.to_string()]));
    words.extend(reads.iter().flat_map(|reads| [text("--reads"), reads.to_string()]));
    Ok(words)
}

/// A load by its name: never a file.
///
/// # Errors
/// It is none of those.
pub fn load_of(load: Option<&str>) -> Result<String, Failure> {
    let load = load.unwrap_or(LOADS[0].0);
    if LOADS.iter().any(|(name, _)| *name == load) {
        return Ok(text(load));
    }
    Err(Failure::usage(format!("there is no load {load:?}; use one of {}", load_names())))
}

fn of_comparison(input: &ComparisonInput, folder: &Folder) -> Result<Vec<String>, Failure> {
    let ComparisonInput { name, a, b } = input;
    for side in [a, b] {
        check_name(side)?;
        if folder.report(side.clone()).is_none_or(|report| report.kind != "review") {
            return Err(Failure::usage(format!("there is no review {side:?}")));
        }
    }
    let path = |name: &str| folder.of(name).display().to_string();
    let out = folder.of(name).join("report.html").display().to_string();
    Ok(vec![text("compare"), path(a), path(b), text("--out"), out])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(input: &JobInput) -> Result<String, String> {
        arguments(input, &Folder("/reports".into())).map(|words| command(&words)).map_err(|failure| failure.text)
    }

    #[test]
    fn a_job_is_a_command_line_and_no_word_of_it_can_be_an_option_or_a_path() {
        let review = ReviewInput {
            name: "one".into(),
            system: None,
            drive: Some("wd740gd".into()),
            arrays: vec!["raid5x4".into()],
            methods: vec!["sequential".into()],
            cache_mib: Some(64),
            thorough: false,
        };
        assert_eq!(
            line_of(&JobInput::Review(review.clone())).expect("fits"),
            "openraid review --target sim:openraid --drive wd740gd --cache-mib 64 --arrays raid5x4 --methods sequential \
             --effort quick --jobs 1 --out /reports/one"
        );
        let wrong = [
            ReviewInput { name: "../x".into(), ..review.clone() },
            ReviewInput { name: "--x".into(), ..review.clone() },
            ReviewInput { system: Some("/dev/sda".into()), ..review.clone() },
            ReviewInput { drive: Some("--models".into()), ..review.clone() },
            ReviewInput { arrays: vec!["--members=x".into()], ..review.clone() },
            ReviewInput { arrays: vec!["raid5x4".into(); 99], ..review.clone() },
            ReviewInput { arrays: Vec::new(), ..review.clone() },
            ReviewInput { methods: vec!["all,--x".into()], ..review },
        ];
        for input in wrong {
            assert!(line_of(&JobInput::Review(input.clone())).is_err(), "{input:?}");
        }
        let plan = PlanInput {
            name: "p".into(),
            system: None,
            drive: Vec::new(),
            drives: vec![4, 6],
            levels: vec!["5".into()],
            load: None,
            depth: Some(4),
            reads: None,
            cache_mib: None,
        };
        let line = line_of(&JobInput::Plan(plan.clone())).expect("fits");
        assert_eq!(line, "openraid plan --effort quick --drives 4,6 --levels 5 --load database --depth 4");
        for input in [
            PlanInput { load: Some("/etc/shadow".into()), ..plan.clone() },
            PlanInput { drives: vec![0], ..plan.clone() },
            PlanInput { drives: vec![500], ..plan.clone() },
            PlanInput { levels: vec!["-x".into()], ..plan },
        ] {
            assert!(line_of(&JobInput::Plan(input.clone())).is_err(), "{input:?}");
        }
        let comparison = ComparisonInput { name: "c".into(), a: "a".into(), b: "../b".into() };
        assert!(line_of(&JobInput::Comparison(comparison)).is_err());
    }
}
