//! Redfish: volumes made, changed, checked and deleted; users; streams; refusals. DMTF's validators and foreign clients are
//! in `tools/redfish`.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::support::web::{head, Answer, Web};
use crate::support::{Lab, Server};
use serde_json::{json, Value};

const STORAGE: &str = "/redfish/v1/Systems/1/Storage/openraid";
const VOLUMES: &str = "/redfish/v1/Systems/1/Storage/openraid/Volumes";
const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";

/// A server with an array, and four drives that are free.
fn serve(lab: &Lab) -> (Server, Web) {
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let names = ["f0", "f1", "f2", "f3"];
    lab.drives(&names, 16);
    let drives: Vec<String> = names.iter().map(|name| format!("{:?}", lab.path(name).display().to_string())).collect();
    let text = format!("[management]\ndrives = [{}]\n", drives.join(", "));
    fs::write(lab.path("openraid.toml"), text).expect("room");
    let server = lab.serve(&["--config", "openraid.toml", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    (server, web)
}

/// It is an error of Redfish with this message, whose text has this word.
#[track_caller]
fn refused(answer: &Answer, status: u16, message: &str, word: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    let error = &answer.json()["error"];
    assert_eq!(error["@Message.ExtendedInfo"][0]["MessageId"], format!("Base.1.18.{message}"), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains(word)), "{word:?} is not in {error}");
}

fn drives(web: &Web) -> Vec<Value> {
    let storage = web.get(STORAGE).expect(200).json();
    let paths = storage["Drives"].as_array().expect("a list").iter();
    paths.map(|link| web.get(link["@odata.id"].as_str().expect("a path")).expect(200).json()).collect()
}

/// Links to the drives that belong to no volume.
fn free(web: &Web) -> Vec<Value> {
    drives(web)
        .iter()
        .filter(|drive| drive["Links"].get("Volumes").is_none())
        .map(|drive| json!({"@odata.id": drive["@odata.id"]}))
        .collect()
}

/// Wait for the end of the task of an answer.
fn ended(web: &Web, begun: &Answer) -> Value {
    let monitor = begun.header("location").expect("a monitor").to_owned();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = web.get(&monitor);
        if answer.status == 200 {
            return answer.json();
        }
        assert!(answer.status == 202 && Instant::now() < until, "{answer:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_volume_gets_more_drives_by_an_action_whose_answer_is_a_task() {
    let lab = Lab::new("redfish-layout");
    let (server, web) = serve(&lab);
    let path = format!("{VOLUMES}/data");
    let action = format!("{path}/Actions/Volume.ChangeRAIDLayout");
    let before = web.get(&path).expect(200).json();
    let present = before["Links"]["Drives"].as_array().expect("a list").clone();
    let spare = free(&web);
    lab.line("set data rebuild.rate=1M").expect(0);
    refused(&web.post(&action, r#"{"RAIDType": "RAID0"}"#), 400, "ActionNotSupported", "RAID 0 only if");
    refused(&web.post(&action, r#"{"RAIDType": "RAID6"}"#), 400, "ActionNotSupported", "needs 1 more drive,");
    let others = json!({"Drives": spare[..3]}).to_string();
    refused(&web.post(&action, &others), 400, "ActionNotSupported", "lacks d0");
    let plan = json!({"members": [lab.path("f0")]}).to_string();
    let plan = web.post("/api/v1/arrays/data/reshape/plan", &plan).expect(200).json();
    assert_eq!((&plan["to"]["members"], &plan["joins"][0]["slot"]), (&4.into(), &3.into()), "{plan:#}");
    web.post("/api/v1/arrays/data/reshape", r#"{"raid_devices": 4, "confirm": "dat"}"#)
        .refused(428, &["type the name"]);
    let all: Vec<&Value> = present.iter().chain(&spare[..1]).collect();
    let task = web.post(&action, &json!({"Drives": all}).to_string()).expect(202);
    let volume = web.get(&path).expect(200).json();
    assert_eq!(volume["Operations"][0]["Operation"], "Resize");
    lab.line("set data rebuild.rate=none").expect(0);
    assert_eq!(ended(&web, &task)["TaskState"], "Completed");
    lab.wait_for("data", |array| array["shape"].is_null());
    let after = web.get(&path).expect(200).json();
    assert_eq!(after["CapacityBytes"], before["CapacityBytes"].as_u64().expect("a size") / 2 * 3);
    assert_eq!(after["Links"]["Drives"].as_array().map(Vec::len), Some(4));
    server.stop();
}

#[test]
fn hosts_get_a_part_of_a_volume_and_all_of_it_again() {
    let lab = Lab::new("redfish-size");
    let (server, web) = serve(&lab);
    let path = format!("{VOLUMES}/data");
    let action = web.get(&path).expect(200).json()["Actions"]["Oem"]["#OpenraidVolume.LimitCapacity"].clone();
    let action = action["target"].as_str().expect("a path").to_owned();
    let limit_to = |body: &Value| web.post(&action, &body.to_string());
    let has = |web: &Web| web.get(&path).expect(200).json()["CapacityBytes"].as_u64().expect("a size");
    let whole = has(&web);
    refused(&limit_to(&json!({"CapacityBytes": "16M"})), 400, "PropertyValueTypeError", "16M");
    refused(&limit_to(&json!({"CapacityBytes": 1})), 400, "PropertyValueError", "whole blocks");
    refused(&limit_to(&json!({"Size": 1})), 400, "PropertyUnknown", "use CapacityBytes");
    refused(&limit_to(&json!({"CapacityBytes": whole * 2})), 409, "GeneralError", "hosts can have");
    let less = limit_to(&json!({"CapacityBytes": whole / 2})).expect(200).json();
    assert_eq!(less["CapacityBytes"], whole / 2);
    assert_eq!(limit_to(&json!({})).expect(200).json()["CapacityBytes"], whole);
    // The same with words of our own. The fields of a change of shape have no meaning with it.
    let address = "/api/v1/arrays/data/reshape";
    let limit = |to: &str| json!({"array_size": to, "confirm": "data"}).to_string();
    web.post(address, r#"{"array_size": "max"}"#).refused(428, &["type the name"]);
    web.post(address, r#"{"array_size": "8M", "chunk": "16K", "confirm": "data"}"#).refused(400, &["ask for it alone"]);
    web.post(&format!("{address}/plan"), r#"{"array_size": "8M"}"#).refused(400, &["without a plan"]);
    web.post(address, &limit("8M")).expect(200);
    assert_eq!(has(&web), 8 << 20);
    web.post(address, &limit("max")).expect(200);
    assert_eq!(has(&web), whole);
    server.stop();
}

#[test]
fn a_volume_is_made_of_free_drives_checked_changed_and_deleted_without_losing_its_data() {
    let lab = Lab::new("redfish");
    let (server, web) = serve(&lab);
    let spare = free(&web);
    assert_eq!((drives(&web).len(), spare.len()), (7, 4));
    let input = json!({"Name": "fleet", "RAIDType": "RAID5", "StripSizeBytes": 65536, "ReadCachePolicy": "Off",
        "Links": {"Drives": spare[..3]}, "@Redfish.OperationApplyTime": "Immediate"});
    let made = web.post(VOLUMES, &input.to_string()).expect(201);
    let path = made.header("location").expect("a place").to_owned();
    assert_eq!(path, format!("{VOLUMES}/fleet"));
    let shown = lab.wait_for("fleet", |array| array["task"].is_null());
    let volume = web.get(&path).expect(200);
    assert_eq!(volume.header("allow"), Some("GET, HEAD, PATCH, DELETE"));
    let volume = volume.json();
    assert_eq!(volume["CapacityBytes"], shown["size_bytes"]);
    assert_eq!(volume["Status"]["Health"], "OK");
    assert_eq!(free(&web), spare[3..]);
    // A check is a task, which ends.
    let task = web.post(&format!("{path}/Actions/Volume.CheckConsistency"), "{}").expect(202);
    let done = ended(&web, &task);
    assert_eq!((&done["TaskState"], &done["PercentComplete"]), (&"Completed".into(), &100.into()));
    assert_eq!(lab.show("fleet")["last_check"]["outcome"], "clean");
    // A spare comes and goes. The version is the one after the check: a reader may see a state that is 200 ms old.
    let seen = web.get(&path).expect(200);
    let version = seen.header("etag").expect("a version").to_owned();
    assert_eq!(seen.json()["@odata.etag"], version.as_str());
    let patch =
        |body: &Value, version: &str| web.ask_with("PATCH", &path, Some(&body.to_string()), &[("If-Match", version)]);
    let with_spare = patch(&json!({"Links": {"DedicatedSpareDrives": [spare[3]]}}), &version).expect(200).json();
    assert_eq!(with_spare["Links"]["DedicatedSpareDrives"], json!([spare[3]]));
    refused(&patch(&json!({"ReadCachePolicy": "Off"}), &version), 412, "GeneralError", "has changed");
    let without = patch(&json!({"Links": {"DedicatedSpareDrives": []}}), "*").expect(200).json();
    assert_eq!(without["Links"]["DedicatedSpareDrives"], json!([]));
    let renamed = patch(&json!({"Name": "navy"}), "*").expect(200).json();
    assert_eq!(renamed["@odata.id"], format!("{VOLUMES}/navy"));
    web.get(&path).expect(404);
    let back = web.ask_with("PATCH", &format!("{VOLUMES}/navy"), Some(r#"{"Name": "fleet"}"#), &[]).expect(200).json();
    assert_eq!(back["Id"], "fleet");
    // A deleted array is stopped and forgotten. Its drives are free, and keep their content.
    web.ask_with("DELETE", &path, None, &[]).expect(204);
    web.get(&path).expect(404);
    assert_eq!(free(&web).len(), 4);
    refused(&web.post(VOLUMES, &input.to_string()), 409, "GeneralError", "a member of array");
    lab.run(&["assemble", "f0", "f1", "f2"]).expect(0);
    assert_eq!(web.get(&path).expect(200).json()["Identifiers"], volume["Identifiers"]);
    web.ask_with("DELETE", &path, None, &[]).expect(204);
    let mut again = input;
    again["Oem"] = json!({"Openraid": {"Overwrite": true}});
    web.post(VOLUMES, &again.to_string()).expect(201);
    assert_ne!(web.get(&path).expect(200).json()["Identifiers"], volume["Identifiers"]);
    server.stop();
}

#[test]
fn an_impossible_volume_is_refused_with_the_name_of_the_property() {
    let lab = Lab::new("redfish-bad");
    let (server, web) = serve(&lab);
    let spare = free(&web);
    let post = |body: Value| web.post(VOLUMES, &body.to_string());
    let links = json!({"Drives": spare[..2]});
    let member = drives(&web)[0]["@odata.id"].clone();
    let value = "PropertyValueError";
    let (kind, listed, range) = ("PropertyValueTypeError", "PropertyValueNotInList", "PropertyValueOutOfRange");
    for (body, message, word) in [
        (json!({}), "PropertyMissing", "RAIDType"),
        (json!({"RAIDType": "RAID1"}), "PropertyMissing", "Links.Drives"),
        (json!({"RAIDType": "RAID7", "Links": links}), listed, "use None, RAID0"),
        (json!({"RAIDType": 5, "Links": links}), kind, "not a string"),
        (json!({"RAIDType": "RAID1", "Links": []}), kind, "not an object"),
        (json!({"RAIDType": "RAID1", "Links": {"Drives": {}}}), kind, "not a list"),
        (json!({"RAIDType": "RAID1", "Links": {"Drives": ["x"]}}), value, "@odata.id"),
        (json!({"RAIDType": "RAID1", "Links": {"Drives": [{"@odata.id": "/redfish/v1/../x"}]}}), value, "not a drive"),
        (json!({"RAIDType": "RAID1", "Links": {"Drives": [spare[0], spare[0]]}}), value, "twice"),
        (
            json!({"RAIDType": "RAID1", "Links": {"Drives": [spare[0], {"@odata.id": member}]}}),
            value,
            "belongs to volume data",
        ),
        (json!({"RAIDType": "RAID1", "Links": {"Wires": []}}), "PropertyUnknown", "Wires"),
        (json!({"RAIDType": "RAID1", "Links": links, "Colour": "red"}), "PropertyUnknown", "Colour"),
        (json!({"RAIDType": "RAID1", "Links": links, "CapacityBytes": 4096}), value, "takes its drives whole"),
        (json!({"RAIDType": "RAID1", "Links": links, "CapacityBytes": -1}), range, "above 0"),
        (json!({"RAIDType": "RAID1", "Links": links, "MediaSpanCount": 70000}), range, "spans"),
        (json!({"RAIDType": "RAID1", "Links": links, "InitializeMethod": "Skip"}), listed, "Background"),
        (json!({"RAIDType": "RAID1", "Links": links, "WriteCachePolicy": "Off"}), listed, "WriteThrough"),
        (json!({"RAIDType": "RAID1", "Links": links, "Oem": {"Other": 1}}), value, "Oem.Openraid"),
        (json!({"RAIDType": "RAID1", "Links": links, "Oem": {"Openraid": {"Wipe": 1}}}), "PropertyUnknown", "Wipe"),
        (json!({"RAIDType": "RAID1", "Links": links, "@Redfish.OperationApplyTime": "OnReset"}), listed, "Immediate"),
    ] {
        refused(&post(body), 400, message, word);
    }
    refused(&post(json!({"RAIDType": "RAID6", "Links": links})), 400, "GeneralError", "at least 4 members");
    refused(&post(json!([1])), 400, "GeneralError", "not an object");
    let volume = format!("{VOLUMES}/data");
    let patch = |body: Value| web.ask_with("PATCH", &volume, Some(&body.to_string()), &[]);
    refused(&patch(json!({"CapacityBytes": 1})), 400, "PropertyNotWritable", "CapacityBytes");
    refused(&patch(json!({"Name": "no name"})), 400, "GeneralError", "is not an array name");
    refused(&patch(json!({"Links": {"Drives": []}})), 400, "PropertyNotWritable", "Links.Drives");
    refused(&patch(json!({"Colour": "red"})), 400, "PropertyUnknown", "Colour");
    refused(&patch(json!({"@odata.id": "x"})), 400, "NoOperation", "nothing to change");
    // Without a journal there is no protected cache: the server's own refusal.
    refused(&patch(json!({"WriteCachePolicy": "ProtectedWriteBack"})), 409, "GeneralError", "journal");
    let action = |name: &str| web.post(&format!("{volume}/Actions/Volume.{name}"), "{}");
    refused(&action("Initialize"), 400, "ActionNotSupported", "Initialize");
    assert_eq!(action("Sanitize").status, 404);
    assert_eq!(web.ask_with("PUT", &volume, Some("{}"), &[]).status, 405);
    // A reader may look, and no more.
    let token = lab.line("login --token --role ReadOnly").expect(0).text();
    let reader = Web { token: Some(token.trim().into()), ..web.clone() };
    reader.get(&volume).expect(200);
    assert_eq!(reader.ask_with("DELETE", &volume, None, &[]).status, 403);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

fn basic(words: &str) -> String {
    let table = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |bytes: &[u8]| {
        let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        let digit = |nth: usize| {
            if nth > bytes.len() {
                '='
            } else {
                char::from(table[(bits >> (18 - 6 * nth) & 63) as usize])
            }
        };
        (0..4).map(digit).collect::<String>()
    };
    format!("Basic {}", words.as_bytes().chunks(3).map(digits).collect::<String>())
}

#[test]
fn users_sign_in_with_each_request_and_change_their_own_password_alone() {
    let lab = Lab::new("redfish-users");
    let (server, web) = serve(&lab);
    let stranger = Web { token: None, ..web.clone() };
    let user =
        |name: &str, role: &str| json!({"UserName": name, "RoleId": role, "Password": "correct horse"}).to_string();
    web.post(ACCOUNTS, &user("root", "Administrator")).expect(201);
    let made = web.post(ACCOUNTS, &user("olaf", "Operator")).expect(201);
    let place = made.header("location").expect("a place").to_owned();
    refused(&web.post(ACCOUNTS, &user("x", "King")), 400, "PropertyValueError", "Administrator, Operator or ReadOnly");
    refused(&web.post(ACCOUNTS, "{}"), 400, "PropertyMissing", "UserName");
    let ask = |method: &str, path: &str, body: Option<&str>, password: &str| {
        stranger.ask_with(method, path, body, &[("Authorization", &basic(&format!("olaf:{password}")))])
    };
    ask("GET", STORAGE, None, "correct horse").expect(200);
    let sessions = || web.get("/redfish/v1/SessionService/Sessions").json()["Members@odata.count"].clone();
    let count = sessions();
    ask("GET", STORAGE, None, "correct horse").expect(200);
    assert_eq!(sessions(), count, "one session for all requests");
    let wrong = ask("GET", STORAGE, None, "wrong horse");
    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, None));
    assert_eq!(stranger.get(STORAGE).header("www-authenticate"), Some("Basic realm=\"openraid\""));
    for broken in ["Basic", "Basic !!!", "Basic b2xhZg=="] {
        let status = stranger.ask_with("GET", STORAGE, None, &[("Authorization", broken)]).status;
        assert!([400, 401].contains(&status), "{broken}: {status}");
    }
    // The API has no basic authentication, and asks no browser for it.
    assert_eq!(ask("GET", "/api/v1/arrays", None, "correct horse").status, 401);
    // It sees itself only.
    let seen = ask("GET", ACCOUNTS, None, "correct horse").json();
    assert_eq!(seen["Members"], json!([{ "@odata.id": place }]));
    refused(
        &ask("PATCH", &place, Some(r#"{"RoleId": "Administrator"}"#), "correct horse"),
        403,
        "GeneralError",
        "own password",
    );
    ask("PATCH", &place, Some(r#"{"Password": "another horse"}"#), "correct horse").expect(200);
    assert_eq!(ask("GET", STORAGE, None, "correct horse").status, 401);
    ask("GET", STORAGE, None, "another horse").expect(200);
    let version = web.get(&place).header("etag").expect("a version").to_owned();
    let change = |version: &str| web.ask_with("PATCH", &place, Some(r#"{"Enabled": false}"#), &[("If-Match", version)]);
    refused(&change("\"old\""), 412, "GeneralError", "has changed");
    change(&version).expect(200);
    assert_eq!(ask("GET", STORAGE, None, "another horse").status, 401);
    web.ask_with("DELETE", &place, None, &[]).expect(204);
    let last = web.ask_with("DELETE", &format!("{ACCOUNTS}/olaf"), None, &[]);
    assert_eq!(last.status, 404);
    server.stop();
}

#[test]
fn a_stream_tells_what_happens_and_is_a_destination_while_it_is_open() {
    let lab = Lab::new("redfish-stream");
    let (server, web) = serve(&lab);
    let mut stream = web.connect();
    let token = web.token.clone().expect("a token");
    let request = format!(
        "GET /redfish/v1/EventService/SSE HTTP/1.1\r\nHost: {}\r\nX-Auth-Token: {token}\r\nLast-Event-ID: 0\r\n\r\n",
        web.host
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    assert_eq!(status, 200);
    assert!(headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream"), "{headers:?}");
    let mut lines = reader.lines().map_while(Result::ok);
    let event: Value =
        lines.by_ref().find_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).expect("an event");
    // Each event is an entry of the log, and its message is in a registry.
    let entries = web.get("/redfish/v1/Managers/1/LogServices/Log/Entries").expect(200).json();
    let registry = web.get("/redfish/v1/Registries/Openraid.1.0").expect(200).json();
    let place = registry["Location"][0]["Uri"].as_str().expect("a place");
    let messages = web.get(place).expect(200).json()["Messages"].clone();
    let records = event["Events"].as_array().expect("a list");
    assert!(!records.is_empty());
    for record in records {
        let id = record["MessageId"].as_str().expect("an id");
        let name = id.strip_prefix("Openraid.1.0.").expect("one of ours");
        assert!(messages.get(name).is_some(), "{name} is in no registry");
        let is_same = |entry: &&Value| entry["Id"] == record["EventId"];
        let entry = entries["Members"].as_array().expect("a list").iter().find(is_same).expect("an entry");
        assert_eq!(entry["Message"], record["Message"]);
        web.get(entry["@odata.id"].as_str().expect("a path")).expect(200);
    }
    let open = web.get("/redfish/v1/EventService/Subscriptions").json();
    let destination = open["Members"][0]["@odata.id"].as_str().expect("one").to_owned();
    assert_eq!(web.get(&destination).expect(200).json()["SubscriptionType"], "SSE");
    web.ask_with("DELETE", &destination, None, &[]).expect(204);
    assert_eq!(lines.filter(|line| line.starts_with("data: ")).count(), 0, "the stream ends");
    web.get(&destination).expect(404);
    server.stop();
}

/// A server that takes one request, answers it with this status, and returns its body.
fn take_one(listener: &TcpListener, status: &str) -> Value {
    let (stream, _) = listener.accept().expect("a client");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        let line = line.trim_end().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a number");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).expect("sent");
    serde_json::from_slice(&body).expect("JSON")
}

#[test]
fn events_are_pushed_to_a_server_that_has_subscribed_until_that_is_deleted() {
    let lab = Lab::new("redfish-push");
    let (server, web) = serve(&lab);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let destination = format!("http://{}/events", listener.local_addr().expect("an address"));
    let path = "/redfish/v1/EventService/Subscriptions";
    for (body, message, word) in [
        (json!({}), "PropertyMissing", "Destination"),
        (json!({"Destination": destination}), "PropertyMissing", "Protocol"),
        (json!({"Destination": "file:///etc/passwd", "Protocol": "Redfish"}), "PropertyValueError", "https://"),
        (json!({"Destination": "http://a b", "Protocol": "Redfish"}), "PropertyValueError", "https://"),
        (json!({"Destination": destination, "Protocol": "SMTP"}), "PropertyValueError", "Redfish"),
        (
            json!({"Destination": destination, "Protocol": "Redfish", "HttpHeaders": []}),
            "PropertyUnknown",
            "HttpHeaders",
        ),
    ] {
        refused(&web.post(path, &body.to_string()), 400, message, word);
    }
    let input = json!({"Destination": destination, "Protocol": "Redfish", "Context": "mine"}).to_string();
    let made = web.post(path, &input).expect(201);
    let place = made.header("location").expect("a place").to_owned();
    lab.line("set data rebuild.rate=50M").expect(0);
    let pushed = take_one(&listener, "204 No Content");
    assert_eq!(pushed["Context"], "mine");
    let has = |record: &Value| record["Message"].as_str().is_some_and(|text| text.contains("data"));
    let mut found = pushed["Events"].as_array().is_some_and(|all| all.iter().any(has));
    while !found {
        let pushed = take_one(&listener, "200 OK");
        found = pushed["Events"].as_array().is_some_and(|all| all.iter().any(has));
    }
    // A test event has what the request says. It is not written to the log.
    let test = "/redfish/v1/EventService/Actions/EventService.SubmitTestEvent";
    let service = web.get("/redfish/v1/EventService").expect(200).json();
    assert_eq!(service["Actions"]["#EventService.SubmitTestEvent"]["target"], test);
    let data = format!("{VOLUMES}/data");
    let event = json!({"EventId": "e7", "EventTimestamp": "2026-01-02T03:04:05Z", "Message": "a trial", "MessageArgs": ["1"],
        "MessageId": "StorageDevice.1.2.VolumeDegraded", "MessageSeverity": "Warning", "OriginOfCondition": data});
    web.post(test, &event.to_string()).expect(204);
    let record = loop {
        let pushed = take_one(&listener, "200 OK");
        assert_eq!(pushed["Context"], "mine");
        if pushed["Events"][0]["EventId"] == "e7" {
            break pushed["Events"][0].clone();
        }
    };
    let mut wanted = event;
    (wanted["EventType"], wanted["MemberId"]) = ("Alert".into(), "test-1".into());
    wanted["OriginOfCondition"] = json!({"@odata.id": data});
    assert_eq!(record, wanted);
    let entries = web.get("/redfish/v1/Managers/1/LogServices/Log/Entries").expect(200).text();
    assert!(!entries.contains("a trial") && entries.contains("a test event is sent"), "{entries}");
    for (body, message, word) in [
        (json!({"MessageSeverity": "Bad"}), "PropertyValueNotInList", "OK, Warning, Critical"),
        (json!({"MessageArgs": [1]}), "PropertyValueTypeError", "list of strings"),
        (json!({"Colour": "red"}), "PropertyUnknown", "Colour"),
    ] {
        refused(&web.post(test, &body.to_string()), 400, message, word);
    }
    for _ in 0..3 {
        web.post(path, &input).expect(201);
    }
    assert_eq!(web.post(path, &input).status, 503);
    web.ask_with("DELETE", &place, None, &[]).expect(204);
    web.get(&place).expect(404);
    server.stop();
}

#[test]
fn every_link_leads_to_a_document_of_its_address() {
    let lab = Lab::new("redfish-links");
    let (server, web) = serve(&lab);
    let mut open = vec!["/redfish/v1/".to_owned()];
    let mut seen: Vec<String> = Vec::new();
    while let Some(path) = open.pop() {
        if seen.contains(&path) {
            continue;
        }
        let answer = web.get(&path).expect(200);
        let document = answer.json();
        assert_eq!(document["@odata.id"], path.as_str());
        let version = answer.header("etag").unwrap_or_else(|| panic!("{path} has no version"));
        // An explanation is about the last seconds: each one is another document.
        let is_lasting = !path.ends_with("/Explanation");
        if is_lasting && ["/redfish/v1/Systems", "/redfish/v1/Chassis"].iter().any(|root| path.starts_with(root)) {
            let again = web.ask_with("GET", &path, None, &[("If-None-Match", version)]).expect(304);
            assert_eq!((again.header("etag"), again.text()), (Some(version), String::new()), "{path}");
        }
        collect(&document, &mut open);
        seen.push(path);
    }
    assert!(seen.len() > 60, "{}", seen.len());
    server.stop();
}

fn collect(value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            paths.extend(map.get("@odata.id").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|inner| collect(inner, paths));
        }
        Value::Array(all) => all.iter().for_each(|inner| collect(inner, paths)),
        _ => {}
    }
}

#[test]
fn rates_and_settings_are_changed_by_the_version_that_was_read_and_refused_by_name() {
    let lab = Lab::new("redfish-rates");
    let (server, web) = serve(&lab);
    let controller = format!("{STORAGE}/Controllers/1");
    let patch = |body: Value, version: &str| {
        web.ask_with("PATCH", &controller, Some(&body.to_string()), &[("If-Match", version)])
    };
    let seen = web.get(&controller).expect(200);
    let version = seen.header("etag").expect("a version").to_owned();
    let rates = |value: &Value| value["ControllerRates"].clone();
    // The defaults are 200 MiB and 100 MiB a second; one percent is 4 MiB.
    assert_eq!(rates(&seen.json()), json!({"RebuildRatePercent": 50, "ConsistencyCheckRatePercent": 25}));
    let body = json!({"ControllerRates": {"RebuildRatePercent": 10, "ConsistencyCheckRatePercent": 100}});
    let changed = patch(body.clone(), &version).expect(200);
    assert_eq!(rates(&changed.json()), body["ControllerRates"]);
    let shown = lab.show("data");
    assert_eq!((&shown["settings"]["rebuild_rate"], &shown["settings"]["scrub_rate"]), (&(40 << 20).into(), &0.into()));
    refused(&patch(body, &version), 412, "GeneralError", "has changed");
    // Arrays that differ have no common rate.
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1").expect(0);
    lab.run(&["assemble", "o0", "o1"]).expect(0);
    // A reader may see a state that is 200 ms old.
    let until = Instant::now() + Duration::from_secs(60);
    while !rates(&web.get(&controller).json())["RebuildRatePercent"].is_null() {
        assert!(Instant::now() < until, "the rates of the arrays differ");
        std::thread::sleep(Duration::from_millis(50));
    }
    let patrol = "Oem.Openraid.PatrolRateBytesPerSecond";
    for (body, status, message, word) in [
        (json!({"ControllerRates": {"RebuildRatePercent": 0}}), 400, "PropertyValueOutOfRange", "openraid pause"),
        (json!({"ControllerRates": {"RebuildRatePercent": 101}}), 400, "PropertyValueOutOfRange", "1 to 100"),
        (json!({"ControllerRates": {"RebuildRatePercent": "9"}}), 400, "PropertyValueTypeError", "1 to 100"),
        (json!({"ControllerRates": 9}), 400, "PropertyValueTypeError", "not an object"),
        (json!({"ControllerRates": {"TransformationRatePercent": 9}}), 400, "PropertyUnknown", "Transformation"),
        (json!({"Model": "x"}), 400, "PropertyNotWritable", "Model"),
        (json!({"Colour": "red"}), 400, "PropertyUnknown", "Colour"),
        (json!({}), 400, "NoOperation", "ControllerRates"),
        (json!({"Oem": {"Openraid": {"PatrolRateBytesPerSecond": 5}}}), 409, "GeneralError", patrol),
    ] {
        refused(&patch(body, "*"), status, message, word);
    }
    let schedule = json!({"name": "night", "task": "patrol", "every": "24h"}).to_string();
    web.post("/api/v1/schedules", &schedule).expect(200);
    let answer = patch(json!({"Oem": {"Openraid": {"PatrolRateBytesPerSecond": 20 << 20}}}), "*").expect(200).json();
    assert_eq!(answer["Oem"]["Openraid"]["PatrolRateBytesPerSecond"], 20 << 20);
    let kept = web.get("/api/v1/schedules").expect(200).json();
    assert_eq!(
        (&kept["schedules"][0]["rate"], &kept["schedules"][0]["every_seconds"]),
        (&(20 << 20).into(), &86_400.into())
    );
    // Any setting of a volume, by its name.
    let volume = format!("{VOLUMES}/data");
    let set = |oem: Value| web.ask_with("PATCH", &volume, Some(&json!({"Oem": {"Openraid": oem}}).to_string()), &[]);
    let answer =
        set(json!({"Settings": {"background_depth": 4, "sorting": false, "rebuild.rate": "1M"}})).expect(200).json();
    let settings = &answer["Oem"]["Openraid"]["Settings"];
    assert_eq!(settings, &lab.show("data")["settings"]);
    assert_eq!((&settings["background_depth"], &settings["rebuild_rate"]), (&4.into(), &(1 << 20).into()));
    refused(&set(json!({"Settings": {"colour": 1}})), 400, "PropertyUnknown", "settings/known");
    refused(&set(json!({"Settings": {"sorting": []}})), 400, "PropertyValueTypeError", "sorting");
    refused(&set(json!({"Settings": {"background_depth": 65}})), 400, "GeneralError", "1 to 64");
    refused(&set(json!({"Host": {}})), 400, "PropertyNotWritable", "Host");
    refused(&set(json!({"AcceptRisk": 1})), 400, "PropertyValueTypeError", "true or false");
    server.stop();
}

#[test]
fn decisions_places_and_figures_are_those_of_the_api() {
    let lab = Lab::new("redfish-oem");
    let (server, web) = serve(&lab);
    support::write_some(&lab, &server);
    let volume = web.get(&format!("{VOLUMES}/data")).expect(200).json();
    let openraid = &volume["Oem"]["Openraid"];
    let page = web.get(openraid["Explanation"]["@odata.id"].as_str().expect("a path")).expect(200).json();
    let api = web.get("/api/v1/arrays/data/explain").expect(200).json();
    let reasons = api["reasons"].as_array().expect("a list");
    assert!(!reasons.is_empty());
    for reason in reasons {
        let same = json!({"Reason": reason["reason"], "Text": reason["text"], "Count": reason["count"]});
        assert!(page["Reasons"].as_array().is_some_and(|all| all.contains(&same)), "{same} is not in {page}");
    }
    assert_eq!(page["Limit"]["Part"], api["limit"]["part"]);
    // The stripe map: byte 70000 is in the second chunk, and the third member has the parity of the first stripe.
    let locate = volume["Actions"]["Oem"]["#OpenraidVolume.Locate"]["target"].as_str().expect("a path");
    let place = web.post(locate, r#"{"OffsetBytes": 70000}"#).expect(200).json();
    let roles: Vec<&Value> =
        place["Members"].as_array().expect("a list").iter().map(|member| &member["Role"]).collect();
    assert_eq!((&place["Stripe"], roles), (&0.into(), vec![&json!("other"), &json!("data"), &json!("p")]));
    assert_eq!(place["Members"][1]["OffsetBytes"], 70_000 - 65_536);
    refused(&web.post(locate, "{}"), 400, "ActionParameterMissing", "OffsetBytes");
    refused(&web.post(locate, r#"{"OffsetBytes": "x"}"#), 400, "PropertyValueTypeError", "bytes");
    refused(&web.post(locate, r#"{"OffsetBytes": 99999999999}"#), 400, "PropertyValueOutOfRange", "bytes");
    refused(&web.post(locate, r#"{"Offset": 1}"#), 400, "PropertyUnknown", "use OffsetBytes");
    let predict = web.get(STORAGE).json()["Actions"]["Oem"]["#OpenraidStorage.Predict"]["target"].clone();
    let predict = predict.as_str().expect("a path");
    let links = json!({"Drives": free(&web)});
    let asked = |oem: Value| json!({"RAIDType": "RAID5", "Links": links, "Oem": {"Openraid": oem}}).to_string();
    let answer = web.post(predict, &asked(json!({"Load": "database"})));
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    assert!(answer.json()["Command"].as_str().is_some_and(|text| text.contains("openraid")), "{answer:?}");
    refused(&web.post(predict, &asked(json!({"Load": 1}))), 400, "PropertyValueTypeError", "Load");
    refused(&web.post(predict, &json!({"Links": links}).to_string()), 400, "PropertyMissing", "RAIDType");
    // Each schema that the service has for its own words is reachable without signing in, and the metadata names it.
    let stranger = Web { token: None, ..web.clone() };
    let metadata = stranger.get("/redfish/v1/$metadata").expect(200).text();
    let schemas: Vec<&str> = metadata.split('"').filter(|part| part.starts_with("/redfish/v1/Schemas/")).collect();
    assert_eq!(schemas.len(), 5, "{schemas:?}");
    schemas.iter().for_each(|path| assert!(stranger.get(path).expect(200).text().contains("<edmx:Edmx"), "{path}"));
    assert_eq!(stranger.get("/redfish/v1/Schemas/passwd").status, 404);
    // A report has the figures of /metrics, and each names a property that has its value.
    let report = web.get("/redfish/v1/TelemetryService/MetricReports/Volumes").expect(200).json();
    let metrics = web.get("/metrics").expect(200).text();
    let values = report["MetricValues"].as_array().expect("a list");
    let value = |id: &str| values.iter().find(|metric| metric["MetricId"] == id).expect("a value");
    for (id, series) in [
        ("WriteRequests", r#"openraid_host_requests_total{array="data",kind="write"} "#),
        ("WrittenBytes", r#"openraid_host_bytes_total{array="data",kind="write"} "#),
    ] {
        let figure = metrics.lines().find_map(|line| line.strip_prefix(series)).expect("a figure");
        assert_eq!(value(id)["MetricValue"], figure);
        assert_ne!(figure, "0");
        let (path, pointer) =
            value(id)["MetricProperty"].as_str().and_then(|path| path.split_once('#')).expect("a place");
        assert_eq!(web.get(path).expect(200).json().pointer(pointer).map(Value::to_string).as_deref(), Some(figure));
    }
    for id in ["Drives", "Speed"] {
        let report = web.get(&format!("/redfish/v1/TelemetryService/MetricReports/{id}")).expect(200).json();
        for metric in report["MetricValues"].as_array().expect("a list") {
            let place = metric["MetricProperty"].as_str().and_then(|path| path.split_once('#'));
            let (path, pointer) = place.expect("a place");
            assert!(web.get(path).expect(200).json().pointer(pointer).is_some_and(Value::is_u64), "{metric}");
        }
    }
    assert_eq!(web.get("/redfish/v1/TelemetryService/MetricReports/x").status, 404);
    server.stop();
}

#[test]
fn a_volume_with_connected_clients_is_deleted_only_with_its_name_as_a_confirmation() {
    let lab = Lab::new("redfish-busy");
    let (server, web) = serve(&lab);
    let mut client = support::client::Client::open(&lab.path("nbd.sock"), "data");
    assert_eq!(client.ask(support::WRITE, 0, &[7; 4096]), 0);
    let path = format!("{VOLUMES}/data");
    let delete = |body: Option<&str>| web.ask_with("DELETE", &path, body, &[]);
    refused(&delete(None), 409, "ResourceInUse", "1 client is connected");
    refused(&delete(Some(r#"{"Oem": {"Openraid": {"Confirm": "other"}}}"#)), 409, "ResourceInUse", "Confirm");
    assert_eq!(client.ask(support::WRITE, 0, &[8; 4096]), 0, "the client goes on");
    delete(Some(r#"{"Oem": {"Openraid": {"Confirm": "data"}}}"#)).expect(204);
    web.get(&path).expect(404);
    server.stop();
}

/// The document has types that contain themselves.
#[test]
fn the_openapi_document_is_given_to_everybody() {
    let lab = Lab::new("openapi");
    let (server, web) = serve(&lab);
    let stranger = Web { token: None, ..web };
    let document = stranger.get("/api/v1/openapi.json").expect(200).json();
    let spans = &document["components"]["schemas"]["ArrayModel"]["properties"]["spans"];
    assert_eq!(spans["items"]["$ref"], "#/components/schemas/ArrayModel");
    server.stop();
}

#[test]
fn a_degraded_volume_says_why_and_a_client_that_knows_it_gets_no_document_until_it_changes() {
    let lab = Lab::new("redfish-degraded");
    let (server, web) = serve(&lab);
    let path = format!("{VOLUMES}/data");
    let before = web.get(&path).expect(200);
    assert_eq!(before.json()["Status"], json!({"State": "Enabled", "Health": "OK"}));
    let known = before.header("etag").expect("a version").to_owned();
    let again = |known: &str| web.ask_with("GET", &path, None, &[("If-None-Match", known)]);
    again(&known).expect(304);
    again(&format!("\"x\", W/{known}")).expect(304);
    lab.line("fail data d1").expect(0);
    let until = Instant::now() + Duration::from_secs(60);
    let after = loop {
        let answer = again(&known);
        if answer.status == 200 && answer.json()["Status"].get("Conditions").is_some() {
            break answer;
        }
        assert!(Instant::now() < until, "{answer:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let status = after.json()["Status"].clone();
    assert_eq!((&status["State"], &status["Health"]), (&"Degraded".into(), &"Warning".into()));
    let conditions = status["Conditions"].as_array().expect("a list").clone();
    let of = |name: &str| conditions.iter().find(|condition| condition["MessageId"] == format!("Openraid.1.0.{name}"));
    let degraded = of("DegradedArray").unwrap_or_else(|| panic!("{status}"));
    assert_eq!(degraded["Severity"], "Critical", "no further member may fail");
    assert_eq!(degraded["MessageArgs"], json!([degraded["Message"]]));
    assert!(degraded.get("OriginOfCondition").is_none(), "the volume itself: {degraded}");
    let shown = lab.show("data");
    let is_it = |alarm: &&Value| alarm["event"] == "DegradedArray";
    let alarm = shown["alarms"].as_array().expect("a list").iter().find(is_it).expect("an alarm");
    assert_eq!((&degraded["Message"], &degraded["Resolution"]), (&alarm["text"], &alarm["next_step"]));
    // The old version is no condition for a change any more.
    let patch =
        |version: &str| web.ask_with("PATCH", &path, Some(r#"{"ReadCachePolicy": "Off"}"#), &[("If-Match", version)]);
    refused(&patch(&known), 412, "GeneralError", "has changed");
    let version = web.get(&path).header("etag").expect("a version").to_owned();
    patch(&version).expect(200);
    server.stop();
}

#[test]
fn the_chassis_has_the_drives_and_a_drive_has_a_light_if_a_program_switches_it() {
    let lab = Lab::new("redfish-chassis");
    let (server, web) = serve(&lab);
    let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let system = web.get("/redfish/v1/Systems/1").expect(200).json();
    assert_eq!((&system["HostName"], &system["PowerState"]), (&name.trim().into(), &"On".into()));
    let chassis = web.get("/redfish/v1/Chassis/1").expect(200).json();
    let inside = web.get("/redfish/v1/Chassis/1/Drives").expect(200).json();
    let all: Vec<Value> = drives(&web).iter().map(|drive| json!({"@odata.id": drive["@odata.id"]})).collect();
    assert_eq!((&chassis["Links"]["Drives"], &inside["Members"], all.len()), (&json!(all), &json!(all), 7));
    // No program switches lights.
    let path = drives(&web)[0]["@odata.id"].as_str().expect("a path").to_owned();
    let light = |on: bool| {
        let body = json!({"LocationIndicatorActive": on}).to_string();
        web.ask_with("PATCH", &path, Some(&body), &[])
    };
    assert_eq!(web.get(&path).json().get("LocationIndicatorActive"), None);
    refused(&light(true), 400, "PropertyUnknown", "[care]");
    let program = lab.path("light");
    fs::write(&program, format!("#!/bin/sh\necho $1 $2 $3 $4 >> {}\n", lab.path("told").display())).expect("room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its own file");
    let old = fs::read_to_string(lab.path("openraid.toml")).expect("a file");
    let text = format!("{old}[care]\nled = {:?}\nsmart = \"never\"\n", program.display().to_string());
    fs::write(lab.path("openraid.toml"), text).expect("room");
    lab.line("reload").expect(0);
    let is_on = || lab.show("data")["members"][0]["located"].clone();
    assert_eq!(is_on(), false);
    assert_eq!(light(true).expect(200).json()["LocationIndicatorActive"], true);
    assert_eq!(is_on(), true);
    // An order of another interface is seen.
    lab.line("locate data d0 --off").expect(0);
    assert_eq!(is_on(), false);
    let until = Instant::now() + Duration::from_secs(60);
    while web.get(&path).json()["LocationIndicatorActive"] != false {
        assert!(Instant::now() < until);
    }
    let told = fs::read_to_string(lab.path("told")).expect("orders");
    let drive = lab.path("d0");
    let wanted = ["locate", "locate_off"].map(|word| format!("{word} {} data 0", drive.display()));
    assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
    for (body, message) in [
        (json!({"LocationIndicatorActive": "on"}), "PropertyValueTypeError"),
        (json!({"CapacityBytes": 1}), "PropertyNotWritable"),
        (json!({"Colour": "red"}), "PropertyUnknown"),
        (json!({}), "NoOperation"),
    ] {
        let answer = web.ask_with("PATCH", &path, Some(&body.to_string()), &[]);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    server.stop();
}
