//! A job as the command line that does it. Every word is one that is known, or is checked: none can become an option or a path.

use openraid_management::lab::{ChoiceModel, ComparisonInput, JobInput, PlanInput, ReviewInput};
use openraid_status::shell_quoting::words;
use openraid_units::ArrayLevel;

use super::folder::{check_name, ReportFolder};
use crate::failure::Failure;
use crate::lab_program::{Catalogue, PROGRAM};

/// Maximum number of arrays, methods, levels, numbers of drives or profiles of one job.
const LIST_MAX: usize = 24;
/// Maximum number of members of a simulated array.
const DRIVES_MAX: u16 = 64;
/// The controller if none is named.
const SYSTEM: &str = "openraid";

/// The arguments of a job. The report goes to its folder.
///
/// # Errors
/// A word that is not known; too many of them.
pub fn arguments(input: &JobInput, known: &Catalogue, folder: &ReportFolder) -> Result<Vec<String>, Failure> {
    check_name(input.name())?;
    match input {
        JobInput::Review(review) => of_review(review, known, folder),
        JobInput::Plan(plan) => of_plan(plan, known),
        JobInput::Comparison(comparison) => of_comparison(comparison, folder),
    }
}

/// The command line as a user would type it.
pub fn command(arguments: &[String]) -> String {
    format!("{PROGRAM} {}", words(arguments))
}

fn text(word: &str) -> String {
    word.to_owned()
}

/// Is this one of the known words?
fn check(what: &str, word: &str, known: &[String], offered: &[ChoiceModel]) -> Result<(), Failure> {
    if known.iter().any(|choice| choice == word) {
        return Ok(());
    }
    let offered: Vec<&str> = offered.iter().map(|choice| choice.name.as_str()).collect();
    Err(Failure::usage(format!("there is no {what} {word:?}; known are: {}", offered.join(", "))))
}

/// Is this a drive's profile?
///
/// # Errors
/// It is not.
pub fn check_drive(word: &str, known: &Catalogue) -> Result<(), Failure> {
    check("drive profile", word, &known.drives, &known.choices.drives)
}

/// Can this word be an array of a review, such as `raid5x4`?
fn check_array(word: &str) -> Result<(), Failure> {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let Some((level, members)) = word.rsplit_once('x').filter(|_| is_plain && !word.is_empty()) else {
        let fits = is_plain && !word.is_empty();
        return if fits { Ok(()) } else { Err(Failure::usage(format!("{word:?} is no array; write raid5x4"))) };
    };
    let members = members.parse::<u16>().ok();
    let (Some(level), Some(members)) = (ArrayLevel::from_word(level), members) else {
        return Err(Failure::usage(format!(
            "{word:?} is no array; write a level and its number of drives, as in raid5x4"
        )));
    };
    if (level.members_min()..=DRIVES_MAX).contains(&members) {
        return Ok(());
    }
    Err(Failure::usage(format!("{word}: give {} to {DRIVES_MAX} members", level.members_min())))
}

