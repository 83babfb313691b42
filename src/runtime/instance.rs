//! The declared instances of a kernel as data, and the choice of one by the values of its generic parameters.
//!
//! The expansion of a kernel lists its instances in the order of `instances(..)`. A launch from generic host code looks its instance up
//! while that code is compiled, `dispatch!` while it runs; both read the same list. Deliberately absent: a choice by speed, and arguments
//! whose types differ between instances, which only the launch checks.

use super::arg::LaunchArg;
use super::kernel::KernelRef;
use crate::error::{Error, Result};
use std::fmt;
use std::hash::{Hash, Hasher};
use titan_core::ir::Elem as ElemType;

/// The value of one generic parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GenericArg {
    /// An element type, the value of `T: Float` and the like.
    Elem(ElemType),
    /// The value of a `const BM: i32`.
    Int(i32),
    /// The value of a `const CAUSAL: bool`.
    Bool(bool),
}

impl GenericArg {
    /// The key of values followed by this one: a hash as of FNV.
    const fn mixed_into(self, key: u64) -> u64 {
        let value = match self {
            GenericArg::Elem(elem) => elem as u64,
            GenericArg::Int(value) => value.cast_unsigned() as u64,
            GenericArg::Bool(value) => value as u64,
        };
        (key ^ value ^ 0xCBF2_9CE4_8422_2325).wrapping_mul(0x0100_0000_01B3)
    }

    /// `==` in constants.
    const fn is(self, other: GenericArg) -> bool {
        match (self, other) {
            (GenericArg::Elem(a), GenericArg::Elem(b)) => a as u8 == b as u8,
            (GenericArg::Int(a), GenericArg::Int(b)) => a == b,
            (GenericArg::Bool(a), GenericArg::Bool(b)) => a == b,
            (GenericArg::Elem(_) | GenericArg::Int(_) | GenericArg::Bool(_), _) => false,
        }
    }
}

impl fmt::Display for GenericArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GenericArg::Elem(elem) => elem.fmt(f),
            GenericArg::Int(value) => value.fmt(f),
            GenericArg::Bool(value) => value.fmt(f),
        }
    }
}

/// A declared instance of a kernel: the values of its generic parameters. `kernel::instances()` lists those of `kernel`, in the order of
/// its `instances(..)`; `dispatch!(kernel[instance](..))` launches one.
///
/// ```
/// use titan::ElemType;
/// use titan::prelude::*;
///
/// #[titan::kernel(instances(T in [f16, bf16], BN in [64, 256]))]
/// fn double<T: Float, const BN: i32>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
///     let p = program_id(0);
///     y.store_tile([p], x.load_tile::<BN>([p]) + x.load_tile::<BN>([p]));
/// }
///
/// let names: Vec<String> = double::instances().iter().map(ToString::to_string).collect();
/// assert_eq!(names, ["double::<f16, 64>", "double::<f16, 256>", "double::<bf16, 64>", "double::<bf16, 256>"]);
/// let widest = double::instances().iter().filter(|i| i.elem("T") == Some(ElemType::Bf16)).max_by_key(|i| i.int("BN"));
/// assert_eq!(widest.and_then(|i| i.int("BN")), Some(256));
/// ```
#[derive(Clone, Copy)]
pub struct Instance {
    name: &'static str,
    args: &'static [(&'static str, GenericArg)],
    /// A number for the values. Others mostly have another one.
    key: u64,
    kernel: fn() -> &'static KernelRef,
}

impl Instance {
    /// An instance with its name, `gemm::<f16, 64>`, and the values of its parameters. Called by expansions of the macro.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        name: &'static str,
        args: &'static [(&'static str, GenericArg)],
        kernel: fn() -> &'static KernelRef,
    ) -> Self {
        let (mut key, mut i) = (0, 0);
        while i < args.len() {
            key = args[i].1.mixed_into(key);
            i += 1;
        }
        Instance { name, args, key, kernel }
    }

    /// The name of the kernel with the values: `gemm::<f16, 64>`; [`KernelInfo`](crate::KernelInfo) has the same name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The generic parameters with their values, in the order of the kernel's.
    #[must_use]
    pub const fn args(&self) -> &'static [(&'static str, GenericArg)] {
        self.args
    }

    /// The value of a generic parameter; `None` if the kernel has none of this name.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<GenericArg> {
        self.args.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// The value of an element type parameter; `None` if the kernel has none of this name.
    #[must_use]
    pub fn elem(&self, name: &str) -> Option<ElemType> {
        match self.arg(name)? {
            GenericArg::Elem(elem) => Some(elem),
            GenericArg::Int(_) | GenericArg::Bool(_) => None,
        }
    }

    /// The value of a `const N: i32`; `None` if the kernel has none of this name.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i32> {
        match self.arg(name)? {
            GenericArg::Int(value) => Some(value),
            GenericArg::Elem(_) | GenericArg::Bool(_) => None,
        }
    }

    /// The value of a `const FLAG: bool`; `None` if the kernel has none of this name.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.arg(name)? {
            GenericArg::Bool(value) => Some(value),
            GenericArg::Elem(_) | GenericArg::Int(_) => None,
        }
    }

    pub(crate) fn kernel(&self) -> &'static KernelRef {
        (self.kernel)()
    }

    /// Whether these are its values.
    const fn has(&self, values: &[GenericArg]) -> bool {
        if self.args.len() != values.len() {
            return false;
        }
        let mut i = 0;
        while i < values.len() {
            if !self.args[i].1.is(values[i]) {
                return false;
            }
            i += 1;
        }
        true
    }
}

