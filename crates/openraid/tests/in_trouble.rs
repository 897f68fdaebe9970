//! The service when its own files are damaged, its disk is full, or its configuration refers to itself: it gives a
//! clear answer, and the data path continues.

mod support;

use std::fs;
use std::process::Command;

use serde_json::{json, Value};
use support::client::Client;
use support::guest::Small;
use support::web::Web;
use support::{Lab, Server, FLUSH, READ, WRITE};

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

fn signed_in(lab: &Lab, server: &Server) -> Web {
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    web
}

/// A client writes, and reads the same data back.
fn data_path_works(lab: &Lab, fill: u8) {
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.ask(WRITE, 8192, &[fill; 4096]), 0);
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    assert_eq!(client.read_block(8192).expect("it is served"), vec![fill; 4096]);
    assert_eq!(client.ask(READ, 0, &[0; 65536]), 0);
}

#[test]
fn damaged_files_of_the_service_lose_only_their_own_content() {
    let lab = array("damaged");
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let web = signed_in(&lab, &server);
    let input = json!({"name": "weekly", "task": "check", "every": "7d", "window": "01:00-01:01"});
    web.post("/api/v1/schedules", &input.to_string()).expect(200);
    lab.line("fail data d1").expect(0);
    server.stop();
    let state = lab.path("state/openraid");
    let keep = fs::read(state.join("registry.json")).expect("it is there");
    // Alarms, events, history, schedules: all of their bytes are others.
    let mut damaged = Vec::new();
    for entry in fs::read_dir(&state).expect("it is there").flatten().map(|entry| entry.path()) {
        let files = if entry.is_dir() {
            fs::read_dir(&entry).expect("a folder").flatten().map(|entry| entry.path()).collect()
        } else {
            vec![entry]
        };
        for file in files.into_iter().filter(|file| !file.ends_with("registry.json") && !file.ends_with("lock")) {
            let len = fs::metadata(&file).expect("a file").len();
            fs::write(&file, support::noise(3, usize::try_from(len).expect("small"))).expect("it is ours");
            damaged.push(file);
        }
    }
    assert!(damaged.len() >= 3, "{damaged:?}");
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let web = signed_in(&lab, &server);
    // What holds is an alarm again, because alarms follow from the state.
    let alarms = web.get("/api/v1/alarms").expect(200).json().to_string();
    assert!(alarms.contains("data:DegradedArray"), "{alarms}");
    assert_eq!(web.get("/api/v1/schedules").expect(200).json()["schedules"], json!([]));
    web.post("/api/v1/schedules", &input.to_string()).expect(200);
    lab.line("events --json").expect(0);
    data_path_works(&lab, 1);
    server.stop();
    // The registry says where the members are: a damaged one is refused by its name, and left alone.
    fs::write(state.join("registry.json"), &keep[..keep.len() / 2]).expect("it is ours");
    lab.line("serve data --nbd-unix nbd.sock").refused(74, &["registry.json is damaged", "move it away"]);
    assert_eq!(fs::read(state.join("registry.json")).ok().as_deref(), Some(&keep[..keep.len() / 2]));
    fs::write(state.join("registry.json"), &keep).expect("it is ours");
    let server = lab.serve(&["data"]);
    data_path_works(&lab, 2);
    server.stop();
}

/// Wait until the alarms that hold are as wanted.

#[test]
fn arrays_are_served_without_a_console_whose_address_is_taken_and_it_comes_when_it_is_free() {
    let lab = array("taken");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let server = lab.serve(&["data", "--http", &address]);
    data_path_works(&lab, 1);
    lab.wait_for_alarms(|text| text.contains(&address) && text.contains("ss -ltnp"));
    lab.line("login").refused(65, &["the console does not run", &address]);
    drop(other);
    lab.wait_for_alarms(|text| !text.contains("the console does not run"));
    let mut web = Web::at(&json!(format!("http://{address}/")));
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    web.get("/api/v1/arrays").expect(200);
    server.stop();
}

