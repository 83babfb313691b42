//! Rules 73 to 76: operations on tensor memory.
//!
//! 73. An MMA has attributes and element types that are allowed together, and
//! 74. a shape that exists for them ([`Mma::check`](crate::ir::Mma::check)).
//! 75. Columns are allocated in powers of two, at most as many as exist, and freed once; and not after the block has relinquished the right
//!     to allocate. Allocation and release are executed once: outside of loops and branches.
//!     No operation accesses more columns of an operand than were allocated, or more bytes of a region than it has.
//! 76. One thread of one warp starts and commits MMAs and copies, and one warp allocates; other warps, in another role, load and store, in groups of four
//!     warps, each of which accesses a quarter of the lanes. All operations of a kernel have the same number of CTAs. Sources: PTX ISA,
//!     "tcgen05", its issue granularity, access restrictions and `.cta_group`.
//!
//! Deliberately absent: the order of accesses, and uses of freed columns (`coexecution::barriers::tensor`); no kernel is lowered to them.

use super::place::{error, part};
use crate::diag::{Code, counted};
use crate::ir::op_table::mnemonic;
use crate::ir::{
    BarrierTy, Block, Kernel, Loc, Mma, NoMma, NvOp, Op, OpId, OpKind, TENSOR_COLUMNS as COLUMNS, Tcgen05Op,
    TensorShape, Ty, Value,
};
use crate::verify::Error;
use crate::verify::roles::threads;

/// The minimum of columns that is allocated.
const FEWEST: u32 = 32;
/// The number of warps that together access all lanes of tensor memory.
const QUARTERS: u32 = 4;

const fn of(op: &Op) -> Option<&Tcgen05Op> {
    if let OpKind::Nv(NvOp::Tcgen05(tensor)) = &op.kind { Some(tensor) } else { None }
}

/// Violations of rules 73 to 76.
pub(super) fn check(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| match of(op) {
        Some(Tcgen05Op::Mma(mma)) => product(kernel, op, mma, errors),
        Some(Tcgen05Op::Load { shape, times } | Tcgen05Op::Store { shape, times }) => moved(op, *shape, *times, errors),
        Some(_) | None => {}
    });
    kernel.walk(&mut |_, op| {
        if let Some(tensor) = of(op) {
            beyond(kernel, op, tensor, errors);
        }
    });
    columns(kernel, errors);
    roles(kernel, errors);
    groups(kernel, errors);
}

fn product(kernel: &Kernel, op: &Op, mma: &Mma, errors: &mut Vec<Error>) {
    let in_tensor_memory = op.args.get(1).map(|a| kernel.ty(*a)) == Some(Ty::Barrier(BarrierTy::TensorMemory));
    match mma.check(in_tensor_memory) {
        Ok(()) => {}
        Err(NoMma::Attributes(title)) => error(errors, Code::TensorMma, op.loc, title),
        Err(NoMma::Shape(title)) => error(errors, Code::TensorMmaShape, op.loc, title),
    }
}

/// The largest number of repetitions: a load or store moves at most 128 registers (PTX ISA, "tcgen05.ld").
const fn most(shape: TensorShape) -> u32 {
    match shape {
        TensorShape::L32x32b | TensorShape::L16x64b => 128,
        TensorShape::L16x128b => 64,
        TensorShape::L16x256b => 32,
    }
}

fn moved(op: &Op, shape: TensorShape, times: u32, errors: &mut Vec<Error>) {
    let most = most(shape);
    if !times.is_power_of_two() || times > most {
        let title = format!("{times} times {shape}: the number must be a power of two up to {most}");
        error(errors, Code::Participants, op.loc, title);
    }
}

