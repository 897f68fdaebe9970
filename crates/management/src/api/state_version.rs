//! The version of an array's state, for `ETag` and `If-Match`: it changes with what an administrator decides by, and not with
//! counters.

use openraid_status::ArrayModel;
use serde_json::{json, Value};

use crate::http::reply::Problem;
use crate::http::request::HttpRequest;

/// The version, as `ETag` writes it.
pub fn of(array: &ArrayModel) -> String {
    hashed(&state(array).to_string())
}

/// The version of a text, as `ETag` writes it.
pub fn hashed(text: &str) -> String {
    // FNV-1a: two states that differ need other numbers by chance, not by proof.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("\"{hash:016x}\"")
}

/// The `ETag` of a document with a state that changes are conditional on. The first part is the version of that state, the second that of
/// the whole document.
pub fn in_two_parts(state: &str, document: &str) -> String {
    format!("\"{}-{}\"", state.trim_matches('"'), document.trim_matches('"'))
}

/// Is one of the versions in a header this one?
fn is_among(header: &str, is_it: impl Fn(&str) -> bool) -> bool {
    let versions = header.split(',').map(str::trim);
    versions
        .map(|version| version.trim_start_matches("W/").trim_matches('"'))
        .any(|version| version == "*" || is_it(version))
}

/// Does a header `If-Match` have this state? The second part of a version is not compared: a rebuild that continues refuses no change.
pub fn has_state(header: &str, state: &str) -> bool {
    is_among(header, |tag| tag.split('-').next() == Some(state.trim_matches('"')))
}

/// Does a header `If-None-Match` have this version of a document?
pub fn has_document(header: &str, version: &str) -> bool {
    is_among(header, |tag| tag == version.trim_matches('"'))
}

fn state(array: &ArrayModel) -> Value {
    let members = array.members.iter().map(|member| {
        json!([
            member.slot,
            member.drive,
            member.device,
            member.member,
            member.state,
            member.reason,
            member.replacement
        ])
    });
    json!({
        "name": array.name,
        "uuid": array.uuid,
        "health": array.health,
        "access": array.access,
        "exports": array.exports,
        "profile": array.profile.as_ref().map(|profile| &profile.name),
        "settings": array.settings,
        "task": array.task.as_ref().map(|task| (task.kind, task.paused)),
        "members": members.collect::<Vec<_>>(),
        "spans": array.spans.iter().map(state).collect::<Vec<_>>(),
    })
}

/// A request that names a version is carried out for that version only.
///
/// # Errors
/// The state has changed.
pub fn check(request: &HttpRequest, array: &ArrayModel) -> Result<(), Problem> {
    let Some(wanted) = request.header("if-match") else { return Ok(()) };
    let now = of(array);
    if has_state(wanted, &now) {
        return Ok(());
    }
    let text = format!("{} has changed since it was read (version {now} now); look again and repeat", array.name);
    Err(Problem::new(412, "stale", text).with("etag", now))
}

#[cfg(test)]
mod tests {
    use super::{has_document, has_state, in_two_parts};

    #[test]
    fn a_change_is_conditional_on_the_state_and_a_read_on_the_whole_document() {
        let (before, after) = (in_two_parts("\"a1\"", "\"b1\""), in_two_parts("\"a1\"", "\"b2\""));
        assert_eq!((before.as_str(), after.as_str()), ("\"a1-b1\"", "\"a1-b2\""));
        for (header, state, document) in [
            (before.as_str(), true, false),
            (after.as_str(), true, true),
            ("\"a1\"", true, false),
            ("*", true, true),
            ("\"a2-b2\", W/\"a1-b2\"", true, true),
            ("\"a2-b2\"", false, false),
            ("\"b2\"", false, false),
            ("", false, false),
        ] {
            assert_eq!((has_state(header, "\"a1\""), has_document(header, &after)), (state, document), "{header}");
        }
    }
}
