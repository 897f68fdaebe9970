//! The devices of a journal: one that is dropped, one that joins, and one that carries it alone.

use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::journalled::{
    has_tools, holds_everything, io, killed, made, restarted, wait_for_devices, wait_for_trouble,
};
use crate::support::rules::{fire, has_promtool};
use crate::support::web::Web;
use crate::support::{Lab, Server};

/// What starts a server with folders on small file systems of their own, in a namespace that ends with it: `small` with a
/// copy of the first device, and in it `other` with a copy of the second, if there is one. Both are called `j`. Nothing new
/// may fit into `other`.
fn command_with_small_disk(lab: &Lab, journals: &[&str], is_other_full: bool, more: &[&str]) -> Command {
    let script = "for at in small small/other; do mkdir -p $at && mount -t tmpfs -o size=20m none $at || exit; done; \
                  cp --sparse=always \"$1\" small/j; [ -z \"$2\" ] || cp --sparse=always \"$2\" small/other/j; \
                  [ $3 = false ] || cat /dev/zero > small/other/filler 2>/dev/null; shift 3; exec \"$@\"";
    let socket = lab.path("nbd.sock");
    let socket = socket.to_str().expect("UTF-8").to_owned();
    std::fs::create_dir_all(lab.path("small")).expect("a folder");
    let places = ["small/j", "small/other/j"].into_iter().take(journals.len());
    let devices: Vec<&str> = places.flat_map(|place| ["--journal", place]).collect();
    let arguments = [&["serve", "--json", "--nbd-unix", &socket, "data"], &devices[..], more].concat();
    let serve = lab.command(&arguments);
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh", journals[0], journals.get(1).copied().unwrap_or_default()]);
    command.arg(is_other_full.to_string()).arg(serve.get_program()).args(&arguments);
    for (key, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command.current_dir(&lab.folder);
    command
}

/// Can file systems be mounted in a namespace here, and is qemu-io there? If not, a message says so.
fn has_small_disks() -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "none", "/tmp"]).stdout(Stdio::null()).stderr(Stdio::null());
    match probe.status() {
        Err(_) => support::missing("unshare is not installed (package util-linux)"),
        Ok(status) if !status.success() => support::skipped("no namespace with a file system of its own"),
        Ok(_) => return has_tools(),
    }
    false
}

/// The server that this command starts, and its warnings. All devices are present.
#[track_caller]
fn started(lab: &Lab, command: &mut Command) -> (Server, String) {
    let said = std::fs::File::create(lab.path("said")).expect("room");
    let server = Server::started(command.stderr(said));
    let warned = std::fs::read_to_string(lab.path("said")).expect("UTF-8");
    (server.unwrap_or_else(|line| panic!("not ready: {line:?}, {warned}")), warned)
}

/// The server of [`command_with_small_disk`], and the folder `small`.
#[track_caller]
fn serve_with_small_disk(lab: &Lab, journals: &[&str], more: &[&str]) -> (Server, PathBuf) {
    let (server, _) = started(lab, &mut command_with_small_disk(lab, journals, false, more));
    let inside = format!("/proc/{}/root{}/small", server.pid(), lab.folder.display());
    (server, inside.into())
}

/// What this command, a server, warns of at its start. It is killed then, with something in its log.
fn warnings_of(lab: &Lab, command: &mut Command) -> String {
    let (server, warned) = started(lab, command);
    holds_everything(lab);
    assert!(io(lab, &["read -P 77 12M 4k", "write -P 77 12M 4k"]));
    server.kill();
    warned
}

/// Nothing new fits into this folder any more, until the file that is returned is gone.
fn fill(folder: &Path) -> PathBuf {
    use std::io::Write;
    let filler = folder.join("filler");
    let mut left = 64;
    while left > 0
        && std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&filler)
            .is_ok_and(|mut file| file.write_all(&vec![7; 1 << 20]).is_ok())
    {
        left -= 1;
    }
    filler
}

/// Write until a device that has no room for it is dropped.
fn write_on(lab: &Lab, from: u8) {
    for at in 0..40 {
        assert!(io(lab, &[&format!("write -P {} {}k 64k", from + at, 8192 + u32::from(at) * 64)]));
    }
}

