//! Instances of a kernel of another crate, chosen by generic code and by values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use library_tests::copied;
use titan::prelude::*;
use titan::{DynTensor, Error, dispatch};

fn negated<T: Float>(x: &Tensor<T, 1>) -> titan::Result<Vec<T>> {
    let mut y = x.device().zeros(x.shape())?;
    copied::generic::<T, 64, true>(x, &mut y).sync()?;
    y.to_vec()
}

#[test]
fn generic_code_of_another_crate_launches_a_kernel() {
    let dev = Device::cpu();
    assert_eq!(negated(&dev.full([3], 2.0f32).unwrap()).unwrap(), [-2.0; 3]);
    assert_eq!(negated(&dev.full([3], f16::ONE).unwrap()).unwrap(), [f16::NEG_ONE; 3]);
    assert!(matches!(negated(&dev.full([3], 2.0f64).unwrap()), Err(Error::NoInstance { .. })));
}

#[test]
fn values_in_another_crate_choose_an_instance() {
    let dev = Device::cpu();
    let x = DynTensor::from(dev.full([40], 2.0f32).unwrap());
    for instance in copied::instances().iter().filter(|i| i.elem("T") == Some(x.elem())) {
        let mut y = DynTensor::zeros(&dev, x.elem(), x.shape()).unwrap();
        dispatch!(copied[instance](&x, &mut y)).sync().unwrap();
        let (width, negate) = (instance.int("BN").unwrap(), instance.flag("NEGATE").unwrap());
        let expected = if negate { -2.0f32 } else { 2.0 };
        assert_eq!(y.view::<f32, 1>().unwrap().to_vec().unwrap(), [expected; 40]);
        dispatch!(copied::reference::<_, width, { !negate }>(&x, &mut y)).unwrap();
        assert_eq!(y.into_tensor::<f32, 1>().unwrap().to_vec().unwrap(), [-expected; 40]);
    }
}
