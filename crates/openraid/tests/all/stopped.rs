//! The program itself, stopped under load for longer than its commands may take.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{noise, Lab};

/// Longer than the 30 s that a command may take.
const STOP: Duration = Duration::from_secs(36);
const IMAGE: usize = 448 << 20;

/// Copies the image into the array.
fn copy(lab: &Lab, uri: &str) -> Child {
    let mut command = Command::new("nbdcopy");
    command.args(["--requests=64", "image", uri]).current_dir(&lab.folder).stderr(Stdio::inherit());
    command.spawn().expect("nbdcopy starts")
}

#[test]
#[ignore = "six stops of 36 s"]
fn a_server_that_was_suspended_under_load_still_has_all_members() {
    for (level, name) in [("5", "five"), ("10", "ten")] {
        let lab = Lab::new(name);
        lab.drives(&["a", "b", "c", "d"], 256);
        fs::write(lab.path("image"), noise(3, IMAGE)).expect("room");
        lab.run(&["create", "data", "--level", level, "--assume-clean", "a", "b", "c", "d"]).expect(0);
        let server = lab.serve(&["data"]);
        let uri = server.uri();
        for stop in 0..3 {
            let mut load = copy(&lab, &uri);
            thread::sleep(Duration::from_millis(100 + 50 * stop));
            server.signal("-STOP");
            assert!(load.try_wait().expect("it is ours").is_none(), "the load ended before the stop");
            thread::sleep(STOP);
            server.signal("-CONT");
            assert!(load.wait().expect("it ends").success());
            assert_eq!(lab.show("data")["health"], "optimal", "after stop {stop}");
        }
        let news = server.stop();
        let stood = news.iter().filter(|line| line["news"]["event"] == "StoodStill").count();
        assert_eq!(stood, 3, "{news:?}");
        let back = lab.run(&["copy-out", "data"]).expect(0).out;
        assert!(back[..IMAGE] == noise(3, IMAGE));
    }
}
