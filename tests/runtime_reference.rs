//! The glue of `kernel::reference`: checks, copies, traps.

#![expect(clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

use titan::__private::{HostTensor, KernelRef, Reference};
use titan::lang;
use titan::{AsTensorMut, Device, Error, Result, Tensor};

static SHIFT: KernelRef = KernelRef::new(
    "shift",
    b"kernel @shift(%x: in tensor<f32>[N], %b: in optional tensor<f32>[N], %y: mut tensor<f32>[N]) grid(N) {
        %p = program_id<0> : i32
        %one = const 1.0 : f32
        set %y[%p], %one
        return
    }",
    file!(),
    [1, 8],
);

/// The body as a kernel's shadow has it.
fn shift(x: &lang::Tensor<f32, 1>, b: Option<&lang::Tensor<f32, 1>>, y: &mut lang::Tensor<f32, 1>) {
    let i = lang::program_id(0);
    let by = b.map_or(0.0, |b| b.get([i]));
    y.set([i], x.get([i + 1 - 1]) + by);
    if by < 0.0 {
        y.set([i + 100], 0.0);
    }
}

/// What the macro's expansion does.
fn reference(x: &Tensor<f32, 1>, b: Option<&Tensor<f32, 1>>, y: &mut impl AsTensorMut<Tensor<f32, 1>>) -> Result<()> {
    let run = Reference::new(&SHIFT, vec![x.into(), b.into(), y.as_tensor_mut().into()])?;
    let x_host = run.tensor::<f32, 1>(0)?;
    let b_host = run.optional::<f32, 1>(1)?;
    let mut y_host = run.tensor::<f32, 1>(2)?;
    let ended = run.run(&[0], || shift(x_host.tensor(), b_host.as_ref().map(HostTensor::tensor), y_host.tensor_mut()));
    run.copy_back(2, y_host)?;
    ended
}

#[test]
fn a_reference_runs_on_copies_and_writes_back() {
    let dev = Device::best().unwrap();
    let x = dev.from_fn([3, 2], |[i, j]| (10 * i + j) as f32).unwrap();
    let b = dev.full([3], 0.5f32).unwrap();
    let mut y = dev.zeros([3, 2]).unwrap();
    let column = x.index::<1>(1).unwrap();
    reference(&column, None, &mut y.index_mut::<1>(0).unwrap()).unwrap();
    reference(&column, Some(&b), &mut y.index_mut::<1>(1).unwrap()).unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0, 1.5, 11.0, 11.5, 21.0, 21.5]);
}

#[test]
fn a_reference_checks_shapes_and_overlap() {
    let dev = Device::best().unwrap();
    let x = dev.zeros([4]).unwrap();
    let mut y = dev.zeros([3]).unwrap();
    assert!(matches!(reference(&x, None, &mut y), Err(Error::Shape { .. })));
}

#[test]
fn a_trap_in_a_reference_says_where_and_keeps_what_was_stored() {
    let dev = Device::best().unwrap();
    let x = dev.full([3], 2.0f32).unwrap();
    let b = dev.tensor(&[1.0f32, -1.0, 1.0], [3]).unwrap();
    let mut y = dev.zeros([3]).unwrap();
    let error = reference(&x, Some(&b), &mut y).unwrap_err();
    let Error::Trap { kernel, location, program, .. } = &error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), *program, location.file.as_str()), ("shift", [1, 0, 0], file!()));
    assert_eq!(y.to_vec().unwrap(), [3.0, 1.0, 0.0]);
}
