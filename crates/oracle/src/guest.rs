//! A Linux kernel as an ordinary process, with image files as drives.
//!
//! One boot costs a second of a processor, most of which the kernel spends on measuring its code for RAID 6, and an array in it a
//! third of one, so a test puts many arrays into one boot. Images are attached as loop devices over the host's files (any number), whose writes stay in the
//! guest's memory until flushed, or as `ubd` disks (16 at most), whose writes reach the host's file at once.
//!
//! Must never: outlive its owner (the whole process group is killed), or write to the host anywhere but in
//! its work folder and to the attached images.

use crate::error::OracleError;
use crate::extended_state;
use crate::processor;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Memory of the guest. Page cache of all images and of all stripe caches must fit.
const MEMORY_MIB: u32 = 512;
/// The kernel's `ubd` driver has letters a to p.
const UBD_DISKS_MAX: usize = 16;
/// Minors of loop devices that the guest's device nodes are made for.
const LOOP_DEVICES_MAX: usize = 1024;
/// How often a waiting thread looks whether the guest has ended.
const POLL: Duration = Duration::from_millis(10);
/// How much of a log goes into an error.
const LOG_TAIL_BYTES: usize = 2000;

const INIT: &str = include_str!("guest-init.pl");
const WORDS: &str = include_str!("guest-lib.sh");

/// A guest that has not been booted yet: its drives and its job.
#[derive(Debug, Default)]
pub struct Guest {
    loops: Vec<Loop>,
    disks: Vec<PathBuf>,
    job: String,
    has_no_raid6: bool,
}

#[derive(Debug)]
struct Loop {
    image: PathBuf,
    block_bytes: u32,
}

/// The results of a guest.
#[derive(Debug)]
pub struct GuestOutput {
    /// The `key=value` results of the job.
    pub values: BTreeMap<String, String>,
    /// Everything the job printed.
    pub log: String,
    /// From boot to halt.
    pub took: Duration,
    work: WorkFolder,
}

/// A guest that runs. Dropping it kills it.
#[derive(Debug)]
pub struct RunningGuest {
    child: Child,
    work: WorkFolder,
    start: Instant,
}

#[derive(Debug)]
struct WorkFolder(PathBuf);

impl Guest {
    /// A guest without drives that does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Attach an existing image file as a drive with 512-byte blocks; returns the device's name in the guest.
    /// Writes to it reach the file when they are flushed, or when the guest ends in order.
    pub fn image(&mut self, image: impl AsRef<Path>) -> String {
        self.image_with_blocks(image, 512)
    }

    /// As [`Guest::image`], of several; the names in the same order.
    pub fn images(&mut self, images: &[impl AsRef<Path>]) -> Vec<String> {
        images.iter().map(|image| self.image(image)).collect()
    }

    /// As [`Guest::image`], with logical blocks of 512 to 4096 bytes.
    pub fn image_with_blocks(&mut self, image: impl AsRef<Path>, block_bytes: u32) -> String {
        assert!(self.loops.len() < LOOP_DEVICES_MAX, "at most {LOOP_DEVICES_MAX} images in one guest");
        self.loops.push(Loop { image: image.as_ref().to_path_buf(), block_bytes });
        format!("/dev/loop{}", self.loops.len() - 1)
    }

    /// Attach an existing image file as one of at most 16 disks whose writes reach the file at once; returns the
    /// device's name in the guest. The right choice for power cuts that lose only writes in flight.
    pub fn disk(&mut self, image: impl AsRef<Path>) -> String {
        assert!(self.disks.len() < UBD_DISKS_MAX, "at most {UBD_DISKS_MAX} write-through disks in one guest");
        self.disks.push(image.as_ref().to_path_buf());
        format!("/dev/ubd{}", char::from(b'a' + u8::try_from(self.disks.len() - 1).expect("16 at most")))
    }

    /// The kernel does not measure its code for RAID 6, which takes most of a boot's processor time, and then has none: an array of
    /// level 6 ends the guest.
    pub fn without_raid6(&mut self) -> &mut Self {
        self.has_no_raid6 = true;
        self
    }

    /// Append lines to the job: bash, with the words of `guest-lib.sh` (create, assemble, fill, digest, check,
    /// add, stop, examine, stamp, say). The first failing command ends the job.
    pub fn script(&mut self, lines: &str) -> &mut Self {
        self.job.push_str(lines);
        self.job.push('\n');
        self
    }

