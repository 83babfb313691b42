//! Views against plain indexing, and the views that are refused.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test that cannot go on stops")]

use proptest::prelude::*;

use titan::lang::{i4, u4};
use titan::{Device, Error, Tensor, View};

/// Elements in row-major order, with the operations of views done by hand.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Plain {
    fn build(shape: Vec<usize>, f: impl Fn(&[usize]) -> f32) -> Plain {
        let count: usize = shape.iter().product();
        let data = (0..count).map(|mut i| {
            let mut at = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                (at[d], i) = (i % shape[d], i / shape[d]);
            }
            f(&at)
        });
        Plain { data: data.collect(), shape: shape.clone() }
    }

    fn at(&self, index: &[usize]) -> f32 {
        self.data[index.iter().zip(&self.shape).fold(0, |sum, (i, n)| sum * n + i)]
    }

    fn permute(&self, axes: [usize; 3]) -> Plain {
        Plain::build(axes.iter().map(|a| self.shape[*a]).collect(), |at| {
            let mut from = [0; 3];
            axes.iter().zip(at).for_each(|(a, i)| from[*a] = *i);
            self.at(&from)
        })
    }

    fn slice(&self, axis: usize, lo: usize, hi: usize) -> Plain {
        let mut shape = self.shape.clone();
        shape[axis] = hi - lo;
        Plain::build(shape, |at| {
            let mut from = at.to_vec();
            from[axis] += lo;
            self.at(&from)
        })
    }

    fn index(&self, axis: usize, i: usize) -> Plain {
        let mut shape = self.shape.clone();
        shape.remove(axis);
        Plain::build(shape, |at| {
            let mut from = at.to_vec();
            from.insert(axis, i);
            self.at(&from)
        })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Permute([usize; 3]),
    Slice(usize, usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let axes = Just([0, 1, 2]).prop_shuffle().prop_map(Step::Permute);
    prop_oneof![axes, (0..3usize, 0..6usize, 0..6usize).prop_map(|(a, i, j)| Step::Slice(a, i, j))]
}

fn slice3<'a>(view: &View<'a, f32, 3>, axis: usize, lo: usize, hi: usize) -> View<'a, f32, 3> {
    match axis {
        0 => view.slice::<0>(lo..hi),
        1 => view.slice::<1>(lo..hi),
        _ => view.slice::<2>(lo..hi),
    }
    .unwrap()
}

fn apply<'a>(view: View<'a, f32, 3>, plain: Plain, steps: &[Step]) -> (View<'a, f32, 3>, Plain) {
    steps.iter().fold((view, plain), |(view, plain), step| match *step {
        Step::Permute(axes) => (view.permute(axes).unwrap(), plain.permute(axes)),
        Step::Slice(axis, i, j) => {
            let extent = plain.shape[axis];
            let (lo, hi) = (i.min(j).min(extent), i.max(j).min(extent));
            (slice3(&view, axis, lo, hi), plain.slice(axis, lo, hi))
        }
    })
}

/// Whether there are strides by which the elements of a view, in row-major order, have these extents.
fn has_strides(view: &View<'_, f32, 3>, shape: &[usize]) -> bool {
    // The place of each element, by the digits of its number in some extents.
    let digits = |mut number: usize, shape: &[usize]| {
        let mut out = vec![0; shape.len()];
        for (digit, extent) in out.iter_mut().zip(shape).rev() {
            (*digit, number) = (number % extent, number / extent);
        }
        out
    };
    let place = |number: usize, shape: &[usize], strides: &[usize]| -> usize {
        digits(number, shape).iter().zip(strides).map(|(digit, stride)| digit * stride).sum()
    };
    let places: Vec<usize> = (0..view.len()).map(|i| place(i, &view.shape(), &view.strides())).collect();
    // A stride is the distance from the first element to the next one along an axis.
    let strides: Vec<usize> = (0..shape.len())
        .map(|axis| places.get(shape[axis + 1..].iter().product::<usize>()).copied().unwrap_or(0))
        .collect();
    places.iter().enumerate().all(|(i, at)| place(i, shape, &strides) == *at)
}

fn numbered(shape: [usize; 3]) -> (Tensor<f32, 3>, Plain) {
    let number = |at: &[usize]| (at[0] * 100 + at[1] * 10 + at[2]) as f32;
    let tensor = Device::best().unwrap().from_fn(shape, |at| number(&at)).unwrap();
    (tensor, Plain::build(shape.to_vec(), number))
}

