//! TITAN's kernels on a GPU: the choice of a variant, its code object, its launch.

use super::super::backend::{self, Call, DeviceArg, Given, Storage};
use super::super::choice::Choice;
use super::super::device::Device;
use super::super::event::Finish;
use super::super::gpu::{self, Facts, Reporting};
use super::super::kernel::{KernelRef, Loaded};
use super::super::lock;
use super::super::machines::Machines;
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex};
use titan_amd::runtime::{
    Context, DriverError, Event, Function, Geometry, LoadError, Memory, Misfit, Module, Once, Stream,
};
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;

/// The variants of a kernel that a device can run.
#[derive(Debug)]
pub(crate) struct Code {
    context: &'static Context,
    /// The name of the device, for messages.
    device: String,
    kernel: String,
    machines: Machines,
    pub(super) slots: Vec<Slot>,
    /// The variants, in the order in which launches try them.
    variants: Vec<Ready>,
}

/// A variant, and its function once it has been launched: each device loads each code object once.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) variant: Variant,
    function: Once<Function>,
    /// Its report, if it has one, and the memory of those that no launch uses.
    pub(super) reporting: Option<(Reporting, Reports)>,
}

/// The memory of reports that no launch uses.
pub(super) type Reports = Arc<Mutex<Vec<Memory>>>;

impl Code {
    pub(in super::super) fn load(device: &Device, loaded: &Loaded) -> Result<Code> {
        let context = context(device)?;
        let machines = Machines::Amd(context.device().properties.target().to_owned());
        let variants = machines.variants(device, loaded)?;
        let ready = |variant: Variant| {
            let reporting = Reporting::of(&variant).map(|reporting| (reporting, Reports::default()));
            Ready { variant, function: Once::new(), reporting }
        };
        Ok(Code {
            context,
            device: device.to_string(),
            kernel: loaded.name.clone(),
            machines,
            slots: abi::slots(&loaded.kernel.sig),
            variants: variants.into_iter().map(ready).collect(),
        })
    }

    /// Enqueues a grid at the end of a lane, after the points `after`. After an error it has not been enqueued: if a call fails after the
    /// launch, this waits instead, and the failure is reported when the launch has ended.
    pub(in super::super) fn give(
        &self,
        lane: &Lane,
        after: &[backend::Mark],
        call: &Call<'_>,
        sleeps: bool,
    ) -> Result<Given> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let (ready, function) = self.choose(call, &args, None)?;
        let grid = self.grid((ready, function), call)?;
        follow(&lane.0, after).map_err(|e| self.failed(&e))?;
        let report = ready.reporting.as_ref().map(|reporting| new_report(self.context, reporting)).transpose();
        let report = report.map_err(|e| self.failed(&e))?;
        let words = gpu::words(&self.slots, &args, report.as_ref().map_or(0, |memory| memory.address(0)));
        let geometry = Geometry { grid, block: [ready.variant.threads, 1, 1], dynamic_lds: 0 };
        if let Err(misfit) = launch(function, &lane.0, &geometry, &words) {
            ready.recycle(report);
            return Err(refused(self.context, &self.kernel, &misfit));
        }
        let mark = match Mark::at_end(&lane.0, sleeps) {
            Ok(mark) => mark,
            Err(error) => {
                // The device is lost or abandoned, and the launch may be running: its report is not freed.
                std::mem::forget(report);
                return Err(error);
            }
        };
        let finish = report.zip(ready.reporting.as_ref());
        let finish = finish.map(|(report, reporting)| finished(report, (&mark, &name(self.context)), reporting, call));
        Ok(Given { mark: backend::Mark::Hip(mark), finish })
    }

    /// The code that a launch would run, and the reasons against the code that is tried before it.
    pub(in super::super) fn choice(&self, call: &Call<'_>) -> Result<Choice> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        Facts::choice(call.loaded, &self.machines, |passed_over| {
            Ok(self.choose(call, &args, Some(passed_over))?.0.variant.target.clone())
        })
    }

    /// The first variant that can be launched with these arguments, and its function.
    pub(super) fn choose(
        &self,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<(&Ready, &Function)> {
        let shared = self.context.device().properties.lds_bytes;
        let facts =
            Facts::new(&call.loaded.kernel.sig, args, call.symbols, shared, Some("the device has no tensor maps"));
        let chosen = facts.choose(
            &self.variants,
            |r: &Ready| &r.variant,
            |ready| match gpu::grid(call, &ready.variant) {
                Ok(_) => self.loaded(ready).map(|function| Ok((ready, function))),
                Err(reason) => Ok(Err(reason)),
            },
            passed_over,
        )?;
        let all = self.variants.iter().map(|ready| &ready.variant);
        let otherwise = || self.internal("no variant fits the arguments".to_owned());
        chosen.ok_or_else(|| facts.no_variant((&self.kernel, &self.device), all, otherwise))
    }

    /// The function of a variant, loaded at the first call.
    fn loaded<'a>(&self, ready: &'a Ready) -> Result<&'a Function> {
        let (needs, limit) = (ready.variant.shared_bytes, self.context.device().properties.lds_bytes);
        if needs > limit {
            let (kernel, device) = (self.kernel.clone(), self.device.clone());
            return Err(Error::SharedMemory { kernel, device, needs, limit });
        }
        let load = || {
            let module = Module::load(self.context, &ready.variant.payload)?;
            module.function(ready.variant.entry())
        };
        let loaded: std::result::Result<&Function, LoadError> = ready.function.get_or_try(load);
        loaded.map_err(|error| error::kernel(&name(self.context), &self.kernel, &error))
    }

    /// The grid, which the device determines if the kernel requests that.
    pub(super) fn grid(&self, (ready, function): (&Ready, &Function), call: &Call<'_>) -> Result<[u32; 3]> {
        let variant = &ready.variant;
        let chosen = gpu::grid(call, variant).map_err(|reason| self.internal(reason))?;
        let Some(grid) = chosen else {
            return Ok(gpu::persistent(function.resident_programs(variant.threads), variant));
        };
        let limits = gpu::amd_grid(self.context.device().properties.grid, variant.threads);
        gpu::check_grid(&self.kernel, &name(self.context), grid, limits)?;
        Ok(grid)
    }

    fn failed(&self, error: &DriverError) -> Error {
        error::work(&name(self.context), &format!("kernel `{}`", self.kernel), error)
    }

    fn internal(&self, message: String) -> Error {
        Error::Internal { doing: self.kernel.clone(), message }
    }
}

