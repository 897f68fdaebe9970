//! Members that the kernel's md driver has: rules of udev, in the initramfs for example, gave them to it before openraid ran.
//!
//! md leaves an array that nothing uses as it was (`read-auto`). Such an array is ended, and openraid serves it. Any other
//! is left alone, and the message says what to do.

use std::path::Path;

use openraid_format::Uuid;
use openraid_runtime::member::{MemberSpec, Place};
use openraid_sys::{KernelMd, Use};

use crate::members::{open_some, options};

/// End the arrays of md that have these members, if md has changed nothing and the array is a known one. Returns a sentence for
/// each that was ended.
pub fn take_back(specs: &[MemberSpec], is_known: impl Fn(Uuid) -> bool) -> Vec<String> {
    let mut done = Vec::new();
    for spec in specs {
        let Some(array) = over(spec).filter(KernelMd::is_untouched) else { continue };
        // Another array may have taken the name of this drive.
        let (opened, _) = open_some(std::slice::from_ref(spec), options(Use::Examine));
        let superblock = opened.iter().find_map(|(_, probed)| probed.look.superblock.as_ref());
        if !superblock.is_some_and(|superblock| is_known(superblock.set_uuid)) {
            continue;
        }
        let state = array.state();
        // If it is in use, the open fails and says so.
        if array.end().is_ok() {
            done.push(format!(
                "the kernel's md had the members of array {} as {} ({state}, never written): ended, they are served here",
                superblock.map(|superblock| superblock.set_name.to_string()).unwrap_or_default(),
                array.path().display()
            ));
        }
    }
    done
}

/// What to do about a member that the kernel's md has, if it has it.
pub fn advice(spec: &str) -> Option<String> {
    let array = KernelMd::over(Path::new(spec))?;
    let (path, state) = (array.path(), array.state());
    let path = path.display();
    Some(format!(
        "the kernel's md has it as {path} ({state}): unmount {path}, `mdadm --stop {path}`, then \
         `openraid assemble ARRAY`. So that md does not take it at the next boot: {}",
        remake_initramfs(is_installed)
    ))
}

/// The command that makes the initramfs of this machine again.
fn remake_initramfs(is_installed: impl Fn(&str) -> bool) -> &'static str {
    match (is_installed("update-initramfs"), is_installed("dracut")) {
        (true, _) => "`update-initramfs -u`",
        (false, true) => "`dracut --force --regenerate-all`",
        (false, false) => "make its initramfs again (`update-initramfs -u`, or `dracut --force --regenerate-all`)",
    }
}

/// Is the program in a folder for programs? The path of a service need not have those of root.
fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

fn over(spec: &MemberSpec) -> Option<KernelMd> {
    match &spec.place {
        Place::Path(path) => KernelMd::over(path),
        Place::Ram(_) | Place::Model(_) | Place::Remote(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::remake_initramfs;

    #[test]
    fn the_initramfs_is_made_by_the_program_of_this_machine() {
        let with = |programs: &'static [&str]| remake_initramfs(|program| programs.contains(&program));
        assert_eq!(with(&["update-initramfs"]), "`update-initramfs -u`");
        assert_eq!(with(&["update-initramfs", "dracut"]), "`update-initramfs -u`");
        assert_eq!(with(&["dracut"]), "`dracut --force --regenerate-all`");
        assert!(with(&[]).contains("update-initramfs") && with(&[]).contains("dracut"));
    }
}
