//! The content of a drive in words, for messages that ask whether it may be overwritten.

use openraid_format::ForeignKind;
use openraid_runtime::member::{Look, ProbedMember, Signature};

/// The content of a drive, as text.
pub fn contents(probed: &ProbedMember) -> String {
    named_in(&probed.look)
}

/// What was found in a look, as text.
pub fn named_in(look: &Look) -> String {
    let mut found: Vec<String> = Vec::new();
    if let Some(superblock) = &look.superblock {
        found.push(format!("a member of array {} ({})", superblock.set_name, superblock.set_uuid));
    }
    if let Some((minor, _)) = &look.superblock_error {
        found.push(format!("a damaged md superblock {minor}"));
    }
    let signatures = &look.foreign.signatures;
    // A superblock that was named already is not named again.
    let others: Vec<_> =
        signatures.iter().filter(|signature| found.is_empty() || !signature.is(ForeignKind::Md1)).collect();
    for (index, signature) in others.iter().enumerate() {
        let same = |other: &&&Signature| other.kind == signature.kind;
        if others[..index].iter().any(|other| same(&other)) {
            continue;
        }
        match others[index..].iter().filter(same).count() {
            1 => found.push(signature.to_string()),
            places => found.push(format!(
                "{} (at byte {} and {} more)",
                signature.description(),
                signature.at.get(),
                places - 1
            )),
        }
    }
    if let (true, Some(at)) = (found.is_empty(), look.foreign.data_at) {
        found.push(format!("data that openraid does not know (at byte {})", at.get()));
    }
    found.join(", ")
}
