//! Lowers rings to barrier programs: tokens become slots of shared-memory regions, mbarriers with counts and parities, commit groups and
//! waits.
//!
//! | operation | one warp set fills and reads the ring | one role fills it, others read it |
//! |---|---|---|
//! | clock | the next slot | the next slot and its parity, or the number of rounds |
//! | `acquire` | nothing: the stage was released earlier in program order | waits for the slot's `empty` mbarrier, or for the counters of its readers |
//! | `async_produce` | copies, whose group is committed after it | copies that arrive at the slot's `full` mbarrier when they complete |
//! | `wait_ready` | nothing: the group is waited for before it | waits for the phase of `full` |
//! | `release` | nothing | each reading warp arrives at `empty`, or one thread counts the release |
//!
//! One iteration of a loop that fills one slot of a ring of three, with roles:
//!
//! ```text
//! %free = ttg.nv.mbarrier.at %empty, %slot
//! %before = xor %parity, %one
//! ttg.nv.mbarrier.wait_parity %free, %before        the readers of the previous round have released the slot
//! %part = ttg.region.at %ring, %slot
//! %tile = ttg.region.tile %part {offset = 0} : smem<128x64xf16, 0>
//! ttg.local.copy_async %source, %tile
//! %ready = ttg.nv.mbarrier.at %full, %slot
//! ttg.nv.cp_async.mbarrier_arrive %ready {arrivals = 32, noinc = true}
//! %next = add %slot, %one
//! %wraps = eq %next, %three
//! %slot1 = select %wraps, %zero, %next
//! %parity1 = select %wraps, %before, %parity
//! ```
//!
//! No role is more than one phase ahead of a role that waits: the filler of round r + 1 has waited for the readers of round r.
//!
//! Deliberately absent: barriers between the warps of a role for other memory, which [`crate::synchronize`] inserts; and the correctness of
//! the protocol, which the verifier checks for the rings and for the result.

mod filling;
mod memory;
mod ring;
mod stage;
mod walk;

use crate::analysis::cluster::Differing;
use crate::collections::SortedMap;
use crate::ir::{Builder, Kernel, LaidOut, NvGroup, NvOp, OpId, OpKind, Value};
use crate::plan::LowerError;
use crate::target::Target;
use ring::Ring;

/// The numbers of registers per thread in kernels where roles release registers for others (`setmaxnreg`).
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// For a role that only starts bulk copies, to few rings.
    pub copying: u32,
    /// For such a role with more rings: it keeps a slot and a parity for each.
    pub copying_to_many: u32,
    /// The maximum number of rings that are few.
    pub few_rings: usize,
    /// The maximum for other roles.
    pub most: u32,
}

/// Lowers a laid-out kernel, in which the groups of asynchronous operations are counted ([`crate::complete`]), to a barrier program. The memory of a ring is created in the loop in which the ring restarts
/// ([`crate::verify::Verified::rings_begin_anew`]), if there is one.
///
/// # Errors
/// Returns an error if the target lacks features that the rings need.
pub fn expand(kernel: &Kernel, target: &Target, registers: Registers, anew: &[usize]) -> Result<Kernel, LowerError> {
    let Some(laid) = kernel.laid_out.as_deref() else {
        return Err(LowerError::internal(kernel, "a kernel that is not laid out".to_owned()));
    };
    let mut b = Builder::like(kernel);
    b.lay_out(laid.clone());
    let mut made = vec![None; kernel.values.len()];
    (0..kernel.sig.params.len()).for_each(|i| made[i] = Some(Value::new(i)));
    let mut run = Expand {
        k: kernel,
        laid,
        differing: Differing::new(kernel),
        target,
        registers,
        anew,
        b,
        made,
        stages: SortedMap::new(),
        rings: Vec::new(),
        moving: Vec::new(),
        warps: laid.warps,
        role: None,
        tokens: commits(kernel),
        at: None,
    };
    run.make_rings()?;
    run.block(kernel.body)?;
    let mut out = run.b.finish();
    if let Some(laid) = &mut out.laid_out {
        laid.stages.clear();
    }
    Ok(out)
}

/// The number of commit groups of copies in a kernel.
fn commits(kernel: &Kernel) -> u32 {
    let mut commits = 0;
    kernel.walk(&mut |_, op| {
        commits += u32::from(matches!(op.kind, OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, .. })));
    });
    commits
}

type Made<T> = Result<T, LowerError>;

/// The clocks that a loop or branch carries.
struct Moving {
    is_loop: bool,
    clocks: Vec<ring::ClockPart>,
}

/// The stage that a token stands for.
#[derive(Clone, Copy, Debug)]
struct Stage {
    pipe: usize,
    slot: Value,
    /// The parity of the round, or the number of earlier rounds.
    turn: Value,
}

/// The state while a kernel is lowered. Values called `old` are those of the input kernel.
struct Expand<'a> {
    k: &'a Kernel,
    laid: &'a LaidOut,
    /// The values that may differ between the programs of a cluster.
    differing: Differing,
    target: &'a Target,
    registers: Registers,
    /// For each ring, the loop depth at which its memory is created.
    anew: &'a [usize],
    b: Builder,
    /// The new value of each old value that is not a token.
    made: Vec<Option<Value>>,
    /// The stages of old tokens.
    stages: SortedMap<Value, Stage>,
    rings: Vec<Ring>,
    /// The clocks that the open loops and branches carry, the innermost last.
    moving: Vec<Moving>,
    /// The number of warps of the current role, or of the program.
    warps: u32,
    role: Option<usize>,
    /// The number of commit groups so far.
    tokens: u32,
    at: Option<OpId>,
}

impl Expand<'_> {
    fn internal(&self, message: impl Into<String>) -> LowerError {
        LowerError::internal(self.k, message.into())
    }

    fn same(&self, old: Value) -> Made<Value> {
        self.made[old.index()].ok_or_else(|| self.internal(format!("{old} is not made yet")))
    }

    fn all_same(&self, old: &[Value]) -> Made<Vec<Value>> {
        old.iter().map(|v| self.same(*v)).collect()
    }

    /// Sets the new value of an old one, with its name and location.
    fn make(&mut self, old: Value, new: Value) {
        let data = self.k.value(old);
        if let Some(name) = &data.name {
            self.b.name(new, name);
        }
        self.b.set_place(new, data.place);
        self.made[old.index()] = Some(new);
    }

    fn op(&mut self, kind: OpKind, args: &[Value]) -> Made<Vec<Value>> {
        self.b.op(kind, args).map_err(|e| LowerError::internal(self.k, e.to_string()))
    }

    fn one(&mut self, kind: OpKind, args: &[Value]) -> Made<Value> {
        self.b.op1(kind, args).map_err(|e| LowerError::internal(self.k, e.to_string()))
    }

    /// The number of threads of the current role, or of the program.
    fn threads(&self) -> u32 {
        self.warps * self.laid.lanes
    }
}
