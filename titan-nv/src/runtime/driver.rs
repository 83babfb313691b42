//! The driver of this machine and its devices, or the reason why there are none.

use super::Handle;
use super::context::Context;
use super::error::DriverError;
use super::once::Once;
use super::sys::{self, CUdevice, Ctx};
use super::table::{Code, Table};
pub use super::table::{OPTIONAL_SYMBOLS, SYMBOLS};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::ops::Deref;
use std::ptr;

/// The library's name as it is installed, then the name for linkers: toolkits install a stub under the latter, which is not a driver.
/// The names of the library, the first that exists is opened.
pub const LIBRARIES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

/// The reason why no NVIDIA GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The driver's library cannot be opened.
    NoLibrary {
        /// The message of the system's loader.
        reason: String,
    },
    /// The library lacks functions: it is older than CUDA 12, or something else.
    MissingSymbols {
        /// The names of the missing functions.
        names: Vec<&'static str>,
    },
    /// The driver does not start.
    Start(DriverError),
    /// The driver finds no device.
    NoDevice,
}

impl Absence {
    /// A suggestion how to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Absence::NoLibrary { .. } => {
                "install NVIDIA's driver; in containers, pass the GPU through (`--gpus all`); the CUDA toolkit is not needed"
            }
            Absence::MissingSymbols { .. } => "update NVIDIA's driver: TITAN needs one for CUDA 12.0 or later",
            Absence::Start(error) => error.help(),
            Absence::NoDevice => "check `nvidia-smi`, and `CUDA_VISIBLE_DEVICES` if it is set",
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NoLibrary { reason } => {
                write!(f, "NVIDIA's driver library `{}` cannot be opened ({reason})", LIBRARIES[0])
            }
            Absence::MissingSymbols { names } => {
                let (first, rest) = (names.first().copied().unwrap_or("none"), names.len().saturating_sub(1));
                write!(f, "NVIDIA's driver library has no function `{first}`")?;
                match rest {
                    0 => Ok(()),
                    1 => f.write_str(", and one more function is missing"),
                    _ => write!(f, ", and {rest} more functions are missing"),
                }
            }
            Absence::Start(error) => write!(f, "NVIDIA's driver does not start: {error}"),
            Absence::NoDevice => f.write_str("NVIDIA's driver finds no device"),
        }
    }
}

impl std::error::Error for Absence {}

/// NVIDIA's driver, started.
#[derive(Debug)]
pub struct Driver {
    calls: Calls,
    devices: Vec<Device>,
    /// The version of CUDA that it supports: 12040 is 12.4.
    pub version: u32,
}

/// The functions of the driver.
#[derive(Debug)]
pub(super) struct Calls(Table);

impl Deref for Calls {
    type Target = Table;
    fn deref(&self) -> &Table {
        &self.0
    }
}

/// A device of the driver.
#[derive(Debug)]
pub struct Device {
    pub(super) raw: CUdevice,
    /// The index of the device, in the driver's order.
    pub ordinal: u32,
    /// The name of the device.
    pub name: String,
    /// The properties of the device.
    pub properties: Properties,
    /// The driver's handle of the context, retained once.
    pub(super) retained: Once<Handle<Ctx>>,
    context: Once<Context>,
}

/// The properties of a device, as the driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The compute capability times ten: 80, 90.
    pub capability: u32,
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The largest shared memory of a program, in bytes.
    pub shared_per_block: u32,
    /// The greatest extents of a grid.
    pub grid: [u32; 3],
    /// The size of its memory, in bytes.
    pub memory: usize,
    /// Whether it allocates memory in stream order.
    pub memory_pools: bool,
}

impl Driver {
    /// The driver, started at the first call.
    ///
    /// # Errors
    /// If this machine has none, or no device; or if it does not start, which the next call tries again.
    pub fn get() -> Result<&'static Driver, Absence> {
        static DRIVER: Once<Result<Driver, Absence>> = Once::new();
        let found = DRIVER.get_or_try(|| match Driver::start() {
            Err(refused @ Absence::Start(_)) => Err(refused),
            // A library that does not exist, or lacks functions, is not looked for again.
            found => Ok(found),
        })?;
        found.as_ref().map_err(Clone::clone)
    }

    /// The devices, in the driver's order.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn start() -> Result<Driver, Absence> {
        // SAFETY: a library of this name exports the functions of the CUDA driver API.
        let calls = Calls(unsafe { table(LIBRARIES) }?);
        // SAFETY: the manual: flags must be 0.
        calls.check("cuInit", unsafe { (calls.cuInit)(0) }).map_err(Absence::Start)?;
        let devices = calls.devices().map_err(Absence::Start)?;
        let mut version = 0;
        // SAFETY: `version` is writable storage for an int.
        let code = unsafe { (calls.cuDriverGetVersion)(&raw mut version) };
        calls.check("cuDriverGetVersion", code).map_err(Absence::Start)?;
        let version = u32::try_from(version).unwrap_or(0);
        if devices.is_empty() { Err(Absence::NoDevice) } else { Ok(Driver { calls, devices, version }) }
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }
}

