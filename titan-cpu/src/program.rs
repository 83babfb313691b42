//! Compiled kernels, and launches of them.

use crate::arguments::{Arg, RunError, check_grid, scalars, tensors};
use crate::exec::{Machine, Trap, Work};
use crate::plan::lower::{CompileError, lower};
use crate::plan::{ParamKind, Plan, ScalarSlot};
use crate::runtime::launch::{BindError, Tensors};
use crate::runtime::view::View;
use crate::simd::Isa;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use titan_core::analysis::grid::max_extent;
use titan_core::ir::{Elem, Kernel, Signature};
use titan_core::verify::Verified;

/// How a program is compiled. Every choice gives the same results, within the freedom of `docs/semantics.md`; the ones that
/// are off serve to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Evaluate chains of elementwise operations block by block.
    pub fuse: bool,
    /// Execute loops that are matrix products as one product.
    pub products: bool,
    /// Leave loaded tiles in the tensor where that is safe.
    pub lazy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true, products: true, lazy: true }
    }
}

/// A compiled kernel. Compile once, run often, from any thread.
#[derive(Debug)]
pub struct Program {
    signature: Signature,
    /// The most programs along each axis that the verifier reckoned with.
    most: [i64; 3],
    plan: Plan,
    isa: Isa,
    options: Options,
    /// What threads keep between launches.
    work: Mutex<Vec<Work>>,
}

/// What the programs of one launch share.
#[derive(Debug)]
pub(crate) struct Launch<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) isa: Isa,
    pub(crate) lazy: bool,
    pub(crate) grid: [u32; 3],
    pub(crate) scalars: Vec<(ScalarSlot, u64)>,
    pub(crate) stop: AtomicBool,
    /// The trap of the lowest program so far.
    trapped: Mutex<Option<(u64, Trap)>>,
}

/// Below so many elements computed, a launch stays in the calling thread. Under Miri, threads are what matters.
const INLINE_COST: u64 = if cfg!(miri) { 0 } else { 100_000 };

impl Program {
    /// Compiles a kernel.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the IR, which the verifier should have reported.
    pub fn compile(kernel: &Verified) -> Result<Program, CompileError> {
        Self::compile_with(kernel, Options::default())
    }

    /// Compiles a kernel without some of the fast paths.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_with(kernel: &Verified, options: Options) -> Result<Program, CompileError> {
        Self::of(kernel, options)
    }

    /// Of a kernel that no verifier has seen: for tests of what no verified kernel does.
    pub(crate) fn of(kernel: &Kernel, options: Options) -> Result<Program, CompileError> {
        let plan = lower(kernel, options)?;
        let most = [0, 1, 2].map(|axis| max_extent(&kernel.sig, axis));
        Ok(Program {
            signature: kernel.sig.clone(),
            most,
            plan,
            isa: Isa::detect(),
            options,
            work: Mutex::new(Vec::new()),
        })
    }

    /// How many programs a persistent grid has: one for each thread.
    #[must_use]
    pub fn persistent_grid() -> u32 {
        u32::try_from(rayon::current_num_threads()).unwrap_or(1)
    }

    /// Runs all programs of a grid and waits for them.
    ///
    /// # Errors
    /// If the arguments do not fit, or a program traps.
    pub fn run(&self, args: &[Arg], grid: [u32; 3]) -> Result<(), RunError> {
        let programs = grid.iter().try_fold(1u64, |n, g| n.checked_mul(u64::from(*g)));
        let programs = programs.filter(|_| grid.iter().all(|g| i32::try_from(*g).is_ok()));
        let Some(programs) = programs else {
            return Err(RunError::BadArguments(format!("a grid of {grid:?} programs")));
        };
        if args.len() != self.plan.params.len() {
            let (want, got) = (self.plan.params.len(), args.len());
            return Err(RunError::BadArguments(format!("{got} arguments for {want} parameters")));
        }
        let scalars = scalars(&self.plan, args)?;
        let tensors = Tensors::bind(&tensors(&self.plan, args)?).map_err(|error| match error {
            BindError::Arguments(message) => RunError::BadArguments(message),
            BindError::InUse(name) => RunError::InUse(name),
        })?;
        check_grid(&self.signature, self.most, args, grid)?;
        let launch = Launch {
            plan: &self.plan,
            isa: self.isa,
            lazy: self.options.lazy,
            grid,
            scalars,
            stop: AtomicBool::new(false),
            trapped: Mutex::new(None),
        };
        self.run_programs(&launch, &tensors, programs);
        let trapped = launch.trapped.into_inner().unwrap_or_else(PoisonError::into_inner);
        match trapped {
            None => Ok(()),
            Some((number, trap)) => {
                Err(RunError::Trap { message: trap.message, loc: trap.loc, program: coordinates(number, grid) })
            }
        }
    }

    fn run_programs(&self, launch: &Launch<'_>, tensors: &Tensors, programs: u64) {
        let threads = rayon::current_num_threads();
        let next = AtomicU64::new(0);
        if programs <= 1 || threads == 1 || self.plan.cost.saturating_mul(programs) < INLINE_COST {
            self.run_chunks(launch, tensors, programs, programs.max(1), &next);
            return;
        }
        // Chunks are large enough to be taken seldom and small enough to even out.
        let chunk = (programs / (threads as u64 * 8)).clamp(1, 64);
        (0..threads).into_par_iter().for_each(|_| self.run_chunks(launch, tensors, programs, chunk, &next));
    }

    /// Takes chunks of programs until there are none left.
    fn run_chunks(&self, launch: &Launch<'_>, tensors: &Tensors, programs: u64, chunk: u64, next: &AtomicU64) {
        let mut first = next.fetch_add(chunk, Relaxed);
        if first >= programs {
            return;
        }
        let mut work = self.take_work();
        let mut machine = Machine::new(launch, &mut work, self.views(tensors));
        while first < programs {
            let end = programs.min(first + chunk);
            let mut program = coordinates(first, launch.grid);
            for number in first..end {
                if launch.stop.load(Relaxed) {
                    break;
                }
                if let Err(trap) = machine.run(program, end - number) {
                    launch.record(number, *trap);
                }
                program[0] += 1;
                if program[0] == launch.grid[0] {
                    program = coordinates(number + 1, launch.grid);
                }
            }
            first = next.fetch_add(chunk, Relaxed);
        }
        machine.finish();
        self.work.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }

    fn take_work(&self) -> Work {
        let kept = self.work.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Work::new(&self.plan))
    }

    /// The views of the parameters, in their slots.
    fn views<'m>(&self, tensors: &'m Tensors) -> Vec<View<'m>> {
        let mut views = vec![View::absent(Elem::F32, 1); self.plan.views];
        for (i, param) in self.plan.params.iter().enumerate() {
            if let ParamKind::Tensor { view, elem, rank, .. } = param.kind {
                views[view as usize] = tensors.view(i).unwrap_or_else(|| View::absent(elem, rank));
            }
        }
        views
    }
}

impl Launch<'_> {
    fn record(&self, number: u64, trap: Trap) {
        self.stop.store(true, Relaxed);
        let mut trapped = self.trapped.lock().unwrap_or_else(PoisonError::into_inner);
        if trapped.as_ref().is_none_or(|(known, _)| number < *known) {
            *trapped = Some((number, trap));
        }
    }
}

/// The program of this number; x changes fastest.
#[expect(clippy::cast_possible_truncation, reason = "remainders by 32-bit extents, of numbers below their product")]
fn coordinates(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x).max(1), u64::from(y).max(1));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
