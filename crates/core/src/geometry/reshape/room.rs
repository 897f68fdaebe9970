//! The room of a change of shape: how far its data may move ahead of the position that is recorded.
//!
//! The recorded position is the one that a restart finds. From there on a restart reads old places, and whole old stripes,
//! as a missing member's data come from its stripe. So a stripe through which the position goes is needed as a whole. The
//! chunk through which the position of a mirror goes is needed too.

use openraid_format::ReshapeDirection;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

use super::{group_of, lcm, row_of, ShapeChange};
use crate::geometry::Geometry;

impl ShapeChange {
    /// The furthest boundary up to which new places may be written while a restart begins at `recorded`: no place of an
    /// old stripe that such a restart may read is written on the way. A multiple of the step, or the end; `recorded` if
    /// there is no room.
    pub(crate) fn free_until(&self, recorded: SetLba) -> SetLba {
        match self.direction {
            ReshapeDirection::Forward => self.free_forward(recorded),
            ReshapeDirection::Backward => self.free_backward(recorded),
        }
    }

    fn free_forward(&self, recorded: SetLba) -> SetLba {
        let end = self.end();
        let of_member = |slot: Slot| {
            let needed = match &self.old {
                Geometry::Parity(old) => old.used_from(recorded),
                Geometry::Mirror(old) => old.used_from(slot, recorded),
                _ => None,
            };
            let limit = self.shift(slot).to_new(needed?);
            Some(match &self.new {
                Geometry::Parity(new) => new.ends_before(limit),
                Geometry::Mirror(new) => new.ends_before(slot, limit),
                _ => recorded,
            })
        };
        let free = self.shared.iter().filter_map(of_member).min().unwrap_or(end);
        let whole = if free == end { end } else { SetLba(free.offset().round_down(self.step).0) };
        whole.max(recorded)
    }

    fn free_backward(&self, recorded: SetLba) -> SetLba {
        let of_member = |slot: Slot| {
            let needed = match &self.old {
                Geometry::Parity(old) => old.used_until(recorded),
                Geometry::Mirror(old) => old.used_until(slot, recorded),
                _ => MemberLba::ZERO,
            };
            let limit = self.shift(slot).to_new(needed);
            match &self.new {
                Geometry::Parity(new) => new.begins_from(limit),
                Geometry::Mirror(new) => new.begins_from(slot, limit),
                _ => recorded,
            }
        };
        let free = self.shared.iter().map(of_member).max().unwrap_or(SetLba::ZERO);
        let whole = free.offset().checked_round_up(self.step).map_or(recorded, |at| SetLba(at.0));
        whole.min(recorded)
    }

    /// Can anything be moved from here without a copy elsewhere? At the end nothing needs room.
    pub(crate) fn has_room(&self, recorded: SetLba) -> bool {
        recorded == self.end() || self.free_until(recorded) != recorded
    }

    /// The same at each position at which a change from its start can stop.
    pub(crate) fn has_room_everywhere(&self) -> bool {
        // The places of chunks repeat, and with more data columns the room only grows.
        let period = match (&self.old, &self.new) {
            (Geometry::Mirror(old), Geometry::Mirror(new)) => lcm(row_of(old).0, row_of(new).0).saturating_mul(2),
            _ => self.step.0,
        };
        let stops = self.total().0.min(period).div_ceil(self.step.0).max(1);
        (0..stops).all(|stop| self.has_room(self.boundary(self.step * stop)))
    }

    /// The least shift, without its sign, that md takes. With it a set with parity, or with near copies that divide the
    /// members, has room at every multiple of the step. Other mirrors may need more at some positions.
    pub(crate) fn least_shift(&self) -> Sectors {
        match (&self.old, &self.new) {
            (Geometry::Parity(old), Geometry::Parity(new)) => {
                let common = lcm(old.full_stripe().0, new.full_stripe().0);
                Sectors(common / u64::from(old.data_columns()))
            }
            (Geometry::Mirror(old), Geometry::Mirror(new)) => group_of(old).max(group_of(new)),
            _ => Sectors::ZERO,
        }
    }
}
