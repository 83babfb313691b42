//! Compiled kernels, and launches of them.

use crate::arguments::{Arg, ArgRef, RunError, check_grid, scalars, tensors};
use crate::exec::{Failure, Machine, Work};
use crate::plan::lower::{CompileError, lower};
use crate::plan::{ParamKind, Plan, ScalarSlot};
use crate::recent::{self, Recent};
use crate::runtime::launch::{Checked, Tensors};
use crate::runtime::view::View;
use crate::simd::Isa;
use crate::workers::{self, Task};
use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use titan_core::analysis::grid::max_extent;
use titan_core::ir::{Elem, Kernel, Signature};
use titan_core::verify::Verified;

/// The options of the compilation. Every choice gives the same results, within the freedom of `docs/semantics.md`; switching
/// an optimization off is for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether chains of elementwise operations are evaluated block by block.
    pub fuse: bool,
    /// Whether loops that are matrix products are executed as one product.
    pub products: bool,
    /// Whether loaded tiles are left in the tensor where that is safe.
    pub lazy: bool,
    /// The number of threads that run programs of a launch; `None` for as many as there are processors.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true, products: true, lazy: true, threads: None }
    }
}

/// A compiled kernel. Compile once, run often, from any thread.
#[derive(Debug)]
pub struct Program(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    signature: Signature,
    /// The largest number of programs along each axis for which the verifier's proof holds.
    most: [i64; 3],
    plan: Plan,
    isa: Isa,
    options: Options,
    /// The buffers that threads keep between launches.
    work: Mutex<Vec<Work>>,
    recent: Recent,
}

/// A launch: the data that its programs share.
#[derive(Debug)]
pub(crate) struct Launch {
    program: Arc<Compiled>,
    tensors: Tensors,
    scalars: Vec<(ScalarSlot, u64)>,
    pub(crate) grid: [u32; 3],
    /// The number of programs, and the number that a thread takes at a time.
    programs: u64,
    chunk: u64,
    /// The first program that no thread has taken.
    next: AtomicU64,
    /// Whether a program has failed, so that no further program begins.
    pub(crate) stop: AtomicBool,
    ended: Mutex<Ended>,
}

/// The failures of programs of a launch.
#[derive(Debug, Default)]
struct Ended {
    /// The failure of the lowest-numbered program so far.
    failed: Option<(u64, Failure)>,
    /// A panic: of the sink for printed lines, or a bug in this crate.
    panicked: Option<Box<dyn Any + Send>>,
}

/// Launches that compute fewer elements than this stay in the calling thread. Under Miri, threads are always used.
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
    /// The same as of [`Program::compile`].
    pub fn compile_with(kernel: &Verified, options: Options) -> Result<Program, CompileError> {
        Self::of(kernel, options)
    }

    /// Compiles a kernel.
    pub(crate) fn of(kernel: &Kernel, options: Options) -> Result<Program, CompileError> {
        let plan = lower(kernel, options)?;
        let most = [0, 1, 2].map(|axis| max_extent(&kernel.sig, axis));
        let (signature, work, recent) = (kernel.sig.clone(), Mutex::new(Vec::new()), Recent::default());
        Ok(Program(Arc::new(Compiled { signature, most, plan, isa: Isa::detect(), options, work, recent })))
    }

    /// The number of programs of a persistent grid: one for each thread.
    #[must_use]
    pub fn persistent_grid() -> u32 {
        u32::try_from(workers::threads()).unwrap_or(1)
    }

    /// Runs all programs of a grid and waits for them, on this thread and others of this crate. It runs nothing else meanwhile,
    /// so that it may be called wherever a thread may be blocked: from tasks of a thread pool, with a lock held.
    ///
    /// # Errors
    /// If the arguments do not fit, if a program traps, or if there is no memory for its tiles.
    pub fn run(&self, args: &[Arg], grid: [u32; 3]) -> Result<(), RunError> {
        self.run_borrowed(&args.iter().map(Arg::borrowed).collect::<Vec<_>>(), grid)
    }

    /// As [`Program::run`], with arguments that others keep.
    ///
    /// # Errors
    /// As of [`Program::run`].
    pub fn run_borrowed(&self, args: &[ArgRef<'_>], grid: [u32; 3]) -> Result<(), RunError> {
        let programs = grid.iter().try_fold(1u64, |n, g| n.checked_mul(u64::from(*g)));
        let programs = programs.filter(|_| grid.iter().all(|g| i32::try_from(*g).is_ok()));
        let Some(programs) = programs else {
            return Err(RunError::BadArguments(format!("a grid of {grid:?} programs")));
        };
        let Compiled { plan, options, .. } = &*self.0;
        if args.len() != plan.params.len() {
            let (want, got) = (plan.params.len(), args.len());
            return Err(RunError::BadArguments(format!("{got} arguments for {want} parameters")));
        }
        let scalars = scalars(plan, args)?;
        let tensors = self.0.tensors(args, grid)?;
        let threads = options.threads.map_or_else(workers::threads, NonZeroUsize::get);
        let alone = programs <= 1 || threads == 1 || plan.cost.saturating_mul(programs) < INLINE_COST;
        // Chunks are large enough that they are taken rarely, and small enough to balance the load.
        let chunk = if alone { programs.max(1) } else { (programs / (threads as u64 * 8)).clamp(1, 64) };
        let launch = Launch {
            program: Arc::clone(&self.0),
            tensors,
            scalars,
            grid,
            programs,
            chunk,
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            ended: Mutex::default(),
        };
        if alone {
            launch.run_chunks();
            return launch.outcome();
        }
        let launch = Arc::new(launch);
        workers::workers().run(&launch, threads);
        launch.outcome()
    }
}

