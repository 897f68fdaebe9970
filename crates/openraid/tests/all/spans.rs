//! New drives for arrays of several spans: each goes where a slot has no member.

use crate::support::Lab;
use serde_json::Value;

/// States of the members of each span.
fn states(array: &Value) -> Vec<Vec<String>> {
    let state = |member: &Value| member["state"].as_str().expect("a state").to_owned();
    let members = |span: &Value| span["members"].as_array().expect("members").iter().map(state).collect();
    array["spans"].as_array().expect("spans").iter().map(members).collect()
}

#[test]
fn a_drive_that_is_added_goes_to_the_span_with_a_vacant_slot_and_not_to_the_one_that_is_rebuilt() {
    let lab = Lab::new("spans");
    lab.line("create data --level 50 --spans 2 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3 d4 d5").expect(0);
    let server = lab.serve(&["data"]);
    // The first rebuild is still at work when the second drive comes.
    lab.line("set data rebuild.rate=64K").expect(0);
    for lost in ["d0", "d3"] {
        lab.run(&["fail", "data", lost]).expect(0);
        lab.wait_for("data", |array| states(array).concat().iter().any(|state| state.starts_with("faulty")));
        lab.run(&["remove", "data", lost]).expect(0);
    }
    lab.line("add data --file-size 16M n0").expect(0);
    lab.wait_for("data", |array| states(array)[0].iter().any(|state| state == "rebuilding"));
    lab.line("add data --file-size 16M n1").expect(0);
    lab.wait_for("data", |array| states(array).iter().all(|span| span.iter().any(|state| state == "rebuilding")));
    lab.line("set data rebuild.rate=none").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    server.stop();
}
