//! The devices, below the facade: a kernel on tensors of any layout.

use crate::random::PROGRAMS;
use crate::tensor::Tensor;
use titan_core::artifact::{TensorFact, TensorFacts, Variant};
use titan_core::driver::Backend;
use titan_core::ir::{Const, Elem, HostEnv, Symbol};
use titan_core::launch::abi::{self, GpuArg, MapParam, Slot};
use titan_core::launch::report;
use titan_core::verify::Verified;
use titan_nv::emu::Param;

/// Tensors by parameter; nothing for scalars.
pub(crate) type Tensors = Vec<Option<Tensor>>;

/// Runs a kernel on the executor.
pub(crate) fn on_cpu(kernel: &Verified, tensors: &Tensors, scalar: i32) -> Result<Tensors, String> {
    let program = titan_cpu::Program::compile(kernel).map_err(|e| e.to_string())?;
    let arg = |t: &Option<Tensor>| {
        let Some(t) = t else { return Ok(titan_cpu::Arg::Scalar(titan_cpu::Scalar::Int(scalar.into()))) };
        let memory = titan_cpu::memory::Memory::zeroed(t.bytes.len()).map_err(|e| e.to_string())?;
        memory.write(0, &t.bytes).map_err(|e| e.to_string())?;
        let extents = t.extents.iter().map(|n| *n as i32).collect();
        Ok(titan_cpu::Arg::Tensor {
            memory,
            offset: t.skip,
            extents,
            strides: t.strides.iter().map(|s| i64::from(*s)).collect(),
        })
    };
    let args = tensors.iter().map(arg).collect::<Result<Vec<_>, String>>()?;
    program.run(&args, [PROGRAMS, 1, 1]).map_err(|e| e.to_string())?;
    let mut after = tensors.clone();
    for (tensor, arg) in after.iter_mut().zip(&args) {
        if let (Some(tensor), titan_cpu::Arg::Tensor { memory, .. }) = (tensor, arg) {
            memory.read(0, &mut tensor.bytes).map_err(|e| e.to_string())?;
        }
    }
    Ok(after)
}

/// Where a tensor lies: address, bits of an element, extents, strides.
type Place = (u64, u32, Vec<i64>, Vec<i64>);

/// The arguments of a launch, as assumptions see them.
struct Facts {
    tensors: Vec<Option<Place>>,
    scalar: i32,
    shared: u32,
}

impl HostEnv for Facts {
    fn symbol(&self, _symbol: Symbol) -> i64 {
        0
    }

    fn scalar(&self, _param: usize) -> i64 {
        self.scalar.into()
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.tensors[param].as_ref().map_or(0, |t| t.2[axis])
    }
}

impl TensorFacts for Facts {
    fn params(&self) -> u32 {
        self.tensors.len() as u32
    }

    fn tensor(&self, param: u32) -> Option<TensorFact<'_>> {
        let (address, elem_bits, extents, strides) = self.tensors[param as usize].as_ref()?;
        Some(TensorFact { address: *address, elem_bits: *elem_bits, extents, strides })
    }

    fn shared_memory(&self) -> u32 {
        self.shared
    }

    fn tensor_map(&self, _map: &MapParam) -> Result<(), String> {
        Err("none of these devices has any".to_owned())
    }
}

/// The outcome of a launch on a GPU.
pub(crate) enum Outcome {
    /// What it left.
    Done(Tensors),
    /// The kernel cannot be compiled for the target, for this reason.
    Refused(String),
}

/// An emulated machine with memory of its own.
trait Machine {
    fn back_end(&self) -> &'static dyn Backend;
    /// The largest shared memory of a program, in bytes.
    fn shared(&self) -> u32;
    /// Memory with these bytes; its address.
    fn upload(&mut self, bytes: &[u8]) -> u64;
    fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, String>;
    /// Runs a variant with a parameter block.
    fn run(&mut self, variant: &Variant, slots: &[Slot], block: &[u8]) -> Result<(), String>;
}

/// NVIDIA's, of which it has the oldest.
#[derive(Default)]
struct Ampere(titan_nv::emu::Memory);

impl Machine for Ampere {
    fn back_end(&self) -> &'static dyn Backend {
        titan_nv::Machine::from_name("sm_80").expect("a target")
    }

    fn shared(&self) -> u32 {
        163 << 10
    }

    fn upload(&mut self, bytes: &[u8]) -> u64 {
        self.0.upload("a tensor", bytes).address()
    }

    fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, String> {
        self.0.read(titan_nv::emu::DevicePtr::from_address(address), len).map_err(|e| e.to_string())
    }

    fn run(&mut self, variant: &Variant, slots: &[Slot], block: &[u8]) -> Result<(), String> {
        let (at, _) = abi::offsets(slots);
        let params: Vec<Param> =
            slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec())).collect();
        let launch = titan_nv::emu::Launch {
            grid: [PROGRAMS, 1, 1],
            block: [variant.threads, 1, 1],
            dynamic_shared: variant.shared_bytes,
            cluster: None,
            params: &params,
        };
        let text = String::from_utf8_lossy(&variant.payload);
        let module = titan_nv::emu::Module::parse(&text).map_err(|e| e.to_string())?;
        let options = titan_nv::emu::Options::default();
        let run = module.entry(variant.entry()).and_then(|k| k.run(&launch, &mut self.0, &options));
        run.map(drop).map_err(|e| e.to_string())
    }
}

