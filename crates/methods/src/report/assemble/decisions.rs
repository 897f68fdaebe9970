//! The decisions of the engine in a report: each as a plural noun, and its effect on the time of a request.

use super::super::data::{DecisionRate, Effect};
use openraid_core::reason::Reason;

/// The number of each decision per request. Variants of one decision are added.
pub(super) fn rates(reasons: &[(String, u64)], requests: u64) -> Vec<DecisionRate> {
    let mut rates: Vec<DecisionRate> = Vec::new();
    for (name, count) in reasons.iter().filter(|_| requests > 0) {
        let (what, effect) = decision(name);
        // Counts of a run are much smaller than 2^53.
        let per_request = *count as f64 / requests as f64;
        match rates.iter_mut().find(|rate| rate.what == what) {
            Some(rate) => rate.per_request += per_request,
            None => rates.push(DecisionRate { what, effect, per_request }),
        }
    }
    rates
}

/// A decision by its name in the results. Results of another version may have a name that this version does not know.
fn decision(name: &str) -> (String, Effect) {
    let Some(reason) = Reason::ALL.iter().find(|reason| reason.name() == name) else {
        return (split(name), Effect::Cost);
    };
    match noun(*reason) {
        Some((words, effect)) => (words.into(), effect),
        None => (split(name), effect(*reason)),
    }
}

/// `ReadNearestHead` becomes `read nearest head`.
fn split(name: &str) -> String {
    let mut words = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The noun of a decision, if the split name is none, with its effect.
const fn noun(reason: Reason) -> Option<(&'static str, Effect)> {
    use Effect::{CachedWrite, Cost, Free, Gain, Routine};
    Some(match reason {
        Reason::FullStripe => ("full-stripe writes", Gain),
        Reason::ReadModifyWriteFewer | Reason::ReadModifyWriteForced => ("read-modify-writes", Cost),
        Reason::ReconstructFewer
        | Reason::ReconstructEqual
        | Reason::ReconstructUntrusted
        | Reason::ReconstructDegraded => ("reconstruct-writes", Cost),
        Reason::RecoverThenWrite => ("writes after recovering", Cost),
        Reason::WriteNoParity => ("writes without parity", Cost),
        Reason::Mirrored => ("writes to every copy", Routine),
        Reason::Direct => ("writes to one place", Routine),
        Reason::WriteCached => ("writes into the cache", CachedWrite),
        Reason::ReadCached => ("reads from the cache", Gain),
        Reason::ReadDirect => ("reads from one place", Routine),
        Reason::WaitedForCache => ("waits for room in the cache", Cost),
        Reason::ReadRecovered => ("reads recovered from other members", Cost),
        Reason::ReadSequential => ("reads that go on where a head is", Free),
        Reason::ReadRetried => ("retried reads", Cost),
        Reason::WriteRetried => ("retried writes", Cost),
        Reason::SectorRewritten => ("rewritten sectors", Cost),
        Reason::EdgeRead => ("reads around an unaligned write", Cost),
        Reason::WaitedForLock => ("waits for another request of the same stripe", Cost),
        Reason::WaitedForRedo => ("waits for the redo of the journal", Cost),
        Reason::WaitedForJournal
        | Reason::WaitedForJournalStart
        | Reason::WaitedForJournalEnd
        | Reason::WaitedForJournalWrite
        | Reason::WaitedForReplayRoom => ("waits for the journal", Cost),
        Reason::WaitedForPartialParityLog => ("waits for the partial parity log", Cost),
        Reason::WaitedForReadAhead => ("waits for data that is being read ahead", Cost),
        Reason::WaitedForDestage => ("waits for earlier writes to be on the drives", Cost),
        Reason::WaitedForActiveMark => ("waits for the mark of an active array", Cost),
        Reason::WaitedForBitmap => ("waits for the bitmap", Cost),
        Reason::WaitedForFrames => ("waits for work memory", Cost),
        Reason::WaitedForFailureMark => ("waits for the record of a failure", Cost),
        Reason::WaitedForHostFrames => ("waits for the memory of requests", Cost),
        Reason::RedoLogged => ("redo records in the journal", Cost),
        Reason::PartialParityLogged => ("records in the partial parity log", Cost),
        Reason::WriteJournalled => ("writes into the journal", Cost),
        _ => return None,
    })
}

/// The effect of a decision without a noun. The choice of a copy belongs to the level, and hosts do not wait for read-ahead
/// and destage.
const fn effect(reason: Reason) -> Effect {
    match reason {
        Reason::ReadLeastPending
        | Reason::ReadPrimary
        | Reason::ReadRoundRobin
        | Reason::ReadNearestHead
        | Reason::ReadSection
        | Reason::ReadFixedCopy
        | Reason::ReadAheadStarted
        | Reason::ReadAheadGrown
        | Reason::ReadAheadStopped
        | Reason::ReadAroundBadBlock
        | Reason::DestageFull
        | Reason::DestageAged
        | Reason::DestagePressed
        | Reason::DestageForJournal
        | Reason::DestageUrgent => Effect::Free,
        _ => Effect::Cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_of_the_engine_is_a_noun_in_a_sentence() {
        for reason in Reason::ALL {
            let (words, _) = decision(reason.name());
            let is_wait = reason.name().starts_with("Waited");
            assert!(!is_wait || words.starts_with("waits for "), "each request takes {words}");
        }
        assert_eq!(decision("ReadNearestHead"), ("read nearest head".into(), Effect::Free));
        assert_eq!(decision("OfAnotherVersion"), ("of another version".into(), Effect::Cost));
    }

    #[test]
    fn choices_of_a_copy_and_destage_cost_no_request_time() {
        let free = Reason::ALL.iter().filter(|reason| decision(reason.name()).1 == Effect::Free);
        for reason in free.clone() {
            assert!(["Read", "Destage"].iter().any(|word| reason.name().starts_with(word)), "{reason:?}");
        }
        assert!(Reason::ALL.iter().filter(|reason| reason.name().starts_with("Destage")).count() <= free.count());
    }
}
