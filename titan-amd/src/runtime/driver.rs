//! The HIP runtime of this machine and its devices, or the reason why there are none.

use super::context::Context;
use super::error::DriverError;
use super::once::Once;
use super::sys;
use super::table::{Code, Table};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::ops::Deref;

/// The library's name as it is installed: first with the version of its interface.
/// The names of the library, of which the first that exists is opened.
pub const LIBRARIES: &[&str] = if cfg!(windows) {
    &["amdhip64_7.dll", "amdhip64_6.dll"]
} else {
    &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"]
};

/// The reason why no AMD GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The runtime's library cannot be opened.
    NoLibrary {
        /// The message of the system's loader.
        reason: String,
    },
    /// The library lacks functions: it is older than ROCm 6, or something else.
    MissingSymbols {
        /// The names of the missing functions.
        names: Vec<&'static str>,
    },
    /// The runtime does not start.
    Start(DriverError),
    /// The runtime finds no device.
    NoDevice,
}

impl Absence {
    /// A suggestion how to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Absence::NoLibrary { .. } => {
                "install ROCm's HIP runtime (`hip-runtime-amd`), and put its folder, `/opt/rocm/lib`, on the library path; in \
                 containers, pass `/dev/kfd` and `/dev/dri` through"
            }
            Absence::MissingSymbols { .. } => "update ROCm: TITAN needs version 6.0 or later",
            Absence::Start(error) => error.help(),
            Absence::NoDevice => {
                "check `rocminfo`, and `HIP_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` if they are set"
            }
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NoLibrary { reason } => {
                write!(f, "AMD's HIP runtime `{}` cannot be opened ({reason})", LIBRARIES[0])
            }
            Absence::MissingSymbols { names } => {
                let (first, rest) = (names.first().copied().unwrap_or("none"), names.len().saturating_sub(1));
                write!(f, "AMD's HIP runtime has no function `{first}`")?;
                match rest {
                    0 => Ok(()),
                    1 => f.write_str(", and one more function is missing"),
                    _ => write!(f, ", and {rest} more functions are missing"),
                }
            }
            Absence::Start(error) => write!(f, "AMD's HIP runtime does not start: {error}"),
            Absence::NoDevice => f.write_str("AMD's HIP runtime finds no device"),
        }
    }
}

impl std::error::Error for Absence {}

/// AMD's HIP runtime, started.
#[derive(Debug)]
pub struct Driver {
    calls: Calls,
    devices: Vec<Device>,
    /// The version that it reports.
    pub version: u32,
}

/// The functions of the runtime.
#[derive(Debug)]
pub(super) struct Calls(Table);

impl Deref for Calls {
    type Target = Table;
    fn deref(&self) -> &Table {
        &self.0
    }
}

/// A device of the runtime.
#[derive(Debug)]
pub struct Device {
    pub(super) raw: c_int,
    /// The index of the device, in the runtime's order.
    pub ordinal: u32,
    /// The name of the device.
    pub name: String,
    /// The properties of the device.
    pub properties: Properties,
    context: Once<Context>,
}

/// The properties of a device, as the runtime reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The architecture with its features: `gfx942:sramecc+:xnack-`.
    pub architecture: String,
    /// The number of compute units.
    pub compute_units: u32,
    /// The largest local data share of a workgroup, in bytes.
    pub lds_bytes: u32,
    /// The greatest extents of a grid, in workgroups.
    pub grid: [u32; 3],
    /// The size of its memory, in bytes.
    pub memory: usize,
}

impl Properties {
    /// The architecture's name without its features: `gfx942`.
    #[must_use]
    pub fn target(&self) -> &str {
        self.architecture.split(':').next().unwrap_or_default()
    }
}

impl Driver {
    /// The runtime, started at the first call.
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

