//! Everything that differs between kinds of devices: compiled kernels and execution here, memory in `storage.rs`. Each kind is a variant of
//! each enum.
//!
//! Devices that execute work asynchronously also have lanes, which are in-order queues of the device, and marks, points in them.

#[cfg(feature = "cuda")]
use super::cuda;
use super::device::{Device, DeviceKind};
#[cfg(feature = "emulator")]
use super::emulator;
#[cfg(feature = "_remote")]
use super::event::Finish;
#[cfg(feature = "hip")]
use super::hip;
use super::kernel::{KernelRef, Loaded};
#[cfg(feature = "_remote")]
use super::launch::KernelWork;
use super::layout::MAX_RANK;
#[cfg(feature = "simulator")]
use super::simulator;
pub(crate) use super::storage::Storage;
use crate::error::{Error, Result};
use titan_core::ir::Const;
#[cfg(feature = "cpu")]
use titan_cpu::{Program, RunError};

/// The only variant of a program that is built without devices, such as a library of kernels, whose users choose the devices.
#[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
#[derive(Clone, Debug)]
pub(crate) enum Never {}

/// A kernel that is ready to run on a device.
#[derive(Debug)]
pub(crate) enum Code {
    #[cfg(feature = "cpu")]
    Cpu(Box<Program>),
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::Code>),
    #[cfg(feature = "hip")]
    Hip(Box<hip::Code>),
    #[cfg(feature = "emulator")]
    Emulated(emulator::Code),
    #[cfg(feature = "simulator")]
    Simulated(Box<simulator::Code>),
    #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
    Nowhere(Never),
}

/// An argument in the form for a device. Offsets are in bytes, strides in elements.
pub(crate) enum DeviceArg {
    Tensor { storage: Storage, offset: usize, extents: PerAxis<i32>, strides: PerAxis<i64> },
    Absent,
    Scalar(Const),
}

/// A number for each axis of a tensor, without memory of its own: a launch has two of them for each argument.
#[derive(Clone, Copy)]
pub(crate) struct PerAxis<T> {
    numbers: [T; MAX_RANK],
    rank: usize,
}

impl<T: Copy + Default> FromIterator<T> for PerAxis<T> {
    /// The first numbers, as many as there may be axes.
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let (mut numbers, mut rank) = ([T::default(); MAX_RANK], 0);
        for (to, number) in numbers.iter_mut().zip(all) {
            (*to, rank) = (number, rank + 1);
        }
        PerAxis { numbers, rank }
    }
}

impl<T> std::ops::Deref for PerAxis<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.numbers[..self.rank]
    }
}

/// A launch: the kernel, its arguments, the values of its shape names, and the grid, unless the device determines it. The arguments
/// are borrowed: the device takes addresses from them, and their owner keeps the memory alive.
pub(crate) struct Call<'a> {
    pub(crate) kernel: &'static KernelRef,
    pub(crate) loaded: &'static Loaded,
    pub(crate) args: &'a [DeviceArg],
    #[cfg_attr(
        not(any(feature = "cuda", feature = "hip", feature = "emulator")),
        expect(dead_code, reason = "GPUs choose a variant by them")
    )]
    pub(crate) symbols: &'a [Option<i64>],
    pub(crate) grid: Option<[u32; 3]>,
    /// Whether the caller of the launch set the grid.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "hip", feature = "emulator")),
        expect(dead_code, reason = "GPUs have code that determines the grid")
    )]
    pub(crate) given: bool,
}

/// An in-order queue of a device.
#[cfg(feature = "_remote")]
#[derive(Debug)]
pub(crate) enum Lane {
    #[cfg(feature = "cuda")]
    Cuda(cuda::Lane),
    #[cfg(feature = "hip")]
    Hip(hip::Lane),
}

/// A point in a lane.
#[cfg(feature = "_remote")]
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    #[cfg(feature = "cuda")]
    Cuda(cuda::Mark),
    #[cfg(feature = "hip")]
    Hip(hip::Mark),
}

/// A graph of the driver, made of launches.
#[cfg(feature = "_remote")]
#[derive(Debug)]
pub(crate) enum Exec {
    #[cfg(feature = "cuda")]
    Cuda(cuda::Exec),
    #[cfg(feature = "hip")]
    Hip(hip::Exec),
}

