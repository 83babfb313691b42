//! The metadata of a code object, which describe kernels in addition to their descriptors: names, arguments, sizes, registers.
//!
//! Source: LLVM, "Code Object V5 Metadata". Unknown keys are ignored, because later compilers add some.

use super::descriptor::{Descriptor, Resources};
use super::error::ObjectError;
use super::msgpack::Value;

/// The largest accepted size of arguments, in bytes: a larger number could be a corrupted one, and a launch would allocate that much.
const MAX_KERNARG: u32 = 1 << 20;

/// The version of the metadata in code objects of version 5.
const VERSION: [i64; 2] = [1, 2];

/// The metadata of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The target, such as `amdgcn-amd-amdhsa--gfx942`.
    pub target: String,
    /// The metadata of its kernels.
    pub kernels: Vec<KernelMetadata>,
}

/// The metadata of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMetadata {
    /// The name of the kernel.
    pub name: String,
    /// The symbol of its descriptor.
    pub symbol: String,
    /// The arguments, including hidden ones.
    pub args: Vec<KernelArg>,
    /// The size of its arguments, in bytes.
    pub kernarg_bytes: u32,
    /// The alignment of its arguments.
    pub kernarg_align: u32,
    /// The size of the local data share that is known statically, in bytes.
    pub group_bytes: u32,
    /// The private memory of a work item, in bytes.
    pub private_bytes: u32,
    /// The number of scalar registers.
    pub sgprs: u32,
    /// The number of vector registers, of both kinds.
    pub vgprs: u32,
    /// The number of accumulation registers.
    pub agprs: u32,
    /// The largest number of work items of a workgroup.
    pub max_workgroup_size: u32,
    /// The required extents of a workgroup, if there are any.
    pub required_workgroup: Option<[u32; 3]>,
    /// Whether it needs private memory of a size that the compiler does not know.
    pub dynamic_stack: bool,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelArg {
    /// The name, if it is known.
    pub name: Option<String>,
    /// The offset of the argument.
    pub offset: u32,
    /// The size of the argument, in bytes.
    pub size: u32,
    /// The kind of the argument.
    pub kind: ArgKind,
}

macro_rules! kinds {
    ($($variant:ident = $text:literal, $doc:literal;)*) => {
        /// The kind of an argument; hidden ones are filled in by the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ArgKind {
            $(#[doc = $doc] $variant,)*
        }

        impl ArgKind {
            /// All kinds.
            pub const ALL: &'static [ArgKind] = &[$(ArgKind::$variant,)*];

            /// The spelling in metadata.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(ArgKind::$variant => $text,)*
                }
            }
        }
    };
}

kinds! {
    ByValue = "by_value", "A value.";
    GlobalBuffer = "global_buffer", "An address of global memory.";
    DynamicShared = "dynamic_shared_pointer", "An address of the local data share, whose size the launch chooses.";
    Sampler = "sampler", "A sampler.";
    Image = "image", "An image.";
    Pipe = "pipe", "A pipe.";
    Queue = "queue", "A queue.";
    HiddenNone = "hidden_none", "Nothing.";
    HiddenGlobalOffsetX = "hidden_global_offset_x", "The first work item's number along x.";
    HiddenGlobalOffsetY = "hidden_global_offset_y", "Along y.";
    HiddenGlobalOffsetZ = "hidden_global_offset_z", "Along z.";
    HiddenPrintfBuffer = "hidden_printf_buffer", "Where printed text goes.";
    HiddenHostcallBuffer = "hidden_hostcall_buffer", "Where calls of the host go.";
    HiddenDefaultQueue = "hidden_default_queue", "The queue for kernels that are launched on the device.";
    HiddenCompletionAction = "hidden_completion_action", "What their end does.";
    HiddenMultigridSync = "hidden_multigrid_sync_arg", "A barrier of several grids.";
    HiddenHeap = "hidden_heap_v1", "Memory that kernels allocate from.";
    HiddenBlockCountX = "hidden_block_count_x", "Workgroups along x that are full.";
    HiddenBlockCountY = "hidden_block_count_y", "Along y.";
    HiddenBlockCountZ = "hidden_block_count_z", "Along z.";
    HiddenGroupSizeX = "hidden_group_size_x", "Work items of a workgroup along x.";
    HiddenGroupSizeY = "hidden_group_size_y", "Along y.";
    HiddenGroupSizeZ = "hidden_group_size_z", "Along z.";
    HiddenRemainderX = "hidden_remainder_x", "Work items of the last workgroup along x that is not full.";
    HiddenRemainderY = "hidden_remainder_y", "Along y.";
    HiddenRemainderZ = "hidden_remainder_z", "Along z.";
    HiddenGridDims = "hidden_grid_dims", "Axes of the grid.";
    HiddenPrivateBase = "hidden_private_base", "The upper half of addresses of private memory.";
    HiddenSharedBase = "hidden_shared_base", "The upper half of addresses of the local data share.";
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size", "Bytes of the local data share that the launch chose.";
    HiddenQueuePtr = "hidden_queue_ptr", "The queue.";
}

