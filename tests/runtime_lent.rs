//! Slices of the host's as tensors of the CPU: results where the slices lie, waiting in every order of launches and panics.

#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

mod runtime_kernels;

use runtime_kernels::{add, add_one, fill, scale, slow_fill, trap_at};
use std::panic::{AssertUnwindSafe, catch_unwind};
use titan::lang::{bf16, e4m3, i4, tf32};
use titan::{Device, Error, Result, Strided, cpu};

#[test]
fn kernels_read_and_write_slices_where_they_lie() {
    let x: Vec<f32> = (0..100u8).map(f32::from).collect();
    let mut y = vec![0.0f32; 100];
    let (from, to) = (x.as_ptr(), y.as_ptr());
    cpu::scope(|host| {
        let x = host.borrow(&x, [100])?;
        let mut y = host.borrow_mut(&mut y, [100])?;
        add(&x, &mut y, 0.5).sync()?;
        let (mut head, _) = y.split_at_mut::<0>(50)?;
        scale(&mut head, 2.0).sync()
    })
    .unwrap();
    assert_eq!((from, to), (x.as_ptr(), y.as_ptr()));
    for (i, v) in y.iter().enumerate() {
        assert_eq!(*v, (i as f32 + 0.5) * if i < 50 { 2.0 } else { 1.0 });
    }
}

/// Launches that are not waited for have ended after the scope: their results are there, and they write no more.
#[test]
fn a_scope_waits_for_launches_on_streams() {
    let streams: Vec<_> = (0..3).map(|_| Device::cpu().stream().unwrap()).collect();
    for round in 0..20u8 {
        let mut slices = [vec![0.0f32; 16], vec![0.0f32; 16], vec![0.0f32; 16]];
        let [a, b, c] = &mut slices;
        cpu::scope(|host| -> Result<()> {
            let mut a = host.borrow_mut(a, [16])?;
            let mut b = host.borrow_mut(b, [16])?;
            slow_fill(&mut a, round.into(), 2000).launch(&streams[0])?;
            add(&a, &mut b, 1.0).launch(&streams[1])?;
            scale(&mut host.borrow_mut(c, [16])?, 3.0).launch(&streams[2])?;
            if round % 2 == 0 {
                std::mem::forget((a, b));
            }
            Ok(())
        })
        .unwrap();
        let value = f32::from(round);
        assert_eq!(slices, [vec![value; 16], vec![value + 1.0; 16], vec![0.0; 16]]);
    }
}

#[test]
fn a_scope_that_panics_waits_too() {
    let stream = Device::cpu().stream().unwrap();
    let mut y = vec![0.0f32; 64];
    let left = catch_unwind(AssertUnwindSafe(|| {
        cpu::scope(|host| {
            let mut y = host.borrow_mut(&mut y, [64]).unwrap();
            slow_fill(&mut y, 7.0, 5000).launch(&stream).unwrap();
            panic!("on the way out");
        })
    }));
    assert!(left.is_err());
    assert_eq!(y, [7.0; 64]);
}

/// A failed launch is reported by its stream, and the other launches have ended.
#[test]
fn failures_are_told_where_they_always_are() {
    let stream = Device::cpu().stream().unwrap();
    let (mut y, mut z) = (vec![0.0f32; 8], vec![0.0f32; 8]);
    cpu::scope(|host| -> Result<()> {
        let mut y = host.borrow_mut(&mut y, [8])?;
        trap_at(&mut y, 3).launch(&stream)?;
        slow_fill(&mut host.borrow_mut(&mut z, [8])?, 2.0, 1000).launch(&stream)
    })
    .unwrap();
    assert!(matches!(stream.sync().unwrap_err(), Error::Trap { .. }));
    assert_eq!(z, [2.0; 8]);
}

#[test]
fn slices_may_be_empty_or_of_one_element_and_nothing_may_be_borrowed() {
    let mut one = [1i64];
    cpu::scope(|_| ());
    cpu::scope(|host| -> Result<()> {
        assert_eq!(host.borrow::<f32, 2>(&[], [0, 7])?.to_vec()?, [] as [f32; 0]);
        host.borrow_mut(&mut one, [1, 1])?.write(&[5])?;
        host.borrow_mut::<u8, 1>(&mut [], [0])?.write(&[])
    })
    .unwrap();
    assert_eq!(one, [5]);
}