/// AMD's.
#[cfg(feature = "hip")]
#[derive(Default)]
struct Gfx942(titan_amd::emu::Memory);

#[cfg(feature = "hip")]
impl Machine for Gfx942 {
    fn back_end(&self) -> &'static dyn Backend {
        titan_amd::Machine::from_name("gfx942").expect("a target")
    }

    fn shared(&self) -> u32 {
        64 << 10
    }

    fn upload(&mut self, bytes: &[u8]) -> u64 {
        self.0.upload("a tensor", bytes).expect("there is room").address()
    }

    fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, String> {
        self.0.read(titan_amd::emu::DevicePtr::from_address(address), len).map_err(|e| e.to_string())
    }

    fn run(&mut self, variant: &Variant, _: &[Slot], block: &[u8]) -> Result<(), String> {
        use titan_amd::emu::{Args, Launch, Module, Options};
        let (grid, block_size) = ([PROGRAMS, 1, 1], [variant.threads, 1, 1]);
        let launch = Launch { grid, block: block_size, dynamic_lds: 0, args: Args::Packed(block) };
        let module = Module::load(&variant.payload).map_err(|e| e.to_string())?;
        let run = module.kernel(variant.entry()).and_then(|k| k.run(&launch, &mut self.0, &Options::default()));
        run.map(drop).map_err(|e| e.to_string())
    }
}

/// Runs a kernel in the emulator of PTX: the variant that a launch would choose, and whether that takes things for granted.
pub(crate) fn emulated(kernel: &Verified, tensors: &Tensors, scalar: i32) -> Result<(Outcome, bool), String> {
    on_machine(&mut Ampere::default(), kernel, tensors, scalar)
}

/// The same in the emulator of gfx942, in a build that has it.
pub(crate) fn on_gfx942(kernel: &Verified, tensors: &Tensors, scalar: i32) -> Option<Result<(Outcome, bool), String>> {
    #[cfg(feature = "hip")]
    let outcome = Some(on_machine(&mut Gfx942::default(), kernel, tensors, scalar));
    #[cfg(not(feature = "hip"))]
    let outcome = None;
    outcome
}

fn on_machine(
    machine: &mut dyn Machine,
    kernel: &Verified,
    tensors: &Tensors,
    scalar: i32,
) -> Result<(Outcome, bool), String> {
    let variants = match titan_core::driver::compile(kernel, machine.back_end(), Some(("random.tir", 1))) {
        Ok(variants) => variants,
        Err(reason) => return Ok((Outcome::Refused(reason.to_string()), false)),
    };
    let places: Vec<_> = tensors.iter().map(|t| t.as_ref().map(|t| machine.upload(&t.bytes))).collect();
    let address = |i: usize, t: &Tensor| places[i].unwrap_or(0) + t.skip as u64;
    let wide = |all: &[u32]| all.iter().map(|n| i64::from(*n)).collect::<Vec<_>>();
    let fact = |(i, t): (usize, &Option<Tensor>)| {
        t.as_ref().map(|t| (address(i, t), t.elem.bits(), wide(&t.extents), wide(&t.strides)))
    };
    let facts = Facts { tensors: tensors.iter().enumerate().map(fact).collect(), scalar, shared: machine.shared() };
    let variant = variants.iter().find(|v| v.assumptions.iter().all(|a| a.holds(&facts))).ok_or("no variant fits")?;
    let arg = |(i, t): (usize, &Option<Tensor>)| match t {
        None => GpuArg::Scalar(Const::Int(Elem::I32, scalar.into())),
        Some(t) => GpuArg::Tensor {
            address: address(i, t),
            extents: t.extents.iter().map(|n| *n as i32).collect(),
            strides: wide(&t.strides),
        },
    };
    let args: Vec<GpuArg> = tensors.iter().enumerate().map(arg).collect();
    let slots = abi::slots(&kernel.sig);
    let report = machine.upload(&[0; 4 * report::RECORDS]);
    machine.run(variant, &slots, &abi::pack(&slots, &args, report))?;
    let mut after = tensors.clone();
    for (tensor, place) in after.iter_mut().zip(&places) {
        if let (Some(tensor), Some(place)) = (tensor, place) {
            tensor.bytes = machine.read(*place, tensor.bytes.len())?;
        }
    }
    Ok((Outcome::Done(after), !variant.assumptions.is_empty()))
}

/// Runs a kernel on the GPU that was asked for, if one was.
pub(crate) fn on_gpu(kernel: &Verified, tensors: &Tensors, scalar: i32) -> Option<Result<Outcome, String>> {
    #[cfg(feature = "cuda")]
    let outcome = crate::gpu::gpu().map(|gpu| gpu.run(kernel, tensors, scalar));
    #[cfg(not(feature = "cuda"))]
    let outcome = None;
    outcome
}
