//! `docs/json.md` describes the documents of both programs. It is generated from the printed types.
//!
//! `OPENRAID_BLESS=1` writes the tables; the test fails if they differ from the types. `tests/json.rs` compares the
//! page with the output of all verbs.

use openraid::verb::forms::Forms;

use crate::verb::{compare, plan, rehearse, review, simulate, torture};

/// Line before the tables.
const BEGIN: &str = "<!-- forms: begin -->\n";
/// Line after the tables.
const END: &str = "<!-- forms: end -->\n";

fn all() -> Forms {
    let mut all = Forms::of_openraid();
    all.add::<compare::Body>("compare");
    all.add::<plan::Answer<'_>>("merge");
    all.add::<review::Body<'_>>("merge");
    all.add::<plan::Answer<'_>>("plan");
    all.add::<rehearse::Body>("rehearse");
    all.add::<review::Body<'_>>("review");
    all.add::<review::ListBody>("review");
    all.add::<simulate::Body<'_>>("simulate");
    all.add::<simulate::ListBody>("simulate");
    all.add::<torture::tables::Body>("torture");
    all.add::<torture::ReplayBody>("torture-replay");
    all
}

#[test]
fn the_page_describes_the_types_that_are_printed() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the tables begin");
    let (written, after) = rest.split_once(END).expect("the tables end");
    let made = all().text();
    let silent: Vec<&str> = made.lines().filter(|line| line.ends_with("|  |") || line.ends_with(". |  |")).collect();
    assert!(silent.is_empty(), "keys without a doc comment: {silent:#?}");
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{made}{END}{after}")).expect("it is writable");
        return;
    }
    let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(made == written, "docs/json.md is stale ({differs:?}); make it again with OPENRAID_BLESS=1");
}

/// Documents that had the key `span` from the beginning.
const BORN_WITH_SPANS: &[&str] = &["openraid/config-check/1", "openraid/config-show/1"];

#[test]
fn documents_with_a_renamed_key_have_the_second_number() {
    let all = all();
    let mut stale = all.first_forms_with(&["span", "spans"]);
    stale.retain(|name| !BORN_WITH_SPANS.contains(name));
    assert!(stale.is_empty(), "these had `leg` or `legs`; add them to SECOND_FORMS: {stale:?}");
}
