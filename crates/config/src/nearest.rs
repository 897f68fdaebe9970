//! "Did you mean": the known word that is nearest to an unknown one.

use strsim::osa_distance;

/// The known word that this one is a slip of the pen for, if there is one: at most a third of its letters differ.
#[must_use]
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = word.to_lowercase().replace('_', "-");
    let best = known.iter().map(|word| (osa_distance(&plain, word), *word)).min_by_key(|(distance, _)| *distance)?;
    let limit = (plain.chars().count() / 3).max(1);
    (best.0 <= limit).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        let known = ["drive-depth", "queue-age", "nbd", "nbd-unix"];
        for (word, wanted) in [
            ("drive_depth", Some("drive-depth")),
            ("Drive-Dpeth", Some("drive-depth")),
            ("nbd-unx", Some("nbd-unix")),
            ("nbds", Some("nbd")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), wanted, "{word}");
        }
    }
}
