//! Code for all GPUs on the host: the choice of a variant, the parameter block, the report.

use super::backend::Call;
use super::choice::Choice;
use super::kernel::{KernelRef, Loaded};
use super::machines::Machines;
use super::print::print_line;
use crate::error::{Error, Result};
use titan_core::artifact::{GridRule, TensorFact, TensorFacts, Variant};
#[cfg(feature = "cuda")]
use titan_core::ir::HostNames;
use titan_core::ir::{Const, HostEnv, ParamKind, Signature, Symbol};
#[cfg(any(feature = "hip", feature = "emulator"))]
use titan_core::launch::abi::{self, Slot};
use titan_core::launch::abi::{GpuArg, MapParam};
use titan_core::launch::report::{self, Site, SiteKind};
#[cfg(any(feature = "cuda", feature = "emulator"))]
use titan_nv::tma::{TensorMap, Unfit};

/// The size of the records that a launch may print, in words.
const PRINT_ROOM: u32 = 1 << 20;

/// The properties of a launch on which assumptions of variants depend.
pub(super) struct Facts<'a> {
    sig: &'a Signature,
    args: &'a [GpuArg],
    symbols: &'a [Option<i64>],
    /// Extents of each tensor.
    extents: Vec<Vec<i64>>,
    /// The largest shared memory of a program on the device, in bytes.
    shared_memory: u32,
    /// The reason why there are no tensor maps, if there are none.
    no_maps: Option<&'static str>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(
        sig: &'a Signature,
        args: &'a [GpuArg],
        symbols: &'a [Option<i64>],
        shared_memory: u32,
        no_maps: Option<&'static str>,
    ) -> Self {
        let wide = |arg: &GpuArg| match arg {
            GpuArg::Tensor { extents, .. } => extents.iter().map(|n| i64::from(*n)).collect(),
            GpuArg::Absent | GpuArg::Scalar(_) => Vec::new(),
        };
        Facts { sig, args, symbols, extents: args.iter().map(wide).collect(), shared_memory, no_maps }
    }

    /// The result of `ready` for the first variant whose assumptions hold and for which it returns no reason against. The reasons against
    /// the ones before it are added to `passed_over`.
    pub(super) fn choose<'v, V, T>(
        &self,
        variants: &'v [V],
        variant: impl Fn(&V) -> &Variant,
        ready: impl Fn(&'v V) -> Result<std::result::Result<T, String>>,
        mut passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<Option<T>> {
        for candidate in variants {
            let found = variant(candidate);
            let broken = found.assumptions.iter().find(|a| !a.holds(self));
            let reason = match broken {
                None => match ready(candidate)? {
                    Ok(made) => return Ok(Some(made)),
                    Err(reason) => Some(reason),
                },
                // Launches do not report the reasons, so they are only formatted if `passed_over` is given.
                Some(broken) => passed_over.as_ref().and_then(|_| broken.violation(self, self.sig)),
            };
            if let (Some(passed_over), Some(reason)) = (&mut passed_over, reason) {
                passed_over.push((found.target.clone(), reason));
            }
        }
        Ok(None)
    }

    /// The reason why no variant of a kernel runs on the device, if one does not only for want of shared memory.
    fn short_of_memory<'v>(&self, variants: impl Iterator<Item = &'v Variant>) -> Option<String> {
        let wants = |v: &Variant| {
            let broken: Vec<_> = v.assumptions.iter().filter(|a| !a.holds(self)).collect();
            (!broken.is_empty() && broken.iter().all(|a| a.is_of_device())).then_some(v.shared_bytes)
        };
        let bytes = variants.filter_map(wants).min()?;
        let allowed = self.shared_memory;
        Some(format!("a program needs {bytes} bytes of shared memory, and the device allows {allowed}"))
    }

    /// The error of a launch for which a kernel has no variant on a device; `otherwise`, unless one is left out only for want of shared memory.
    pub(super) fn no_variant<'v>(
        &self,
        (kernel, device): (&str, &str),
        all: impl Iterator<Item = &'v Variant>,
        otherwise: impl FnOnce() -> Error,
    ) -> Error {
        match self.short_of_memory(all) {
            Some(reason) => Error::Unsupported { kernel: kernel.to_owned(), device: device.to_owned(), reason },
            None => otherwise(),
        }
    }

    /// The choice of a launch, from the targets without code and the result of [`choose`](Self::choose).
    pub(super) fn choice(
        loaded: &Loaded,
        machines: &Machines,
        choose: impl FnOnce(&mut Vec<(String, String)>) -> Result<String>,
    ) -> Result<Choice> {
        let order = machines.targets();
        let at = |target: &str| order.iter().position(|name| *name == target);
        let mut tried = Vec::new();
        let target = choose(&mut tried)?;
        let is_better = |other: &str| at(other).is_some_and(|i| at(&target).is_none_or(|chosen| i < chosen));
        let mut passed_over: Vec<_> = loaded.refused.iter().filter(|(other, _)| is_better(other)).cloned().collect();
        passed_over.extend(tried);
        Ok(Choice { target, passed_over })
    }

    /// The user's name of a parameter.
    #[cfg(feature = "cuda")]
    pub(super) fn name(&self, param: u32) -> String {
        self.sig.param(param as usize)
    }

    /// The map of a tensor argument.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(super) fn map(&self, map: &MapParam) -> std::result::Result<TensorMap, String> {
        if let Some(reason) = self.no_maps {
            return Err(reason.to_owned());
        }
        if let Some(entries) = map.entries(self.args).filter(|n| *n > MapParam::MOST_ENTRIES) {
            let most = MapParam::MOST_ENTRIES;
            return Err(format!("parts of it would have {entries} maps, and {most} are possible"));
        }
        let argument = self.args.get(map.param as usize).unwrap_or(&GpuArg::Absent);
        TensorMap::of_argument(map, argument).map_err(|why: Unfit| why.of_axes(map.extents.len()))
    }
}

