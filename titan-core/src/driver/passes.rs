//! Passes by name, for tools: `titan opt --passes a,b` runs them in sequence.
//!
//! A pass takes a well-formed kernel, and returns a well-formed kernel and a description of its changes. It does not ensure that the result
//! satisfies the rules of barrier programs; that has to be verified.
//!
//! Deliberately absent: the passes after rings, whose results `titan emit --stage` prints.

use super::Arguments;
use super::{notes, rule};
use crate::ir::Kernel;
use crate::pipeline::fence::{self, Mode};
use crate::target::Target;
use crate::verify::verify;

/// The options of passes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The options of the fence pass.
    pub fence: fence::Options,
    /// The machine for which rings are chosen.
    pub target: Target,
}

/// A named pass, for tools.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name in tools.
    pub name: &'static str,
    /// A description, in one line.
    pub about: &'static str,
    run: fn(Kernel, &Options) -> Result<Passed, String>,
}

/// A kernel after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The kernel after the pass.
    pub kernel: Kernel,
    /// The changes, one per line.
    pub notes: Vec<String>,
}

/// The reason why passes were not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// There is no pass with this name.
    #[error("there is no pass `{name}`: there are {}", names())]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// The pass does not apply to the kernel.
    #[error("`{pass}` does not apply: {why}")]
    NotApplicable {
        /// The name of the pass.
        pass: &'static str,
        /// The reason.
        why: String,
    },
}

/// All passes, in alphabetical order.
pub const PASSES: &[Pass] = &[
    Pass { name: "canonical", about: "renumbers values, operations and blocks in program order", run: canonical },
    Pass { name: "fence", about: "inserts proxy fences, and commits and waits of bulk stores", run: place_fences },
    Pass {
        name: "fence-tilelang",
        about: "inserts proxy fences where TileLang's pass would",
        run: place_fences_tilelang,
    },
    Pass {
        name: "rings",
        about: "chooses rings, distances and fusion of roles for `--target`, as compilation does",
        run: choose_rings,
    },
];

fn names() -> String {
    PASSES.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
}

/// The pass with this name.
///
/// # Errors
/// There is no such pass; the error lists all passes.
pub fn pass(name: &str) -> Result<&'static Pass, PassError> {
    PASSES.iter().find(|p| p.name == name).ok_or_else(|| PassError::Unknown { name: name.to_owned() })
}

/// Runs passes in this order. Every name is looked up before anything is run.
///
/// # Errors
/// A name is unknown, or a pass does not apply.
pub fn run(kernel: Kernel, passes: &[&str], options: &Options) -> Result<Passed, PassError> {
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

fn canonical(kernel: Kernel, _: &Options) -> Result<Passed, String> {
    Ok(Passed { kernel: kernel.canonical(), notes: Vec::new() })
}

fn place_fences(kernel: Kernel, options: &Options) -> Result<Passed, String> {
    let fenced = fence::fence(&kernel, &options.fence);
    Ok(Passed { kernel: fenced.kernel, notes: fenced.report.to_string().lines().map(str::to_owned).collect() })
}

fn place_fences_tilelang(kernel: Kernel, options: &Options) -> Result<Passed, String> {
    let fence = fence::Options { mode: Mode::Tilelang, ..options.fence.clone() };
    place_fences(kernel, &Options { fence, target: options.target.clone() })
}

fn choose_rings(kernel: Kernel, options: &Options) -> Result<Passed, String> {
    let verified = verify(kernel).map_err(|e| e.first().map_or_else(String::new, |e| e.title.clone()))?;
    let filled = rule::fill(&verified, &options.target, Arguments::Aligned).map_err(|e| e.message)?;
    let notes = notes::chosen(&verified, &filled.schedule, options.target.name);
    if notes.is_empty() {
        return Err(
            "it has no loop over `pipelined(..)` and no roles that another schedule would serve better".to_owned()
        );
    }
    Ok(Passed { kernel: filled.rings.into_kernel(), notes: [notes, filled.log.told()].concat() })
}
