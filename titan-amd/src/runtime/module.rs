//! Modules: code objects that the device has loaded, and the kernels in them.

use super::Handle;
use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use super::sys::{self, Func, HipFunction, HipModule, Mod};
use crate::machine::Machine;
use crate::object::{CodeObject, Kernel};
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::{fmt, ptr};

/// A code object on a device. It stays loaded until the process ends, because nothing records whether its code is
/// running.
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    context: &'static Context,
    raw: Handle<Mod>,
    object: CodeObject,
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Function {
    module: Module,
    raw: Handle<Func>,
    kernel: Kernel,
}

/// The arguments of a launch as one block.
pub(super) struct Packed {
    block: Vec<u8>,
    size: usize,
}

impl Packed {
    /// The list that tells the runtime where the block is, valid as long as the block.
    pub(super) fn extra(&mut self) -> [*mut c_void; 5] {
        let tag = ptr::without_provenance_mut::<c_void>;
        [
            tag(sys::LAUNCH_PARAM_BUFFER_POINTER),
            self.block.as_mut_ptr().cast(),
            tag(sys::LAUNCH_PARAM_BUFFER_SIZE),
            (&raw mut self.size).cast(),
            tag(sys::LAUNCH_PARAM_END),
        ]
    }
}

/// The extents of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The number of workgroups, by axis.
    pub grid: [u32; 3],
    /// The number of work items of a workgroup, by axis.
    pub block: [u32; 3],
    /// The bytes of the local data share in addition to those that the kernel declares.
    pub dynamic_lds: u32,
}

/// The reason why a code object could not be loaded, or a kernel was not found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are not a code object for a machine that TITAN supports.
    Object(String),
    /// The device is another machine than the code object is for.
    Target {
        /// The machine of the code object.
        code: &'static str,
        /// The machine of the device.
        device: String,
    },
    /// There is no kernel with this name.
    NoKernel {
        /// The name that was requested.
        name: String,
        /// The names of the kernels.
        names: Vec<String>,
    },
    /// The runtime refuses the code object.
    Driver(DriverError),
}

/// The reason why a launch does not fit the kernel or the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// A description of the mismatch.
    Launch(String),
    /// A workgroup needs more of the local data share than the device has.
    Lds {
        /// What it needs, in bytes.
        needs: u64,
        /// What the device allows, in bytes.
        limit: u32,
    },
    /// The runtime refuses the launch.
    Driver(DriverError),
}

impl From<DriverError> for LoadError {
    fn from(error: DriverError) -> Self {
        LoadError::Driver(error)
    }
}