    /// The devices, in the runtime's order.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn start() -> Result<Driver, Absence> {
        const NO_DEVICE: u32 = 100;
        // SAFETY: a library of this name exports the functions of the HIP runtime API.
        let calls = Calls(unsafe { table(LIBRARIES) }?);
        let refused = |e: DriverError| if e.code == NO_DEVICE { Absence::NoDevice } else { Absence::Start(e) };
        // SAFETY: the manual: flags must be 0.
        calls.check("hipInit", unsafe { (calls.hipInit)(0) }).map_err(refused)?;
        let devices = calls.devices().map_err(refused)?;
        let mut version = 0;
        // SAFETY: `version` is writable storage for an int.
        let code = unsafe { (calls.hipDriverGetVersion)(&raw mut version) };
        calls.check("hipDriverGetVersion", code).map_err(refused)?;
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
        // SAFETY: opening the runtime's library runs its initializers, which AMD makes for programs that do so.
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
/// What the library exports under the names of the runtime's functions must be these functions.
unsafe fn table(names: &[&str]) -> Result<Table, Absence> {
    let library = open(names).map_err(|reason| Absence::NoLibrary { reason })?;
    // SAFETY: the caller's.
    unsafe { Table::load(library) }.map_err(|names| Absence::MissingSymbols { names })
}

/// The reason why the first of these libraries that exists is not a runtime's, if it is not.
///
/// # Safety
/// Opening a library runs its initializers, and the caller must know what these do.
#[must_use]
pub unsafe fn absence(names: &[&str]) -> Option<Absence> {
    // SAFETY: nothing is called through the table.
    unsafe { table(names) }.err()
}

/// The text before the first NUL byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Calls {
    /// Converts the result of a call to an error, if it is one.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), DriverError> {
        if code == 0 { Ok(()) } else { Err(DriverError::new(call, code, || self.name_of(code))) }
    }

    fn name_of(&self, code: Code) -> Option<String> {
        // SAFETY: any number may be asked for.
        let name = unsafe { (self.hipGetErrorName)(code) };
        if name.is_null() {
            return None;
        }
        // SAFETY: the manual: the result points to a NUL-terminated string, which is never freed.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn devices(&self) -> Result<Vec<Device>, DriverError> {
        let mut count = 0;
        // SAFETY: `count` is writable storage for an int.
        self.check("hipGetDeviceCount", unsafe { (self.hipGetDeviceCount)(&raw mut count) })?;
        (0..count).map(|ordinal| self.device(ordinal)).collect()
    }

    fn device(&self, raw: c_int) -> Result<Device, DriverError> {
        let mut name = [0u8; 256];
        // SAFETY: `name` has room for 256 characters, the NUL included.
        let code = unsafe { (self.hipDeviceGetName)(name.as_mut_ptr().cast::<c_char>(), 256, raw) };
        self.check("hipDeviceGetName", code)?;
        let ordinal = u32::try_from(raw).unwrap_or(0);
        Ok(Device { raw, ordinal, name: text(&name), properties: self.properties(raw)?, context: Once::new() })
    }

    fn properties(&self, raw: c_int) -> Result<Properties, DriverError> {
        let ask = |attribute: u32| {
            let mut value = 0;
            // SAFETY: `value` is writable storage for an int.
            let code = unsafe { (self.hipDeviceGetAttribute)(&raw mut value, attribute, raw) };
            self.check("hipDeviceGetAttribute", code)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut memory = 0;
        // SAFETY: `memory` is writable storage for a size.
        self.check("hipDeviceTotalMem", unsafe { (self.hipDeviceTotalMem)(&raw mut memory, raw) })?;
        // Aligned as the structure is.
        let mut all = vec![0u64; sys::PROPERTIES_ROOM / 8];
        // SAFETY: the structure of this version has 1472 bytes, and `all` more than twice as many.
        let code = unsafe { (self.hipGetDevicePropertiesR0600)(all.as_mut_ptr().cast(), raw) };
        self.check("hipGetDevicePropertiesR0600", code)?;
        let bytes: Vec<u8> = all.iter().flat_map(|w| w.to_ne_bytes()).collect();
        Ok(Properties {
            architecture: text(bytes.get(sys::ARCHITECTURE).unwrap_or_default()),
            compute_units: ask(sys::MULTIPROCESSOR_COUNT)?,
            lds_bytes: ask(sys::MAX_SHARED_MEMORY_PER_BLOCK)?,
            grid: [ask(sys::MAX_GRID_DIM_X)?, ask(sys::MAX_GRID_DIM_Y)?, ask(sys::MAX_GRID_DIM_Z)?],
            memory,
        })
    }
}

impl Device {
    /// The state that the process shares on the device, created at the first call.
    ///
    /// # Errors
    /// If the runtime creates no stream. The next call tries again.
    pub fn context(&'static self) -> Result<&'static Context, DriverError> {
        let make = || match Driver::get() {
            Ok(driver) => Context::new(driver, self),
            Err(_) => Err(DriverError::new("hipInit", 3, || None)),
        };
        self.context.get_or_try(make)
    }
}