#[test]
fn a_device_that_was_dropped_comes_back_by_itself_while_hosts_write() {
    if !has_small_disks() {
        return;
    }
    let lab = made("journal-rejoin", 16, "j0 sparse", "16M");
    let (mut server, inside) = serve_with_small_disk(&lab, &["sparse"], &["--journal", "j0"]);
    wait_for_devices(&lab, true);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 2 1004k 4k", "write -P 3 5M 12k"]));
    let filler = fill(&inside);
    write_on(&lab, 10);
    server.wait_for_news("JournalDegraded", 1);
    // It may join again for a moment, as long as there is nothing new to be written to it. Now it cannot be opened.
    std::fs::rename(inside.join("j"), inside.join("away")).expect("moved");
    write_on(&lab, 10);
    let shown = wait_for_devices(&lab, false);
    assert_eq!(shown["state"], "live");
    lab.line("journal show").expect(1);
    assert_eq!(lab.show("data")["journal"]["protected"], true);
    std::fs::remove_file(&filler).expect("the filler goes");
    std::fs::rename(inside.join("away"), inside.join("j")).expect("moved");
    wait_for_devices(&lab, true);
    lab.line("journal show").expect(0);
    lab.line("journal attach").refused(65, &["all devices of the journal"]);
    assert!(io(&lab, &["write -P 77 12M 4k", "read -P 10 8192k 64k"]));
    holds_everything(&lab);
    // It has everything: the other one is not needed.
    let back = std::fs::read(inside.join("j")).expect("it is there");
    server.kill();
    std::fs::write(lab.path("back"), &back).expect("room");
    let server = restarted(&lab, &["--journal", "back", "--journal-alone"]);
    holds_everything(&lab);
    assert!(io(&lab, &["read -P 77 12M 4k", "read -P 49 10688k 64k"]));
    server.stop();
}

#[test]
fn another_device_takes_the_place_of_one_that_is_gone() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-attach", 16, "j0 j1", "16M");
    lab.line("journal attach j1").refused(4, &["no running server has a journal"]);
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 2 1004k 4k", "write -P 3 5M 12k"]));
    let file = |name: &str, mib: u64| {
        let file = std::fs::File::create(lab.path(name)).expect("room");
        file.set_len(mib << 20).expect("room");
    };
    file("short", 12);
    file("new", 16);
    lab.line("journal attach nothing").refused(65, &["nothing"]);
    lab.line("journal attach short").refused(65, &["the same size"]);
    lab.line("journal attach d0").refused(65, &["d0"]);
    // The one that it was made with is known again, and so is what may hold more.
    lab.line("journal attach j1").expect(0);
    wait_for_devices(&lab, true);
    lab.line("journal attach new").refused(65, &["both devices of the journal work"]);
    server.kill();
    let second = restarted(&lab, &["--journal", "j1", "--journal-alone"]);
    holds_everything(&lab);
    assert!(io(&lab, &["write -P 4 9M 4k"]));
    lab.line("journal attach new").expect(0);
    let shown = wait_for_devices(&lab, true);
    assert!(shown["joining"].is_null(), "{shown:#}");
    assert!(io(&lab, &["write -P 5 10M 4k"]));
    second.kill();
    std::fs::remove_file(lab.path("j1")).expect("gone");
    let server = restarted(&lab, &["--journal", "new", "--journal-alone"]);
    holds_everything(&lab);
    assert!(io(&lab, &["read -P 4 9M 4k", "read -P 5 10M 4k"]));
    server.stop();
}

#[test]
fn a_journal_that_was_lost_comes_back_by_itself() {
    if !has_small_disks() {
        return;
    }
    // A journal full of holes on a file system that is full takes no new bytes.
    let lab = made("journal-back", 16, "sparse", "16M");
    let (mut server, inside) = serve_with_small_disk(&lab, &["sparse"], &["--http", "127.0.0.1:0"]);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 2 1004k 4k", "write -P 3 5M 12k"]));
    let filler = fill(&inside);
    // More data than the ring has room for: the journal is lost, and nothing else.
    write_on(&lab, 10);
    holds_everything(&lab);
    // The keeper may open the journal before there is room, and only the next write would show that.
    server.wait_for_news("JournalLost", 1);
    assert_eq!(lab.show("data")["health"], "optimal");
    if has_promtool() {
        let mut web = Web::at(&server.ready["console"]);
        web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
        let lost = [("OpenraidJournalLost", 1), ("OpenraidJournalDegraded", 1), ("OpenraidUnprotected", 1)];
        // Writes go on, because the keeper may open the journal again, and only the next write shows that it has no room. Each
        // loss is an event of its own.
        std::thread::scope(|scope| {
            let firing = scope.spawn(|| fire(&lab, &web, "journal lost", &lost));
            while !firing.is_finished() {
                assert!(io(&lab, &["write -P 10 8192k 64k"]));
                lab.line("events --acknowledge all").expect(0);
            }
        });
    }
    std::fs::remove_file(&filler).expect("the filler goes");
    server.wait_for_news("JournalBack", 1);
    lab.wait_for("data", |array| array["journal"]["protected"] == true);
    assert!(io(&lab, &["write -P 77 12M 4k", "read -P 77 12M 4k", "read -P 10 8192k 64k"]));
    holds_everything(&lab);
    server.stop();
    let out = lab.line("copy-out data").expect(0).out;
    assert!(out[12 << 20..][..4096].iter().all(|byte| *byte == 77));
    assert!(out[5 << 20..][..12 << 10].iter().all(|byte| *byte == 3));
}

