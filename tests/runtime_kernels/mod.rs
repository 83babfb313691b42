//! Kernels for the tests of the runtime, as the macro would embed them.
#![allow(dead_code, unused_imports, reason = "every test program uses some of them")]

use titan::{AsTensorMut, Launch, Tensor};

macro_rules! kernel {
    ($name:ident, $source:literal) => {{
        static KERNEL: titan::__private::KernelRef =
            titan::__private::KernelRef::new(stringify!($name), $source.as_bytes(), "src/kernels.rs", [10, 8]);
        &KERNEL
    }};
}
pub(crate) use kernel;

/// `y[p] = v`
pub(crate) fn fill(y: &mut impl AsTensorMut<Tensor<f32, 1>>, v: f32) -> Launch<'_> {
    let kernel = kernel!(
        fill,
        "kernel @fill(%y: mut tensor<f32>[N], %v: f32) grid(N) {
            %p = program_id<0> : i32
            set %y[%p], %v
            return
        }"
    );
    Launch::new(kernel, vec![y.as_tensor_mut().into(), v.into()])
}

/// `y[p] = v`, after `spins` additions.
pub(crate) fn slow_fill(y: &mut impl AsTensorMut<Tensor<f32, 1>>, v: f32, spins: i32) -> Launch<'_> {
    let kernel = kernel!(
        slow_fill,
        "kernel @slow_fill(%y: mut tensor<f32>[N], %v: f32, %n: i32) grid(N) {
            %p = program_id<0> : i32
            %lo = const 0 : i32
            %step = const 1 : i32
            %zero = const 0.0 : f32
            %sum = for %i = %lo to %n step %step carry(%acc = %zero) : f32 {
                %next = add %acc, %v : f32
                continue<0> %next
            }
            %none = mul %sum, %zero : f32
            %out = add %none, %v : f32
            set %y[%p], %out
            return
        }"
    );
    Launch::new(kernel, vec![y.as_tensor_mut().into(), v.into(), spins.into()])
}

/// `y[p] = x[p] + v`
pub(crate) fn add<'a>(x: &'a Tensor<f32, 1>, y: &'a mut impl AsTensorMut<Tensor<f32, 1>>, v: f32) -> Launch<'a> {
    let kernel = kernel!(
        add,
        "kernel @add(%x: in tensor<f32>[N], %y: mut tensor<f32>[N], %v: f32) grid(N) {
            %p = program_id<0> : i32
            %a = get %x[%p] : f32
            %b = add %a, %v : f32
            set %y[%p], %b
            return
        }"
    );
    Launch::new(kernel, vec![x.into(), y.as_tensor_mut().into(), v.into()])
}

/// `y[p] += x[p]`, `times` times, in a grid with so many programs along its second axis.
pub(crate) fn accumulate<'a>(x: &'a Tensor<f32, 1>, y: &'a mut Tensor<f32, 1>, times: i32) -> Launch<'a> {
    let kernel = kernel!(
        accumulate,
        "kernel @accumulate(%x: in tensor<f32>[N], %y: mut tensor<f32>[N], %n: i32) grid(N, %n) {
            %p = program_id<0> : i32
            %a = get %x[%p] : f32
            %v = splat %a : tile<1xf32>
            atomic_add_tile %y[%p], %v
            return
        }"
    );
    Launch::new(kernel, vec![x.into(), y.into(), times.into()])
}

/// `y[p] = y[p] * v`
pub(crate) fn scale(y: &mut impl AsTensorMut<Tensor<f32, 1>>, v: f32) -> Launch<'_> {
    let kernel = kernel!(
        scale,
        "kernel @scale(%y: mut tensor<f32>[N], %v: f32) grid(N) {
            %p = program_id<0> : i32
            %a = get %y[%p] : f32
            %b = mul %a, %v : f32
            set %y[%p], %b
            return
        }"
    );
    Launch::new(kernel, vec![y.as_tensor_mut().into(), v.into()])
}

