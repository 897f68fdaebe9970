//! Paced members: arrays of them are arrays like any other, only that they take the time of their drives.

use std::time::Instant;

use crate::support::{ask, Lab, FLUSH, READ, WRITE};

/// Notes of a member.
fn notes(lab: &Lab, member: usize) -> Vec<String> {
    let shown = lab.show("data");
    let notes = shown["members"][member]["notes"].as_array().expect("notes").clone();
    notes.iter().map(|note| note.as_str().expect("words").to_owned()).collect()
}

#[test]
fn an_array_of_paced_memory_is_served_with_its_bytes_and_never_faster_than_its_drives() {
    let lab = Lab::new("paced");
    let member = "model:service-fixed,size=64M";
    let server = lab.serve(&["--level", "5", "--name", "data", "--chunk", "64K", member, member, member]);
    let requests = 20;
    let begun = Instant::now();
    for number in 0..requests {
        // The write changes data and parity: two rounds of the members, one after the other.
        ask(&lab, &server, &[(WRITE, number << 17, &[7; 4096])]);
    }
    let taken = begun.elapsed();
    let fixed = lab.line("simulate --list --json").expect(0).json();
    assert!(fixed["drives"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "service-fixed")));
    let texts = notes(&lab, 0);
    assert!(texts[0].starts_with("answers as a "), "{texts:?}");
    let late = texts.last().expect("some");
    assert!(late.contains(", late by ") && late.ends_with(" at most"), "{texts:?}");
    // No wall clock makes the drive faster than it is.
    assert!(taken.as_millis() >= u128::from(requests) * 2 * SERVICE_MS, "{requests} writes in {taken:?}");
    lab.line("explain data --record on").expect(0);
    ask(&lab, &server, &[(READ, 0, &[0; 4096])]);
    let story = lab.line("explain data --request last --json").expect(0).json();
    let steps = story["stories"][0]["steps"].as_array().expect("steps").clone();
    let read = steps.iter().find(|step| step["step"] == "member-read").expect("a read");
    assert!(read["took_ns"].as_u64() >= Some(u64::try_from(SERVICE_MS).expect("small") * 1_000_000), "{read}");
    server.stop();
}

/// The service time of the profile `service-fixed`.
const SERVICE_MS: u128 = 1;

#[test]
fn a_paced_file_is_a_member_like_any_other() {
    let lab = Lab::new("paced-file");
    let members: Vec<String> = (0..3).map(|n| format!("model:pm9a3_1920,file=d{n}")).collect();
    let made = ["create", "data", "--level", "5", "--chunk", "64K", "--file-size", "16M", "--assume-clean"];
    lab.run(&[&made[..], &members.iter().map(String::as_str).collect::<Vec<_>>()].concat()).expect(0);
    let server = lab.serve(&["data"]);
    ask(&lab, &server, &[(WRITE, 4096, &[9; 4096]), (FLUSH, 0, &[])]);
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
    // Without their model they are the same files.
    let content = lab.line("copy-out d0 d1 d2").expect(0);
    assert_eq!(content.out[4096..8192], [9; 4096]);
    assert_eq!(content.out[..4096], [0; 4096]);
}

#[test]
fn an_invalid_paced_member_is_refused_with_a_remedy() {
    let lab = Lab::new("paced-bad");
    let serve = |member: &str| lab.run(&["serve", "--level", "1", "--name", "x", member, member]);
    serve("model:wd9999").refused(64, &["there is no drive profile 'wd9999'", "known are: ", "wd740gd"]);
    serve("model:wd740gd,size=80T").refused(64, &["is more than the", "leave it out"]);
    serve("model:wd740gd,size=1").refused(64, &["the size must be"]);
    serve("model:wd740gd,speed=9").refused(64, &["size=SIZE, file=PATH"]);
    serve("model:wd740gd,file=nowhere").refused(65, &["nowhere"]);
    serve("model:").refused(64, &["name a drive's profile"]);
    lab.line("create x --level 1 model:wd740gd model:wd740gd").refused(64, &["this memory ends"]);
    lab.line("rehearse raid5x4 --drive wd9999").refused(64, &["there is no drive profile"]);
    lab.line("rehearse raid50x8").refused(64, &["cannot be rehearsed"]);
}

#[test]
fn a_rehearsal_takes_the_profiles_of_a_folder_on_both_sides() {
    let lab = Lab::new("rehearsed-own");
    let text = include_str!("../../../../models/drives/service-fixed.toml");
    let slow = text.replace("mean_us = { value = 1000", "mean_us = { value = 4000");
    assert_ne!(slow, text);
    std::fs::create_dir_all(lab.path("own/drives")).expect("made");
    // One profile replaces a built-in one, the other has a new name.
    std::fs::write(lab.path("own/drives/a.toml"), &slow).expect("written");
    std::fs::write(lab.path("own/drives/b.toml"), slow.replace("\"service-fixed\"", "\"mine\"")).expect("written");
    for drive in ["service-fixed", "mine"] {
        let line = format!("rehearse single --drive {drive} --reads 100 --depth 1 --seconds 1 --out {drive}");
        let found = lab.line(&format!("{line} --models own --json")).expect(0).json();
        for side in ["predicted", "served"] {
            let mean = found["cells"][0][side]["mean_ms"].as_f64().expect("a mean");
            assert!(mean >= 4.0, "{drive}, {side}: {mean} ms of a drive that takes 4");
        }
    }
    lab.line("rehearse single --drive mine").refused(64, &["there is no drive profile 'mine'"]);
    lab.line("rehearse single --models nowhere").refused(64, &["nowhere", "does not exist"]);
    std::fs::rename(lab.path("own"), lab.path("a,b")).expect("renamed");
    lab.line("rehearse single --drive mine --models a,b --out c").refused(64, &["--models: ", "comma"]);
}

#[test]
fn cells_of_a_rehearsal_do_not_know_of_each_other() {
    let lab = Lab::new("rehearsed");
    let line = "rehearse raid5x3 --drive wd740gd --reads 100,67 --depth 1 --seconds 2 --out page";
    let found = lab.line(&format!("{line} --json")).expect(0).json();
    let cells = found["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let mean = |side: &str| cell[side]["mean_ms"].as_f64().expect("a mean");
        // A busy machine makes the service slower, and nothing but a cache that is warm makes it faster than its drives.
        assert!(mean("predicted") < mean("served") * 1.3, "{cell}");
    }
    assert_eq!(found["lateness"].as_array().map(Vec::len), Some(2));
    // The file keeps the same.
    let path = lab.path("page/results.json");
    let kept = std::fs::read_to_string(&path).expect("the results are there");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).expect("a document"), found);
    // The page of another rehearsal is not replaced, and neither are other results.
    let other = "rehearse single --drive service-fixed --reads 100 --depth 1 --seconds 1 --out page";
    lab.line(other).refused(64, &["another rehearsal", "--out"]);
    std::fs::remove_file(lab.path("page/report.html")).expect("it is there");
    lab.line(other).refused(64, &["results of something else", "--out"]);
    lab.line("rehearse single --block 100").refused(64, &["--block: ", "512"]);
}
