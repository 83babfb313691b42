//! Explains errors by parities that are wrong as written.
//!
//! A parity that does not follow the phases of its barrier appears as another fault: a wait that never completes, or memory that is
//! accessed too early, in one of the first iterations. So when a program is rejected for such a reason, its waits are examined once
//! more, in arbitrary iterations of the loops around them; if one of them cannot be correct, that is reported instead.

use super::super::cyclic::Turn;
use super::super::linear::Linear;
use super::super::run::{Fault, Run};
use super::super::state::State;
use super::super::values::{Env, Known};
use super::event::At;
use super::parity::constant;
use crate::diag::Code;
use crate::ir::{Block, NvOp, Op, OpKind, Ty, Value};
use crate::verify::Error;
use crate::verify::roles::threads;

impl Run<'_> {
    /// Replaces an error by that of a wait whose parity is wrong as written, if there is one.
    pub(in crate::verify) fn explain(&mut self, error: Error) -> Error {
        if !matches!(
            error.code,
            Code::WaitParity | Code::PhaseMixed | Code::InFlight | Code::NeverCompletes | Code::BarrierCount
        ) {
            return error;
        }
        let mut state = self.start();
        self.symbols.as_written = true;
        for (role, (_, block)) in threads(self.kernel).into_iter().enumerate() {
            if let Some(wrong) = self.wrong_form(&mut state, role, block, &Env::default(), &[]) {
                return if wrong.site == error.site { wrong } else { wrong.related(error.site, error.title) };
            }
        }
        error
    }

    fn wrong_form(
        &mut self,
        state: &mut State,
        role: usize,
        block: Block,
        env: &Env,
        around: &[Block],
    ) -> Option<Error> {
        let kernel = self.kernel;
        // Blocks are nested finitely deep, and each is looked at once, in an arbitrary iteration of the loops around
        // it.
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            if op.kind == OpKind::Nv(NvOp::WaitParity) {
                state.roles[role].env = env.clone();
                let found = self.wrong_wait(state, At { role, id: *id, op }, around);
                if found.is_some() {
                    return found;
                }
            }
            for region in &op.regions {
                let found = if let OpKind::For(_) = op.kind {
                    let inside = self.inside(state, op, *region, env);
                    let around: Vec<Block> = around.iter().copied().chain([*region]).collect();
                    self.wrong_form(state, role, *region, &inside, &around)
                } else {
                    self.wrong_form(state, role, *region, env, around)
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn wrong_wait(&mut self, state: &mut State, at: At<'_>, around: &[Block]) -> Option<Error> {
        let named = self.objects.barrier(*at.op.args.first()?)?;
        let (n, name) = (self.objects.barriers[named.object].n, self.objects.barriers[named.object].name.clone());
        let stage = self.index(state, at.role, (named, n));
        if let Some((_, by)) = stage.and_then(|s| self.symbols.cyclic(&s)).filter(|(_, by)| *by != n) {
            let title = format!("the index repeats every {by} steps, but {n} barriers of {name} are used");
            return Some(
                Error::new(Code::WaitParity, at.op.loc, title).help("use the same number of slots in all roles"),
            );
        }
        match self.meant(state, at, (named, n), &name) {
            Err(Fault::Barrier(error)) if error.code == Code::WaitParity => Some(*error),
            Ok((_, true)) if n == 1 && around.iter().any(|b| self.objects.serves(self.kernel, *b, named.object)) => {
                Some(
                    Error::new(Code::WaitParity, at.op.loc, constant(&name))
                        .help("flip the parity in each iteration: `p ^ 1`, or `t % 2` of a counter"),
                )
            }
            Ok(_) | Err(_) => None,
        }
    }

    /// The facts that hold in an arbitrary iteration.
    fn inside(&mut self, state: &mut State, op: &Op, body: Block, env: &Env) -> Env {
        let mut inside = env.clone();
        let args: Vec<Value> = self.kernel.block(body).args.clone();
        let lo = op.args.first().map(|v| self.symbols.int(*v, env, &mut state.facts)).unwrap_or_default();
        let i = self.somewhere(state);
        if let Some(index) = args.first() {
            inside.known.insert(*index, Known::Int(lo.plus(1, &i)));
        }
        let next = self.kernel.block(body).ops.last().map_or(&[][..], |id| &self.kernel.op(*id).args);
        let mut counters: Vec<(Value, Linear)> = Vec::new();
        for ((arg, init), next) in args.iter().skip(1).zip(op.args.iter().skip(3)).zip(next) {
            if self.kernel.ty(*arg) != Ty::I32 {
                continue;
            }
            let counter = match self.turns.get(*arg) {
                // A value that each iteration passes on unchanged is what it was first.
                _ if next == arg => Some(self.symbols.int(*init, env, &mut state.facts)),
                Some(Turn::Stage(n)) => {
                    let counter = self.somewhere(state);
                    counters.push((*arg, counter.clone()));
                    self.symbols.remainder(&counter, n, &mut state.facts)
                }
                Some(Turn::Parity(n, stage)) => {
                    let counter = counters.iter().find(|(s, _)| *s == stage).map(|(_, c)| c.clone());
                    counter
                        .and_then(|c| self.symbols.quotient(&c, n, &mut state.facts))
                        .and_then(|turns| self.symbols.remainder(&turns, 2, &mut state.facts))
                }
                None => Some(self.somewhere(state)),
            };
            inside.known.extend(counter.map(|l| (*arg, Known::Int(l))));
        }
        inside
    }
}