impl HostEnv for Facts<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.symbols.get(symbol.index()).copied().flatten().unwrap_or(0)
    }

    fn scalar(&self, param: usize) -> i64 {
        match self.args.get(param) {
            Some(GpuArg::Scalar(Const::Int(_, value))) => *value,
            Some(GpuArg::Scalar(Const::Float(..)) | GpuArg::Tensor { .. } | GpuArg::Absent) | None => 0,
        }
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.extents.get(param).and_then(|e| e.get(axis)).copied().unwrap_or(0)
    }
}

impl TensorFacts for Facts<'_> {
    fn params(&self) -> u32 {
        u32::try_from(self.args.len()).unwrap_or(0)
    }

    fn shared_memory(&self) -> u32 {
        self.shared_memory
    }

    fn tensor(&self, param: u32) -> Option<TensorFact<'_>> {
        let index = usize::try_from(param).ok()?;
        let GpuArg::Tensor { address, strides, .. } = self.args.get(index)? else { return None };
        let ParamKind::Tensor { elem, .. } = self.sig.params.get(index)?.kind else { return None };
        Some(TensorFact { address: *address, elem_bits: elem.bits(), extents: &self.extents[index], strides })
    }

    #[cfg(any(feature = "cuda", feature = "emulator"))]
    fn tensor_map(&self, map: &MapParam) -> std::result::Result<(), String> {
        self.map(map).map(drop)
    }

    #[cfg(not(any(feature = "cuda", feature = "emulator")))]
    fn tensor_map(&self, _: &MapParam) -> std::result::Result<(), String> {
        Err(self.no_maps.unwrap_or("this program was built without tensor maps").to_owned())
    }
}

/// The number of entries of each table of tensor maps that a variant's launch makes, in the order in which the code has their addresses as
/// parameters.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(super) fn tables(variant: &Variant, args: &[GpuArg]) -> Vec<u32> {
    variant.maps().filter_map(|map| map.entries(args)).collect()
}

/// The size of a table in bytes.
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub(super) fn table_bytes(entries: u32) -> usize {
    entries as usize * MapParam::BYTES as usize
}

/// The grid with which a variant is launched, `None` if the device determines it; or the reason why it cannot be launched so.
pub(super) fn grid(call: &Call<'_>, variant: &Variant) -> std::result::Result<Option<[u32; 3]>, String> {
    let programs = variant.cluster.max(1);
    let Some(grid) = call.grid else { return Ok(None) };
    if call.given && variant.grid != GridRule::Declared {
        return Err("it determines its grid, but the launch gives one".to_owned());
    }
    match variant.grid {
        GridRule::Persistent => Ok(None),
        // Fewer than 2³¹, which such a variant assumes.
        GridRule::Flat => Ok(Some([grid.into_iter().fold(1, u32::saturating_mul), 1, 1])),
        GridRule::Declared if !grid[0].is_multiple_of(programs) => {
            Err(format!("its clusters have {programs} programs, and the grid has {} along axis 0", grid[0]))
        }
        GridRule::Declared => Ok(Some(grid)),
    }
}