/// Operands beyond the columns or the region that they name.
fn beyond(kernel: &Kernel, op: &Op, tensor: &Tcgen05Op, errors: &mut Vec<Error>) {
    if let Tcgen05Op::Mma(mma) = tensor {
        // The extents of an MMA that does not exist mean nothing.
        if mma.check(op.args.get(1).map(|a| kernel.ty(*a)) == Some(Ty::Barrier(BarrierTy::TensorMemory))).is_err() {
            return;
        }
    }
    if let Tcgen05Op::Load { shape, times } | Tcgen05Op::Store { shape, times } = tensor
        && *times > most(*shape)
    {
        return;
    }
    for (i, operand) in op.args.iter().enumerate() {
        let ty = kernel.ty(*operand);
        let (used, has, code, unit) = if ty == Ty::Barrier(BarrierTy::TensorMemory) {
            (tensor.columns(i), allocation(kernel, *operand), Code::TensorColumns, "columns")
        } else if ty == Ty::Barrier(BarrierTy::Region) {
            let room = part(kernel, *operand).map(|(_, room, _)| room);
            (tensor.shared_bytes(i), room, Code::RegionMade, "bytes")
        } else {
            continue;
        };
        let (Some(used), Some(has)) = (used, has) else { continue };
        if u64::from(used) > has {
            let name = kernel.display_name(*operand);
            let title = format!("`{}` accesses {used} {unit} of `{name}`, which has {has}", mnemonic(&op.kind));
            errors.push(Error::new(code, op.loc, title).help(format!("give `{name}` {used} {unit} or more")));
        }
    }
}

/// The columns that were allocated as a value, if there may be so many.
fn allocation(kernel: &Kernel, value: Value) -> Option<u64> {
    let Some(Tcgen05Op::Alloc { columns, .. }) = of(kernel.def_op(value)?) else { return None };
    (FEWEST..=COLUMNS).contains(columns).then_some(u64::from(*columns))
}

/// The operations of a block, without those nested in loops and branches.
fn straight(kernel: &Kernel, block: Block) -> impl Iterator<Item = (OpId, &Op)> {
    kernel.block(block).ops.iter().map(|id| (*id, kernel.op(*id)))
}

/// Checks rule 75.
fn columns(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut all = threads(kernel).into_iter().map(|(_, block)| block).collect::<Vec<_>>();
    if !all.contains(&kernel.body) {
        all.push(kernel.body);
    }
    let once: Vec<OpId> = all.iter().flat_map(|block| straight(kernel, *block)).map(|(id, _)| id).collect();
    let mut sum = 0u32;
    kernel.walk(&mut |id, op| {
        let Some(tensor) = of(op) else { return };
        if matches!(tensor, Tcgen05Op::Alloc { .. } | Tcgen05Op::Dealloc { .. }) && !once.contains(&id) {
            let title = format!("`{}` is in a loop or branch: it must be executed once", mnemonic(&op.kind));
            error(errors, Code::TensorColumns, op.loc, title);
        }
        if let Tcgen05Op::Alloc { columns, .. } = tensor {
            allocated(kernel, op, *columns, errors);
            sum = sum.saturating_add(*columns);
            if sum > COLUMNS && *columns <= COLUMNS {
                let title = format!("{sum} columns are allocated in all: tensor memory has {COLUMNS}");
                error(errors, Code::TensorColumns, op.loc, title);
            }
        }
    });
    for block in all {
        let mut given_up: Option<Loc> = None;
        for (_, op) in straight(kernel, block) {
            match (of(op), given_up) {
                (Some(Tcgen05Op::Relinquish { .. }), _) => given_up = Some(op.loc),
                (Some(Tcgen05Op::Alloc { .. }), Some(loc)) => errors.push(
                    Error::new(Code::TensorColumns, op.loc, "columns are allocated after the block gave that up")
                        .related(loc, "here"),
                ),
                (_, _) => {}
            }
        }
    }
}

