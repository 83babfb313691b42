//! `dispatch!`: instances and generic code chosen by values.

use crate::kernels::{convert, device, made, many, named, row_sum, scale, total};
use titan::prelude::*;
use titan::{DynTensor, ElemType, Error, dispatch};

fn ramp(dev: &Device, n: usize) -> Tensor<f32, 1> {
    dev.from_fn([n], |[i]| i as f32).unwrap()
}

#[test]
fn values_choose_the_instance_for_typed_tensors() {
    let dev = device();
    let (x, mut y) = (ramp(&dev, 100), dev.zeros::<f32, 1>([100]).unwrap());
    for (width, by) in [(64, 2.0), (256, 3.0)] {
        dispatch!(scale::<x.elem(), width, >(&x, &mut y, by)).sync().unwrap();
        assert_eq!(y.to_vec().unwrap()[99], 99.0 * by);
        dispatch!(scale::<_, { width / 2 + width / 2 }>(&x, &mut y, by + 1.0)).sync().unwrap();
        assert_eq!(y.to_vec().unwrap()[99], 99.0 * (by + 1.0));
    }
    dispatch!(made::plus_half::<f32, 64>(&mut y.slice_mut::<0>(0..10).unwrap())).sync().unwrap();
    assert_eq!(y.to_vec().unwrap()[9..11], [36.5, 40.0]);
}

#[test]
fn flags_and_optional_tensors_are_values() {
    let dev = device();
    let x = dev.full([2, 20], f16::from_f32(2.0)).unwrap();
    let (bias, mut y) = (dev.full([20], 1.0f32).unwrap(), dev.zeros([2]).unwrap());
    for (squared, plain, biased) in [(false, 40.0, 60.0), (true, 80.0, 180.0)] {
        dispatch!(row_sum::<_, 32, squared>(&x, None, &mut y)).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [plain; 2]);
        dispatch!(row_sum::<_, 128, squared>(&x, Some(&bias), &mut y)).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [biased; 2]);
        let absent: Option<&Tensor<f32, 1>> = None;
        dispatch!(row_sum::reference::<_, 32, squared>(&x, absent, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [plain; 2]);
    }
}

#[test]
fn an_element_type_of_no_tensor_is_given() {
    let dev = device();
    let (x, mut y) = (dev.full([50], 0.5f32).unwrap(), dev.zeros([1]).unwrap());
    for acc in [ElemType::F32, ElemType::F64] {
        dispatch!(total::<acc, 64>(&x, &mut y)).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [25.0]);
    }
}

#[test]
fn values_without_an_instance_are_an_error_that_lists_the_instances() {
    let dev = device();
    let (x, mut y) = (ramp(&dev, 10), dev.zeros::<f16, 1>([10]).unwrap());
    let error = dispatch!(convert::<_, _, 64>(&x, &mut y)).sync().unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
    assert_eq!(
        error.to_string(),
        "[T1101] kernel `convert` has no instance `convert::<f32, f16, 64>`\n  help: its instances are \
         `convert::<f32, f16, 128>`, `convert::<f16, f32, 128>`, `convert::<f32, bf16, 128>`; choose one of them, or add this one \
         to the kernel's `instances(..)`"
    );
    let mut y = dev.zeros([8, 8]).unwrap();
    let text = dispatch!(many::<3, 4>(&mut y)).sync().unwrap_err().to_string();
    assert!(text.contains("no instance `many::<3, 4>`") && text.contains("`many::<8, 8>`, and 4 more"), "{text}");
    assert!(text.contains("`many::instances()` lists"), "{text}");
    let error = dispatch!(many::reference::<3, 4>(&mut y)).unwrap_err();
    assert!(matches!(error, Error::NoInstance { .. }));
}

#[test]
fn an_instance_of_the_list_is_launched() {
    let dev = device();
    for instance in many::instances() {
        let (mut y, mut again) = (dev.zeros([16, 16]).unwrap(), dev.zeros([16, 16]).unwrap());
        dispatch!(many[instance](&mut y)).sync().unwrap();
        dispatch!(many::reference[instance](&mut again)).unwrap();
        let expected = instance.int("A").unwrap() * 100 + instance.int("B").unwrap();
        assert_eq!(y.to_vec().unwrap(), [expected; 256]);
        assert_eq!(again.to_vec().unwrap(), [expected; 256]);
    }
}

#[test]
fn an_instance_of_another_kernel_is_refused() {
    let dev = device();
    let mut y = dev.zeros([16, 16]).unwrap();
    let error = dispatch!(many[scale::instances()[0]](&mut y)).sync().unwrap_err();
    assert!(error.to_string().contains("no instance `many::<f16, 64>`"), "{error}");
}

#[test]
fn a_tensor_of_another_element_than_the_instance_is_refused_at_the_launch() {
    let dev = device();
    let (x, mut y) = (ramp(&dev, 10), dev.zeros::<f32, 1>([10]).unwrap());
    let text = dispatch!(scale::<ElemType::F16, 64>(&x, &mut y, 1.0)).sync().unwrap_err().to_string();
    assert!(
        text.starts_with("kernel `scale::<f16, 64>`: `x` has elements of type `f16`, but `f32` was given\n"),
        "{text}"
    );
    // The second tensor of `T`.
    let mut y = dev.zeros::<bf16, 1>([10]).unwrap();
    let text = dispatch!(scale::<_, 64>(&x, &mut y, 1.0)).sync().unwrap_err().to_string();
    assert!(text.contains("`y` has elements of type `f32`, but `bf16` was given"), "{text}");
}