impl PartialEq for Instance {
    fn eq(&self, other: &Instance) -> bool {
        self.name == other.name && self.args == other.args
    }
}

impl Eq for Instance {}

impl Hash for Instance {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, self.args).hash(state);
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instance").field(&self.name).finish()
    }
}

/// A fingerprint of the embedded code of instances, in their order: FNV-1a of 128 bits. It tells changes apart, and is not made to withstand
/// whoever looks for two sources with the same one.
pub(crate) fn fingerprint(instances: &[&'static Instance]) -> String {
    const START: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
    const FACTOR: u128 = 0x0100_0000_0000_0000_0000_013B;
    let mut hash = START;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(FACTOR);
        }
    };
    for instance in instances {
        let code = instance.kernel().code();
        // With lengths, so that no two lists are the same bytes.
        for part in [instance.name().as_bytes(), code] {
            add(&(part.len() as u64).to_le_bytes());
            add(part);
        }
    }
    format!("{hash:032x}")
}

/// A kernel with its declared instances, as the expansion of the macro implements it for the type of the kernel's name.
#[doc(hidden)]
pub trait Declares {
    /// The name of the kernel.
    const NAME: &'static str;
    /// The instances, in the order of `instances(..)`.
    const INSTANCES: &'static [Instance];
    /// Their keys with their positions, in the order of the keys: see [`by_key`].
    const BY_KEY: &'static [(u64, usize)];

    /// Runs the reference of instance `nth`. It is generic so that its code is generated only where it is called.
    ///
    /// # Errors
    /// As a launch, and the first trap.
    fn reference<const RUN: bool>(nth: usize, args: Vec<LaunchArg<'_>>) -> Result<()>;
}

/// The keys of a kernel's `N` instances with their positions, in the order of the keys. Called by expansions of the macro.
#[doc(hidden)]
#[must_use]
pub const fn by_key<const N: usize>(instances: &[Instance]) -> [(u64, usize); N] {
    let mut sorted = [(0, 0); N];
    let mut n = 0;
    while n < N {
        let (key, mut at) = (instances[n].key, n);
        while at > 0 && sorted[at - 1].0 > key {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = (key, n);
        n += 1;
    }
    sorted
}

/// The position of the instance with these values. Called by expansions of the macro, in constants too.
#[doc(hidden)]
#[must_use]
pub const fn position<K: Declares>(values: &[GenericArg]) -> Option<usize> {
    let (mut key, mut i) = (0, 0);
    while i < values.len() {
        key = values[i].mixed_into(key);
        i += 1;
    }
    // The first instance whose key is not below, by bisection.
    let (mut low, mut high) = (0, K::BY_KEY.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if K::BY_KEY[middle].0 < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while low < K::BY_KEY.len() && K::BY_KEY[low].0 == key {
        let nth = K::BY_KEY[low].1;
        if K::INSTANCES[nth].has(values) {
            return Some(nth);
        }
        low += 1;
    }
    None
}

/// The error for values that no instance of the kernel has.
#[cold]
pub(crate) fn missing<K: Declares>(values: &[GenericArg]) -> Error {
    /// The number of instances that a message shows.
    const SHOWN: usize = 16;
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let all = K::INSTANCES;
    let mut declared: Vec<String> = all.iter().take(SHOWN).map(|i| format!("`{i}`")).collect();
    if all.len() > SHOWN {
        declared.push(format!("and {} more, which `{}::instances()` lists", all.len() - SHOWN, K::NAME));
    }
    let asked = format!("{}::<{}>", K::NAME, values.join(", "));
    Error::NoInstance { kernel: K::NAME.to_owned(), asked, declared: declared.join(", ") }
}

/// Runs the reference of the instance at a position, or of the one with these values. Called by expansions of the macro.
///
/// # Errors
/// If there is no such instance; as a launch, and the first trap.
#[doc(hidden)]
pub fn run_reference<K: Declares>(nth: Option<usize>, values: &[GenericArg], args: Vec<LaunchArg<'_>>) -> Result<()> {
    K::reference::<true>(nth.ok_or_else(|| missing::<K>(values))?, args)
}

/// The value of an element type parameter in `dispatch!`: an element type, or `_`, which takes that of an argument.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`dispatch!` takes an element type here, not a `{Self}`",
    label = "not an element type",
    note = "write `f16` or the like, a value such as `x.elem()`, or `_` for that of the tensor argument"
)]
pub trait ElemChoice {
    /// The value; for `_` the element type of the argument that has this parameter as its element type.
    fn or(self, of_argument: ElemType) -> ElemType;
}

#[diagnostic::do_not_recommend]
impl ElemChoice for ElemType {
    fn or(self, _: ElemType) -> ElemType {
        self
    }
}

/// `dispatch!` writes `..` for `_`.
#[diagnostic::do_not_recommend]
impl ElemChoice for std::ops::RangeFull {
    fn or(self, of_argument: ElemType) -> ElemType {
        of_argument
    }
}

/// The error of `dispatch!(match ..)` for an element type that is not in its list. Called by expansions of the macro.
#[doc(hidden)]
#[must_use]
#[cold]
pub fn no_arm(found: ElemType, listed: &[ElemType]) -> Error {
    let listed: Vec<String> = listed.iter().map(|e| format!("`{e}`")).collect();
    Error::NoArm { found, listed: listed.join(", ") }
}
