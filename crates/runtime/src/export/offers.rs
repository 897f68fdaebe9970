//! The arrays that are offered to clients, and the report on their state.

use openraid_core::admin::Health;
use openraid_units::{ArrayId, Bytes, Instant, Nanos};

use super::wire::{AllowedHosts, Announcements, PathState, ProtocolState};
use crate::engine_access::Control;
use crate::limits::STATUS_AGE_MAX;

/// An array that is offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    pub array: ArrayId,
    /// Its name for clients.
    pub name: String,
    /// A line for readers; may be empty.
    pub description: String,
    pub size: Bytes,
    /// Is writing refused?
    pub read_only: bool,
    /// Do seeks take time?
    pub rotational: bool,
    /// The unit, in bytes, to which clients should align. Requests of any byte are served.
    pub unit: u32,
    /// Size and alignment, in bytes, from which requests are efficient.
    pub preferred: u32,
    /// Why every client is refused, if that is so.
    pub refused: Option<String>,
    /// The identity of the array, which outlives renames. Without one it is offered only to clients that ask for a name.
    pub uuid: Option<[u8; 16]>,
    /// The hosts that may use it, in protocols whose hosts have names.
    pub hosts: AllowedHosts,
    /// How hosts reach it, in protocols whose hosts have several paths.
    pub path: PathState,
}

#[derive(Debug, Default)]
pub struct Offers {
    list: Vec<Offer>,
    announced: Announcements,
}

impl Offers {
    /// Add an offer. The caller has checked the offer and that its name is not taken.
    pub fn add(&mut self, offer: Offer) {
        self.change(|list| list.push(offer));
    }

    /// Remove all offers of an array.
    pub fn withdraw(&mut self, array: ArrayId) {
        self.change(|list| list.retain(|offer| offer.array != array));
    }

    /// Remove the offer with this name.
    pub fn retract(&mut self, name: &str) {
        self.change(|list| list.retain(|offer| offer.name != name));
    }

    /// Refuse writing to an array, or allow it again.
    pub fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        self.change(|list| {
            for offer in list.iter_mut().filter(|offer| offer.array == array) {
                offer.read_only = read_only;
            }
        });
    }

    /// Are the clients of an array refused?
    pub fn refuses(&self, array: ArrayId) -> bool {
        self.list.iter().any(|offer| offer.array == array && offer.refused.is_some())
    }

    /// Refuse no client of an array any more.
    pub fn admit(&mut self, array: ArrayId) {
        self.change(|list| {
            for offer in list.iter_mut().filter(|offer| offer.array == array) {
                offer.refused = None;
            }
        });
    }

    /// An array has another size.
    pub fn set_size(&mut self, array: ArrayId, size: Bytes) {
        self.change(|list| {
            for offer in list.iter_mut().filter(|offer| offer.array == array) {
                offer.size = size;
            }
        });
    }

    /// Change which hosts may use an array.
    pub fn set_hosts(&mut self, array: ArrayId, hosts: &AllowedHosts) {
        self.change(|list| {
            for offer in list.iter_mut().filter(|offer| offer.array == array) {
                offer.hosts = hosts.clone();
            }
        });
    }

    /// Change how hosts reach an array.
    pub fn set_path(&mut self, array: ArrayId, path: PathState) {
        self.change(|list| list.iter_mut().filter(|offer| offer.array == array).for_each(|offer| offer.path = path));
    }

    /// The size that is announced for an array.
    #[must_use]
    pub fn size_of(&self, array: ArrayId) -> Bytes {
        self.list.iter().find(|offer| offer.array == array).map_or(Bytes::ZERO, |offer| offer.size)
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<Offer>)) {
        change(&mut self.list);
        self.announced = Announcements::of(&self.list);
    }

    /// All offers, oldest first.
    #[must_use]
    pub fn list(&self) -> &[Offer] {
        &self.list
    }

    /// All offers in the forms of the protocols, in the order of [`Offers::list`].
    #[must_use]
    pub fn announced(&self) -> &Announcements {
        &self.announced
    }
}

/// Answers to the questions of clients about arrays.
#[derive(Debug)]
pub struct Catalog<'a> {
    pub offers: &'a Offers,
    /// The recent state of arrays.
    pub states: &'a mut StatusCache,
    /// State that the connections of a protocol share.
    pub common: &'a mut ProtocolState,
    /// The engine, for the present state.
    pub control: &'a Control,
    /// The time of this round.
    pub now: Instant,
}

impl Catalog<'_> {
    /// The state of an array.
    pub fn extents(&mut self, array: ArrayId) -> ArrayExtent {
        self.states.extents(array, self.control, self.now)
    }
}

/// The recent state of the arrays, because clients may ask as often as they like.
#[derive(Debug, Default)]
pub struct StatusCache {
    known: Vec<(ArrayId, Instant, ArrayExtent)>,
}

/// The state of an array, as two extents: whole so far, and the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayExtent {
    /// Bytes that have all their redundancy.
    pub whole: u64,
    /// The report on the rest.
    pub rest: RestReport,
}

/// The report on a range of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RestReport {
    /// The range has reduced redundancy, so the next failure may lose it.
    pub degraded: bool,
    /// The range cannot be read at present.
    pub lost: bool,
}

impl StatusCache {
    fn extents(&mut self, array: ArrayId, control: &Control, now: Instant) -> ArrayExtent {
        self.known.retain(|(_, at, _)| now.since(*at) < STATUS_AGE_MAX && STATUS_AGE_MAX > Nanos::ZERO);
        if let Some((_, _, extent)) = self.known.iter().find(|(known, _, _)| *known == array) {
            return *extent;
        }
        let whole = control.status(array).map_or(0, |status| status.whole_to.bytes().get());
        let extent = ArrayExtent { whole, rest: report(array, control) };
        self.known.push((array, now, extent));
        extent
    }
}

/// The worst of an array and its spans.
fn report(array: ArrayId, control: &Control) -> RestReport {
    let Some(status) = control.status(array) else { return RestReport { degraded: false, lost: true } };
    let (degraded, lost) = match status.health {
        Health::Optimal => (false, false),
        Health::Degraded => (true, false),
        Health::Failed => (true, true),
    };
    let spans = status.spans.iter().map(|span| report(*span, control));
    spans.fold(RestReport { degraded, lost }, |worst, span| RestReport {
        degraded: worst.degraded || span.degraded,
        lost: worst.lost || span.lost,
    })
}
