//! `openraid-lab console`: the words and profiles that a server asks for, as JSON.

use openraid::failure::{Exit, Failure, Outcome};
use openraid::lab_program::{Catalogue, ProfileChoice};
use openraid::output::print;
use openraid_management::lab::{ChoiceModel, ChoicesModel};
use openraid_methods::cell::{machine_spec, ArrayState, CellSpec, Pattern, Subject};
use openraid_methods::method::methods;
use openraid_models::{DriveKind, DriveProfile, Head, Library};
use serde::Serialize;

use crate::arguments::{ConsoleArguments, ConsoleVerb, ProfileArguments};
use crate::profile::nearest;
use crate::shared_parts::LOADS;

/// The controller whose ports the drives must fit.
const SYSTEM: &str = "openraid";

/// Runs the verb.
///
/// # Errors
/// There is no such profile.
pub fn run(arguments: &ConsoleArguments) -> Outcome {
    let library = Library::builtin();
    match &arguments.verb {
        ConsoleVerb::Choices => answer(&catalogue(&library)),
        ConsoleVerb::Profile(drive) => answer(&choice(&library, drive)?),
    }
}

fn answer(value: &impl Serialize) -> Outcome {
    print(&serde_json::to_string(value).map_err(Failure::failed)?);
    Ok(Exit::Fine)
}

fn catalogue(library: &Library) -> Catalogue {
    let choice = |(name, title): (&str, &str)| ChoiceModel { name: name.into(), title: title.into() };
    let of_head = |head: &Head| choice((&head.name, &head.title));
    let names = |head: &Head| std::iter::once(head.name.clone()).chain(head.aliases.clone()).collect::<Vec<_>>();
    let is_real = |drive: &&DriveProfile| !matches!(drive.kind, DriveKind::Constant(_));
    Catalogue {
        choices: ChoicesModel {
            systems: library.controllers().map(|controller| of_head(&controller.head)).collect(),
            drives: library.drives().filter(is_real).map(|drive| of_head(&drive.head)).collect(),
            methods: methods().iter().map(|method| choice((method.name.word(), method.question))).collect(),
            loads: LOADS.into_iter().map(choice).collect(),
        },
        systems: library.controllers().flat_map(|controller| names(&controller.head)).collect(),
        drives: library.drives().flat_map(|drive| names(&drive.head)).collect(),
    }
}

/// The profile for a drive, and why.
fn choice(library: &Library, drive: &ProfileArguments) -> Result<ProfileChoice, Failure> {
    let answer = |profile: &DriveProfile, why: &str, nearest: bool| ProfileChoice {
        drive: profile.head.name.clone(),
        title: profile.head.title.clone(),
        why: why.into(),
        nearest,
    };
    if let Some(name) = &drive.chosen {
        return Ok(answer(library.drive(name).map_err(Failure::usage)?, "it was chosen", false));
    }
    if let Some(found) = nearest(library, SYSTEM, drive) {
        return Ok(answer(found.profile, &found.why, found.nearest));
    }
    let cell = CellSpec { state: ArrayState::Healthy, ..CellSpec::new(SYSTEM, Subject::Single, Pattern::Database) };
    let machine = machine_spec(library, &cell).map_err(Failure::failed)?;
    let name = machine.drives.first().map(|profile| profile.head.name.clone()).unwrap_or_default();
    let why = "only the size of files and remote members is known: the simulator's default drive is used for them";
    Ok(answer(library.drive(&name).map_err(Failure::usage)?, why, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_has_every_word_that_a_server_offers() {
        let found = catalogue(&Library::builtin());
        let has = |all: &[ChoiceModel], name: &str| all.iter().any(|choice| choice.name == name);
        assert!(has(&found.choices.systems, SYSTEM) && has(&found.choices.drives, "wd740gd"));
        assert!(has(&found.choices.methods, "latency") && has(&found.choices.loads, "database"));
        assert!(!has(&found.choices.drives, "service-fixed"), "no drive of the world has a constant service time");
        assert!(found.drives.iter().any(|name| name == "service-fixed"), "an API may still name it");
        assert!(found.choices.systems.iter().all(|choice| found.systems.contains(&choice.name)));
    }

    #[test]
    fn a_chosen_profile_is_taken_and_a_file_has_the_default_drive() {
        let library = Library::builtin();
        let chosen = ProfileArguments { chosen: Some("wd740gd".into()), ..ProfileArguments::default() };
        let found = choice(&library, &chosen).expect("it exists");
        assert_eq!((found.drive.as_str(), found.why.as_str()), ("wd740gd", "it was chosen"));
        let file = choice(&library, &ProfileArguments { bytes: 1 << 24, ..ProfileArguments::default() });
        assert!(file.expect("a default").why.contains("files"));
        let wrong = ProfileArguments { chosen: Some("nothing".into()), ..ProfileArguments::default() };
        assert!(choice(&library, &wrong).expect_err("no such profile").text().contains("nothing"));
    }
}
