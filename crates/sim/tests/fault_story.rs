//! The story of a run with a loss uses words that need no knowledge of the sources.

use openraid_sim::fault::shrink::shrink;
use openraid_sim::fault::{report, Bug, Scenario, Verdict};

/// A seed that finds [`Bug::AnswerEarly`].
const SEED: u64 = 1;

#[test]
fn the_story_names_the_writer_of_found_data_and_the_time() {
    let drawn = Scenario::draw(SEED);
    let kind = report(&drawn, Some(Bug::AnswerEarly)).verdict.kind();
    assert!(kind.is_some(), "the bug is found");
    let short = shrink(&drawn, |shorter| report(shorter, Some(Bug::AnswerEarly)).verdict.kind() == kind);
    let rerun = report(&short, Some(Bug::AnswerEarly));
    let Verdict::Lost(why) = &rerun.verdict else { panic!("it still loses the same") };
    let text = format!("{short}\n\n{}\n\nLOST: {why}", rerun.story.join("\n"));
    println!("{text}");
    for words in ["hosts send", "a read found what no write explains: byte ", "; right is ", "request ", " of slot "] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    for words in ["Some(", "Ask(", "End(", "Stamp(", "layout 0x", "Lba(", "Policy {"] {
        assert!(!text.contains(words), "{words:?} is in:\n{text}");
    }
    assert!(!rerun.details.is_empty() && rerun.story.iter().all(|line| !line.contains('\n')));
}
