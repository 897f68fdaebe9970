//! The golden layout file matches md: a slice of its arrays is made again and compared, all of them in a soak.

use openraid_oracle::survey::{specs, survey};
use openraid_oracle::{answer, golden, SOAK};

/// Without a soak, one array in this many is made again.
const SLICE: usize = 13;

#[test]
#[ignore = "soak: md against md"]
fn golden_layouts_are_what_md_makes_now() {
    let step = if std::env::var_os(SOAK).is_some() { 1 } else { SLICE };
    let specs: Vec<_> = specs().into_iter().step_by(step).collect();
    let Some(paragraphs) = answer(survey(&specs)) else { return };
    for (spec, made) in specs.iter().zip(&paragraphs) {
        let head = format!("array {} ", spec.name);
        let stored = golden::LAYOUTS.split("\n\n").find(|paragraph| paragraph.starts_with(&head));
        let stored = stored.unwrap_or_else(|| panic!("{} is not in the golden file", spec.name));
        assert_eq!(stored.trim_end(), made.trim_end(), "{}", spec.name);
    }
}
