//! The vector instructions that the loops of this crate may use: detected once per program, then passed to every loop.
//!
//! A loop is written over slices, for the compiler to vectorize. [`Isa::run`] calls it in a function that is compiled for
//! AVX2 and FMA, if the machine has them; on other architectures the baseline is used.

use crate::runtime::halves::F16c;
#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

/// The available instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Isa {
    #[cfg(target_arch = "x86_64")]
    v3: Option<V3>,
    f16c: Option<F16c>,
}

/// Whether `mul_add` is one instruction in code for the baseline.
pub(crate) const BASELINE_FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

impl Isa {
    /// Detects the instructions of this machine.
    pub(crate) fn detect() -> Self {
        Isa {
            #[cfg(target_arch = "x86_64")]
            v3: V3::try_new(),
            f16c: F16c::detect(),
        }
    }

    /// The instructions that convert `f16`, if the machine has them.
    #[inline]
    pub(crate) fn f16c(self) -> Option<F16c> {
        self.f16c
    }

    /// Whether the machine has AVX2.
    #[inline]
    pub(crate) fn has_avx2(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.v3.is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Calls `f` in a function whose loops are compiled for these instructions. Functions that `f` calls must be inlined to profit from it.
    #[inline]
    pub(crate) fn run<F: Loop>(self, f: F) {
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = self.v3 {
            v3.vectorize(WithFma(f));
            return;
        }
        f.run::<BASELINE_FMA>();
    }
}

impl Isa {
    /// Runs code that is written in vectors of any width.
    #[inline]
    pub(crate) fn with<F: pulp::WithSimd>(self, f: F) -> F::Output {
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = self.v3 {
            return pulp::Simd::vectorize(v3, f);
        }
        f.with_simd(pulp::Scalar128b)
    }
}

/// A loop that is compiled for several instruction sets. `FMA` states that `mul_add` is one instruction.
pub(crate) trait Loop {
    /// Runs it. Implementations are `#[inline(always)]`.
    fn run<const FMA: bool>(self);
}

/// Closures are loops that do not depend on `FMA`.
impl<F: FnOnce()> Loop for F {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self();
    }
}

#[cfg(target_arch = "x86_64")]
struct WithFma<F>(F);

#[cfg(target_arch = "x86_64")]
impl<F: Loop> pulp::NullaryFnOnce for WithFma<F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.run::<true>();
    }
}
