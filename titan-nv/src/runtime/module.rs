//! Modules: PTX that the driver has compiled for a device, and the kernel in it.

use super::Handle;
use super::context::Context;
use super::error::{DriverError, Kind};
use super::stream::Stream;
use super::sys::{self, CUfunction, CUmodule, CUstream, Func};
use super::tensor::EncodedMap;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::ptr;

/// The size of each log of the driver's compiler, in bytes.
const LOG: usize = 16 * 1024;

/// The shared memory that every kernel may use, in bytes; for more, the function's attribute is raised. CUDA programming guide,
/// "Shared Memory" of each architecture since 7.x.
const UNASKED: u32 = 48 * 1024;

/// A kernel that is loaded on a device. It is kept until the process ends.
#[derive(Clone, Debug)]
pub struct Function {
    context: &'static Context,
    raw: Handle<Func>,
    threads: u32,
    shared: u32,
}

/// The reason why a kernel could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The driver's compiler refuses the PTX.
    Refused {
        /// The error that the driver returned.
        error: DriverError,
        /// The log of the driver's compiler.
        log: String,
    },
    /// A program needs more shared memory than the device provides.
    Shared {
        /// The bytes that it needs.
        needs: u32,
        /// The bytes that the device provides for each program.
        limit: u32,
    },
    /// A program needs more threads than fit, with the registers that each uses.
    Threads {
        /// The number of threads of a program.
        needs: u32,
        /// The number of threads that fit.
        limit: u32,
        /// The number of registers of each thread.
        registers: u32,
    },
    /// Any other failure of the driver.
    Driver(DriverError),
}

