//! The units of a disk at every boot: `openraid-disk@NAME.service` attaches and detaches, `openraid-disk-keeper@NAME.service` keeps.
//! They are two, because systemd restarts what requires a unit that it restarts: the mount must not end with a keeper that was killed.

use std::fs;
use std::path::{Path, PathBuf};

use super::{attached_disks, run};
use crate::failure::Failure;

/// The templates of the package.
const TEMPLATES: [(&str, &str); 2] = [
    ("openraid-disk@.service", include_str!("../../../../packaging/disk/openraid-disk@.service")),
    ("openraid-disk-keeper@.service", include_str!("../../../../packaging/disk/openraid-disk-keeper@.service")),
];
/// The program in the templates.
const PROGRAM: &str = "/usr/bin/openraid";
const ADMINISTRATORS: &str = "/etc/systemd/system";

/// The unit of an array's disk.
pub fn unit_of(name: &str) -> String {
    format!("openraid-disk@{}.service", instance(name))
}

/// Does this unit attach the disk at every boot?
pub fn is_enabled(name: &str) -> bool {
    let wants = Path::new(ADMINISTRATORS).join("multi-user.target.wants");
    fs::symlink_metadata(wants.join(unit_of(name))).is_ok()
}

/// Enables and starts the unit of an array. Templates that are not installed are written.
///
/// # Errors
/// systemd does not run here, or refuses.
pub fn enable(name: &str) -> Result<String, Failure> {
    if !Path::new("/run/systemd/system").exists() {
        return Err(Failure::refused(
            "--unit: systemd does not run here; let another program call `openraid attach` at the boot",
        ));
    }
    write_templates().map_err(|error| Failure::failed(format!("{ADMINISTRATORS}: {error}")))?;
    let unit = unit_of(name);
    let hint = |why: String| {
        Failure::failed(format!("{why}; `systemctl status '{unit}'` and `journalctl -u '{unit}'` say more"))
    };
    run("systemctl", &["enable", "--now", "--", &unit]).map_err(hint)?;
    Ok(unit)
}

fn write_templates() -> std::io::Result<()> {
    let folders = ["/usr/lib/systemd/system", "/lib/systemd/system", ADMINISTRATORS].map(PathBuf::from);
    let mut is_new = false;
    for (name, text) in TEMPLATES {
        if !folders.iter().any(|folder| folder.join(name).exists()) {
            let program = std::env::current_exe()?;
            fs::write(Path::new(ADMINISTRATORS).join(name), text.replace(PROGRAM, &program.display().to_string()))?;
            is_new = true;
        }
    }
    if is_new {
        let _ = run("systemctl", &["daemon-reload"]);
    }
    Ok(())
}

/// A name as systemd-escape writes it for an instance.
fn instance(name: &str) -> String {
    let is_plain =
        |at: usize, byte: u8| byte.is_ascii_alphanumeric() || b":_".contains(&byte) || byte == b'.' && at > 0;
    let one = |(at, byte)| match byte {
        b'/' => "-".to_owned(),
        _ if is_plain(at, byte) => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    name.bytes().enumerate().map(one).collect()
}

/// The line of `/etc/fstab` for a mount of a disk, without the folder of any file system. In it a backslash begins an escape.
pub fn fstab_line(name: &str) -> String {
    let unit = unit_of(name).replace('\\', "\\134");
    let link = format!("{}/{}", attached_disks::LINKS, attached_disks::link_name(name));
    format!("{link} /srv/{} ext4 nofail,_netdev,x-systemd.requires={unit} 0 2", attached_disks::link_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_written_as_systemd_escape_does() {
        assert_eq!(unit_of("data"), "openraid-disk@data.service");
        assert_eq!(instance("a-b/c.d"), r"a\x2db-c.d");
        assert_eq!(instance(".it's 50%"), r"\x2eit\x27s\x2050\x25");
        assert_eq!(instance("\u{fc}_:"), r"\xc3\xbc_:");
        assert!(fstab_line("a-b").contains(r"requires=openraid-disk@a\134x2db.service"));
    }
}
