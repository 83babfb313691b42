//! Roles: the code of several roles runs concurrently, each on its own threads, with a separate barrier.
//!
//! Before and after the roles, all threads execute the same code, so that accesses outside and inside of roles are ordered as in a program
//! without roles, where all marks in the code of a role count for the whole of it. Inside, a role is treated as a separate program with an
//! empty initial state. What remains are accesses of two roles to the same memory, which no barrier here can order.

use super::super::family::Barrier;
use super::super::func::{Block, Func, Op, OpId};
use super::super::op::{OpKind, Region, Role};
use super::Run;
use super::state::{State, Touch, conflict, join};
use crate::collections::SortedSet;

impl Run<'_> {
    /// Walks the code of each role. Returns the state after the roles.
    pub(super) fn split(&mut self, id: OpId, roles: &[Role], op: &Op, mut state: State) -> Option<State> {
        let func = self.func;
        let inside: SortedSet<Touch> =
            op.regions.iter().flat_map(|code| marks(func, *code)).map(|(_, touch)| touch).collect();
        let meets = |outside: &SortedSet<Touch>| {
            inside.iter().any(|touch| outside.iter().any(|other| conflict(func, *touch, *other)))
        };
        if meets(&state.in_flight) {
            self.unordered.get_or_insert((
                id,
                "a role accesses the target of a copy that was issued before the roles and is in flight".to_owned(),
            ));
        }
        if meets(&state.reads_in_flight()) {
            self.unordered.get_or_insert((
                id,
                "a role writes what an MMA or a store reads that was issued before the roles and is in flight"
                    .to_owned(),
            ));
        }
        if meets(&state.touched) {
            self.conflicts.insert(id);
        }
        let mut after = None;
        for (role, code) in roles.iter().zip(&op.regions) {
            let around = self.role.replace(*role);
            if let Some(out) = self.block(*code, State::default()) {
                join(&mut after, out);
            }
            self.role = around;
        }
        let after = after?;
        // A role's wait for its own earlier copies does not cover those of other roles.
        state.touched.extend(inside.into_iter().chain(state.in_flight.iter().copied()));
        state.leave_in_flight(after);
        state.close();
        Some(state)
    }

    /// Whether an operation is a barrier of all threads that execute the current code: those of the program, or of the role.
    pub(super) fn is_whole(&self, barrier: Barrier) -> bool {
        let lanes = self.func.lanes;
        let here = self.role.map_or(self.func.threads, |role| role.warps.saturating_mul(lanes));
        match barrier {
            Barrier::Program => self.role.is_none(),
            Barrier::Named { id, threads, wait } => {
                wait && threads == here && self.role.is_some_and(|role| role.barrier == id)
            }
            Barrier::Warp => here == lanes,
        }
    }
}

/// The marks in a block and in nested blocks, in program order.
fn marks(func: &Func, block: Block) -> Vec<(OpId, Touch)> {
    let mut all = Vec::new();
    for id in &func.block(block).ops {
        let op = func.op(*id);
        if let OpKind::Access { region, write } = op.kind {
            all.push((*id, (region, write)));
        }
        all.extend(op.regions.iter().flat_map(|inner| marks(func, *inner)));
    }
    all
}

/// The first mark in a role that conflicts with an access of another role to the same buffer, with a message.
///
/// Accesses of roles to tensors were checked in the tile IR: the elements differ, or a protocol orders them.
pub(super) fn between(func: &Func) -> Option<(OpId, String)> {
    let mut found = None;
    func.walk(&mut |_, op| {
        if found.is_none() && matches!(op.kind, OpKind::Roles(_)) {
            let codes: Vec<Vec<(OpId, Touch)>> = op.regions.iter().map(|code| marks(func, *code)).collect();
            found = meeting(func, &codes);
        }
    });
    found
}

fn meeting(func: &Func, codes: &[Vec<(OpId, Touch)>]) -> Option<(OpId, String)> {
    for (i, code) in codes.iter().enumerate() {
        for (j, before) in codes[..i].iter().enumerate() {
            for (id, touch) in code {
                if before.iter().any(|(_, other)| same_buffer(func, *touch, *other)) {
                    let (Region::Buffer(n) | Region::Ring(n)) = touch.0 else { continue };
                    let name = func.buffers.get(n as usize).map_or("?", |b| b.name.as_str());
                    return Some((
                        *id,
                        format!("roles {j} and {i} access `{name}` concurrently, and it is not a ring"),
                    ));
                }
            }
        }
    }
    None
}

/// Whether two accesses to buffers conflict. Before shared memory is allocated, a buffer overlaps only itself.
fn same_buffer(func: &Func, a: Touch, b: Touch) -> bool {
    match (a.0, b.0) {
        (Region::Tensor(_), _) | (_, Region::Tensor(_)) => false,
        (Region::Buffer(x) | Region::Ring(x), Region::Buffer(y) | Region::Ring(y)) => {
            (x == y || func.shared_bytes > 0) && conflict(func, a, b)
        }
    }
}