impl From<DriverError> for LoadError {
    fn from(error: DriverError) -> Self {
        LoadError::Driver(error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Refused { error, log } if log.is_empty() => error.fmt(f),
            LoadError::Refused { error, log } => write!(f, "{error}: {log}"),
            LoadError::Shared { needs, limit } => {
                write!(f, "a program needs {needs} bytes of shared memory, but the device has {limit}")
            }
            LoadError::Threads { needs, limit, registers } => {
                write!(
                    f,
                    "a program has {needs} threads of {registers} registers, but the device can run only {limit} of them"
                )
            }
            LoadError::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    /// Whether the code does not fit the device or the driver, so that other code of the same kernel may.
    #[must_use]
    pub fn is_misfit(&self) -> bool {
        const UNSUPPORTED_PTX_VERSION: u32 = 222;
        match self {
            LoadError::Shared { .. } | LoadError::Threads { .. } => true,
            LoadError::Refused { error, .. } => error.code == UNSUPPORTED_PTX_VERSION,
            LoadError::Driver(_) => false,
        }
    }
}

impl Function {
    /// Compiles `ptx` for the device of the context, and finds `entry` in it: a kernel of `threads` threads and `shared`
    /// bytes of dynamic shared memory; and another one of so many threads, without dynamic shared memory, if it is asked for.
    ///
    /// # Errors
    /// If the device lacks a resource that a kernel needs, or the driver refuses one.
    pub fn load(
        context: &'static Context,
        ptx: &[u8],
        (entry, threads, shared): (&str, u32, u32),
        other: Option<(&str, u32)>,
    ) -> Result<(Function, Option<Function>), LoadError> {
        let limit = context.device().properties.shared_per_block;
        if shared > limit {
            return Err(LoadError::Shared { needs: shared, limit });
        }
        let _entered = context.enter()?;
        let module = load_module(context, ptx)?;
        let kernel = Function::of_module(context, module, entry, (threads, shared));
        let both = kernel.and_then(|kernel| {
            let other = other.map(|(entry, threads)| Function::of_module(context, module, entry, (threads, 0)));
            Ok((kernel, other.transpose()?))
        });
        both.inspect_err(|_| {
            // SAFETY: it was loaded above, and no function of it is kept.
            let _unloaded = unsafe { (context.calls.cuModuleUnload)(module) };
        })
    }

    /// The kernel of a module. The context must be current.
    fn of_module(
        context: &'static Context,
        module: CUmodule,
        entry: &str,
        (threads, shared): (u32, u32),
    ) -> Result<Function, LoadError> {
        let limit = context.device().properties.shared_per_block;
        let name = CString::new(entry).map_err(|_| DriverError::new("cuModuleGetFunction", 500, || None))?;
        let mut raw: CUfunction = ptr::null_mut();
        // SAFETY: `raw` is writable storage for a function, the module was loaded, and the name ends with a NUL.
        let code = unsafe { (context.calls.cuModuleGetFunction)(&raw mut raw, module, name.as_ptr()) };
        context.calls.check("cuModuleGetFunction", code)?;
        let function = Function { context, raw: Handle(raw), threads, shared };
        let fixed = function.attribute(sys::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let needs = shared.saturating_add(fixed);
        if needs > limit {
            return Err(LoadError::Shared { needs, limit });
        }
        let fits = function.attribute(sys::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if threads > fits {
            let registers = function.attribute(sys::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
            return Err(LoadError::Threads { needs: threads, limit: fits, registers });
        }
        if needs > UNASKED {
            let attribute = sys::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = c_int::try_from(shared).unwrap_or(c_int::MAX);
            // SAFETY: the function is of the current context.
            let code = unsafe { (context.calls.cuFuncSetAttribute)(raw, attribute, bytes) };
            context.calls.check("cuFuncSetAttribute", code)?;
        }
        Ok(function)
    }

    fn attribute(&self, attribute: u32) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: `value` is writable storage for an int, and the function is of the current context.
        let code = unsafe { (self.context.calls.cuFuncGetAttribute)(&raw mut value, attribute, self.raw.0) };
        self.context.calls.check("cuFuncGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// The number of its programs that can run concurrently on the device.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn resident_programs(&self) -> Result<u32, DriverError> {
        let _entered = self.context.enter()?;
        let mut blocks = 0;
        let threads = c_int::try_from(self.threads).unwrap_or(c_int::MAX);
        let shared = self.shared as usize;
        // SAFETY: `blocks` is writable storage for an int, and the function is of the current context.
        let code = unsafe {
            (self.context.calls.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &raw mut blocks,
                self.raw.0,
                threads,
                shared,
            )
        };
        self.context.calls.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        let blocks = u32::try_from(blocks).unwrap_or(0).max(1);
        Ok(blocks.saturating_mul(self.context.device().properties.multiprocessors))
    }

    /// Launches a grid on a stream.
    ///
    /// # Errors
    /// If the driver refuses it.
    ///
    /// # Safety
    /// The parameters must be those of the kernel, in order, and the addresses in them memory of the device that lives until
    /// the work has ended, and no other code may use it in a way that the kernel does not expect.
    pub unsafe fn launch(&self, stream: &Stream, grid: [u32; 3], params: Params<'_>) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the caller's; a `Stream` is of the current context.
        unsafe { self.launch_in(stream.raw(), grid, params) }
    }

    /// The same on a stream by its handle.
    ///
    /// # Safety
    /// As of [`Function::launch`]; the context must be current, and the stream one of it.
    pub(super) unsafe fn launch_in(
        &self,
        stream: CUstream,
        [x, y, z]: [u32; 3],
        params: Params<'_>,
    ) -> Result<(), DriverError> {
        let mut params = params.pointers();
        let (threads, shared) = (self.threads, self.shared);
        // SAFETY: the caller answers for the parameters, which the driver copies before it returns; function and stream are
        // of the current context.
        let code = unsafe {
            (self.context.calls.cuLaunchKernel)(
                self.raw.0,
                x,
                y,
                z,
                threads,
                1,
                1,
                shared,
                stream,
                params.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.context.calls.check("cuLaunchKernel", code)
    }

    pub(super) fn raw(&self) -> CUfunction {
        self.raw.0
    }

    pub(super) fn threads(&self) -> u32 {
        self.threads
    }

    pub(super) fn shared(&self) -> u32 {
        self.shared
    }
}

/// The parameters of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    /// The words of the kernel's own parameters, each at its offset in `offsets`.
    pub block: &'a [u8],
    /// The offsets of the words.
    pub offsets: &'a [usize],
    /// Tensor maps, which follow the words.
    pub maps: &'a [EncodedMap],
    /// Addresses of tables of tensor maps, which follow the maps.
    pub tables: &'a [u64],
}

impl Params<'_> {
    /// A pointer to each parameter, valid as long as what this borrows.
    pub(super) fn pointers(&self) -> Vec<*mut c_void> {
        let Params { block, offsets, maps, tables } = self;
        let mut pointers: Vec<*mut c_void> = Vec::with_capacity(offsets.len() + maps.len() + tables.len());
        for at in *offsets {
            let from = block.get(*at..).unwrap_or_default();
            pointers.push(from.as_ptr().cast_mut().cast());
        }
        pointers.extend(maps.iter().map(|map| map.place().cast_mut()));
        pointers.extend(tables.iter().map(|address| ptr::from_ref(address).cast_mut().cast()));
        pointers
    }
}

/// Compiles PTX, and returns the compiler's log if it is refused. The context must be current.
fn load_module(context: &'static Context, ptx: &[u8]) -> Result<CUmodule, LoadError> {
    let text = CString::new(ptx).map_err(|_| DriverError::new("cuModuleLoadDataEx", 218, || None))?;
    let (mut info, mut errors) = (vec![0u8; LOG], vec![0u8; LOG]);
    let mut options = [
        sys::CU_JIT_INFO_LOG_BUFFER,
        sys::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        sys::CU_JIT_ERROR_LOG_BUFFER,
        sys::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let size = ptr::without_provenance_mut::<c_void>(LOG);
    let mut values = [info.as_mut_ptr().cast::<c_void>(), size, errors.as_mut_ptr().cast(), size];
    let mut module: CUmodule = ptr::null_mut();
    // SAFETY: `text` ends with a NUL, both logs have the size that is given, and both arrays the count.
    let code = unsafe {
        (context.calls.cuModuleLoadDataEx)(
            &raw mut module,
            text.as_ptr().cast(),
            4,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    context.calls.check("cuModuleLoadDataEx", code).map_err(|error| match error.kind() {
        Kind::Code | Kind::Other => LoadError::Refused { error, log: text_of(&errors) },
        Kind::OutOfMemory | Kind::Sticky | Kind::Timeout | Kind::Setup => LoadError::Driver(error),
    })?;
    Ok(module)
}

/// The text before the first NUL byte.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
