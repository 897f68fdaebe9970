//! A guest from the command line: real md on image files, without root.

#![forbid(unsafe_code)]

use openraid_oracle::{Guest, OracleError};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
openraid-guest [--timeout SECONDS] [--no-raid6] [--disk] IMAGE... -- JOB...
Boots Linux as a process and runs JOB in it: bash with the words of guest-lib.sh. The images are $D0, $D1, ...
With --no-raid6 it boots in a fifth of the time, and an array of level 6 ends it.
With --disk before them their writes reach the files at once (16 images at most); else when flushed.
Example: openraid-guest a.img b.img c.img -- 'assemble a $D0 $D1 $D2; check a; digest a; stop a'
Prints what the job printed, and its results as key=value.";
const TIMEOUT_SECONDS: u64 = 300;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((guest, timeout)) = parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    match run(&guest, timeout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("openraid-guest: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Option<(Guest, Duration)> {
    let split = words.iter().position(|word| word == "--")?;
    let (mut timeout, mut disks) = (TIMEOUT_SECONDS, false);
    let mut guest = Guest::new();
    let mut count = 0;
    let mut options = words[..split].iter();
    while let Some(word) = options.next() {
        match word.as_str() {
            "--disk" => disks = true,
            "--no-raid6" => _ = guest.without_raid6(),
            "--timeout" => timeout = options.next()?.parse().ok()?,
            image => {
                let device = if disks { guest.disk(image) } else { guest.image(image) };
                guest.script(&format!("D{count}={device}"));
                count += 1;
            }
        }
    }
    guest.script(&words[split + 1..].join(" "));
    Some((guest, Duration::from_secs(timeout)))
}

fn run(guest: &Guest, timeout: Duration) -> Result<(), OracleError> {
    let output = guest.run(timeout)?;
    print!("{}", output.log);
    for (key, value) in &output.values {
        println!("{key}={value}");
    }
    println!("seconds={:.1}", output.took.as_secs_f64());
    Ok(())
}