/// Opens the first of these libraries that exists; otherwise returns the loader's message for the first name.
fn open(names: &[&str]) -> Result<&'static Library, String> {
    let mut refused = None;
    for name in names {
        // SAFETY: opening the driver's library runs its initializers, which NVIDIA makes for programs that do so.
        match unsafe { Library::new(*name) } {
            // Never closed: its functions are called as long as the process lives.
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                refused.get_or_insert_with(|| source.unwrap_or_else(|| error.to_string()));
            }
        }
    }
    Err(refused.unwrap_or_default())
}

/// The functions of the first of these libraries that exists.
///
/// # Safety
/// What the library exports under the names of the driver's functions must be these functions.
unsafe fn table(names: &[&str]) -> Result<Table, Absence> {
    let library = open(names).map_err(|reason| Absence::NoLibrary { reason })?;
    // SAFETY: the caller's.
    unsafe { Table::load(library) }.map_err(|names| Absence::MissingSymbols { names })
}

/// The reason why the first of these libraries that exists is not a driver's, if it is not.
///
/// # Safety
/// Opening a library runs its initializers, and the caller must know what these do.
#[must_use]
pub unsafe fn absence(names: &[&str]) -> Option<Absence> {
    // SAFETY: nothing is called through the table.
    unsafe { table(names) }.err()
}

impl Calls {
    /// Converts the result of a call to an error, if it is one.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), DriverError> {
        if code == 0 { Ok(()) } else { Err(DriverError::new(call, code, || self.name_of(code))) }
    }

    fn name_of(&self, code: Code) -> Option<String> {
        let mut name: *const c_char = ptr::null();
        // SAFETY: `name` is writable storage for one pointer.
        let outcome = unsafe { (self.cuGetErrorName)(code, &raw mut name) };
        if outcome != 0 || name.is_null() {
            return None;
        }
        // SAFETY: the manual: on success `name` points to a NUL-terminated string, which is never freed.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn devices(&self) -> Result<Vec<Device>, DriverError> {
        let mut count = 0;
        // SAFETY: `count` is writable storage for an int.
        self.check("cuDeviceGetCount", unsafe { (self.cuDeviceGetCount)(&raw mut count) })?;
        (0..count).map(|ordinal| self.device(ordinal)).collect()
    }

    fn device(&self, ordinal: c_int) -> Result<Device, DriverError> {
        let mut raw = 0;
        // SAFETY: `raw` is writable storage for a device.
        self.check("cuDeviceGet", unsafe { (self.cuDeviceGet)(&raw mut raw, ordinal) })?;
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: `name` has room for 256 characters, the NUL included.
        self.check("cuDeviceGetName", unsafe { (self.cuDeviceGetName)(name.as_mut_ptr(), 256, raw) })?;
        let name: Vec<u8> = name.iter().take_while(|c| **c != 0).map(|c| c.to_ne_bytes()[0]).collect();
        let name = String::from_utf8_lossy(&name).into_owned();
        let ordinal = u32::try_from(ordinal).unwrap_or(0);
        Ok(Device {
            raw,
            ordinal,
            name,
            properties: self.properties(raw)?,
            retained: Once::new(),
            context: Once::new(),
        })
    }

    fn properties(&self, raw: CUdevice) -> Result<Properties, DriverError> {
        let ask = |attribute: u32| {
            let mut value = 0;
            // SAFETY: `value` is writable storage for an int, and `raw` a device.
            self.check("cuDeviceGetAttribute", unsafe { (self.cuDeviceGetAttribute)(&raw mut value, attribute, raw) })?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut memory = 0;
        // SAFETY: `memory` is writable storage for a size, and `raw` a device.
        self.check("cuDeviceTotalMem", unsafe { (self.cuDeviceTotalMem_v2)(&raw mut memory, raw) })?;
        let (major, minor) = (
            ask(sys::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(sys::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        Ok(Properties {
            capability: 10 * major + minor,
            multiprocessors: ask(sys::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_per_block: ask(sys::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            grid: [
                ask(sys::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                ask(sys::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                ask(sys::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            memory,
            memory_pools: ask(sys::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        })
    }
}

impl Device {
    /// The device's primary context, created at the first call.
    ///
    /// # Errors
    /// If the driver creates no context: the device is busy, or in a mode that allows none. The next call tries again.
    pub fn context(&'static self) -> Result<&'static Context, DriverError> {
        let make = || match Driver::get() {
            Ok(driver) => Context::new(driver, self),
            Err(_) => Err(DriverError::new("cuInit", 3, || None)),
        };
        self.context.get_or_try(make)
    }
}
