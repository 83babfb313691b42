//! From a verified kernel to the variants of an artifact: the whole way, one step a line.

use crate::lower::{EmitError, emit};
use crate::machine::Machine;
use crate::target::target;
use titan_core::artifact::{Assumption, Variant};
use titan_core::diag::Code;
use titan_core::ir::{HostExpr, Kernel, Loc, OpId, ParamKind, Pipe, Value};
use titan_core::lane::Func;
use titan_core::lay_out::lay_out;
use titan_core::lower::{LowerError, Lowered, barrier_program, lower};
use titan_core::pipeline::implicit::{self, Candidate};
use titan_core::pipeline::{depth, fuse};
use titan_core::plan::{self, Plan};
use titan_core::verify::{Verified, verify};

/// Why a kernel cannot be compiled for a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The target is known, but there is no code generator for it.
    #[error(
        "kernel `{kernel}`: TITAN does not generate code for {target} yet\n  help: the CPU device runs every kernel; set `TITAN_DEVICE=cpu`"
    )]
    Target {
        /// The kernel, with its instance.
        kernel: String,
        /// The target's name.
        target: &'static str,
    },
    /// The kernel asks for what the target has not, or has not enough of.
    #[error("{0}")]
    Lower(#[from] LowerError),
    /// The lane IR does not become PTX.
    #[error("{0}")]
    Emit(#[from] EmitError),
}

/// Why a kernel cannot be compiled for a machine, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Where the user wrote it; the whole kernel if that is nowhere.
    pub loc: Loc,
    /// What is wrong, in the user's names.
    pub message: String,
    /// A way out, besides another device.
    pub help: Option<String>,
    /// Whether another instance of the kernel may be told something else there.
    pub of_instance: bool,
}

impl Unsupported {
    /// The error in parts, for those who say it at its place.
    #[must_use]
    pub fn told(&self) -> Told {
        let of_kernel = |message: String| Told { loc: Loc::default(), message, help: None, of_instance: true };
        match self {
            Unsupported::Target { target, .. } => of_kernel(format!("TITAN does not generate code for {target} yet")),
            Unsupported::Lower(e) => {
                Told { loc: e.loc, message: e.message.clone(), help: e.help.clone(), of_instance: e.of_instance }
            }
            Unsupported::Emit(EmitError::Operation { target, op, why, loc, .. }) => {
                Told { loc: *loc, of_instance: false, ..of_kernel(format!("{target} has no `{op}`: {why}")) }
            }
            Unsupported::Emit(e) => of_kernel(e.to_string()),
        }
    }

    /// The code of the rule.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::Backend
    }
}

/// Compiles a kernel for a machine: the variant for aligned arguments first, then the one that assumes nothing.
///
/// `source` is the user's file and the line of it on which the kernel begins, for line information.
///
/// # Errors
/// If the machine cannot run the kernel.
pub fn compile(kernel: &Verified, machine: &Machine, source: Option<(&str, u32)>) -> Result<Vec<Variant>, Unsupported> {
    if !machine.supported {
        return Err(Unsupported::Target { kernel: kernel.sig.full_name(), target: machine.name });
    }
    let target = target(machine);
    let mut variants = Vec::new();
    for aligned in [true, false] {
        let plan = plan::plan(kernel, &target, aligned);
        if aligned && plan.vectored.iter().all(|v| !v) {
            // Nothing is accessed in vectors: both variants would be one.
            continue;
        }
        let asked = kernel.sig.requires.len();
        let (kernel, plan, lowered) = chosen(kernel, plan)?;
        let kernel = &kernel;
        let ptx = emit(&lowered.func, machine, source)?;
        variants.push(Variant {
            target: machine.name.to_owned(),
            config: config(&plan, &ptx.entry, ptx.version, lowered.barriers),
            assumptions: if aligned { assumptions(kernel, &plan, asked) } else { Vec::new() },
            shared_bytes: lowered.func.shared_bytes,
            threads: lowered.func.threads,
            notes: [plan.notes, lowered.notes].concat(),
            sites: lowered.sites,
            payload: ptx.text.into_bytes(),
        });
    }
    Ok(variants)
}

/// What a kernel is on its way to the code of a machine: every stage as it is printed.
#[derive(Clone, Debug)]
pub struct Stages {
    /// The kernel with the rings, distances and roles that were chosen for the machine.
    pub rings: Verified,
    /// The same, its tiles laid out over threads.
    pub laid_out: Kernel,
    /// The barrier program that its rings have become.
    pub barriers: Kernel,
    /// What a thread does.
    pub lanes: Func,
    /// The code.
    pub ptx: String,
}