fn texts_of(news: &[serde_json::Value], event: &str) -> Vec<String> {
    let told = news.iter().filter(|line| line["news"]["event"] == event);
    told.filter_map(|line| Some(line["news"]["text"].as_str()?.to_owned())).collect()
}

#[test]
fn a_journal_on_one_device_alone_is_used_again_although_the_other_one_is_dead() {
    if !has_small_disks() {
        return;
    }
    let lab = made("journal-alone", 16, "sparse other", "16M");
    let (mut server, inside) = serve_with_small_disk(&lab, &["sparse", "other"], &[]);
    wait_for_devices(&lab, true);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 2 1004k 4k", "write -P 3 5M 12k"]));
    fill(&inside.join("other"));
    write_on(&lab, 10);
    server.wait_for_news("JournalDegraded", 1);
    // The file goes first: while it exists, the server may attach the full device again for a moment.
    std::fs::remove_file(inside.join("other/j")).expect("it was there");
    write_on(&lab, 50);
    assert_eq!(wait_for_trouble(&lab, "other/j: there is no such file")["state"], "live");
    write_on(&lab, 51);
    let filler = fill(&inside);
    write_on(&lab, 90);
    write_on(&lab, 91);
    server.wait_for_news("JournalLost", 1);
    std::fs::remove_file(&filler).expect("the filler goes");
    server.wait_for_news("JournalBack", 1);
    lab.wait_for("data", |array| array["journal"]["protected"] == true);
    holds_everything(&lab);
    assert!(io(&lab, &["write -P 77 12M 4k"]));
    let back = std::fs::read(inside.join("j")).expect("it is there");
    server.signal("-KILL");
    let (_, news) = server.end();
    let back_again = texts_of(&news, "JournalBack");
    assert!(back_again.iter().any(|text| text.contains("has carried it alone")), "{back_again:?}");
    // So it is at a start with both.
    std::fs::write(lab.path("back"), &back).expect("room");
    let socket = lab.path("nbd.sock");
    let socket = socket.to_str().expect("UTF-8");
    let both = ["serve", "--json", "--nbd-unix", socket, "data", "--journal", "gone", "--journal", "back"];
    let warned = warnings_of(&lab, &mut lab.command(&both));
    assert!(warned.contains("gone: there is no such file"), "{warned}");
    assert!(warned.contains("back, has carried it alone"), "{warned}");
    // The same with a device that can be read, is stale, and takes no writes.
    let warned = warnings_of(&lab, &mut command_with_small_disk(&lab, &["back", "other"], true, &[]));
    assert!(warned.contains("this device of the journal is out of date, and"), "{warned}");
    assert!(warned.contains("small/j is used alone"), "{warned}");
}

#[test]
fn a_dropped_device_is_refused_if_the_one_that_continued_without_it_is_dead() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-stale", 16, "j0 j1", "16M");
    killed(&lab, &["j0", "j1"]);
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    assert!(io(&lab, &["write -P 7 8M 4k"]));
    server.kill();
    let both = "serve --nbd 127.0.0.1:0 data --journal j0 --journal j1";
    std::fs::rename(lab.path("j0"), lab.path("away")).expect("moved");
    lab.line(both).refused(65, &["j0: there is no such file", "j1, is whole", "--journal-alone"]);
    // A device that another program uses is not dead.
    std::fs::rename(lab.path("away"), lab.path("j0")).expect("moved");
    std::fs::copy(lab.path("j0"), lab.path("same")).expect("room");
    let server = lab.serve(&["--level", "1", "--name", "scratch", "ram:8M", "ram:8M", "--journal", "j0"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0 --journal same").refused(65, &["locked"]);
    server.stop();
    std::fs::remove_file(lab.path("j1")).expect("it was there");
    let server = restarted(&lab, &["--journal", "j0", "--journal", "j1"]);
    assert!(io(&lab, &["read -P 7 8M 4k"]));
    server.stop();
}

#[test]
fn entries_that_only_the_newer_of_two_devices_has_can_be_discarded() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-behind", 16, "j0 j1", "16M");
    std::fs::copy(lab.path("j1"), lab.path("early")).expect("room");
    killed(&lab, &["j0", "j1"]);
    std::fs::rename(lab.path("early"), lab.path("j1")).expect("moved");
    let both = "journal discard data --on j0 --on j1";
    lab.line(both).refused(65, &["sectors of host data", "--lost"]);
    let done = lab.line(&format!("{both} --lost")).expect(0).text();
    assert!(done.contains("discarded: "), "{done}");
    let server = restarted(&lab, &["--journal", "j0", "--journal", "j1"]);
    assert!(lab.show("data")["forced"].is_string());
    wait_for_devices(&lab, true);
    server.stop();
}
