//! Compares what the reader of job files understands with what fio does: with the requests that fio sends, with the
//! depth that it keeps, and with its own list of options. If fio is not installed, a test passes and says so.

use openraid_methods::load::{AccessSpec, LoadSource, LoadStep, Mixed, Zone};
use openraid_methods::reader::{read_fio_job, FioJob, ReadError};
use openraid_methods::target::IoKind;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Number of requests that are compared for each job.
const REQUESTS: usize = 2000;
/// Size of the file that fio believes to use, and of our zone, if a job says nothing.
const SIZE: u64 = 16 << 30;
/// Largest difference of two shares: 4.5 standard deviations of one half among 2000.
const SHARE: f64 = 0.05;

struct Folder(PathBuf);

impl Folder {
    /// A folder for one test; none if there is no fio.
    fn new(name: &str) -> Option<Self> {
        if Command::new("fio").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "fio is not installed: Debian package fio");
            // Past the test's capture, which swallows it if the test passes.
            let _ = writeln!(std::io::stderr(), "skipped: fio is not installed (Debian package fio)");
            return None;
        }
        let path = std::env::temp_dir().join(format!("openraid-fio-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::File::create(path.join("data")).unwrap().set_len(SIZE).unwrap();
        Some(Self(path))
    }

    /// Runs a section of a job file, with these options at the end of each section, where they are the last and count.
    fn run(&self, text: &str, section: &str, last: &str) -> Output {
        let mut file = String::new();
        let mut is_job = false;
        for line in text.lines() {
            if line.starts_with('[') {
                file.push_str(if is_job { last } else { "" });
                is_job = !line.starts_with("[global");
            }
            file.push_str(line);
            file.push('\n');
        }
        file.push_str(if is_job { last } else { "" });
        fs::write(self.0.join("job.fio"), file).unwrap();
        let arguments = ["--output-format=json", &format!("--section={section}"), "job.fio"];
        Command::new("fio").args(arguments).current_dir(&self.0).stdin(Stdio::null()).output().unwrap()
    }

    /// The requests that fio sends, to an engine that does nothing with them.
    fn requests(&self, text: &str, section: &str, job: &FioJob) -> Vec<(IoKind, u64, u64)> {
        let log = self.0.join("log");
        let _ = fs::remove_file(&log);
        let mut last = format!(
            "ioengine=null\nfilename=data\nnumjobs=1\nrate_iops=0\nthinktime=0\nnumber_ios={REQUESTS}\nwrite_iolog=log\n"
        );
        if job.spec.manner().len.is_none() {
            last.push_str(&format!("size={SIZE}\n"));
        }
        let output = self.run(text, section, &last);
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        requests(&log)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The requests of an iolog of version 2 or 3.
fn requests(log: &Path) -> Vec<(IoKind, u64, u64)> {
    let text = fs::read_to_string(log).unwrap();
    let request = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., kind, offset, length] = words[..] else { return None };
        let kind = match kind {
            "read" => IoKind::Read,
            "write" => IoKind::Write,
            _ => return None,
        };
        Some((kind, offset.parse().unwrap(), length.parse().unwrap()))
    };
    text.lines().filter_map(request).take(REQUESTS).collect()
}

/// The requests that we send for a specification.
fn ours(spec: &AccessSpec) -> Vec<(IoKind, u64, u64)> {
    let start = spec.manner().start.unwrap_or(0);
    let zone = Zone { start, len: spec.manner().len.unwrap_or(SIZE) };
    let mut source = Mixed::new(spec, 1, zone, 1, 9);
    let next = |_| match source.next(0) {
        LoadStep::Ask(request) => (request.kind, request.offset, u64::from(request.len)),
        _ => panic!("bug: a pause or an end"),
    };
    (0..REQUESTS).map(next).collect()
}

/// What a load is, whichever positions were drawn.
#[derive(Debug)]
struct Kind {
    /// Share of all requests that are of this direction.
    share: f64,
    sizes: BTreeMap<u64, f64>,
    /// The largest number that divides all positions.
    unit: u64,
    /// Share of requests that begin where the request before ended.
    sequential: f64,
    first: u64,
    end: u64,
}

