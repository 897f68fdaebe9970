//! The load of the arrays is watched, and the tuning of their sets follows it.

use crate::actions::Actions;
use crate::actions::Notice;
use crate::actions::NoticeKind;
use crate::array::adaptive::in_proportion;
use crate::array::adaptive::AdaptiveFacts;
use crate::array::set::Set;
use crate::controller::Controller;
use crate::events::BlockRequest;
use crate::reason::Reason;
use crate::settings::MirrorRule;
use crate::settings::Tuning;
use crate::settings::WriteCache;

impl Controller {
    /// A request arrives for an array whose policy is adaptive.
    pub(crate) fn watch_load(&mut self, request: &BlockRequest, actions: &mut Actions) {
        let array = self.arrays.get_mut(request.array);
        let (inside, adaptive) = array.load_mut();
        if !adaptive.note(request, inside.at(self.base.now).level, self.base.now) {
            return;
        }
        let facts = self.facts_of(request);
        let array = self.arrays.get_mut(request.array);
        let first = array.volume().set(0);
        let tuning = *self.sets.get(first).tuning();
        let Some(switch) = array.load_mut().1.end_window(tuning, facts, self.base.now) else { return };
        let (window, count) = (array.load().1.windows(), array.volume().set_count());
        for number in 0..count {
            let set = self.arrays.find(request.array).expect("just seen").volume().set(number);
            // Flash and rotating spans have different usual delays. Each is multiplied by the same factor.
            let usual = self.sets.get(set).usual_delay(&self.base.limits);
            let destage_delay = in_proportion(switch.to.destage_delay, usual, facts.destage_delay());
            self.sets.get_mut(set).set_tuning(Tuning { destage_delay, ..switch.to });
        }
        let (from, to, load) = (switch.from, switch.to, switch.load);
        let kind = NoticeKind::AdaptiveSwitched { from, to, load };
        actions.notice(Notice { at: self.base.now, array: request.array, slot: None, drive: None, kind });
        if from.read_ahead != to.read_ahead {
            self.base.trace.note(&mut self.sets, first, Reason::AdaptiveReadAhead, window, load.ordered_read_percent);
        }
        if from.mirror_read != to.mirror_read {
            let ordered = to.mirror_read == MirrorRule::TwinStor;
            let figure = if ordered { load.ordered_read_percent } else { load.depth_tenths };
            self.base.trace.note(&mut self.sets, first, Reason::AdaptiveMirror, window, figure);
        }
        if from.destage_delay != to.destage_delay {
            self.base.trace.note(&mut self.sets, first, Reason::AdaptiveDestage, window, load.ordered_write_percent);
        }
    }

    /// The properties are those of the first span; only rotation may differ between spans.
    fn facts_of(&self, request: &BlockRequest) -> AdaptiveFacts {
        let volume = &self.arrays.find(request.array).expect("requests belong to arrays").volume();
        let set = self.sets.get(volume.set(0));
        let spins = |drive| self.base.channels.get(drive).is_some_and(|channel| channel.info().rotational);
        let mirrored = set.shape().copies() > 1;
        let rotates = |span: &Set| span.members().iter().filter(|member| member.is_active()).all(|m| spins(m.drive()));
        let rotational = mirrored && (0..volume.set_count()).any(|span| rotates(self.sets.get(volume.set(span))));
        let collects = self.cache.is_on() && set.write_cache() != WriteCache::Through;
        AdaptiveFacts::new(rotational, (self.cache.is_on(), collects), set.usual_delay(&self.base.limits))
    }
}
