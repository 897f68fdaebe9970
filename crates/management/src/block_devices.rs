//! Block devices of this machine that nothing uses, by util-linux's `lsblk`: what an administrator may make an array of.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Names of the system for drives that stay over a reboot.
const BY_ID: &str = "/dev/disk/by-id";
/// Beginnings of names that no label shows.
const UNREADABLE: [&str; 4] = ["wwn-", "nvme-eui.", "nvme-uuid.", "dm-uuid-"];
/// Kinds of devices that an array is made of.
const KINDS: [&str; 5] = ["disk", "part", "lvm", "crypt", "mpath"];
/// Beginnings of the paths of devices that are disks of a server, perhaps of this one, or memory.
const NOT_DRIVES: [&str; 4] = ["/dev/nbd", "/dev/ublkb", "/dev/zram", "/dev/ram"];
/// Devices at most in one answer.
const DEVICES_MAX: usize = 1024;

/// A block device that nothing uses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct BlockDeviceModel {
    /// Path that stays over a reboot, if there is one; otherwise the kernel's path.
    pub path: String,
    /// Path that the kernel gives to the device now.
    pub device: String,
    /// Size of the device.
    pub size_bytes: u64,
    /// Model of the drive.
    pub model: Option<String>,
    /// Serial number of the drive, as on its label.
    pub serial: Option<String>,
    /// Does the drive rotate?
    pub rotates: bool,
    /// Signature on the device, such as `ext4`, `gpt` or `linux_raid_member`; null if there is none that is known.
    pub holds: Option<String>,
}

#[derive(Deserialize)]
struct Listing {
    blockdevices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    path: String,
    size: Option<u64>,
    model: Option<String>,
    serial: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    fstype: Option<String>,
    pttype: Option<String>,
    #[serde(default)]
    mountpoints: Vec<Option<String>>,
    ro: bool,
    rota: bool,
    #[serde(default)]
    children: Vec<Device>,
}