impl From<DriverError> for Misfit {
    fn from(error: DriverError) -> Self {
        Misfit::Driver(error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Object(why) => f.write_str(why),
            LoadError::Target { code, device } => {
                write!(f, "the code object is for {code}, but the device is {device}")
            }
            LoadError::NoKernel { name, names } if names.is_empty() => {
                write!(f, "there is no kernel `{name}`: the code object has none")
            }
            LoadError::NoKernel { name, names } => {
                write!(f, "there is no kernel `{name}`; the code object has `{}`", names.join("`, `"))
            }
            LoadError::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Launch(why) => f.write_str(why),
            Misfit::Lds { needs, limit } => {
                write!(f, "{needs} bytes of LDS: the device allows {limit} per workgroup")
            }
            Misfit::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Misfit {}

/// The machine whose code objects are read.
const TARGET: &str = "gfx942";

impl Module {
    /// Loads a code object.
    ///
    /// # Errors
    /// If the bytes are not a code object, it is for another machine, or the runtime refuses it.
    pub fn load(context: &'static Context, bytes: &[u8]) -> Result<Module, LoadError> {
        let object = CodeObject::read(bytes).map_err(|e| LoadError::Object(e.to_string()))?;
        let properties = &context.device().properties;
        if properties.target() != TARGET {
            return Err(LoadError::Target { code: TARGET, device: properties.architecture.clone() });
        }
        let _entered = context.enter()?;
        let mut raw: HipModule = ptr::null_mut();
        // SAFETY: `raw` is writable storage for a module. The bytes are a whole ELF file, whose headers say how long it is, as
        // `CodeObject::read` has checked.
        let code = unsafe { (context.calls.hipModuleLoadData)(&raw mut raw, bytes.as_ptr().cast()) };
        context.calls.check("hipModuleLoadData", code)?;
        Ok(Module(Arc::new(Loaded { context, raw: Handle(raw), object })))
    }

    /// The contents of the code object.
    #[must_use]
    pub fn object(&self) -> &CodeObject {
        &self.0.object
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// If there is none, or the runtime fails.
    pub fn function(&self, name: &str) -> Result<Function, LoadError> {
        let Loaded { context, raw: module, object } = &*self.0;
        let missing = || LoadError::NoKernel {
            name: name.to_owned(),
            names: object.kernels.iter().map(|k| k.name.clone()).collect(),
        };
        let kernel = object.kernel(name).ok_or_else(missing)?.clone();
        if kernel.metadata.is_none() {
            let why =
                format!("the code object has no metadata for kernel `{name}`, without which HIP does not find it");
            return Err(LoadError::Object(why));
        }
        let text = CString::new(name).map_err(|_| missing())?;
        let _entered = context.enter()?;
        let mut raw: HipFunction = ptr::null_mut();
        // SAFETY: `raw` is writable storage for a function, the module is loaded, and the name ends with a NUL.
        let code = unsafe { (context.calls.hipModuleGetFunction)(&raw mut raw, module.0, text.as_ptr()) };
        context.calls.check("hipModuleGetFunction", code)?;
        Ok(Function { module: self.clone(), raw: Handle(raw), kernel })
    }
}

impl Function {
    /// The description of the kernel in the code object.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The number of workgroups of so many work items that the device holds at once, by their registers and their local data share; at least 1.
    ///
    /// ISA §3.6: a wave has its registers in the file of one SIMD unit, and a workgroup its part of the local data share of one compute unit.
    #[must_use]
    pub fn resident_programs(&self, items: u32) -> u32 {
        let properties = &self.module.0.context.device().properties;
        let Ok(machine) = Machine::from_name(TARGET) else { return 1 };
        let descriptor = &self.kernel.descriptor;
        let waves = machine.waves_by_registers(descriptor.vgprs()) * machine.simds_per_cu;
        let by_waves = waves / items.div_ceil(machine.wave_size).max(1);
        let lds = descriptor.group_segment_bytes.max(1).next_multiple_of(machine.lds_granule);
        by_waves.min(machine.lds_bytes / lds).max(1).saturating_mul(properties.compute_units.max(1))
    }

    /// Launches a grid on a stream. There must be the bytes of one argument for each that the metadata list, without hidden ones.
    ///
    /// # Errors
    /// If the launch does not fit the kernel or the device, or the runtime refuses it.
    ///
    /// # Safety
    /// Addresses in the arguments must be memory of the device that lives until the work has ended, that no other code uses
    /// in a way that the kernel does not expect, and that is long enough for what the kernel does there. The kernel must keep to what its
    /// descriptor says.
    pub unsafe fn launch(&self, stream: &Stream, geometry: &Geometry, args: &[&[u8]]) -> Result<(), Misfit> {
        let context = self.module.0.context;
        let mut packed = self.packed(geometry, args)?;
        let mut extra = packed.extra();
        let ([gx, gy, gz], [bx, by, bz]) = (geometry.grid, geometry.block);
        let _entered = context.enter()?;
        // SAFETY: the caller answers for the arguments, which the runtime copies before it returns; function and stream are
        // of the device, and the list ends as the manual says.
        let code = unsafe {
            (context.calls.hipModuleLaunchKernel)(
                self.raw.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                geometry.dynamic_lds,
                stream.raw(),
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        Ok(context.calls.check("hipModuleLaunchKernel", code)?)
    }

    /// The arguments of a launch that fits the kernel and the device.
    pub(super) fn packed(&self, geometry: &Geometry, args: &[&[u8]]) -> Result<Packed, Misfit> {
        self.check(geometry)?;
        let block = self.pack(args)?;
        Ok(Packed { size: block.len(), block })
    }

    pub(super) fn raw(&self) -> HipFunction {
        self.raw.0
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Misfit> {
        let (kernel, properties) = (&self.kernel, &self.module.0.context.device().properties);
        let refuse = |why: String| Err(Misfit::Launch(why));
        let [x, y, z] = geometry.block;
        let items = u64::from(x) * u64::from(y) * u64::from(z);
        let most = kernel.max_workgroup_size();
        if items == 0 || items > most.into() {
            return refuse(format!("a workgroup of {x} × {y} × {z} work items: the kernel allows 1 to {most}"));
        }
        if let Some([a, b, c]) = kernel.required_workgroup().filter(|r| *r != geometry.block) {
            return refuse(format!("a workgroup of {x} × {y} × {z} work items: the kernel requires {a} × {b} × {c}"));
        }
        let [gx, gy, gz] = geometry.grid;
        if geometry.grid.iter().zip(properties.grid).any(|(n, most)| *n == 0 || *n > most) {
            let [mx, my, mz] = properties.grid;
            return refuse(format!(
                "a grid of {gx} × {gy} × {gz} workgroups: the device allows 1 to {mx} × {my} × {mz}"
            ));
        }
        let lds = u64::from(kernel.descriptor.group_segment_bytes) + u64::from(geometry.dynamic_lds);
        if lds > properties.lds_bytes.into() {
            return Err(Misfit::Lds { needs: lds, limit: properties.lds_bytes });
        }
        Ok(())
    }

    /// The arguments in the layout of memory.
    fn pack(&self, args: &[&[u8]]) -> Result<Vec<u8>, Misfit> {
        let visible: Vec<_> = self.kernel.args().iter().filter(|a| !a.kind.is_hidden()).collect();
        if args.len() != visible.len() {
            let (wants, got) = (visible.len(), args.len());
            return Err(Misfit::Launch(format!("the kernel takes {wants} arguments, not {got}")));
        }
        let mut block = Vec::new();
        for (i, (arg, bytes)) in visible.iter().zip(args).enumerate() {
            if bytes.len() != arg.size as usize {
                let (size, len) = (arg.size, bytes.len());
                return Err(Misfit::Launch(format!("argument {i} has {size} bytes, not {len}")));
            }
            let end = arg.offset as usize + bytes.len();
            if block.len() < end {
                block.resize(end, 0);
            }
            block[arg.offset as usize..end].copy_from_slice(bytes);
        }
        Ok(block)
    }
}