/// The stages of a kernel on the way to one variant: for aligned arguments, or for any.
///
/// # Errors
/// As [`compile`].
pub fn stages(kernel: &Verified, machine: &Machine, aligned: bool) -> Result<Stages, Unsupported> {
    if !machine.supported {
        return Err(Unsupported::Target { kernel: kernel.sig.full_name(), target: machine.name });
    }
    let (rings, plan, lowered) = chosen(kernel, plan::plan(kernel, &target(machine), aligned))?;
    let ptx = emit(&lowered.func, machine, None)?;
    let laid_out = lay_out(&rings, &plan)?;
    let barriers = barrier_program(&rings, &plan)?;
    Ok(Stages { rings, laid_out, barriers, lanes: lowered.func, ptx: ptx.text })
}

/// The kernel as it is lowered for a target, with its plan.
fn chosen(kernel: &Verified, plan: Plan) -> Result<(Verified, Plan, Lowered), LowerError> {
    if kernel.roles.is_empty() { pipelined(kernel, plan) } else { with_roles(kernel, plan) }
}

/// The kernel with its pipelined loops as rings where that pays, planned and lowered: where copies by threads may run ahead.
fn pipelined(kernel: &Verified, plan: Plan) -> Result<(Verified, Plan, Lowered), LowerError> {
    let (mut kernel, mut plan) = (kernel.clone(), plan);
    let mut done = 0;
    while let Some(candidate) = next_candidate(&kernel, &plan, done) {
        match deepest(&kernel, &plan, &candidate) {
            Some((ringed, with_ring)) => (kernel, plan) = (ringed, with_ring),
            None => done += 1,
        }
    }
    let lowered = lower(&kernel, &plan)?;
    Ok((kernel, plan, lowered))
}

/// A kernel with roles, fused if that is possible: threads that copy may as well compute. Else each role has its warps.
///
/// Copies that run ahead are worth more than slots: first the slots and distances with which they do, then the others.
fn with_roles(kernel: &Verified, plan: Plan) -> Result<(Verified, Plan, Lowered), LowerError> {
    let deepest = kernel.pipes.iter().map(|p| p.slots).max().unwrap_or(1);
    let fitting: Vec<u32> = (0..deepest).filter(|fewer| rings_fit(&with_fewer_slots(kernel, *fewer), &plan)).collect();
    let ahead = fitting.iter().find_map(|fewer| {
        let shallow = with_fewer_slots(kernel, *fewer);
        let greatest = fuse::greatest_distance(&shallow);
        // Whoever cannot copy one iteration ahead cannot copy more: then the other distances are not tried.
        let possible = greatest > 0 && fused(kernel, &shallow, &plan, 1).is_some();
        let (distance, found) = (1..=greatest)
            .rev()
            .filter(|_| possible)
            .find_map(|distance| Some((distance, fused(kernel, &shallow, &plan, distance)?)))?;
        let mut ready = lowered(found, &plan)?;
        ready.1.notes.push(format!("roles fused: all warps copy {distance} iterations ahead and compute"));
        Some((*fewer, ready))
    });
    let separate = || {
        fitting.iter().find_map(|fewer| {
            let shallow = with_fewer_slots(kernel, *fewer);
            if let Some(mut ready) = fused(kernel, &shallow, &plan, 0).and_then(|found| lowered(found, &plan)) {
                ready.1.notes.push("roles fused: all warps copy 0 iterations ahead and compute".to_owned());
                return Some((*fewer, ready));
            }
            Some((*fewer, lowered(verified(kernel, shallow, &plan)?, &plan)?))
        })
    };
    if let Some((fewer, mut ready)) = ahead.or_else(separate) {
        ready.1.notes.extend(slots_note(kernel, fewer, plan.target.name));
        return Ok(ready);
    }
    let lowered = lower(kernel, &plan)?;
    Ok((kernel.clone(), plan, lowered))
}

/// Whether the slots of all rings alone fit into the memory of the target.
fn rings_fit(kernel: &Kernel, plan: &Plan) -> bool {
    let bytes = kernel.pipes.iter().map(|p| p.bytes().saturating_mul(p.slots.into())).fold(0, u64::saturating_add);
    bytes <= plan.target.shared_bytes.into()
}

/// The roles as one, copies running so far ahead.
fn fused(original: &Verified, kernel: &Kernel, plan: &Plan, distance: u32) -> Option<Verified> {
    if !plan.target.copy_async {
        return None;
    }
    verified(original, fuse::fuse(kernel, distance)?, plan)
}

/// A kernel that does the same as another. What it asks of a launch beyond that can only be assumed, where there is a variant
/// that assumes nothing.
fn verified(original: &Verified, kernel: Kernel, plan: &Plan) -> Option<Verified> {
    let done = verify(kernel).ok()?;
    (plan.aligned || done.sig.requires.len() == original.sig.requires.len()).then_some(done)
}

