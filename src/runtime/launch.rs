//! Launches: a kernel with its arguments, checked and then run, enqueued or awaited.

use super::arg::{ArgValue, LaunchArg, TensorArg};
use super::backend::{Call, Code, DeviceArg};
#[cfg(feature = "_remote")]
use super::backend::{Given, Lane, Mark};
use super::buffer::{Access, run_here};
use super::capture;
use super::choice::Choice;
use super::device::Device;
use super::event::Event;
use super::future::LaunchFuture;
use super::graph::Replay;
use super::instance::{Declares, GenericArg, Instance, missing};
use super::kernel::{KernelRef, Loaded};
use super::nvtx;
use super::pinned::Transfer;
use super::queued::Fill;
use super::stream::Stream;
use super::timing::Point;
use crate::error::{Error, Result};
use std::marker::PhantomData;
use std::sync::Arc;
use titan_core::analysis::grid::max_extent;
use titan_core::analysis::partition::Class;
use titan_core::ir::{Access as Borrow, ParamKind, Signature};
use titan_core::launch::{ArgInfo, Arguments, BindError, Bound, Grid, Output, given_grid};

/// A kernel with its arguments, which it borrows until it has been launched.
///
/// A running launch keeps its memory alive: after `.launch(&stream)` the tensors may be dropped, read or passed to other launches.
/// A grid that leaves parts of an output unwritten is an error, unless the kernel says `grid(unchecked ..)`. A grid without programs
/// does nothing; it is an error if outputs have elements to write.
#[derive(Debug)]
#[must_use = "a launch does nothing until `.sync()`, `.launch(&stream)` or `.await`"]
pub struct Launch<'a> {
    /// The kernel, or the error that no instance has the values that were given.
    kernel: Result<&'static KernelRef, Box<Error>>,
    args: Vec<LaunchArg<'a>>,
    grid: Option<[u32; 3]>,
    borrow: PhantomData<&'a mut ()>,
}

/// Why `.sync()` cannot be captured, and the help.
#[cfg(feature = "_remote")]
const NOW: &str = "`.sync()` runs it now";
#[cfg(feature = "_remote")]
const LATER: &str = "launch it by `.launch(&stream)` on the stream that is captured";

/// A launch whose arguments have been checked.
pub(crate) struct Prepared {
    title: Arc<str>,
    pub(crate) device: Device,
    accesses: Vec<Access>,
    work: Work,
}

/// The work of a launch on a device. It owns handles to the memory of its arguments, and is dropped after it has run.
pub(crate) enum Work {
    Kernel(Box<KernelWork>),
    /// Nothing but the time at which its turn comes.
    Point(Arc<Point>),
    /// Memory is overwritten.
    Fill(Fill),
    /// A copy from memory of the host.
    Upload(Transfer),
    /// The launches of a graph.
    Graph(Arc<Replay>),
    /// A foreign kernel.
    #[cfg(feature = "hip")]
    Hip(Box<super::hip::Work>),
}

pub(crate) struct KernelWork {
    device: Device,
    kernel: &'static KernelRef,
    loaded: &'static Loaded,
    code: Arc<Code>,
    args: Vec<DeviceArg>,
    bound: Arc<Bound>,
    /// `None` if the device determines it.
    grid: Option<[u32; 3]>,
    /// Whether the caller set the grid.
    given: bool,
}

impl<'a> Launch<'a> {
    /// A launch of `kernel`; nothing is checked yet. Called by expansions of the macro.
    #[doc(hidden)]
    pub fn new(kernel: &'static KernelRef, args: Vec<LaunchArg<'a>>) -> Self {
        Launch { kernel: Ok(kernel), args, grid: None, borrow: PhantomData }
    }

