//! How NVMe hosts reach an array by the addresses of a server, in words.

use openraid_runtime::service::PathState;

/// The kept setting.
pub const PATH: &str = "path";
/// The states in words.
pub const WORDS: [&str; 3] = ["optimized", "non-optimized", "inaccessible"];

/// Read a state.
///
/// # Errors
/// The states that there are.
pub fn read(text: &str) -> Result<PathState, String> {
    match text {
        "optimized" => Ok(PathState::Optimized),
        "non-optimized" => Ok(PathState::NonOptimized),
        "inaccessible" => Ok(PathState::Inaccessible),
        _ => Err(format!("{PATH} {text}: use one of {}", WORDS.join(", "))),
    }
}
