//! The documents of `openraid-lab --json` as JSON Schema, from the types that are printed.

use openraid::verb::forms::Forms;

use crate::verb::{compare, plan, rehearse, review, simulate, torture};

#[test]
fn the_schema_describes_the_types_that_are_printed() {
    let mut all = Forms::default();
    all.add::<compare::ComparisonBody>("compare");
    all.add::<plan::PlanAnswer<'_>>("merge");
    all.add::<review::ReviewBody<'_>>("merge");
    all.add::<plan::PlanAnswer<'_>>("plan");
    all.add::<rehearse::RehearsalBody>("rehearse");
    all.add::<review::ReviewBody<'_>>("review");
    all.add::<review::MethodsBody>("review");
    all.add::<simulate::SimulationBody<'_>>("simulate");
    all.add::<simulate::ProfilesBody>("simulate");
    all.add::<torture::tables::TortureBody>("torture");
    all.add::<torture::ReplayBody>("torture-replay");
    all.hold("openraid-lab");
}
