//! `dispatch!`: an instance of a kernel, or an arm of generic code, chosen by values at run time.
//!
//! The macro of `titan-macros` does the work; this one tells it where the crate is. Deliberately absent: a choice by speed.

/// Launches the instance of a kernel that has these values, or runs generic code for an element type that is known at run time.
///
/// | form | value |
/// |---|---|
/// | `dispatch!(kernel::<elem, 64, flag>(args..))` | a [`Launch`](crate::Launch) of the instance with these values |
/// | `dispatch!(kernel[instance](args..))` | a launch of an [`Instance`](crate::Instance), one of `kernel::instances()` |
/// | `dispatch!(kernel::reference::<..>(args..))`, `dispatch!(kernel::reference[instance](args..))` | the result of the reference, a `titan::Result<()>` |
/// | `dispatch!(match elem { T in [f16, bf16] => code })` | `titan::Result` of the value of `code`, in which `T` is the type |
///
/// Between `::<` and `>` are values, in the order of the kernel's generic parameters: an [`ElemType`](crate::ElemType), such as `x.elem()`,
/// `T::ELEM` in generic code, or plainly `f16`; an `i32`; a `bool`. Those with `<`, `>` or `,` are put in braces. `_` in place of an
/// element type is that of the first tensor argument with this element type parameter. The arguments are those of a launch; where the
/// element type depends on the instance, a tensor of any element type, and everywhere a [`DynTensor`](crate::DynTensor). The launch checks
/// them.
///
/// # Errors
/// If no instance has these values, the launch is [`Error::NoInstance`](crate::Error::NoInstance), which lists the instances. If no arm is
/// for the element type, the value is [`Error::NoArm`](crate::Error::NoArm).
///
/// ```
/// use titan::prelude::*;
/// use titan::{DynTensor, dispatch};
///
/// #[titan::kernel(instances(T in [f16, f32], BN in [64, 256], TWICE in [false, true]))]
/// fn square<T: Float, const BN: i32, const TWICE: bool>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
///     let p = program_id(0);
///     let v = x.load_tile::<BN>([p]);
///     y.store_tile([p], if TWICE { v * v * v * v } else { v * v });
/// }
///
/// # fn main() -> titan::Result<()> {
/// let dev = Device::cpu();
/// let (x, mut y) = (dev.full([100], 3.0f32)?, dev.zeros::<f32, 1>([100])?);
/// let width = if x.len() < 64 { 64 } else { 256 };
/// dispatch!(square::<_, width, false>(&x, &mut y)).sync()?;
/// assert_eq!(y.to_vec()?, [9.0f32; 100]);
///
/// let error = dispatch!(square::<_, 128, false>(&x, &mut y)).sync().unwrap_err();
/// assert!(error.to_string().starts_with("[T1101] kernel `square` has no instance `square::<f32, 128, false>`"));
///
/// // From a run-time element type to generic code: `T` is `f32` here.
/// let x = DynTensor::from(x);
/// let sum = dispatch!(match x.elem() {
///     T in [f16, f32] => x.view::<T, 1>()?.to_vec()?.into_iter().map(|v| v.cast::<f64>()).sum::<f64>(),
/// })?;
/// assert_eq!(sum, 300.0);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! dispatch {
    ($($tokens:tt)*) => {
        $crate::dispatch_by_value!($crate; $($tokens)*)
    };
}
