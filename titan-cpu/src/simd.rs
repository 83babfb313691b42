//! Which vector instructions the loops of this crate may use: found once per program, then passed to every loop.
//!
//! A loop is written over slices, for the compiler to vectorize. [`Isa::run`] calls it in a function that is compiled for
//! AVX2 and FMA, if the machine has them; on other architectures the baseline is already what there is.

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

/// The instructions at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Isa {
    #[cfg(target_arch = "x86_64")]
    v3: Option<V3>,
}

/// Whether `mul_add` is one instruction in code for the baseline.
pub(crate) const BASELINE_FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

impl Isa {
    /// What this machine has.
    pub(crate) fn detect() -> Self {
        Isa {
            #[cfg(target_arch = "x86_64")]
            v3: V3::try_new(),
        }
    }

    /// Calls `f` where its loops are compiled for these instructions. What `f` calls must be inlined to gain from it.
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

/// A loop to be compiled for several instruction sets. `FMA` says that `mul_add` is one instruction.
pub(crate) trait Loop {
    /// Runs it. Implementations are `#[inline(always)]`.
    fn run<const FMA: bool>(self);
}

/// Loops that do not care about `FMA` are closures.
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