proptest! {
    #[test]
    fn views_show_what_plain_indexing_shows(
        shape in [0..6usize, 1..6usize, 1..6usize],
        steps in proptest::collection::vec(step(), 0..5),
        (axis, i) in (0..3usize, 0..6usize),
    ) {
        let (tensor, plain) = numbered(shape);
        let (view, plain) = apply(tensor.view(), plain, &steps);
        prop_assert_eq!(view.shape().to_vec(), plain.shape.clone());
        prop_assert_eq!(view.to_vec().unwrap(), plain.data.clone());
        prop_assert_eq!(view.copy().unwrap().to_vec().unwrap(), plain.data.clone());
        if i < plain.shape[axis] {
            let row = match axis {
                0 => view.index::<0>(i),
                1 => view.index::<1>(i),
                _ => view.index::<2>(i),
            }.unwrap();
            prop_assert_eq!(row.to_vec().unwrap(), plain.index(axis, i).data);
        }
        let flat = view.reshape([plain.data.len()]);
        prop_assert_eq!(flat.is_ok(), has_strides(&view, &[plain.data.len()]));
        if let Ok(flat) = flat {
            prop_assert_eq!(flat.is_contiguous(), view.is_contiguous());
            prop_assert_eq!(flat.to_vec().unwrap(), plain.data);
        }
    }

    #[test]
    fn axes_are_divided_and_joined_where_strides_allow_it(
        shape in [1..7usize, 1..7usize, 1..7usize],
        steps in proptest::collection::vec(step(), 0..4),
        (first, second) in (0..64usize, 0..64usize),
    ) {
        let (mut tensor, plain) = numbered(shape);
        let (view, plain) = apply(tensor.view(), plain, &steps);
        let divisor = |n: usize, which: usize| {
            let all: Vec<usize> = (1..=n.max(1)).filter(|d| n.is_multiple_of(*d)).collect();
            all[which % all.len()]
        };
        let a = divisor(view.len(), first);
        let b = divisor(view.len() / a, second);
        let other = [a, b, view.len() / a / b];
        let reshaped = view.reshape(other);
        prop_assert_eq!(reshaped.is_ok(), has_strides(&view, &other), "{:?} as {:?}", &view, other);
        if let Ok(reshaped) = reshaped {
            prop_assert_eq!(reshaped.to_vec().unwrap(), plain.data);
        }
        // The same for writing.
        let columns = tensor.shape()[1];
        let mut part = tensor.slice_mut::<1>(columns / 2..columns).unwrap();
        let heads = [part.shape()[0], 1, part.shape()[1], part.shape()[2]];
        let values: Vec<f32> = (0..part.len()).map(|i| -1.0 - i as f32).collect();
        part.reshape_mut(heads).unwrap().write(&values).unwrap();
        prop_assert_eq!(part.to_vec().unwrap(), values);
    }

    #[test]
    fn writes_through_views_hit_only_what_they_show(
        shape in [1..5usize, 1..5usize, 1..5usize],
        axes in Just([0, 1, 2]).prop_shuffle(),
        at in 0..5usize,
    ) {
        let (mut tensor, plain) = numbered(shape);
        let mut turned = tensor.permute_mut(axes).unwrap();
        let at = at.min(turned.shape()[1]);
        let (mut head, _tail) = turned.split_at_mut::<1>(at).unwrap();
        let fresh: Vec<f32> = (0..head.len()).map(|i| -1.0 - i as f32).collect();
        head.write(&fresh).unwrap();
        prop_assert_eq!(head.to_vec().unwrap(), fresh);
        let all = turned.to_vec().unwrap();
        let old = plain.permute(axes);
        for (i, value) in all.iter().enumerate() {
            let inside = (i / turned.shape()[2]) % turned.shape()[1] < at;
            prop_assert_eq!(*value < 0.0, inside);
            prop_assert!(inside || *value == old.data[i]);
        }
    }
}

#[test]
fn large_transposed_tensors_come_back_in_order() {
    let dev = Device::best().unwrap();
    let x = dev.from_fn([300, 200], |[i, j]| (i * 200 + j) as i32).unwrap();
    let t = x.transpose::<0, 1>().unwrap().to_vec().unwrap();
    assert!(t.iter().enumerate().all(|(k, v)| *v == (k % 300 * 200 + k / 300) as i32));
    let thin = x.slice::<1>(7..9).unwrap();
    assert!(thin.to_vec().unwrap().iter().enumerate().all(|(k, v)| *v == (k / 2 * 200 + 7 + k % 2) as i32));
}