#[cfg(feature = "_remote")]
impl Exec {
    /// A graph of these launches on a device that has lanes.
    pub(crate) fn new(device: &Device, works: &[&KernelWork]) -> Result<Exec> {
        match device.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => cuda::Exec::new(device, works).map(Exec::Cuda),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => hip::Exec::new(device, works).map(Exec::Hip),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda => Err(absent(device)),
            #[cfg(not(feature = "hip"))]
            DeviceKind::Hip => Err(absent(device)),
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => Err(absent(device)),
        }
    }

    /// Makes these the launches, of which those at `changed` are other ones. After an error, they are what they were.
    pub(crate) fn renew(&self, works: &[&KernelWork], changed: &[usize]) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Exec::Cuda(exec) => exec.renew(works, changed),
            #[cfg(feature = "hip")]
            Exec::Hip(exec) => exec.renew(works, changed),
        }
    }

    /// Enqueues a replay at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], works: &[&KernelWork], sleeps: bool) -> Result<Given> {
        match (self, lane) {
            #[cfg(feature = "cuda")]
            (Exec::Cuda(exec), Lane::Cuda(lane)) => exec.give(lane, after, works, sleeps),
            #[cfg(feature = "hip")]
            (Exec::Hip(exec), Lane::Hip(lane)) => exec.give(lane, after, works, sleeps),
            // The devices of a graph and of the stream have been compared.
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Exec::Cuda(_), Lane::Hip(_)) | (Exec::Hip(_), Lane::Cuda(_)) => {
                Err(Error::Internal { doing: "a graph".to_owned(), message: "a lane of another device".to_owned() })
            }
        }
    }
}

/// Work that has been enqueued in a lane: the point after it, and the action to take when that point has been reached.
#[cfg(feature = "_remote")]
pub(crate) struct Given {
    pub(crate) mark: Mark,
    pub(crate) finish: Option<Finish>,
}

#[cfg(feature = "_remote")]
impl Lane {
    /// A new lane of a device that has them.
    pub(crate) fn new(device: &Device) -> Result<Lane> {
        match device.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => cuda::Lane::new(device).map(Lane::Cuda),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => hip::Lane::new(device).map(Lane::Hip),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda => Err(absent(device)),
            #[cfg(not(feature = "hip"))]
            DeviceKind::Hip => Err(absent(device)),
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => Err(absent(device)),
        }
    }
}

#[cfg(feature = "_remote")]
impl Lane {
    /// The point after all work so far, with its time.
    pub(crate) fn timed_mark(&self) -> Result<Mark> {
        match self {
            #[cfg(feature = "cuda")]
            Lane::Cuda(lane) => lane.timed_mark().map(Mark::Cuda),
            #[cfg(feature = "hip")]
            Lane::Hip(lane) => lane.timed_mark().map(Mark::Hip),
        }
    }

    /// The point after all work so far. A thread that waits for it sleeps or spins.
    pub(crate) fn mark(&self, sleeps: bool) -> Result<Mark> {
        match self {
            #[cfg(feature = "cuda")]
            Lane::Cuda(lane) => lane.mark(sleeps).map(Mark::Cuda),
            #[cfg(feature = "hip")]
            Lane::Hip(lane) => lane.mark(sleeps).map(Mark::Hip),
        }
    }

    /// Makes later work of the lane wait for these points.
    pub(crate) fn follow(&self, after: &[Mark]) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Lane::Cuda(lane) => lane.follow(after),
            #[cfg(feature = "hip")]
            Lane::Hip(lane) => lane.follow(after),
        }
    }
}

#[cfg(feature = "_remote")]
impl Mark {
    /// The milliseconds between an earlier point of the device and this one, both of which have been reached and have a time.
    pub(crate) fn milliseconds_since(&self, earlier: &Mark) -> Result<Option<f32>> {
        match (self, earlier) {
            #[cfg(feature = "cuda")]
            (Mark::Cuda(to), Mark::Cuda(from)) => to.milliseconds_since(from),
            #[cfg(feature = "hip")]
            (Mark::Hip(to), Mark::Hip(from)) => to.milliseconds_since(from),
            // Their devices have been compared.
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Mark::Cuda(_), Mark::Hip(_)) | (Mark::Hip(_), Mark::Cuda(_)) => Ok(None),
        }
    }

    /// Whether the point has been reached, even if by a failure.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            #[cfg(feature = "cuda")]
            Mark::Cuda(mark) => mark.is_over(),
            #[cfg(feature = "hip")]
            Mark::Hip(mark) => mark.is_over(),
        }
    }

    /// Blocks until the point has been reached.
    pub(crate) fn wait(&self) {
        match self {
            #[cfg(feature = "cuda")]
            Mark::Cuda(mark) => mark.wait(),
            #[cfg(feature = "hip")]
            Mark::Hip(mark) => mark.wait(),
        }
    }

    /// The outcome of the work before the point, which is called `what` in messages.
    pub(crate) fn outcome(&self, what: &str) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Mark::Cuda(mark) => mark.outcome(what),
            #[cfg(feature = "hip")]
            Mark::Hip(mark) => mark.outcome(what),
        }
    }
}

