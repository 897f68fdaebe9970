//! The thin pool under a device of the device mapper: the storage that has to be extended when a thin volume has no room.

use std::path::Path;

use crate::member_facts::{text, Sysfs};
use crate::room_wait::{below, device_of, targets, DEPTH_MAX};

/// The name of the thin pool under a device, as the device mapper has it; none if there is none, or the kernel does not say.
#[must_use]
pub fn thin_pool(device: u64) -> Option<String> {
    let is_pool = |disk: &Path| {
        let device = text(&disk.join("dev")).and_then(|number| device_of(&number));
        device.and_then(targets).is_some_and(|all| all.iter().any(|target| target == "thin-pool"))
    };
    pool_under(Sysfs::of(device)?.disk(), DEPTH_MAX, &is_pool)
}

fn pool_under(disk: &Path, depth: u32, is_pool: &dyn Fn(&Path) -> bool) -> Option<String> {
    let below = below(disk);
    let pool = below.iter().find(|disk| is_pool(disk)).and_then(|disk| text(&disk.join("dm/name")));
    pool.or_else(|| below.iter().find_map(|disk| pool_under(disk, depth.checked_sub(1)?, is_pool)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_pool_under_a_volume_on_a_thin_volume_is_named_and_a_circle_ends() {
        let folder = std::env::temp_dir().join(format!("openraid-thin-pool-{}", std::process::id()));
        let disk = |name: &str, mapped: &str, below: &[&str]| {
            let disk = folder.join(name);
            fs::create_dir_all(disk.join("dm")).and_then(|()| fs::create_dir_all(disk.join("slaves"))).expect("room");
            fs::write(disk.join("dm/name"), format!("{mapped}\n")).expect("room");
            for other in below {
                std::os::unix::fs::symlink(folder.join(other), disk.join("slaves").join(other)).expect("room");
            }
            disk
        };
        let top = disk("dm-4", "crypt", &["dm-3"]);
        disk("dm-3", "vg-data", &["dm-2"]);
        disk("dm-2", "vg-pool-tpool", &["dm-0", "dm-1"]);
        let (meta, data) = (disk("dm-0", "vg-pool_tmeta", &[]), disk("dm-1", "vg-pool_tdata", &["dm-5"]));
        let circle = disk("dm-5", "circle", &["dm-5"]);
        let is_pool = |disk: &Path| disk.ends_with("dm-2");
        assert_eq!(pool_under(&top, DEPTH_MAX, &is_pool).as_deref(), Some("vg-pool-tpool"));
        for other in [meta, data, circle] {
            assert_eq!(pool_under(&other, DEPTH_MAX, &is_pool), None, "{}", other.display());
        }
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