#[test]
fn damaged_users_and_tokens_end_only_their_sign_ins_and_are_never_overwritten() {
    let lab = array("accounts");
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let web = signed_in(&lab, &server);
    let user = json!({"name": "ann", "role": "Administrator", "password": "correct horse"});
    web.post("/api/v1/users", &user.to_string()).expect(201);
    let lasting = lab.line("login --token --name prometheus --role ReadOnly").expect(0).text().trim().to_owned();
    server.stop();
    let folder = lab.path("state/openraid/registry.json.management");
    let of = |name: &'static str| (name, fs::read_to_string(folder.join(name)).expect("it was written"));
    let kept = [of("users.json"), of("tokens.json")];
    let newer = |text: &str| text.replace("/1\"", "/9\"").into_bytes();
    let cut = |text: &str| text.as_bytes()[..20].to_vec();
    // A newer file is complete, and must not be moved away.
    let (make, install) =
        ("move it away and make the", "a newer version of openraid wrote it; install that version again");
    let empty = |_: &str| Vec::new();
    let damages: [fn(&str) -> Vec<u8>; 3] = [empty, cut, newer];
    for (damage, (says, never)) in damages.iter().zip([(make, install), (make, install), (install, make)]) {
        for (name, text) in &kept {
            fs::write(folder.join(name), damage(text)).expect("it is ours");
        }
        let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
        data_path_works(&lab, 2);
        lab.wait_for_alarms(|text| {
            let is_right = |name: &str| {
                let line = text.lines().find(|line| line.contains(name));
                line.is_some_and(|line| line.contains(says) && !line.contains(never))
            };
            is_right("users.json") && is_right("tokens.json")
        });
        // A link of the control socket still opens the console; a change of the files is refused, and changes nothing.
        let mut web = signed_in(&lab, &server);
        web.get("/api/v1/arrays").expect(200);
        let other = json!({"name": "bob", "role": "ReadOnly", "password": "correct horse"});
        assert!(web.post("/api/v1/users", &other.to_string()).status >= 400);
        assert_ne!(lab.line("login --token --name other --role ReadOnly").code, 0);
        web.token = Some(lasting.clone());
        web.get("/api/v1/arrays").expect(401);
        for (name, text) in &kept {
            assert_eq!(fs::read(folder.join(name)).expect("it is there"), damage(text), "{name}");
            fs::write(folder.join(name), text).expect("it is ours");
        }
        // They are read again without a restart.
        web.get("/api/v1/arrays").expect(200);
        lab.wait_for_alarms(|text| !text.contains("users.json"));
        server.stop();
    }
}

