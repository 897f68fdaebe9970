//! The effect of a journal that has a drive of its own: the speed of the same load without the journal, and the load of
//! the journal's devices.

use super::pairs::gain;
use super::{merit, speed, Gain, Speed};
use crate::cell::{CellResult, PartName};
use serde::Serialize;

/// The effect of a level's journal.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct JournalEffect {
    /// The healthy array without it: written through, as it is served then.
    pub without: Speed,
    /// Its gain in requests each second, over all seeds.
    pub gain: Option<Gain>,
    /// Share of the time with a command at one of its devices, 0 to 1. It has one entry at a time, so at 1 nothing more
    /// goes through it.
    pub busy: f64,
}

impl JournalEffect {
    /// Computes the effect from the runs without the journal and the figures with the journal, both by seed.
    pub(super) fn of(healthy: &CellResult, bare: &[Option<CellResult>], base: &[Option<f64>]) -> Option<Self> {
        let first = bare.first()?.as_ref()?;
        let pairs = base.iter().zip(bare).filter_map(|(base, bare)| Some(((*base)?, merit(bare.as_ref()?))));
        let busy = healthy.busy(PartName::Journal).unwrap_or(0.0);
        Some(Self { without: speed(first), gain: gain(pairs), busy })
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::cell::{run_cell, ArrayState, CellError, Direction};
    use openraid_models::Library;

    /// A plan for RAID 5 on four disks of 7,200 turns per minute, with small random writes at queue depth `depth`.
    fn request(journal: Option<&str>, depth: u32) -> PlanRequest {
        let axes = Axes { op: Some(Direction::Write), bs: Some(4096), qd: Some(depth), ..Axes::default() };
        PlanRequest {
            system: "openraid".into(),
            drive: Some("exos_x18_18tb".into()),
            drives: 4,
            levels: vec![Level::Raid5],
            pattern: Pattern::Random,
            axes: Axes { journal: journal.map(Into::into), drive_cache: Some(false), ..axes },
            effort: Effort { requests: 1_000, seconds_max: 60, warm_seconds_max: 60 },
            seed: 1,
            thorough: false,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        }
    }

    #[test]
    fn a_small_write_of_raid_5_waits_for_a_turn_of_the_disk_or_for_the_journal() {
        let library = Library::builtin();
        let result = |journal, depth| {
            run_cell(&library, &request(journal, depth).cell(Level::Raid5, ArrayState::Healthy)).unwrap()
        };
        // Each write reads old data and old parity. The new blocks pass the head one full turn later, so a disk does at
        // most 120 such writes per second.
        let (bare, with) = (result(None, 1), result(Some("s3500_480"), 1));
        assert!(bare.iops < 7200.0 / 60.0, "{}", bare.iops);
        // With the journal many writes are under way to the four drives at once, and each drive does them in the order
        // of their addresses.
        assert!(with.iops > 2.0 * bare.iops, "{} {}", with.iops, bare.iops);
        let effect = JournalEffect::of(&with, &[Some(bare.clone())], &[Some(with.iops)]).unwrap();
        assert!((effect.gain.unwrap().percent - (with.iops / bare.iops - 1.0) * 100.0).abs() < 1e-6);
        assert!(effect.busy > 0.0 && effect.without.iops < with.iops);
    }

    #[test]
    fn a_journal_that_is_slower_than_the_load_is_the_limit() {
        let library = Library::builtin();
        let device = library.drive("service-fixed").unwrap();
        let openraid_models::DriveKind::Constant(profile) = &device.kind else {
            panic!("it has one time for everything")
        };
        let service = profile.service.value.get() as f64 / 1e9;
        let depth = 4;
        // SSDs can do far more writes than this journal can.
        let drives = PlanRequest { drive: Some("s3500_480".into()), ..request(Some("service-fixed"), depth) };
        let cell = drives.cell(Level::Raid5, ArrayState::Healthy);
        let found = run_cell(&library, &cell).unwrap();
        // An entry is a header and its payload. The device writes one after the other. An entry cannot contain more
        // writes than are outstanding.
        let most = f64::from(depth) / (2.0 * service);
        assert!(found.iops <= most, "{} of {most}", found.iops);
        let limit = found.bottleneck().unwrap();
        assert!(limit.name == PartName::Journal && limit.busy > 0.95, "{:?}", found.components);
    }

    #[test]
    fn a_journal_that_cannot_be_is_refused_with_a_remedy() {
        let library = Library::builtin();
        let said = |word: &str, change: fn(&mut PlanRequest)| {
            let mut request = request(Some(word), 1);
            change(&mut request);
            let cell = request.cell(Level::Raid5, ArrayState::Healthy);
            match run_cell(&library, &cell) {
                Err(error @ (CellError::Axis(_) | CellError::Impossible(_) | CellError::Unknown(_))) => {
                    error.to_string()
                }
                other => panic!("{other:?}"),
            }
        };
        assert!(said("3xs3500_480", |_| ()).contains("one device or on two"));
        assert!(said("nothing", |_| ()).contains("nothing"));
        assert!(said("s3500_480", |cell| cell.system = "3ware-9650se".into()).contains("has no journal"));
        assert!(said("s3500_480", |cell| cell.axes.cache_mib = Some(0)).contains("needs a cache"));
        assert!(
            said("s3500_480", |cell| cell.axes.cache = Some(crate::cell::CacheMode::WriteBack)).contains("contradict")
        );
    }
}