#[test]
fn elements_with_another_layout_and_wrong_shapes_are_refused() {
    let (singles, bytes, halves) = ([tf32::default(); 2], [e4m3::default(); 2], [i4::default(); 2]);
    cpu::scope(|host| {
        let refused = |error: Error, says: &str| assert!(error.to_string().contains(says), "{error}");
        refused(host.borrow(&[1.0f32; 4], [3]).unwrap_err(), "4 elements were given for shape [3]");
        refused(host.borrow(&singles, [2]).unwrap_err(), "elements of type `tf32` have another layout");
        refused(host.borrow(&bytes, [2]).unwrap_err(), "copy them with `Device::tensor`");
        refused(host.borrow(&halves, [2]).unwrap_err(), "elements of type `i4` have another layout");
        assert_eq!(host.borrow(&[true, false], [2]).unwrap().to_vec().unwrap(), [true, false]);
        assert_eq!(host.borrow(&[bf16::ONE; 2], [2]).unwrap().to_vec().unwrap(), [bf16::ONE; 2]);
    });
    let mut flags = [true, false];
    cpu::scope(|host| {
        let text = host.borrow_mut(&mut flags, [2]).unwrap_err().to_string();
        assert!(text.contains("elements of type `bool` have another layout"), "{text}");
    });
}

#[test]
fn one_slice_may_be_lent_twice_to_be_read() {
    let x = [1.0f32, 2.0, 3.0];
    let mut own = Device::cpu().zeros([3]).unwrap();
    cpu::scope(|host| {
        let (a, b) = (host.borrow(&x, [3])?, host.borrow(&x, [3])?);
        add(&a, &mut own, 1.0).sync()?;
        fill(&mut Device::cpu().zeros([1])?, 0.0).sync()?;
        let b = b.slice::<0>(0..2)?;
        add(&b, &mut own.slice_mut::<0>(0..2)?, 5.0).sync()
    })
    .unwrap();
    assert_eq!(own.to_vec().unwrap(), [6.0, 7.0, 4.0]);
}

#[test]
fn a_tensor_is_made_of_anything_that_has_a_slice() {
    let dev = Device::cpu();
    let list = vec![1.0f32, 2.0];
    let all = [
        dev.tensor([1.0f32, 2.0], [2]),
        dev.tensor(&[1.0f32, 2.0], [2]),
        dev.tensor(&list, [2]),
        dev.tensor(list.as_slice(), [2]),
        dev.tensor(list.clone(), [2]),
        dev.tensor::<f32, 1>(Box::from(list.as_slice()), [2]),
    ];
    for tensor in all {
        assert_eq!(tensor.unwrap().to_vec().unwrap(), list);
    }
}

/// The elements of a slice at these places, in row-major order.
fn picked<const R: usize>(x: &[f32], place: Strided<R>) -> Vec<f32> {
    let mut at = vec![place.offset];
    for (n, stride) in place.shape.into_iter().zip(place.strides) {
        at = at.iter().flat_map(|start| (0..n).map(move |i| start + i * stride)).collect();
    }
    at.into_iter().map(|at| x[at]).collect()
}

#[test]
fn slices_are_borrowed_with_any_strides() {
    let x: Vec<f32> = (0..60u8).map(f32::from).collect();
    let places = [
        Strided { offset: 0, shape: [5, 12], strides: [12, 1] },
        // Columns, a transposed part, every other row backwards is not possible, repeated elements, windows.
        Strided { offset: 7, shape: [5, 3], strides: [12, 1] },
        Strided { offset: 14, shape: [4, 3], strides: [1, 12] },
        Strided { offset: 1, shape: [3, 6], strides: [24, 2] },
        Strided { offset: 59, shape: [4, 5], strides: [0, 0] },
        Strided { offset: 3, shape: [4, 5], strides: [0, 7] },
        Strided { offset: 10, shape: [8, 4], strides: [1, 1] },
        Strided { offset: 59, shape: [1, 1], strides: [usize::MAX, usize::MAX] },
    ];
    for place in places {
        let expected = picked(&x, place);
        let [m, n] = place.shape;
        let mut own = Device::cpu().zeros([m, n]).unwrap();
        cpu::scope(|host| -> Result<()> {
            let view = host.borrow_strided(&x, place)?;
            assert_eq!(view.shape(), place.shape);
            // An axis of one element may have any stride.
            assert_eq!(view.slice::<0>(1..1)?.slice::<1>(1..1)?.len(), 0);
            assert_eq!(view.to_vec()?, expected, "{place:?}");
            add_one(&view, &mut own).sync()?;
            let turned = view.transpose::<0, 1>()?;
            assert_eq!(turned.transpose::<0, 1>()?.to_vec()?, expected);
            own.copy_from(&view)
        })
        .unwrap();
        assert_eq!(own.to_vec().unwrap(), expected, "{place:?}");
    }
    let one = cpu::scope(|host| host.borrow_strided(&x, Strided { offset: 41, shape: [], strides: [] })?.to_vec());
    assert_eq!(one.unwrap(), [41.0]);
}

