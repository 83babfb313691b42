//! Modules: PTX that is compiled when it is loaded, and the functions in it.

use super::{Driver, Session, queue};
use crate::board::{REGISTERS, RESERVED, SHARED, THREADS};
use crate::code::{Code, Done};
use std::sync::Arc;
use titan_nv::emu::{Kernel, Module};

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(super) context: u64,
    device: usize,
    module: Arc<Module>,
}

/// A function of a loaded module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(super) context: u64,
    loaded: u64,
    pub(super) module: Arc<Module>,
    pub(super) name: String,
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    pub(super) max_dynamic: u32,
    optin: u32,
    carveout: i32,
}

/// The output of the compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) info: String,
    pub(crate) error: String,
}

/// The latest PTX version of each driver version. PTX ISA, "Release History".
const VERSIONS: &[(u32, (u32, u32))] = &[
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_060, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
    (13_000, (9, 0)),
];

/// The latest PTX version that a driver of this version accepts.
fn latest(driver: u32) -> (u32, u32) {
    VERSIONS.iter().rev().find(|(v, _)| *v <= driver).map_or((7, 8), |(_, ptx)| *ptx)
}

/// The word after a directive at the beginning of a line.
fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().map(str::trim).find_map(|l| l.strip_prefix(name))?;
    line.split([' ', '\t', ',', '/']).find(|w| !w.is_empty())
}

