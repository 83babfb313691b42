//! What differs between kinds of devices: memory, compiled kernels, running. Each kind is one case of each enum.

use super::device::{Device, DeviceKind};
#[cfg(feature = "emulator")]
use super::emulator;
use super::kernel::{KernelRef, Loaded};
use crate::error::{Error, Result};
use titan_core::ir::Const;
use titan_cpu::memory::Memory;
use titan_cpu::{Program, RunError};

/// Memory of a device.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Cpu(Memory),
    #[cfg(feature = "emulator")]
    Emulated(emulator::Memory),
}

/// A kernel that is ready to run on a device.
#[derive(Debug)]
pub(crate) enum Code {
    Cpu(Box<Program>),
    #[cfg(feature = "emulator")]
    Emulated(emulator::Code, emulator::Space),
}

/// An argument as a device takes it. Offsets are in bytes, strides in elements.
pub(crate) enum DeviceArg {
    Tensor { storage: Storage, offset: usize, extents: Vec<i32>, strides: Vec<i64> },
    Absent,
    Scalar(Const),
}

/// A launch: the kernel, the values of its shape names, the grid.
pub(crate) struct Call<'a> {
    pub(crate) kernel: &'a KernelRef,
    pub(crate) loaded: &'a Loaded,
    #[cfg_attr(not(feature = "emulator"), expect(dead_code, reason = "GPUs choose a variant by them"))]
    pub(crate) symbols: &'a [Option<i64>],
    pub(crate) grid: [u32; 3],
}

impl Storage {
    pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Storage> {
        match device.kind() {
            DeviceKind::Cpu => Memory::zeroed(bytes)
                .map(Storage::Cpu)
                .map_err(|_| Error::OutOfMemory { bytes, device: device.to_string() }),
            DeviceKind::Emulator => Self::emulated(device, bytes),
            DeviceKind::Cuda | DeviceKind::Hip => Err(absent(device)),
        }
    }

    #[cfg(feature = "emulator")]
    fn emulated(device: &Device, bytes: usize) -> Result<Storage> {
        let space = device.emulated().ok_or_else(|| absent(device))?.1;
        emulator::Memory::zeroed(&space, bytes).map(Storage::Emulated)
    }

    #[cfg(not(feature = "emulator"))]
    fn emulated(device: &Device, _bytes: usize) -> Result<Storage> {
        Err(absent(device))
    }

    /// Whether who writes some bytes must be alone in all of the memory.
    pub(crate) fn is_used_as_a_whole(&self) -> bool {
        match self {
            // Its launches lease whole memories, and use every core anyway.
            Storage::Cpu(_) => true,
            #[cfg(feature = "emulator")]
            Storage::Emulated(_) => false,
        }
    }

    /// Copies bytes in. Waits for nothing: `buffer.rs` orders it.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        match self {
            Storage::Cpu(memory) => memory.write(offset, bytes).map_err(|e| internal("a copy to the device", &e)),
            #[cfg(feature = "emulator")]
            Storage::Emulated(memory) => memory.write(offset, bytes),
        }
    }

    /// Copies bytes out. Waits for nothing: `buffer.rs` orders it.
    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        match self {
            Storage::Cpu(memory) => memory.read(offset, out).map_err(|e| internal("a copy to the host", &e)),
            #[cfg(feature = "emulator")]
            Storage::Emulated(memory) => memory.read(offset, out),
        }
    }
}

impl Code {
    /// Makes a kernel ready for a device.
    pub(crate) fn compile(device: &Device, loaded: &Loaded) -> Result<Code> {
        match device.kind() {
            DeviceKind::Cpu => {
                Program::compile(&loaded.kernel).map(|program| Code::Cpu(Box::new(program))).map_err(|e| {
                    Error::Unsupported {
                        kernel: loaded.name.clone(),
                        device: device.to_string(),
                        reason: e.to_string(),
                    }
                })
            }
            DeviceKind::Emulator => Self::emulated(device, loaded),
            DeviceKind::Cuda | DeviceKind::Hip => Err(absent(device)),
        }
    }

    #[cfg(feature = "emulator")]
    fn emulated(device: &Device, loaded: &Loaded) -> Result<Code> {
        let (machine, space) = device.emulated().ok_or_else(|| absent(device))?;
        Ok(Code::Emulated(emulator::Code::load(device, loaded, machine)?, space))
    }

    #[cfg(not(feature = "emulator"))]
    fn emulated(device: &Device, _loaded: &Loaded) -> Result<Code> {
        Err(absent(device))
    }

    /// How many programs a persistent grid has.
    pub(crate) fn persistent_grid(&self) -> [u32; 3] {
        match self {
            Code::Cpu(_) => [Program::persistent_grid(), 1, 1],
            #[cfg(feature = "emulator")]
            Code::Emulated(..) => emulator::Code::persistent_grid(),
        }
    }

    /// Runs the grid to its end.
    pub(crate) fn run(&self, call: &Call<'_>, args: Vec<DeviceArg>) -> Result<()> {
        match self {
            Code::Cpu(program) => {
                let args: Vec<titan_cpu::Arg> = args.into_iter().map(cpu_arg).collect();
                program.run(&args, call.grid).map_err(|error| cpu_error(call.kernel, &call.loaded.name, &error))
            }
            #[cfg(feature = "emulator")]
            Code::Emulated(code, space) => code.run(space, (call.kernel, call.loaded), args, call.symbols, call.grid),
        }
    }
}

fn cpu_arg(arg: DeviceArg) -> titan_cpu::Arg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Cpu(memory), offset, extents, strides } => {
            titan_cpu::Arg::Tensor { memory, offset, extents, strides }
        }
        // The devices of arguments have been compared.
        #[cfg(feature = "emulator")]
        DeviceArg::Tensor { storage: Storage::Emulated(_), .. } => titan_cpu::Arg::Absent,
        DeviceArg::Absent => titan_cpu::Arg::Absent,
        DeviceArg::Scalar(Const::Int(_, v)) => titan_cpu::Arg::Scalar(titan_cpu::Scalar::Int(v)),
        DeviceArg::Scalar(Const::Float(_, v)) => titan_cpu::Arg::Scalar(titan_cpu::Scalar::Float(v)),
    }
}

fn cpu_error(kernel: &KernelRef, name: &str, error: &RunError) -> Error {
    // Whatever is not a trap should have been found when the arguments were checked.
    let RunError::Trap { message, loc, program } = error else {
        return internal(&format!("kernel `{name}`"), error);
    };
    let (message, location) = (message.clone(), kernel.location(*loc));
    Error::Trap { kernel: name.to_owned(), message, location, program: *program }
}

fn internal(doing: &str, error: &dyn std::error::Error) -> Error {
    Error::Internal { doing: doing.to_owned(), message: error.to_string() }
}

/// Devices of these kinds cannot be made yet, so nobody sees this.
fn absent(device: &Device) -> Error {
    Error::Internal { doing: device.to_string(), message: "this build has no code for the device".to_owned() }
}
