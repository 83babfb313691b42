//! Devices that run the embedded PTX in an emulator: slowly, but reporting every error that it detects.

use super::backend::{Call, DeviceArg, Storage};
use super::choice::Choice;
use super::device::Device;
use super::gpu::{self, Facts};
use super::kernel::Loaded;
use super::lock;
use crate::error::{Error, Location, Result};
use std::sync::{Arc, Mutex};
use titan_core::artifact::Variant;
use titan_core::ir::Loc;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;
use titan_nv::emu::{self, DevicePtr, Launch, Module, Options, Param, Source};
use titan_nv::{Feature, Machine};

/// The number of programs of a persistent grid: such that each has few iterations, and some have none.
const PERSISTENT: u32 = 6;

/// The greatest extents of a grid (CUDA C++ Programming Guide, "Compute Capabilities"; the same for every NVIDIA GPU).
const GRID: [u32; 3] = [i32::MAX.cast_unsigned(), 65_535, 65_535];

impl Device {
    /// A new device that runs the PTX of kernels for `target`, such as `sm_80`, without a GPU. It is slow, but reports reads of
    /// uninitialised memory, accesses outside of tensors, misused barriers and races on shared memory as errors.
    ///
    /// # Errors
    /// If there is no such target, or no emulator of it.
    pub fn emulator(target: &str) -> Result<Device> {
        Device::emulator_with(target, Options::default())
    }

    /// As [`Device::emulator`], with options: when asynchronous operations complete, the order of warps, whether the sanitizer observes.
    ///
    /// # Errors
    /// If there is no such target, or no emulator of it.
    pub fn emulator_with(target: &str, options: Options) -> Result<Device> {
        let all = Machine::all();
        let index = all.iter().position(|m| m.name == target);
        let Some((index, machine)) = index.and_then(|i| Some((i, all.get(i)?))) else {
            return Err(Error::NoSuchDevice {
                asked_by: "the emulated target",
                asked: target.to_owned(),
                available: format!("emulators of {}", all.iter().map(|m| m.name).collect::<Vec<_>>().join(", ")),
                reason: None,
                help: Some("use one of these targets, such as `emulator:sm_80`"),
            });
        };
        Ok(Device::emulating(u32::try_from(index).unwrap_or(0), machine, Space::new(options)))
    }
}

/// The memory of an emulated device, and the options of its launches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space(Arc<Mutex<emu::Memory>>, Options);

impl Space {
    pub(crate) fn new(options: Options) -> Space {
        Space(Arc::default(), options)
    }
}

/// A buffer in it, freed when dropped.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Block>);

struct Block {
    space: Space,
    start: DevicePtr,
}

impl Memory {
    pub(crate) fn zeroed(space: &Space, device: &Device, bytes: usize) -> Result<Memory> {
        let mut memory = lock(&space.0);
        // An empty buffer has an address too.
        let start = memory.try_alloc("a tensor", bytes.max(1));
        let start = start.ok_or_else(|| Error::OutOfMemory { bytes, device: device.to_string(), free: None })?;
        const ZEROS: [u8; 1 << 12] = [0; 1 << 12];
        for at in (0..bytes.max(1)).step_by(ZEROS.len()) {
            let part = &ZEROS[..(bytes.max(1) - at).min(ZEROS.len())];
            let to = start.add(i64::try_from(at).unwrap_or(i64::MAX));
            memory.write(to, part).map_err(|e| broken("an allocation", &e))?;
        }
        drop(memory);
        Ok(Memory(Arc::new(Block { space: space.clone(), start })))
    }

    fn at(&self, offset: usize) -> DevicePtr {
        self.0.start.add(i64::try_from(offset).unwrap_or(i64::MAX))
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        lock(&self.0.space.0).write(self.at(offset), bytes).map_err(|e| broken("a copy to the device", &e))
    }

    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let bytes = lock(&self.0.space.0).read(self.at(offset), out.len());
        out.copy_from_slice(&bytes.map_err(|e| broken("a copy to the host", &e))?);
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        lock(&self.space.0).free(self.start);
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.start)
    }
}

/// A kernel's PTX, decoded.
pub(crate) struct Code {
    device: String,
    machine: &'static Machine,
    slots: Vec<Slot>,
    /// The variants, in the order in which launches try them.
    variants: Vec<(Variant, Module)>,
}

/// A variant that can be launched, and the bytes of its tensor maps.
type Chosen<'a> = (&'a (Variant, Module), Vec<Vec<u8>>);

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variants.iter().map(|(v, _)| &v.config)).finish()
    }
}

impl Code {
    /// The variants that a device with such a machine runs.
    pub(crate) fn load(device: &Device, loaded: &Loaded, machine: &'static Machine) -> Result<Code> {
        let variants = gpu::variants(device, machine.capability, loaded)?;
        let parse = |v: Variant| {
            let text = String::from_utf8_lossy(&v.payload).into_owned();
            let module = Module::parse(&text).map_err(|e| broken("reading PTX", &e))?;
            Ok((v, module))
        };
        let variants = variants.into_iter().map(parse).collect::<Result<Vec<_>>>()?;
        Ok(Code { device: device.to_string(), machine, slots: abi::slots(&loaded.kernel.sig), variants })
    }