impl Driver {
    /// Compiles and loads PTX.
    pub(crate) fn load(&mut self, context: u64, image: &[u8], log: &mut Log) -> Done<u64> {
        let device = self.device_of(context)?;
        let board = self.devices.get(device).ok_or(Code::INVALID_DEVICE)?.fitted.board;
        let version = self.setting().version;
        if image.starts_with(b"\x7fELF") {
            log.error = "this driver runs PTX, and no machine code\n".to_owned();
            return Err(Code::NO_BINARY_FOR_GPU);
        }
        let text = std::str::from_utf8(image).map_err(|_| Code::INVALID_IMAGE)?;
        let stated = directive(text, ".version").and_then(|v| {
            let (major, minor) = v.split_once('.')?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        let mut refuse = |code: Code, why: String| {
            log.error = format!("ptxas application ptx input, {why}\n");
            crate::say(&format!("a module: {}", log.error.trim_end()));
            Err(code)
        };
        let latest = latest(version);
        if let Some((major, minor)) = stated.filter(|v| *v > latest) {
            let (a, b) = latest;
            let why = format!("fatal   : Unsupported .version {major}.{minor}; current version is '{a}.{b}'");
            return refuse(Code::UNSUPPORTED_PTX_VERSION, why);
        }
        if let Some(target) = directive(text, ".target").filter(|t| t.starts_with("sm_") && !board.runs(t)) {
            let why = format!("fatal   : SM version specified by .target {target} cannot run on {}", board.names[0]);
            return refuse(Code::NO_BINARY_FOR_GPU, why);
        }
        let module = match Module::parse(text) {
            Ok(module) => module,
            Err(error) => return refuse(Code::INVALID_PTX, format!("line {}; {error}", error.line())),
        };
        let handle = self.handle();
        log.info = format!("{} kernels for {}\n", module.kernels().count(), module.target());
        let module = Arc::new(module.instance(handle));
        self.modules.insert(handle, Loaded { context, device, module });
        Ok(handle)
    }

    /// Unloads a module and its functions.
    pub(crate) fn unload(&mut self, handle: u64) -> Done {
        let loaded = self.modules.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        self.functions.retain(|_, f| f.loaded != handle);
        if let Some(device) = self.devices.get_mut(loaded.device) {
            loaded.module.unload(&mut device.memory);
        }
        Ok(())
    }

    /// The function of a module with this name.
    pub(crate) fn find_function(&mut self, module: u64, name: &str) -> Done<u64> {
        let loaded = self.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        if let Some((handle, _)) = self.functions.iter().find(|(_, f)| f.loaded == module && f.name == name) {
            return Ok(*handle);
        }
        let optin = self.devices.get(loaded.device).map_or(SHARED, |d| d.fitted.board.shared_optin);
        let kernel = loaded.module.entry(name).map_err(|_| Code::NOT_FOUND)?;
        let function = Function {
            context: loaded.context,
            loaded: module,
            module: Arc::clone(&loaded.module),
            name: name.to_owned(),
            max_dynamic: SHARED.saturating_sub(kernel.static_shared()),
            optin,
            carveout: -1,
        };
        let handle = self.handle();
        self.functions.insert(handle, function);
        Ok(handle)
    }

    /// The address and size of a variable.
    pub(crate) fn find_variable(&mut self, module: u64, name: &str) -> Done<(u64, usize)> {
        let loaded = self.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        let device = self.devices.get_mut(loaded.device).ok_or(Code::INVALID_DEVICE)?;
        let found = loaded.module.variable(name, &mut device.memory).map_err(|_| Code::NOT_FOUND)?;
        found.map(|(ptr, bytes)| (ptr.address(), bytes as usize)).ok_or(Code::NOT_FOUND)
    }

    /// A function by its handle.
    pub(crate) fn function(&self, handle: u64) -> Done<&Function> {
        self.functions.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// Sets `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES` (8) or `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`
    /// (9).
    pub(crate) fn set_attribute(&mut self, handle: u64, attribute: u32, value: i32) -> Done {
        let function = self.functions.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
        let fixed = function.kernel()?.static_shared();
        match attribute {
            8 => {
                let most = function.optin.saturating_sub(fixed);
                let value = u32::try_from(value).ok().filter(|v| *v <= most).ok_or(Code::INVALID_VALUE)?;
                function.max_dynamic = value;
            }
            9 if (-1..=100).contains(&value) => function.carveout = value,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// The number of blocks of a function that an SM holds at a time. Programming guide, "Occupancy Calculator".
    pub(crate) fn occupancy(&self, handle: u64, threads: u32, dynamic: usize) -> Done<u32> {
        let function = self.function(handle)?;
        let device = self.device_of(function.context)?;
        let board = self.devices.get(device).ok_or(Code::INVALID_DEVICE)?.fitted.board;
        let kernel = function.kernel()?;
        if threads == 0 || threads > THREADS {
            return Err(Code::INVALID_VALUE);
        }
        let warps = threads.div_ceil(32);
        let by_threads = board.threads_per_sm / 32 / warps;
        // Registers are allocated to warps in units of 256.
        let by_registers = REGISTERS / ((function.registers()? * 32).next_multiple_of(256) * warps);
        let dynamic = u32::try_from(dynamic).map_err(|_| Code::INVALID_VALUE)?;
        let shared = kernel.static_shared().saturating_add(dynamic);
        if shared > board.shared_optin {
            return Ok(0);
        }
        let by_shared = board.shared_per_sm / (shared.next_multiple_of(128) + RESERVED);
        Ok(board.blocks_per_sm.min(by_threads).min(by_registers).min(by_shared))
    }
}

/// Unloads a module after all pending operations that may need it.
pub(crate) fn unload_module(session: &mut Session, context: u64, module: u64) -> Done {
    let pending = session.pending_in(context);
    queue::force(session, context, pending)?;
    session.unload(module)
}

impl Function {
    /// The kernel.
    pub(crate) fn kernel(&self) -> Done<Kernel<'_>> {
        self.module.entry(&self.name).map_err(|_| Code::INVALID_HANDLE)
    }

    fn threads(&self) -> Done<u32> {
        Ok(self.kernel()?.thread_limit().unwrap_or(THREADS).clamp(1, THREADS))
    }

    /// The registers of a thread: the declared ones, but at most as many as a block of the largest size can have.
    fn registers(&self) -> Done<u32> {
        let warps = self.threads()?.div_ceil(32);
        let most = (REGISTERS / 32 / warps / 8 * 8).clamp(8, 255);
        Ok(self.kernel()?.register_words().clamp(16, most.max(16)))
    }

    /// An attribute, by the numbers of `CUfunction_attribute`.
    pub(crate) fn attribute(&self, number: u32) -> Done<i32> {
        let kernel = self.kernel()?;
        let (major, minor) = self.module.version();
        let target = self.module.target().trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0);
        let value = match number {
            0 => self.threads()?,
            1 => kernel.static_shared(),
            // CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES
            2 => 0,
            3 => kernel.local_bytes(),
            4 => self.registers()?,
            5 => major * 10 + minor,
            6 => target,
            // CU_FUNC_ATTRIBUTE_CACHE_MODE_CA
            7 => 0,
            8 => self.max_dynamic,
            9 => return Ok(self.carveout),
            // Clusters: none are required, and every allowed size is portable.
            10..=15 => 0,
            _ => return Err(Code::INVALID_VALUE),
        };
        i32::try_from(value).map_err(|_| Code::UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found() {
        let text = "// a\n.version 8.4\n  .target sm_90a, debug // x\n";
        assert_eq!((directive(text, ".version"), directive(text, ".target")), (Some("8.4"), Some("sm_90a")));
        assert_eq!((latest(12_000), latest(12_065), latest(11_080)), ((8, 0), (8, 5), (7, 8)));
    }
}