fn kinds(requests: &[(IoKind, u64, u64)]) -> Vec<(IoKind, Kind)> {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let of = |kind: IoKind| {
        let all: Vec<(u64, u64)> = requests.iter().filter(|one| one.0 == kind).map(|one| (one.1, one.2)).collect();
        let part = |number: usize, of: usize| number as f64 / of.max(1) as f64;
        let mut sizes = BTreeMap::new();
        for (_, length) in &all {
            *sizes.entry(*length).or_insert(0.0) += part(1, all.len());
        }
        let follows = all.windows(2).filter(|pair| pair[0].0 + pair[0].1 == pair[1].0).count();
        (!all.is_empty()).then(|| Kind {
            share: part(all.len(), requests.len()),
            sizes,
            unit: all.iter().fold(0, |unit, one| gcd(unit, one.0)),
            sequential: part(follows, all.len() - 1),
            first: all.iter().map(|one| one.0).min().unwrap_or(0),
            end: all.iter().map(|one| one.0 + one.1).max().unwrap_or(0),
        })
    };
    [IoKind::Read, IoKind::Write].into_iter().filter_map(|kind| of(kind).map(|found| (kind, found))).collect()
}

fn assert_same(text: &str, ours: &[(IoKind, Kind)], fios: &[(IoKind, Kind)]) {
    let words = || format!("{text}\nours {ours:?}\nfio's {fios:?}");
    assert_eq!(ours.len(), fios.len(), "{}", words());
    for ((our_kind, our), (fio_kind, fio)) in ours.iter().zip(fios) {
        assert_eq!((our_kind, our.unit), (fio_kind, fio.unit), "{}", words());
        let near = |a: f64, b: f64| assert!((a - b).abs() < SHARE, "{a} and {b} in {}", words());
        near(our.share, fio.share);
        near(our.sequential, fio.sequential);
        // fio cuts a few requests short that would meet one that it has sent.
        for size in our.sizes.keys().chain(fio.sizes.keys()) {
            near(*our.sizes.get(size).unwrap_or(&0.0), *fio.sizes.get(size).unwrap_or(&0.0));
        }
        // The same part of the target: within a hundredth of it at both ends.
        let margin = our.end.max(fio.end) / 100;
        assert!(our.first.abs_diff(fio.first) <= margin && our.end.abs_diff(fio.end) <= margin, "{}", words());
    }
}

/// The wanted job of a file, as we read it.
fn job(text: &str, section: &str) -> Result<FioJob, ReadError> {
    let sections = read_fio_job(text.as_bytes())?;
    sections.into_iter().find(|one| one.name == section).expect("the section is there").job
}

/// Job files with the section that is compared. All are understood.
fn jobs() -> Vec<(String, &'static str)> {
    let one = |options: &str| (format!("[a]\nioengine=libaio\ndirect=1\n{options}\n"), "a");
    let mut all: Vec<(String, &str)> = [
        "",
        "rw=read",
        "rw=write\nbs=64k",
        "readwrite=randread",
        "rw=randwrite",
        "rw=randrw",
        "rw=randrw\nrwmixread=80",
        "rw=randrw\nrwmixwrite=80",
        "rw=randrw\nrwmixread=70\nrwmixwrite=60",
        "rw=randrw\nrwmixwrite=60\nrwmixread=70",
        "rw=rw\nrwmixread=100",
        "rw=readwrite\nrwmixwrite=100",
        "rw=randread\npercentage_random=30",
        "rw=randwrite\npercentage_random=100,40",
        "rw=read\npercentage_random=30",
        "rw=randread\nbs=8k",
        "rw=randread\nblocksize=8k\nbs=16k",
        "rw=randread\nbs=16k\nblocksize=8k",
        "rw=randrw\nbs=4k,16k",
        "rw=write\nbs=4k,16k,1m",
        "rw=randread\nbs=20k",
        "rw=randread\nbs=4k\nba=64k",
        "rw=randread\nbs=64k\nblockalign=4k",
        "rw=randread\nbs=0x2000",
        "rw=randread\nbs=1m",
        "rw=randread\nbs=1024kb",
        "rw=randread\nbs=4KiB\nkb_base=1000",
        "rw=randread\nkb_base=1000\nbs=4KiB\noffset=512mib\nsize=1gib",
        "rw=randread\nbs=4k\noffset=512m\nsize=1g",
        "rw=randread\nbs=4k\nsize=2gb\nsize=1gb",
        "rw=read\nbs=4k\nfileoffset=512m\nsize=1g",
        "rw=randread\nbssplit=4k/50:64k/50",
        "rw=randrw\nbssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10",
        "rw=randread\nbssplit=4k/50:8k:16k",
        "rw=randread\nbssplit=4k:16k",
        "rw=randread\nbssplit=4k/50:8k/50\nbs=32k",
        "rw=randwrite\nbssplit=4k/100,8k/50:16k/50",
        "rw =randread   # comment\nbs\t=\t8k ; another\n; bs=16k\n  bs=32k;x#y",
        "rw=randread\r\nbs=8k\r",
        "rw=randread\nthread\ntime_based\nruntime=30\ngroup_reporting\nstonewall\nname=other\nnumjobs=4",
    ]
    .map(one)
    .into();
    let sections = "[global]   ; of all\nioengine=libaio\ndirect=1\nrw=randread\n[first job] # the first\nbs=8k\n\
                    [global again]\nbs=16k\n[second]\nrw=randwrite\n[Global]\nbs=32k\nrw=randrw\n[global]\nkb_base=1000\n\
                    [third]\nbs=64kib\n";
    all.extend(["first job", "second", "Global", "third"].map(|name| (sections.to_owned(), name)));
    all
}