    /// A launch of the instance of `K` at a position, which is `None` if no instance has these values; then the launch is an error.
    /// Called by expansions of the macro.
    #[doc(hidden)]
    pub fn of_instance<K: Declares>(nth: Option<usize>, values: &[GenericArg], args: Vec<LaunchArg<'a>>) -> Self {
        let instance = nth.and_then(|n| K::INSTANCES.get(n));
        let kernel = instance.map(Instance::kernel).ok_or_else(|| Box::new(missing::<K>(values)));
        Launch { kernel, args, grid: None, borrow: PhantomData }
    }

    /// Replaces the kernel's grid: one to three extents, none of which may exceed the largest one of the kernel's own grid, because the
    /// outputs are proved disjoint for such grids only; otherwise the launch is an error. It must cover all of the outputs as the
    /// kernel's own grid must, unless that says `grid(unchecked ..)`.
    pub fn grid<const N: usize>(mut self, extents: [u32; N]) -> Self {
        const { assert!(N >= 1 && N <= 3, "a grid has one to three axes") };
        let mut grid = [1; 3];
        grid[..N].copy_from_slice(&extents);
        self.grid = Some(grid);
        self
    }

    /// Runs the kernel to its end, on this thread if the device is the CPU.
    ///
    /// # Errors
    /// If the arguments do not match the kernel, if the kernel traps, or the failure of an earlier launch that wrote an argument, unless
    /// it has been reported.
    pub fn sync(self) -> Result<()> {
        let _range = self.range();
        match self.prepare(None)? {
            None => Ok(()),
            #[cfg(feature = "_remote")]
            Some(prepared) if prepared.device.is_remote() => {
                capture::refuse(&prepared.title, NOW, LATER)?;
                let stream = prepared.device.awaited_stream();
                let event = prepared.enqueue(&stream, false)?;
                event.wait();
                event.report_here().map_or(Ok(()), Err)
            }
            Some(Prepared { title, accesses, work, .. }) => run_here(&title, &accesses, move || work.run()),
        }
    }

    /// Enqueues the kernel at the end of a stream and returns.
    ///
    /// # Errors
    /// If the arguments do not match the kernel. Later failures are reported by the next call that needs the results, or by
    /// [`Stream::sync`].
    pub fn launch(self, stream: &Stream) -> Result<()> {
        let _range = self.range();
        match capture::recorded(stream, self.prepare(Some(stream.device()))?)? {
            None => Ok(()),
            Some(prepared) => prepared.enqueue(stream, false).map(drop),
        }
    }

    /// Returns the code that the launch would run, and the reasons against the code that is tried before it, without running it; `None` for
    /// a grid without programs, which needs no code. A launch with the same arguments chooses the same code.
    ///
    /// # Errors
    /// If the arguments do not match the kernel, or the device cannot run it.
    ///
    /// ```
    /// # use titan::prelude::*;
    /// # #[titan::kernel]
    /// # fn double(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    /// #     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// # }
    /// let dev = Device::cpu();
    /// let (x, mut y) = (dev.zeros([100])?, dev.zeros([100])?);
    /// let choice = double(&x, &mut y).choice()?;
    /// assert!(choice.is_some_and(|choice| choice.to_string() == "the code for cpu"));
    /// # Ok::<(), titan::Error>(())
    /// ```
    pub fn choice(self) -> Result<Option<Choice>> {
        self.prepare(None)?.map(|prepared| prepared.work.choice()).transpose()
    }

    /// A range of a profiler's, named by the kernel, until it is dropped.
    pub(super) fn range(&self) -> nvtx::Range {
        nvtx::range(self.kernel.as_ref().map_or("a kernel without this instance", |kernel| kernel.name()))
    }