impl Code {
    /// Prepares a kernel for a device.
    pub(crate) fn compile(device: &Device, loaded: &Loaded) -> Result<Code> {
        match device.kind() {
            DeviceKind::Cpu => Self::cpu(device, loaded),
            DeviceKind::Cuda => Self::cuda(device, loaded),
            DeviceKind::Emulator => Self::emulated(device, loaded),
            DeviceKind::Simulator => Self::simulated(device, loaded),
            DeviceKind::Hip => Self::hip(device, loaded),
        }
    }

    #[cfg(feature = "cpu")]
    fn cpu(device: &Device, loaded: &Loaded) -> Result<Code> {
        let (kernel, device) = (loaded.name.clone(), device.to_string());
        let made = Program::compile(&loaded.kernel).map(|program| Code::Cpu(Box::new(program)));
        made.map_err(|e| Error::Unsupported { kernel, device, reason: e.to_string() })
    }

    #[cfg(not(feature = "cpu"))]
    fn cpu(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    #[cfg(feature = "simulator")]
    fn simulated(_device: &Device, loaded: &Loaded) -> Result<Code> {
        Ok(Code::Simulated(Box::new(simulator::Code::load(loaded))))
    }

    #[cfg(not(feature = "simulator"))]
    fn simulated(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    #[cfg(feature = "emulator")]
    fn emulated(device: &Device, loaded: &Loaded) -> Result<Code> {
        let space = device.emulated().ok_or_else(|| absent(device))?;
        emulator::Code::load(device, loaded, space.machine()).map(Code::Emulated)
    }

    #[cfg(not(feature = "emulator"))]
    fn emulated(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    #[cfg(feature = "cuda")]
    fn cuda(device: &Device, loaded: &Loaded) -> Result<Code> {
        cuda::Code::load(device, loaded).map(|code| Code::Cuda(Box::new(code)))
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    #[cfg(feature = "hip")]
    fn hip(device: &Device, loaded: &Loaded) -> Result<Code> {
        hip::Code::load(device, loaded).map(|code| Code::Hip(Box::new(code)))
    }

    #[cfg(not(feature = "hip"))]
    fn hip(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    /// The code for an NVIDIA GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_cuda(&self) -> Option<&cuda::Code> {
        match self {
            Code::Cuda(code) => Some(code),
            #[cfg(feature = "cpu")]
            Code::Cpu(_) => None,
            #[cfg(feature = "hip")]
            Code::Hip(_) => None,
            #[cfg(feature = "emulator")]
            Code::Emulated(_) => None,
            #[cfg(feature = "simulator")]
            Code::Simulated(_) => None,
        }
    }

    /// The code for an AMD GPU.
    #[cfg(feature = "hip")]
    pub(crate) fn as_hip(&self) -> Option<&hip::Code> {
        match self {
            Code::Hip(code) => Some(code),
            #[cfg(feature = "cpu")]
            Code::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Code::Cuda(_) => None,
            #[cfg(feature = "emulator")]
            Code::Emulated(_) => None,
            #[cfg(feature = "simulator")]
            Code::Simulated(_) => None,
        }
    }

    /// Runs the grid to its end on this thread, on a device of the model that this is the code for.
    #[cfg_attr(
        not(any(feature = "cpu", feature = "emulator")),
        expect(unused_variables, reason = "GPUs get work in lanes")
    )]
    pub(crate) fn run(&self, device: &Device, call: &Call<'_>) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Code::Cpu(program) => {
                let args: Vec<titan_cpu::ArgRef<'_>> = call.args.iter().map(cpu_arg).collect();
                let grid = call.grid.unwrap_or([Program::persistent_grid(), 1, 1]);
                program.run_borrowed(&args, grid).map_err(|error| cpu_error(device, call, &error))
            }
            // Launches on GPUs run in the lane of a stream, never here.
            #[cfg(feature = "cuda")]
            Code::Cuda(_) => Err(Error::Internal { doing: call.loaded.name.clone(), message: "no lane".to_owned() }),
            #[cfg(feature = "hip")]
            Code::Hip(_) => Err(Error::Internal { doing: call.loaded.name.clone(), message: "no lane".to_owned() }),
            #[cfg(feature = "emulator")]
            Code::Emulated(code) => {
                let space = device.emulated().ok_or_else(|| absent(device))?;
                code.run(&space, call)
            }
            #[cfg(feature = "simulator")]
            Code::Simulated(code) => {
                let settings = device.simulated().ok_or_else(|| absent(device))?;
                code.run(&settings, call)
            }
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Code::Nowhere(never) => match *never {},
        }
    }

