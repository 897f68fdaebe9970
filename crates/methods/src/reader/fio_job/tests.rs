use super::*;
use crate::load::{AccessLine, AccessManner};
use openraid_units::Nanos;

const JOBS: &str = "\
# A file server, after the well-known example
[global]   ; for all
ioengine=libaio
direct=1
rw=randrw  # both
rwmixread=80
bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10
runtime=30;seconds
[light]
iodepth=4
[heavy]   # later
stonewall
iodepth=64
numjobs=2
thinktime=100
offset=1g
size=2g
";

/// The one job of a file.
fn only(text: &str) -> Result<FioJob, ReadError> {
    read_fio_job(text.as_bytes()).and_then(|mut sections| sections.pop().expect("a job").job)
}

/// A job with these options besides what every job needs.
fn with(options: &str) -> Result<FioJob, ReadError> {
    only(&format!("[a]\n{options}\nioengine=libaio\ndirect=1\n"))
}

#[test]
fn a_job_with_fsync_gives_the_number_of_writes_between_flushes() {
    let read = |option: &str| with(&format!("rw=write\nbs=4k\n{option}")).map(|job| job.spec.manner().flush_every);
    assert_eq!(
        (read("fsync=1"), read("fdatasync=32"), read("fsync=0"), read("iodepth=1")),
        (Ok(Some(1)), Ok(Some(32)), Ok(None), Ok(None))
    );
    let error = read("fsync=often").unwrap_err();
    assert_eq!((error.line, error.reason.contains("fsync=\"often\" is not possible")), (4, true), "{error}");
    assert!(read("fsync=1\nfdatasync=2").unwrap_err().reason.contains("fsync and fdatasync"));
}

#[test]
fn the_file_server_example_is_the_file_server_mix_with_positions_as_in_fio() {
    let jobs = read_fio_job(JOBS.as_bytes()).unwrap();
    let names: Vec<&str> = jobs.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["light", "heavy"]);
    let jobs: Vec<FioJob> = jobs.into_iter().map(|section| section.job.unwrap()).collect();
    // fio places all sizes at multiples of the smallest.
    let placed = |line: &AccessLine| AccessLine { align: (line.bytes > 512).then_some(512), ..*line };
    let expected: Vec<AccessLine> = crate::load::file_server().lines().iter().map(placed).collect();
    assert_eq!(jobs[0].spec.lines(), expected);
    assert_eq!((jobs[0].depth, jobs[0].workers, jobs[0].runtime), (4, 1, Some(Nanos::from_secs(30))));
    assert_eq!((jobs[1].depth, jobs[1].workers), (64, 2));
    let manner =
        AccessManner { think: Some((1, 100_000)), start: Some(1 << 30), len: Some(2 << 30), ..AccessManner::default() };
    assert_eq!((jobs[0].spec.manner(), jobs[1].spec.manner()), (AccessManner::default(), manner));
}

#[test]
fn sections_are_those_of_fio() {
    let text = "[global]\nioengine=libaio\ndirect=1\nrw=randread\n[one job]\niodepth=2\niodepth=4\n\
                [global again]\nbs=8k\nloops=2\n[two]\niodepth=8\nloops=1\n[Global]\nloops=1\nblocksize=16k\n[three]\n";
    let jobs = read_fio_job(text.as_bytes()).unwrap();
    let found: Vec<(&str, Option<(u32, u32)>)> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.job.as_ref().ok().map(|job| (job.depth, job.spec.lines()[0].bytes))))
        .collect();
    // Only jobs after [global...] have its options, the last of several counts, and a capital letter makes it a job.
    let expected =
        [("one job", Some((4, 4096))), ("two", Some((8, 8192))), ("Global", Some((1, 16_384))), ("three", None)];
    assert_eq!(found, expected);
    // One that is not understood leaves the others as they are.
    let error = jobs[3].job.as_ref().unwrap_err();
    assert!(error.line == 10 && error.reason.starts_with("loops=\"2\" changes the load"), "{error}");
}