    /// Boot, run the job to its end, halt.
    ///
    /// # Errors
    /// A missing package, a guest that did not end within `timeout`, a job that failed.
    pub fn run(&self, timeout: Duration) -> Result<GuestOutput, OracleError> {
        self.start()?.wait(timeout)
    }

    /// Boot and return at once, for tests that pull the power.
    ///
    /// # Errors
    /// A missing package, an image that is not there.
    pub fn start(&self) -> Result<RunningGuest, OracleError> {
        let kernel = program("linux.uml", "user-mode-linux")?;
        program("mdadm", "mdadm")?;
        let work = WorkFolder::make()?;
        let init = work.0.join("init.pl");
        work.write("job.sh", &self.job_text())?;
        work.write("images", &self.images_text()?)?;
        work.write("guest-lib.sh", WORDS)?;
        work.write("results", "")?;
        work.write("init.pl", INIT)?;
        make_executable(&init)?;
        let console = fs::File::create(work.0.join("console.log")).map_err(|error| work.error("console.log", error))?;
        let said_too = console.try_clone().map_err(|error| work.error("console.log", error))?;
        let mut command = on_one_processor(&kernel);
        if let Some(library) = extended_state::library(&work.0)? {
            command.env("LD_PRELOAD", library);
        }
        command
            .arg(format!("mem={MEMORY_MIB}M"))
            .args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=null,fd:1", "umid=guest"])
            // 256 terminals that nothing uses take a quarter of a second.
            .arg("pty.legacy_count=0")
            .args(self.has_no_raid6.then_some("initcall_blacklist=raid6_select_algo"))
            .arg(format!("init={}", init.display()))
            .arg(format!("OUT={}", work.0.display()))
            .arg(format!("uml_dir={}", work.0.display()));
        for (n, disk) in self.disks.iter().enumerate() {
            let letter = char::from(b'a' + u8::try_from(n).expect("16 at most"));
            command.arg(format!("ubd{letter}={}", real(disk)?.display()));
        }
        // A process group of its own: the kernel is several processes, and all of them must end together.
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(said_too)
            .spawn()
            .map_err(|error| OracleError::File { path: PathBuf::from("linux.uml"), error })?;
        Ok(RunningGuest { child, work, start: Instant::now() })
    }

    fn job_text(&self) -> String {
        let stamp = stamp_program().map(|stamp| format!("STAMP={}\n", quote(&stamp))).unwrap_or_default();
        format!(". ./guest-lib.sh\n{stamp}{}", self.job)
    }

    /// What the guest's first program attaches: the size of the blocks and the path of each image.
    fn images_text(&self) -> Result<String, OracleError> {
        let line = |drive: &Loop| Ok(format!("{} {}\n", drive.block_bytes, real(&drive.image)?.display()));
        self.loops.iter().map(line).collect()
    }
}

impl RunningGuest {
    /// Wait for the end of the job.
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub fn wait(mut self, timeout: Duration) -> Result<GuestOutput, OracleError> {
        while self.child.try_wait().map_err(|error| self.work.error("console.log", error))?.is_none() {
            if self.start.elapsed() > timeout {
                self.kill();
                return Err(OracleError::Timeout { after: timeout, log: self.work.tail("job.log") });
            }
            std::thread::sleep(POLL);
        }
        let took = self.start.elapsed();
        self.kill();
        let work = std::mem::replace(&mut self.work, WorkFolder(PathBuf::new()));
        let Ok(code) = work.read("job.rc")?.trim().parse::<i32>() else {
            return Err(OracleError::NoResult { console: work.tail("console.log") });
        };
        if code != 0 {
            return Err(OracleError::JobFailed { code, log: work.tail("job.log") });
        }
        let values = parse_values(&work.read("results")?);
        Ok(GuestOutput { values, log: work.read("job.log")?, took, work })
    }

    /// The process group of the guest.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Wait until the job has reported `key`, and return its value.
    ///
    /// # Errors
    /// The guest ended or the time was over before.
    pub fn wait_for(&mut self, key: &str, timeout: Duration) -> Result<String, OracleError> {
        loop {
            if let Some(value) = parse_values(&self.work.read("results")?).remove(key) {
                return Ok(value);
            }
            if self.child.try_wait().map_err(|error| self.work.error("console.log", error))?.is_some() {
                return Err(OracleError::NoValue { key: key.to_owned(), log: self.work.tail("job.log") });
            }
            if self.start.elapsed() > timeout {
                self.kill();
                return Err(OracleError::Timeout { after: timeout, log: self.work.tail("job.log") });
            }
            std::thread::sleep(POLL);
        }
    }