#[test]
fn new_axes_and_broadcast_repeat_without_memory() {
    let x = Device::best().unwrap().tensor(&[1u8, 2, 3], [3]).unwrap();
    let column = x.unsqueeze::<1>().unwrap();
    assert_eq!(column.shape(), [3, 1]);
    let wide = column.broadcast([3, 2]).unwrap();
    assert_eq!((wide.strides(), wide.to_vec().unwrap()), ([1, 0], vec![1, 1, 2, 2, 3, 3]));
    assert!(!wide.is_contiguous() && column.is_contiguous());
}

fn refused<T: std::fmt::Debug>(result: titan::Result<T>, starts: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Layout { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with(starts) && text.contains("\n  help: "), "{text}");
}

#[test]
fn views_that_do_not_exist_are_errors() {
    let x = Device::best().unwrap().zeros::<f32, 2>([4, 6]).unwrap();
    let turned = x.transpose::<0, 1>().unwrap();
    refused(x.slice::<0>(2..5), "slice: 2..5 is out of bounds for axis 0, whose extent is 4");
    refused(x.split_at::<1>(7), "split: 7 is out of bounds for axis 1, whose extent is 6");
    refused(x.index::<1>(6), "index: 6 is out of bounds for axis 1, whose extent is 6");
    refused(x.permute([1, 1]), "permute: [1, 1] does not name each of the axes 0 to 1 once");
    refused(x.permute([0, 2]), "permute: [0, 2] does not name");
    refused(x.reshape([5, 5]), "reshape: [5, 5] does not have the 24 elements of [4, 6]");
    refused(turned.reshape([24]), "reshape: [24] joins axes whose elements are not equally far apart");
    refused(x.slice::<1>(0..4).unwrap().reshape([2, 8]), "reshape: [2, 8] joins axes");
    refused(x.broadcast([4, 12]), "broadcast: axis 1 has extent 6, not 1 or 12");
    assert_eq!(x.reshape([2, 2, 6]).unwrap().shape(), [2, 2, 6]);
}

/// The heads of the keys in a product that has queries, keys and values beside each other, for any number of rows.
#[test]
fn slices_are_divided_into_heads() {
    for rows in [1, 2, 5] {
        let (heads, dim) = (3, 4);
        let qkv = Device::best().unwrap().from_fn([rows, 3 * heads * dim], |[r, c]| (r * 100 + c) as f32).unwrap();
        let keys = qkv.slice::<1>(heads * dim..2 * heads * dim).unwrap();
        let by_head = keys.reshape([rows, heads, dim]).unwrap();
        assert_eq!(by_head.strides()[1..], [4, 1]);
        assert!(rows == 1 || by_head.strides()[0] == 36);
        assert_eq!(by_head.to_vec().unwrap(), keys.to_vec().unwrap());
        // An axis that is repeated stays one.
        let all = by_head.unsqueeze::<0>().unwrap().broadcast([7, rows, heads, dim]).unwrap();
        let all = all.reshape([7, rows, heads * dim]).unwrap();
        assert_eq!((all.strides()[0], all.strides()[2]), (0, 1));
        assert_eq!(all.index::<0>(6).unwrap().to_vec().unwrap(), keys.to_vec().unwrap());
    }
}

#[test]
fn packed_types_keep_their_pairs() {
    let dev = Device::best().unwrap();
    let values: Vec<u4> = (0..24).map(|i| u4::from_u8(i % 16)).collect();
    let x = dev.tensor(&values, [4, 6]).unwrap();
    assert_eq!(x.to_vec().unwrap(), values);
    let part = x.slice::<1>(2..6).unwrap();
    let part = part.slice::<0>(1..3).unwrap();
    let expected: Vec<u4> = [8, 9, 10, 11, 14, 15, 16, 17].map(|i| u4::from_u8(i % 16)).to_vec();
    assert_eq!(part.to_vec().unwrap(), expected);
    assert_eq!(x.index::<0>(2).unwrap().to_vec().unwrap(), values[12..18]);
    assert_eq!(x.reshape([2, 2, 6]).unwrap().to_vec().unwrap(), values);
    assert_eq!(part.reshape([2, 2, 2]).unwrap().to_vec().unwrap(), expected);
    refused(part.reshape([2, 4, 1]), "reshape: elements of type `u4` are packed in pairs");
    refused(x.slice::<1>(1..3), "slice: elements of type `u4` are packed in pairs");
    refused(x.slice::<1>(0..3), "slice: elements of type `u4` are packed in pairs");
    refused(x.transpose::<0, 1>(), "permute: elements of type `u4` are packed in pairs");
    refused(x.index::<1>(0), "index: axis 1 is the packed one");
    refused(x.unsqueeze::<2>(), "unsqueeze: elements of type `u4` are packed in pairs");
    refused(x.reshape([8, 3]), "reshape: elements of type `u4` are packed in pairs");
    refused(dev.zeros::<i4, 2>([2, 3]), "a new tensor: elements of type `i4` are packed in pairs");
    let mut y = dev.zeros::<i4, 2>([2, 4]).unwrap();
    y.slice_mut::<1>(2..4).unwrap().write(&[1, -2, 3, -8].map(i4::from_i8)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0, 0, 1, -2, 0, 0, 3, -8].map(i4::from_i8));
}

