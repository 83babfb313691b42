//! Devices that run the embedded code in an emulator: slowly, but reporting every error that it detects.
//!
//! Each vendor's machines have an emulator of their own, with memory of its own: [`nv`] runs PTX, [`amd`] code objects. The rest is the same
//! for all.

#[cfg(feature = "hip")]
mod amd;
mod nv;

use super::backend::{Call, DeviceArg};
use super::choice::Choice;
use super::device::Device;
use super::gpu::{self, Facts};
use super::kernel::Loaded;
use super::lock;
use super::machines::Machines;
use super::storage::{Contents, Storage};
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;
use titan_nv::emu::Options;

/// The number of programs of a persistent grid: such that each has few iterations, and some have none.
const PERSISTENT: u32 = 6;

impl Device {
    /// A new device that runs the code of kernels for `target`, such as `sm_80`, or `gfx942` with the feature `hip`, without a GPU. It is slow,
    /// but reports reads of uninitialised memory, accesses outside of tensors, misused barriers and races on shared memory as errors.
    ///
    /// # Errors
    /// If there is no such target, or no emulator of it.
    pub fn emulator(target: &str) -> Result<Device> {
        Device::emulator_with(target, Options::default())
    }

    /// As [`Device::emulator`], with options: when asynchronous operations complete, the order of warps, whether the sanitizer observes.
    /// Those that one of NVIDIA's GPUs alone has, such as the largest shared memory, have no effect on others.
    ///
    /// ```
    /// use titan::Device;
    /// use titan::emu::{Options, Uninitialised};
    ///
    /// let options = Options { uninitialised: Uninitialised::Propagate, sanitize: true, ..Options::default() };
    /// let dev = Device::emulator_with("sm_80", options)?;
    /// assert!(dev.to_string().starts_with("emulator:sm_80"));
    /// # Ok::<(), titan::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such target, or no emulator of it.
    pub fn emulator_with(target: &str, options: Options) -> Result<Device> {
        let all = Machine::all();
        let Some((index, machine)) = all.iter().enumerate().find(|(_, machine)| machine.name() == target) else {
            let lacks_amd = cfg!(not(feature = "hip")) && target.starts_with("gfx");
            return Err(Error::NoSuchDevice {
                asked_by: "the emulated target",
                asked: target.to_owned(),
                available: format!("emulators of {}", all.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ")),
                reason: lacks_amd.then(|| "this program was built without support for AMD GPUs".to_owned()),
                help: Some(if lacks_amd {
                    "build with feature `hip` of `titan-gpu`"
                } else {
                    "use one of these targets, such as `emulator:sm_80`"
                }),
            });
        };
        Ok(Device::emulating(u32::try_from(index).unwrap_or(0), Space::new(*machine, options)))
    }
}

/// A machine of which there is an emulator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machine {
    Nv(&'static titan_nv::Machine),
    #[cfg(feature = "hip")]
    Amd(&'static titan_amd::Machine),
}

impl Machine {
    fn all() -> Vec<Machine> {
        let nv = titan_nv::Machine::all().iter().map(Machine::Nv);
        #[cfg(feature = "hip")]
        let nv = nv.chain(titan_amd::Machine::all().iter().map(Machine::Amd));
        nv.collect()
    }

    /// The name of its target.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Machine::Nv(machine) => machine.name,
            #[cfg(feature = "hip")]
            Machine::Amd(machine) => machine.name,
        }
    }

    /// The code that it runs.
    fn machines(self) -> Machines {
        match self {
            Machine::Nv(machine) => Machines::Nvidia(machine.capability),
            #[cfg(feature = "hip")]
            Machine::Amd(machine) => Machines::Amd(machine.name.to_owned()),
        }
    }
}

/// The memory of a machine.
#[derive(Debug)]
enum Ram {
    Nv(titan_nv::emu::Memory),
    #[cfg(feature = "hip")]
    Amd(titan_amd::emu::Memory),
}

impl Ram {
    /// The size of an allocation for so many bytes. Those of a GPU are whole words, and more: gfx942 compares and swaps halves as parts of the
    /// word that contains them.
    fn room(&self, bytes: usize) -> usize {
        match self {
            Ram::Nv(_) => bytes,
            #[cfg(feature = "hip")]
            Ram::Amd(_) => bytes.checked_next_multiple_of(4).unwrap_or(bytes),
        }
    }