/// A persistent grid of about this many programs, in whole clusters.
pub(super) fn persistent(programs: u32, variant: &Variant) -> [u32; 3] {
    let cluster = variant.cluster.max(1);
    [(programs / cluster).max(1).saturating_mul(cluster), 1, 1]
}

/// Rejects a grid that exceeds the limits of the device.
pub(super) fn check_grid(kernel: &str, device: &str, grid: [u32; 3], limits: [u32; 3]) -> Result<()> {
    let beyond = grid.into_iter().zip(limits).enumerate().find(|(_, (found, most))| found > most);
    let Some((axis, (found, most))) = beyond else { return Ok(()) };
    let reason = format!(
        "its grid has {found} programs along axis {axis}, but the device allows {most}\n  \
         help: make the longest axis of the grid axis 0, or fold several axes into it and separate them with `unflatten`"
    );
    Err(Error::Unsupported { kernel: kernel.to_owned(), device: device.to_owned(), reason })
}

/// The greatest extents of a grid of so many threads a program on AMD's GPUs, on a device that allows these: the runtime counts threads, along
/// each axis with 32 bits (AMD's HIP documentation, `hipModuleLaunchKernel`).
#[cfg(feature = "hip")]
pub(super) fn amd_grid(limits: [u32; 3], threads: u32) -> [u32; 3] {
    let [x, y, z] = limits;
    [x.min(u32::MAX / threads.max(1)), y, z]
}

/// The parameter block of a launch, split into its words.
#[cfg(any(feature = "hip", feature = "emulator"))]
pub(super) fn words(slots: &[Slot], args: &[GpuArg], report: u64) -> Vec<Vec<u8>> {
    let block = abi::pack(slots, args, report);
    let (at, _) = abi::offsets(slots);
    slots.iter().zip(at).map(|(slot, at)| block[at..at + slot.bytes()].to_vec()).collect()
}

/// The size of the records that a variant's launch may print, in words.
fn print_room(variant: &Variant) -> u32 {
    if variant.sites.iter().any(|s| matches!(s.kind, SiteKind::Print(..))) { PRINT_ROOM } else { 0 }
}

/// The words of a new report: with room for records if the variant prints.
#[cfg(feature = "emulator")]
pub(super) fn new_report(variant: &Variant) -> Vec<u32> {
    let (header, words) = report_header(variant);
    let mut report = header.to_vec();
    report.resize(words, 0);
    report
}

/// The words at the start of a new report, and its total number of words; the others may have any value.
pub(super) fn report_header(variant: &Variant) -> ([u32; report::RECORDS], usize) {
    let room = print_room(variant);
    let mut header = [0; report::RECORDS];
    header[report::ROOM] = room;
    (header, report::RECORDS + room as usize)
}

/// The report of a variant's launches, for a kernel that may trap or print.
#[cfg(any(feature = "cuda", feature = "hip"))]
#[derive(Clone, Debug)]
pub(super) struct Reporting {
    /// The words at the start of a new report.
    pub(super) header: [u32; report::RECORDS],
    /// Its number of words.
    pub(super) words: usize,
    /// What its records are about.
    pub(super) sites: std::sync::Arc<Vec<Site>>,
}

#[cfg(any(feature = "cuda", feature = "hip"))]
impl Reporting {
    /// That of a variant, if it has one.
    pub(super) fn of(variant: &Variant) -> Option<Reporting> {
        let (header, words) = report_header(variant);
        let sites = std::sync::Arc::new(variant.sites.clone());
        (!sites.is_empty()).then_some(Reporting { header, words, sites })
    }
}

/// The number of used words in a report whose first words are `header`.
#[cfg(any(feature = "cuda", feature = "hip"))]
pub(super) fn report_words(header: &[u32]) -> usize {
    let word = |at: usize| header.get(at).copied().unwrap_or(0);
    report::RECORDS + word(report::USED).min(word(report::ROOM)) as usize
}

/// Prints the output of a kernel, and returns the error of its trap.
pub(super) fn read_report(kernel: &KernelRef, name: &str, sites: &[Site], words: &[u32]) -> Result<()> {
    let told = report::read(words, sites);
    for line in told.lines {
        print_line(&line);
    }
    if told.lost > 0 {
        print_line(&format!("(kernel `{name}` printed more than the buffer holds: {} words are lost)", told.lost));
    }
    match told.trap {
        None => Ok(()),
        Some((loc, message, program)) => {
            Err(Error::Trap { kernel: name.to_owned(), message, location: kernel.location(loc), program })
        }
    }
}
