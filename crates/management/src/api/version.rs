//! The version of an array's state, for `ETag` and `If-Match`: it changes with what an administrator decides by, and not with
//! counters.

use openraid_status::ArrayModel;
use serde_json::{json, Value};

use crate::http::reply::Problem;
use crate::http::request::Request;

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
pub fn check(request: &Request, array: &ArrayModel) -> Result<(), Problem> {
    let Some(wanted) = request.header("if-match") else { return Ok(()) };
    let now = of(array);
    let fits = |own: &str| own.trim() == "*" || own.trim() == now;
    if wanted.split(',').any(fits) {
        return Ok(());
    }
    let text = format!("{} has changed since it was read (version {now} now); look again and repeat", array.name);
    Err(Problem::new(412, "stale", text).with("etag", now))
}