    /// Allocates memory of any contents; `None` if there is none left.
    fn alloc(&mut self, name: &str, bytes: usize) -> Option<u64> {
        match self {
            Ram::Nv(memory) => memory.try_alloc(name, bytes).map(titan_nv::emu::DevicePtr::address),
            #[cfg(feature = "hip")]
            Ram::Amd(memory) => memory.try_alloc(name, bytes).map(titan_amd::emu::DevicePtr::address),
        }
    }

    fn free(&mut self, address: u64) {
        match self {
            Ram::Nv(memory) => memory.free(titan_nv::emu::DevicePtr::from_address(address)),
            #[cfg(feature = "hip")]
            Ram::Amd(memory) => memory.free(titan_amd::emu::DevicePtr::from_address(address)),
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> std::result::Result<(), String> {
        match self {
            Ram::Nv(memory) => {
                memory.write(titan_nv::emu::DevicePtr::from_address(address), bytes).map_err(|e| e.to_string())
            }
            #[cfg(feature = "hip")]
            Ram::Amd(memory) => {
                memory.write(titan_amd::emu::DevicePtr::from_address(address), bytes).map_err(|e| e.to_string())
            }
        }
    }

    fn read(&self, address: u64, len: usize) -> std::result::Result<Vec<u8>, Unread> {
        match self {
            Ram::Nv(memory) => memory.read(titan_nv::emu::DevicePtr::from_address(address), len).map_err(|e| Unread {
                unwritten: e.code() == titan_nv::emu::ErrorCode::Uninitialised,
                report: e.to_string(),
            }),
            #[cfg(feature = "hip")]
            Ram::Amd(memory) => memory.read(titan_amd::emu::DevicePtr::from_address(address), len).map_err(|e| {
                Unread { unwritten: e.code() == titan_amd::emu::ErrorCode::Uninitialised, report: e.to_string() }
            }),
        }
    }
}

/// Why memory cannot be read.
#[derive(Debug)]
struct Unread {
    /// Whether nothing has written some of the bytes.
    unwritten: bool,
    report: String,
}

/// An emulated device: its machine, its memory, and the options of its launches.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    machine: Machine,
    ram: Arc<Mutex<Ram>>,
    options: Options,
    /// Whether memory was ever allocated without contents.
    has_undefined: Arc<AtomicBool>,
}

impl Space {
    fn new(machine: Machine, options: Options) -> Space {
        let ram = match machine {
            Machine::Nv(_) => Ram::Nv(titan_nv::emu::Memory::default()),
            #[cfg(feature = "hip")]
            Machine::Amd(_) => Ram::Amd(titan_amd::emu::Memory::default()),
        };
        Space { machine, ram: Arc::new(Mutex::new(ram)), options, has_undefined: Arc::default() }
    }

    pub(crate) fn machine(&self) -> Machine {
        self.machine
    }
}

/// A buffer in it, freed when dropped.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Block>);

struct Block {
    space: Space,
    start: u64,
}

impl Memory {
    pub(crate) fn new(space: &Space, device: &Device, bytes: usize, contents: Contents) -> Result<Memory> {
        let mut ram = lock(&space.ram);
        // An empty buffer has an address too.
        let room = ram.room(bytes.max(1));
        let start = ram.alloc("a tensor", room);
        let start = start.ok_or_else(|| Error::OutOfMemory { bytes, device: device.to_string(), free: None })?;
        const ZEROS: [u8; 1 << 12] = [0; 1 << 12];
        let filled = match contents {
            Contents::Zeros | Contents::WrittenNext => room,
            Contents::Undefined => {
                space.has_undefined.store(true, Ordering::Relaxed);
                0
            }
        };
        for at in (0..filled).step_by(ZEROS.len()) {
            let part = &ZEROS[..(filled - at).min(ZEROS.len())];
            ram.write(start + at as u64, part).map_err(|e| broken("an allocation", e))?;
        }
        // What fills up the last word is no element, and is defined from the start.
        let rest = room - bytes.max(1);
        if rest > 0 {
            ram.write(start + (room - rest) as u64, &ZEROS[..rest]).map_err(|e| broken("an allocation", e))?;
        }
        drop(ram);
        Ok(Memory(Arc::new(Block { space: space.clone(), start })))
    }

    fn at(&self, offset: usize) -> u64 {
        self.0.start + offset as u64
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut ram = lock(&self.0.space.ram);
        ram.write(self.at(offset), bytes).map_err(|e| broken("a copy to the device", e))
    }

    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let bytes = lock(&self.0.space.ram).read(self.at(offset), out.len());
        out.copy_from_slice(&bytes.map_err(|unread| self.unreadable(unread))?);
        Ok(())
    }

