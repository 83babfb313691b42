//! Kernels as functions of C that take and give tensors of DLPack: NumPy, PyTorch and others call them without copies.
//!
//! [functions.py](../functions.py) has the Python side, which needs nothing but `ctypes`. A function returns 0, or 1 and a message. It owns the
//! structures that it is given, also after an error, and sets the pointers to them to null.

use std::ffi::c_char;
use titan::dispatch;
use titan::dlpack::{self, DLManagedTensorVersioned, Managed};
use titan::prelude::*;
use titan::{DynTensor, Result};

/// `y = softmax(x)` along the last axis, one row per program.
#[titan::kernel(instances(T in [f64, f32, f16], W in [1024]), grid(M), require(N <= W))]
fn softmax<T: Float, const W: i32>(#[shape(M, N)] x: &Tensor<T, 2>, #[shape(M, N)] y: &mut Tensor<T, 2>) {
    let at = [program_id(0), 0];
    let within = (iota::<W>() < N).broadcast::<0, 1>();
    let v = select(within, x.load_tile::<1, W>(at).cast::<f32>(), f32::NEG_INFINITY);
    let e = (v - v.reduce_max::<1>().col()).exp();
    y.store_tile(at, (e / e.reduce_sum::<1>().col()).cast());
}

/// `x = 3 · x`, where `x` is stored.
#[titan::kernel(instances(T in [f64, f32, f16, i64, i32, u8]), grid(cdiv(M, 16), cdiv(N, 64)))]
fn triple<T: Num>(#[shape(M, N)] x: &mut Tensor<T, 2>) {
    let at = [program_id(0), program_id(1)];
    let v = x.load_tile::<16, 64>(at);
    x.store_tile(at, v + v + v);
}

/// Writes an error as text that ends with a zero byte, and returns the code.
///
/// # Safety
/// `text` has room for `room` bytes.
unsafe fn code(outcome: Result<()>, text: *mut c_char, room: usize) -> i32 {
    let Err(error) = outcome else { return 0 };
    let message = error.to_string();
    let len = message.len().min(room.saturating_sub(1));
    if room > 0 {
        // SAFETY: the caller's; the message and the zero fit.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), text.cast(), len);
            text.add(len).write(0);
        }
    }
    1
}

/// The softmax of a matrix, in a new tensor at `out`.
///
/// # Safety
/// `x` points to a structure of DLPack that nobody else owns, as [`Managed::take`] asks for; `out` to room for a pointer, and `text` to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn titan_softmax(
    x: &mut *mut DLManagedTensorVersioned,
    out: &mut *mut DLManagedTensorVersioned,
    text: *mut c_char,
    room: usize,
) -> i32 {
    let mut run = || -> Result<()> {
        // SAFETY: the caller's.
        let x = unsafe { Managed::take(x) }?.into_view()?;
        let mut y = DynTensor::zeros(x.device(), x.elem(), x.shape())?;
        dispatch!(softmax::<_, 1024>(&x, &mut y)).sync()?;
        *out = dlpack::export(y)?.into_raw();
        Ok(())
    };
    // SAFETY: the caller's.
    unsafe { code(run(), text, room) }
}

/// Multiplies the elements of a matrix by 3 where they are stored.
///
/// # Safety
/// As of [`titan_softmax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn titan_triple(x: &mut *mut DLManagedTensorVersioned, text: *mut c_char, room: usize) -> i32 {
    let mut run = || -> Result<()> {
        // SAFETY: the caller's.
        let mut x = unsafe { Managed::take(x) }?.into_tensor()?;
        dispatch!(triple::<_>(&mut x)).sync()
    };
    // SAFETY: the caller's.
    unsafe { code(run(), text, room) }
}
