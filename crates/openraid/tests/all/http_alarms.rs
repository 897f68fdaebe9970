//! Alarms, sinks, schedules, the history of checks and the end of an array over HTTP: the same as the command line says.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::web::Web;
use crate::support::{Lab, Server};
use serde_json::{json, Value};

fn serve(lab: &Lab) -> (Server, Web) {
    let program = lab.path("taken");
    fs::write(
        lab.path("openraid.toml"),
        format!(
            "[server]\nnbd-unix = {:?}\n[management]\nlisten = \"127.0.0.1:0\"\n[sinks.script]\nkind = \"exec\"\n\
             program = \"/bin/true\"\n[sinks.broken]\nkind = \"exec\"\nprogram = {program:?}\nlevel = \"critical\"\n\
             [schedules.monthly]\ntask = \"check\"\nevery = \"30d\"\nwindow = \"01:00-05:30\"\narrays = [\"other\"]\n",
            lab.path("nbd.sock")
        ),
    )
    .expect("room");
    let server = Server::started(&mut lab.command(&["serve", "--json", "--config", "openraid.toml"])).expect("ready");
    let mut web = Web::at(&server.ready["console"]);
    let token = lab.line("login --token --role Operator --json").expect(0).json();
    web.token = Some(token["token"].as_str().expect("a token").to_owned());
    (server, web)
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["alarms"].as_array().expect("a list").iter().map(|alarm| alarm["id"].as_str().expect("a name")).collect()
}

