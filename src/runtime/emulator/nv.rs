//! NVIDIA's machines: PTX, decoded.

use super::super::backend::Call;
use super::super::gpu::{self, Facts};
use super::{Code, PERSISTENT, broken, internal, report_words};
use crate::error::{Error, Location, Result};
use titan_core::artifact::Variant;
use titan_core::ir::Loc;
use titan_core::launch::abi::GpuArg;
use titan_nv::emu::{Launch, Memory, Module, Options, Param, Source};
use titan_nv::{Feature, Machine};

/// The greatest extents of a grid (CUDA C++ Programming Guide, "Compute Capabilities"; the same for every NVIDIA GPU).
const GRID: [u32; 3] = [i32::MAX.cast_unsigned(), 65_535, 65_535];

/// The variants of a kernel, in the order in which launches try them.
pub(super) struct Variants {
    machine: &'static Machine,
    all: Vec<(Variant, Module)>,
}

/// A variant that can be launched, and the bytes of its tensor maps.
type Chosen<'a> = (&'a (Variant, Module), Vec<Vec<u8>>);

impl std::fmt::Debug for Variants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.iter().map(|(v, _)| &v.config)).finish()
    }
}

impl Variants {
    pub(super) fn load(variants: Vec<Variant>, machine: &'static Machine) -> Result<Variants> {
        let parse = |v: Variant| {
            let text = String::from_utf8_lossy(&v.payload).into_owned();
            let module = Module::parse(&text).map_err(|e| broken("reading PTX", e))?;
            Ok((v, module))
        };
        Ok(Variants { machine, all: variants.into_iter().map(parse).collect::<Result<_>>()? })
    }

    /// The target of the code that a launch would run.
    pub(super) fn target(
        &self,
        code: &Code,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: &mut Vec<(String, String)>,
    ) -> Result<String> {
        let ((variant, _), _) = self.choose(code, call, args, Some(passed_over))?;
        Ok(variant.target.clone())
    }

    /// The first variant that can be launched with these arguments.
    fn choose(
        &self,
        code: &Code,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<Chosen<'_>> {
        let Machine { shared_per_block, .. } = *self.machine;
        let no_maps = (!self.machine.has(Feature::Tma)).then_some("the device has no tensor maps");
        let facts = Facts::new(&call.loaded.kernel.sig, args, call.symbols, shared_per_block, no_maps);
        let bytes = |map| facts.map(map).map(|map| map.to_bytes().to_vec());
        let chosen = facts.choose(
            &self.all,
            |(variant, _)| variant,
            |ready| {
                let maps = ready.0.maps().map(bytes).collect::<std::result::Result<_, _>>();
                Ok(gpu::grid(call, &ready.0).and(maps).map(|maps| (ready, maps)))
            },
            passed_over,
        )?;
        chosen.ok_or_else(|| code.no_variant(call, &facts, self.all.iter().map(|(variant, _)| variant)))
    }

    /// Runs a grid; the variant, and the words of its report.
    pub(super) fn run(
        &self,
        code: &Code,
        memory: &mut Memory,
        (call, args): (&Call<'_>, &[GpuArg]),
        options: &Options,
    ) -> Result<(&Variant, Vec<u32>)> {
        let (kernel, name) = (call.kernel, &call.loaded.name);
        let ((variant, module), maps) = self.choose(code, call, args, None)?;
        let grid = gpu::grid(call, variant).map_err(internal)?.unwrap_or_else(|| gpu::persistent(PERSISTENT, variant));
        gpu::check_grid(name, &code.device, grid, GRID)?;
        let bytes: Vec<u8> = gpu::new_report(variant).iter().flat_map(|w| w.to_le_bytes()).collect();
        let at = memory.upload("the report", &bytes);
        let words = gpu::words(&code.slots, args, at.address());
        let entries = gpu::tables(variant, args);
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
        let mut run = |entry: &str, launch| module.entry(entry)?.run(launch, memory, options).map(drop);
        let outcome = variant.maker().map_or(Ok(()), |maker| run(maker, &makes));
        let outcome = outcome.and_then(|()| run(variant.entry(), &launch));
        tables.into_iter().for_each(|table| memory.free(table));
        let words = memory.read(at, bytes.len()).map_err(|e| broken("the report", e));
        memory.free(at);
        // The locations in embedded code count lines from the kernel's first line.
        let here = |source: &mut Source| {
            let Location { file, line, column } = kernel.location(Loc { line: source.line, column: source.column });
            (source.file, source.line, source.column) = (file, line, column);
        };
        outcome.map_err(|e| Error::Emulated { kernel: name.clone(), report: e.renamed(here).to_string() })?;
        Ok((variant, report_words(&words?)))
    }
}