#[test]
fn fio_sends_the_requests_that_the_reader_understands() {
    let Some(folder) = Folder::new("requests") else { return };
    for (text, section) in jobs() {
        let job = job(&text, section).unwrap_or_else(|error| panic!("{text}: {error}"));
        let fios = folder.requests(&text, section, &job);
        assert_eq!(fios.len(), REQUESTS, "{text}");
        assert_same(&format!("[{section}] of {text}"), &kinds(&ours(&job.spec)), &kinds(&fios));
    }
}

#[test]
fn the_depth_is_the_one_that_fio_keeps() {
    let Some(folder) = Folder::new("depth") else { return };
    for engine in ["ioengine=sync", "ioengine=psync", "ioengine=pvsync", "ioengine=pvsync2", "", "ioengine=libaio"] {
        let text = format!("[a]\nrw=randread\niodepth=16\ndirect=1\n{engine}\n");
        // The file of the test is buffered, because not all file systems do without. The engines keep the same depth.
        let output = folder.run(&text, "a", "filename=data\nsize=16777216\ndirect=0\nnumber_ios=400\n");
        let text_out = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: serde_json::Value =
            serde_json::from_str(text_out.find('{').map_or("", |at| &text_out[at..])).expect("JSON");
        let levels = json["jobs"][0]["iodepth_level"].as_object().expect("levels");
        // Percent of the requests that were sent at that number of outstanding requests.
        let deepest = levels.iter().filter(|(_, share)| share.as_f64().is_some_and(|share| share > 50.0));
        let deepest: Vec<&str> = deepest.map(|(level, _)| level.as_str()).collect();
        match job(&text, "a") {
            Ok(job) => assert_eq!(deepest, [job.depth.to_string()], "{text}"),
            Err(error) => {
                assert_eq!(deepest, ["1"], "{text}");
                assert!(error.reason.contains("keeps one request outstanding"), "{error}");
            }
        }
    }
}

#[test]
fn what_fio_refuses_is_refused() {
    let Some(folder) = Folder::new("refused") else { return };
    for text in [
        "bs=4k\n[a]\n",
        "[a]\nIODEPTH=4\n",
        "[a]\niodepth\n",
        "[a]\nbs=\"4k\"\n",
        "[a]\nrw=RandRead\n",
        "[a]\nbs=${OPENRAID_NOT_SET}\n",
        "[a]\nsize=(4*1024)\n",
        "[a]\nrwmixread=170\n",
        "[a]\nblurb=1\n",
        "[a]\nkb_base=999\n",
    ] {
        fs::write(folder.0.join("job.fio"), text).unwrap();
        let run = Command::new("fio").args(["--parse-only", "job.fio"]).current_dir(&folder.0).output().unwrap();
        assert!(!run.status.success(), "fio accepts {text}");
        let text = format!("{text}direct=1\n");
        let read = read_fio_job(text.as_bytes()).and_then(|mut all| all.remove(0).job);
        assert!(read.is_err(), "{text}");
    }
}

#[test]
fn every_option_of_fio_is_known() {
    let Some(_folder) = Folder::new("options") else { return };
    let listed = |arguments: &[&str]| {
        let output = Command::new("fio").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // NAME : WHAT IT IS; a line of the text alone begins with the colon.
        let name = |line: &str| line.split_once(':').map(|(name, _)| name.trim().to_owned());
        text.lines().filter_map(name).filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    let mut options = listed(&["--cmdhelp=all"]);
    assert!(options.len() > 150, "{options:?}");
    for engine in ["psync", "pvsync2", "libaio", "io_uring", "nbd"] {
        options.extend(listed(&[&format!("--enghelp={engine}")]));
    }
    for option in options {
        let text = format!("[a]\ndirect=1\n{option}=0\n");
        if let Err(error) = job(&text, "a") {
            assert!(!error.reason.contains("is not known; remove it"), "{error}");
        }
    }
}