/// A new report of a kernel that may trap or print.
pub(super) fn new_report(
    context: &'static Context,
    (reporting, spare): &(Reporting, Reports),
) -> std::result::Result<Memory, DriverError> {
    let spare = lock(spare).pop();
    let memory = match spare {
        Some(memory) => memory,
        None => Memory::new(context, 4 * reporting.words, false)?.0,
    };
    let bytes: Vec<u8> = reporting.header.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write(0, &bytes).map(|()| memory)
}

/// Reads the report when the launch has ended.
pub(super) fn finished(
    report: Memory,
    (mark, device): (&Mark, &str),
    (reporting, spare): &(Reporting, Reports),
    call: &Call<'_>,
) -> Finish {
    let (kernel, loaded): (&'static KernelRef, &'static Loaded) = (call.kernel, call.loaded);
    let (sites, spare, device) = (Arc::clone(&reporting.sites), Arc::clone(spare), device.to_owned());
    let mut report = Report { memory: Some(report), until: Arc::clone(&mark.0) };
    Box::new(move |counts| {
        if !counts {
            return Ok(());
        }
        let doing = format!("reading the report of kernel `{}`", loaded.name);
        let words = report.words().map_err(|e| error::driver(&device, &e, &doing))?;
        lock(&spare).extend(report.memory.take());
        gpu::read_report(kernel, &loaded.name, &sites, &words)
    })
}

/// The error of a launch that does not fit its kernel, or that the runtime refuses.
pub(super) fn refused(context: &Context, kernel: &str, misfit: &Misfit) -> Error {
    match misfit {
        Misfit::Driver(error) => error::work(&name(context), &format!("kernel `{kernel}`"), error),
        other @ (Misfit::Launch(_) | Misfit::Lds { .. } | _) => error::misfit(&name(context), kernel, other),
    }
}

/// The memory of the report of a launch, which is freed after it whatever happens to the launch's end.
struct Report {
    memory: Option<Memory>,
    until: Arc<Event>,
}

impl Report {
    /// The words that the kernel has written.
    fn words(&self) -> std::result::Result<Vec<u32>, DriverError> {
        let read = |words: usize| {
            let mut bytes = vec![0; 4 * words];
            self.memory.as_ref().map_or(Ok(()), |memory| memory.read(0, &mut bytes))?;
            Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect::<Vec<u32>>())
        };
        read(gpu::report_words(&read(report::RECORDS)?))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.used_until(Arc::clone(&self.until));
        }
    }
}

impl Ready {
    /// Takes the memory of a report back that no launch uses.
    fn recycle(&self, report: Option<Memory>) {
        if let Some((_, spare)) = &self.reporting {
            lock(spare).extend(report);
        }
    }
}

#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn launch(
    function: &Function,
    stream: &Stream,
    geometry: &Geometry,
    words: &[Vec<u8>],
) -> std::result::Result<(), Misfit> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    // SAFETY: `Code` makes the words of the signature's slots, from which the compiler makes the parameters of the kernel. Addresses are in memory
    // of the device, in whose buffers this launch is entered until it has ended (`uses.rs`), so that no conflicting access runs; extents and
    // strides are those of tensors inside of that memory. The report has as much room as its header says, and lives until the launch has ended.
    unsafe { function.launch(stream, geometry, &words) }
}

pub(super) fn gpu_arg(arg: &DeviceArg) -> GpuArg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Hip(memory), offset, extents, strides } => {
            GpuArg::Tensor { address: memory.0.address(*offset), extents: extents.to_vec(), strides: strides.to_vec() }
        }
        // The devices of arguments have been compared.
        #[cfg(any(feature = "cpu", feature = "cuda", feature = "emulator"))]
        DeviceArg::Tensor { .. } => GpuArg::Absent,
        DeviceArg::Absent => GpuArg::Absent,
        DeviceArg::Scalar(value) => GpuArg::Scalar(*value),
    }
}
