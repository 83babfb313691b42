//! The verifier of lane IR: structure, visibility of values, types, and convergence. A violation is a defect of the lowering; it is
//! reported as an error, never by a panic.

use super::family::{Barrier, Family, Flow};
use super::func::{Block, Func, Op, OpId, Value};
use super::nv::NvOp;
use super::op::{OpKind, Role, Ty};
use super::types::infer;
use super::{flight, hazard, operands, print, uniform};
use crate::collections::SortedSet;
use crate::ir::Loc;

/// A violation of the rules of lane IR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lane IR of `{kernel}`, line {line}: {message}", line = loc.line)]
pub struct LaneError {
    /// The name of the kernel with its instance.
    pub kernel: String,
    /// A description of the violation.
    pub message: String,
    /// The location of the user's code there.
    pub loc: Loc,
}

/// Verifies a function.
///
/// # Errors
/// Returns the first violation.
pub fn verify(func: &Func) -> Result<(), LaneError> {
    let mut run = Run {
        func,
        visible: vec![false; func.values.len()],
        loops: Vec::new(),
        role: None,
        barriers: SortedSet::new(),
    };
    func.walk(&mut |_, op| {
        if let OpKind::Roles(roles) = &op.kind {
            run.barriers.extend(roles.iter().map(|role| role.barrier));
        }
    });
    run.block(func.body, None)?;
    let together = uniform::analyze(func);
    if let Some((op, _)) = together.diverged().first() {
        return Err(run.error(func.op(*op), "lanes may have diverged where all of them are needed"));
    }
    if let Some((op, message)) = flight::check(func).or_else(|| operands::check(func)) {
        return Err(run.error(func.op(op), &message));
    }
    match hazard::unordered(func) {
        Some((op, message)) => Err(run.error(func.op(op), &message)),
        None => func.maker.as_deref().map_or(Ok(()), verify),
    }
}

struct Run<'a> {
    func: &'a Func,
    visible: Vec<bool>,
    /// The operand types of `break` and of `continue` in each enclosing loop.
    loops: Vec<(Vec<Ty>, Vec<Ty>)>,
    /// The role whose code is being checked.
    role: Option<Role>,
    /// The numbers of the barriers that belong to roles.
    barriers: SortedSet<u8>,
}

