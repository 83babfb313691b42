//! Rings become barrier programs: tokens become slots of regions of shared memory, mbarriers with counts and parities, commit
//! groups and waits.
//!
//! | of a ring | one set of warps fills and reads it | one role fills it, others read it |
//! |---|---|---|
//! | clock | the next slot | the next slot and its parity, or the number of rounds |
//! | `acquire` | nothing: the stage was released before, in the order of the program | waits for the slot's `empty` mbarrier, or for the counters of its readers |
//! | `async_produce` | copies, and closes their commit group | copies that arrive at the slot's `full` mbarrier when they are done |
//! | `wait_ready` | waits for the group | waits for the phase of `full` |
//! | `release` | nothing | each reading warp arrives at `empty`, or one thread counts the release |
//!
//! One iteration of a loop that fills one slot of a ring of three, with roles:
//!
//! ```text
//! %free = ttg.nv.mbarrier.at %empty, %slot
//! %before = xor %parity, %one
//! ttg.nv.mbarrier.wait_parity %free, %before        the readers of the round before are done
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
//! Nobody is ever more than one phase ahead of who waits: the filler of round r + 1 has waited for the readers of round r.
//!
//! Deliberately absent: barriers between the warps of one role for memory that is no ring between roles, which hazards ask
//! for; and whether the protocol is right, which the verifier shows of the rings and of the result.

mod memory;
mod ring;
mod stage;
mod walk;

use crate::ir::{Builder, Kernel, LaidOut, OpId, OpKind, Value};
use crate::pipeline::vtok::{self, Groups};
use crate::plan::{LowerError, Target};
use ring::Ring;
use std::collections::BTreeMap;

/// Makes a barrier program of a kernel that is laid out. The memory of a ring is made in the loop in which the ring begins anew
/// ([`crate::verify::Verified::rings_begin_anew`]), if one is told.
///
/// # Errors
/// If the target has not what the rings need.
pub fn expand(kernel: &Kernel, target: &Target, anew: &[usize]) -> Result<Kernel, LowerError> {
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
        target,
        anew,
        b,
        made,
        stages: BTreeMap::new(),
        rings: Vec::new(),
        groups: vtok::assign(kernel, &|pipe| !ring::joins_roles(kernel, pipe)),
        moving: Vec::new(),
        warps: laid.warps,
        role: None,
        copying: false,
        tokens: 0,
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

type Made<T> = Result<T, LowerError>;

/// The clocks that a loop or branch carries.
struct Moving {
    is_loop: bool,
    clocks: Vec<ring::ClockPart>,
}

/// A stage of a ring, which a token stands for.
#[derive(Clone, Copy, Debug)]
struct Stage {
    pipe: usize,
    slot: Value,
    /// The parity of the round, or its number.
    turn: Value,
}

/// A kernel whose rings become barriers. Values called `old` are those of the kernel as it was.
struct Expand<'a> {
    k: &'a Kernel,
    laid: &'a LaidOut,
    target: &'a Target,
    /// How many loops are open where the memory of a ring is made.
    anew: &'a [usize],
    b: Builder,
    /// What stands for an old value that is no token.
    made: Vec<Option<Value>>,
    /// What old tokens stand for.
    stages: BTreeMap<Value, Stage>,
    rings: Vec<Ring>,
    /// Where commit groups end, and what waits allow.
    groups: Groups,
    /// The clocks that the open loops and branches carry, the innermost last.
    moving: Vec<Moving>,
    /// Warps of the role that runs here, or of the program.
    warps: u32,
    role: Option<usize>,
    /// Whether copies to buffers that are no stages are in flight.
    copying: bool,
    /// Commit groups so far.
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

    /// Says what stands for an old value, with its name and its place.
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

    /// Threads of the role that runs here, or of the program.
    fn threads(&self) -> u32 {
        self.warps * self.laid.lanes
    }
}