/// All devices that nothing uses, without those in `used`, in the order of their paths. Nothing if there is no `lsblk`.
pub fn unused(used: &[String]) -> Vec<BlockDeviceModel> {
    let mut command = Command::new("lsblk");
    command.args(["--json", "-b", "-o", "PATH,SIZE,MODEL,SERIAL,TYPE,FSTYPE,PTTYPE,MOUNTPOINTS,RO,ROTA"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let used: HashSet<PathBuf> = used.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    found(&text, &used, &lasting_names(Path::new(BY_ID)))
}

/// The devices in an answer of `lsblk`. `names` has the lasting name of each device.
fn found(text: &[u8], used: &HashSet<PathBuf>, names: &HashMap<PathBuf, String>) -> Vec<BlockDeviceModel> {
    let Ok(listing) = serde_json::from_slice::<Listing>(text) else { return Vec::new() };
    let mut all = Vec::new();
    listing.blockdevices.into_iter().for_each(|device| collect(device, used, names, &mut all));
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all.dedup_by(|a, b| a.device == b.device);
    all.truncate(DEVICES_MAX);
    all
}

fn collect(device: Device, used: &HashSet<PathBuf>, names: &HashMap<PathBuf, String>, all: &mut Vec<BlockDeviceModel>) {
    let path = PathBuf::from(&device.path);
    let size_bytes = device.size.unwrap_or(0);
    let is_used = !device.children.is_empty() || device.mountpoints.iter().any(Option::is_some) || used.contains(&path);
    device.children.into_iter().for_each(|child| collect(child, used, names, all));
    let is_drive =
        KINDS.contains(&device.kind.as_str()) && !NOT_DRIVES.iter().any(|start| device.path.starts_with(start));
    if is_used || device.ro || size_bytes == 0 || !is_drive {
        return;
    }
    let plain = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    // The table of a partition is that of the drive around it.
    let table = device.pttype.filter(|_| device.kind != "part");
    all.push(BlockDeviceModel {
        path: names.get(&path).cloned().unwrap_or_else(|| device.path.clone()),
        device: device.path,
        size_bytes,
        model: plain(device.model),
        serial: plain(device.serial),
        rotates: device.rota,
        holds: plain(device.fstype).or_else(|| plain(table)),
    });
}

/// The first readable name of each device, by the device that it leads to.
fn lasting_names(folder: &Path) -> HashMap<PathBuf, String> {
    let mut names = HashMap::new();
    let mut links: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|link| link.path()).collect();
    links.sort();
    for link in links {
        let name = link.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if UNREADABLE.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        if let (Ok(device), Some(text)) = (fs::canonicalize(&link), link.to_str()) {
            names.entry(device).or_insert_with(|| text.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As util-linux 2.38 answers on a machine with a system drive, a member, a free drive, one with a file system, and more.
    const ANSWER: &str = r#"{"blockdevices": [
        {"path":"/dev/sda","size":480103981056,"model":"S3500  ","serial":"BTWL1","type":"disk","fstype":null,"pttype":"gpt",
         "mountpoints":[null],"ro":false,"rota":false,"children":[
            {"path":"/dev/sda1","size":536870912,"model":null,"serial":null,"type":"part","fstype":"vfat","pttype":"gpt",
             "mountpoints":["/boot/efi"],"ro":false,"rota":false},
            {"path":"/dev/sda2","size":1073741824,"model":null,"serial":null,"type":"part","fstype":null,"pttype":"gpt",
             "mountpoints":[null],"ro":false,"rota":false}]},
        {"path":"/dev/sdb","size":4000787030016,"model":"WD40","serial":"WCC1","type":"disk","fstype":"linux_raid_member",
         "pttype":null,"mountpoints":[null],"ro":false,"rota":true},
        {"path":"/dev/sdc","size":4000787030016,"model":"WD40","serial":"WCC2","type":"disk","fstype":null,"pttype":null,
         "mountpoints":[null],"ro":false,"rota":true},
        {"path":"/dev/sdd","size":4000787030016,"model":null,"serial":null,"type":"disk","fstype":"ext4","pttype":null,
         "mountpoints":[null],"ro":false,"rota":true},
        {"path":"/dev/sde","size":1000,"model":null,"serial":null,"type":"disk","fstype":"swap","pttype":null,
         "mountpoints":["[SWAP]"],"ro":false,"rota":true},
        {"path":"/dev/sr0","size":1000,"type":"rom","model":null,"serial":null,"fstype":null,"pttype":null,"ro":false,"rota":true},
        {"path":"/dev/sdf","size":0,"type":"disk","model":null,"serial":null,"fstype":null,"pttype":null,"ro":false,"rota":true},
        {"path":"/dev/sdg","size":9,"type":"disk","model":null,"serial":null,"fstype":null,"pttype":null,"ro":true,"rota":true},
        {"path":"/dev/nbd1","size":9,"type":"disk","model":null,"serial":null,"fstype":null,"pttype":null,"ro":false,"rota":false},
        {"path":"/dev/zram0","size":9,"type":"disk","model":null,"serial":null,"fstype":null,"pttype":null,"ro":false,"rota":false}]}"#;

    #[test]
    fn devices_in_use_are_left_out_and_lasting_names_are_given() {
        let used = HashSet::from([PathBuf::from("/dev/sdb")]);
        let names = HashMap::from([(PathBuf::from("/dev/sdc"), "/dev/disk/by-id/ata-WD40_WCC2".to_owned())]);
        let all = found(ANSWER.as_bytes(), &used, &names);
        let shown: Vec<(&str, Option<&str>)> =
            all.iter().map(|device| (device.path.as_str(), device.holds.as_deref())).collect();
        let wanted = [("/dev/disk/by-id/ata-WD40_WCC2", None), ("/dev/sda2", None), ("/dev/sdd", Some("ext4"))];
        assert_eq!(shown, wanted);
        assert_eq!(
            (all[0].serial.as_deref(), all[0].size_bytes, all[0].rotates),
            (Some("WCC2"), 4_000_787_030_016, true)
        );
        assert!(found(b"lsblk: no", &used, &names).is_empty() && found(b"{}", &used, &names).is_empty());
    }

    #[test]
    fn the_name_that_a_label_shows_is_taken() {
        let folder = std::env::temp_dir().join(format!("openraid-by-id-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("room");
        let device = fs::canonicalize(&folder).expect("a folder").join("device");
        fs::write(&device, "").expect("room");
        for name in ["wwn-0x5000", "ata-WD40_WCC2", "scsi-SATA_WD40"] {
            std::os::unix::fs::symlink(&device, folder.join(name)).expect("room");
        }
        let names = lasting_names(&folder);
        assert_eq!(names.get(&device).map(String::as_str), folder.join("ata-WD40_WCC2").to_str());
        fs::remove_dir_all(folder).expect("own folder");
    }
}