impl Compiled {
    /// The tensors of a launch, after all checks of its arguments and its grid. Checks that an earlier launch has passed are not repeated.
    fn tensors(&self, args: &[ArgRef<'_>], grid: [u32; 3]) -> Result<Tensors, RunError> {
        let Compiled { signature, most, plan, recent, .. } = self;
        if let Some(known) = recent.lease(plan, args, grid) {
            return known;
        }
        let checked = Arc::new(Checked::new(&tensors(plan, args)?).map_err(RunError::BadArguments)?);
        let tensors = recent::lease(plan, &checked, args);
        let tensors = tensors.unwrap_or_else(|| Err(RunError::BadArguments("arguments that change".to_owned())))?;
        check_grid(signature, *most, args, grid)?;
        recent.keep(args, grid, checked);
        Ok(tensors)
    }
}

impl Task for Launch {
    fn work(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run_chunks())) {
            self.stop.store(true, Relaxed);
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).panicked = Some(panic);
        }
    }
}

impl Launch {
    pub(crate) fn plan(&self) -> &Plan {
        &self.program.plan
    }

    pub(crate) fn isa(&self) -> Isa {
        self.program.isa
    }

    pub(crate) fn is_lazy(&self) -> bool {
        self.program.options.lazy
    }

    pub(crate) fn scalars(&self) -> &[(ScalarSlot, u64)] {
        &self.scalars
    }

    /// Takes chunks of programs until there are none left.
    fn run_chunks(&self) {
        let mut first = self.take_chunk();
        if first >= self.programs {
            return;
        }
        let kept = self.program.work.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut work = kept.unwrap_or_else(|| Work::new(self.plan()));
        let mut machine = match Machine::new(self, &mut work) {
            Ok(machine) => machine,
            Err(failure) => return self.record(first, *failure),
        };
        while first < self.programs {
            let end = self.programs.min(first.saturating_add(self.chunk));
            let mut program = coordinates(first, self.grid);
            for number in first..end {
                if self.stop.load(Relaxed) {
                    break;
                }
                if let Err(failure) = machine.run(program, end - number) {
                    let is_trap = matches!(*failure, Failure::Trap { .. });
                    self.record(number, *failure);
                    if !is_trap {
                        // The thread's state is incomplete, so it is dropped.
                        return;
                    }
                }
                program[0] += 1;
                if program[0] == self.grid[0] {
                    program = coordinates(number + 1, self.grid);
                }
            }
            first = self.take_chunk();
        }
        machine.finish();
        self.program.work.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }

    /// The first program of the next chunk; beyond the last one if there is none, or if no further program should begin.
    fn take_chunk(&self) -> u64 {
        if self.stop.load(Relaxed) { u64::MAX } else { self.next.fetch_add(self.chunk, Relaxed) }
    }

    /// Puts the views of the parameters into their slots.
    pub(crate) fn fill_views<'m>(&'m self, views: &mut Vec<View<'m>>) {
        views.resize(self.plan().views, View::absent(Elem::F32, 1));
        for (i, param) in self.plan().params.iter().enumerate() {
            if let ParamKind::Tensor { view, elem, rank, .. } = param.kind {
                views[view as usize] = self.tensors.view(i).unwrap_or_else(|| View::absent(elem, rank));
            }
        }
    }

    fn record(&self, number: u64, failure: Failure) {
        self.stop.store(true, Relaxed);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.failed.as_ref().is_none_or(|(known, _)| number < *known) {
            ended.failed = Some((number, failure));
        }
    }

    /// The outcome of the launch. A panic is resumed in this thread.
    fn outcome(&self) -> Result<(), RunError> {
        let ended = std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(panic) = ended.panicked {
            resume_unwind(panic);
        }
        match ended.failed {
            None => Ok(()),
            Some((number, Failure::Trap { message, loc })) => {
                Err(RunError::Trap { message, loc, program: coordinates(number, self.grid) })
            }
            Some((_, Failure::OutOfMemory { bytes })) => Err(RunError::OutOfMemory { bytes }),
        }
    }
}

/// The coordinates of the program with this number; x varies fastest.
#[expect(clippy::cast_possible_truncation, reason = "remainders by 32-bit extents, of numbers below their product")]
fn coordinates(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x).max(1), u64::from(y).max(1));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