/// `a[p] = v; b[p] = -v`
pub(crate) fn fill_two<'a>(
    a: &'a mut impl AsTensorMut<Tensor<f32, 1>>,
    b: &'a mut impl AsTensorMut<Tensor<f32, 1>>,
    v: f32,
) -> Launch<'a> {
    let kernel = kernel!(
        fill_two,
        "kernel @fill_two(%a: mut tensor<f32>[N], %b: mut tensor<f32>[N], %v: f32) grid(N) {
            %p = program_id<0> : i32
            %m = const -1.0 : f32
            %w = mul %v, %m : f32
            set %a[%p], %v
            set %b[%p], %w
            return
        }"
    );
    Launch::new(kernel, vec![a.as_tensor_mut().into(), b.as_tensor_mut().into(), v.into()])
}

/// `a[p] = v`; `b`, of another length, is only named.
pub(crate) fn fill_beside<'a>(a: &'a mut Tensor<f32, 1>, b: &'a mut Tensor<f32, 1>, v: f32) -> Launch<'a> {
    let kernel = kernel!(
        fill_beside,
        "kernel @fill_beside(%a: mut tensor<f32>[N], %b: mut tensor<f32>[M], %v: f32) grid(N) {
            %p = program_id<0> : i32
            set %a[%p], %v
            %m = dim<0> %b : i32
            %in = lt %p, %m : bool
            if %in {
                set %b[%p], %v
                yield
            } else {
                yield
            }
            return
        }"
    );
    Launch::new(kernel, vec![a.into(), b.into(), v.into()])
}

/// Adds 1 to every element of a matrix.
pub(crate) fn add_one<'a>(x: &'a Tensor<f32, 2>, y: &'a mut impl AsTensorMut<Tensor<f32, 2>>) -> Launch<'a> {
    let kernel = kernel!(
        add_one,
        "kernel @add_one(%x: in tensor<f32>[M, N], %y: mut tensor<f32>[M, N]) grid(M, N) {
            %i = program_id<0> : i32
            %j = program_id<1> : i32
            %one = const 1.0 : f32
            %a = get %x[%i, %j] : f32
            %b = add %a, %one : f32
            set %y[%i, %j], %b
            return
        }"
    );
    Launch::new(kernel, vec![x.into(), y.as_tensor_mut().into()])
}

/// Writes 1, and traps in program `at` and those after it.
pub(crate) fn trap_at(y: &mut impl AsTensorMut<Tensor<f32, 1>>, at: i32) -> Launch<'_> {
    let kernel = kernel!(
        trap_at,
        "kernel @trap_at<T = f32>(%y: mut tensor<f32>[N], %at: i32) grid(N) {
            %p = program_id<0> : i32
            %ok = lt %p, %at : bool
            assert %ok, \"the sky is falling\" @3:9
            %one = const 1.0 : f32
            set %y[%p], %one
            return
        }"
    );
    Launch::new(kernel, vec![y.as_tensor_mut().into(), at.into()])
}

/// `y[p] = x[p]`, and a trap.
pub(crate) fn copy_and_trap<'a>(x: &'a Tensor<f32, 1>, y: &'a mut impl AsTensorMut<Tensor<f32, 1>>) -> Launch<'a> {
    let kernel = kernel!(
        copy_and_trap,
        "kernel @copy_and_trap(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %a = get %x[%p] : f32
            set %y[%p], %a
            %zero = const 0 : i32
            %ok = lt %p, %zero : bool
            assert %ok, \"always\" @3:9
            return
        }"
    );
    Launch::new(kernel, vec![x.into(), y.as_tensor_mut().into()])
}

/// `y[p]` is 1 if `x` is there.
pub(crate) fn is_present<'a>(x: Option<&'a Tensor<f32, 1>>, y: &'a mut impl AsTensorMut<Tensor<f32, 1>>) -> Launch<'a> {
    let kernel = kernel!(
        is_present,
        "kernel @is_present(%y: mut tensor<f32>[N], %x: in optional tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %is = present %x : bool
            %v = cast %is : f32
            set %y[%p], %v
            return
        }"
    );
    Launch::new(kernel, vec![y.as_tensor_mut().into(), x.into()])
}
