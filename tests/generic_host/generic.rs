//! Generic host code: no bound but that of the element.

use crate::kernels::{convert, device, made, row_sum, scalars, scale, total, widened};
use titan::prelude::*;
use titan::{Error, Launch, dispatch};

/// A layer of a model, of any float.
struct Model<T: Float> {
    weight: Tensor<T, 2>,
}

impl<T: Float> Model<T> {
    /// `cargo build` fails for a type without these instances.
    const COMPLETE: () = assert!(row_sum::declares::<T, 32, true>() && scale::declares::<T, 64>());

    fn new(dev: &Device, rows: usize, columns: usize) -> titan::Result<Self> {
        const { Self::COMPLETE };
        Ok(Model { weight: dev.from_fn([rows, columns], |[i, j]| (i + j).cast_to())? })
    }

    fn forward(&self, bias: Option<&Tensor<f32, 1>>) -> titan::Result<Vec<f32>> {
        let [rows, _] = self.weight.shape();
        let mut sums = self.weight.device().zeros([rows])?;
        row_sum::generic::<T, 32, true>(&self.weight, bias, &mut sums).sync()?;
        sums.to_vec()
    }

    fn row(&self, i: usize, by: f32) -> titan::Result<Tensor<T, 1>> {
        let mut row = self.weight.device().zeros([self.weight.shape()[1]])?;
        scale::generic::<T, 64>(&self.weight.index::<0>(i)?, &mut row, by).sync()?;
        Ok(row)
    }
}

trait CastTo {
    fn cast_to<T: Elem>(self) -> T;
}

impl CastTo for usize {
    fn cast_to<T: Elem>(self) -> T {
        (self as u32).cast()
    }
}

fn model_of<T: Float>() {
    let dev = device();
    let model = Model::<T>::new(&dev, 3, 4).unwrap();
    assert_eq!(model.forward(None).unwrap(), [14.0, 30.0, 54.0]);
    let bias = dev.tensor([1.0f32, 0.0, 0.0, -3.0], [4]).unwrap();
    assert_eq!(model.forward(Some(&bias)).unwrap(), [6.0, 18.0, 38.0]);
    let row: Vec<f32> = model.row(2, 0.5).unwrap().to_vec().unwrap().into_iter().map(Cast::cast).collect();
    assert_eq!(row, [1.0, 1.5, 2.0, 2.5]);
}

#[test]
fn a_generic_model_launches_kernels_without_bounds_for_their_instances() {
    model_of::<f16>();
    model_of::<f32>();
}

/// Doubles with a launch that is made elsewhere.
fn launch_of<'a, T: Float, const BN: i32>(x: &'a Tensor<T, 1>, y: &'a mut Tensor<T, 1>) -> Launch<'a> {
    scale::generic::<T, BN>(x, y, 2.0)
}

#[test]
fn constants_of_generic_code_choose_the_instance_too() {
    let dev = device();
    let x = dev.full([300], 1.25f32).unwrap();
    let mut y = dev.zeros([300]).unwrap();
    launch_of::<f32, 64>(&x, &mut y).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.5f32; 300]);
    let choice = launch_of::<f32, 256>(&x, &mut y).choice().unwrap();
    assert!(choice.is_some());
}

#[test]
fn an_undeclared_instance_is_an_error_of_the_launch_that_lists_the_declared_ones() {
    let dev = device();
    let x = dev.full([300], 1.25f64).unwrap();
    let mut y = dev.zeros([300]).unwrap();
    let error = launch_of::<f64, 64>(&x, &mut y).sync().unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
    assert_eq!(
        error.to_string(),
        "[T1101] kernel `scale` has no instance `scale::<f64, 64>`\n  help: its instances are `scale::<f16, 64>`, \
         `scale::<f16, 256>`, `scale::<bf16, 64>`, `scale::<bf16, 256>`, `scale::<f32, 64>`, `scale::<f32, 256>`; choose one of \
         them, or add this one to the kernel's `instances(..)`"
    );
    let error = launch_of::<f64, 64>(&x, &mut y).launch(&dev.default_stream()).unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
    let error = launch_of::<f64, 64>(&x, &mut y).choice().unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
    let error = scale::generic_reference::<f64, 64>(&x, &mut y, 2.0).unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
    assert_eq!(y.to_vec().unwrap(), [0.0; 300], "nothing has run");
}

#[test]
fn an_error_of_the_arguments_names_the_instance() {
    fn odd<T: Float>(dev: &Device) -> Error {
        let (x, mut y) = (dev.zeros::<T, 1>([8]).unwrap(), dev.zeros::<T, 1>([9]).unwrap());
        scale::generic::<T, 64>(&x, &mut y, 1.0).sync().unwrap_err()
    }
    let text = odd::<bf16>(&device()).to_string();
    assert!(text.starts_with("kernel `scale::<bf16, 64>`: "), "{text}");
}

