//! Values that the console and the API keep apart from the configuration file: in force at once, after a crash too.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::web::{Answer, Web};
use crate::support::{Lab, Server};
use serde_json::{json, Value};

/// A signed-in client of a server, which may end at any time.
fn administrator(lab: &Lab, server: &Server) -> Web {
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    web
}

fn keep(web: &Web, input: &Value) -> Answer {
    web.ask_with("PATCH", "/api/v1/kept", Some(&input.to_string()), &[])
}

#[test]
fn spares_sinks_and_names_for_clients_are_set_at_once_and_kept_over_a_crash() {
    let lab = Lab::new("kept");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.drives(&["d3"], 16);
    let text = "[management]\nlisten = \"127.0.0.1:0\"\n[sinks.own]\nkind = \"exec\"\nprogram = \"/bin/true\"\n";
    lab.configure(text);
    let file = fs::read_to_string(lab.path("openraid.toml")).expect("the file");
    let server = lab.serve_configured();
    let mut web = administrator(&lab, &server);
    let spare = lab.path("d3").display().to_string();
    let sink = json!({"name": "chat", "kind": "webhook", "url": "http://127.0.0.1:9/"});
    let done =
        keep(&web, &json!({"spares": [spare], "sinks": [sink], "exports": {"data": ["data", "vm1"]}})).expect(200);
    for words in [format!("spare {spare} added"), "sink chat added".into(), "data: export vm1 added".into()] {
        assert!(done.json()["text"].as_str().is_some_and(|text| text.contains(&words)), "{words}: {}", done.text());
    }
    assert_eq!(lab.show("data")["exports"], json!(["data", "vm1"]));
    // What the file has, programs, files as passwords, and values that cannot be, are refused; nothing of such a request counts.
    let sink = json!({"name": "own", "kind": "journald"});
    keep(&web, &json!({"sinks": [sink]})).refused(409, &["the sink own", "openraid reload"]);
    keep(&web, &json!({"sinks": [{"name": "x", "kind": "exec"}]})).refused(400, &["configuration file"]);
    keep(&web, &json!({"sinks": [{"name": "x", "kind": "mail", "password-file": "/etc/shadow"}]})).refused(400, &[]);
    keep(&web, &json!({"cache": "1 horse"})).refused(400, &["server.cache"]);
    keep(&web, &json!({"journal": [spare]})).refused(409, &["d3"]);
    keep(&web, &json!({"exports": {"other": ["x"]}})).refused(409, &["other"]);
    let done = keep(&web, &json!({"cache": "32M"})).expect(200);
    assert!(done.text().contains("server.cache takes effect at the next start"), "{}", done.text());
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    keep(&web, &json!({"cache": ""})).refused(403, &["Administrator"]);
    server.kill();

    let server = lab.serve_configured();
    let web = administrator(&lab, &server);
    let sinks = web.get("/api/v1/sinks").expect(200).json();
    let names: Vec<&str> =
        sinks["sinks"].as_array().expect("a list").iter().filter_map(|sink| sink["name"].as_str()).collect();
    assert_eq!(names, ["own", "chat"]);
    let shown = lab.show("data");
    assert_eq!((&shown["exports"], &shown["cache"]["size_bytes"]), (&json!(["data", "vm1"]), &json!(32 << 20)));
    let config = lab.line("config show").expect(0).text();
    for line in [format!("spare {spare} for all arrays (kept by the server)"), "sink chat: webhook".into()] {
        assert!(config.contains(&line), "{line}: {config}");
    }
    // The spare takes over, as one of the file does.
    lab.line("fail data d1").expect(0);
    let until = Instant::now() + Duration::from_secs(60);
    let took_over = |member: &Value| member["member"] == spare && member["slot"] == 1;
    while !lab.show("data")["members"].as_array().expect("a list").iter().any(took_over) {
        assert!(Instant::now() < until, "{}", lab.show("data")["members"]);
        std::thread::sleep(Duration::from_millis(100));
    }
    keep(&web, &json!({"spares": [], "sinks": [], "exports": {"data": []}, "cache": ""})).expect(200);
    assert_eq!(lab.show("data")["exports"], json!(["data"]));
    let none = json!({"cache": null, "journal": [], "spares": [], "sinks": [], "exports": {}});
    assert_eq!(web.get("/api/v1/kept").expect(200).json(), none);
    assert_eq!(fs::read_to_string(lab.path("openraid.toml")).expect("the file"), file, "the program does not write it");
    server.stop();
}
