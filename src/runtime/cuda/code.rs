//! Kernels on a GPU: the choice of a variant, its module, its launch.

use super::super::backend::{self, Call, DeviceArg, Given, Storage};
use super::super::choice::Choice;
use super::super::device::Device;
use super::super::event::Finish;
use super::super::gpu::{self, Facts, Reporting};
use super::super::kernel::{KernelRef, Loaded};
use super::super::machines::Machines;
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use std::sync::Arc;
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;
use titan_nv::runtime::{
    Context, DriverError, EncodedMap, Event, Function, LoadError, Memory, Once, Params, Pinned, Stream, Waiting,
};

/// The variants of a kernel that a device can run.
#[derive(Debug)]
pub(crate) struct Code {
    pub(super) context: &'static Context,
    /// The name of the device, for messages.
    device: String,
    kernel: String,
    pub(super) slots: Vec<Slot>,
    /// The offset of each word of the parameter block.
    pub(super) offsets: Vec<usize>,
    /// The variants, in the order in which launches try them.
    variants: Vec<Ready>,
}

/// A variant that can be launched: with its functions, and with the tensor maps of its arguments.
pub(super) type Chosen<'a> = (&'a Ready, &'a Functions, Vec<EncodedMap>);

/// A variant, and its module once it has been launched.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) variant: Variant,
    /// Its report, if it has one.
    pub(super) reporting: Option<Reporting>,
    functions: Once<Functions>,
}

/// The functions of a variant.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) kernel: Function,
    /// The one that makes tables of tensor maps, if there are any; it is launched first.
    pub(super) maker: Option<Function>,
}

/// The tables of tensor maps of one launch.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) memory: Memory,
    pub(super) addresses: Vec<u64>,
    /// The number of programs that make them: the entries of the longest one.
    pub(super) programs: u32,
}

impl Tables {
    /// Tables of so many entries, and the point after which they may be used.
    pub(super) fn new(
        context: &'static Context,
        entries: &[u32],
    ) -> std::result::Result<(Tables, Arc<Event>), DriverError> {
        let bytes = entries.iter().map(|entries| gpu::table_bytes(*entries)).sum();
        let (memory, ready) = Memory::new(context, bytes, false)?;
        let ready = Arc::new(ready);
        // It is freed after its allocation, also if it is not used.
        memory.used_until(Arc::clone(&ready));
        let mut end = 0;
        let mut after = |entries: &u32| {
            let address = memory.address(end);
            end += gpu::table_bytes(*entries);
            address
        };
        let addresses = entries.iter().map(&mut after).collect();
        Ok((Tables { memory, addresses, programs: entries.iter().copied().max().unwrap_or(0) }, ready))
    }
}

impl Code {
    pub(in super::super) fn load(device: &Device, loaded: &Loaded) -> Result<Code> {
        let context = context(device)?;
        let slots = abi::slots(&loaded.kernel.sig);
        let (offsets, _) = abi::offsets(&slots);
        let variants = machines(context).variants(device, loaded)?;
        let ready = |variant: Variant| Ready { reporting: Reporting::of(&variant), variant, functions: Once::new() };
        let variants = variants.into_iter().map(ready).collect();
        Ok(Code { context, device: device.to_string(), kernel: loaded.name.clone(), slots, offsets, variants })
    }

