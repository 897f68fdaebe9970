//! A registry that is damaged, or locked by another program.

use crate::support;

use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::support::Lab;
use openraid_format::crc32c;
use serde_json::{json, Value};

fn mirror(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    lab
}

#[test]
fn members_that_are_named_are_served_although_the_registry_is_damaged() {
    let lab = mirror("named");
    let registry = lab.path("state").join("openraid/registry.json");
    fs::write(&registry, "{").expect("room");
    lab.line("serve data --nbd 127.0.0.1:0").refused(74, &["registry.json is damaged: ", "move it away", "--registry"]);
    let socket = lab.path("nbd.sock");
    let socket = socket.to_str().expect("UTF-8");
    let (d1, said) = (lab.path("d1"), lab.path("said"));
    let names = ["serve", "--json", "--nbd-unix", socket, "d0", d1.to_str().expect("UTF-8")];
    let mut command = lab.command(&names);
    command.stderr(File::create(&said).expect("room"));
    let server = support::Server::started(&mut command).expect("ready");
    assert_eq!(server.ready["arrays"][0]["health"], "optimal");
    let text = fs::read_to_string(&said).expect("it was written");
    let path = registry.display();
    assert_eq!(text.matches(&format!("the registry {path} is damaged: EOF while parsing")).count(), 1, "{text}");
    // What cannot be recorded is said, and the file stays for a person to look at.
    lab.line("set data rebuild.rate=7M").refused(
        74,
        &["rebuild.rate=7M", "this is in force, and is lost when the server ends", "is damaged", "move it away"],
    );
    server.stop();
    assert_eq!(fs::read_to_string(&registry).expect("it is there"), "{");
    fs::remove_file(&registry).expect("own file");
    lab.line("assemble --no-serve d0 d1").expect(0);
    lab.serve(&["data"]).stop();
}