    /// A file that the job writes in its folder, as far as it is written.
    ///
    /// # Errors
    /// The file is there but cannot be read.
    pub fn file(&self, name: &str) -> Result<String, OracleError> {
        self.work.read(name)
    }

    /// Cut the guest's power: it stops at once and flushes nothing. Its files can still be read.
    pub fn power_cut(&mut self) {
        self.kill();
    }

    /// End all processes of the guest, and return when they are gone: one that is still dying may still write.
    fn kill(&mut self) {
        let group = self.child.id();
        let _ = Command::new("sh").args(["-c", &format!("kill -9 -{group} 2>/dev/null")]).status();
        let _ = self.child.wait();
        // Dead processes without a parent to reap them keep the group alive, so this has an end.
        let gone =
            format!("n=0; while kill -0 -{group} && [ $n -lt 200 ]; do n=$((n+1)); sleep 0.01; done 2>/dev/null");
        let _ = Command::new("sh").args(["-c", &gone]).stderr(Stdio::null()).status();
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

impl GuestOutput {
    /// The value of a key.
    ///
    /// # Errors
    /// The job did not report it.
    pub fn value(&self, key: &str) -> Result<&str, OracleError> {
        self.values
            .get(key)
            .map(String::as_str)
            .ok_or_else(|| OracleError::NoValue { key: key.to_owned(), log: self.work.tail("job.log") })
    }

    /// The value of a key; empty if the job did not report it, for checks that show the actual value.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// A file that the job left in its folder; empty if there is none.
    ///
    /// # Errors
    /// The file is there but cannot be read.
    pub fn file(&self, name: &str) -> Result<String, OracleError> {
        self.work.read(name)
    }
}

impl WorkFolder {
    fn make() -> Result<Self, OracleError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("openraid-guest-{}-{n}", std::process::id()));
        let made = fs::create_dir(&path).and_then(|()| path.canonicalize());
        made.map(Self).map_err(|error| OracleError::File { path, error })
    }

    fn error(&self, name: &str, error: io::Error) -> OracleError {
        OracleError::File { path: self.0.join(name), error }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), OracleError> {
        fs::write(self.0.join(name), text).map_err(|error| self.error(name, error))
    }

    /// The text of a file; nothing if there is no such file.
    fn read(&self, name: &str) -> Result<String, OracleError> {
        match fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(self.error(name, error)),
        }
    }

    fn tail(&self, name: &str) -> String {
        let text = self.read(name).unwrap_or_default();
        let start = (text.len().saturating_sub(LOG_TAIL_BYTES)..text.len()).find(|at| text.is_char_boundary(*at));
        text[start.unwrap_or(text.len())..].to_owned()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // For looking at a guest that went wrong.
        if !self.0.as_os_str().is_empty() && std::env::var_os("OPENRAID_ORACLE_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The path of a program, or the package that has it.
fn program(name: &'static str, package: &'static str) -> Result<PathBuf, OracleError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from));
    let found = places.into_iter().map(|place| place.join(name)).find(|file| file.is_file());
    found.ok_or(OracleError::Missing { program: name, package })
}

/// A command that runs a program on one processor, if `taskset` of util-linux is there.
fn on_one_processor(path: &Path) -> Command {
    let (Ok(taskset), Some(number)) = (program("taskset", "util-linux"), processor::next()) else {
        return Command::new(path);
    };
    let mut command = Command::new(taskset);
    command.args(["-c", &number]).arg(path);
    command
}

/// The stamp program of this build: next to the running test, or one folder up.
fn stamp_program() -> Option<PathBuf> {
    let me = std::env::current_exe().ok()?;
    me.ancestors().skip(1).take(3).map(|folder| folder.join("openraid-stamp")).find(|file| file.is_file())
}

fn real(path: &Path) -> Result<PathBuf, OracleError> {
    path.canonicalize().map_err(|error| OracleError::File { path: path.to_path_buf(), error })
}

fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn make_executable(path: &Path) -> Result<(), OracleError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| OracleError::File { path: path.to_path_buf(), error })
}

fn parse_values(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
