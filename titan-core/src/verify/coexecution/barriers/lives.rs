//! Rule 58: a barrier is invalidated when no role uses it any more, and not used after.

use super::super::run::{Fault, Run, defect};
use super::super::state::State;
use super::event::{At, refuse};
use super::machine::{By, What};
use crate::diag::Code;
use crate::ir::{NvOp, OpKind};
use crate::verify::Error;

/// The maximum of an mbarrier's arrival count and of its transaction count (PTX ISA, "mbarrier object": both have 20 bits).
pub(in crate::verify) const MAX_COUNT: u32 = (1 << 20) - 1;

impl<'k> Run<'k> {
    pub(super) fn alive(&self, state: &State, at: At<'_>, barrier: usize) -> Result<(), Fault> {
        match state.machine.gone.get(&barrier) {
            None => Ok(()),
            Some(op) => {
                let title =
                    format!("{} is used when it may have been invalidated", self.objects.barriers[barrier].name);
                refuse(
                    Error::new(Code::BarrierLife, at.op.loc, title)
                        .related(self.kernel.op(*op).loc, "it is invalidated here"),
                )
            }
        }
    }

    pub(super) fn inval(&mut self, state: &mut State, at: At<'k>) -> Result<(), Fault> {
        let made = at.op.args.first().filter(|v| {
            self.kernel.def_op(**v).is_some_and(|op| matches!(op.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. })))
        });
        let Some(alloc) = made else { return defect(at.id, "an invalidation of something that is not allocated") };
        // The list is empty if no element of the array is used.
        // Every barrier of the array ends, also those that this role has never used.
        for barrier in self.objects.of_alloc(*alloc).to_vec() {
            self.alive(state, at, barrier)?;
            let name = self.objects.barriers[barrier].name.clone();
            // A use that is not observed may come later in another order of steps, when the word is no barrier any
            // more.
            let using = state.machine.using(at.role, barrier);
            if let Some(record) = using {
                let role = self.role_name(record.role);
                let title = format!("{name} is invalidated while {role} may still use it");
                let error = Error::new(Code::BarrierLife, at.op.loc, title);
                return refuse(
                    error
                        .related(self.kernel.op(record.op).loc, "it is used here")
                        .help("first wait for an event that comes after its last use there"),
                );
            }
            if let Some(copy) = state.machine.on_the_way(at.role, barrier) {
                let tensor = matches!(copy.what, What::Access { by: By::Tensor(_), .. });
                let (what, it) =
                    if tensor { ("an operation on tensor memory", "the operation") } else { ("a copy", "the copy") };
                let title = format!("{name} is invalidated while {what} that signals it may still be in flight");
                let error = Error::new(Code::BarrierLife, at.op.loc, title).related(self.kernel.op(copy.op).loc, it);
                return refuse(error.help(format!("wait for {name} first")));
            }
            state.machine.gone.insert(barrier, at.id);
        }
        Ok(())
    }
}