#[test]
fn each_direction_has_its_own_sizes() {
    let lines = |options: &str| with(options).map(|job| job.spec.lines().to_vec());
    let mixed = [AccessLine::new(4096, 70, 100, 100), AccessLine::new(8192, 30, 0, 100)];
    assert_eq!(lines("rw=randrw\nrwmixread=70\nbs=4k,8k"), Ok(mixed.to_vec()));
    assert_eq!(lines("rw=randrw\nrwmixread=70\nrwmixwrite=30\nbs=4k,8k,16k"), Ok(mixed.to_vec()));
    assert_eq!(lines("rw=randread\nbs=4k,8k"), Ok(vec![AccessLine::new(4096, 100, 100, 100)]));
    assert_eq!(lines("rw=write\nbs=4k,8k"), Ok(vec![AccessLine::new(8192, 100, 0, 0)]));
    assert_eq!(
        lines("rw=randread\nbs=20k"),
        Ok(vec![AccessLine { align: Some(20_480), ..AccessLine::new(20_480, 100, 100, 100) }])
    );
    // Sizes in a split count, whatever bs says, wherever it stands.
    assert_eq!(lines("rw=write\nbssplit=16k/100,8k/100\nbs=4k"), Ok(vec![AccessLine::new(8192, 100, 0, 0)]));
    assert!(lines("rw=randrw\nbssplit=4k/50:8k/50,16k/100").unwrap_err().reason.contains("apart for reads and writes"));
}

#[test]
fn percentage_random_makes_a_random_load_less_random_and_no_other_random() {
    for (rw, random) in [("randread", 30), ("randwrite", 30), ("read", 0), ("write", 0)] {
        let job = with(&format!("rw={rw}\npercentage_random=30")).unwrap();
        assert_eq!(job.spec.lines()[0].random, random, "{rw}");
    }
}

#[test]
fn entries_without_a_share_divide_the_rest_evenly() {
    let shares = |text: &str| {
        let job = with(&format!("rw=read\nbssplit={text}")).unwrap();
        job.spec.lines().iter().map(|line| (line.bytes, line.share)).collect::<Vec<_>>()
    };
    assert_eq!(shares("4k/50:8k:16k"), [(4096, 50), (8192, 25), (16_384, 25)]);
    assert_eq!(shares("4k:8k:16k"), [(4096, 33), (8192, 33), (16_384, 34)]);
}

#[test]
fn depth_and_page_cache_are_as_fio_has_them() {
    let read =
        |text: &str| only(&format!("[a]\nrw=randread\n{text}\n")).map(|job| job.depth).map_err(|e| e.to_string());
    for engine in ["libaio", "io_uring", "windowsaio"] {
        assert_eq!(read(&format!("ioengine={engine}\ndirect=1\niodepth=8")), Ok(8), "{engine}");
        assert_eq!(read(&format!("ioengine={engine}\nbuffered=0\niodepth=8")), Ok(8), "{engine}");
        for cached in ["", "\ndirect=0", "\nbuffered=1", "\ndirect=1\nbuffered=1"] {
            let error = read(&format!("ioengine={engine}\niodepth=8{cached}")).unwrap_err();
            assert!(error.contains("uses the page cache") && error.contains("write direct=1"), "{error}");
        }
    }
    assert_eq!((read("ioengine=nbd\niodepth=8"), read("direct=1")), (Ok(8), Ok(1)));
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio"] {
        assert_eq!(read(&format!("ioengine={engine}\ndirect=1")), Ok(1), "{engine}");
        let error = read(&format!("iodepth=8\ndirect=1\nioengine={engine}")).unwrap_err();
        assert!(error.starts_with(&format!("line 5: ioengine=\"{engine}\" ")) && error.contains("iodepth asks for 8"));
    }
    let error = read("direct=1\niodepth=32").unwrap_err();
    assert!(error.starts_with("line 4: iodepth=32 without ioengine: fio takes psync, which keeps one"), "{error}");
    for engine in ["mmap", "splice", "null", "external:x.so", "${E}"] {
        assert!(
            read(&format!("direct=1\nioengine={engine}")).unwrap_err().starts_with("line 4: ioengine="),
            "{engine}"
        );
    }
}