fn machine(
    words: &mut Vec<String>,
    known: &Catalogue,
    system: Option<&str>,
    drives: &[String],
    cache_mib: Option<u32>,
) -> Result<(), Failure> {
    let system = system.unwrap_or(SYSTEM);
    check("controller profile", system, &known.systems, &known.choices.systems)?;
    few("drives", drives.len())?;
    for drive in drives {
        check_drive(drive, known)?;
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

fn of_review(input: &ReviewInput, known: &Catalogue, folder: &ReportFolder) -> Result<Vec<String>, Failure> {
    let ReviewInput { name, system, drive, arrays, methods, cache_mib, thorough } = input;
    let system = system.as_deref().unwrap_or(SYSTEM);
    let mut words = vec![text("review"), text("--target"), format!("sim:{system}")];
    machine(&mut words, known, Some(system), drive.as_slice(), *cache_mib)?;
    few("arrays", arrays.len())?;
    few("methods", methods.len())?;
    if arrays.is_empty() || methods.is_empty() {
        return Err(Failure::usage("a review needs arrays, as in raid5x4, and methods"));
    }
    for array in arrays {
        check_array(array)?;
    }
    let is_known = |method: &String| known.choices.methods.iter().any(|known| known.name == *method);
    if let Some(other) = methods.iter().find(|method| !is_known(method)) {
        return Err(Failure::usage(format!("there is no method {other:?}")));
    }
    words.extend([text("--arrays"), arrays.join(","), text("--methods"), methods.join(",")]);
    words.extend([text("--effort"), text(if *thorough { "normal" } else { "quick" }), text("--jobs"), text("1")]);
    words.extend([text("--out"), folder.of(name).display().to_string()]);
    Ok(words)
}

fn of_plan(input: &PlanInput, known: &Catalogue) -> Result<Vec<String>, Failure> {
    let PlanInput { name: _, system, drive, nearest, drives, levels, load, depth, reads, cache_mib } = input;
    let mut words = vec![text("plan"), text("--effort"), text("quick")];
    words.extend(system.iter().flat_map(|system| [text("--system"), system.clone()]));
    few("numbers of drives", drives.len())?;
    few("levels", levels.len())?;
    if drives.is_empty() || drives.iter().any(|count| !(1..=DRIVES_MAX).contains(count)) {
        return Err(Failure::usage(format!("drives: give numbers from 1 to {DRIVES_MAX}")));
    }
    let drives: Vec<String> = drives.iter().map(u16::to_string).collect();
    words.extend([text("--drives"), drives.join(",")]);
    machine(&mut words, known, system.as_deref(), drive, *cache_mib)?;
    if *nearest {
        words.extend([text("--nearest"), text("drive")]);
    }
    for level in levels {
        crate::words::level(level).map_err(Failure::usage)?;
    }
    if !levels.is_empty() {
        words.extend([text("--levels"), levels.join(",")]);
    }
    words.extend([text("--load"), load_of(load.as_deref(), known)?]);
    words.extend(depth.iter().flat_map(|depth| [text("--depth"), depth.to_string()]));
    words.extend(reads.iter().flat_map(|reads| [text("--reads"), reads.to_string()]));
    Ok(words)
}

/// A load by its name: never a file.
///
/// # Errors
/// It is none of those.
pub fn load_of(load: Option<&str>, known: &Catalogue) -> Result<String, Failure> {
    let loads = &known.choices.loads;
    let usual = loads.first().map_or("", |first| &first.name);
    let load = load.unwrap_or(usual);
    if loads.iter().any(|known| known.name == load) {
        return Ok(text(load));
    }
    let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
    Err(Failure::usage(format!("there is no load {load:?}; use one of {}", names.join(", "))))
}

fn of_comparison(input: &ComparisonInput, folder: &ReportFolder) -> Result<Vec<String>, Failure> {
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
    use openraid_management::lab::ChoicesModel;

    /// A part of what the laboratory's program says.
    fn known() -> Catalogue {
        let choices = |names: &[&str]| {
            let choice = |name: &&str| ChoiceModel { name: (*name).into(), title: String::new() };
            names.iter().map(choice).collect::<Vec<_>>()
        };
        let names = |all: &[&str]| all.iter().map(|name| text(name)).collect();
        Catalogue {
            choices: ChoicesModel {
                systems: choices(&[SYSTEM]),
                drives: choices(&["wd740gd"]),
                methods: choices(&["sequential"]),
                loads: choices(&["database"]),
            },
            systems: names(&[SYSTEM]),
            drives: names(&["wd740gd", "raptor"]),
        }
    }

    fn line_of(input: &JobInput) -> Result<String, String> {
        arguments(input, &known(), &ReportFolder("/reports".into()))
            .map(|words| command(&words))
            .map_err(|failure| failure.text())
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
            "openraid-lab review --target sim:openraid --drive wd740gd --cache-mib 64 --arrays raid5x4 --methods sequential \
             --effort quick --jobs 1 --out /reports/one"
        );
        let other = ReviewInput { drive: Some("raptor".into()), arrays: vec!["single".into()], ..review.clone() };
        assert!(line_of(&JobInput::Review(other)).is_ok(), "another name of a profile");
        let wrong = [
            ReviewInput { arrays: vec!["raid5x65".into()], ..review.clone() },
            ReviewInput { arrays: vec!["raid5x2".into()], ..review.clone() },
            ReviewInput { arrays: vec!["raid9x4".into()], ..review.clone() },
            ReviewInput { arrays: vec![String::new()], ..review.clone() },
            ReviewInput { drive: Some("nothing".into()), ..review.clone() },
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
            nearest: false,
            drives: vec![4, 6],
            levels: vec!["5".into()],
            load: None,
            depth: Some(4),
            reads: None,
            cache_mib: None,
        };
        let line = line_of(&JobInput::Plan(plan.clone())).expect("fits");
        assert_eq!(line, "openraid-lab plan --effort quick --drives 4,6 --levels 5 --load database --depth 4");
        let line = line_of(&JobInput::Plan(PlanInput { nearest: true, ..plan.clone() })).expect("fits");
        assert!(line.contains(" --drives 4,6 --nearest drive --levels 5 "), "{line}");
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
