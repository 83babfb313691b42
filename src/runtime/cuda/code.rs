//! Kernels on a GPU: the choice of a variant, its module, its launch.

use super::super::backend::{self, Call, DeviceArg, Given, Storage};
use super::super::choice::Choice;
use super::super::device::Device;
use super::super::event::Finish;
use super::super::gpu::{self, Facts};
use super::super::kernel::{KernelRef, Loaded};
use super::super::machines::Machines;
use super::{Lane, Mark, context, error, follow, name};
use crate::error::{Error, Result};
use std::sync::Arc;
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;
use titan_nv::runtime::{
    Context, DriverError, EncodedMap, Follower, Function, LoadError, Memory, Once, Params, Pinned, Stream, Waiting,
};

/// The variants of a kernel that a device can run.
#[derive(Debug)]
pub(crate) struct Code {
    context: &'static Context,
    /// The name of the device, for messages.
    device: String,
    kernel: String,
    slots: Vec<Slot>,
    /// The offset of each word of the parameter block.
    offsets: Vec<usize>,
    /// The variants, in the order in which launches try them.
    variants: Vec<Ready>,
}

/// A variant that can be launched: with its functions, and with the tensor maps of its arguments.
type Chosen<'a> = (&'a Ready, &'a Functions, Vec<EncodedMap>);

/// A variant, and its module once it has been launched.
#[derive(Debug)]
struct Ready {
    variant: Variant,
    functions: Once<Functions>,
}

/// The functions of a variant.
#[derive(Debug)]
struct Functions {
    kernel: Function,
    /// The one that makes tables of tensor maps, if there are any; it is launched first.
    maker: Option<Function>,
}

/// The tables of tensor maps of one launch.
#[derive(Debug)]
struct Tables {
    memory: Memory,
    addresses: Vec<u64>,
    /// The number of programs that make them: the entries of the longest one.
    programs: u32,
}

impl Code {
    pub(in super::super) fn load(device: &Device, loaded: &Loaded) -> Result<Code> {
        let context = context(device)?;
        let slots = abi::slots(&loaded.kernel.sig);
        let (offsets, _) = abi::offsets(&slots);
        let variants = machines(context).variants(device, loaded)?;
        let variants = variants.into_iter().map(|variant| Ready { variant, functions: Once::new() }).collect();
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
        let report = self.report(&ready.variant)?;
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
        for owner in call.args.iter().filter_map(followed) {
            if owner.follow(&mark.0).is_err() {
                mark.wait();
            }
        }
        let finish = report.map(|report| self.finish(report, ready, call));
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
    fn choose(
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
    fn grid(&self, (ready, function): (&Ready, &Function), call: &Call<'_>) -> Result<[u32; 3]> {
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
        let bytes = entries.iter().map(|entries| gpu::table_bytes(*entries)).sum();
        let (memory, ready) = Memory::new(self.context, bytes, false)?;
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
        let tables = Tables { memory, addresses, programs: entries.iter().copied().max().unwrap_or(0) };
        stream.follow(&ready)?;
        launch(maker, stream, [tables.programs, 1, 1], (block, maps, &tables.addresses))?;
        Ok(tables)
    }

    /// Allocates the report of a kernel that may trap or print.
    fn report(&self, variant: &Variant) -> Result<Option<Pinned>> {
        if variant.sites.is_empty() {
            return Ok(None);
        }
        let (header, words) = gpu::report_header(variant);
        let mut report = Pinned::new(self.context, words).map_err(|e| self.failed(&e))?;
        report.write(&header);
        Ok(Some(report))
    }

    /// Reads the report when the launch has ended.
    fn finish(&self, report: Pinned, ready: &Ready, call: &Call<'_>) -> Finish {
        let (kernel, loaded): (&'static KernelRef, &'static Loaded) = (call.kernel, call.loaded);
        let sites = Arc::new(ready.variant.sites.clone());
        Box::new(move |counts| {
            let words = report.read(gpu::report_words(&report.read(report::RECORDS)));
            report.recycle();
            if counts { gpu::read_report(kernel, &loaded.name, &sites, &words) } else { Ok(()) }
        })
    }

    fn failed(&self, error: &DriverError) -> Error {
        error::work(&name(self.context), &format!("kernel `{}`", self.kernel), error)
    }
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

/// The stream of the owner of foreign memory, which waits for the launch.
fn followed(arg: &DeviceArg) -> Option<&Follower> {
    match arg {
        DeviceArg::Tensor { storage: Storage::Cuda(memory), .. } => memory.0.follower(),
        DeviceArg::Tensor { .. } | DeviceArg::Absent | DeviceArg::Scalar(_) => None,
    }
}

fn gpu_arg(arg: &DeviceArg) -> GpuArg {
    match arg {
        DeviceArg::Tensor { storage: Storage::Cuda(memory), offset, extents, strides } => {
            GpuArg::Tensor { address: memory.0.address(*offset), extents: extents.clone(), strides: strides.clone() }
        }
        // The devices of arguments have been compared.
        #[cfg(any(feature = "cpu", feature = "hip", feature = "emulator"))]
        DeviceArg::Tensor { .. } => GpuArg::Absent,
        DeviceArg::Absent => GpuArg::Absent,
        DeviceArg::Scalar(value) => GpuArg::Scalar(*value),
    }
}
