//! tidy: table
//! Errors at run time. Each is one sentence that names the kernel, argument or device, and a help line.

mod refused;
mod text;

pub use refused::Refused;
pub use text::Location;

use crate::runtime::{Device, were};
use std::fmt;
use std::sync::Arc;
use text::{ANOTHER_DEVICE, because, in_file, room, way_to_a_device};
use titan_core::ir::Elem as ElemType;
use titan_core::launch::BindError;

/// The result of fallible functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a tensor, a launch or a device was refused, or why a kernel stopped early.
///
/// `Debug` prints the same text as `Display`, because it is what is printed when `main` returns the error or `unwrap` fails. Later versions add
/// variants, and fields of variants: a pattern of one ends with `..`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An extent is not what the kernel's `#[shape(..)]` says.
    #[error("kernel `{kernel}`: {why}")]
    #[non_exhaustive]
    Shape {
        /// The kernel, with its instance.
        kernel: String,
        /// The extent, and its required value.
        why: Box<BindError>,
    },
    /// A condition in the kernel's `require(..)` does not hold.
    #[error("kernel `{kernel}`: {why}")]
    #[non_exhaustive]
    Requirement {
        /// The kernel, with its instance.
        kernel: String,
        /// The condition, with the values of its operands.
        why: Box<BindError>,
    },
    /// The grid has no legal extents, or no programs although outputs have elements.
    #[error("kernel `{kernel}`: {why}")]
    #[non_exhaustive]
    Grid {
        /// The kernel, with its instance.
        kernel: String,
        /// The extent that is not legal.
        why: Box<BindError>,
    },
    /// A grid given with [`Launch::grid`](crate::Launch::grid) is larger than the one for which the kernel's outputs were
    /// proved disjoint.
    #[error(
        "kernel `{kernel}`: the launch asks for {found} programs along grid axis {axis}, but the kernel's `grid(..)` allows at most {most}\n  \
         help: the outputs are proved disjoint for that many programs only; declare a larger `grid(..)`"
    )]
    #[non_exhaustive]
    GridOverride {
        /// The kernel, with its instance.
        kernel: String,
        /// The axis of the grid.
        axis: usize,
        /// The extent that was given.
        found: u32,
        /// The largest extent that the declared grid can have, for any arguments.
        most: u32,
    },
    /// An argument is of another kind, element type, rank or size than the kernel takes.
    #[error("kernel `{kernel}`: {why}")]
    #[non_exhaustive]
    Argument {
        /// The kernel, with its instance.
        kernel: String,
        /// The argument, and its mismatch.
        why: Box<BindError>,
    },
    /// No instance of the kernel has the values of generic parameters with which generic code or `dispatch!` launches it.
    #[error(
        "[T1101] kernel `{kernel}` has no instance `{asked}`\n  \
         help: its instances are {declared}; choose one of them, or add this one to the kernel's `instances(..)`"
    )]
    #[non_exhaustive]
    NoInstance {
        /// The kernel, without an instance.
        kernel: String,
        /// The instance that was asked for.
        asked: String,
        /// The declared instances.
        declared: String,
    },
    /// `dispatch!(match ..)` does not list the element type.
    #[error(
        "[T1101] `dispatch!` has no arm for elements of type `{found}`\n  \
         help: its arms are for {listed}; convert the data to one of these, or add `{found}` to the list"
    )]
    #[non_exhaustive]
    NoArm {
        /// The element type at run time.
        found: ElemType,
        /// The element types that are listed.
        listed: String,
    },
    /// A tensor whose element type is known only at run time has another element type or rank than is asked for.
    #[error(
        "[T1102] a tensor of type `{expected}` and rank {expected_rank} is asked for, but this one has elements of type `{found}` and \
         rank {}\n  help: ask for its own type and rank, which `.elem()` and `.rank()` return, or convert the data",
        shape.len()
    )]
    #[non_exhaustive]
    NotOfType {
        /// The element type that was asked for.
        expected: ElemType,
        /// The number of axes that was asked for.
        expected_rank: usize,
        /// The element type of the tensor.
        found: ElemType,
        /// The extents of the tensor.
        shape: Vec<usize>,
    },
    /// The bytes for a tensor are not the elements of its type and shape.
    #[error("[T1103] {problem}\n  help: {help}")]
    #[non_exhaustive]
    TensorBytes {
        /// What is wrong with the bytes.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A safetensors file is malformed.
    #[error("[T1104] the safetensors file is malformed: {problem}\n  help: {help}")]
    #[non_exhaustive]
    SafetensorsFile {
        /// What is wrong with it, with the name of the tensor.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A tensor of a safetensors file has an element type that TITAN does not have.
    #[error(
        "[T1105] tensor `{tensor}` has elements of type `{dtype}`, which TITAN does not have\n  \
         help: convert it to one of {}",
        crate::safetensors::DTYPES
    )]
    #[non_exhaustive]
    SafetensorsElement {
        /// The name of the tensor.
        tensor: String,
        /// The element type as the file names it.
        dtype: String,
    },
    /// A safetensors file has no tensor of this name.
    #[error("[T1106] the safetensors file has no tensor `{tensor}`\n  help: it has {present}")]
    #[non_exhaustive]
    SafetensorsName {
        /// The name that was asked for.
        tensor: String,
        /// The names that the file has.
        present: String,
    },
    /// A tensor that the kernel writes shares elements with another argument.
    #[error(
        "kernel `{kernel}`: `{written}` is written, but shares elements with `{other}`\n  \
         help: pass parts that do not overlap (`split_at_mut`), or a `.copy()`; a kernel that works in place takes the tensor once, by `&mut`, and \
         loads from it what it stores"
    )]
    #[non_exhaustive]
    Alias {
        /// The kernel, with its instance.
        kernel: String,
        /// The parameter that is written.
        written: String,
        /// The argument that shares elements with it.
        other: String,
    },
    /// The arguments of a launch, or its stream, are on different devices.
    #[error(
        "kernel `{kernel}`: `{first}` is on {first_device}, but {second} is on {second_device}\n  \
         help: move one of them with `.to_device(&device)`"
    )]
    #[non_exhaustive]
    DeviceMismatch {
        /// The kernel, with its instance.
        kernel: String,
        /// A parameter.
        first: String,
        /// The device of that parameter.
        first_device: Device,
        /// Another parameter, or the stream.
        second: String,
        /// The device of the other one.
        second_device: Device,
    },
    /// The data and the shape have different numbers of elements.
    #[error(
        "{} given for shape {shape:?}, which needs {expected}\n  \
         help: pass as many elements as the product of the extents",
        were(*found, "element")
    )]
    #[non_exhaustive]
    ElementCount {
        /// The number of elements that were given.
        found: usize,
        /// The extents.
        shape: Vec<usize>,
        /// The number of elements of that shape.
        expected: usize,
    },
    /// A shape has more elements than memory can address.
    #[error("a tensor of shape {shape:?} would have more than 2^63 - 1 elements or bytes\n  help: check the extents")]
    #[non_exhaustive]
    TooLarge {
        /// The extents.
        shape: Vec<usize>,
    },
    /// A view with this layout is not possible.
    #[error("{operation}: {problem}\n  help: {help}")]
    #[non_exhaustive]
    Layout {
        /// The operation that was requested.
        operation: &'static str,
        /// The reason why it is not possible.
        problem: String,
        /// The recommended alternative.
        help: &'static str,
    },
    /// The device has no memory left for a tensor, or the host for its elements.
    #[error(
        "{device} is out of memory: it could not allocate {bytes} bytes{}\n  help: drop tensors that are no longer needed, or use smaller ones",
        room(*free)
    )]
    #[non_exhaustive]
    OutOfMemory {
        /// The number of bytes that were requested.
        bytes: usize,
        /// The device, or `the host`.
        device: String,
        /// The number of free bytes and of all bytes, if the device reports them.
        free: Option<(usize, usize)>,
    },
    /// There is no device of this name.
    #[error(
        "{asked_by} is `{asked}`, but the available devices are: {available}{}\n  help: {}",
        because(reason.as_deref()),
        way_to_a_device(asked_by, help)
    )]
    #[non_exhaustive]
    NoSuchDevice {
        /// The source of the name: `TITAN_DEVICE` or a call.
        asked_by: &'static str,
        /// The name that was requested.
        asked: String,
        /// The devices that exist.
        available: String,
        /// The reason why there is no device of that kind, if it is known.
        reason: Option<String>,
        /// The help for that reason.
        help: Option<&'static str>,
    },
    /// The kernel stopped itself: a failed `tassert!`, or a `get` or `set` outside of its tensor.
    #[error(
        "kernel `{kernel}` stopped at {location} in program {program:?}: {message}\n  help: the tensors that it writes may be partly written"
    )]
    #[non_exhaustive]
    Trap {
        /// The kernel, with its instance.
        kernel: String,
        /// The message of the trap.
        message: String,
        /// The location in the user's source.
        location: Location,
        /// The coordinates of the program in the grid.
        program: [u32; 3],
    },
    /// The emulator found an error in the code of a kernel.
    #[error("kernel `{kernel}` in the emulator: {report}")]
    #[non_exhaustive]
    Emulated {
        /// The kernel, with its instance.
        kernel: String,
        /// The error and its place: lines of the PTX and of the kernel.
        report: String,
    },
    /// The simulator found an error in the pipeline of a kernel.
    #[error("kernel `{kernel}` in the simulator: {report}")]
    #[non_exhaustive]
    Simulated {
        /// The kernel, with its instance.
        kernel: String,
        /// The error, its place, and the schedule that reproduces it.
        report: String,
    },
    /// A launch or copy did not run because the work that should have written its data failed.
    #[error("{what} did not run, because a launch that it depends on failed: {cause}")]
    #[non_exhaustive]
    Dependency {
        /// The launch or the copy.
        what: String,
        /// The failure of the earlier work.
        #[source]
        cause: Arc<Error>,
    },
    /// The compiled kernel in the executable cannot be read.
    #[error(
        "the compiled form of kernel `{kernel}` cannot be read: {reason}\n  \
         help: use one version of all `titan-gpu` crates, and rebuild the crate of the kernel after `cargo clean -p`"
    )]
    #[non_exhaustive]
    Artifact {
        /// The kernel.
        kernel: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// The kernel cannot run on the device.
    #[error("kernel `{kernel}` cannot run on {device}: {reason}\n  help: {}", ANOTHER_DEVICE)]
    #[non_exhaustive]
    Unsupported {
        /// The kernel, with its instance.
        kernel: String,
        /// The device.
        device: String,
        /// The reason: a feature that the device lacks.
        reason: String,
    },
    /// The device is older than all targets for which the kernel is compiled.
    #[error(
        "kernel `{kernel}` cannot run on {device}: its compute capability is {capability}, but the kernel is compiled for {targets}\n  \
         help: {}",
        ANOTHER_DEVICE
    )]
    #[non_exhaustive]
    TooOld {
        /// The kernel, with its instance.
        kernel: String,
        /// The device.
        device: String,
        /// The compute capability of the device.
        capability: String,
        /// The targets for which the kernel is compiled.
        targets: String,
    },
    /// A GPU of AMD's is another one than those for which the code is compiled.
    #[error(
        "[T1107] {what} cannot run on {device}, which is {machine}: its code is for {targets}\n  help: {}",
        ANOTHER_DEVICE
    )]
    #[non_exhaustive]
    ForeignGpu {
        /// The kernel, with its instance, or a code object.
        what: String,
        /// The device.
        device: String,
        /// The architecture of the device.
        machine: String,
        /// The targets of the code.
        targets: String,
    },
    /// A code object for AMD's GPUs is damaged or incomplete, or lacks the kernel.
    #[error("[T1108] {what} cannot be loaded on {device}: {problem}\n  help: {help}")]
    #[non_exhaustive]
    CodeObject {
        /// The kernel, with its instance, or a code object.
        what: String,
        /// The device.
        device: String,
        /// What is wrong with the bytes.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A program of the kernel needs more shared memory than the device has.
    #[error(
        "[T1109] kernel `{kernel}` needs {needs} bytes of shared memory per program, but {device} has {limit}\n  \
         help: use smaller tiles or fewer stages, or another device"
    )]
    #[non_exhaustive]
    SharedMemory {
        /// The kernel, with its instance.
        kernel: String,
        /// The device.
        device: String,
        /// The bytes of shared memory that a program needs.
        needs: u32,
        /// The bytes of shared memory that the device provides for each program.
        limit: u32,
    },
    /// Elements of [`Device::uninit`](crate::Device::uninit) are read that nothing has written. The emulators find this.
    #[error(
        "[T1110] elements that nothing has written are read on {device}: {report}\n  \
         help: let launches or copies write every element of a tensor of `Device::uninit` first, or make it by `Device::zeros`"
    )]
    #[non_exhaustive]
    Unwritten {
        /// The device.
        device: String,
        /// The bytes and their memory.
        report: String,
    },
    /// A copy between tensors, or to a slice, of which the two sides do not have the same elements.
    #[error("[T1111] {operation}: {problem}\n  help: {help}")]
    #[non_exhaustive]
    Copy {
        /// The operation that was requested.
        operation: &'static str,
        /// The two sides.
        problem: String,
        /// The recommended alternative.
        help: &'static str,
    },
    /// An axis cannot be divided so, or two axes cannot be joined.
    #[error("[T1112] {operation}: {problem}\n  help: {help}")]
    #[non_exhaustive]
    AxisView {
        /// The operation that was requested.
        operation: &'static str,
        /// The reason why it is not possible.
        problem: String,
        /// The recommended alternative.
        help: &'static str,
    },
    /// There is no time between two events.
    #[error("[T1113] elapsed_since: {problem}\n  help: {help}")]
    #[non_exhaustive]
    Timing {
        /// The reason why there is none.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A tensor with strides is not in the slice that is borrowed, or its elements overlap.
    #[error("[T1114] {operation}: {problem}\n  help: {help}")]
    #[non_exhaustive]
    Strided {
        /// The operation that was requested.
        operation: &'static str,
        /// The reason why it is not possible.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A file of records of measurements is damaged, or cannot be read or written.
    #[error("[T1121] the records of measurements{}: {problem}\n  help: {help}", in_file(file.as_deref()))]
    #[non_exhaustive]
    Records {
        /// The file, if they are in one.
        file: Option<std::path::PathBuf>,
        /// What is wrong with it.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// There is nothing to measure, or no result of a measurement can be chosen.
    #[error("[T1122] {problem}\n  help: {help}")]
    #[non_exhaustive]
    Measurement {
        /// The reason.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// Inside of [`Stream::capture`](crate::Stream::capture), something is done that a graph cannot repeat.
    #[error("[T1123] {what} cannot be captured into a graph: {problem}\n  help: {help}")]
    #[non_exhaustive]
    Capture {
        /// The launch or the operation.
        what: String,
        /// The reason.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// A graph is replayed on another device, or a launch is to replace one of another kernel.
    #[error("[T1124] {problem}\n  help: {help}")]
    #[non_exhaustive]
    Graph {
        /// The reason why it is not possible.
        problem: String,
        /// The way to correct it.
        help: &'static str,
    },
    /// Memory or a stream of another library that does not belong to the device, or does not hold elements of the type.
    #[error("[T1120] {0}")]
    Foreign(Refused),
    /// A tensor that is exchanged by DLPack cannot be taken or given.
    #[error("[T1125] {0}")]
    Dlpack(Refused),
    /// The driver rejects the code of a kernel.
    #[error("the driver of {device} rejects the code of kernel `{kernel}`: {message}{log}\n  help: {help}")]
    #[non_exhaustive]
    Code {
        /// The kernel, with its instance.
        kernel: String,
        /// The device.
        device: String,
        /// The message that the driver returned.
        message: String,
        /// The log of the driver's compiler, on separate lines.
        log: String,
        /// The help for this error.
        help: &'static str,
    },
    /// A call of the device's driver failed.
    #[error("{doing} failed on {device}: {message}\n  help: {help}")]
    #[non_exhaustive]
    Driver {
        /// The operation that failed.
        doing: String,
        /// The device.
        device: String,
        /// The message that the driver returned.
        message: String,
        /// The help for this error.
        help: &'static str,
    },
    /// Work on a device failed in a way after which this process can no longer use it.
    #[error(
        "{what}, or other work at the same time, failed on {device}: {message}; \
         this process can no longer use the device, and the contents of its memory are lost\n  help: {help}"
    )]
    #[non_exhaustive]
    DeviceLost {
        /// The work at which the failure was detected.
        what: String,
        /// The device.
        device: String,
        /// The message that the driver returned.
        message: String,
        /// The help for this error.
        help: &'static str,
    },
    /// A kernel ran longer than the system allows.
    #[error(
        "{what} ran for too long on {device}: {message}; this process can no longer use the device\n  help: {help}"
    )]
    #[non_exhaustive]
    Timeout {
        /// The kernel that ran too long.
        what: String,
        /// The device.
        device: String,
        /// The message that the driver returned.
        message: String,
        /// The help for this error.
        help: &'static str,
    },
    /// The operating system could not create a thread for a stream.
    #[error(
        "the operating system could not create a thread for a stream: {source}\n  help: use fewer streams, or raise the limit on threads"
    )]
    #[non_exhaustive]
    Thread {
        /// The error of the operating system.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A bug in TITAN.
    #[error(
        "{doing} failed inside of TITAN: {message}\n  help: this is a bug in TITAN; please report it with the kernel"
    )]
    #[non_exhaustive]
    Internal {
        /// The operation that failed.
        doing: String,
        /// The message of the failure.
        message: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
