//! For tests: a journal on two files.

use std::path::PathBuf;

use openraid_format::{JournalSuperblock, Uuid};
use openraid_sys::Use;

use super::find::{look_beside, FoundDevices, LookFor};
use super::hanging_devices::HangCheck;
use super::write_superblocks::{make, write_superblock};
use super::{JournalStartError, LastUse};
use crate::member::{open, MemberSpec, OpenOptions, OpenedMember};

const JOURNAL: Uuid = Uuid([2; 16]);
const EPOCH: u64 = 5;

/// Two devices of a journal, of which the second has carried it alone.
pub(super) struct Pair {
    folder: PathBuf,
    pub specs: Vec<MemberSpec>,
    /// What was made on each, before the second went on alone.
    pub superblocks: Vec<JournalSuperblock>,
}

impl Pair {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("openraid-pair-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = |file| folder.join(file).to_str().expect("UTF-8").to_owned();
        let specs: Vec<MemberSpec> = ["j0", "j1"].map(|file| name(file).parse().expect("a name")).into();
        for spec in &specs {
            std::fs::File::create(&spec.text).and_then(|file| file.set_len(16 << 20)).expect("a file");
        }
        let mut pair = Self { folder, specs, superblocks: Vec::new() };
        let opened = pair.open();
        pair.superblocks = make(&opened, JOURNAL, Uuid([1; 16])).expect("a journal");
        let alone = JournalSuperblock { mirrors: 1, mirror: 0, epoch: EPOCH, ..pair.superblocks[1].clone() };
        write_superblock(&opened[1], &alone).expect("written");
        pair
    }

    pub fn open(&self) -> Vec<OpenedMember> {
        self.specs.iter().map(|spec| open(spec, options()).expect("it opens")).collect()
    }

    pub fn look(&self, held: &HangCheck) -> Result<FoundDevices, JournalStartError> {
        let last_uses = vec![LastUse { journal: JOURNAL, epoch: EPOCH, devices: 2, entry: 0 }];
        look_beside(&self.specs, options(), &LookFor { last_uses, ..LookFor::default() }, held)
    }

    pub fn path(&self, device: usize) -> PathBuf {
        PathBuf::from(&self.specs[device].text)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn options() -> OpenOptions {
    OpenOptions::new(Use::Exclusive)
}