fn allocated(kernel: &Kernel, op: &Op, columns: u32, errors: &mut Vec<Error>) {
    if !columns.is_power_of_two() || !(FEWEST..=COLUMNS).contains(&columns) {
        let title =
            format!("{}: the number must be a power of two from {FEWEST} to {COLUMNS}", counted(columns, "column"));
        error(errors, Code::TensorColumns, op.loc, title);
    }
    let mut freed = 0;
    kernel.walk(&mut |_, free| {
        freed += usize::from(matches!(of(free), Some(Tcgen05Op::Dealloc { .. })) && free.args == op.results);
    });
    if freed != 1 {
        let name = op.results.first().map_or_else(String::new, |v| kernel.display_name(*v));
        let how = if freed == 0 { "never freed".to_owned() } else { format!("freed {freed} times") };
        errors.push(
            Error::new(Code::TensorColumns, op.loc, format!("the columns `{name}` are {how}"))
                .help("`ttg.nv.tcgen05.dealloc` once, after their last use"),
        );
    }
}

/// Checks rule 76 for roles.
fn roles(kernel: &Kernel, errors: &mut Vec<Error>) {
    if kernel.roles.is_empty() {
        all_warps(kernel, errors);
    }
    for (role, (_, block)) in kernel.roles.iter().zip(threads(kernel)) {
        kernel.walk_block(block, &mut |_, op| {
            let Some(tensor) = of(op) else { return };
            let (name, warps) = (mnemonic(&op.kind), role.warps);
            if tensor.is_of_one_warp() && warps != 1 {
                let title = format!("one warp executes `{name}`, but `{}` has {warps}", role.name);
                errors.push(Error::new(Code::TensorThreads, op.loc, title).help("give it a role of one warp"));
            }
            let moves = matches!(tensor, Tcgen05Op::Load { .. } | Tcgen05Op::Store { .. });
            if moves && !warps.is_multiple_of(QUARTERS) {
                let title = format!(
                    "{QUARTERS} warps reach all lanes of tensor memory by `{name}`, but `{}` has {warps}",
                    role.name
                );
                errors.push(
                    Error::new(Code::TensorThreads, op.loc, title)
                        .help(format!("give the role a multiple of {QUARTERS} warps")),
                );
            }
        });
    }
}

/// Checks rule 76 for a kernel without roles: all of its warps load and store, so one of them may not use the same columns in between.
fn all_warps(kernel: &Kernel, errors: &mut Vec<Error>) {
    let (mut of_one, mut of_all) = (None, None);
    kernel.walk(&mut |_, op| {
        let Some(tensor) = of(op).filter(|tensor| tensor.accesses_columns()) else { return };
        if tensor.is_of_one_warp() {
            of_one = of_one.or(Some((op.loc, mnemonic(&op.kind))));
        } else {
            of_all = of_all.or(Some(op.loc));
        }
    });
    if let (Some((loc, name)), Some(moved)) = (of_one, of_all) {
        let title = format!(
            "one warp executes `{name}`, and all warps load from tensor memory or store to it: the order of these warps could not be verified"
        );
        errors.push(
            Error::new(Code::TensorThreads, loc, title).related(moved, "all warps").help(format!(
                "give the kernel roles: one of one warp, and one of {QUARTERS} warps for loads and stores"
            )),
        );
    }
}

/// Checks rule 76 for the number of CTAs.
fn groups(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut first: Option<(u32, Loc)> = None;
    kernel.walk(&mut |_, op| {
        let Some(group) = of(op).and_then(Tcgen05Op::cta_group) else { return };
        let (other, loc) = *first.get_or_insert((group, op.loc));
        // For MMAs, `Mma::check` reports it.
        if !matches!(group, 1 | 2) && !matches!(of(op), Some(Tcgen05Op::Mma(_))) {
            error(errors, Code::TensorThreads, op.loc, format!("there is no `cta_group` {group}: it is 1 or 2"));
        } else if other != group {
            let title = format!("`cta_group = {group}` here, and {other} elsewhere: a kernel has one");
            errors.push(Error::new(Code::TensorThreads, op.loc, title).related(loc, "the other one"));
        }
    });
}
