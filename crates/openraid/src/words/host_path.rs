//! How NVMe hosts reach an array by the addresses of a server, in words.

use openraid_runtime::service::PathState;
use openraid_status::PathWord;

/// The kept setting.
pub const PATH: &str = "path";
/// The states in words.
pub const WORDS: [&str; 3] = [PathWord::Optimized.word(), PathWord::NonOptimized.word(), PathWord::Inaccessible.word()];

/// Read a state.
///
/// # Errors
/// The states that there are.
pub fn read(text: &str) -> Result<PathWord, String> {
    let word = PathWord::named(text).filter(|word| *word != PathWord::Unknown);
    word.ok_or_else(|| format!("{PATH} {text}: use one of {}", WORDS.join(", ")))
}

/// The state with this word.
///
/// # Errors
/// No state has the word: the states that there are.
pub fn state(word: PathWord) -> Result<PathState, String> {
    match word {
        PathWord::Optimized => Ok(PathState::Optimized),
        PathWord::NonOptimized => Ok(PathState::NonOptimized),
        PathWord::Inaccessible => Ok(PathState::Inaccessible),
        PathWord::Unknown => Err(format!("{PATH}: use one of {}", WORDS.join(", "))),
    }
}
