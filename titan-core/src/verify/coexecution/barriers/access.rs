//! Accesses of operations to regions, and to outputs of bulk stores of the barrier dialect, in the co-execution of the roles.

use super::super::run::{Fault, Run, defect};
use super::super::state::State;
use super::event::{At, refuse};
use super::machine::{By, Pending, What};
use super::messages;
use crate::diag::Code;
use crate::ir::traffic::{On, traffic};
use crate::ir::{Call, CallProxy, Class, Op, OpId, Proxy, Ty, Value};
use crate::verify::Error;

impl<'k> Run<'k> {
    /// The accesses of an opaque call to its regions, in order.
    pub(super) fn call(&mut self, state: &mut State, at: At<'k>, call: &Call) -> Result<(), Fault> {
        if call.declared() == CallProxy::None {
            // The call is declared to access no regions.
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

    /// Records an access, or the start of an asynchronous one.
    pub(super) fn access(
        &mut self,
        state: &mut State,
        at: At<'_>,
        region: Value,
        write: bool,
        pending: Pending,
    ) -> Result<(), Fault> {
        let Some(named) = self.objects.memory(region) else {
            let title = "this accesses a tile in shared memory, which could not be verified";
            return refuse(Error::new(Code::NotShown, at.op.loc, title).help("name a region"));
        };
        let (memory, object) = (named.object, state.machine.memory_object(named.object));
        let (n, name) = (self.objects.memories[memory].n, self.objects.memories[memory].name.clone());
        let slot = self.slot(state, at, (named, n), (object, &name))?;
        // The time says in which round of its slot the access is. Conflicts compare it modulo the number of parts,
        // since times t and t + n are the same bytes.
        let before = state.machine.latest_of(memory);
        let time = state.machine.time_of(memory, slot, n, write);
        let by = self
            .objects
            .units
            .of(at.id)
            .map_or(if messages::is_copy(&at.op.kind) { By::Copy } else { By::Other }, By::Tensor);
        self.allocated(state, at, memory)?;
        let bytes = messages::bytes_of(&at.op.kind).unwrap_or_else(|| self.objects.memories[memory].part());
        self.happens(state, at, What::Access { memory, time, bytes, write, by, pending })?;
        self.note_written(state, at, (region, write), (memory, time, before));
        Ok(())
    }

    /// The access of an operation to an output of bulk stores.
    pub(in crate::verify) fn output_access(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &'k Op),
    ) -> Result<(), Fault> {
        // Rules 25 to 33 are enough for tensors to which no bulk stores write.
        let Some(memory) = self.objects.output(self.kernel, op) else { return Ok(()) };
        let Some(own) = traffic(&op.kind).accesses.into_iter().flatten().find(|a| a.on == On::Tensor) else {
            return defect(id, "an access to an output that the table of accesses does not have");
        };
        let bulk = own.writes && own.proxy == Proxy::Async;
        let by = if bulk { By::BulkStore } else { By::Other };
        let pending = if bulk { Pending::Group(Class::BulkStore, None) } else { Pending::Done };
        // `outputs` compares unbounded sums. A coordinate that wraps around may be one of another tile.
        if bulk && !self.objects.apart.is_empty() && self.coordinates_may_wrap(state, role, op) {
            self.objects.apart.retain(|(a, b)| *a != id && *b != id);
        }
        let (time, bytes) = (0, self.objects.memories[memory].part());
        let access = |write: bool| What::Access { memory, time, bytes, write, by, pending };
        for write in [own.reads.then_some(false), own.writes.then_some(true)].into_iter().flatten() {
            self.happens(state, At { role, id, op }, access(write))?;
        }
        Ok(())
    }

    /// Whether a coordinate of an access to a tensor may be a sum that overflows `i32`.
    fn coordinates_may_wrap(&mut self, state: &mut State, role: usize, op: &Op) -> bool {
        let integers = op.args.iter().filter(|v| self.kernel.ty(**v) == Ty::I32).copied().collect::<Vec<_>>();
        integers.into_iter().any(|v| {
            let number = self.symbols.int(v, &state.roles[role].env, &mut state.facts);
            self.symbols.may_wrap(&number)
        })
    }

    fn happens(&self, state: &mut State, at: At<'_>, access: What) -> Result<(), Fault> {
        if let Some(other) = state.machine.conflict(&self.objects, (at.role, at.id), &access) {
            return refuse(self.in_flight(state, (at.role, at.id), &access, &other));
        }
        state.machine.access(&self.objects, at.role, at.id, access);
        Ok(())
    }
}
