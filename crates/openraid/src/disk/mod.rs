//! An array as a disk of this machine: ways to attach it by what the kernel has, and what keeps it over restarts of the server.
//!
//! ```text
//!  nvme-tcp   the kernel connects again by itself
//!  nbd        a keeper hands the kernel a new socket; it is never in the path of data
//!  fuse       nbdfuse, nbdkit and a loop device, without a module for either
//!  qemu-nbd   made by older versions of the package, or by hand with the line of the console: it is found and detached
//! ```
//!
//! An array has one disk, whatever its names: two would have caches that do not know of each other. Everything here is done by root.

pub mod attached_disks;
pub mod device_name;
pub mod fuse;
pub mod keeper;
pub mod nbd;
pub mod nvme;
pub mod qemu;
pub mod systemd_units;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use openraid_format::Uuid;
use openraid_nbd::{NbdUri, Transport};
use serde::{Deserialize, Serialize};

pub use attached_disks::{AttachedDisk, DiskRecord};

use crate::model::{AccessWord, ArrayModel};

/// How an array is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttachWay {
    /// The kernel's NVMe/TCP host.
    NvmeTcp,
    /// The kernel's NBD client.
    Nbd,
    /// A file of nbdfuse under a loop device.
    Fuse,
    /// The kernel's NBD client, served by a qemu-nbd of an older version of the package, or of a user.
    QemuNbd,
}

impl AttachWay {
    /// Those by which an array can be attached, the best one first.
    pub const CHOICES: [Self; 3] = [Self::NvmeTcp, Self::Nbd, Self::Fuse];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NvmeTcp => "nvme-tcp",
            Self::Nbd => "nbd",
            Self::Fuse => "fuse",
            Self::QemuNbd => "qemu-nbd",
        }
    }

    /// The way that a user names.
    pub fn named(word: &str) -> Option<Self> {
        Self::CHOICES.into_iter().find(|way| way.word() == word)
    }
}

/// Which array a disk is of: by its identity if it has one, else by its names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayIdentity {
    pub uuid: Option<Uuid>,
    /// Its name, and the names of its exports.
    pub names: Vec<String>,
}

impl ArrayIdentity {
    pub fn of_model(array: &ArrayModel) -> Self {
        let others = array.exports.iter().filter(|name| **name != array.name);
        let names = std::iter::once(&array.name).chain(others).cloned().collect();
        Self { uuid: array.uuid.as_deref().and_then(|uuid| uuid.parse().ok()), names }
    }

    /// Has it this name, or this UUID?
    pub fn is_called(&self, word: &str) -> bool {
        let uuid = word.parse::<Uuid>().ok();
        self.names.iter().any(|name| name == word) || uuid.is_some() && uuid == self.uuid
    }

    /// Are both the same array?
    pub fn is(&self, other: &Self) -> bool {
        match (self.uuid, other.uuid) {
            (Some(uuid), Some(other)) => uuid == other,
            _ => self.names.iter().any(|name| other.names.contains(name)),
        }
    }
}

/// Where a server of this machine offers an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayOffer {
    pub identity: ArrayIdentity,
    /// Addresses of NBD, unix sockets first.
    pub nbd: Vec<String>,
    /// Addresses of NVMe/TCP.
    pub nvme: Vec<SocketAddr>,
    pub is_read_only: bool,
}

impl ArrayOffer {
    pub fn of(array: &ArrayModel) -> Self {
        let identity = ArrayIdentity::of_model(array);
        let mut nbd: Vec<String> = array.addresses.iter().filter(|text| reachable(text).is_some()).cloned().collect();
        nbd.sort_by_key(|text| !text.starts_with("nbd+unix:"));
        let nvme = array.addresses.iter().filter_map(|text| {
            let address = text.strip_prefix("nvme+tcp://")?.split('/').next()?.parse().ok()?;
            Some(from_here(address))
        });
        Self { identity, nbd, nvme: nvme.collect(), is_read_only: array.access == AccessWord::ReadOnly }
    }
}

/// An address of NBD, as this machine reaches it.
pub fn reachable(text: &str) -> Option<NbdUri> {
    let mut uri: NbdUri = text.parse().ok()?;
    if let Transport::Tcp { host, .. } = &mut uri.transport {
        if let Ok(address) = host.parse::<IpAddr>() {
            *host = from_here(SocketAddr::new(address, 0)).ip().to_string();
        }
    }
    Some(uri)
}

