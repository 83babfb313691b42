//! What operations touch of regions, as the roles run together.

use super::super::pipes::joint::run::{Fault, Run};
use super::super::pipes::joint::state::State;
use super::event::{At, refuse};
use super::machine::{Pending, What};
use super::words;
use crate::ir::{Call, CallProxy, Value};

impl<'k> Run<'k> {
    /// What an opaque call does to its regions, one after the other.
    pub(super) fn call(&mut self, state: &mut State, at: At<'k>, call: &Call) -> Result<(), Fault> {
        if call.declared() == CallProxy::None {
            return Ok(());
        }
        for (i, region) in at.op.args.iter().enumerate() {
            if call.touch(i).reads() {
                self.access(state, at, *region, false, Pending::Done)?;
            }
            if call.touch(i).writes() {
                self.access(state, at, *region, true, Pending::Done)?;
            }
        }
        Ok(())
    }

    /// An access, or the beginning of one.
    pub(super) fn access(
        &mut self,
        state: &mut State,
        at: At<'_>,
        region: Value,
        write: bool,
        pending: Pending,
    ) -> Result<(), Fault> {
        let Some(named) = self.objects.memory(region) else { return Ok(()) };
        let (memory, object) = (named.object, state.machine.memory_object(named.object));
        let (n, name) = (self.objects.memories[memory].n, self.objects.memories[memory].name.clone());
        let slot = self.slot(state, at, (named, n), (object, &name))?;
        let time = state.machine.time_of(memory, slot, n, write);
        let copy = words::is_copy(&at.op.kind);
        let bytes = words::bytes_of(&at.op.kind).unwrap_or_else(|| self.objects.memories[memory].part());
        let access = What::Access { memory, time, bytes, write, copy, pending };
        if let Some(other) = state.machine.conflict(&self.objects, at.role, &access) {
            return refuse(self.in_flight(state, (at.role, at.id), &name, &other));
        }
        state.machine.access(&self.objects, at.role, at.id, access);
        Ok(())
    }
}
