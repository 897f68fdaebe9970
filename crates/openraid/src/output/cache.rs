//! The cache's effect for an array, and the bytes that its members wrote for each byte of the hosts.

use openraid_units::Bytes;
use serde::Serialize;

use crate::model::{ArrayModel, CacheModel};
use crate::quantity::{human, human_millis};

/// Bytes that a member wrote for each byte that hosts wrote to the array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Amplification {
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// Slot of the member, from 0.
    pub slot: Option<u16>,
    /// Path or address of the member; null if the slot is vacant.
    pub member: Option<String>,
    /// Bytes of the member, metadata, resync and rebuild included, for each byte of the hosts; two decimals.
    pub written_per_host_byte: String,
}

/// For each member of an array.
pub fn amplification(array: &ArrayModel) -> Vec<Amplification> {
    let nested = !array.spans.is_empty();
    let sets = array.sets().into_iter().enumerate();
    let of_set = |(span, set): (usize, &ArrayModel)| -> Vec<Amplification> {
        let one = |member: &crate::model::MemberModel| Amplification {
            span: nested.then_some(span),
            slot: member.slot,
            member: member.member.clone(),
            written_per_host_byte: ratio(member.written_bytes, array.host.written_bytes),
        };
        set.members.iter().filter(|member| member.member.is_some()).map(one).collect()
    };
    sets.flat_map(of_set).collect()
}

/// With two decimals; a dash if the divisor is zero.
pub fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = u128::from(part) * 100 / u128::from(whole);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    format!("{} %", u128::from(part) * 100 / u128::from(whole))
}

/// The cache, one fact a line.
pub fn lines(array: &ArrayModel) -> Vec<String> {
    let Some(cache) = &array.cache else { return vec!["  cache: none (serve --cache SIZE)".into()] };
    let size = |bytes: u64| human(Bytes(bytes));
    let CacheModel { read_hit_bytes: hit, read_miss_bytes: missed, written_bytes: written, .. } = *cache;
    let mut lines = vec![
        format!(
            "  cache of the server: {}, {} of it dirty, at most {} may be; read ahead {}, of that {} used",
            size(cache.size_bytes),
            size(cache.dirty_bytes),
            size(cache.dirty_max_bytes),
            size(cache.ahead_read_bytes),
            percent(cache.ahead_used_bytes, cache.ahead_read_bytes)
        ),
        format!("  reads found {} in it, hit rate {}", size(hit), percent(hit, hit + missed)),
    ];
    if written > 0 {
        lines.push(format!(
            "  writes put {} into it, and {} of that replaced dirty data; {} were written to the members in {}, after {} \
             on average, {} at the longest",
            size(written),
            percent(cache.merged_bytes, written),
            size(cache.destaged_bytes),
            crate::quantity::counted(cache.destaged_units, "dirty unit", "dirty units"),
            human_millis(cache.waited_mean_ms),
            human_millis(cache.waited_max_ms)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_two_decimals_and_nothing_is_divided_by_nothing() {
        assert_eq!(ratio(0, 0), "-");
        assert_eq!((ratio(1, 3), ratio(2, 1), ratio(5, 4)), ("0.33".into(), "2.00".into(), "1.25".into()));
        assert_eq!((percent(0, 0), percent(2, 3)), ("-".into(), "66 %".into()));
    }
}
