//! The documents of `openraid-lab --json` as JSON Schema, from the types that are printed.

use openraid::verb::forms::Forms;

use crate::verb::{compare, plan, rehearse, review, simulate, torture};

#[test]
fn the_schema_describes_the_types_that_are_printed() {
    let mut all = Forms::default();
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
    all.hold("openraid-lab");
}