    /// Checks the arguments; `None` for a grid without programs.
    pub(crate) fn prepare(self, stream_device: Option<&Device>) -> Result<Option<Prepared>> {
        let Launch { kernel, args, grid, .. } = self;
        let kernel = kernel.map_err(|error| *error)?;
        let loaded = kernel.loaded()?;
        let given = grid.is_some();
        let args: Vec<ArgValue> = args.into_iter().map(|a| a.value).collect();
        let bound = check(loaded, &args, grid)?;
        let device = common_device(loaded, &args, stream_device)?;
        if matches!(bound.grid, Grid::Extents(extents) if extents.contains(&0)) {
            return Ok(None);
        }
        let code = loaded.code(&device)?;
        let grid = match bound.grid {
            Grid::Extents(extents) => Some(extents),
            Grid::Persistent => None,
        };
        let title = Arc::clone(&loaded.title);
        let accesses = accesses(&loaded.kernel.sig, &args);
        let args = args.into_iter().map(device_arg).collect();
        let work = KernelWork { device: device.clone(), kernel, loaded, code, args, bound, grid, given };
        let work = Work::Kernel(Box::new(work));
        Ok(Some(Prepared { title, device, accesses, work }))
    }
}

impl Prepared {
    /// ``kernel `name` ``, for messages.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The work of a kernel, and the parts of buffers that it uses.
    pub(crate) fn into_kernel(self) -> Result<(Box<KernelWork>, Vec<Access>)> {
        match self.work {
            Work::Kernel(work) => Ok((work, self.accesses)),
            Work::Point(_) | Work::Fill(_) | Work::Upload(_) | Work::Graph(_) => Err(no_kernel()),
            #[cfg(feature = "hip")]
            Work::Hip(_) => Err(no_kernel()),
        }
    }

    /// Enqueues the work at the end of a stream. If it is `awaited`, the event wakes the task that polls it.
    pub(crate) fn enqueue(self, stream: &Stream, awaited: bool) -> Result<Event> {
        let Prepared { title, accesses, work, .. } = self;
        stream.enqueue(title, &accesses, work, awaited)
    }
}

/// The error for work that is prepared as a launch and is none.
fn no_kernel() -> Error {
    Error::Internal { doing: "a capture".to_owned(), message: "no kernel".to_owned() }
}

impl Work {
    /// Runs the work to its end on this thread.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Work::Kernel(work) => work.run(),
            Work::Point(point) => {
                point.reach();
                Ok(())
            }
            Work::Fill(fill) => fill.run(),
            Work::Upload(copy) => copy.run(),
            Work::Graph(replay) => replay.run(),
            #[cfg(feature = "hip")]
            Work::Hip(work) => work.run(),
        }
    }

    /// The code that the work would run.
    fn choice(&self) -> Result<Choice> {
        match self {
            Work::Kernel(work) => work.code.choice(&work.device, &work.call()),
            Work::Point(_) => Err(Error::Internal { doing: "a choice".to_owned(), message: "no kernel".to_owned() }),
            Work::Fill(_) => Err(Error::Internal { doing: "a choice".to_owned(), message: "a fill".to_owned() }),
            Work::Upload(_) => Err(Error::Internal { doing: "a choice".to_owned(), message: "an upload".to_owned() }),
            Work::Graph(_) => Err(Error::Internal { doing: "a choice".to_owned(), message: "a graph".to_owned() }),
            #[cfg(feature = "hip")]
            Work::Hip(_) => Err(Error::Internal { doing: "a choice".to_owned(), message: "foreign code".to_owned() }),
        }
    }

    /// Enqueues the work at the end of a lane, after the points `after`.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], awaited: bool) -> Result<Given> {
        match self {
            Work::Kernel(work) => work.code.give(lane, after, &work.call(), awaited),
            // It uses no memory, so it waits for nothing in other lanes.
            Work::Point(point) => {
                let mark = lane.timed_mark()?;
                point.give(mark.clone());
                Ok(Given { mark, finish: None })
            }
            Work::Fill(fill) => fill.give(lane, after, awaited),
            Work::Upload(copy) => copy.give(lane, after, awaited),
            Work::Graph(replay) => replay.give(lane, after, awaited),
            #[cfg(feature = "hip")]
            Work::Hip(work) => work.give(lane, after, awaited),
        }
    }
}