    /// The error of a read of the host's.
    fn unreadable(&self, unread: Unread) -> Error {
        match unread {
            // Otherwise all bytes have values, unless the code of a kernel is wrong. Undefined bits may have been copied by kernels.
            Unread { unwritten: true, report } if self.0.space.has_undefined.load(Ordering::Relaxed) => {
                let device = format!("emulator:{}", self.0.space.machine.name());
                Error::Unwritten { device, report }
            }
            Unread { report, .. } => broken("a copy to the host", report),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        lock(&self.space.ram).free(self.start);
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.start)
    }
}

/// A kernel's code, decoded.
#[derive(Debug)]
pub(crate) struct Code {
    device: String,
    machines: Machines,
    slots: Vec<Slot>,
    /// The variants, in the order in which launches try them.
    variants: Variants,
}

#[derive(Debug)]
enum Variants {
    Nv(nv::Variants),
    #[cfg(feature = "hip")]
    Amd(amd::Variants),
}

impl Code {
    /// The variants that a device with such a machine runs.
    pub(crate) fn load(device: &Device, loaded: &Loaded, machine: Machine) -> Result<Code> {
        let machines = machine.machines();
        let found = machines.variants(device, loaded)?;
        let variants = match machine {
            Machine::Nv(machine) => Variants::Nv(nv::Variants::load(found, machine)?),
            #[cfg(feature = "hip")]
            Machine::Amd(machine) => Variants::Amd(amd::Variants::load(found, machine, (device, loaded))?),
        };
        Ok(Code { device: device.to_string(), machines, slots: abi::slots(&loaded.kernel.sig), variants })
    }

    /// The code that a launch would run, and the reasons against the code that is tried before it.
    pub(crate) fn choice(&self, call: &Call<'_>) -> Result<Choice> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        Facts::choice(call.loaded, &self.machines, |passed_over| match &self.variants {
            Variants::Nv(variants) => variants.target(self, call, &args, passed_over),
            #[cfg(feature = "hip")]
            Variants::Amd(variants) => variants.target(self, call, &args, passed_over),
        })
    }

    /// Runs a grid in the emulator.
    pub(crate) fn run(&self, space: &Space, call: &Call<'_>) -> Result<()> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let mut ram = lock(&space.ram);
        let (variant, words) = match (&self.variants, &mut *ram) {
            (Variants::Nv(variants), Ram::Nv(memory)) => variants.run(self, memory, (call, &args), &space.options),
            #[cfg(feature = "hip")]
            (Variants::Amd(variants), Ram::Amd(memory)) => variants.run(self, memory, (call, &args), &space.options),
            #[cfg(feature = "hip")]
            (Variants::Nv(_), Ram::Amd(_)) | (Variants::Amd(_), Ram::Nv(_)) => {
                Err(internal("the code is for another machine".to_owned()))
            }
        }?;
        drop(ram);
        debug_assert!(words.len() >= report::RECORDS);
        gpu::read_report(call.kernel, &call.loaded.name, &variant.sites, &words)
    }

    /// The error of a launch for which there is no variant.
    fn no_variant<'v>(&self, call: &Call<'_>, facts: &Facts<'_>, all: impl Iterator<Item = &'v Variant>) -> Error {
        let otherwise = || internal("no variant of the kernel fits its arguments".to_owned());
        facts.no_variant((&call.loaded.name, &self.device), all, otherwise)
    }
}

fn gpu_arg(arg: &DeviceArg) -> GpuArg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Emulated(memory), offset, extents, strides } => {
            GpuArg::Tensor { address: memory.at(*offset), extents: extents.to_vec(), strides: strides.to_vec() }
        }
        // The devices of arguments have been compared.
        #[cfg(feature = "cpu")]
        DeviceArg::Tensor { storage: Storage::Cpu(_), .. } => GpuArg::Absent,
        DeviceArg::Absent => GpuArg::Absent,
        #[cfg(feature = "cuda")]
        DeviceArg::Tensor { storage: Storage::Cuda(_), .. } => GpuArg::Absent,
        #[cfg(feature = "hip")]
        DeviceArg::Tensor { storage: Storage::Hip(_), .. } => GpuArg::Absent,
        DeviceArg::Scalar(value) => GpuArg::Scalar(*value),
    }
}

fn broken(doing: &str, error: impl ToString) -> Error {
    Error::Internal { doing: doing.to_owned(), message: error.to_string() }
}

fn internal(message: String) -> Error {
    Error::Internal { doing: "a launch".to_owned(), message }
}

