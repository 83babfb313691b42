//! Rule 51: hardware limits on threads, registers and barrier numbers.

use super::place::error;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, Loc, NvOp, Op, OpKind, Stated};
use crate::verify::Error;
use crate::verify::coexecution::barriers::messages;
use crate::verify::roles::threads;
use std::collections::BTreeMap;

/// Registers of a multiprocessor (CUDA programming guide, "Technical specifications per compute capability").
const REGISTERS: u64 = 65_536;
/// Threads of a warp, and the maximum of a program (CUDA programming guide, same table).
const WARP: u32 = 32;
const THREADS: u32 = 1024;
/// Warps of a warpgroup (PTX ISA, "wgmma").
const WARPGROUP: u32 = 4;

/// Rule 51: threads, registers and numbers.
pub(in crate::verify) fn participants(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut named: BTreeMap<u8, (u32, Loc)> = BTreeMap::new();
    let wrong = |errors: &mut Vec<Error>, op: &Op, title: String| error(errors, Code::Participants, op.loc, title);
    kernel.walk(&mut |_, op| match op.kind.stated() {
        Stated::Named { id, threads } => {
            // PTX ISA, "bar": sixteen barriers, whole warps.
            let again = named.contains_key(&id);
            if id >= 16 && !again {
                wrong(errors, op, format!("there is no named barrier {id}: they are numbered 0 to 15"));
            }
            if !again && (threads == 0 || threads % 32 != 0 || threads > 1024) {
                let title =
                    format!("{threads} threads at named barrier {id}: it must be whole warps of 32, up to 1024");
                wrong(errors, op, title);
            }
            let (other, loc) = *named.entry(id).or_insert((threads, op.loc));
            if other != threads {
                let title =
                    format!("named barrier {id} is used with {threads} threads here, and with {other} elsewhere");
                errors.push(Error::new(Code::Participants, op.loc, title).related(loc, "the other use"));
            }
        }
        Stated::Registers(registers) if registers % 8 != 0 || !(24..=256).contains(&registers) => {
            // PTX ISA, "setmaxnreg".
            wrong(
                errors,
                op,
                format!("{registers} registers per thread: the number must be a multiple of 8 from 24 to 256"),
            );
        }
        Stated::Priority(level) if level > 3 => {
            wrong(errors, op, format!("there is no priority {level}: priorities are 0 to 3"))
        }
        Stated::Registers(_) | Stated::Priority(_) => {}
        // `copiers` checks the arrivals for copies, `lives` those of barriers, `place` the bytes of copies.
        Stated::CopyArrivals(_)
        | Stated::Count(_)
        | Stated::Arrivals(_)
        | Stated::Expects(_)
        | Stated::Copies { .. }
        | Stated::Nothing => {}
    });
    copiers(kernel, errors);
    warpgroups(kernel, errors);
    registers(kernel, errors);
}

/// Every thread of a role arrives once for its own copies (PTX ISA, "cp.async.mbarrier.arrive"). A kernel without roles does
/// not state its number of threads: all such operations must agree with each other and with its named barriers.
fn copiers(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (role, (who, block)) in threads(kernel).into_iter().enumerate() {
        let mut all = kernel.roles.get(role).map(|r| r.warps.saturating_mul(WARP));
        kernel.walk_block(block, &mut |_, op| {
            let (OpKind::Nv(NvOp::BarrierSync { threads, .. }), None) = (&op.kind, all) else { return };
            all = Some(*threads);
        });
        kernel.walk_block(block, &mut |_, op| {
            let OpKind::Nv(NvOp::CpAsyncArrive { arrivals, .. }) = op.kind else { return };
            let whole = arrivals != 0 && arrivals.is_multiple_of(WARP) && arrivals <= THREADS;
            let wanted = *all.get_or_insert(if whole { arrivals } else { WARP });
            if arrivals != wanted {
                let title = format!(
                    "{} for the copies of {who}, but each of its {wanted} threads arrives once",
                    messages::arrivals(arrivals)
                );
                let help = format!("`arrivals = {wanted}`, or as many warps as copy");
                errors.push(Error::new(Code::Participants, op.loc, title).help(help));
            }
        });
    }
}

/// Operations of a warpgroup are executed by roles with whole warpgroups (PTX ISA, "wgmma" and "setmaxnreg").
fn warpgroups(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (role, (_, block)) in
        kernel.roles.iter().zip(threads(kernel)).filter(|(r, _)| !r.warps.is_multiple_of(WARPGROUP))
    {
        let mut first: Option<(&str, Loc)> = None;
        kernel.walk_block(block, &mut |_, op| {
            let together = matches!(op.kind, OpKind::Nv(NvOp::Wgmma | NvOp::SetMaxNReg { .. }));
            first = first.or(together.then(|| (mnemonic(&op.kind), op.loc)));
        });
        if let Some((name, loc)) = first {
            let title =
                format!("`{name}` needs whole warpgroups of {WARPGROUP} warps, but `{}` has {}", role.name, role.warps);
            errors.push(
                Error::new(Code::Participants, loc, title)
                    .help(format!("give the role a multiple of {WARPGROUP} warps")),
            );
        }
    }
}

/// The registers of all roles together fit a multiprocessor.
fn registers(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut sum = 0;
    let mut last = None;
    for (role, (_, block)) in kernel.roles.iter().zip(threads(kernel)) {
        let mut most = None;
        kernel.walk_block(block, &mut |_, op| {
            if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = op.kind {
                most = most.max(Some((registers, op.loc)));
            }
        });
        let Some((registers, loc)) = most else { return };
        sum += u64::from(registers) * u64::from(role.warps) * 32;
        last = Some(loc);
    }
    if let Some(loc) = last.filter(|_| sum > REGISTERS) {
        let title = format!("the roles ask for {sum} registers in all: a multiprocessor has {REGISTERS}");
        error(errors, Code::Participants, loc, title);
    }
}
