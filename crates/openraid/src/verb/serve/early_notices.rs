//! Notices of arrays that have no name yet. The engine starts the resync of a new array before the server has entered the name of
//! the array; the notice waits for the name.

use openraid_runtime::service::ServiceEvent;
use openraid_units::ArrayId;

/// Ticks after which a notice is printed with the number of the array: an array that was stopped has no name any more.
const TICKS_MAX: u32 = 3;

/// The notices that wait, in their order.
#[derive(Default)]
pub struct EarlyNotices {
    waiting: Vec<(u32, ArrayId, ServiceEvent)>,
}

impl EarlyNotices {
    /// Hold the notice of an array without a name. Any other event is returned.
    pub fn hold(&mut self, event: ServiceEvent, is_named: impl Fn(ArrayId) -> bool) -> Option<ServiceEvent> {
        match event {
            ServiceEvent::Notice(notice) if !notice.kind.is_about_journal() => {
                // A later notice of the same array stays after the notices that wait.
                let waits = self.waiting.iter().any(|(_, array, _)| *array == notice.array);
                if is_named(notice.array) && !waits {
                    return Some(event);
                }
                self.waiting.push((0, notice.array, event));
                None
            }
            _ => Some(event),
        }
    }

    /// Some time has passed.
    pub fn tick(&mut self) {
        self.waiting.iter_mut().for_each(|(ticks, ..)| *ticks += 1);
    }

    /// The notices that need not wait any longer.
    pub fn take(&mut self, is_named: impl Fn(ArrayId) -> bool) -> Vec<ServiceEvent> {
        let is_over = |(ticks, array, _): &mut (u32, ArrayId, ServiceEvent)| *ticks >= TICKS_MAX || is_named(*array);
        self.waiting.extract_if(.., is_over).map(|(.., event)| event).collect()
    }
}

#[cfg(test)]
mod tests {
    use openraid_core::actions::{Notice, NoticeKind};
    use openraid_units::Instant;

    use super::*;

    fn notice(array: u16, kind: NoticeKind) -> ServiceEvent {
        ServiceEvent::Notice(Notice { at: Instant::ZERO, array: ArrayId(array), slot: None, drive: None, kind })
    }

    fn arrays(events: &[ServiceEvent]) -> Vec<u16> {
        let number = |event: &ServiceEvent| match event {
            ServiceEvent::Notice(notice) => notice.array.0,
            _ => u16::MAX,
        };
        events.iter().map(number).collect()
    }

    #[test]
    fn a_notice_waits_for_the_name_of_its_array_but_not_for_ever() {
        let mut unnamed = EarlyNotices::default();
        let is_first = |array: ArrayId| array == ArrayId(1);
        assert!(unnamed.hold(notice(1, NoticeKind::ResyncStarted), is_first).is_some(), "it has a name");
        assert!(unnamed.hold(notice(2, NoticeKind::JournalLost), is_first).is_some(), "it needs no name");
        for array in [2, 3] {
            assert!(unnamed.hold(notice(array, NoticeKind::ResyncStarted), is_first).is_none());
        }
        assert_eq!(arrays(&unnamed.take(is_first)), [0; 0]);
        assert_eq!(arrays(&unnamed.take(|array| array == ArrayId(3))), [3]);
        (0..TICKS_MAX).for_each(|_| unnamed.tick());
        assert_eq!(arrays(&unnamed.take(is_first)), [2], "it is stopped");
        assert_eq!(arrays(&unnamed.take(|_| true)), [0; 0]);
    }
}