impl Run<'_> {
    fn error(&self, op: &Op, message: &str) -> LaneError {
        let message = format!("{}: {message}", print::mnemonic(&op.kind));
        LaneError { kernel: self.func.name.clone(), message, loc: op.loc }
    }

    fn types(&self, values: &[Value]) -> Vec<Ty> {
        values.iter().map(|v| self.func.ty(*v)).collect()
    }

    /// Checks a block whose `yield`, if one is allowed, has operands of the types `gives`. Values defined inside are not visible after it.
    fn block(&mut self, block: Block, gives: Option<&[Ty]>) -> Result<(), LaneError> {
        let func = self.func;
        let data = func.block(block);
        if data.ops.is_empty() {
            let message = format!("{block}: a block ends in one terminator, this one is empty");
            return Err(LaneError { kernel: func.name.clone(), message, loc: Loc::default() });
        }
        let mut defined: Vec<Value> = data.args.clone();
        for arg in &data.args {
            self.visible[arg.index()] = true;
        }
        for (i, id) in data.ops.iter().enumerate() {
            let op = func.op(*id);
            if op.kind.is_terminator() != (i + 1 == data.ops.len()) {
                return Err(self.error(op, "a block ends in one terminator"));
            }
            self.op(*id, gives)?;
            for result in &op.results {
                self.visible[result.index()] = true;
            }
            defined.extend(&op.results);
        }
        for value in defined {
            self.visible[value.index()] = false;
        }
        Ok(())
    }

    /// Checks that a bulk copy by a tensor map of the function has a coordinate for each of its dimensions.
    fn dimensions(&self, op: &Op) -> Result<(), LaneError> {
        let OpKind::Nv(NvOp::BulkLoad { rank, .. } | NvOp::BulkStore { rank }) = op.kind else {
            return Ok(());
        };
        let by = op.args.first().and_then(|map| self.func.def_op(*map));
        let Some(OpKind::Nv(NvOp::TensorMap(map)) | OpKind::Nv(NvOp::MapEntry(map))) = by.map(|op| &op.kind) else {
            return Ok(());
        };
        match self.func.maps.get(*map as usize) {
            Some(map) if map.rank() == usize::from(rank) => Ok(()),
            Some(map) => Err(self.error(op, &format!("{rank} coordinates, and the tensor map has {}", map.rank()))),
            None => Err(self.error(op, &format!("there is no tensor map {map}"))),
        }
    }

    fn op(&mut self, id: OpId, gives: Option<&[Ty]>) -> Result<(), LaneError> {
        let func = self.func;
        let op = func.op(id);
        if let Some(unknown) = op.args.iter().find(|v| !self.visible[v.index()]) {
            return Err(self.error(op, &format!("{unknown} is not defined here")));
        }
        let args = self.types(&op.args);
        let results = self.types(&op.results);
        let want = match op.kind.family() {
            Family::Flow(Flow::Yield) => match gives {
                Some(gives) => gives.to_vec(),
                None => return Err(self.error(op, "ends the arms of an `if` only, and the code of roles")),
            },
            Family::Flow(Flow::Return) if self.role.is_some() => {
                return Err(self.error(op, "a role's threads go on behind it: its code ends in `yield`"));
            }
            Family::Flow(Flow::Return) => Vec::new(),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let enclosing = self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get(at));
                let Some((broken, continued)) = enclosing else { return Err(self.error(op, "no such loop")) };
                if matches!(op.kind, OpKind::Break(_)) { broken.clone() } else { continued.clone() }
            }
            Family::Flow(Flow::If) => return self.branch(op, &results),
            Family::Flow(Flow::Roles(roles)) => return self.split(op, roles, &results),
            Family::Flow(Flow::For | Flow::Loop) => return self.repeat(op, &args, &results),
            Family::Pure
            | Family::Warp
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Matrix { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Group(_)
            | Family::Barrier(_) => {
                let found = infer(func, &op.kind, &args).map_err(|e| self.error(op, &e.message))?;
                if found != results {
                    return Err(self.error(op, "results of another type"));
                }
                self.dimensions(op)?;
                return self.barrier(op);
            }
        };
        if args == want { Ok(()) } else { Err(self.error(op, &format!("takes {want:?}, not {args:?}"))) }
    }

    fn branch(&mut self, op: &Op, results: &[Ty]) -> Result<(), LaneError> {
        let ok = self.types(&op.args) == [Ty::Pred] && op.regions.len() == 2;
        if !ok {
            return Err(self.error(op, "takes a condition and two arms"));
        }
        op.regions.iter().try_for_each(|arm| self.block(*arm, Some(results)))
    }

    /// Checks that a role's barrier is used only by its own warps, in its code.
    fn barrier(&self, op: &Op) -> Result<(), LaneError> {
        let Family::Barrier(Barrier::Named { id, threads, .. }) = op.kind.family() else { return Ok(()) };
        match self.role.filter(|role| role.barrier == id) {
            Some(role) if threads != role.warps.saturating_mul(self.func.lanes) => {
                Err(self.error(op, &format!("barrier {id} is of all {} warps of its role", role.warps)))
            }
            None if self.barriers.contains(&id) => Err(self.error(op, &format!("barrier {id} belongs to a role"))),
            Some(_) | None => Ok(()),
        }
    }

    fn split(&mut self, op: &Op, roles: &[Role], results: &[Ty]) -> Result<(), LaneError> {
        let all: u64 = roles.iter().map(|role| u64::from(role.warps)).sum();
        let threads = all * u64::from(self.func.lanes);
        if roles.iter().any(|role| role.warps == 0) || threads != u64::from(self.func.threads) {
            return Err(self.error(op, &format!("roles of {threads} threads in a program of {}", self.func.threads)));
        }
        if !op.args.is_empty() || op.regions.len() != roles.len() {
            return Err(self.error(op, "takes no operands, and the code of each role"));
        }
        for (i, role) in roles.iter().enumerate() {
            let taken = roles[..i].iter().any(|other| other.barrier == role.barrier);
            if taken || !matches!(role.barrier, 1..=15) {
                return Err(self.error(op, "each role has a barrier of its own, 1 to 15"));
            }
        }
        if self.role.is_some() {
            return Err(self.error(op, "the warps of a role have no roles in it"));
        }
        // `break` and `continue` in the code of a role cannot leave loops around the roles.
        let around = std::mem::take(&mut self.loops);
        for (role, code) in roles.iter().zip(&op.regions) {
            self.role = Some(*role);
            self.block(*code, Some(results))?;
        }
        self.role = None;
        self.loops = around;
        Ok(())
    }

    fn repeat(&mut self, op: &Op, args: &[Ty], results: &[Ty]) -> Result<(), LaneError> {
        let is_for = op.kind == OpKind::For;
        let [body] = op.regions.as_slice() else { return Err(self.error(op, "takes one body")) };
        let inner = self.types(&self.func.block(*body).args);
        let (bounds, init) = args.split_at(args.len().min(if is_for { 3 } else { 0 }));
        let (index, carried) = inner.split_at(inner.len().min(usize::from(is_for)));
        let ok =
            bounds.iter().chain(index).all(|t| *t == Ty::B32) && init == carried && (!is_for || results == carried);
        if !ok {
            return Err(self.error(op, "bounds, initial and carried values do not agree"));
        }
        self.loops.push((results.to_vec(), carried.to_vec()));
        self.block(*body, None)?;
        self.loops.pop();
        Ok(())
    }
}
