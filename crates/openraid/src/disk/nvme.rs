//! The kernel's NVMe/TCP host, by `/dev/nvme-fabrics`: it connects again by itself, for as long as it takes.
//!
//! Source: `drivers/nvme/host/fabrics.c` for the options, `Documentation/ABI` and nvme-cli's files in `/etc/nvme`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use openraid_format::Uuid;
use openraid_runtime::service::Nqn;

use super::{
    attached_disks, blocks, in_sysfs, line_of, load, ArrayIdentity, ArrayOffer, AttachWay, AttachedDisk, DiskRecord,
};

const FABRICS: &str = "/dev/nvme-fabrics";
const CONTROLLERS: &str = "/sys/class/nvme";
/// Time for the kernel to find the namespace of a new controller.
const NAMESPACE_TIME_MAX: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const UUID_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// The name of the array's subsystem. A raw drive has none.
fn subsystem(identity: &ArrayIdentity) -> Option<String> {
    Some(Nqn::of_uuid(identity.uuid?.0).as_str().to_owned())
}

/// Is this block device a namespace of the array's subsystem? Its device in sysfs is the subsystem, or the only controller.
pub fn is_of(device: &str, identity: &ArrayIdentity) -> bool {
    let known = line_of(in_sysfs(device).join("device/subsysnqn"));
    known.is_some() && known == subsystem(identity)
}

/// The disk of an array by NVMe/TCP, also if another program has connected it.
pub fn disk_of(identity: &ArrayIdentity) -> Option<AttachedDisk> {
    // nvme0c1n1 is a path of nvme0n1, which has no file in /dev.
    let is_path = |device: &String| device.trim_start_matches("nvme").contains('c');
    let device = blocks("nvme").into_iter().find(|device| !is_path(device) && is_of(device, identity))?;
    let address = controllers(identity).first().and_then(|folder| line_of(folder.join("address"))).unwrap_or_default();
    Some(AttachedDisk { device, record: DiskRecord::new(AttachWay::NvmeTcp, identity, address) })
}

/// The controllers by which this machine has the array.
fn controllers(identity: &ArrayIdentity) -> Vec<PathBuf> {
    let wanted = subsystem(identity);
    let entries = fs::read_dir(CONTROLLERS).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_it = |folder: &PathBuf| wanted.is_some() && line_of(folder.join("subsysnqn")) == wanted;
    entries.filter(|folder| is_it(folder) && line_of(folder.join("transport")).as_deref() == Some("tcp")).collect()
}

/// Attaches the array.
///
/// # Errors
/// Why not, in words.
pub fn attach(offer: &ArrayOffer) -> Result<AttachedDisk, String> {
    let subsystem = subsystem(&offer.identity).ok_or("a raw drive is no subsystem of NVMe")?;
    let address = *offer
        .nvme
        .first()
        .ok_or("the server offers no NVMe/TCP (nvme = [\"127.0.0.1:4420\"] in [server], or serve --nvme)")?;
    load("nvme-tcp");
    if !Path::new(FABRICS).exists() {
        return Err("this kernel has no module nvme-tcp".into());
    }
    let (host, id) = host(Path::new("/etc"))?;
    // A killed program may have left a controller without a namespace.
    end(&offer.identity)?;
    let options = options(&subsystem, address, &host, &id);
    let connected = File::options().read(true).write(true).open(FABRICS).and_then(|mut fabrics| {
        fabrics.write_all(options.as_bytes())?;
        fabrics.read(&mut [0; 256])
    });
    let refused =
        |why| format!("{address} does not take host {host}: {why}; arrays.NAME.hosts names the hosts that may connect");
    let disk = connected.map_err(|error| refused(error.to_string())).and_then(|_| {
        let until = Instant::now() + NAMESPACE_TIME_MAX;
        while Instant::now() < until {
            if let Some(disk) = disk_of(&offer.identity) {
                return Ok(disk);
            }
            thread::sleep(LOOK_INTERVAL);
        }
        Err(format!("{address}: no namespace came in {} s", NAMESPACE_TIME_MAX.as_secs()))
    });
    let noted = disk.and_then(|disk| match disk.write() {
        Ok(()) => Ok(disk),
        Err(error) => Err(format!("{}: {error}", attached_disks::FOLDER)),
    });
    noted.inspect_err(|_| _ = end(&offer.identity))
}

/// `ctrl_loss_tmo`: it never gives up. `keep_alive_tmo`: the seconds after which a server that hangs is noticed.
fn options(subsystem: &str, address: SocketAddr, host: &str, id: &str) -> String {
    format!(
        "nqn={subsystem},transport=tcp,traddr={},trsvcid={},hostnqn={host},hostid={id},reconnect_delay=1,ctrl_loss_tmo=-1,\
         keep_alive_tmo=5",
        address.ip(),
        address.port()
    )
}

/// Name and identity of this host: those of nvme-cli, or both from the identity of this machine.
fn host(folder: &Path) -> Result<(String, String), String> {
    let of_machine = || Some(hyphened(line_of(folder.join("machine-id"))?.parse().ok()?));
    let name = line_of(folder.join("nvme/hostnqn")).filter(|name| !name.is_empty());
    let of_name = || Some(hyphened(name.as_deref()?.strip_prefix(UUID_NQN)?.parse().ok()?));
    let id = line_of(folder.join("nvme/hostid")).filter(|id| !id.is_empty()).or_else(of_name).or_else(of_machine);
    let id = id.ok_or("this machine has no identity: neither /etc/nvme/hostid nor /etc/machine-id")?;
    Ok((name.unwrap_or_else(|| format!("{UUID_NQN}{id}")), id))
}

/// A UUID in the usual form.
fn hyphened(uuid: Uuid) -> String {
    Nqn::of_uuid(uuid.0).as_str().trim_start_matches(UUID_NQN).to_owned()
}

/// Ends a disk.
///
/// # Errors
/// The kernel's refusal, in words.
pub fn detach(disk: &AttachedDisk) -> Result<(), String> {
    end(&disk.record.identity())
}

/// Ends all controllers by which this machine has the array.
fn end(identity: &ArrayIdentity) -> Result<(), String> {
    for folder in controllers(identity) {
        let ended = fs::write(folder.join("delete_controller"), "1");
        ended.map_err(|error| format!("the kernel does not end {}: {error}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_every_option_that_a_restart_needs() {
        let address = "[::1]:4420".parse().expect("an address");
        let wanted = "nqn=s,transport=tcp,traddr=::1,trsvcid=4420,hostnqn=h,hostid=i,reconnect_delay=1,ctrl_loss_tmo=-1,keep_alive_tmo=5";
        assert_eq!(options("s", address, "h", "i"), wanted);
    }

    #[test]
    fn the_host_is_that_of_nvme_cli_or_the_machine() {
        let folder = std::env::temp_dir().join(format!("openraid-host-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("nvme")).expect("room");
        let put = |name: &str, text: &str| fs::write(folder.join(name), text).expect("room");
        let known = || host(&folder);
        assert!(known().is_err());
        put("machine-id", "0123456789abcdef0123456789abcdef\n");
        let machine = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(known(), Ok((format!("{UUID_NQN}{machine}"), machine.into())));
        let other = "11234567-89ab-cdef-0123-456789abcdef";
        put("nvme/hostnqn", &format!("{UUID_NQN}{other}\n"));
        assert_eq!(known(), Ok((format!("{UUID_NQN}{other}"), other.into())));
        put("nvme/hostid", "another\n");
        assert_eq!(known(), Ok((format!("{UUID_NQN}{other}"), "another".into())));
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
