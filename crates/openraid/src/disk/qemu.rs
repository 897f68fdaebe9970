//! Devices that qemu-nbd has connected to an array: older versions of the package have made them, and users by hand. They are found by
//! the command line of the device's process.

use std::fs;

use super::attached_disks::{AttachedDisk, DiskRecord};
use super::{blocks, in_sysfs, line_of, ArrayIdentity, AttachWay};
use openraid_nbd::NbdUri;

/// The qemu-nbd of a device.
struct QemuProcess {
    process: u32,
    arguments: Vec<String>,
}

/// All is read of the thread that serves the device: a killed process loses its command line before that thread ends.
fn of_device(device: &str) -> Option<QemuProcess> {
    let thread = line_of(in_sysfs(device).join("pid"))?;
    let arguments = arguments(&thread);
    arguments.first().filter(|program| program.rsplit('/').next() == Some("qemu-nbd"))?;
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
    Some(QemuProcess { process, arguments })
}

/// The process of a device, if it is qemu-nbd.
pub fn process_of(device: &str) -> Option<u32> {
    of_device(device).map(|qemu| qemu.process)
}

fn arguments(thread: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{thread}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The disk of an array by qemu-nbd.
pub fn disk_of(identity: &ArrayIdentity) -> Option<AttachedDisk> {
    blocks("nbd").into_iter().find_map(|device| {
        let address = address_of(&device, identity)?;
        Some(AttachedDisk { device, record: DiskRecord::new(AttachWay::QemuNbd, identity, address) })
    })
}

/// Where the qemu-nbd of a device has this array from.
pub fn address_of(device: &str, identity: &ArrayIdentity) -> Option<String> {
    let is_it = |name: &String| identity.names.contains(name);
    of_device(device)?.arguments.into_iter().find(|word| export_of(word).as_ref().is_some_and(is_it))
}

/// The export that an argument names: a URI, or an option in which two commas stand for one.
fn export_of(word: &str) -> Option<String> {
    if let Ok(uri) = word.parse::<NbdUri>() {
        return Some(uri.export);
    }
    let plain = word.replace(",,", "\0");
    let value = plain.split(',').find_map(|part| part.strip_prefix("export="))?;
    Some(value.replace('\0', ","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_export_stands_in_an_option_or_in_an_address() {
        let package =
            "driver=nbd,server.type=unix,server.path=/run/openraid-nbd/nbd.sock,export=a,,b c,reconnect-delay=300";
        assert_eq!(export_of(package).as_deref(), Some("a,b c"));
        assert_eq!(export_of("nbd+unix:///data?socket=/run/s").as_deref(), Some("data"));
        for other in ["--cache=none", "/dev/nbd0", "driver=nbd,reexport=x", ""] {
            assert_eq!(export_of(other), None, "{other}");
        }
    }
}