#[test]
fn tensors_of_run_time_types_are_dispatched_and_their_rank_is_checked() {
    let dev = device();
    let x = DynTensor::from(ramp(&dev, 10));
    let mut y = DynTensor::zeros(&dev, x.elem(), x.shape()).unwrap();
    dispatch!(scale::<_, 64>(&x, &mut y, 2.0)).sync().unwrap();
    assert_eq!(y.view::<f32, 1>().unwrap().to_vec().unwrap()[9], 18.0);
    // A parameter whose element type is written takes one too.
    let rows = DynTensor::from(dev.full([2, 10], 1.0f32).unwrap());
    let mut sums = DynTensor::zeros(&dev, ElemType::F32, &[2]).unwrap();
    dispatch!(row_sum::<_, 32, true>(&rows, Some(&x), &mut sums)).sync().unwrap();
    assert_eq!(sums.view::<f32, 1>().unwrap().to_vec().unwrap(), [385.0; 2]);
    let text = dispatch!(row_sum::<_, 32, true>(&x, None, &mut sums)).sync().unwrap_err().to_string();
    assert!(text.contains("`x` has rank 2, but a tensor of rank 1 was given"), "{text}");
}

#[test]
fn an_output_that_shares_elements_with_an_input_is_refused() {
    let dev = device();
    let x = std::sync::Arc::new(DynTensor::from(ramp(&dev, 10)));
    let mut y = x.view::<f32, 1>().unwrap().copy().unwrap();
    dispatch!(scale::<_, 64>(&x, &mut y, 2.0)).sync().unwrap();
    assert_eq!(y.to_vec().unwrap()[9], 18.0);
}

#[test]
fn a_launch_of_dispatch_is_one_like_any_other() {
    let dev = device();
    let (x, mut y) = (ramp(&dev, 100), dev.zeros::<f32, 1>([100]).unwrap());
    dispatch!(scale::<_, 64>(&x, &mut y, 2.0)).launch(&dev.default_stream()).unwrap();
    assert_eq!(y.to_vec().unwrap()[99], 198.0);
    let short = dispatch!(scale::<_, 64>(&x, &mut y, 2.0)).grid([1]).sync().unwrap_err();
    assert!(matches!(short, Error::Grid { .. }), "{short}");
    let mut z = dev.full([3], 1u8).unwrap();
    dispatch!(made::plus_three::<_, 64>(&mut z)).sync().unwrap();
    assert_eq!(z.to_vec().unwrap(), [4; 3]);
}

/// The sum of a tensor of any of these types, with `?` in the arm and `return` from the function.
fn sum(x: &DynTensor) -> titan::Result<f64> {
    let sum = dispatch!(match x.elem() {
        T in [f16, bf16, f32, i32] => {
            if x.is_empty() {
                return Ok(f64::NAN);
            }
            x.view::<T, 1>()?.to_vec()?.into_iter().map(Cast::cast::<f64>).sum::<f64>()
        }
    })?;
    Ok(sum)
}

#[test]
fn a_run_time_element_type_chooses_generic_code() {
    let dev = device();
    assert_eq!(sum(&dev.full([4], f16::from_f32(0.5)).unwrap().into()).unwrap(), 2.0);
    assert_eq!(sum(&dev.full([4], -3i32).unwrap().into()).unwrap(), -12.0);
    assert!(sum(&dev.zeros::<f32, 1>([0]).unwrap().into()).unwrap().is_nan());
    let error = sum(&dev.full([4], 1u8).unwrap().into()).unwrap_err();
    assert!(matches!(error, Error::NoArm { found: ElemType::U8, .. }));
    assert_eq!(
        error.to_string(),
        "[T1101] `dispatch!` has no arm for elements of type `u8`\n  help: its arms are for `f16`, `bf16`, `f32`, `i32`; convert \
         the data to one of these, or add `u8` to the list"
    );
    let error = sum(&dev.full([4, 1], 1.0f32).unwrap().into()).unwrap_err();
    assert!(matches!(error, Error::NotOfType { .. }), "{error}");
}

#[test]
fn every_element_type_may_be_listed() {
    let names = ElemType::ALL.map(|elem| {
        dispatch!(match elem {
            T in [f64, f32, tf32, f16, bf16, e4m3, e5m2, i64, i32, i16, i8, i4, u64, u32, u16, u8, u4, bool] => T::ELEM.name(),
        })
        .unwrap()
    });
    assert_eq!(names, ElemType::ALL.map(ElemType::name));
}

#[test]
fn other_macros_pass_kernels_and_values_on() {
    macro_rules! launched {
        ($kernel:ident, $width:expr, $($arg:expr),*) => {
            dispatch!($kernel::<_, $width>($($arg),*)).sync()
        };
    }
    let dev = device();
    let (x, mut y) = (ramp(&dev, 10), dev.zeros::<f32, 1>([10]).unwrap());
    launched!(scale, 32 * 2, &x, &mut y, 2.0).unwrap();
    assert_eq!(y.to_vec().unwrap()[9], 18.0);
}

#[test]
fn parameters_may_have_the_names_of_the_functions_own() {
    fn sum<T: Num>(values: &Tensor<T, 1>) -> titan::Result<Vec<T>> {
        let mut args = values.device().zeros([16])?;
        named::generic::<T, 16>(values, Some(values), &mut args, 1).sync()?;
        args.to_vec()
    }
    let dev = device();
    let (x, mut y) = (dev.full([16], 20).unwrap(), dev.zeros::<i32, 1>([16]).unwrap());
    dispatch!(named::<_, 16>(&x, Some(&x), &mut y, 2)).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [42; 16]);
    dispatch!(named::reference[named::instances()[1]](&x, None, &mut y, 3)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [23; 16]);
    assert_eq!(sum(&x).unwrap(), [41; 16]);
}
