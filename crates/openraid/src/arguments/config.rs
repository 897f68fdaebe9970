//! `openraid config` and its file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What `config` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration file is /etc/openraid/openraid.toml for root, if it exists, else $XDG_CONFIG_HOME/openraid/openraid.toml \
(without that variable ~/.config). `openraid serve` reads it, or the file of --config. docs/config.md has every key.

Example:
  [server]
  nbd = [\"127.0.0.1:10809\"]
  cache = \"1G\"

  [arrays.data]
  access = \"read-write\"
  exports = [\"data\", \"vm1\"]
  [arrays.data.settings]
  rebuild.rate = \"50M\"

  [[spares]]
  member = \"/dev/disk/by-id/ata-SPARE\"
  for = \"all\"")]
pub struct ConfigArguments {
    /// What to do
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// The verbs for a configuration.
#[derive(Subcommand, Debug)]
pub enum ConfigVerb {
    /// Show the meaning of a file, or list all of its mistakes
    Check {
        /// The file [default: the one that `serve` would read]
        file: Option<PathBuf>,
    },
    /// Say whether a device belongs to an array of the registry or the configuration file, and end with 0 if it does;
    /// for udev rules
    Member {
        /// The device
        device: PathBuf,
    },
    /// Print udev rules that name every array of the registry and the configuration file, so that the kernel's md driver
    /// leaves the members alone where openraid is not installed: in the initramfs
    Udev,
    /// Show the desired state in force, and where each value comes from
    Show {
        /// Show the state that this file would bring into force [default: ask the server that runs]
        file: Option<PathBuf>,
    },
}
