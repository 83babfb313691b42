//! Passes by name, for tools: what `titan opt --passes a,b` runs, one after the other.
//!
//! A pass takes a kernel whose structure and types are right and gives one like it, and says what it did. Nothing here claims
//! that the result obeys the rules of barriers: who wants that verifies it.
//!
//! Deliberately absent: the way of a back end, which chooses with a target in mind.

use super::depth;
use super::fence::{self, Mode};
use super::{fuse, implicit};
use crate::ir::{Kernel, OpId, OpKind, Value};
use crate::verify::verify;

/// Shared memory that every target of the pass `pipeline` has: that of sm_86 and sm_89 (CUDA programming guide, "Technical
/// specifications per compute capability").
const SHARED: u64 = 99 << 10;

/// A pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// How tools name it.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    run: fn(Kernel, &fence::Options) -> Result<Passed, String>,
}

/// A kernel after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The kernel.
    pub kernel: Kernel,
    /// What was done, line by line.
    pub notes: Vec<String>,
}

/// Why passes were not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// There is no pass of this name.
    #[error("there is no pass `{name}`: there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The pass does not apply to the kernel.
    #[error("`{pass}` does not apply: {why}")]
    NotApplicable {
        /// The pass.
        pass: &'static str,
        /// Why.
        why: String,
    },
}

/// Every pass, in alphabetical order.
pub const PASSES: &[Pass] = &[
    Pass { name: "canonical", about: "numbers everything in the order of the text", run: canonical },
    Pass { name: "fence", about: "places proxy fences and the handshake of bulk stores", run: place_fences },
    Pass {
        name: "fence-tilelang",
        about: "places proxy fences where TileLang's pass would",
        run: place_fences_tilelang,
    },
    Pass { name: "fuse", about: "fuses a role that copies and a role that computes", run: fuse_roles },
    Pass {
        name: "pipeline",
        about: "turns loops over `pipelined(..)` into rings whose copies run ahead",
        run: pipeline_loops,
    },
];

fn names() -> String {
    PASSES.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
}

/// The pass of a name.
///
/// # Errors
/// There is none; the error lists those that there are.
pub fn pass(name: &str) -> Result<&'static Pass, PassError> {
    PASSES.iter().find(|p| p.name == name).ok_or_else(|| PassError::Unknown { name: name.to_owned() })
}

/// Runs passes in this order. Every name is looked up before anything is run.
///
/// # Errors
/// A name is unknown, or a pass does not apply.
pub fn run(kernel: Kernel, passes: &[&str], options: &fence::Options) -> Result<Passed, PassError> {
    let passes: Vec<&Pass> = passes.iter().map(|name| pass(name)).collect::<Result<_, _>>()?;
    let mut all = Passed { kernel, notes: Vec::new() };
    for pass in passes {
        let not = |why| PassError::NotApplicable { pass: pass.name, why };
        let Passed { kernel, notes } = (pass.run)(all.kernel, options).map_err(not)?;
        all.kernel = kernel;
        all.notes.extend(notes.into_iter().map(|note| format!("{}: {note}", pass.name)));
    }
    Ok(all)
}

fn canonical(kernel: Kernel, _: &fence::Options) -> Result<Passed, String> {
    Ok(Passed { kernel: kernel.canonical(), notes: Vec::new() })
}

fn place_fences(kernel: Kernel, options: &fence::Options) -> Result<Passed, String> {
    let fenced = fence::fence(&kernel, options);
    Ok(Passed { kernel: fenced.kernel, notes: fenced.report.to_string().lines().map(str::to_owned).collect() })
}

fn place_fences_tilelang(kernel: Kernel, options: &fence::Options) -> Result<Passed, String> {
    place_fences(kernel, &fence::Options { mode: Mode::Tilelang, ..options.clone() })
}

fn fuse_roles(kernel: Kernel, _: &fence::Options) -> Result<Passed, String> {
    for distance in (0..=fuse::greatest_distance(&kernel)).rev() {
        let fused = fuse::fuse(&kernel, distance).and_then(|k| verify(k).ok());
        if let Some(fused) = fused {
            let note = format!("copies run {distance} iterations ahead");
            return Ok(Passed { kernel: fused.into_kernel(), notes: vec![note] });
        }
    }
    Err("the kernel does not have one role that copies and one that computes, loop by loop".to_owned())
}

/// Whether a tile is only read by matrix products.
fn only_multiplied(kernel: &Kernel, tile: Value) -> bool {
    let mut users: Vec<OpId> = Vec::new();
    kernel.walk(&mut |id, op| users.extend(op.args.contains(&tile).then_some(id)));
    let multiplies = |id: &OpId| {
        let op = kernel.op(*id);
        let factor = op.kind == OpKind::Mma && op.args.get(2) != Some(&tile);
        factor || matches!(op.kind, OpKind::Permute(_)) && op.results.iter().all(|r| only_multiplied(kernel, *r))
    };
    !users.is_empty() && users.iter().all(multiplies)
}

fn pipeline_loops(kernel: Kernel, _: &fence::Options) -> Result<Passed, String> {
    let mut all = Passed { kernel, notes: Vec::new() };
    let mut skip = 0;
    loop {
        let staged = |tile: Value| only_multiplied(&all.kernel, tile);
        let Some(candidate) = implicit::candidates(&all.kernel, &staged).into_iter().nth(skip) else { return Ok(all) };
        let tiles = candidate.loads.iter().filter_map(|l| all.kernel.op(*l).results.first()).map(|v| all.kernel.ty(*v));
        let bytes = tiles
            .filter_map(|ty| {
                Some((u64::try_from(ty.tile_shape()?.len()).ok()? * u64::from(ty.elem().bits())).div_ceil(8))
            })
            .sum();
        let depths = depth::depths(bytes, SHARED, None);
        let ringed = depths.iter().find_map(|d| {
            Some((
                d.slots,
                verify(implicit::pipeline(&all.kernel, &candidate, d.slots, d.distance())?.canonical()).ok()?,
            ))
        });
        match ringed {
            Some((slots, ringed)) => {
                all.notes.push(format!("a loop has a ring of {slots} slots"));
                all.kernel = ringed.into_kernel();
            }
            None => skip += 1,
        }
    }
}