impl KernelWork {
    /// Runs the kernel to its end on this thread.
    pub(crate) fn run(&self) -> Result<()> {
        self.code.run(&self.device, &self.call())
    }

    /// The name of the kernel, with its instance.
    pub(crate) fn name(&self) -> &str {
        &self.loaded.name
    }

    /// Whether it launches the same instance on the same device.
    pub(crate) fn is_of(&self, other: &KernelWork) -> bool {
        std::ptr::eq(self.kernel, other.kernel) && self.device == other.device
    }

    #[cfg(feature = "_remote")]
    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    pub(crate) fn call(&self) -> Call<'_> {
        let KernelWork { kernel, loaded, args, bound, grid, given, .. } = self;
        Call { kernel, loaded, args, symbols: &bound.symbols, grid: *grid, given: *given }
    }
}

impl<'a> IntoFuture for Launch<'a> {
    type Output = Result<()>;
    type IntoFuture = LaunchFuture<'a>;

    fn into_future(self) -> LaunchFuture<'a> {
        LaunchFuture::new(self)
    }
}

/// Checks everything that does not depend on the device: the signature, borrows, overlap, and last the grid, which depends on them.
pub(crate) fn check(loaded: &Loaded, args: &[ArgValue], grid: Option<[u32; 3]>) -> Result<Arc<Bound>> {
    if let Some(bound) = loaded.recent.find(args, grid) {
        outputs_are_alone(loaded, args)?;
        return Ok(bound);
    }
    let sig = &loaded.kernel.sig;
    let refuse = |why| Error::of_bind(&loaded.name, why);
    let infos: Vec<ArgInfo<'_>> = args.iter().map(ArgValue::info).collect();
    let arguments = Arguments::check(sig, &infos).map_err(refuse)?;
    outputs_are_alone(loaded, args)?;
    let launched = match grid {
        Some(grid) => {
            within_proof(loaded, grid)?;
            given_grid(grid)
        }
        None => arguments.grid(),
    };
    let launched = launched.map_err(refuse)?;
    if let Grid::Extents(extents) = launched {
        arguments.refuse_idle(outputs(loaded), extents, grid.is_some()).map_err(refuse)?;
        arguments.refuse_short(&loaded.needs, extents, grid.is_some()).map_err(refuse)?;
    }
    let bound = Arc::new(arguments.with_grid(launched));
    loaded.recent.keep(args, grid, &bound);
    Ok(bound)
}

/// Rejects outputs that were not passed by `&mut`, or that share elements with another argument.
fn outputs_are_alone(loaded: &Loaded, args: &[ArgValue]) -> Result<()> {
    let sig = &loaded.kernel.sig;
    for (index, first) in args.iter().enumerate() {
        let Some(written) = first.tensor().filter(|_| is_written(sig, index)) else { continue };
        if !written.exclusive {
            let param = sig.params[index].name.clone();
            let (expected, found) = ("a tensor passed by `&mut`", "one passed by `&`");
            return Err(Error::of_bind(&loaded.name, BindError::Kind { param, expected, found }));
        }
        let meets =
            |other: &TensorArg| other.buffer.is(&written.buffer) && other.footprint.overlaps(&written.footprint);
        let other = args.iter().enumerate().find(|(i, a)| *i != index && a.tensor().is_some_and(meets));
        if let Some((other, _)) = other {
            return Err(Error::Alias {
                kernel: loaded.name.clone(),
                written: sig.params[index].name.clone(),
                other: sig.params[other].name.clone(),
            });
        }
    }
    Ok(())
}

/// The outputs that the kernel writes, in the order of its parameters.
fn outputs(loaded: &Loaded) -> impl Iterator<Item = Output> {
    loaded
        .kernel
        .partition()
        .outputs
        .iter()
        .map(|(param, class)| Output { param: *param, only_updated: matches!(class, Class::Scattered | Class::Atomic) })
}

