//! A JSON file that only the server may read: mode 0600, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use serde::{de::DeserializeOwned, Deserialize, Serialize};

/// Maximum size of such a file.
const BYTES_MAX: u64 = 256 << 10;

/// A file, and the format that it has.
#[derive(Debug)]
pub struct PrivateFile {
    path: PathBuf,
    /// The content in words, for messages.
    about: &'static str,
    schema: &'static str,
}

#[derive(Serialize, Deserialize)]
struct Content<T> {
    schema: String,
    #[serde(flatten)]
    body: T,
}

impl PrivateFile {
    /// A file at this path, which need not be there yet. `about` names the content, `schema` the format.
    pub const fn at(path: PathBuf, about: &'static str, schema: &'static str) -> Self {
        Self { path, about, schema }
    }

    /// The content, or nothing if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, has another format, or others may read it; the text says what to do.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        let wrong = |why: String| format!("the file of {} {}: {why}", self.about, self.path.display());
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| wrong(error.to_string()))?,
        };
        let mode = file.metadata().map_err(|error| wrong(error.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(wrong(format!("its mode is {mode:03o}, so that others may read or change it; chmod 600 it")));
        }
        let mut text = String::new();
        let damaged = |error: &dyn std::fmt::Display| {
            wrong(format!(
                "{error}; restore the file from a backup, or move it away and make the {} again (`openraid login` gives a link)",
                self.about
            ))
        };
        file.take(BYTES_MAX).read_to_string(&mut text).map_err(|error| damaged(&error))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
        // The version comes first: the form of another one may be any.
        match value["schema"].as_str() {
            Some(schema) if schema != self.schema => {
                let why = "a newer version of openraid wrote it; install that version again";
                return Err(wrong(format!("its format is {schema:?}, not {:?}: {why}", self.schema)));
            }
            _ => {}
        }
        let content: Content<T> = serde_json::from_value(value).map_err(|error| damaged(&error))?;
        Ok(Some(content.body))
    }

    /// Replace the content.
    ///
    /// # Errors
    /// The file cannot be written; the old content stays.
    pub fn write<T: Serialize>(&self, body: T) -> Result<(), String> {
        self.replace(&Content { schema: self.schema.into(), body })
            .map_err(|error| format!("the file of {} {} cannot be written: {error}", self.about, self.path.display()))
    }

    fn replace<T: Serialize>(&self, content: &Content<T>) -> io::Result<()> {
        let folder = self.path.parent().ok_or(ErrorKind::NotFound)?;
        fs::create_dir_all(folder)?;
        let fresh = self.path.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        serde_json::to_writer_pretty(&mut file, content)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        File::open(folder)?.sync_all()
    }
}