#[test]
fn alarms_are_listed_acknowledged_and_tested_as_by_the_command_line() {
    let lab = Lab::new("http-alarms");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let (server, web) = serve(&lab);
    assert_eq!(ids(&web.get("/api/v1/alarms").expect(200).json()), [""; 0]);
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["members"].to_string().contains("faulty"));
    let fail = format!("data:Fail:{}", lab.path("d1").display());
    let answer = web.get("/api/v1/alarms?array=data").expect(200).json();
    assert_eq!(ids(&answer).iter().filter(|id| id.starts_with("data:")).count(), 2, "{answer:#}");
    let cli = lab.line("alarms --json --array data").expect(0).json();
    let one = |answer: &Value| {
        answer["alarms"].as_array().expect("a list").iter().find(|alarm| alarm["id"] == fail.as_str()).cloned()
    };
    assert_eq!(one(&answer), one(&cli));
    web.post("/api/v1/alarms/acknowledge", &json!({ "which": "data:Nothing" }).to_string())
        .refused(404, &["there is no alarm data:Nothing"]);
    let known = web.post("/api/v1/alarms/acknowledge", &json!({ "which": fail }).to_string()).expect(200).json();
    assert_eq!(known["acknowledged"], json!([fail]));
    let answer = web.get("/api/v1/alarms?array=data&level=warning").expect(200).json();
    assert_eq!(ids(&answer), ["data:DegradedArray", fail.as_str()], "what is not acknowledged comes first");
    assert!(answer["alarms"][1]["acknowledged_seconds"].is_u64());
    web.get("/api/v1/alarms?level=loud").refused(400, &["level=loud: use info, warning, critical"]);
    web.get("/api/v1/alarms?ended=perhaps").refused(400, &["use true or false"]);
    // A sink that cannot be used says so; the other one takes the test.
    let came = web.post("/api/v1/alarms/test", "{}").expect(200).json()["sinks"].clone();
    let of = |name: &str| {
        came.as_array().expect("a list").iter().find(|attempt| attempt["sink"] == name).expect("tried").clone()
    };
    assert_eq!(of("script")["error"], Value::Null);
    assert!(of("broken")["error"].as_str().is_some_and(|why| why.contains("cannot be started")), "{came:#}");
    web.post("/api/v1/alarms/test", r#"{"sink": "nowhere"}"#).refused(409, &["there is no sink nowhere"]);
    let sinks = web.get("/api/v1/sinks").expect(200).json();
    assert_eq!((&sinks["sinks"][1]["name"], &sinks["sinks"][1]["target"]), (&"script".into(), &"/bin/true".into()));
    let schedules = web.get("/api/v1/schedules").expect(200).json();
    assert_eq!(
        (&schedules["schedules"][0]["every_seconds"], &schedules["schedules"][0]["window"]),
        (&2_592_000.into(), &"01:00-05:30".into())
    );
    lab.line("remove data d1").expect(0);
    lab.line("add data --file-size 16M d3").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    lab.line("check data --follow").expect(0);
    let checks = web.get("/api/v1/arrays/data/checks").expect(200).json();
    assert_eq!(checks["sets"], lab.line("check data --history --json").expect(0).json()["sets"]);
    assert_eq!(checks["sets"][0]["checks"][0]["outcome"], "clean");
    assert!(ids(&web.get("/api/v1/alarms?ended=true").expect(200).json()).contains(&"data:DegradedArray"));
    let document = web.get("/api/v1/openapi.json").expect(200).json();
    let schema =
        &document["paths"]["/api/v1/alarms"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(schema["$ref"], "#/components/schemas/AlarmsModel");
    assert!(document["components"]["schemas"]["AlarmModel"].is_object());
    server.stop();
}

#[test]
fn schedules_are_made_and_removed_over_http_and_the_file_stays_peoples() {
    let lab = Lab::new("http-schedules");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let (mut server, mut web) = serve(&lab);
    let file = fs::read_to_string(lab.path("openraid.toml")).expect("the file");
    let post = |web: &Web, input: &Value| web.post("/api/v1/schedules", &input.to_string());
    let input = json!({"name": "weekly", "task": "check", "arrays": ["data"], "every": "7d"});
    let changed = |key: &str, value: Value| {
        let mut input = input.clone();
        input[key] = value;
        input
    };
    post(&web, &changed("every", "1m".into())).refused(400, &["every: \"1m\" is not an interval between checks"]);
    post(&web, &changed("name", "a b".into())).refused(400, &["letters, digits"]);
    post(&web, &changed("arrays", json!(["dta"]))).refused(400, &["there is no array named \"dta\"", "openraid list"]);
    post(&web, &changed("speed", "1M".into())).refused(400, &["unknown field `speed`"]);
    post(&web, &changed("name", "monthly".into())).refused(409, &["monthly is in line", "openraid reload"]);
    web.ask_with("DELETE", "/api/v1/schedules/monthly", None, &[]).refused(409, &["monthly is in line"]);
    web.ask_with("DELETE", "/api/v1/schedules/none", None, &[]).refused(404, &["no schedule named \"none\""]);
    let made = post(&web, &input).expect(200).json();
    assert_eq!((&made["every_seconds"], &made["line"]), (&604_800.into(), &0.into()));
    // The schedule is carried out, shown by the command line, kept over a kill, and follows its array to another name.
    server.wait_for_news("CheckFinished", 1);
    let says = ["schedule weekly: check of data every 7 d", "(kept by the server)", "schedule monthly: check of other"];
    lab.line("config show").expect(0).says(&says);
    post(&web, &changed("window", "01:00-02:00".into())).expect(200);
    lab.line("rename data fresh").expect(0);
    server.kill();
    (server, web) = serve(&lab);
    let schedules = web.get("/api/v1/schedules").expect(200).json()["schedules"].clone();
    let names: Vec<&str> =
        schedules.as_array().expect("a list").iter().filter_map(|schedule| schedule["name"].as_str()).collect();
    assert_eq!(names, ["monthly", "weekly"]);
    assert_eq!((&schedules[1]["window"], &schedules[1]["arrays"]), (&"01:00-02:00".into(), &json!(["fresh"])));
    web.ask_with("DELETE", "/api/v1/schedules/weekly", None, &[]).expect(204);
    assert_eq!(web.get("/api/v1/schedules").json()["schedules"].as_array().map(Vec::len), Some(1));
    // Events are written by a thread of their own.
    let end = Instant::now() + Duration::from_secs(60);
    for words in ["schedule weekly: check every 7d: done", "every 1m: refused", "schedule weekly removed: done"] {
        while !web.get("/api/v1/events?limit=1000").expect(200).text().contains(words) {
            assert!(Instant::now() < end, "{words:?} is no event");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert_eq!(fs::read_to_string(lab.path("openraid.toml")).ok(), Some(file));
    server.stop();
}

#[test]
fn an_array_whose_files_are_deleted_is_stopped_by_the_api_only_if_the_loss_is_accepted() {
    let lab = Lab::new("http-loss");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1").expect(0);
    let server = lab.serve(&["data", "pair", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    fs::remove_file(lab.path("d1")).expect("it is there");
    let stop = |body: Value| web.ask_with("DELETE", "/api/v1/arrays/data", Some(&body.to_string()), &[]);
    stop(json!({"confirm": "data"})).refused(409, &["nothing is at its path any more", "copy it out first"]);
    assert_eq!(lab.show("data")["health"], "optimal", "it is served on");
    stop(json!({"confirm": "data", "accept_risk": true})).expect(200);
    assert_eq!(web.get("/api/v1/arrays/data").status, 404, "it is not served");
    server.stop();
}