#[test]
fn garbage_is_refused_with_its_line() {
    for (text, expected) in [
        ("bs=4k\n", "line 1: \"bs=4k\" stands before any [section]"),
        ("[a]\nbs=4x\n", "line 2: bs=\"4x\" is not possible"),
        ("[a]\nrw=trim\ndirect=1\n", "line 2: rw=\"trim\" is not understood"),
        ("[a]\nrw=randread:8\ndirect=1\n", "line 2: rw=\"randread:8\" is not understood"),
        ("[a]\nrw=rw\ndirect=1\n", "line 2: rw=rw: fio continues reads and writes each where its own"),
        ("[a]\nrw=randrw\ndirect=1\npercentage_random=50\n", "line 4: percentage_random=\"50\": fio continues"),
        ("[a]\nrw=randrw\ndirect=1\nrate_iops=50\n", "line 4: rate_iops=\"50\": fio limits reads and writes each"),
        ("[a]\nzonemode=zbd\n", "line 2: zonemode=\"zbd\" changes the load (requests inside one zone after another)"),
        ("[a]\nblurb=2\n", "line 2: option \"blurb\" is not known; remove it if it does not change the load"),
        ("[a]\nIODEPTH=2\n", "line 2: option \"IODEPTH\" is not known"),
        ("[a]\niodepth\n", "line 2: iodepth=\"\" is not possible"),
        ("[a]\nbs=4KiB\ndirect=1\n", "line 2: job \"a\": line 1: requests of 4000 bytes"),
        ("[a]\nkb_base=1000\nbs=4k\ndirect=1\n", "line 3: job \"a\": line 1: requests of 4000 bytes"),
        ("[a]\nkb_base=1001\n", "line 2: kb_base is neither"),
        ("[a]\nbs=$pagesize\n", "line 2: bs=\"$pagesize\": fio replaces a word with $"),
        ("[a]\nbs=4k,,8k\ndirect=1\n", "line 2: bs=\"4k,,8k\" is not a value for each direction"),
        ("include other.fio\n[a]\nrw=read\n", "line 1: \"include other.fio\" reads another file; put the lines"),
        ("[a]\ninclude other.fio\n", "line 2: \"include other.fio\" reads another file; put the lines"),
        ("[a]\nfilename=/dev/sda:/dev/sdb\n", "line 2: filename=\"/dev/sda:/dev/sdb\": several files in turn"),
        ("[a\n", "line 1: \"[a\" has no closing bracket; write a section as [name]"),
        ("[a] rw=read\n", "line 1: \"[a] rw=read\" has text after the closing bracket"),
        ("[global]\nbs=4k\n", "no job in it"),
        ("", "the file is empty"),
        ("[a]\n\nbssplit=4k/60:8k/60\ndirect=1\n", "line 3: job \"a\": the shares of the sizes add to 120 %"),
        ("[a]\nsize=50%\n", "line 2: size=\"50%\": shares of the target are not understood; give bytes"),
        ("[a]\nnrfiles=8\n", "line 2: nrfiles=\"8\" changes the load"),
        ("[a]\ndirect=0\n", "line 2: direct=0: fio uses the page cache"),
        ("[a]\nend_fsync=1\n", "line 2: end_fsync=\"1\" changes the load"),
        ("[a]\niodepth_batch=8\n", "line 2: iodepth_batch=\"8\" changes the load"),
        ("[a]\niodepth_low=8\n", "line 2: iodepth_low=\"8\" changes the load ("),
        ("[a]\ndirectory=/x\n", "line 2: directory=\"/x\" changes the load ("),
        ("[a]\nio_size=1g\n", "line 2: io_size=\"1g\" changes the load ("),
        ("[a]\nrate_iops=10\nnumjobs=4\ndirect=1\n", "line 2: rate_iops=10 for each of 4 jobs"),
        ("[a]\ndirect=1\n[b]\n[a]\nbs=4k\n", "line 4: a second job \"a\"; rename one"),
        ("[a]\nruntime=soon\n", "line 2: runtime=\"soon\" is not a time"),
        ("[a]\nruntime=30sec\n", "line 2: runtime=\"30sec\" is not a time"),
    ] {
        let error = only(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    assert!(with("bs=4KiB").unwrap_err().reason.contains("KiB is 1000 to fio unless kb_base=1000"));
    assert!(read_fio_job(&[0xff, 0xfe, 10][..]).unwrap_err().reason.contains("UTF-8"));
    let long = vec![b'a'; super::super::LINE_BYTES_MAX + 10];
    assert!(read_fio_job(&long[..]).unwrap_err().reason.contains("longer than"));
}

#[test]
fn options_that_describe_another_load_are_refused_by_name() {
    for option in [
        "random_distribution=zipf:1.2",
        "sync=1",
        "loops=4",
        "number_ios=100",
        "rate=10m",
        "rate_min=1m",
        "rate_process=poisson",
        "startdelay=5",
        "bsrange=4k-64k",
        "bs_unaligned",
        "verify=crc32c",
        "zonesize=1g",
        "latency_target=5ms",
        "iodepth_batch_complete_max=8",
        "file_service_type=random",
        "rw_sequencer=identical",
        "write_barrier=32",
        "trim_percentage=10",
        "dedupe_percentage=50",
        "replay_no_stall=1",
    ] {
        let error = with(&format!("rw=randrw\n{option}")).unwrap_err();
        let name = option.split('=').next().unwrap_or_default();
        let is_explained =
            error.reason.starts_with(&format!("{name}=")) && error.reason.contains("is not supported; record it");
        assert_eq!((error.line, is_explained), (3, true), "{error}");
        assert!(!error.reason.contains("if it does not change"), "{error}");
    }
    // With their defaults they change nothing.
    let plain = "rw=randrw\nzonemode=none\nrandom_distribution=random\nloops=1\nsync=0\nverify=0\nunlink=1";
    assert_eq!(with(plain), with("rw=randrw"));
}