    /// Enqueues the grid at the end of a lane, after the points `after`. After an error, it has not been enqueued.
    #[cfg(feature = "_remote")]
    pub(crate) fn give(&self, lane: &Lane, after: &[Mark], call: &Call<'_>, sleeps: bool) -> Result<Given> {
        match (self, lane) {
            #[cfg(feature = "cuda")]
            (Code::Cuda(code), Lane::Cuda(lane)) => code.give(lane, after, call, sleeps),
            #[cfg(feature = "hip")]
            (Code::Hip(code), Lane::Hip(lane)) => code.give(lane, after, call, sleeps),
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Code::Cuda(_), Lane::Hip(_)) | (Code::Hip(_), Lane::Cuda(_)) => Err(absent_lane(call)),
            #[cfg(feature = "cpu")]
            (Code::Cpu(_), _) => Err(absent_lane(call)),
            #[cfg(feature = "emulator")]
            (Code::Emulated(_), _) => Err(absent_lane(call)),
            #[cfg(feature = "simulator")]
            (Code::Simulated(_), _) => Err(absent_lane(call)),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            (Code::Nowhere(never), _) => match *never {},
        }
    }
}

#[cfg(feature = "cpu")]
fn cpu_arg(arg: &DeviceArg) -> titan_cpu::ArgRef<'_> {
    match arg {
        DeviceArg::Tensor { storage: Storage::Cpu(memory), offset, extents, strides } => {
            titan_cpu::ArgRef::Tensor { memory, offset: *offset, extents, strides }
        }
        // The devices of arguments have been compared.
        #[cfg(feature = "cuda")]
        DeviceArg::Tensor { storage: Storage::Cuda(_), .. } => titan_cpu::ArgRef::Absent,
        #[cfg(feature = "hip")]
        DeviceArg::Tensor { storage: Storage::Hip(_), .. } => titan_cpu::ArgRef::Absent,
        #[cfg(feature = "emulator")]
        DeviceArg::Tensor { storage: Storage::Emulated(_), .. } => titan_cpu::ArgRef::Absent,
        DeviceArg::Absent => titan_cpu::ArgRef::Absent,
        DeviceArg::Scalar(Const::Int(_, v)) => titan_cpu::ArgRef::Scalar(titan_cpu::Scalar::Int(*v)),
        DeviceArg::Scalar(Const::Float(_, v)) => titan_cpu::ArgRef::Scalar(titan_cpu::Scalar::Float(*v)),
    }
}

#[cfg(feature = "cpu")]
fn cpu_error(device: &Device, call: &Call<'_>, error: &RunError) -> Error {
    let name = &call.loaded.name;
    match error {
        RunError::Trap { message, loc, program } => {
            let (message, location) = (message.clone(), call.kernel.location(*loc));
            Error::Trap { kernel: name.clone(), message, location, program: *program }
        }
        RunError::OutOfMemory { bytes } => Error::OutOfMemory { bytes: *bytes, device: device.to_string(), free: None },
        // The check of the arguments should have found all other errors.
        error @ (RunError::BadArguments(_) | RunError::InUse(_) | _) => internal(&format!("kernel `{name}`"), error),
    }
}

#[cfg(feature = "cpu")]
pub(super) fn internal(doing: &str, error: &dyn std::error::Error) -> Error {
    Error::Internal { doing: doing.to_owned(), message: error.to_string() }
}

/// The error of a stream without a lane, or with that of another device.
#[cfg(all(
    feature = "_remote",
    any(feature = "cpu", feature = "emulator", feature = "simulator", all(feature = "cuda", feature = "hip"))
))]
fn absent_lane(call: &Call<'_>) -> Error {
    Error::Internal { doing: call.loaded.name.clone(), message: "a lane".to_owned() }
}

/// An error that cannot occur: devices of these kinds cannot be created in such a build.
pub(super) fn absent(device: &Device) -> Error {
    Error::Internal { doing: device.to_string(), message: "this build has no code for the device".to_owned() }
}