impl ArgKind {
    /// The kind with this spelling.
    #[must_use]
    pub fn from_text(text: &str) -> Option<ArgKind> {
        ArgKind::ALL.iter().copied().find(|k| k.text() == text)
    }

    /// Whether the runtime fills it in.
    #[must_use]
    pub fn is_hidden(self) -> bool {
        self.text().starts_with("hidden_")
    }
}

impl KernelMetadata {
    /// The metadata of a kernel with these resources.
    #[must_use]
    pub fn new(name: &str, r: &Resources, args: Vec<KernelArg>, max_workgroup_size: u32) -> KernelMetadata {
        KernelMetadata {
            name: name.to_owned(),
            symbol: format!("{name}.kd"),
            args,
            kernarg_bytes: r.kernarg_bytes,
            kernarg_align: 8,
            group_bytes: r.lds_bytes,
            private_bytes: 0,
            // As LLVM counts them: with `vcc` and the like, and with what is allocated for both kinds of vector registers.
            sgprs: r.sgprs + 6,
            vgprs: r.vgprs.max(1).next_multiple_of(4) * u32::from(r.agprs > 0)
                + r.vgprs * u32::from(r.agprs == 0)
                + r.agprs,
            agprs: r.agprs,
            max_workgroup_size,
            required_workgroup: None,
            dynamic_stack: false,
        }
    }
}

fn int(value: u32) -> Value {
    Value::Int(value.into())
}

fn map(pairs: Vec<(&str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(k, v)| (Value::text(k), v)).collect())
}

impl Metadata {
    /// The processor that the target names, without its features; `None` if the target is of another system.
    ///
    /// LLVM 19 spells it `amdgcn-amd-amdhsa--gfx942:xnack-`; the LLVM of Triton 3.9 has the processor's version in the
    /// architecture and a word for the environment: `amdgpu9.42-amd-amdhsa-unknown-gfx942`.
    #[must_use]
    pub fn processor(&self) -> Option<&str> {
        let mut parts = self.target.splitn(5, '-');
        let mut part = || parts.next().unwrap_or_default();
        let [architecture, vendor, system, environment, processor] = std::array::from_fn(|_| part());
        let named = architecture == "amdgcn" || architecture.starts_with("amdgpu");
        let ours = named && (vendor, system) == ("amd", "amdhsa") && matches!(environment, "" | "unknown");
        processor.split(':').next().filter(|p| ours && !p.is_empty())
    }

    /// Converts to a value, with the keys in the order that LLVM uses.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let kernels = self.kernels.iter().map(KernelMetadata::to_value).collect();
        map(vec![
            ("amdhsa.kernels", Value::Array(kernels)),
            ("amdhsa.target", Value::text(&self.target)),
            ("amdhsa.version", Value::Array(VERSION.map(Value::Int).to_vec())),
        ])
    }

    /// Converts from a value.
    ///
    /// # Errors
    /// [`ObjectError::Metadata`], with the missing or incorrect key.
    pub fn from_value(value: &Value) -> Result<Metadata, ObjectError> {
        let version = array(value, "amdhsa.version")?;
        let expected = VERSION.map(Value::Int);
        if version != expected {
            return wrong("`amdhsa.version` is not 1.2, which belongs to version 5");
        }
        let kernels = array(value, "amdhsa.kernels")?.iter().map(KernelMetadata::from_value);
        Ok(Metadata { target: text(value, "amdhsa.target")?, kernels: kernels.collect::<Result<_, _>>()? })
    }
}

impl KernelMetadata {
    fn to_value(&self) -> Value {
        let args = self.args.iter().map(KernelArg::to_value).collect();
        let required = self.required_workgroup.map(|r| (".reqd_workgroup_size", Value::Array(r.map(int).to_vec())));
        let mut pairs = vec![
            (".agpr_count", int(self.agprs)),
            (".args", Value::Array(args)),
            (".group_segment_fixed_size", int(self.group_bytes)),
            (".kernarg_segment_align", int(self.kernarg_align)),
            (".kernarg_segment_size", int(self.kernarg_bytes)),
            (".max_flat_workgroup_size", int(self.max_workgroup_size)),
            (".name", Value::text(&self.name)),
            (".private_segment_fixed_size", int(self.private_bytes)),
        ];
        pairs.extend(required);
        pairs.extend([
            (".sgpr_count", int(self.sgprs)),
            (".sgpr_spill_count", int(0)),
            (".symbol", Value::text(&self.symbol)),
            (".uses_dynamic_stack", Value::Bool(self.dynamic_stack)),
            (".vgpr_count", int(self.vgprs)),
            (".vgpr_spill_count", int(0)),
            (".wavefront_size", int(64)),
        ]);
        map(pairs)
    }