#[test]
fn generic_code_may_be_a_closure_with_several_element_types() {
    fn there_and_back<T: Float, U: Float>(dev: &Device) -> titan::Result<Vec<T>> {
        let convert_all = |x: &Tensor<T, 1>| -> titan::Result<Tensor<U, 1>> {
            let mut y = dev.zeros(x.shape())?;
            convert::generic::<T, U, 128>(x, &mut y).sync()?;
            Ok(y)
        };
        let x = dev.from_fn([200], |[i]| i.cast_to::<T>())?;
        let mut back = dev.zeros([200])?;
        convert::generic::<U, T, 128>(&convert_all(&x)?, &mut back).sync()?;
        back.to_vec()
    }
    let dev = device();
    let exact: Vec<f32> = (0..200u16).map(f32::from).collect();
    assert_eq!(there_and_back::<f32, f16>(&dev).unwrap(), exact);
    // (bf16, f32) is not declared, though each of the two types is.
    let error = there_and_back::<f32, bf16>(&dev).unwrap_err();
    assert!(error.to_string().contains("no instance `convert::<bf16, f32, 128>`"), "{error}");
}

#[test]
fn generic_code_calls_the_reference() {
    fn both<T: Float>(dev: &Device) -> titan::Result<(Vec<T>, Vec<T>)> {
        let x = dev.from_fn([100], |[i]| i.cast_to::<T>())?;
        let (mut y, mut again) = (dev.zeros([100])?, dev.zeros([100])?);
        scale::generic::<T, 64>(&x, &mut y, 3.0).sync()?;
        scale::generic_reference::<T, 64>(&x, &mut again, 3.0)?;
        Ok((y.to_vec()?, again.to_vec()?))
    }
    let (y, again) = both::<bf16>(&device()).unwrap();
    assert_eq!(y, again);
    assert_eq!(y[7], bf16::from_f32(21.0));
}

#[test]
fn kernels_of_macros_in_modules_are_called_by_generic_code() {
    fn add<T: Int>(dev: &Device) -> titan::Result<Vec<T>> {
        let mut x = dev.full([70], 4.cast::<T>())?;
        made::plus_three::generic::<T, 64>(&mut x).sync()?;
        x.to_vec()
    }
    fn half<T: Float>(dev: &Device) -> titan::Result<Vec<T>> {
        let mut x = dev.full([70], 4.cast::<T>())?;
        made::plus_half::generic::<T, 64>(&mut x.slice_mut::<0>(0..10)?).sync()?;
        x.to_vec()
    }
    let dev = device();
    assert_eq!(add::<i32>(&dev).unwrap(), [7; 70]);
    assert_eq!(add::<u8>(&dev).unwrap(), [7; 70]);
    assert!(add::<i64>(&dev).is_err());
    assert_eq!(half::<f64>(&dev).unwrap()[9..11], [4.5, 4.0]);
}

#[test]
fn an_element_type_of_no_tensor_is_chosen_by_generic_code() {
    fn of<ACC: Float>(dev: &Device) -> titan::Result<f32> {
        let (x, mut y) = (dev.full([50], 0.5f32)?, dev.zeros([1])?);
        total::generic::<ACC, 64>(&x, &mut y).sync()?;
        Ok(y.to_vec()?[0])
    }
    assert_eq!(of::<f64>(&device()).unwrap(), 25.0);
    assert!(of::<f16>(&device()).is_err());
}

#[test]
fn whether_an_instance_is_declared_is_a_constant() {
    const DECLARED: [bool; 4] = [
        scale::declares::<f16, 64>(),
        scale::declares::<f64, 64>(),
        scale::declares::<f16, 65>(),
        row_sum::declares::<f32, 128, false>(),
    ];
    assert_eq!(DECLARED, [true, false, false, true]);
}

#[test]
fn scalars_reach_launches_and_references_with_all_of_their_bits() {
    let dev = device();
    let (a, b, c, e) = (u64::MAX - 4, i64::MIN + 3, 255u8, -0.1f64);
    for reference in [false, true] {
        let (mut integers, mut floats) = (dev.zeros([4]).unwrap(), dev.zeros([2]).unwrap());
        let f = f16::from_f32(1.5);
        if reference {
            dispatch!(scalars::reference::<true>(a, b, c, true, e, f, &mut integers, &mut floats)).unwrap();
        } else {
            scalars::generic::<true>(a, b, c, true, e, f, &mut integers, &mut floats).sync().unwrap();
        }
        assert_eq!(integers.to_vec().unwrap(), [a, b.cast_unsigned(), 255, 1], "reference: {reference}");
        assert_eq!(floats.to_vec().unwrap(), [e, 3.0], "reference: {reference}");
    }
}

#[test]
fn the_reference_reads_parts_of_tensors_of_4_bit_elements() {
    fn all<T: Elem>(dev: &Device) -> titan::Result<(Vec<i32>, Vec<i32>)> {
        let x = dev.from_fn([6, 8], |[i, j]| (i + j).cast_to::<T>())?;
        let (mut y, mut again) = (dev.zeros([3, 8])?, dev.zeros([3, 8])?);
        let part = x.slice::<0>(2..5)?;
        widened::generic::<T, 8>(&part, &mut y).sync()?;
        widened::generic_reference::<T, 8>(&part, &mut again)?;
        Ok((y.to_vec()?, again.to_vec()?))
    }
    let (y, again) = all::<u4>(&device()).unwrap();
    assert_eq!(y, again);
    assert_eq!(y[..8], [2, 3, 4, 5, 6, 7, 8, 9]);
    let (y, again) = all::<i4>(&device()).unwrap();
    assert_eq!(y, again);
    assert_eq!(y[16..18], [4, 5]);
}