/// Rejects a grid with more programs than the verifier's proof covers.
fn within_proof(loaded: &Loaded, grid: [u32; 3]) -> Result<()> {
    for (axis, found) in grid.into_iter().enumerate() {
        let most = max_extent(&loaded.kernel.sig, u8::try_from(axis).unwrap_or(u8::MAX));
        if i64::from(found) > most {
            let most = u32::try_from(most).unwrap_or(0);
            return Err(Error::GridOverride { kernel: loaded.name.clone(), axis, found, most });
        }
    }
    Ok(())
}

fn is_written(sig: &Signature, param: usize) -> bool {
    matches!(sig.params[param].kind, ParamKind::Tensor { access: Borrow::Mut, .. })
}

/// The device that holds all tensors. Without tensors: that of the stream, or the best one.
fn common_device(loaded: &Loaded, args: &[ArgValue], stream: Option<&Device>) -> Result<Device> {
    let params = &loaded.kernel.sig.params;
    let mut tensors = params.iter().zip(args).filter_map(|(p, a)| a.tensor().map(|t| (&p.name, t.buffer.device())));
    let Some((first, device)) = tensors.next() else {
        return stream.cloned().map_or_else(Device::best, Ok);
    };
    let mismatch = |second: String, other: &Device| Error::DeviceMismatch {
        kernel: loaded.name.clone(),
        first: first.clone(),
        first_device: device.clone(),
        second,
        second_device: other.clone(),
    };
    if let Some((name, other)) = tensors.find(|(_, other)| *other != device) {
        return Err(mismatch(format!("`{name}`"), other));
    }
    match stream.filter(|other| *other != device) {
        Some(other) => Err(mismatch("the stream".to_owned(), other)),
        None => Ok(device.clone()),
    }
}

fn accesses(sig: &Signature, args: &[ArgValue]) -> Vec<Access> {
    let access = |(index, arg): (usize, &ArgValue)| {
        let t = arg.tensor()?;
        Some(Access { buffer: t.buffer.clone(), footprint: t.footprint, write: is_written(sig, index) })
    };
    args.iter().enumerate().filter_map(access).collect()
}

fn device_arg(arg: ArgValue) -> DeviceArg {
    match arg {
        ArgValue::Tensor(t) => DeviceArg::Tensor {
            storage: t.buffer.storage().clone(),
            offset: t.offset,
            // `bind` has refused extents beyond `i32`.
            extents: t.extents().iter().map(|n| i32::try_from(*n).unwrap_or(i32::MAX)).collect(),
            strides: t.strides().iter().copied().collect(),
        },
        ArgValue::Absent => DeviceArg::Absent,
        ArgValue::Scalar(value) => DeviceArg::Scalar(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static COPY: KernelRef = KernelRef::new(
        "copy",
        b"kernel @copy(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %v = get %x[%p] : f32
            set %y[%p], %v
            return
        }",
        file!(),
        [1, 8],
    );

    /// This cannot be written in safe Rust, but is checked nevertheless: two handles of the same elements, one of them to write.
    #[test]
    fn an_output_that_overlaps_another_argument_is_refused() {
        let all = Device::best().unwrap().zeros::<f32, 1>([8]).unwrap();
        let (head, _) = all.layout().split(0, 5).unwrap();
        let (_, tail) = all.layout().split(0, 3).unwrap();
        let (head, mut tail) = (all.with_layout(head), all.with_layout(tail));
        let error = Launch::new(&COPY, vec![(&head).into(), (&mut tail).into()]).sync().unwrap_err();
        assert!(matches!(error, Error::Alias { .. }));
        let text = error.to_string();
        assert!(text.starts_with("kernel `copy`: `y` is written, but shares elements with `x`\n"), "{text}");
    }
}
