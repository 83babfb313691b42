//! AMD's machines: code objects.
//!
//! The arguments of a launch are the bytes of the parameter block. The emulator adds the hidden ones that a code object asks for, as AMD's
//! runtime does.

use super::super::backend::Call;
use super::super::device::Device;
use super::super::gpu::{self, Facts};
use super::super::kernel::Loaded;
use super::{Code, PERSISTENT, broken, internal, report_words};
use crate::error::{Error, Result};
use titan_amd::Machine;
use titan_amd::emu::{Args, Launch, Memory, Module, Options};
use titan_core::artifact::Variant;
use titan_core::launch::abi::{self, GpuArg};
use titan_nv::emu::Options as Asked;

/// The greatest extents of a grid, in programs, as AMD's runtime reports them for gfx942 (`hipDeviceProp_t::maxGridSize`).
const GRID: [u32; 3] = [i32::MAX.cast_unsigned(), 65_535, 65_535];

/// The variants of a kernel, in the order in which launches try them.
#[derive(Debug)]
pub(super) struct Variants {
    machine: &'static Machine,
    all: Vec<(Variant, Module)>,
}

/// The options that the emulators have in common.
fn options(asked: &Asked) -> Options {
    Options {
        completion: asked.completion,
        schedule: asked.schedule,
        sanitize: asked.races,
        max_steps: asked.max_steps,
        ..Options::default()
    }
}

impl Variants {
    pub(super) fn load(
        variants: Vec<Variant>,
        machine: &'static Machine,
        (device, loaded): (&Device, &Loaded),
    ) -> Result<Variants> {
        let read = |v: Variant| match Module::load(&v.payload) {
            Ok(module) => Ok((v, module)),
            Err(error) => Err(Error::CodeObject {
                what: loaded.title.to_string(),
                device: device.to_string(),
                problem: error.report().message.clone(),
                help: "rebuild the crate of the kernel after `cargo clean -p`",
            }),
        };
        Ok(Variants { machine, all: variants.into_iter().map(read).collect::<Result<_>>()? })
    }

    /// The target of the code that a launch would run.
    pub(super) fn target(
        &self,
        code: &Code,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: &mut Vec<(String, String)>,
    ) -> Result<String> {
        Ok(self.choose(code, call, args, Some(passed_over))?.0.target.clone())
    }

    /// The first variant that can be launched with these arguments.
    fn choose(
        &self,
        code: &Code,
        call: &Call<'_>,
        args: &[GpuArg],
        passed_over: Option<&mut Vec<(String, String)>>,
    ) -> Result<&(Variant, Module)> {
        let no_maps = Some("the device has no tensor maps");
        let facts = Facts::new(&call.loaded.kernel.sig, args, call.symbols, self.machine.lds_bytes, no_maps);
        let chosen = facts.choose(
            &self.all,
            |(variant, _)| variant,
            |ready| Ok(gpu::grid(call, &ready.0).map(|_| ready)),
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
        asked: &Asked,
    ) -> Result<(&Variant, Vec<u32>)> {
        let name = &call.loaded.name;
        let (variant, module) = self.choose(code, call, args, None)?;
        let grid = gpu::grid(call, variant).map_err(internal)?.unwrap_or_else(|| gpu::persistent(PERSISTENT, variant));
        gpu::check_grid(name, &code.device, grid, gpu::amd_grid(GRID, variant.threads))?;
        let bytes: Vec<u8> = gpu::new_report(variant).iter().flat_map(|w| w.to_le_bytes()).collect();
        let at = memory.upload("the report", &bytes).map_err(|e| broken("the report", e))?;
        let block = abi::pack(&code.slots, args, at.address());
        let launch = Launch { grid, block: [variant.threads, 1, 1], dynamic_lds: 0, args: Args::Packed(&block) };
        let kernel = module.kernel(variant.entry());
        let outcome = kernel.and_then(|kernel| kernel.run(&launch, memory, &options(asked)));
        let words = memory.read(at, bytes.len()).map_err(|e| broken("the report", e));
        memory.free(at);
        outcome.map_err(|e| Error::Emulated { kernel: name.clone(), report: e.to_string() })?;
        Ok((variant, report_words(&words?)))
    }
}
