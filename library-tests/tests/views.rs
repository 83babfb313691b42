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
        prop_assert_eq!(flat.is_ok(), view.is_contiguous());
        if let Ok(flat) = flat {
            prop_assert_eq!(flat.to_vec().unwrap(), plain.data);
        }
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
    refused(turned.reshape([24]), "reshape: the elements are not contiguous");
    refused(x.broadcast([4, 12]), "broadcast: axis 1 has extent 6, not 1 or 12");
    assert_eq!(x.reshape([2, 2, 6]).unwrap().shape(), [2, 2, 6]);
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
