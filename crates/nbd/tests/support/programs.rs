//! Runs foreign programs. If a program is not installed, its test is skipped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Is this program installed? If not, the test says so and passes.
pub fn installed(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        assert!(
            std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(),
            "{program} is not installed: Debian package {package}"
        );
        // Written directly to standard error, because the test framework captures other output.
        let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed (Debian package {package})");
    }
    found
}

/// Runs a program to its end and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("the program starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?} ended with {}: {text}", output.status);
    text
}

/// A folder for one test, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-nbd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made for the test");
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.file(name).to_str().expect("temporary paths are text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A foreign server that is stopped at the end.
pub struct Server(Child);

impl Server {
    /// Starts a program and waits until its socket exists.
    pub fn start(program: &str, arguments: &[&str], socket: &Path) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut server = Self(child);
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            let ended = server.0.try_wait().expect("the server can be asked");
            assert!(ended.is_none(), "{program} {arguments:?} ended with {ended:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
