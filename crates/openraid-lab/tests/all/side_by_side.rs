//! One report of the kernel's RAID, of openraid and of the simulation: the same suite on all three, in one table.

use std::time::Duration;

use crate::support::{Lab, PROGRAM};
use openraid_oracle::{answer, Guest};
use serde_json::Value;

const BOOT_TIMEOUT: Duration = Duration::from_secs(600);

/// The review runs in a guest with the real md driver, next to a RAID 5 of md on four drives.
#[test]
#[ignore = "six cells in a guest: half a minute"]
fn md_openraid_and_the_simulation_are_measured_alike_in_one_report() {
    let lab = Lab::new("side-by-side");
    let mut guest = Guest::new();
    let names = ["m0", "m1", "m2", "m3", "d0", "d1", "d2", "d3"];
    lab.drives(&names, 64);
    let drives: Vec<String> = names.iter().map(|name| guest.image(lab.path(name))).collect();
    guest.script(&format!(
        "create m --level=5 --raid-devices=4 --chunk=64 {}\nsettle m\n\
         export XDG_RUNTIME_DIR=/run XDG_STATE_HOME=/run XDG_CACHE_HOME=/run\n\
         {PROGRAM} review --target md=${{md[m]}} --target model=sim:openraid --members {} --levels 5x4 \
         --methods response-time --seconds 1 --effort quick --destroy-data --name \"${{md[m]#/dev/}}\" \
         --out /run/out/out\ncp out/results.json results.txt\ncp out/report.html report.txt",
        drives[..4].join(" "),
        drives[4..].join(",")
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let text = output.file("results.txt").expect("readable");
    let results: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", output.log));
    let methods = results["methods"].as_array().expect("methods");
    let cells = methods.iter().flat_map(|method| method["cells"].as_array().expect("cells"));
    // The same requests, two directions of each: of md, of the served array, of the model.
    let mut found: Vec<(String, String, String)> = cells
        .map(|cell| {
            let word = |name: &str| cell["cell"][name].as_str().unwrap_or_default().to_owned();
            assert!(cell["outcome"]["measured"]["requests"].as_u64().is_some_and(|requests| requests > 0), "{cell}");
            (word("label"), word("pattern"), cell["cell"]["axes"]["op"].as_str().unwrap_or_default().to_owned())
        })
        .filter(|(label, ..)| !label.is_empty())
        .collect();
    found.sort();
    let ways =
        |label: &str| ["read", "write"].map(|way| (label.to_owned(), "response-time".to_owned(), way.to_owned()));
    let arrays: Vec<_> = found.iter().filter(|cell| cell.0 == "md" || cell.0.contains("served")).cloned().collect();
    assert_eq!(arrays, [ways("md"), ways("served")].concat(), "{found:?}");
    assert!(found.iter().any(|(label, ..)| label.contains("model")), "{found:?}");
    let page = output.file("report.txt").expect("readable");
    assert!(["md", "served", "model"].iter().all(|label| page.contains(label)));
}