    /// The code that a launch would run, and the reasons against the code that is tried before it.
    pub(crate) fn choice(&self, call: &Call<'_>) -> Result<Choice> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        Facts::choice(call.loaded, self.machine.capability, |passed_over| {
            let ((variant, _), _) = self.choose(call, &args, Some(passed_over))?;
            Ok(variant.target.clone())
        })
    }

    /// The first variant that can be launched with these arguments.
    fn choose(
        &self,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<Chosen<'_>> {
        let Machine { shared_per_block, .. } = *self.machine;
        let no_maps = (!self.machine.has(Feature::Tma)).then_some("the device has no tensor maps");
        let facts = Facts::new(&call.loaded.kernel.sig, args, call.symbols, shared_per_block, no_maps);
        let bytes = |map| facts.map(map).map(|map| map.to_bytes().to_vec());
        let chosen = facts.choose(
            &self.variants,
            |(variant, _)| variant,
            |ready| {
                let maps = ready.0.maps().map(bytes).collect::<std::result::Result<_, _>>();
                Ok(gpu::grid(call, &ready.0).and(maps).map(|maps| (ready, maps)))
            },
            passed_over,
        )?;
        chosen.ok_or_else(|| match facts.short_of_memory(self.variants.iter().map(|(variant, _)| variant)) {
            Some(reason) => {
                Error::Unsupported { kernel: call.loaded.name.clone(), device: self.device.clone(), reason }
            }
            None => internal("no variant of the kernel fits its arguments".to_owned()),
        })
    }

    /// Runs a grid in the emulator.
    pub(crate) fn run(&self, space: &Space, call: &Call<'_>) -> Result<()> {
        let (kernel, loaded) = (call.kernel, call.loaded);
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let ((variant, module), maps) = self.choose(call, &args, None)?;
        let grid = gpu::grid(call, variant).map_err(internal)?.unwrap_or_else(|| gpu::persistent(PERSISTENT, variant));
        gpu::check_grid(&loaded.name, &self.device, grid, GRID)?;
        let mut memory = lock(&space.0);
        let words = gpu::new_report(variant);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let at = memory.upload("the report", &bytes);
        let words = gpu::words(&self.slots, &args, at.address());
        let entries = gpu::tables(variant, &args);
        let tables: Vec<_> = entries.iter().map(|n| memory.alloc_named("tensor maps", gpu::table_bytes(*n))).collect();
        let addresses = tables.iter().map(|table| table.address().to_le_bytes().to_vec());
        let params: Vec<Param> = words.into_iter().chain(maps).chain(addresses).map(Param::Bytes).collect();
        let launch = Launch {
            grid,
            block: [variant.threads, 1, 1],
            dynamic_shared: variant.shared_bytes,
            cluster: None,
            params: &params,
        };
        let programs = entries.iter().copied().max().unwrap_or(0);
        let makes =
            Launch { grid: [programs, 1, 1], block: [Variant::MAKER_THREADS, 1, 1], dynamic_shared: 0, ..launch };
        let mut run = |entry: &str, launch| module.entry(entry)?.run(launch, &mut memory, &space.1).map(drop);
        let outcome = variant.maker().map_or(Ok(()), |maker| run(maker, &makes));
        let outcome = outcome.and_then(|()| run(variant.entry(), &launch));
        tables.into_iter().for_each(|table| memory.free(table));
        let words = memory.read(at, bytes.len()).map_err(|e| broken("the report", &e));
        memory.free(at);
        drop(memory);
        // The locations in embedded code count lines from the kernel's first line.
        let here = |source: &mut Source| {
            let Location { file, line, column } = kernel.location(Loc { line: source.line, column: source.column });
            (source.file, source.line, source.column) = (file, line, column);
        };
        outcome.map_err(|e| Error::Emulated { kernel: loaded.name.clone(), report: e.renamed(here).to_string() })?;
        let words: Vec<u32> = words?.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        debug_assert!(words.len() >= report::RECORDS);
        gpu::read_report(kernel, &loaded.name, &variant.sites, &words)
    }
}

fn gpu_arg(arg: &DeviceArg) -> GpuArg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Emulated(memory), offset, extents, strides } => {
            GpuArg::Tensor { address: memory.at(*offset).address(), extents: extents.clone(), strides: strides.clone() }
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

fn broken(doing: &str, error: &emu::EmuError) -> Error {
    Error::Internal { doing: doing.to_owned(), message: error.to_string() }
}

fn internal(message: String) -> Error {
    Error::Internal { doing: "a launch".to_owned(), message }
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
        let space = Arc::downgrade(&dev.emulated().unwrap().1.0);
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
