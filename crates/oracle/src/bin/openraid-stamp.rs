//! Stamped data from the command line, on the host or inside a guest.

#![forbid(unsafe_code)]

use openraid_oracle::churn::Churn;
use openraid_oracle::stamp::{check_all, verify, write_all, StampReport, WriteLog};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
openraid-stamp write  DEVICE [SEED]               stamp the whole device or file
openraid-stamp check  DEVICE [SEED]               is all of it stamped and never overwritten?
openraid-stamp churn  DEVICE LOG SECONDS [SEED] [THREADS] [KIB] [END]
                                                  random writes of up to KIB, to the first END bytes;
                                                  what was acknowledged goes to LOG
openraid-stamp verify DEVICE LOG [SEED]           is every acknowledged write there?
Exit code: 0 good, 1 not as it should be, 2 input or output failed, 64 wrong usage.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Some(Ok(true)) => ExitCode::SUCCESS,
        Some(Ok(false)) => ExitCode::from(1),
        Some(Err(error)) => {
            eprintln!("openraid-stamp: {error}");
            ExitCode::from(2)
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(64)
        }
    }
}

/// `None`: the words make no sense.
fn run(words: &[&str]) -> Option<io::Result<bool>> {
    match words {
        ["write", device, rest @ ..] => {
            let [seed] = numbers(rest, [1])?;
            Some(open(device, true).and_then(|(file, bytes)| write_all(&file, bytes, seed)).map(|()| true))
        }
        ["check", device, rest @ ..] => {
            let [seed] = numbers(rest, [1])?;
            Some(open(device, false).and_then(|(file, bytes)| check_all(&file, bytes, seed)).map(|report| say(&report)))
        }
        ["churn", device, log, seconds, rest @ ..] => {
            let [seed, threads, kib, end] = numbers(rest, [1, 4, 256, u64::MAX])?;
            let time = Duration::from_secs(seconds.parse().ok()?);
            Some(open(device, true).and_then(|(_, bytes)| {
                let churn = Churn { bytes: bytes.min(end), seed, threads, write_bytes_max: kib * 1024, time };
                let count = churn.run(Path::new(device), Path::new(log))?;
                println!("acknowledged={count}");
                Ok(true)
            }))
        }
        ["verify", device, log, rest @ ..] => {
            let [seed] = numbers(rest, [1])?;
            Some(open(device, false).and_then(|(file, bytes)| {
                let log = WriteLog::parse(&std::fs::read_to_string(log)?);
                println!("acknowledged_sectors={}", log.acknowledged_sectors());
                verify(&file, bytes, seed, &log).map(|report| say(&report))
            }))
        }
        _ => None,
    }
}

/// The words as numbers, the rest as given.
fn numbers<const N: usize>(words: &[&str], mut given: [u64; N]) -> Option<[u64; N]> {
    if words.len() > N {
        return None;
    }
    for (number, word) in given.iter_mut().zip(words) {
        *number = word.parse().ok()?;
    }
    Some(given)
}

/// The device or file and its size.
fn open(path: &str, write: bool) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().read(true).write(write).open(path)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    Ok((file, bytes))
}

fn say(report: &StampReport) -> bool {
    println!("{report}");
    report.is_good()
}
