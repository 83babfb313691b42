//! Views that divide and join axes: of every layout that other views have, against the indices of elements, on every device.

#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

mod host_devices;
mod runtime_kernels;

use host_devices::devices;
use runtime_kernels::{add, fill};
use titan::lang::u4;
use titan::{Device, Error, Tensor, View};

/// Views of one tensor: row-major, permuted, cut, broadcast, with extents of 1.
fn layouts(x: &Tensor<i32, 3>) -> Vec<View<'_, i32, 3>> {
    let one = x.slice::<1>(2..3).unwrap();
    vec![
        x.view(),
        x.transpose::<0, 1>().unwrap(),
        x.transpose::<1, 2>().unwrap(),
        x.permute([2, 0, 1]).unwrap(),
        x.slice::<0>(1..3).unwrap(),
        x.slice::<1>(2..6).unwrap(),
        x.slice::<2>(0..4).unwrap(),
        one.clone(),
        one.broadcast([4, 6, 8]).unwrap(),
        x.slice::<2>(3..4).unwrap(),
        x.slice::<2>(3..4).unwrap().broadcast([4, 6, 8]).unwrap(),
        x.slice::<0>(3..4).unwrap().broadcast([6, 6, 8]).unwrap(),
        x.slice::<0>(2..2).unwrap(),
        x.slice::<2>(8..8).unwrap(),
    ]
}

/// Where two axes can be joined, it is what `reshape` makes; where not, neither can be done.
fn joins_like_a_reshape<const AX: usize>(x: &View<'_, i32, 3>, joined: titan::Result<View<'_, i32, 2>>) {
    let mut extents = x.shape().to_vec();
    extents[AX] *= extents.remove(AX + 1);
    let reshaped = x.reshape([extents[0], extents[1]]);
    assert_eq!(joined.is_ok(), reshaped.is_ok(), "{x:?} {joined:?} {reshaped:?}");
    match joined {
        Ok(joined) => {
            assert_eq!((joined.shape().to_vec(), joined.to_vec().unwrap()), (extents, x.to_vec().unwrap()), "{x:?}");
        }
        Err(error) => assert!(matches!(error, Error::AxisView { .. }), "{error}"),
    }
}

/// Each division of an axis has the elements of the view in their order, and is the view again when it is joined.
macro_rules! divides {
    ($view:expr, $axis:literal) => {{
        let (view, extent) = ($view, $view.shape()[$axis]);
        let pairs = (1..=extent.max(1)).filter(|n| extent % n == 0).map(|n| [extent / n, n]);
        for pair in pairs {
            let split = view.split_axis::<$axis>(pair).unwrap();
            let mut extents = view.shape().to_vec();
            extents.splice($axis..=$axis, pair);
            assert_eq!(split.shape().to_vec(), extents, "{view:?}");
            assert_eq!(split.to_vec().unwrap(), view.to_vec().unwrap(), "{view:?} {pair:?}");
            let joined = split.join_axes::<$axis>().unwrap();
            assert_eq!((joined.shape(), joined.to_vec().unwrap()), (view.shape(), view.to_vec().unwrap()));
        }
    }};
}

#[test]
fn axes_are_divided_and_joined_like_reshapes() {
    for device in devices() {
        let x = device.from_fn([4, 6, 8], |[i, j, k]| (48 * i + 8 * j + k) as i32).unwrap();
        for view in layouts(&x) {
            joins_like_a_reshape::<0>(&view, view.join_axes::<0>());
            joins_like_a_reshape::<1>(&view, view.join_axes::<1>());
            divides!(&view, 0);
            divides!(&view, 1);
            divides!(&view, 2);
        }
    }
}