    /// Enqueues a grid at the end of a lane, after the points `after`. After an error it has not been enqueued: if a call fails after
    /// the launch, this waits instead, and the failure is reported when the launch has ended.
    pub(in super::super) fn give(
        &self,
        lane: &Lane,
        after: &[backend::Mark],
        call: &Call<'_>,
        sleeps: bool,
    ) -> Result<Given> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        let (ready, Functions { kernel, maker }, maps) = self.choose(call, &args, None)?;
        let grid = self.grid((ready, kernel), call)?;
        follow(&lane.0, after).map_err(|e| self.failed(&e))?;
        let report = ready.reporting.as_ref().map(|reporting| new_report(self.context, reporting)).transpose();
        let report = report.map_err(|e| self.failed(&e))?;
        let block = abi::pack(&self.slots, &args, report.as_ref().map_or(0, Pinned::address));
        let block = (&block[..], &self.offsets[..]);
        let launched = maker.as_ref().map(|maker| (maker, gpu::tables(&ready.variant, &args)));
        let launched =
            launched.map(|(maker, entries)| self.tables(&lane.0, maker, &entries, (block, &maps))).transpose();
        let launched = launched.and_then(|tables| {
            let addresses = tables.as_ref().map_or(&[][..], |tables| &tables.addresses);
            let launched = launch(kernel, &lane.0, grid, (block, &maps, addresses));
            if launched.is_err() && tables.is_some() {
                wait(&lane.0);
            }
            launched.map(|()| tables)
        });
        let tables = match launched {
            Ok(tables) => tables,
            Err(error) => {
                report.into_iter().for_each(Pinned::recycle);
                return Err(self.failed(&error));
            }
        };
        let mark = Mark::at_end(&lane.0, sleeps)?;
        if let Some(Tables { memory, .. }) = tables {
            memory.used_until(Arc::clone(&mark.0));
        }
        call.args.iter().filter_map(memory_of).for_each(|memory| memory.tell_owner(&mark));
        let finish = report.zip(ready.reporting.as_ref()).map(|(report, reporting)| finished(report, reporting, call));
        Ok(Given { mark: backend::Mark::Cuda(mark), finish })
    }

    /// The code that a launch would run, and the reasons against the code that is tried before it.
    pub(in super::super) fn choice(&self, call: &Call<'_>) -> Result<Choice> {
        let args: Vec<GpuArg> = call.args.iter().map(gpu_arg).collect();
        Facts::choice(call.loaded, &machines(self.context), |passed_over| {
            Ok(self.choose(call, &args, Some(passed_over))?.0.variant.target.clone())
        })
    }

    /// The first variant that can be launched with these arguments.
    pub(super) fn choose(
        &self,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<Chosen<'_>> {
        let no_maps = (!self.context.has_tensor_maps()).then_some("the driver is older than tensor maps");
        let shared = self.context.device().properties.shared_per_block;
        let facts = Facts::new(&call.loaded.kernel.sig, args, call.symbols, shared, no_maps);
        let ready = |ready| self.ready(ready, &facts, call);
        let chosen = facts.choose(&self.variants, |r: &Ready| &r.variant, ready, passed_over)?;
        let all = self.variants.iter().map(|ready| &ready.variant);
        let otherwise = || error::internal(&self.kernel, "no variant fits the arguments".to_owned());
        chosen.ok_or_else(|| facts.no_variant((&call.loaded.name, &self.device), all, otherwise))
    }

    /// A variant with its function, loaded at the first call, and with its maps; or the reason why another variant must be tried.
    fn ready<'a>(
        &self,
        ready: &'a Ready,
        facts: &Facts<'_>,
        call: &Call<'_>,
    ) -> Result<std::result::Result<Chosen<'a>, String>> {
        let v = &ready.variant;
        if let Err(reason) = gpu::grid(call, v) {
            return Ok(Err(reason));
        }
        let mut maps = Vec::new();
        for map in v.maps() {
            let encoded = facts.map(map).and_then(|map| self.context.encode(&map).map_err(|e| e.to_string()));
            match encoded {
                Ok(map) => maps.push(map),
                Err(why) => return Ok(Err(format!("`{}` has no tensor map: {why}", facts.name(map.param)))),
            }
        }
        let load = || {
            let maker = v.maker().map(|maker| (maker, Variant::MAKER_THREADS));
            let entry = (v.entry(), v.threads, v.shared_bytes);
            let (kernel, maker) = Function::load(self.context, &v.payload, entry, maker)?;
            Ok::<_, LoadError>(Functions { kernel, maker })
        };
        match ready.functions.get_or_try(load) {
            Ok(functions) => Ok(Ok((ready, functions, maps))),
            // The error of the last variant is that of the launch.
            Err(error) if error.is_misfit() && !self.is_last(ready) => Ok(Err(error.to_string())),
            Err(error) => Err(error::load(&name(self.context), &self.kernel, error)),
        }
    }

    fn is_last(&self, ready: &Ready) -> bool {
        self.variants.last().is_some_and(|last| std::ptr::eq(last, ready))
    }

    /// The grid, which the device determines if the kernel requests that.
    pub(super) fn grid(&self, (ready, function): (&Ready, &Function), call: &Call<'_>) -> Result<[u32; 3]> {
        let chosen = gpu::grid(call, &ready.variant).map_err(|reason| error::internal(&self.kernel, reason))?;
        let Some(grid) = chosen else {
            let programs = function.resident_programs().map_err(|e| self.failed(&e))?;
            return Ok(gpu::persistent(programs, &ready.variant));
        };
        gpu::check_grid(&self.kernel, &name(self.context), grid, self.context.device().properties.grid)?;
        Ok(grid)
    }

    /// Allocates tables of so many entries, and launches the kernel that makes them, with the parameters of the one that uses them.
    fn tables(
        &self,
        stream: &Stream,
        maker: &Function,
        entries: &[u32],
        (block, maps): (Block<'_>, &[EncodedMap]),
    ) -> std::result::Result<Tables, DriverError> {
        let (tables, ready) = Tables::new(self.context, entries)?;
        stream.follow(&ready)?;
        launch(maker, stream, [tables.programs, 1, 1], (block, maps, &tables.addresses))?;
        Ok(tables)
    }

    fn failed(&self, error: &DriverError) -> Error {
        error::work(&name(self.context), &format!("kernel `{}`", self.kernel), error)
    }
}

