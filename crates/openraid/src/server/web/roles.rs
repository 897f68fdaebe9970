//! The console as each role sees it: no button and no link leads to a request that the server refuses to that role. The pages
//! show real documents, and every button is pressed (`roles.mjs`).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use openraid_management::Management;
use openraid_status::Role;
use serde_json::{json, Value};

use super::super::Server;
use super::interface_matrix::{of_console, MatrixDifferences};
use crate::server::desired::InForce;

/// Sinks and schedules of a file: their rows have buttons.
const FILE: &str = "
[sinks.ops]
kind = \"exec\"
program = \"/bin/true\"
[schedules.weekly]
task = \"check\"
every = \"7d\"
";

/// A schedule that an operator has made.
const KEPT: &str = r#"{"name": "kept", "task": "check", "every": "7d"}"#;

/// Compare what the roles find with their rights.
pub(super) fn check(wrong: &mut MatrixDifferences, server: &Arc<Server>, management: &Management, folder: &Path) {
    let path = folder.join("openraid.toml");
    fs::write(&path, FILE).expect("room");
    let desired = crate::desired::load(&path).expect("a configuration");
    server.state().in_force = Some(Arc::new(InForce { path, desired }));
    let url = management.url();
    let made = ureq::post(format!("{url}api/v1/schedules"))
        .header("Authorization", format!("Bearer {}", management.token(Role::Operator)))
        .header("Content-Type", "application/json")
        .send(KEPT);
    assert!(made.is_ok(), "{made:?}");
    let of_operator = ["POST /api/v1/alarms/test", "DELETE /api/v1/schedules/kept", "POST /api/v1/arrays/*/fail"];
    for (role, some) in [(Role::ReadOnly, &[][..]), (Role::Operator, &of_operator[..])] {
        let token = management.token(role);
        let Some(seen) = of_console("roles.mjs", &[url.trim_end_matches('/'), &token], "") else { return };
        let what = |what: &str| format!("{what} of {}", role.word());
        wrong.same(&what("buttons and links that are refused"), &seen["refused"], &json!([]));
        wrong.same(&what("role"), &seen["role"], &role.word().into());
        let orders = seen["orders"].as_array().expect("a list");
        if role == Role::ReadOnly {
            wrong.same(&what("changes"), orders, &Vec::new());
        }
        for order in some {
            wrong.same(&what(&format!("{order} among {orders:?}")), orders.contains(&Value::from(*order)), true);
        }
        let enough = |key: &str, least: u64| seen[key].as_u64().is_some_and(|count| count >= least);
        wrong.same(
            &what("pages and buttons that were tried"),
            (enough("pages", 50), enough("pressed", 5)),
            (true, true),
        );
    }
}
