//! The list of the kernels in an executable, for tools and for inspection of the embedded code.
//!
//! Each instance registers itself when the program starts. Code that the linker removes is not in the list, such as a library crate
//! none of whose functions are used.

use super::kernel::KernelRef;
use crate::error::{Location, Result};
use std::fmt;
use titan_core::artifact::Variant;
use titan_core::ir::{HostNames, Loc};

/// An instance, as the expansion of the macro registers it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Listed(pub &'static KernelRef);

inventory::collect!(Listed);

/// An instance of a kernel, and the code that is embedded for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// The name with the instance: `gemm::<f16, 64, 64, 32>`.
    pub name: String,
    /// The place of the kernel in the source.
    pub location: Location,
    /// The number of bytes embedded for it. The code is compressed; decompressed, as in `variants`, it is several times as large.
    pub bytes: usize,
    /// The embedded variants, in the order in which a launch tries them.
    pub variants: Vec<VariantInfo>,
    /// The targets without code, with the reason: those that `targets(..)` excludes, and those without `targets(..)` for which the kernel cannot be
    /// compiled, where launches report it; and those whose devices run the code for an older target, as this kernel has none that only they can
    /// run. Where a rule of TITAN's is broken, the reason begins with its code: `[T0902] ..`.
    pub refused: Vec<(String, String)>,
}

/// The code of a kernel for one target, under assumptions about the arguments. `{:?}` prints only the length of the code.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantInfo {
    /// The target: `cpu`, `sm_80`, `sm_90a`, `gfx942`.
    pub target: String,
    /// The code: text form for `cpu`, PTX for NVIDIA, a code object for AMD.
    pub code: Vec<u8>,
    /// The number of threads of a program; 0 where that has no meaning.
    pub threads: u32,
    /// The shared memory of a program, in bytes.
    pub shared_bytes: u32,
    /// The registers of the code, where the compiler assigns them: for AMD's GPUs, but not for PTX, whose registers the driver assigns.
    pub registers: Option<Registers>,
    /// Its assumptions, which a launch checks: sentences about the kernel's parameters, without stops. The last variant that a device
    /// runs has none.
    pub assumptions: Vec<String>,
    /// Notes of the compiler about its choices, and about what costs time at which line of the source:
    /// `src/kernels.rs:12:9: 2-way bank conflicts in shared memory`.
    pub notes: Vec<String>,
}

/// The registers that the code of a kernel uses, each of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Registers {
    /// The scalar registers of a wave (SGPRs).
    pub scalar: u32,
    /// The vector registers of a thread (VGPRs).
    pub vector: u32,
    /// The accumulation registers of a thread (AGPRs), which also hold what does not fit in the others.
    pub accumulation: u32,
    /// The memory of a thread for what fits in no register, in bytes (scratch).
    pub scratch_bytes: u32,
}

impl Registers {
    /// The registers in the configuration of a variant, if it states them.
    fn of(variant: &Variant) -> Option<Registers> {
        let number = |name: &str| variant.config.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.parse().ok());
        Some(Registers {
            scalar: number("sgprs")?,
            vector: number("vgprs")?,
            accumulation: number("agprs")?,
            scratch_bytes: number("scratch")?,
        })
    }
}

impl VariantInfo {
    /// The code as text, if the target's is text: tile IR for `cpu`, PTX for NVIDIA.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.code).ok()
    }
}

impl fmt::Debug for VariantInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VariantInfo { target, code, threads, shared_bytes, registers, assumptions, notes } = self;
        f.debug_struct("VariantInfo")
            .field("target", target)
            .field("code", &format_args!("{} bytes", code.len()))
            .field("threads", threads)
            .field("shared_bytes", shared_bytes)
            .field("registers", registers)
            .field("assumptions", assumptions)
            .field("notes", notes)
            .finish()
    }
}

/// The kernel instances of this program, by file, line and name.
///
/// # Errors
/// If the compiled form of one cannot be read.
///
/// ```
/// # use titan::prelude::*;
/// #[titan::kernel]
/// fn double(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
///     let n = program_id(0);
///     y.store_tile([n], x.load_tile::<64>([n]) * 2.0);
/// }
///
/// let kernels = titan::kernels()?;
/// let double = kernels.iter().find(|k| k.name == "double");
/// println!("{double:#?}");
/// let of_cpu = double.and_then(|k| k.variants.iter().find(|v| v.target == "cpu"));
/// assert!(of_cpu.and_then(|v| v.text()).is_some_and(|ir| ir.contains("kernel @double")));
/// # Ok::<(), titan::Error>(())
/// ```
pub fn kernels() -> Result<Vec<KernelInfo>> {
    let mut all = inventory::iter::<Listed>.into_iter().map(|k| info(k.0)).collect::<Result<Vec<_>>>()?;
    let place = |k: &KernelInfo| (k.location.file.clone(), k.location.line, k.name.clone());
    all.sort_by_cached_key(place);
    Ok(all)
}

fn info(kernel: &KernelRef) -> Result<KernelInfo> {
    let (name, location, artifact) = kernel.embedded()?;
    let sig = &kernel.loaded()?.kernel.sig;
    let variants = artifact.variants.into_iter().map(|v| variant(v, sig, |loc| kernel.location(loc))).collect();
    let bytes = kernel.bytes();
    Ok(KernelInfo { name, location, bytes, variants, refused: artifact.refused })
}

/// A variant for readers; `place` maps locations relative to the kernel to locations in the source.
fn variant(v: Variant, names: &dyn HostNames, place: impl Fn(Loc) -> Location) -> VariantInfo {
    let conflicts = v.conflicts.iter().map(|c| format!("{}: {c}", place(c.loc)));
    VariantInfo {
        registers: Registers::of(&v),
        target: v.target,
        code: v.payload,
        threads: v.threads,
        shared_bytes: v.shared_bytes,
        assumptions: v.assumptions.iter().map(|a| a.sentence(names)).collect(),
        notes: v.notes.into_iter().chain(conflicts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use titan_core::artifact::{Assumption, BankConflict};

    #[test]
    fn what_is_shown_of_a_variant_is_for_people() {
        let code = b"kernel @k() { return }".to_vec();
        let names = titan_core::text::parse_one("kernel @k() grid(1) { return }").unwrap().sig;
        let place = |loc: Loc| Location { file: "src/kernels.rs".to_owned(), line: 9 + loc.line, column: loc.column };
        let cpu = Variant { target: "cpu".to_owned(), payload: code, ..Variant::default() };
        let shown = variant(cpu, &names, place);
        assert_eq!(shown.text(), Some("kernel @k() { return }"));
        let text = format!("{shown:#?}");
        assert!(text.contains("code: 22 bytes,\n") && text.lines().count() == 9, "{text}");
        let conflicts = vec![BankConflict { loc: Loc { line: 3, column: 5 }, degree: 4 }];
        let registers = [("sgprs", "20"), ("vgprs", "9"), ("agprs", "0"), ("scratch", "0")];
        let binary = Variant {
            payload: vec![0xFF, 0xFE],
            config: registers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            assumptions: vec![Assumption::Index32],
            conflicts,
            ..Variant::default()
        };
        let binary = variant(binary, &names, place);
        assert_eq!(binary.text(), None);
        let registers = Registers { scalar: 20, vector: 9, accumulation: 0, scratch_bytes: 0 };
        assert_eq!((shown.registers, binary.registers), (None, Some(registers)));
        assert_eq!(binary.assumptions, ["every tensor has offsets of less than 2^31 elements"]);
        assert_eq!(binary.notes, ["src/kernels.rs:12:5: 4-way bank conflicts in shared memory"]);
    }
}