/// The words of a report.
fn report_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::__private::KernelRef;
    use crate::{Launch, Tensor};

    static FILL: KernelRef = KernelRef::new(
        "fill",
        b"kernel @fill(%y: mut tensor<f32>[N], %v: f32) grid(N) {
            %p = program_id<0> : i32
            set %y[%p], %v
            return
        }",
        "src/kernels.rs",
        [1, 8],
    );

    /// The memory of a device is freed with its last handle, after any launches.
    #[test]
    fn a_device_goes_with_its_last_handle() {
        fn fill(y: &mut Tensor<f32, 1>, v: f32) -> Launch<'_> {
            Launch::new(&FILL, vec![y.into(), v.into()])
        }
        let dev = Device::emulator("sm_80").unwrap();
        let space = Arc::downgrade(&dev.emulated().unwrap().ram);
        let mut y = dev.zeros::<f32, 1>([3]).unwrap();
        fill(&mut y, 1.0).sync().unwrap();
        let (stream, default) = (dev.stream().unwrap(), dev.default_stream());
        fill(&mut y, 2.0).launch(&stream).unwrap();
        fill(&mut y, 3.0).launch(&default).unwrap();
        fill(&mut y, 4.0).launch(&dev.awaited_stream()).unwrap();
        assert_eq!(y.to_vec().unwrap(), [4.0; 3]);
        [stream, default].iter().for_each(|s| s.sync().unwrap());
        let other = Device::emulator("sm_80").unwrap();
        let mut z = other.zeros::<f32, 1>([2]).unwrap();
        fill(&mut z, 5.0).sync().unwrap();
        assert_eq!(z.to_vec().unwrap(), [5.0; 2]);
        drop((y, dev));
        // The threads of the streams may be about to end their last work.
        let gone = || space.upgrade().is_none();
        let waited = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            gone()
        });
        assert!(waited, "something keeps the memory of the device");
        drop(other);
    }

    /// Kernels in text form are compiled for the best target that has code for them.
    #[test]
    fn a_device_runs_code_for_older_ones() {
        fn launch(y: &mut Tensor<f32, 1>) -> Launch<'_> {
            Launch::new(&FILL, vec![y.into(), 1.0f32.into()])
        }
        let choice = |target: &str| {
            let mut y = Device::emulator(target).unwrap().zeros::<f32, 1>([3]).unwrap();
            let choice = launch(&mut y).choice().unwrap().unwrap();
            launch(&mut y).sync().unwrap();
            assert_eq!(y.to_vec().unwrap(), [1.0; 3]);
            choice.to_string()
        };
        assert_eq!(choice("sm_80"), "the code for sm_80");
        assert_eq!(choice("sm_89"), "the code for sm_89");
        assert_eq!(choice("sm_90a"), "the code for sm_89");
    }

    #[test]
    fn an_emulator_that_goes_by_name_is_one_device() {
        let named = || Device::named("emulator:sm_80").unwrap();
        assert_eq!(named(), Device::named(" Emulator:SM_80 ").unwrap());
        assert_ne!(named(), Device::named("emulator:sm_86").unwrap());
        assert_ne!(named(), Device::emulator("sm_80").unwrap(), "a new one has memory of its own");
        let x = named().full([3], 2.0f32).unwrap();
        assert_eq!(x.to_device(&named()).unwrap().to_vec().unwrap(), [2.0; 3]);
    }

    #[test]
    fn targets_that_no_emulator_has_are_told() {
        let text = |name: &str| Device::named(name).unwrap_err().to_string();
        let turing = text("emulator:sm_75");
        assert!(turing.contains("is `sm_75`, but the available devices are: emulators of sm_80, "), "{turing}");
        assert!(turing.ends_with("\n  help: use one of these targets, such as `emulator:sm_80`"), "{turing}");
        assert!(text("emulator").ends_with("help: write it after a colon, as in `emulator:sm_80`"));
    }

    #[test]
    fn more_memory_than_the_host_has_is_an_error() {
        let dev = Device::emulator("sm_80").unwrap();
        let error = dev.zeros::<f32, 1>([1 << 60]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes, .. } if bytes == 1 << 62), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("emulator:sm_80 is out of memory: it could not allocate 4611686018427387904 bytes\n"),
            "{error}"
        );
        // The device still works, and zeros longer than one piece are all zero.
        assert!(dev.zeros::<u8, 1>([10_000]).unwrap().to_vec().unwrap().iter().all(|b| *b == 0));
    }
}
