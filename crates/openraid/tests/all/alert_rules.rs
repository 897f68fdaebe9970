//! The alert rules over the metrics of a real server, in each state that it can be brought into: promtool says which of them fire.

use crate::support;

use std::fs::{self, File};

use crate::support::client::Client;
use crate::support::rules::{fire, fire_acknowledged, has_promtool};
use crate::support::web::Web;
use crate::support::{Lab, Server, FLUSH, READ, WRITE};
use serde_json::Value;

fn serve(lab: &Lab) -> (Server, Web) {
    let server = lab.serve(&["--http", "127.0.0.1:0", "data", "pair", "--journal", "j0", "--journal", "j1"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    (server, web)
}

fn settled(array: &Value) -> bool {
    array["task"].is_null()
}

#[test]
fn in_each_state_of_a_real_server_the_rules_fire_that_are_for_it_and_no_others() {
    if !has_promtool() {
        return;
    }
    let lab = Lab::new("alert-rules");
    lab.line("create data --level 6 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3 --spare d4").expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1").expect(0);
    lab.line("journal create --size 64M j0 j1").expect(0);
    let (server, web) = serve(&lab);
    fire_acknowledged(&lab, &web, "optimal", &[]);
    lab.line("set data write.cache=journal").expect(0);
    support::write_some(&lab, &server);
    fire(&lab, &web, "optimal, with a journal in use", &[]);
    // The spare takes the place of the one that fails; that one is still there.
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| settled(array) && array["health"] == "optimal");
    fire_acknowledged(&lab, &web, "rebuilt, with a failed drive", &[("OpenraidMemberFaulty", 1)]);
    lab.line("remove data d1").expect(0);
    fire(&lab, &web, "optimal again", &[]);
    lab.line("fail data d2").expect(0);
    lab.line("remove data d2").expect(0);
    let degraded = [("OpenraidArrayDegraded", 1), ("OpenraidMemberRemoved", 1), ("OpenraidEventsOpen", 1)];
    fire(&lab, &web, "degraded, a parity left", &degraded);
    lab.line("fail pair p1").expect(0);
    lab.line("remove pair p1").expect(0);
    let lost = [("OpenraidArrayDegraded", 2), ("OpenraidMemberRemoved", 2), ("OpenraidNoRedundancyLeft", 1)];
    fire_acknowledged(&lab, &web, "two degraded, one without redundancy", &lost);
    lab.line("add pair p1 --yes --overwrite").expect(0);
    lab.line("add data d2 --yes --overwrite").expect(0);
    for name in ["pair", "data"] {
        lab.wait_for(name, |array| settled(array) && array["health"] == "optimal");
    }
    // Copies that differ, found by a check.
    spoil(&lab);
    lab.line("check pair --follow").expect(3);
    fire_acknowledged(&lab, &web, "mismatches", &[("OpenraidMismatches", 1)]);
    lab.line("repair pair --trust-data --follow").expect(0);
    fire(&lab, &web, "repaired", &[]);
    lab.line("set data scrub.rate=64K").expect(0);
    lab.line("check data").expect(0);
    lab.line("pause data").expect(0);
    fire(&lab, &web, "a check is paused for hours", &[("OpenraidTaskPaused", 1)]);
    lab.line("check data --stop").expect(0);
    server.stop();
}

#[test]
fn a_rebuild_and_a_failed_array_fire_their_rules() {
    if !has_promtool() {
        return;
    }
    let lab = Lab::new("alert-rules-failed");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 --spare d3").expect(0);
    let server = lab.serve(&["--http", "127.0.0.1:0", "data"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    support::write_some(&lab, &server);
    lab.line("set data rebuild.rate=64K").expect(0);
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["task"]["kind"] == "rebuild");
    lab.line("remove data d1").expect(0);
    let rebuilding = [("OpenraidArrayDegraded", 1), ("OpenraidNoRedundancyLeft", 1)];
    fire_acknowledged(&lab, &web, "rebuilding to a spare", &rebuilding);
    lab.line("set data rebuild.rate=0").expect(0);
    lab.wait_for("data", |array| settled(array) && array["health"] == "optimal");
    // One member fails, and another one goes away, which its next read shows.
    lab.line("fail data d0").expect(0);
    lab.line("remove data d0").expect(0);
    File::options().write(true).open(lab.path("d2")).and_then(|file| file.set_len(0)).expect("it");
    let mut client = Client::open(&lab.path("nbd.sock"), "data");
    assert_ne!(client.ask(READ, 0, &[0; 1 << 18]), 0, "a member is missing, and another one has nothing");
    lab.wait_for("data", |array| array["health"] == "failed");
    let failed = [("OpenraidArrayFailed", 1), ("OpenraidMemberFaulty", 1), ("OpenraidMemberRemoved", 1)];
    fire_acknowledged(&lab, &web, "failed", &failed);
    server.stop();
}

#[test]
fn an_array_that_cannot_start_fires_its_rule_and_counts_as_an_open_alarm() {
    if !has_promtool() {
        return;
    }
    let lab = Lab::new("alert-rules-offline");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1").expect(0);
    for name in ["p0", "p1"] {
        fs::remove_file(lab.path(name)).expect("it is there");
    }
    let server = lab.serve(&["--http", "127.0.0.1:0", "data", "pair"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    fire_acknowledged(&lab, &web, "one is offline", &[("OpenraidArrayOffline", 1)]);
    let metrics = web.get("/metrics").expect(200).text();
    let open = metrics.lines().find_map(|line| line.strip_prefix("openraid_alarms_open{level=\"critical\"} "));
    assert_eq!(open, Some("1"), "{metrics}");
    server.signal("-TERM");
    assert_eq!(server.end().0, 2, "one of its arrays did not start");
}

/// Bytes of one copy that the other one has not.
fn spoil(lab: &Lab) {
    use std::os::unix::fs::FileExt;
    let mut client = Client::open(&lab.path("nbd.sock"), "pair");
    assert_eq!(client.ask(WRITE, 0, &[7; 4096]), 0);
    assert_eq!(client.ask(FLUSH, 0, &[]), 0);
    assert_eq!(client.ask(READ, 0, &[0; 4096]), 0);
    let bytes = fs::read(lab.path("p1")).expect("a file");
    let place = bytes.windows(512).position(|window| window == [7; 512]).expect("it is there");
    File::options().write(true).open(lab.path("p1")).expect("it").write_all_at(&[8; 512], place as u64).expect("room");
}