#[test]
fn a_registry_that_cannot_be_read_is_a_critical_alarm_until_it_is_there_again() {
    let lab = array("unknown");
    let path = lab.path("state/openraid/registry.json");
    let keep = fs::read_to_string(&path).expect("it was written");
    let newer = keep.replace("openraid/registry/2", "openraid/registry/9");
    fs::write(&path, &newer).expect("it is ours");
    lab.configure("[management]\nlisten = \"127.0.0.1:0\"\n");
    let server = lab.serve_configured();
    let web = signed_in(&lab, &server);
    let (alarms, words) = (lab.line("alarms --json"), "a newer version of openraid wrote it");
    assert!(alarms.text().contains("\"critical\"") && alarms.text().contains(words), "{alarms:?}");
    let found = web.get("/api/v1/alarms").expect(200).text();
    assert!(found.contains("registry.json") && found.contains(words), "{found}");
    let metrics = web.get("/metrics").expect(200).text();
    assert!(metrics.lines().any(|line| line.contains("critical") && line.ends_with(" 1")), "{metrics}");
    assert!(lab.line("events --json").text().contains("no recorded array is served"));
    assert_eq!(fs::read_to_string(&path).ok(), Some(newer.clone()), "it is left alone");
    // The kernel's md still does not get the members, also if only a part of the file is left.
    let d0 = lab.path("d0").display().to_string();
    lab.run(&["config", "member", &d0]).expect(0);
    let uuid = keep.split("\"uuid\": \"").nth(1).expect("it has one")[..35].replace(':', "");
    let ruled = |text: String| text.replace('-', "").contains(&uuid);
    assert!(ruled(lab.line("config udev").expect(0).text()));
    fs::write(&path, &newer[..newer.len() - 60]).expect("it is ours");
    let _ = fs::remove_file(lab.path("state/openraid/registry.json.old"));
    lab.run(&["config", "member", &d0]).expect(0);
    assert!(ruled(lab.line("config udev").expect(0).text()));
    // With a registry that it can read, the arrays come without a restart.
    fs::write(&path, &keep).expect("it is ours");
    lab.wait_for_alarms(|text| !text.contains("no recorded array is served"));
    for _ in 0..300 {
        if lab.line("list").text().contains("optimal") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    data_path_works(&lab, 4);
    server.stop();
}

#[test]
fn on_a_full_disk_orders_work_lost_records_are_reported_and_alarms_are_right() {
    // A mirror: of parity, what was being written at the kill would be in doubt.
    let lab = Lab::new("no-room");
    lab.line("create data --level 1 --assume-clean --file-size 16M d0 d1").expect(0);
    let state = lab.path("state");
    fs::rename(&state, lab.path("before")).expect("the same folder");
    fs::create_dir(&state).expect("room");
    let test = "on_a_full_disk_orders_work_lost_records_are_reported_and_alarms_are_right";
    let Some(small) = Small::mount(&state, "4M", test) else { return };
    let copied = Command::new("cp").arg("-r").arg(lab.path("before/openraid")).arg(&state).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let web = signed_in(&lab, &server);
    lab.line("alarms").expect(0);
    small.fill();
    data_path_works(&lab, 3);
    // A change takes effect, and says that it is not kept.
    let set = r#"{"settings": {"rebuild.rate": "9M"}}"#;
    let done = web.ask_with("PATCH", "/api/v1/arrays/data/settings", Some(set), &[]).expect(200).json();
    let text = "this is in force, and is lost when the server ends before it can be kept";
    assert!(done["kept"] == false && done["text"].as_str().is_some_and(|words| words.contains(text)), "{done}");
    assert_eq!(lab.show("data")["settings"]["rebuild_rate"], 9 << 20);
    // An order that means nothing unless it is kept is refused.
    let input = json!({"name": "weekly", "task": "check", "every": "7d"});
    let refused = web.post("/api/v1/schedules", &input.to_string());
    assert!(refused.status >= 400 && refused.text().contains("cannot be written"), "{refused:?}");
    let user = json!({"name": "ann", "role": "ReadOnly", "password": "correct horse"});
    let refused = web.post("/api/v1/users", &user.to_string());
    assert!(refused.status >= 400 && refused.text().contains("users.json"), "{refused:?}");
    assert_eq!(web.get("/api/v1/schedules").expect(200).json()["schedules"], json!([]));
    // A failure is an alarm, and still is after a kill.
    lab.line("fail data d1").expect(0);
    let id = "data:DegradedArray";
    let holds = |answer: &Value| answer["alarms"].as_array().expect("a list").iter().any(|alarm| alarm["id"] == id);
    assert!(holds(&web.get("/api/v1/alarms").expect(200).json()));
    data_path_works(&lab, 4);
    server.kill();
    let server = lab.serve(&["data"]);
    assert!(holds(&lab.line("alarms --json").expect(0).json()));
    data_path_works(&lab, 5);
    server.stop();
}

#[test]
fn a_configuration_that_leads_to_itself_is_refused_and_the_rest_is_served() {
    let lab = array("cycle");
    let socket = lab.path("nbd.sock");
    // A member and a spare that are exports of this server: it would wait for itself.
    let address = |export: &str| format!("nbd+unix:///{export}?socket={}", socket.display());
    let toml = format!(
        "[server]\nnbd-unix = {socket:?}\n[arrays.loop]\nmembers = [\"{}\"]\n[[spares]]\nmember = \"{}\"\nfor = \"all\"\n",
        address("data"),
        address("loop")
    );
    fs::write(lab.path("openraid.toml"), toml).expect("room");
    let server = Server::started(&mut lab.command(&["serve", "--json", "--config", "openraid.toml"])).expect("ready");
    data_path_works(&lab, 6);
    let alarms = lab.line("alarms --json").expect(0).json().to_string();
    assert!(alarms.contains("StartProblem") && alarms.contains("/data?socket="), "{alarms}");
    // The same by an order: the array would write to its own member.
    let ran = lab.run(&["add", "data", &address("data")]);
    ran.refused(65, &["this server serves it itself", "name a drive"]);
    data_path_works(&lab, 7);
    server.stop();
}
