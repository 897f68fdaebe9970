//! `openraid config udev`: rules for a place where openraid itself is not, the initramfs. They name each array by its
//! identity.

use std::collections::BTreeMap;

use openraid_format::Uuid;
use openraid_runtime::member::Place;
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::desired::{self, model};
use crate::failure::{Exit, Outcome};
use crate::members::{open_some, options, spec};

/// The rules, and the arrays in them.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct UdevRules {
    /// The arrays, in the order of their identities.
    arrays: Vec<RuledArray>,
    /// The file of rules.
    rules: String,
}

/// An array whose members the kernel's md driver must leave alone.
#[derive(Serialize, utoipa::ToSchema)]
struct RuledArray {
    /// Identity of the md array as udev writes it (`ID_FS_UUID`); each span of a nested array has its own.
    uuid: String,
    /// Name of the array.
    array: String,
}

/// Prints the rules for every array of the registry and the configuration file. A registry that cannot be read as a whole counts with the
/// identities and paths in it.
pub fn run(context: &Context) -> Outcome {
    let desired = desired::default_path().and_then(|path| desired::load(&path).ok()).unwrap_or_default();
    let config = model::config(None, Vec::new(), &desired, &context.registry.entries_or_traces());
    let mut arrays = BTreeMap::new();
    for array in &config.arrays {
        let named = array.uuid.as_ref().and_then(|uuid| uuid.parse().ok());
        for uuid in named.into_iter().chain(on_members(&array.members)) {
            arrays.insert(as_udev(uuid), array.name.clone());
        }
    }
    let arrays: Vec<RuledArray> = arrays.into_iter().map(|(uuid, array)| RuledArray { uuid, array }).collect();
    let rules = rules(&arrays);
    let text = rules.trim_end().to_owned();
    Ok(context.output.answer(Exit::Fine, &UdevRules { arrays, rules }, &text))
}

/// The identities in the superblocks of the members that can be read on this machine: of a nested array those of its
/// spans, which the registry does not have.
fn on_members(members: &[String]) -> Vec<Uuid> {
    let is_local = |spec: &openraid_runtime::member::MemberSpec| matches!(spec.place, Place::Path(_));
    let specs: Vec<_> = members.iter().filter_map(|member| spec(member).ok()).filter(is_local).collect();
    let (opened, _) = open_some(&specs, options(Use::Examine));
    opened
        .iter()
        .filter_map(|(_, probed)| probed.look.superblock.as_ref().map(|superblock| superblock.set_uuid))
        .collect()
}

/// The form of `ID_FS_UUID`: 8-4-4-4-12 digits, with the bytes in their order on disk.
fn as_udev(uuid: Uuid) -> String {
    let digits: String = uuid.to_string().chars().filter(|letter| *letter != ':').collect();
    [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]).join("-")
}

fn rules(arrays: &[RuledArray]) -> String {
    let mut text = "# Members of these arrays belong to openraid: the rules of md must not assemble them.\n\
                    # `openraid config udev` writes this file. Changes by hand are lost.\n"
        .to_owned();
    for RuledArray { uuid, .. } in arrays {
        text += &format!(
            "SUBSYSTEM==\"block\", ACTION==\"add|change\", ENV{{ID_FS_TYPE}}==\"linux_raid_member\", \
             ENV{{ID_FS_UUID}}==\"{uuid}\", ENV{{ID_FS_TYPE}}=\"openraid_member\", ENV{{UDISKS_IGNORE}}=\"1\"\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_written_as_udev_writes_it() {
        let uuid: Uuid = "01234567:89abcdef:01234567:89abcdef".parse().expect("32 digits");
        assert_eq!(as_udev(uuid), "01234567-89ab-cdef-0123-456789abcdef");
    }
}