#[test]
fn shapes_and_data_must_agree() {
    let dev = Device::best().unwrap();
    let error = dev.tensor(&[1.0f32; 5], [2, 3]).unwrap_err();
    assert!(error.to_string().starts_with("5 elements were given for shape [2, 3], which needs 6"), "{error}");
    let mut x = dev.full([2, 2], 1.5f64).unwrap();
    assert!(matches!(x.write(&[0.0; 3]), Err(Error::ElementCount { found: 3, expected: 4, .. })));
    assert_eq!(x.to_vec().unwrap(), [1.5; 4]);
    assert!(matches!(dev.zeros::<f32, 2>([usize::MAX, 2]), Err(Error::TooLarge { .. })));
    // Up to 2^63 - 1 bytes it is a question of the device, beyond it one of the shape.
    let most = usize::try_from(i64::MAX).unwrap();
    assert!(matches!(dev.zeros::<f32, 1>([1 << 60]), Err(Error::OutOfMemory { bytes, .. }) if bytes == 1 << 62));
    assert!(matches!(dev.zeros::<f32, 1>([most / 4]), Err(Error::OutOfMemory { .. })));
    assert!(matches!(dev.zeros::<f32, 1>([1 << 61]), Err(Error::TooLarge { .. })));
    assert!(matches!(dev.zeros::<f64, 1>([1 << 60]), Err(Error::TooLarge { .. })));
    assert!(matches!(dev.zeros::<u8, 1>([most]), Err(Error::OutOfMemory { .. })));
    assert!(matches!(dev.zeros::<u8, 1>([most + 1]), Err(Error::TooLarge { .. })));
    assert!(matches!(dev.zeros::<u4, 1>([most - 1]), Err(Error::OutOfMemory { .. })));
    assert!(matches!(dev.zeros::<u4, 1>([most + 1]), Err(Error::TooLarge { .. })));
    assert!(matches!(dev.full([1 << 60], 1.0f32), Err(Error::OutOfMemory { .. })));
    let vast = dev.zeros::<f32, 2>([1, 1]).unwrap();
    let vast = vast.broadcast([1 << 30, 1 << 30]).unwrap();
    assert!(matches!(vast.to_vec(), Err(Error::OutOfMemory { .. })));
    assert!(matches!(vast.copy(), Err(Error::OutOfMemory { .. })));
    assert_eq!(format!("{x:?}"), format!("Tensor<f64>[2, 2] on {dev}"));
    assert_eq!(
        format!("{:?}", x.transpose::<0, 1>().unwrap()),
        format!("Tensor<f64>[2, 2] with strides [1, 2] on {dev}")
    );
}

#[test]
fn every_element_type_comes_back() {
    fn round_trip<T: titan::lang::Elem>(values: &[T]) {
        let x = Device::best().unwrap().tensor(values, [values.len()]).unwrap();
        assert_eq!(x.to_vec().unwrap(), values);
    }
    use titan::lang::{bf16, e4m3, e5m2, f16, tf32};
    round_trip(&[1.0f64, -2.5]);
    round_trip(&[f16::from_f32(1.5), f16::from_f32(-3.0)]);
    round_trip(&[bf16::from_f32(1.5), bf16::from_f32(-3.0)]);
    round_trip(&[tf32::from_f32(1.5), tf32::from_f32(-3.0)]);
    round_trip(&[e4m3::from_f32(1.5), e4m3::from_f32(-3.0)]);
    round_trip(&[e5m2::from_f32(1.5), e5m2::from_f32(-3.0)]);
    round_trip(&[i64::MIN, i64::MAX]);
    round_trip(&[u64::MAX, 1]);
    round_trip(&[-1i16, 2]);
    round_trip(&[-1i8, 2]);
    round_trip(&[u16::MAX, 2]);
    round_trip(&[true, false, true]);
}
