//! Launches: the checks when they are enqueued, and their execution.

use super::memory::Device;
use super::run::{Outcome, Work, wrong};
use super::{Driver, Session, queue};
use crate::board;
use crate::code::{Code, Done};
use std::sync::Arc;
use titan_nv::emu::{DevicePtr, Module, Options, Param, Uninitialised};

/// The extents of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The dynamic shared memory, in bytes.
    pub(crate) shared: u32,
}

/// A launch as the caller requests it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: u64,
    pub(crate) stream: u64,
    pub(crate) extents: Grid,
    /// The bytes of each parameter.
    pub(crate) params: Vec<Vec<u8>>,
}

/// A launch that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    module: Arc<Module>,
    entry: String,
    extents: Grid,
    params: Vec<Vec<u8>>,
}

impl Launch {
    /// The name of the kernel.
    pub(super) fn entry(&self) -> &str {
        &self.entry
    }
}

/// The launch that the caller requests, if the driver accepts it.
pub(super) fn check(driver: &Driver, context: u64, call: &Call) -> Done<Launch> {
    driver.check_launch(context, call)
}

impl Driver {
    /// The driver's checks before a launch is enqueued. CUDA Driver API, cuLaunchKernel; programming guide, "Technical
    /// Specifications per Compute Capability".
    fn check_launch(&self, context: u64, call: &Call) -> Done<Launch> {
        let function = self.function(call.function)?;
        if function.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        let Grid { grid, block, shared } = call.extents;
        let within = |extents: [u32; 3], most: [u32; 3]| extents.iter().zip(most).all(|(e, m)| (1..=m).contains(e));
        let threads: u64 = block.iter().map(|e| u64::from(*e)).product();
        if !within(grid, board::GRID) || !within(block, board::BLOCK) || threads > board::THREADS.into() {
            crate::say(&format!("launch of `{}`: a grid of {grid:?} blocks of {block:?} threads", function.name));
            return Err(Code::INVALID_VALUE);
        }
        let kernel = function.kernel()?;
        if kernel.thread_limit().is_some_and(|most| threads > most.into()) {
            crate::say(&format!("launch of `{}`: {threads} threads are more than it was compiled for", function.name));
            return Err(Code::INVALID_VALUE);
        }
        if shared > function.max_dynamic {
            let most = function.max_dynamic;
            crate::say(&format!(
                "launch of `{}`: {shared} bytes of dynamic shared memory, and {most} are allowed: \
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES allows more",
                function.name
            ));
            return Err(Code::INVALID_VALUE);
        }
        Ok(Launch {
            module: Arc::clone(&function.module),
            entry: function.name.clone(),
            extents: call.extents,
            params: call.params.clone(),
        })
    }

    /// Runs a launch, and returns the bytes that it accessed.
    pub(super) fn launch_now(&mut self, context: u64, launch: &Launch) -> Outcome {
        let device = self.device_of(context).map_err(|code| (code, "the context is gone".to_owned()))?;
        let setting = self.setting();
        let (strict, races) = (setting.strict, setting.races);
        let lent = self.lend(device, &launch.params);
        let Some(device) = self.devices.get_mut(device) else { return Err((Code::INVALID_DEVICE, String::new())) };
        let options = Options {
            uninitialised: if strict { Uninitialised::Strict } else { Uninitialised::Propagate },
            races,
            max_shared: device.fitted.board.shared_optin,
            resident: device.fitted.sms.saturating_mul(device.fitted.board.blocks_per_sm),
            ..Options::default()
        };
        device.memory.watch();
        let done = run(launch, device, &options);
        let touched = device.memory.touched();
        self.take_back(&lent, &touched);
        done.map(|()| touched)
    }

    /// Maps the pinned memory whose addresses are among the parameters into a device; returns what was mapped.
    fn lend(&mut self, device: usize, params: &[Vec<u8>]) -> Vec<(usize, u64)> {
        let words =
            params.iter().flat_map(|p| p.chunks_exact(8)).filter_map(|w| Some(u64::from_le_bytes(w.try_into().ok()?)));
        let mut bases: Vec<u64> = words.filter_map(|w| self.pinned_at(w).map(|(base, _)| base)).collect();
        bases.sort_unstable();
        bases.dedup();
        let Some(device_memory) = self.devices.get_mut(device).map(|d| &mut d.memory) else { return Vec::new() };
        for base in &bases {
            if let Some(pinned) = self.pinned.get(base) {
                let bytes = pinned.bytes.read();
                if let Some(ptr) = device_memory.alloc_at("pinned memory", *base, bytes.len()) {
                    // The write is within the new allocation, so it succeeds.
                    let _ = device_memory.write(ptr, &bytes);
                }
            }
        }
        bases.into_iter().map(|b| (device, b)).collect()
    }

    /// Copies the writes of a launch to pinned memory back, and removes the mapping.
    fn take_back(&mut self, lent: &[(usize, u64)], touched: &titan_nv::emu::Touched) {
        for (device, base) in lent {
            let (Some(device), Some(pinned)) = (self.devices.get_mut(*device), self.pinned.get(base)) else { continue };
            let end = base + pinned.bytes.len() as u64;
            for (from, to) in touched.writes.iter().chain(touched.strong.iter()).filter(|(a, b)| a < &end && b > base) {
                let (from, to) = (from.max(*base), to.min(end));
                let len = usize::try_from(to - from).unwrap_or(0);
                if let Ok(bytes) = device.memory.read_any(DevicePtr::from_address(from), len) {
                    pinned.bytes.write(usize::try_from(from - base).unwrap_or(usize::MAX), &bytes);
                }
            }
            device.memory.forget(DevicePtr::from_address(*base));
        }
    }
}

fn run(launch: &Launch, device: &mut Device, options: &Options) -> Result<(), (Code, String)> {
    let params: Vec<Param> = launch.params.iter().cloned().map(Param::Bytes).collect();
    let Grid { grid, block, shared } = launch.extents;
    let asked = titan_nv::emu::Launch { grid, block, dynamic_shared: shared, cluster: None, params: &params };
    let kernel = launch.module.entry(&launch.entry).map_err(|e| wrong(&e))?;
    kernel.run(&asked, &mut device.memory, options).map(drop).map_err(|e| wrong(&e))
}

/// Enqueues a launch.
pub(crate) fn launch(session: &mut Session, context: u64, call: &Call) -> Done {
    let launch = session.check_launch(context, call)?;
    if session.stream(call.stream)?.context != context {
        return Err(Code::INVALID_HANDLE);
    }
    let Some(launch) = session.recorded_by(call.stream, launch)? else { return Ok(()) };
    let label = format!("launch of `{}`", launch.entry);
    queue::enqueue(session, call.stream, label, Work::Launch(Box::new(launch))).map(drop)
}
