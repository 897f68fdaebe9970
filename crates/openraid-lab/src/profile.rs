//! The drive profile for a drive: the one of its model, or the one of its kind with the nearest size.

use openraid_models::{DriveKind, DriveProfile, Library};

use crate::arguments::ProfileArguments;

/// A profile for a drive.
pub struct ChosenProfile<'a> {
    pub profile: &'a DriveProfile,
    /// The reason for the choice.
    pub why: String,
    /// Is it of another drive?
    pub nearest: bool,
}

/// The profile for a drive of this system. `None` if only the drive's size is known.
pub fn nearest<'a>(library: &'a Library, system: &str, drive: &ProfileArguments) -> Option<ChosenProfile<'a>> {
    let controller = library.controller(system).ok()?;
    let fits = |profile: &&DriveProfile| {
        !matches!(profile.kind, DriveKind::Constant(_)) && library.fits(profile, controller).unwrap_or(false)
    };
    if let Some(profile) =
        drive.profile.as_deref().and_then(|name| library.drives().find(|profile| profile.head.answers_to(name)))
    {
        return Some(ChosenProfile { profile, why: "the drives answer as this profile".into(), nearest: false });
    }
    let distance = |profile: &DriveProfile| {
        let (bytes, wanted) = (profile.capacity.value.bytes().get().max(1) as f64, drive.bytes.max(1) as f64);
        (bytes / wanted).ln().abs()
    };
    let nearest_of = |all: &mut dyn Iterator<Item = &'a DriveProfile>| {
        all.min_by(|a, b| distance(a).total_cmp(&distance(b)).then_with(|| a.head.name.cmp(&b.head.name)))
    };
    if let Some(model) = &drive.model {
        let of_model = nearest_of(&mut library.drives().filter(fits).filter(|profile| is_model(profile, model)));
        if let Some(profile) = of_model {
            let why = format!("the profile of {model}, or of its family");
            return Some(ChosenProfile { profile, why, nearest: false });
        }
    }
    let spins = drive.spins?;
    let is_kind = |profile: &&DriveProfile| matches!(profile.kind, DriveKind::Disk(_)) == spins;
    let profile = nearest_of(&mut library.drives().filter(fits).filter(is_kind))?;
    let kind = if spins { "hard disk" } else { "SSD" };
    let named = drive.model.as_ref().map_or_else(String::new, |model| format!("there is no profile of {model}: "));
    let why = format!("{named}the profile of the {kind} with the nearest size is used");
    Some(ChosenProfile { profile, why, nearest: true })
}

/// Is a profile one of this model? All words of its title must be in the model; or its name, which is a model number.
fn is_model(profile: &DriveProfile, model: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (words_of_model, title) = (words(model), profile.head.title.split(',').next().unwrap_or_default());
    let title = words(title);
    let name = profile.head.name.as_str();
    let is_number = name.len() >= 5 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has_name = is_number && words_of_model.iter().any(|word| word.starts_with(name));
    let has_digits = title.iter().any(|word| word.bytes().any(|byte| byte.is_ascii_digit()));
    has_name || has_digits && title.iter().all(|word| words_of_model.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(model: Option<&str>, spins: Option<bool>, gb: u64) -> Option<(String, String, bool)> {
        let library = Library::builtin();
        let drive = ProfileArguments {
            model: model.map(str::to_owned),
            spins,
            bytes: gb * 1_000_000_000,
            ..ProfileArguments::default()
        };
        let found = nearest(&library, "openraid", &drive)?;
        Some((found.profile.head.name.clone(), found.why, found.nearest))
    }

    #[test]
    fn a_model_has_its_profile_and_another_one_the_nearest_of_its_kind() {
        let name = |model: &str, spins, gb| {
            let (name, _, nearest) = named(Some(model), Some(spins), gb).expect("found");
            assert!(!nearest, "{name} is its own");
            name
        };
        assert_eq!(name("WDC WD740GD-00FLA0", true, 74), "wd740gd");
        assert_eq!(name("Samsung SSD 870 EVO 1TB", false, 1000), "evo870_1tb");
        assert_eq!(name("ST8000AS0002-1NA17Z", true, 8000), "st8000as0002");
        // Unknown models.
        let (name, why, is_nearest) = named(Some("ACME Spinner 3"), Some(true), 17_000).expect("found");
        assert!(is_nearest);
        assert!(name.starts_with("exos") || name.starts_with("mg08"), "{name}");
        assert!(why.contains("no profile of ACME Spinner 3") && why.contains("hard disk"), "{why}");
        let library = Library::builtin();
        let (name, ..) = named(None, Some(false), 2000).expect("found");
        assert!(matches!(library.drive(&name).expect("there").kind, DriveKind::Ssd(_)));
        // A file.
        assert_eq!(named(None, None, 1), None);
        let paced = ProfileArguments { profile: Some("wd740gd".into()), ..ProfileArguments::default() };
        assert_eq!(nearest(&library, "openraid", &paced).expect("found").profile.head.name, "wd740gd");
    }
}
