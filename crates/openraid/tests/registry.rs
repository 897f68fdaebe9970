//! A registry that is damaged, or locked by another program.

mod support;

use std::fs::{self, File};
use std::process::{Command, Stdio};

use support::Lab;

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