#[test]
fn outputs_are_written_through_divided_and_joined_axes() {
    for device in devices() {
        let mut x = device.zeros([4, 6]).unwrap();
        // The last two columns of each row, in pairs of rows.
        let mut tail = x.slice_mut::<1>(4..6).unwrap();
        let mut tail = tail.split_axis_mut::<0>([2, 2]).unwrap();
        tail.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!(x.slice::<1>(4..6).unwrap().to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        fill(&mut x.slice_mut::<0>(1..3).unwrap().join_axes_mut::<0>().unwrap(), 9.0f32).sync().unwrap();
        let mut y = device.zeros([24]).unwrap();
        add(&x.join_axes::<0>().unwrap(), &mut y, 0.0).sync().unwrap();
        let expected: Vec<f32> = [vec![0.0; 4], vec![1.0, 2.0], vec![9.0; 12], vec![0.0; 4], vec![7.0, 8.0]].concat();
        assert_eq!(y.to_vec().unwrap(), expected, "{device}");
        y.split_axis_mut::<0>([3, 8]).unwrap().index_mut::<0>(1).unwrap().fill(5.0).unwrap();
        assert_eq!(y.to_vec().unwrap()[7..17], [vec![9.0], vec![5.0; 8], vec![9.0]].concat());
    }
}

#[test]
fn what_cannot_be_divided_or_joined_says_why() {
    for device in devices() {
        let x = device.zeros::<f32, 3>([2, 6, 8]).unwrap();
        let told = |error: Error| {
            assert!(matches!(error, Error::AxisView { .. }), "{error}");
            error.to_string()
        };
        let text = told(x.split_axis::<1>([4, 2]).unwrap_err());
        assert!(
            text.starts_with("[T1112] split_axis: axis 1 has extent 6, which is not 4 times 2\n  help: choose two"),
            "{text}"
        );
        for pair in [[0, 6], [6, 0], [1 << 63, 2], [usize::MAX, usize::MAX], [12, 1], [5, 1]] {
            told(x.split_axis::<1>(pair).unwrap_err());
        }
        let text = told(x.transpose::<0, 1>().unwrap().join_axes::<0>().unwrap_err());
        let start = "[T1112] join_axes: the elements of axes 0 and 1 are not equally far apart (extents [6, 2, 8], \
                     strides [8, 48, 1])\n  help: join the axes of a `.copy()`";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(x.transpose::<0, 1>().unwrap().copy().unwrap().join_axes::<0>().unwrap().shape(), [12, 8]);
        told(x.slice::<1>(0..3).unwrap().join_axes::<0>().unwrap_err());
        told(x.slice::<2>(0..3).unwrap().join_axes::<1>().unwrap_err());
    }
}

#[test]
fn packed_elements_stay_in_pairs() {
    for device in devices() {
        let x = device.from_fn([3, 8], |[i, j]| u4::from_u8((5 * i + j) as u8 % 16)).unwrap();
        let pairs = x.split_axis::<1>([4, 2]).unwrap();
        assert_eq!(pairs.shape(), [3, 4, 2]);
        assert_eq!(pairs.index::<1>(3).unwrap().to_vec().unwrap()[4..], [0, 1].map(u4::from_u8));
        assert_eq!(pairs.join_axes::<1>().unwrap().to_vec().unwrap(), x.to_vec().unwrap());
        assert!(matches!(x.split_axis::<1>([8, 1]).unwrap_err(), Error::Layout { .. }));
        assert_eq!(x.join_axes::<0>().unwrap().shape(), [24]);
    }
}

#[test]
fn extents_without_elements_and_of_great_numbers_are_divided_and_joined() {
    const LARGE: usize = (1 << 31) + 2;
    for device in devices() {
        let none: Tensor<f32, 2> = device.zeros([usize::MAX, 0]).unwrap();
        assert_eq!(none.split_axis::<1>([usize::MAX, 0]).unwrap().shape(), [usize::MAX, usize::MAX, 0]);
        assert_eq!(none.split_axis::<0>([1, usize::MAX]).unwrap().to_vec().unwrap(), []);
        assert_eq!(none.join_axes::<0>().unwrap().shape(), [0]);
        let wide = none.split_axis::<1>([usize::MAX, 0]).unwrap();
        assert!(matches!(wide.join_axes::<0>().unwrap_err(), Error::TooLarge { .. }));
        let one = device.full([1, 1], 2.5f32).unwrap();
        let many = one.broadcast([LARGE, 4]).unwrap();
        let joined = many.join_axes::<0>().unwrap();
        assert_eq!((joined.shape(), joined.strides()), ([4 * LARGE], [0]));
        let halves = joined.split_axis::<0>([2, 2 * LARGE]).unwrap();
        assert_eq!(halves.index::<0>(1).unwrap().slice::<0>(LARGE..LARGE + 2).unwrap().to_vec().unwrap(), [2.5; 2]);
        assert!(matches!(joined.split_axis::<0>([3, LARGE]).unwrap_err(), Error::AxisView { .. }));
    }
}

#[test]
fn every_rank_up_to_eight_has_these_views() {
    let x = Device::cpu().from_fn([256], |[i]| i as u8).unwrap();
    let x2 = x.split_axis::<0>([2, 128]).unwrap();
    let x3 = x2.split_axis::<1>([2, 64]).unwrap();
    let x4 = x3.split_axis::<2>([2, 32]).unwrap();
    let x5 = x4.split_axis::<3>([2, 16]).unwrap();
    let x6 = x5.split_axis::<4>([2, 8]).unwrap();
    let x7 = x6.split_axis::<5>([2, 4]).unwrap();
    let x8 = x7.split_axis::<6>([2, 2]).unwrap();
    assert_eq!((x8.shape(), x8.strides()), ([2; 8], [128, 64, 32, 16, 8, 4, 2, 1]));
    let back = x8.join_axes::<0>().unwrap();
    let back = back.join_axes::<3>().unwrap();
    let back = back.join_axes::<4>().unwrap();
    let back = back.join_axes::<2>().unwrap();
    let back = back.join_axes::<0>().unwrap();
    let back = back.join_axes::<1>().unwrap();
    let back = back.join_axes::<0>().unwrap();
    assert_eq!((back.shape(), back.strides()), ([256], [1]));
}
