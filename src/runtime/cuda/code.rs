//! Kernels on a GPU: which variant, its module, its launch.

use super::super::backend::{self, Call, DeviceArg, Given, Storage};
use super::super::device::Device;
use super::super::event::Finish;
use super::super::gpu::{self, Facts};
use super::super::kernel::{KernelRef, Loaded};
use super::{Lane, Mark, context, error, name};
use crate::error::{Error, Result};
use std::sync::Arc;
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg, Slot};
use titan_core::launch::report;
use titan_nv::Machine;
use titan_nv::runtime::{Context, Follower, Function, Once, Pinned, Stream};

/// The variants of a kernel that a device can run.
#[derive(Debug)]
pub(crate) struct Code {
    context: &'static Context,
    kernel: String,
    slots: Vec<Slot>,
    /// Where each word of the parameter block lies.
    offsets: Vec<usize>,
    /// The most specific target first, and in the order of the artifact.
    variants: Vec<Ready>,
}

/// A variant, and its module once it has been launched.
#[derive(Debug)]
struct Ready {
    variant: Variant,
    function: Once<Function>,
}

impl Code {
    pub(in super::super) fn load(device: &Device, loaded: &Loaded) -> Result<Code> {
        let context = context(device)?;
        let slots = abi::slots(&loaded.kernel.sig);
        let (offsets, _) = abi::offsets(&slots);
        let variants = variants(device, context.device().properties.capability, loaded)?;
        let variants = variants.into_iter().map(|variant| Ready { variant, function: Once::new() }).collect();
        Ok(Code { context, kernel: loaded.name.clone(), slots, offsets, variants })
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
        let facts =
            Facts::new(&call.loaded.kernel.sig, &args, call.symbols, self.context.device().properties.shared_per_block);
        let chosen = facts.choose(self.variants.iter().map(|r| &r.variant));
        let found = chosen.and_then(|v| self.variants.iter().find(|r| std::ptr::eq(&raw const r.variant, v)));
        let ready = found.ok_or_else(|| error::internal(&self.kernel, "no variant fits the arguments".to_owned()))?;
        let function = self.function(ready)?;
        let grid = self.grid(function, call.grid)?;
        for mark in after {
            #[cfg_attr(not(feature = "hip"), expect(irrefutable_let_patterns, reason = "the only kind then"))]
            let backend::Mark::Cuda(mark) = mark else {
                // A mark of another device, for which this device cannot wait.
                mark.wait();
                continue;
            };
            lane.0.follow(&mark.0).map_err(|e| self.failed(&e))?;
        }
        let report = self.report(&ready.variant)?;
        let block = abi::pack(&self.slots, &args, report.as_ref().map_or(0, Pinned::address));
        if let Err(error) = launch(function, &lane.0, grid, &block, &self.offsets) {
            report.into_iter().for_each(Pinned::recycle);
            return Err(self.failed(&error));
        }
        let mark = Mark::at_end(&lane.0, sleeps)?;
        for owner in call.args.iter().filter_map(followed) {
            if owner.follow(&mark.0).is_err() {
                mark.wait();
            }
        }
        let finish = report.map(|report| self.finish(report, ready, call));
        Ok(Given { mark: backend::Mark::Cuda(mark), finish })
    }

    /// The module's function, loaded at the first call.
    fn function<'a>(&self, ready: &'a Ready) -> Result<&'a Function> {
        ready.function.get_or_try(|| {
            let v = &ready.variant;
            Function::load(self.context, &v.payload, v.entry(), (v.threads, v.shared_bytes))
                .map_err(|e| error::load(&name(self.context), &self.kernel, e))
        })
    }

    /// The grid, sized to the device if the kernel asks for that.
    fn grid(&self, function: &Function, grid: Option<[u32; 3]>) -> Result<[u32; 3]> {
        let Some(grid) = grid else {
            return Ok([function.resident_programs().map_err(|e| self.failed(&e))?, 1, 1]);
        };
        gpu::check_grid(&self.kernel, &name(self.context), grid, self.context.device().properties.grid)?;
        Ok(grid)
    }

    /// The memory for the report of a kernel that may trap or print.
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

    fn failed(&self, error: &titan_nv::runtime::DriverError) -> Error {
        error::work(&name(self.context), &format!("kernel `{}`", self.kernel), error)
    }
}

#[expect(unsafe_code, reason = "the arguments of launches cannot be checked by types")]
fn launch(
    function: &Function,
    stream: &Stream,
    grid: [u32; 3],
    block: &[u8],
    offsets: &[usize],
) -> std::result::Result<(), titan_nv::runtime::DriverError> {
    // SAFETY: `Code` makes block and offsets of the signature's slots, from which the compiler makes the kernel's parameters.
    // Addresses are in memory of the device, in whose buffers this launch is entered until it has ended (`uses.rs`), so that
    // no conflicting access runs; extents and strides are those of tensors inside of that memory.
    unsafe { function.launch(stream, grid, block, offsets) }
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

/// Whether code for a target runs on a device. PTX of `sm_XY` runs on every later device, of `sm_XYa` on its own only. PTX
/// ISA, directive `.target`.
fn runs_on(machine: &Machine, capability: u32) -> bool {
    if machine.name.ends_with('a') { machine.capability == capability } else { machine.capability <= capability }
}

/// The variants that a device runs, the most specific target first; made now for kernels in text form.
fn variants(device: &Device, capability: u32, loaded: &Loaded) -> Result<Vec<Variant>> {
    let refuse =
        |reason: String| Error::Unsupported { kernel: loaded.name.clone(), device: device.to_string(), reason };
    let machine = |name: &str| Machine::from_name(name).ok();
    let embedded: Vec<(&Machine, &Variant)> =
        loaded.variants.iter().filter_map(|v| Some((machine(&v.target)?, v))).collect();
    let mut fitting: Vec<_> = embedded.iter().filter(|(m, _)| runs_on(m, capability)).collect();
    if !fitting.is_empty() {
        fitting.sort_by_key(|(m, _)| std::cmp::Reverse(m.capability));
        return Ok(fitting.into_iter().map(|(_, v)| (*v).clone()).collect());
    }
    let refused = loaded.refused.iter().find(|(target, _)| machine(target).is_some_and(|m| runs_on(m, capability)));
    if let Some((_, reason)) = refused {
        return Err(refuse(reason.clone()));
    }
    let mut possible: Vec<&Machine> = Machine::all().iter().filter(|m| m.supported && runs_on(m, capability)).collect();
    if !embedded.is_empty() || possible.is_empty() {
        return Err(too_old(device, capability, loaded, embedded.iter().map(|(m, _)| m.name)));
    }
    possible.sort_by_key(|m| std::cmp::Reverse(m.capability));
    let mut outcome = Err(refuse("there is no code for it".to_owned()));
    for machine in possible {
        let made = titan_core::driver::compile(&loaded.kernel, machine, Some((&loaded.kernel.sig.name, 1)));
        outcome = made.map_err(|e| refuse(e.to_string()));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn too_old(device: &Device, capability: u32, loaded: &Loaded, embedded: impl Iterator<Item = &'static str>) -> Error {
    let mut targets: Vec<&str> = embedded.collect();
    if targets.is_empty() {
        targets = Machine::all().iter().filter(|m| m.supported).map(|m| m.name).collect();
    }
    targets.dedup();
    Error::TooOld {
        kernel: loaded.name.clone(),
        device: device.to_string(),
        capability: format!("{}.{}", capability / 10, capability % 10),
        targets: targets.join(", "),
    }
}