/// A new report of a kernel that may trap or print.
pub(super) fn new_report(context: &'static Context, reporting: &Reporting) -> std::result::Result<Pinned, DriverError> {
    let mut report = Pinned::new(context, reporting.words)?;
    report.write(&reporting.header);
    Ok(report)
}

/// Reads the report when the launch has ended.
pub(super) fn finished(report: Pinned, reporting: &Reporting, call: &Call<'_>) -> Finish {
    let (kernel, loaded): (&'static KernelRef, &'static Loaded) = (call.kernel, call.loaded);
    let sites = Arc::clone(&reporting.sites);
    Box::new(move |counts| {
        let words = report.read(gpu::report_words(&report.read(report::RECORDS)));
        report.recycle();
        if counts { gpu::read_report(kernel, &loaded.name, &sites, &words) } else { Ok(()) }
    })
}

/// The code that a device runs.
fn machines(context: &Context) -> Machines {
    Machines::Nvidia(context.device().properties.capability)
}

/// Waits for the work of a stream, which is a kernel of a launch that failed: the arguments of the launch are not used when it has returned.
fn wait(stream: &Stream) {
    // If there is no such point, or waiting for it fails, the context has ended, or is abandoned: nothing in it is used any more.
    if let Ok(event) = stream.mark(Waiting::Spins) {
        drop(event.wait());
    }
}

/// The bytes of a parameter block, and the offset of each of its words.
type Block<'a> = (&'a [u8], &'a [usize]);

#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn launch(
    function: &Function,
    stream: &Stream,
    grid: [u32; 3],
    ((block, offsets), maps, tables): (Block<'_>, &[EncodedMap], &[u64]),
) -> std::result::Result<(), DriverError> {
    // SAFETY: `Code` makes block and offsets of the signature's slots, and maps and tables of the variant's, from which the compiler makes the
    // parameters of both kernels. The address in a map is that of the argument whose map it is. A table has as many entries as the maker has
    // programs that write one, and lives until the launch that reads them has ended.
    // Addresses are in memory of the device, in whose buffers this launch is entered until it has ended (`uses.rs`), so that
    // no conflicting access runs; extents and strides are those of tensors inside of that memory.
    unsafe { function.launch(stream, grid, Params { block, offsets, maps, tables }) }
}

/// The memory of a tensor.
fn memory_of(arg: &DeviceArg) -> Option<&super::Memory> {
    match arg {
        DeviceArg::Tensor { storage, .. } => storage.as_cuda(),
        DeviceArg::Absent | DeviceArg::Scalar(_) => None,
    }
}

pub(super) fn gpu_arg(arg: &DeviceArg) -> GpuArg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Cuda(memory), offset, extents, strides } => {
            GpuArg::Tensor { address: memory.0.address(*offset), extents: extents.to_vec(), strides: strides.to_vec() }
        }
        // The devices of arguments have been compared.
        #[cfg(any(feature = "cpu", feature = "hip", feature = "emulator"))]
        DeviceArg::Tensor { .. } => GpuArg::Absent,
        DeviceArg::Absent => GpuArg::Absent,
        DeviceArg::Scalar(value) => GpuArg::Scalar(*value),
    }
}