/// A server that listens at all addresses is reached by the loopback.
fn from_here(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The disk of an array, also if another program has attached it.
pub fn find(identity: &ArrayIdentity) -> Option<AttachedDisk> {
    let known = attached_disks::all().into_iter().find(|disk| disk.is_alive() && disk.record.identity().is(identity));
    known.or_else(|| nvme::disk_of(identity)).or_else(|| qemu::disk_of(identity))
}

/// Removes what killed programs and dead devices have left. A dead disk that is still used stays: [`in_the_way`].
pub fn sweep() {
    for disk in attached_disks::all().iter().filter(|disk| !disk.is_alive() && !is_used_dead(disk)) {
        device_name::remove(disk);
        attached_disks::remove(&disk.device);
    }
    fuse::sweep();
}

/// A dead disk of the array that is still mounted, and what uses it.
pub fn in_the_way(identity: &ArrayIdentity) -> Option<(AttachedDisk, String)> {
    let dead =
        attached_disks::all().into_iter().find(|disk| !disk.is_alive() && disk.record.identity().is(identity))?;
    let user = dead.user().filter(|_| is_used_dead(&dead))?;
    Some((dead, user))
}

/// A mount keeps a device after the death of its program: a second one would be another disk of the same array.
fn is_used_dead(disk: &AttachedDisk) -> bool {
    match disk.record.way {
        AttachWay::NvmeTcp | AttachWay::Nbd => false,
        AttachWay::Fuse => disk.user().is_some(),
        // The device may be that of another qemu-nbd by now.
        AttachWay::QemuNbd => qemu::process_of(&disk.device).is_none() && disk.user().is_some(),
    }
}

/// Attaches by one way.
///
/// # Errors
/// Why it cannot be done this way.
pub fn attach(way: AttachWay, offer: &ArrayOffer) -> Result<(AttachedDisk, Option<nbd::Stream>), String> {
    match way {
        AttachWay::NvmeTcp => nvme::attach(offer).map(|disk| (disk, None)),
        AttachWay::Nbd => nbd::attach(offer).map(|(disk, stream)| (disk, Some(stream))),
        AttachWay::Fuse => fuse::attach(offer).map(|disk| (disk, None)),
        AttachWay::QemuNbd => Err("it is not made any more".into()),
    }
}

/// Ends a disk that nothing uses, and forgets it.
///
/// # Errors
/// The kernel's refusal, in words.
pub fn detach(disk: &AttachedDisk) -> Result<(), String> {
    match disk.record.way {
        AttachWay::NvmeTcp => nvme::detach(disk),
        AttachWay::Nbd | AttachWay::QemuNbd => nbd::detach(disk),
        AttachWay::Fuse => fuse::detach(disk),
    }?;
    attached_disks::remove(&disk.device);
    device_name::remove(disk);
    Ok(())
}

/// Loads a module of the kernel. Whether that has helped is seen by what it makes.
fn load(module: &str) {
    let _ = run("modprobe", &["-q", module]);
}

/// Runs a program to its end. Returns what it printed.
///
/// # Errors
/// It is not installed, or what it said.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    // Programs of the administrator are in folders that a user's path may lack.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    command.env("PATH", &path).args(arguments).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A line of a small file of the kernel.
fn line_of(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end_matches('\n').to_owned())
}

/// The names of the block devices that begin so, in the order of their numbers.
fn blocks(begin: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// A block device in sysfs.
fn in_sysfs(device: &str) -> PathBuf {
    Path::new("/sys/block").join(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(uuid: Option<&str>, names: &[&str]) -> ArrayIdentity {
        let uuid = uuid.map(|uuid| uuid.parse().expect("a UUID"));
        ArrayIdentity { uuid, names: names.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn an_array_is_the_same_by_its_uuid_and_without_one_by_any_of_its_names() {
        let (one, two) = ("01234567:89abcdef:01234567:89abcdef", "11234567:89abcdef:01234567:89abcdef");
        let data = identity(Some(one), &["data", "vm1"]);
        assert!(data.is(&identity(Some(one), &["renamed"])));
        assert!(!data.is(&identity(Some(two), &["data"])));
        assert!(data.is(&identity(None, &["vm1"])) && identity(None, &["vm1", "x"]).is(&data));
        assert!(!data.is(&identity(None, &["other"])));
        assert!(data.is_called("vm1") && data.is_called("01234567-89ab-cdef-0123-456789abcdef"));
        assert!(!data.is_called(two) && !identity(None, &["data"]).is_called(one));
    }

    #[test]
    fn a_server_at_all_addresses_is_reached_by_the_loopback() {
        let host = |text: &str| match reachable(text).map(|uri| uri.transport) {
            Some(Transport::Tcp { host, port }) => format!("{host} {port}"),
            Some(Transport::Unix { socket }) => socket.display().to_string(),
            None => "none".into(),
        };
        assert_eq!(host("nbd://0.0.0.0:10809/data"), "127.0.0.1 10809");
        assert_eq!(host("nbd://[::]:10809/data"), "::1 10809");
        assert_eq!(host("nbd://192.0.2.7:10809/data"), "192.0.2.7 10809");
        assert_eq!(host("nbd+unix:///data?socket=/run/s"), "/run/s");
        assert_eq!(host("nbds://127.0.0.1:10810/data"), "none");
        assert_eq!(host("nvme+tcp://127.0.0.1:4420/nqn"), "none");
    }
}