#[test]
fn slices_are_written_with_strides_and_keep_what_is_between() {
    let stream = Device::cpu().stream().unwrap();
    let places = [
        Strided { offset: 7, shape: [5, 3], strides: [12, 1] },
        Strided { offset: 14, shape: [4, 3], strides: [1, 12] },
        Strided { offset: 1, shape: [3, 6], strides: [24, 2] },
        Strided { offset: 9, shape: [1, 1], strides: [0, 0] },
    ];
    for place in places {
        let mut x = vec![-1.0f32; 60];
        let [m, n] = place.shape;
        let ones = Device::cpu().full([m, n], 4.0).unwrap();
        cpu::scope(|host| -> Result<()> {
            let mut view = host.borrow_strided_mut(&mut x, place)?;
            view.fill(2.0)?;
            add_one(&ones, &mut view).launch(&stream)
        })
        .unwrap();
        let written = picked(&(0..60u8).map(f32::from).collect::<Vec<_>>(), place);
        for (i, v) in x.iter().enumerate() {
            assert_eq!(*v, if written.contains(&(i as f32)) { 5.0 } else { -1.0 }, "{place:?}, {i}");
        }
    }
}

#[test]
fn strides_that_leave_the_slice_or_overlap_are_refused() {
    let (x, codes, mut y) = ([0.0f32; 60], [i4::default(); 4], [0.0f32; 60]);
    cpu::scope(|host| {
        let told = |error: Error, says: &str| {
            assert!(matches!(error, Error::Strided { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with("[T1114] borrow_strided") && text.contains(says), "{text}");
        };
        let beyond = [
            Strided { offset: 1, shape: [5, 12], strides: [12, 1] },
            Strided { offset: 60, shape: [1, 1], strides: [1, 1] },
            Strided { offset: 0, shape: [2, 2], strides: [59, 1] },
            Strided { offset: 0, shape: [61, 1], strides: [1, 1] },
            Strided { offset: usize::MAX, shape: [2, 1], strides: [1, 1] },
            Strided { offset: 0, shape: [3, 1], strides: [usize::MAX / 2 + 1, 1] },
            Strided { offset: 0, shape: [(1 << 31) + 1, 2], strides: [1, 1] },
        ];
        for place in beyond {
            told(host.borrow_strided(&x, place).unwrap_err(), "reaches beyond the slice, which has 60");
        }
        // Any extents without elements are in any slice.
        let none = Strided { offset: usize::MAX, shape: [usize::MAX, 0], strides: [usize::MAX, 3] };
        assert_eq!(host.borrow_strided(&x, none).unwrap().to_vec().unwrap(), []);
        assert_eq!(host.borrow_strided::<f32, 2>(&[], none).unwrap().len(), 0);
        let repeated = Strided { offset: 0, shape: [1 << 40, 1 << 40], strides: [0, 0] };
        assert!(matches!(host.borrow_strided(&x, repeated).unwrap_err(), Error::TooLarge { .. }));
        let place = Strided { offset: 0, shape: [2], strides: [1] };
        let text = host.borrow_strided(&codes, place).unwrap_err().to_string();
        assert!(text.contains("elements of type `i4` have another layout"), "{text}");
    });
    let overlapping = [
        Strided { offset: 0, shape: [2, 3], strides: [0, 1] },
        Strided { offset: 0, shape: [2, 3], strides: [2, 1] },
        Strided { offset: 5, shape: [3, 3], strides: [1, 1] },
        Strided { offset: 59, shape: [2, 1], strides: [0, 1] },
    ];
    for place in overlapping {
        let error = cpu::scope(|host| host.borrow_strided_mut(&mut y, place).map(drop)).unwrap_err();
        assert!(matches!(error, Error::Strided { .. }), "{error}");
        assert!(error.to_string().starts_with("[T1114] borrow_strided_mut: with strides "), "{error}");
    }
    let mut flags = [true; 4];
    let place = Strided { offset: 0, shape: [2], strides: [2] };
    let text = cpu::scope(|host| host.borrow_strided_mut(&mut flags, place).map(drop)).unwrap_err().to_string();
    assert!(text.contains("elements of type `bool` have another layout"), "{text}");
}
