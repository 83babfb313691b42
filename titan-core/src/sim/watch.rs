//! Observers of one run: order of accesses, in words of the kernel.

use super::finding::{Found, Kind};
use super::machine::Machine;
use super::store::Touch;
use crate::engine::race::{Race, Races, Side};
use crate::engine::{AccessKind, Event, Observer, SpaceId, Stop};
use crate::ir::OpId;

/// What watches a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    races: Vec<(SpaceId, Races)>,
    pub(super) issued: u64,
}

impl Watch {
    /// Watches these memories: their bytes from 0 on, and how many.
    pub(super) fn new(agents: usize, spaces: &[(SpaceId, usize)]) -> Watch {
        let races = spaces.iter().map(|(id, len)| (*id, Races::new(agents, *id, 0, *len))).collect();
        Watch { races, issued: 0 }
    }

    /// The race for which the run was stopped.
    pub(super) fn found(&self, machine: &Machine<'_>) -> Option<Box<Found>> {
        let (space, race) = self.races.iter().find_map(|(id, r)| r.found().map(|f| (*id, f)))?;
        Some(words(machine, space, race))
    }
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        self.issued += u64::from(matches!(event, Event::Issue { .. }));
        self.races.iter_mut().try_for_each(|(_, r)| r.event(event))
    }
}

fn words(machine: &Machine<'_>, space: SpaceId, race: &Race) -> Box<Found> {
    let at = race.address;
    let cta = machine.store.shared.iter().position(|s| *s == space);
    let side = |s: &Side| {
        let write = s.kind != AccessKind::Read;
        let touch: Option<Touch> = cta.map(|cta| super::access::shared(cta, at, at + 1, write));
        let mut side = machine.side(s.agent.index(), OpId::new(s.place.index()), touch.as_ref(), None);
        side.helper = s.helper.is_some();
        if cta.is_none() {
            let holds = |t: &&super::store::Tensor| t.bytes.is_none() && at >= t.base;
            let t = machine.store.setup.tensors.iter().flatten().filter(holds).max_by_key(|t| t.base);
            side.what = t.map(|t| t.name.clone()).unwrap_or_default();
        }
        (side, if write { "written" } else { "read" })
    };
    let ((first, old), (second, new)) = (side(&race.first), side(&race.second));
    let message = format!(
        "`{}` is {new} by {}, and nothing orders that with `{}` of {}, by which it is {old}",
        second.what, second.role, first.op, first.role
    );
    Found::new(Kind::Race, message).side(second).side(first)
}
