//! The capacity of a block device's link, from the kernel's figures: the lanes of the PCI Express devices on the path,
//! and the negotiated speed of a SATA link. No rate of the device is above the lowest of these.

use std::fs;
use std::path::Path;

/// Rate of payload that this device can exchange with the machine, in MB/s (10^6 bytes). None if no part of the path
/// reports its speed. `sysfs` is `/sys`, or another folder in tests.
pub(super) fn link_mbps(sysfs: &Path, device: &str) -> Option<f64> {
    let block = fs::canonicalize(sysfs.join("class/block").join(device)).ok()?;
    let speeds = block
        .ancestors()
        .take_while(|folder| folder.starts_with(sysfs))
        .flat_map(|folder| [pcie(folder), sata(folder)]);
    speeds.flatten().reduce(f64::min)
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

    #[test]
    fn the_slowest_link_on_the_way_to_a_device_counts() {
        let root = std::env::temp_dir().join(format!("openraid-link-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let make = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // A disk on a host adapter: SATA with 6 Gbit/s, and four lanes of the third PCI Express generation.
        make("devices/pci0/ata1/link1/ata_link/link1/sata_spd", "6.0 Gbps\n");
        make("devices/pci0/current_link_speed", "8.0 GT/s PCIe\n");
        make("devices/pci0/current_link_width", "4\n");
        make("devices/pci0/ata1/link1/dev/block/sdx/size", "1\n");
        make("devices/nvme0/current_link_speed", "2.5 GT/s PCIe\n");
        make("devices/nvme0/current_link_width", "1\n");
        make("devices/nvme0/block/nvme0n1/size", "1\n");
        make("devices/virtual/block/loop0/size", "1\n");
        fs::create_dir_all(root.join("class/block")).unwrap();
        for (name, place) in [
            ("sdx", "devices/pci0/ata1/link1/dev/block/sdx"),
            ("nvme0n1", "devices/nvme0/block/nvme0n1"),
            ("loop0", "devices/virtual/block/loop0"),
        ] {
            symlink(root.join(place), root.join("class/block").join(name)).unwrap();
        }
        let root = fs::canonicalize(&root).unwrap();
        let found = ["sdx", "nvme0n1", "loop0", "none"].map(|name| link_mbps(&root, name));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [Some(600.0), Some(250.0), None, None]);
    }
}
