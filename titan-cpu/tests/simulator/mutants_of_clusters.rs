//! Mistakes of the lowering that only programs with clusters, with several instances of a role, or with register pools can have. The
//! others are in `mutants`.

use super::mutants::{cluster, with, with_computed};
use titan_core::ir::{BinOp, Const, Elem, Kernel, NvOp, Op, OpId, OpKind, Pred, TtgOp, Value};

/// Registers of a multiprocessor, all of which a program of roles begins with.
const REGISTERS: u32 = 65_536;

/// What may be wrong at one operation.
pub(super) fn mutants_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    let op = program.op(id);
    let mut all = Vec::new();
    match op.kind {
        OpKind::Nv(NvOp::MbarrierInit { count }) if is_released_everywhere(program, op.args[0]) => {
            let own = OpKind::Nv(NvOp::MbarrierInit { count: count / cluster(program) });
            all.push(("a count of the readers of one program", with(program, id, own)));
            let more = OpKind::Nv(NvOp::MbarrierInit { count: count * 2 });
            all.push(("a count of the readers of more programs", with(program, id, more)));
        }
        OpKind::Nv(NvOp::BulkLoad { tensor, bytes, multicast, strided }) if multicast != 0 && cluster(program) > 2 => {
            let half = multicast >> (cluster(program) / 2);
            let kind = OpKind::Nv(NvOp::BulkLoad { tensor, bytes, multicast: half, strided });
            all.push(("a copy for all that is for half of the programs", with(program, id, kind)));
        }
        OpKind::Nv(NvOp::SetMaxNReg { registers }) => {
            let kind = |registers| OpKind::Nv(NvOp::SetMaxNReg { registers });
            let least = beyond(program, id, registers);
            all.extend(least.map(|n| ("registers just beyond the pool", with(program, id, kind(n)))));
            all.extend(at_the_end(program, id).map(|mutant| ("registers are set at the end of the role", mutant)));
        }
        OpKind::Cmp(Pred::Eq) => {
            if let Some((turn, instances)) = turn(program, op) {
                let number = |n| OpKind::Const(Const::Int(Elem::I32, n));
                let other = number((turn + 1) % instances);
                all.push(("an instance that takes the turn of another one", with_computed(program, id, 1, &[other])));
                let none = number(instances);
                all.push(("a turn of an instance that does not exist", with_computed(program, id, 1, &[none])));
            }
        }
        OpKind::Binary(BinOp::Rem) if decides(program, op.results[0]) => {
            if let Some(n) = is_number_of_turn(program, op) {
                let more = OpKind::Const(Const::Int(Elem::I32, n + 1));
                all.push(("turns of more instances than there are", with_computed(program, id, 1, &[more])));
            }
        }
        _ => {}
    }
    all
}

/// Whether an operation of the program's own thread comes before the roles.
pub(super) fn is_before_roles(program: &Kernel, id: OpId) -> bool {
    let ops = &program.block(program.body).ops;
    let before = ops.iter().take_while(|op| program.op(**op).kind != OpKind::Ttg(TtgOp::Roles));
    before.into_iter().any(|op| *op == id)
}

/// Whether the readers of all programs of a cluster arrive at some barrier of an array.
fn is_released_everywhere(program: &Kernel, array: Value) -> bool {
    program.ops.iter().any(|op| {
        let chosen = op.args.first().and_then(|barrier| program.def_op(*barrier));
        matches!(op.kind, OpKind::Nv(NvOp::ArriveCluster { .. }))
            && chosen.is_some_and(|at| at.kind == OpKind::Nv(NvOp::MbarrierAt) && at.args[0] == array)
    })
}

/// The least number of registers for a thread of a role with which all roles together request more than the program has.
fn beyond(program: &Kernel, id: OpId, registers: u32) -> Option<u32> {
    let roles = program.ops.iter().find(|op| op.kind == OpKind::Ttg(TtgOp::Roles))?;
    let all: u32 = program.roles.iter().map(|role| 32 * role.warps).sum();
    let entry = REGISTERS / all / 8 * 8;
    let mut threads = 0;
    let mut requested = 0;
    for (role, block) in program.roles.iter().zip(&roles.regions) {
        let set = program.block(*block).ops.iter().find_map(|op| {
            if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = program.op(*op).kind { Some(registers) } else { None }
        });
        requested += 32 * role.warps * set.unwrap_or(entry);
        if program.block(*block).ops.contains(&id) {
            threads = 32 * role.warps;
        }
    }
    let left = (entry * all).checked_sub(requested)?;
    let more = registers + 8 * (left / threads.checked_mul(8)? + 1);
    (more <= 256).then_some(more)
}

/// The number of an instance, and how many there are, if a comparison says whether a tile is its turn.
fn turn(program: &Kernel, op: &Op) -> Option<(i64, i64)> {
    let turn = program.int_constant(op.args[1])?;
    let rem = program.def_op(op.args[0]).filter(|rem| rem.kind == OpKind::Binary(BinOp::Rem))?;
    Some((turn, is_number_of_turn(program, rem)?))
}

/// The number of instances, if an operation computes whose turn it is: the remainder of the number of a tile, a quotient.
fn is_number_of_turn(program: &Kernel, rem: &Op) -> Option<i64> {
    program.def_op(rem.args[0]).filter(|tile| tile.kind == OpKind::Binary(BinOp::Div))?;
    program.int_constant(rem.args[1])
}

/// Whether a comparison of a value for equality decides a branch.
fn decides(program: &Kernel, value: Value) -> bool {
    let compares = |op: &&Op| op.kind == OpKind::Cmp(Pred::Eq) && op.args[0] == value;
    let branches = |op: &Op| program.ops.iter().any(|o| o.kind == OpKind::If && o.args[0] == op.results[0]);
    program.ops.iter().filter(compares).any(branches)
}

/// The program with an operation right in front of the end of its role.
fn at_the_end(program: &Kernel, id: OpId) -> Option<Kernel> {
    let mut mutant = program.clone();
    let block = mutant.blocks.iter_mut().find(|block| block.ops.contains(&id))?;
    block.ops.retain(|op| *op != id);
    let end = block.ops.iter().position(|op| program.op(*op).kind == OpKind::Ttg(TtgOp::Finalize))?;
    block.ops.insert(end, id);
    Some(mutant)
}