    fn from_value(value: &Value) -> Result<KernelMetadata, ObjectError> {
        let name = text(value, ".name")?;
        let n = |key| number(value, key);
        if n(".wavefront_size")? != 64 {
            return wrong(&format!("`.wavefront_size` of `{name}` is not 64"));
        }
        let args = match value.get(".args") {
            None => Vec::new(),
            Some(_) => array(value, ".args")?.iter().map(KernelArg::from_value).collect::<Result<_, _>>()?,
        };
        let required = match value.get(".reqd_workgroup_size") {
            None => None,
            Some(_) => {
                let extents = array(value, ".reqd_workgroup_size")?.iter().map(|v| v.as_u64().and_then(to_u32));
                let extents: Option<Vec<u32>> = extents.collect();
                let three = extents.and_then(|e| <[u32; 3]>::try_from(e).ok());
                Some(three.ok_or(ObjectError::Metadata { why: format!("`.reqd_workgroup_size` of `{name}`") })?)
            }
        };
        Ok(KernelMetadata {
            symbol: text(value, ".symbol")?,
            args,
            kernarg_bytes: n(".kernarg_segment_size")?,
            kernarg_align: n(".kernarg_segment_align")?,
            group_bytes: n(".group_segment_fixed_size")?,
            private_bytes: n(".private_segment_fixed_size")?,
            sgprs: n(".sgpr_count")?,
            vgprs: n(".vgpr_count")?,
            agprs: value.get(".agpr_count").map_or(Ok(0), |_| n(".agpr_count"))?,
            max_workgroup_size: n(".max_flat_workgroup_size")?,
            required_workgroup: required,
            dynamic_stack: value.get(".uses_dynamic_stack") == Some(&Value::Bool(true)),
            name,
        })
    }

    /// Checks that the metadata of a kernel agree with its descriptor and with each other.
    ///
    /// # Errors
    /// [`ObjectError::Kernel`].
    pub fn check(&self, d: &Descriptor) -> Result<(), ObjectError> {
        let refuse = |why: String| Err(ObjectError::Kernel { name: self.name.clone(), why });
        let sizes = [
            ("bytes of arguments", self.kernarg_bytes, d.kernarg_bytes),
            ("bytes of the local data share", self.group_bytes, d.group_segment_bytes),
            ("bytes of private memory", self.private_bytes, d.private_segment_bytes),
        ];
        for (what, here, there) in sizes {
            if here != there {
                return refuse(format!("its metadata say {here} {what}, its descriptor {there}"));
            }
        }
        if self.kernarg_bytes > MAX_KERNARG {
            return refuse(format!(
                "{} bytes of arguments: more than {MAX_KERNARG} are not believed",
                self.kernarg_bytes
            ));
        }
        if self.vgprs > d.vgprs() || self.agprs > d.vgprs().saturating_sub(d.arch_vgprs()).next_multiple_of(8) {
            return refuse(format!("its metadata say {} vector registers, its descriptor {}", self.vgprs, d.vgprs()));
        }
        if !(1..=1024).contains(&self.max_workgroup_size) {
            return refuse(format!("workgroups of up to {} work items", self.max_workgroup_size));
        }
        let mut end = 0;
        for arg in &self.args {
            let Some(next) = arg.offset.checked_add(arg.size).filter(|_| arg.offset >= end) else {
                return refuse(format!("the argument at {} lies over the one before", arg.offset));
            };
            if next > self.kernarg_bytes {
                return refuse(format!("the argument at {} ends behind the {} bytes", arg.offset, self.kernarg_bytes));
            }
            end = next;
        }
        Ok(())
    }
}

impl KernelArg {
    fn to_value(&self) -> Value {
        let mut pairs = Vec::new();
        if matches!(self.kind, ArgKind::GlobalBuffer) {
            pairs.push((".address_space", Value::text("global")));
        }
        if let Some(name) = &self.name {
            pairs.push((".name", Value::text(name)));
        }
        pairs.extend([
            (".offset", int(self.offset)),
            (".size", int(self.size)),
            (".value_kind", Value::text(self.kind.text())),
        ]);
        map(pairs)
    }

    fn from_value(value: &Value) -> Result<KernelArg, ObjectError> {
        let kind = text(value, ".value_kind")?;
        let unknown = || ObjectError::Metadata { why: format!("an argument is of the unknown kind `{kind}`") };
        Ok(KernelArg {
            name: value.get(".name").and_then(Value::as_str).map(str::to_owned),
            offset: number(value, ".offset")?,
            size: number(value, ".size")?,
            kind: ArgKind::from_text(&kind).ok_or_else(unknown)?,
        })
    }
}

fn wrong<T>(why: &str) -> Result<T, ObjectError> {
    Err(ObjectError::Metadata { why: why.to_owned() })
}

fn to_u32(value: u64) -> Option<u32> {
    u32::try_from(value).ok()
}

fn text(value: &Value, key: &str) -> Result<String, ObjectError> {
    let missing = || ObjectError::Metadata { why: format!("`{key}` is missing or no text") };
    value.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
}

fn number(value: &Value, key: &str) -> Result<u32, ObjectError> {
    let missing = || ObjectError::Metadata { why: format!("`{key}` is missing or no number of 32 bits") };
    value.get(key).and_then(Value::as_u64).and_then(to_u32).ok_or_else(missing)
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], ObjectError> {
    let missing = || ObjectError::Metadata { why: format!("`{key}` is missing or no array") };
    value.get(key).and_then(Value::as_array).ok_or_else(missing)
}
