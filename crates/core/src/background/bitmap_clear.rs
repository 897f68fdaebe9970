//! When bitmap bits are cleared; `array/write_intent_bitmap.rs` knows which.
//!
//! ```text
//!  set --no write between two looks--> quiet --nor until the next--> marked --members flushed, still no write--> cleared
//! ```

use openraid_units::{Instant, SetId};

use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::write_intent_bitmap::Bitmap;
use crate::call::Call;
use crate::io::state::command::Owner;
use crate::set_status::Health;

/// May bits be marked? A member that comes back needs the bits of a degraded array, and a task may follow them.
fn may_clear(set: &Set) -> bool {
    set.health() == Health::Optimal && set.tasks.task.is_none() && !set.has_failed_flush()
}

/// Mark the bits of regions that were quiet for two looks, and flush the members: then no power cut can undo a write there.
pub(crate) fn pump_bitmap_age(sets: &mut Sets, id: SetId, call: &mut Call) {
    let (now, delay) = (call.now(), call.limits().bitmap_clear_delay);
    let set = sets.get_mut(id);
    let may_clear = may_clear(set);
    let Some(bitmap) = &mut set.bitmap else { return };
    if now < bitmap.next_look() || bitmap.flushes() > 0 || !may_clear {
        return;
    }
    bitmap.look_again_at(now + delay);
    if !bitmap.age() {
        return;
    }
    let issued = sets.flush_members(id, Owner::BitmapFlush, call);
    let set = sets.get_mut(id);
    set.bitmap.as_mut().expect("just seen").begin_flushes(issued);
    if issued == 0 {
        set.clear_marked();
        sets.look();
    }
}

/// One of the members was flushed, or failed to be.
pub(crate) fn on_bitmap_flushed(set: &mut Set) {
    let is_last = set.bitmap.as_mut().is_some_and(Bitmap::end_flush);
    if is_last && set.health() == Health::Optimal && !set.has_failed_flush() {
        set.clear_marked();
    }
}

/// The time of the next look.
pub(crate) fn bitmap_deadline(set: &Set) -> Option<Instant> {
    let bitmap = set.bitmap.as_ref().filter(|bitmap| bitmap.has_clearable_bits() && bitmap.flushes() == 0)?;
    may_clear(set).then(|| bitmap.next_look())
}
