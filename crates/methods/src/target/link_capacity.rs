//! The capacity of a block device's link, from the kernel's figures: the lanes of the PCI Express devices on the path,
//! and the negotiated speed of a SATA link. No rate of the device is above the lowest of these. A device that the kernel
//! makes of others (md, device mapper) has their links.

use std::fs;
use std::path::{Path, PathBuf};

/// Rate of payload that this device can exchange with the machine, in MB/s (10^6 bytes). None if no part of the path
/// reports its speed. `sysfs` is `/sys`, or another folder in tests.
pub(super) fn link_mbps(sysfs: &Path, device: &str) -> Option<f64> {
    let block = fs::canonicalize(sysfs.join("class/block").join(device)).ok()?;
    slowest(sysfs, &block).or_else(|| of_parts(sysfs, &block))
}

/// The slowest link on the way to a device.
fn slowest(sysfs: &Path, block: &Path) -> Option<f64> {
    let speeds = block
        .ancestors()
        .take_while(|folder| folder.starts_with(sysfs))
        .flat_map(|folder| [pcie(folder), sata(folder)]);
    speeds.flatten().reduce(f64::min)
}

/// All links of the devices that a device is made of, together, and not more than a link that all of them share. None
/// if the speed of one of them is not known.
fn of_parts(sysfs: &Path, block: &Path) -> Option<f64> {
    let names = fs::read_dir(block.join("slaves")).ok()?.filter_map(Result::ok);
    let names: Vec<String> = names.filter_map(|part| part.file_name().into_string().ok()).collect();
    let parts: Vec<PathBuf> =
        names.iter().filter_map(|name| fs::canonicalize(sysfs.join("class/block").join(name)).ok()).collect();
    let all = names.iter().map(|name| link_mbps(sysfs, name)).sum::<Option<f64>>()?;
    let shared = parts.first()?.ancestors().find(|folder| parts.iter().all(|part| part.starts_with(folder)))?;
    Some(slowest(sysfs, shared).map_or(all, |shared| shared.min(all)))
}

fn word(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// A device on PCI Express: transfers per second and lane, minus the line code, times the number of lanes.
fn pcie(folder: &Path) -> Option<f64> {
    let speed = word(&folder.join("current_link_speed"))?;
    let lanes: f64 = word(&folder.join("current_link_width"))?.parse().ok()?;
    let giga: f64 = speed.split_whitespace().next()?.parse().ok()?;
    // 8b/10b up to the second generation, 128b/130b after it.
    let coded = if giga < 8.0 { 8.0 / 10.0 } else { 128.0 / 130.0 };
    (lanes > 0.0).then_some(giga * coded * 1000.0 / 8.0 * lanes)
}

/// A SATA link: its line rate minus the 8b/10b line code.
fn sata(folder: &Path) -> Option<f64> {
    let links = fs::read_dir(folder.join("ata_link")).ok()?;
    let of_link = |link: fs::DirEntry| {
        let speed = word(&link.path().join("sata_spd"))?;
        speed.split_whitespace().next()?.parse::<f64>().ok()
    };
    links.filter_map(Result::ok).filter_map(of_link).reduce(f64::max).map(|giga| giga * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder like `/sys` with these files and devices. The result is the rate of each of `wanted`.
    fn found(name: &str, files: &[(&str, &str)], devices: &[(&str, &str)], wanted: &[&str]) -> Vec<Option<f64>> {
        let root = std::env::temp_dir().join(format!("openraid-link-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.join("class/block")).unwrap();
        for (name, place) in devices {
            fs::create_dir_all(root.join(place)).unwrap();
            symlink(root.join(place), root.join("class/block").join(name)).unwrap();
        }
        let root = fs::canonicalize(&root).unwrap();
        let found = wanted.iter().map(|name| link_mbps(&root, name)).collect();
        fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn the_slowest_link_on_the_way_to_a_device_counts() {
        // A disk on a host adapter: SATA with 6 Gbit/s, and four lanes of the third PCI Express generation.
        let files = [
            ("devices/pci0/ata1/link1/ata_link/link1/sata_spd", "6.0 Gbps\n"),
            ("devices/pci0/current_link_speed", "8.0 GT/s PCIe\n"),
            ("devices/pci0/current_link_width", "4\n"),
            ("devices/nvme0/current_link_speed", "2.5 GT/s PCIe\n"),
            ("devices/nvme0/current_link_width", "1\n"),
        ];
        let devices = [
            ("sdx", "devices/pci0/ata1/link1/dev/block/sdx"),
            ("nvme0n1", "devices/nvme0/block/nvme0n1"),
            ("loop0", "devices/virtual/block/loop0"),
        ];
        let found = found("way", &files, &devices, &["sdx", "nvme0n1", "loop0", "none"]);
        assert_eq!(found, [Some(600.0), Some(250.0), None, None]);
    }

    #[test]
    fn an_array_of_the_kernel_has_the_links_of_its_parts_and_what_they_share() {
        // Three disks with 600 MB/s each on an adapter with 1,000 MB/s.
        let mut files = vec![
            ("devices/pci0/current_link_speed", "5.0 GT/s PCIe\n"),
            ("devices/pci0/current_link_width", "2\n"),
            ("devices/nvme0/current_link_speed", "2.5 GT/s PCIe\n"),
            ("devices/nvme0/current_link_width", "1\n"),
        ];
        let spd = [1, 2, 3].map(|n| format!("devices/pci0/ata{n}/link/ata_link/link/sata_spd"));
        files.extend(spd.iter().map(|path| (path.as_str(), "6.0 Gbps\n")));
        let devices = [
            ("sda", "devices/pci0/ata1/link/dev/block/sda"),
            ("sdb", "devices/pci0/ata2/link/dev/block/sdb"),
            ("sdc", "devices/pci0/ata3/link/dev/block/sdc"),
            ("nvme0n1", "devices/nvme0/block/nvme0n1"),
            ("loop0", "devices/virtual/block/loop0"),
            ("md0", "devices/virtual/block/md0"),
            ("md1", "devices/virtual/block/md1"),
            ("md2", "devices/virtual/block/md2"),
        ];
        let parts = ["md0/slaves/sda", "md0/slaves/sdb", "md0/slaves/sdc", "md1/slaves/sda", "md1/slaves/nvme0n1"];
        let parts = parts.map(|part| format!("devices/virtual/block/{part}/size"));
        files.extend(parts.iter().map(|path| (path.as_str(), "1\n")));
        files.extend([
            ("devices/virtual/block/md2/slaves/sda/size", "1\n"),
            ("devices/virtual/block/md2/slaves/loop0/size", "1\n"),
        ]);
        let found = found("parts", &files, &devices, &["md0", "md1", "md2"]);
        assert_eq!(found, [Some(1000.0), Some(850.0), None]);
    }
}