#[test]
fn two_arrays_that_md_gave_one_name_are_both_remembered() {
    let lab = mirror("one-name");
    let first = lab.line("list --json").expect(0).json()["remembered"][0]["uuid"].clone();
    lab.line("forget data").expect(0);
    lab.line("create data --level 1 --assume-clean --file-size 8M e0 e1").expect(0);
    let begin = first.as_str().expect("a UUID")[..8].to_owned();
    for _ in 0..2 {
        let name = format!("this array is remembered as data-{begin}");
        lab.line("assemble --no-serve d0 d1").expect(0).says(&["another array is remembered as data", &name]);
        let arrays = lab.line("list --json").expect(0).json()["remembered"].clone();
        let mut names: Vec<_> = arrays.as_array().expect("a list").iter().map(|array| array["name"].clone()).collect();
        names.sort_by_key(ToString::to_string);
        assert_eq!(names, ["data".to_owned(), format!("data-{begin}")]);
    }
    let server = lab.serve(&["data", &format!("data-{begin}")]);
    assert_eq!(server.ready["arrays"].as_array().map(Vec::len), Some(2));
    server.stop();
    assert_eq!(lab.line("list --json").expect(0).json()["remembered"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_older_copy_of_the_registry_is_used_and_named() {
    let lab = mirror("older");
    lab.line("create more --level 1 --assume-clean --file-size 8M e0 e1").expect(0);
    let registry = lab.path("state").join("openraid/registry.json");
    let whole = fs::read_to_string(&registry).expect("it is there");
    fs::write(&registry, &whole[..whole.len() / 2]).expect("room");
    let listed = lab.line("list --json").expect(0);
    let path = registry.display();
    let words = format!("the registry {path} is damaged: ");
    let copy = format!("its older copy {path}.old of ");
    assert!(listed.err.contains(&words) && listed.err.contains(&copy), "{}", listed.err);
    assert!(listed.err.contains("lacks the last change"), "{}", listed.err);
    let server = lab.serve(&["data"]);
    assert_eq!(server.ready["arrays"][0]["health"], "optimal");
    server.stop();
    // The next change writes a whole file again, and keeps the damaged one.
    lab.line("assemble --no-serve e0 e1").expect(0);
    assert_eq!(lab.line("list --json").expect(0).err, "");
    assert_eq!(fs::read_to_string(format!("{path}.damaged")).expect("it is kept"), whole[..whole.len() / 2]);
    lab.serve(&["more"]).stop();
}

#[test]
fn a_registry_that_another_program_locks_ends_set_and_rename_with_its_number_and_changes_nothing() {
    let lab = mirror("locked");
    let server = lab.serve(&["data"]);
    let lock = lab.path("state").join("openraid/registry.json.lock");
    let mut child = Command::new("flock");
    child.arg(&lock).args(["sh", "-c", "echo; exec cat"]).stdin(Stdio::piped());
    let mut child = child.stdout(Stdio::piped()).spawn().expect("flock");
    let mut ready = [0];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready).expect("it has the lock");
    let before = lab.show("data")["settings"].clone();
    let words = ["registry.json.lock has been locked by process ", " for 5 s; ", "nothing was changed"];
    lab.line("set data rebuild.rate=7M").refused(74, &words);
    lab.line("rename data other").refused(74, &words);
    assert_eq!((before.is_null(), &lab.show("data")["settings"]), (false, &before));
    drop(child.stdin.take());
    child.wait().expect("own child");
    lab.line("set data rebuild.rate=7M").expect(0);
    lab.line("rename data other").expect(0);
    server.stop();
    lab.line("list").expect(0).says(&["other"]);
}

/// A state folder as the first versions that had each of its files wrote them: a registry without an identity of the server, an event under
/// a name of then, an alarm that holds until it is acknowledged.
#[test]
fn a_state_folder_of_the_first_versions_is_served_and_keeps_what_it_has() {
    let lab = mirror("first-state");
    let folder = lab.path("state").join("openraid");
    let content = fs::read_to_string(folder.join("registry.json")).expect("it was made");
    let uuid = serde_json::from_str::<Value>(&content).expect("JSON")["arrays"][0]["uuid"].clone();
    fs::remove_dir_all(&folder).expect("it is ours");
    let events = folder.join("registry.json.events");
    fs::create_dir_all(&events).expect("room");
    let members = ["d0", "d1"].map(|name| lab.path(name).display().to_string());
    let array = json!({"name": "data", "uuid": uuid, "level": "raid1", "members": members});
    let registry = json!({"schema": "openraid/registry/1", "arrays": [array]});
    fs::write(folder.join("registry.json"), registry.to_string()).expect("room");
    let event = concat!(
        r#"{"record":"event","number":1,"level":"critical","at_seconds":1764007123,"event":"FlushInDoubt","array":"data","#,
        r#""leg":1,"slot":0,"member":"/old","text":"data: a flush failed","acknowledged":false}"#
    );
    let acknowledged = r#"{"record":"acknowledged","number":2,"at_seconds":1764007200,"from":1,"to":1}"#;
    let mut lines: Vec<u8> =
        [event, acknowledged].map(|text| format!("{:08x} {text}\n", crc32c(text.as_bytes()))).concat().into();
    lines.resize(256 << 10, 0);
    fs::write(events.join("events-00000000000000000001.log"), lines).expect("room");
    let alarm = json!({"event": "SectorLost", "level": "critical", "array": "data", "uuid": uuid, "leg": null, "slot": 1, "member": "/old",
        "text": "data: a sector is lost", "next_step": null, "until_acknowledged": true, "since": 1_764_007_123, "until": null,
        "acknowledged": null});
    let book = json!({ "alarms": [alarm] }).to_string();
    let rest = format!(" {:020} {:010}\n{book}", 1, book.len());
    let mut half = format!("{:08x}{rest}", crc32c(rest.as_bytes())).into_bytes();
    half.resize(2 << 20, 0);
    fs::write(folder.join("registry.json.alarms"), half).expect("room");

    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["health"], "optimal");
    let found = lab.line("events --json").expect(0).json();
    let first = &found["events"][0];
    assert_eq!(
        (&first["number"], &first["event"], &first["span"]),
        (&1.into(), &"FlushFailed".into(), &1.into()),
        "{first:#}"
    );
    assert_eq!(first["acknowledged"], true);
    assert!(found["events"].as_array().expect("a list").iter().any(|event| event["number"] == 3), "new ones follow");
    let alarms = lab.line("alarms --json").expect(0).json();
    let is_old = |event: &&Value| {
        event["event"] == "SectorLost" && event["since_seconds"] == 1_764_007_123 && event["until_seconds"].is_null()
    };
    assert_eq!(alarms["alarms"].as_array().expect("a list").iter().filter(is_old).count(), 1, "{alarms:#}");
    lab.line("set data rebuild.rate=7M").expect(0);
    server.stop();
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["settings"]["rebuild_rate"], 7 << 20);
    server.stop();
}
