//! Sectors that are lost: neighbours become one line, not one for each sector.

use openraid_core::actions::{Notice, NoticeKind};

use crate::events::News;

/// A range of lost sectors of one member.
#[derive(Debug)]
struct Range {
    notice: Notice,
    /// The news of its first sector. Its text is only the place: array, slot and member.
    news: News,
    from: u64,
    /// The last sector.
    to: u64,
}

/// The ranges since the last tick.
#[derive(Debug, Default)]
pub struct LostRanges {
    ranges: Vec<Range>,
}

impl LostRanges {
    /// Take the news of a lost sector. Any other news is given back.
    pub fn collect(&mut self, notice: &Notice, news: News) -> Option<News> {
        let NoticeKind::SectorLost(lba) = notice.kind else { return Some(news) };
        let lba = lba.get();
        let same = |range: &&mut Range| {
            (range.notice.array, range.notice.slot, range.notice.drive) == (notice.array, notice.slot, notice.drive)
        };
        let next = self.ranges.iter_mut().filter(same).find(|range| range.to + 1 == lba || range.from == lba + 1);
        match next {
            Some(range) => (range.from, range.to) = (range.from.min(lba), range.to.max(lba)),
            None => {
                let place = news.text.strip_suffix(&notice.kind.to_string()).unwrap_or_default().to_owned();
                let news = News { text: place, ..news };
                self.ranges.push(Range { notice: *notice, news, from: lba, to: lba });
            }
        }
        None
    }

    /// The news of all ranges.
    pub fn take(&mut self) -> Vec<News> {
        let news = |range: Range| {
            let Range { notice, mut news, from, to } = range;
            news.text.push_str(&if from == to {
                notice.kind.to_string()
            } else {
                format!("sectors {from} to {to} are lost: no redundancy was left to restore them")
            });
            news
        };
        self.ranges.drain(..).map(news).collect()
    }
}

#[cfg(test)]
mod tests {
    use openraid_status::EventName;
    use openraid_units::{ArrayId, DriveId, DriveLba, Instant, Slot};

    use super::*;
    use crate::events::plain;

    fn lost(slot: u16, lba: u64) -> (Notice, News) {
        let kind = NoticeKind::SectorLost(DriveLba(lba));
        let (of_slot, drive) = (Some(Slot(slot)), Some(DriveId(slot)));
        let notice = Notice { at: Instant::ZERO, array: ArrayId(0), slot: of_slot, drive, kind };
        (notice, plain(EventName::SectorLost, format!("data, slot {slot}: {kind}")))
    }

    #[test]
    fn neighbours_of_one_member_are_one_line_and_other_news_pass() {
        let mut all = LostRanges::default();
        for lba in [40, 41, 42, 39, 90] {
            for slot in [0, 1] {
                let (notice, news) = lost(slot, lba);
                assert_eq!(all.collect(&notice, news), None);
            }
        }
        let (notice, news) = lost(0, 7);
        let other = Notice { kind: NoticeKind::Failed, ..notice };
        assert_eq!(all.collect(&other, news.clone()), Some(news));
        let texts: Vec<String> = all.take().into_iter().map(|news| news.text).collect();
        let range =
            |slot| format!("data, slot {slot}: sectors 39 to 42 are lost: no redundancy was left to restore them");
        let one = |slot| format!("data, slot {slot}: sector 90 is lost: no redundancy was left to restore it");
        assert_eq!(texts, [range(0), range(1), one(0), one(1)]);
        assert!(all.take().is_empty());
    }
}
