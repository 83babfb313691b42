//! Devices that run pipelines in the simulator, independently of a target: slowly, but reporting every error that it detects.

use super::backend::{Call, DeviceArg, Storage};
use super::kernel::{KernelRef, Loaded};
use super::lock;
use super::print::print_line;
use super::transfer::host_bytes;
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex};
use titan_core::ir::{Access, Elem, ParamKind};
use titan_core::verify::WellFormed;
use titan_sim::engine::Completion;
use titan_sim::sim::{self, Arg, Finding, Options, Side};

/// The options of a simulated device, and the number of its next launch.
#[derive(Clone, Debug)]
pub(crate) struct Settings(Arc<Mutex<(Options, u64)>>);

impl Settings {
    pub(crate) fn new(options: Options) -> Settings {
        // Launches need results, and no trace.
        let options = Options { data: true, trace: false, ..options };
        Settings(Arc::new(Mutex::new((options, 0))))
    }

    /// The options of the next launch: its seeds are the first ones plus its number.
    fn next(&self) -> Options {
        let mut state = lock(&self.0);
        let (options, launches) = &mut *state;
        let count = *launches;
        *launches += 1;
        let completion = match options.completion {
            Completion::Seeded(seed) => Completion::Seeded(seed.wrapping_add(count)),
            early_or_late @ (Completion::Early | Completion::Late) => early_or_late,
        };
        Options { seed: options.seed.map(|s| s.wrapping_add(count)), completion, ..options.clone() }
    }
}

/// A kernel that is ready to be simulated.
#[derive(Debug)]
pub(crate) struct Code(WellFormed);

impl Code {
    pub(crate) fn load(loaded: &Loaded) -> Code {
        Code(loaded.kernel.clone().into())
    }

    /// Runs a grid.
    pub(crate) fn run(&self, settings: &Settings, call: &Call<'_>) -> Result<()> {
        let (params, args) = (&self.0.sig.params, call.args);
        let mut given = args.iter().zip(params).map(|(a, p)| taken(a, &p.kind)).collect::<Result<Vec<Arg>>>()?;
        let name = &call.loaded.name;
        let options = settings.next();
        let report = sim::run(&self.0, &mut given, call.grid, &options)
            .map_err(|e| Error::Internal { doing: format!("kernel `{name}`"), message: e.to_string() })?;
        for line in &report.printed {
            print_line(line);
        }
        if let Some(found) = report.findings.first() {
            return Err(Error::Simulated { kernel: name.clone(), report: told(call.kernel, found, &options) });
        }
        for ((arg, made), param) in args.iter().zip(given).zip(params) {
            let written = matches!(param.kind, ParamKind::Tensor { access: Access::Mut, .. });
            if let (DeviceArg::Tensor { storage: Storage::Cpu(memory), offset, .. }, Arg::Tensor { bytes, .. }) =
                (arg, made)
                && written
            {
                memory.write(*offset, &bytes).map_err(|e| broken(&e))?;
            }
        }
        Ok(())
    }
}

/// An argument for the simulator, with the bytes that its tensor covers.
fn taken(arg: &DeviceArg, kind: &ParamKind) -> Result<Arg> {
    match (arg, kind) {
        (DeviceArg::Scalar(value), _) => Ok(Arg::Scalar(*value)),
        (
            DeviceArg::Tensor { storage: Storage::Cpu(memory), offset, extents, strides },
            ParamKind::Tensor { elem, .. },
        ) => {
            let mut bytes = host_bytes(reach(*elem, extents, strides))?;
            memory.read(*offset, &mut bytes).map_err(|e| broken(&e))?;
            let shape = extents.iter().map(|e| i64::from(*e)).collect();
            Ok(Arg::Tensor { elem: *elem, shape, strides: strides.to_vec(), bytes })
        }
        // The devices of arguments have been compared.
        (DeviceArg::Tensor { .. } | DeviceArg::Absent, _) => Ok(Arg::Absent),
    }
}

/// The number of bytes from the first element of a tensor to the end of its last one.
fn reach(elem: Elem, extents: &[i32], strides: &[i64]) -> usize {
    if extents.contains(&0) {
        return 0;
    }
    let last: i64 = extents.iter().zip(strides).map(|(n, s)| (i64::from(*n) - 1) * s).sum();
    elem.bytes_for(usize::try_from(last + 1).unwrap_or(0))
}

/// The message for a finding, with locations in the user's files.
fn told(kernel: &KernelRef, found: &Finding, options: &Options) -> String {
    let mut text = format!("{}: {}", found.kind, found.message);
    for side in &found.sides {
        let at = kernel.location(side.loc);
        // The location is printed as one of the file; that in the kernel is omitted.
        let side = Side { loc: titan_core::ir::Loc::default(), ..side.clone() };
        text += &format!("\n  {side}, at {at}");
    }
    // A device with these options repeats the run at its first launch.
    let Options { seed, completion, .. } = options;
    format!(
        "{text}\n  to reproduce: seed: {seed:?}, completion: Completion::{completion:?}; the schedule: {}",
        found.schedule
    )
}

fn broken(error: &dyn std::error::Error) -> Error {
    Error::Internal { doing: "a simulated launch".to_owned(), message: error.to_string() }
}
