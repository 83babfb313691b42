//! Rule 51: hardware limits on threads, registers and barrier numbers; and that all threads of a role meet at its barrier.

use super::place::error;
use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Block, Effect, Kernel, Loc, NvOp, Op, OpId, OpKind, RoleDecl, Stated};
use crate::verify::Error;
use crate::verify::coexecution::barriers::messages;
use crate::verify::roles::threads;

/// The number of registers of a multiprocessor (CUDA programming guide, "Technical specifications per compute capability").
const REGISTERS: u64 = 65_536;
/// The maximum number of registers of a thread when a program begins: instructions can address 255 (CUDA programming guide, same table),
/// and registers are allocated in units of 8.
const MOST_AT_ENTRY: u64 = 248;
/// The number of threads of a warp, and the maximum of a program (CUDA programming guide, same table).
const WARP: u32 = 32;
const THREADS: u32 = 1024;
/// The number of warps of a warpgroup (PTX ISA, "wgmma").
const WARPGROUP: u32 = 4;

/// Checks rule 51: numbers of threads, registers and barriers.
pub(in crate::verify) fn participants(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut named: SortedMap<u8, (u32, Loc)> = SortedMap::new();
    let wrong = |errors: &mut Vec<Error>, op: &Op, title: String| error(errors, Code::Participants, op.loc, title);
    kernel.walk(&mut |_, op| match op.kind.stated() {
        Stated::Named { id, threads } => {
            // PTX ISA, "bar": there are sixteen barriers, at which whole warps arrive.
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
        // `copiers` checks the arrivals of copies, `lives` those of barriers, `place` the bytes of copies.
        Stated::CopyArrivals(_)
        | Stated::Count(_)
        | Stated::Arrivals(_)
        | Stated::Expects(_)
        | Stated::Copies { .. }
        | Stated::Nothing => {}
    });
    copiers(kernel, errors);
    whole_roles(kernel, errors);
    warpgroups(kernel, errors);
    registers(kernel, errors);
}

/// Each thread of a role arrives once for its own copies (PTX ISA, "cp.async.mbarrier.arrive"). A kernel without roles does not state its
/// number of threads, so all such operations must agree with each other and with its named barriers.
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

/// In a program that is laid out, all threads of a role, or of the program, meet at its named barrier: rule 66 counts on it, and a barrier
/// of more threads would wait forever. Programs that are not laid out may have barriers of several roles, whose arrivals the co-execution counts.
fn whole_roles(kernel: &Kernel, errors: &mut Vec<Error>) {
    let Some(laid) = kernel.laid_out.as_deref() else { return };
    let mut role_of: SortedMap<OpId, usize> = SortedMap::new();
    if !kernel.roles.is_empty() {
        for (role, (_, block)) in threads(kernel).iter().enumerate() {
            kernel.walk_block(*block, &mut |id, _| role_of.extend([(id, role)]));
        }
    }
    kernel.walk(&mut |id, op| {
        let OpKind::Nv(NvOp::BarrierSync { id: number, threads }) = op.kind else { return };
        let role = role_of.get(&id).and_then(|role| kernel.roles.get(*role));
        let all = role.map_or(laid.warps, |role| role.warps).saturating_mul(laid.lanes);
        if threads != all {
            let who = role.map_or_else(|| "the program".to_owned(), |role| format!("`{}`", role.name));
            let title = format!("{threads} threads at named barrier {number}, but {who} has {all}");
            errors.push(Error::new(Code::Participants, op.loc, title).help(format!("`threads = {all}`")));
        }
    });
}

/// Operations of warpgroups are executed only by roles with whole warpgroups (PTX ISA, "wgmma" and "setmaxnreg").
fn warpgroups(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut before = 0u64;
    for (role, (_, block)) in kernel.roles.iter().zip(threads(kernel)) {
        // The warps of a program that is not laid out are not numbered yet.
        let begins = if kernel.laid_out.is_some() { before } else { 0 };
        before += u64::from(role.warps);
        let aligned = begins.is_multiple_of(u64::from(WARPGROUP));
        if role.warps.is_multiple_of(WARPGROUP) && aligned {
            continue;
        }
        let mut first: Option<(&str, Loc)> = None;
        kernel.walk_block(block, &mut |_, op| {
            let together = matches!(op.kind, OpKind::Nv(NvOp::Wgmma | NvOp::SetMaxNReg { .. }));
            first = first.or(together.then(|| (mnemonic(&op.kind), op.loc)));
        });
        if let Some((name, loc)) = first {
            let needs = format!("`{name}` needs whole warpgroups of {WARPGROUP} warps, but `{}`", role.name);
            let (title, who) = if aligned {
                (format!("{needs} has {}", role.warps), "the role")
            } else {
                (format!("{needs} begins at warp {begins}"), "the roles before it")
            };
            let help = format!("give {who} a multiple of {WARPGROUP} warps");
            errors.push(Error::new(Code::Participants, loc, title).help(help));
        }
    }
}

/// `setmaxnreg.inc` waits until the pool of the program has enough registers: those that all threads begin with, and no more (PTX ISA,
/// "setmaxnreg").
///
/// Each role requests registers once, before any operation that may wait for other threads. Roles that request fewer registers than they
/// have then release the rest without waiting; and roles that request more continue once all others have released theirs, if and only if
/// the pool has all registers that are requested, in addition to those that the other threads keep.
fn registers(kernel: &Kernel, errors: &mut Vec<Error>) {
    let asked: Vec<Option<(OpId, u32, Loc)>> = if kernel.roles.is_empty() {
        Vec::new()
    } else {
        threads(kernel).iter().map(|(_, b)| asks(kernel, *b)).collect()
    };
    let mut elsewhere = 0;
    kernel.walk(&mut |id, op| {
        let first = asked.iter().flatten().any(|(at, ..)| *at == id);
        if matches!(op.kind, OpKind::Nv(NvOp::SetMaxNReg { .. })) && !first {
            elsewhere += 1;
            let title =
                "`ttg.nv.setmaxnreg` that is not the first operation of a role: it waits for registers of other roles";
            let help = "each role sets its number of registers once, before all other operations";
            errors.push(Error::new(Code::Participants, op.loc, title).help(help));
        }
    });
    let Some((_, _, loc)) = asked.iter().flatten().max_by_key(|(_, registers, _)| *registers).copied() else { return };
    let pool = Pool::of(kernel);
    let role = |(decl, asked): (&RoleDecl, &Option<(OpId, u32, Loc)>)| {
        let each = asked.map_or(pool.entry, |(_, registers, _)| u64::from(registers));
        each * 32 * pool.warps(decl)
    };
    let in_roles: u64 = kernel.roles.iter().map(|decl| pool.warps(decl)).sum();
    let idle = pool.threads.saturating_sub(32 * in_roles);
    let sum = kernel.roles.iter().zip(&asked).map(role).sum::<u64>() + idle * pool.entry;
    let all = pool.threads.max(32 * in_roles);
    if elsewhere == 0 && sum > pool.entry * all {
        let title = format!(
            "the roles request {sum} registers, but the program has only {} ({} for each of its {all} threads): a role waits forever",
            pool.entry * all,
            pool.entry
        );
        let help = "a role without `ttg.nv.setmaxnreg` keeps what it begins with";
        errors.push(Error::new(Code::Participants, loc, title).help(help));
    }
}

/// The number of registers that a role requests in its first operation, apart from pure ones.
fn asks(kernel: &Kernel, role: Block) -> Option<(OpId, u32, Loc)> {
    let mut ops = kernel.block(role).ops.iter().map(|id| (*id, kernel.op(*id)));
    let (id, op) = ops.find(|(_, op)| op.kind.effect() != Effect::Pure)?;
    let OpKind::Nv(NvOp::SetMaxNReg { registers }) = op.kind else { return None };
    Some((id, registers, op.loc))
}

/// The registers with which a program begins.
struct Pool {
    /// The number of registers of each thread.
    entry: u64,
    threads: u64,
    /// The number of warps of which the warps of a role are rounded up to a multiple.
    whole: u64,
}

impl Pool {
    /// An assembler gives each thread an equal part of the multiprocessor's registers, in units of 8, and at most as many as an instruction
    /// can address; for this, threads are rounded up to whole warpgroups (`ptxas` 12.9: 168 for `.maxntid` 288 as for 384). The roles of a
    /// program that is not laid out are rounded up to whole warpgroups too, as laying out for such a target does.
    fn of(kernel: &Kernel) -> Pool {
        let group = u64::from(WARPGROUP);
        let laid = kernel.laid_out.as_deref().map(|laid| u64::from(laid.warps));
        let whole = if laid.is_some() { 1 } else { group };
        let roles = kernel.roles.iter().map(|r| whole_warps(r, whole)).sum();
        let warps = laid.unwrap_or(roles).max(roles);
        let parts = warps.next_multiple_of(group).max(1) * u64::from(WARP);
        let entry = (REGISTERS / parts / 8 * 8).min(MOST_AT_ENTRY);
        Pool { entry, threads: warps * u64::from(WARP), whole }
    }

    fn warps(&self, role: &RoleDecl) -> u64 {
        whole_warps(role, self.whole)
    }
}

/// The number of warps of a role, rounded up. In a laid-out program, roles have one instance.
fn whole_warps(role: &RoleDecl, whole: u64) -> u64 {
    u64::from(role.warps).next_multiple_of(whole) * u64::from(role.instances.max(1))
}