/// A kernel that was found, planned and lowered, if it fits.
fn lowered(kernel: Verified, plan: &Plan) -> Option<(Verified, Plan, Lowered)> {
    let next = plan::plan(&kernel, &plan.target, plan.aligned);
    let lowered = lower(&kernel, &next).ok()?;
    Some((kernel, next, lowered))
}

/// Rings of fewer slots do the same, later: where the memory is short, and the roles still fit together.
fn with_fewer_slots(kernel: &Kernel, fewer: u32) -> Kernel {
    let mut shallow = kernel.clone();
    shallow.pipes.iter_mut().for_each(|p| p.slots = p.slots.saturating_sub(fewer).max(1));
    shallow
}

fn slots_note(kernel: &Kernel, fewer: u32, target: &str) -> Option<String> {
    let one = |i: usize| {
        let slots = kernel.pipes[i].slots;
        let (name, left) = (kernel.pipe_name(Pipe::new(i)), slots.saturating_sub(fewer).max(1));
        (left < slots).then(|| format!("`{name}` has {left} slots of {slots}"))
    };
    let rings: Vec<String> = (0..kernel.pipes.len()).filter_map(one).collect();
    (!rings.is_empty()).then(|| format!("the shared memory of {target} is short: {}", rings.join(", ")))
}

fn next_candidate(kernel: &Verified, plan: &Plan, skip: usize) -> Option<Candidate> {
    if !plan.aligned || !plan.target.copy_async {
        return None;
    }
    let staged = |value: Value| plan.resident.get(value.index()).is_some_and(Option::is_some);
    implicit::candidates(kernel, &staged).into_iter().nth(skip)
}

/// The loop with as many slots as fit beside everything else.
fn deepest(kernel: &Verified, plan: &Plan, candidate: &Candidate) -> Option<(Verified, Plan)> {
    let encoding = |load: &OpId| plan.resident.get(kernel.op(*load).results.first()?.index())?.as_ref();
    let stage =
        candidate.loads.iter().filter_map(encoding).map(|e| u64::from(e.bytes().next_multiple_of(e.align()))).sum();
    let looped = kernel.op(candidate.op);
    let bound = |i: usize| looped.args.get(i).and_then(|v| kernel.int_constant(*v));
    let trips = bound(0).zip(bound(1)).map(|(lo, hi)| hi.saturating_sub(lo));
    for depth in depth::depths(stage, plan.target.shared_bytes.into(), trips) {
        let Some(ringed) = implicit::pipeline(kernel, candidate, depth.slots) else { continue };
        let Ok(ringed) = verify(ringed) else { continue };
        let mut next = plan::plan(&ringed, &plan.target, plan.aligned);
        if lower(&ringed, &next).is_ok() {
            let names: Vec<String> =
                candidate.loads.iter().map(|l| kernel.display_name(kernel.op(*l).results[0])).collect();
            let (names, slots, far) = (names.join(", "), depth.slots, depth.distance());
            next.notes.extend(plan.notes.iter().filter(|n| n.starts_with("pipelined:")).cloned());
            next.notes.push(format!("pipelined: {names} in {slots} slots, copied {far} iterations ahead"));
            return Some((ringed, next));
        }
    }
    None
}

fn config(plan: &Plan, entry: &str, version: u32, barriers: usize) -> Vec<(String, String)> {
    let pairs = [
        ("entry", entry.to_owned()),
        ("ptx", format!("{}.{}", version / 10, version % 10)),
        ("warps", plan.warps.to_string()),
        ("barriers", barriers.to_string()),
        ("access", if plan.aligned { "aligned" } else { "any" }.to_owned()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What wide accesses take for granted: rows of elements that begin on multiples of 16 bytes and are whole multiples long. And
/// what copies that run ahead ask for beyond what the kernel does, of which a launch checks the first conditions.
fn assumptions(kernel: &Kernel, plan: &Plan, checked: usize) -> Vec<Assumption> {
    let more = kernel.sig.requires.iter().skip(checked).cloned();
    let mut out: Vec<Assumption> = more.map(Assumption::Holds).collect();
    for (index, param) in kernel.sig.params.iter().enumerate() {
        let (ParamKind::Tensor { elem, shape, .. }, true) = (&param.kind, plan.vectored.get(index) == Some(&true))
        else {
            continue;
        };
        let (Ok(number), Some(last)) = (u32::try_from(index), shape.len().checked_sub(1)) else { continue };
        out.push(Assumption::UnitStride { param: number, axis: u32::try_from(last).unwrap_or(0) });
        out.push(Assumption::Aligned { param: number, bytes: 16 });
        out.extend((0u32..).zip(&shape[..last]).map(|(axis, _)| Assumption::StrideMultiple {
            param: number,
            axis,
            bytes: 16,
        }));
        out.push(Assumption::Divisible { expr: HostExpr::Dim(index, last), by: i64::from(128 / elem.bits()) });
    }
    out.push(Assumption::Index32);
    out
}
