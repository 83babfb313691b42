//! Tensors whose element type is known only at run time.

use crate::kernels::device;
use titan::prelude::*;
use titan::{DynTensor, ElemType, Error};

fn problem(error: &Error) -> String {
    assert!(matches!(error, Error::TensorBytes { .. }), "{error}");
    error.to_string()
}

#[test]
fn bytes_become_a_tensor_of_every_element_type() {
    let dev = device();
    // Little-endian, from an odd address.
    let bytes: Vec<u8> = std::iter::once(0).chain((0..16u8).map(|b| b % 2)).collect();
    for elem in ElemType::ALL.into_iter().filter(|e| *e != ElemType::Tf32) {
        let n = 16 * 8 / elem.bits() as usize;
        let tensor = DynTensor::from_bytes(&dev, elem, &[n / 2, 2], &bytes[1..]).unwrap();
        assert_eq!((tensor.elem(), tensor.shape(), tensor.rank(), tensor.len()), (elem, &[n / 2, 2][..], 2, n));
    }
    let tensor = DynTensor::from_bytes(&dev, ElemType::I16, &[8], &bytes[1..]).unwrap();
    assert_eq!(tensor.into_tensor::<i16, 1>().unwrap().to_vec().unwrap(), [256; 8]);
    let tensor = DynTensor::from_bytes(&dev, ElemType::U4, &[2, 16], &bytes[1..]).unwrap();
    let values = tensor.into_tensor::<u4, 2>().unwrap().to_vec().unwrap();
    assert_eq!(values[..4].iter().map(|v| v.to_u8()).collect::<Vec<_>>(), [0, 0, 1, 0]);
}

#[test]
fn a_tensor_keeps_its_memory_when_it_gets_or_loses_its_type() {
    let dev = device();
    let mut tensor = DynTensor::from(dev.from_fn([2, 3], |[i, j]| (3 * i + j) as f32).unwrap());
    tensor.view_mut::<f32, 2>().unwrap().write(&[9.0; 6]).unwrap();
    let view = tensor.view::<f32, 2>().unwrap();
    assert_eq!(view.transpose::<0, 1>().unwrap().shape(), [3, 2]);
    assert_eq!(tensor.into_tensor::<f32, 2>().unwrap().to_vec().unwrap(), [9.0; 6]);
}

#[test]
fn another_type_or_rank_than_the_tensors_own_is_an_error() {
    let dev = device();
    let mut tensor = DynTensor::zeros(&dev, ElemType::Bf16, &[2, 3]).unwrap();
    let error = tensor.view::<f16, 2>().unwrap_err();
    assert!(matches!(error, Error::NotOfType { .. }));
    assert_eq!(
        error.to_string(),
        "[T1102] a tensor of type `f16` and rank 2 is asked for, but this one has elements of type `bf16` and rank 2\n  help: ask \
         for its own type and rank, which `.elem()` and `.rank()` return, or convert the data"
    );
    assert!(matches!(tensor.view_mut::<bf16, 1>(), Err(Error::NotOfType { .. })));
    assert!(matches!(tensor.into_tensor::<bf16, 3>(), Err(Error::NotOfType { .. })));
}

#[test]
fn bytes_of_another_number_than_the_shape_needs_are_refused() {
    let dev = device();
    for n in [0, 11, 13] {
        let error = DynTensor::from_bytes(&dev, ElemType::F32, &[3], &vec![0; n]).unwrap_err();
        let text = problem(&error);
        let start = format!("[T1103] {n} bytes were given for shape [3] of elements `f32`, which needs 12\n  help: ");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn bytes_that_are_no_value_of_the_type_are_refused() {
    let dev = device();
    let error = DynTensor::from_bytes(&dev, ElemType::Bool, &[4], &[0, 1, 2, 0]).unwrap_err();
    assert!(problem(&error).contains("byte 2 begins an element that is no `bool`: a `bool` is 0 or 1"), "{error}");
    let fine = [0u8, 0x20, 0x80, 0x3F];
    DynTensor::from_bytes(&dev, ElemType::Tf32, &[1], &fine).unwrap();
    let error = DynTensor::from_bytes(&dev, ElemType::Tf32, &[2], &[fine, [1, 0, 0x80, 0x3F]].concat()).unwrap_err();
    assert!(problem(&error).contains("byte 4 begins an element that is no `tf32`"), "{error}");
}

#[test]
fn shapes_without_elements_and_scalars_are_tensors() {
    let dev = device();
    let empty = DynTensor::from_bytes(&dev, ElemType::F16, &[3, 0, usize::MAX], &[]).unwrap();
    assert!(empty.is_empty() && empty.shape() == [3, 0, usize::MAX]);
    assert_eq!(empty.into_tensor::<f16, 3>().unwrap().to_vec().unwrap(), []);
    let scalar = DynTensor::from_bytes(&dev, ElemType::U8, &[], &[7]).unwrap();
    assert_eq!((scalar.rank(), scalar.len()), (0, 1));
    assert_eq!(scalar.into_tensor::<u8, 0>().unwrap().to_vec().unwrap(), [7]);
}

#[test]
fn shapes_that_no_tensor_has_are_refused() {
    let dev = device();
    let error = DynTensor::zeros(&dev, ElemType::F32, &[1; 9]).unwrap_err();
    assert!(matches!(error, Error::Layout { .. }), "{error}");
    let error = DynTensor::from_bytes(&dev, ElemType::F32, &[usize::MAX, 2], &[]).unwrap_err();
    assert!(matches!(&error, Error::TooLarge { shape, .. } if *shape == [usize::MAX, 2]), "{error}");
    let error = DynTensor::zeros(&dev, ElemType::I4, &[2, 3]).unwrap_err();
    assert!(matches!(error, Error::Layout { .. }), "{error}");
}
