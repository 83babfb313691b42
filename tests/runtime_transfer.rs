//! Tensors of bytes and without contents, and copies into existing tensors and slices: on every device, for every layout and bad input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::cast_precision_loss, reason = "small numbers")]

mod host_devices;
mod host_operations;
mod runtime_kernels;

use host_devices::devices;
use host_operations::make_fill_copy_read;
use runtime_kernels::{add, fill, scale, slow_fill, trap_at};
use titan::lang::{bf16, e4m3, f16, i4, tf32, u4};
use titan::{Device, Error, Tensor};

#[test]
fn tensors_are_made_filled_copied_and_read_on_every_device() {
    for device in devices() {
        make_fill_copy_read(&device).unwrap();
    }
}

#[test]
fn bytes_at_any_address_become_tensors_of_their_type() {
    for device in devices() {
        let bytes: Vec<u8> = (0..33).collect();
        for start in [0, 1] {
            let x: Tensor<u32, 2> = device.tensor_from_bytes(&bytes[start..][..32], [4, 2]).unwrap();
            let expected: Vec<u32> =
                bytes[start..][..32].as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
            assert_eq!(x.to_vec().unwrap(), expected);
        }
        let codes: Tensor<i4, 1> = device.tensor_from_bytes([0x8F, 0x70], [4]).unwrap();
        assert_eq!(codes.to_vec().unwrap(), [-1, -8, 0, 7].map(i4::from_i8));
        let flags: Tensor<bool, 1> = device.tensor_from_bytes([0, 1, 1], [3]).unwrap();
        assert_eq!(flags.to_vec().unwrap(), [false, true, true]);
        let one: Tensor<f16, 0> = device.tensor_from_bytes([0, 0x3C], []).unwrap();
        assert_eq!(one.to_vec().unwrap(), [f16::ONE]);
        let none: Tensor<f64, 2> = device.tensor_from_bytes([], [usize::MAX, 0]).unwrap();
        assert!(none.is_empty());
    }
}

#[test]
fn bytes_that_are_not_the_tensors_are_refused() {
    for device in devices() {
        let told = |error: Error| {
            assert!(matches!(error, Error::TensorBytes { .. }), "{error}");
            error.to_string()
        };
        let text = told(device.tensor_from_bytes::<f32, 2>([0; 23], [2, 3]).unwrap_err());
        assert!(
            text.starts_with("[T1103] 23 bytes were given for shape [2, 3] of elements `f32`, which needs 24\n"),
            "{text}"
        );
        told(device.tensor_from_bytes::<u4, 1>([0; 4], [4]).unwrap_err());
        told(device.tensor_from_bytes::<bool, 1>([0, 2], [2]).unwrap_err());
        told(device.tensor_from_bytes::<tf32, 1>([1, 0, 0, 0], [1]).unwrap_err());
        told(device.tensor_from_bytes::<e4m3, 1>([], [1]).unwrap_err());
        let error = device.tensor_from_bytes::<u4, 1>([0], [1]).unwrap_err();
        assert!(matches!(error, Error::Layout { .. }), "{error}");
        let error = device.tensor_from_bytes::<f32, 2>([], [1 << 40, 1 << 40]).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
}

/// Of every layout that views can have, the elements that are not of the view stay as they are.
#[test]
fn a_view_is_filled_and_overwritten_within_its_elements() {
    for device in devices() {
        let mut x = device.from_fn([6, 5, 4], |[i, j, k]| (20 * i + 4 * j + k) as i32).unwrap();
        let mut model: Vec<i32> = (0..120).collect();
        let mut inside = x.slice_mut::<0>(1..4).unwrap();
        let mut inside = inside.slice_mut::<1>(2..5).unwrap();
        let mut inside = inside.permute_mut([2, 0, 1]).unwrap();
        inside.fill(-7).unwrap();
        for (i, j, k) in (1..4).flat_map(|i| (2..5).flat_map(move |j| (0..4).map(move |k| (i, j, k)))) {
            model[20 * i + 4 * j + k] = -7;
        }
        let source = device.from_fn([1, 3, 1], |[_, i, _]| 1000 + i as i32).unwrap();
        inside.copy_from(&source.broadcast([4, 3, 3]).unwrap()).unwrap();
        for (i, j, k) in (1..4).flat_map(|i| (2..5).flat_map(move |j| (0..4).map(move |k| (i, j, k)))) {
            model[20 * i + 4 * j + k] = 1000 + i as i32 - 1;
        }
        let mut out = vec![0; 36];
        inside.read_into(&mut out).unwrap();
        assert!(out.iter().enumerate().all(|(n, v)| *v == 1000 + (n / 3 % 3) as i32), "{out:?}");
        assert_eq!(x.to_vec().unwrap(), model, "{device}");
    }
}

#[test]
fn halves_of_a_tensor_are_copied_to_each_other() {
    for device in devices() {
        let mut x = device.from_fn([2, 100], |[i, j]| (100 * i + j) as u64).unwrap();
        let (mut head, tail) = x.split_at_mut::<0>(1).unwrap();
        head.copy_from(&*tail).unwrap();
        assert!(x.to_vec().unwrap().into_iter().eq((100..200).chain(100..200)));
        let (mut left, right) = x.split_at_mut::<1>(50).unwrap();
        left.copy_from(&*right).unwrap();
        assert!(x.index::<0>(1).unwrap().to_vec().unwrap().into_iter().eq((150..200).chain(150..200)));
    }
}

#[test]
fn tensors_of_different_devices_are_copied() {
    let all = devices();
    for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (from, to))) {
        let x = from.from_fn([3, 70], |[i, j]| bf16::from_f32((i + j) as f32)).unwrap();
        let mut y = to.zeros([3, 70]).unwrap();
        y.copy_from(&x).unwrap();
        assert_eq!(y.to_vec().unwrap(), x.to_vec().unwrap());
        let mut z = to.zeros([70, 3]).unwrap();
        z.copy_from(&x.transpose::<0, 1>().unwrap()).unwrap();
        assert_eq!(z.transpose::<0, 1>().unwrap().to_vec().unwrap(), x.to_vec().unwrap());
    }
}

#[test]
fn what_is_long_is_copied_in_pieces() {
    let n = (1 << 18) + 6;
    let device = Device::cpu();
    let x = device.from_fn([2, n], |[i, j]| (i * n + j) as u32).unwrap();
    let mut y = device.full([2, n], u32::MAX - 1).unwrap();
    assert!(y.to_vec().unwrap().iter().all(|v| *v == u32::MAX - 1));
    y.copy_from(&x).unwrap();
    let mut out = vec![0; 2 * n];
    y.read_into(&mut out).unwrap();
    assert!(out.into_iter().eq(0..2 * n as u32));
    let mut codes = device.full([n], u4::from_u8(5)).unwrap();
    codes.slice_mut::<0>(2..n - 2).unwrap().fill(u4::from_u8(9)).unwrap();
    let codes: Vec<u8> = codes.to_vec().unwrap().into_iter().map(u4::to_u8).collect();
    assert!(codes[..2] == [5, 5] && codes[n - 2..] == [5, 5] && codes[2..n - 2].iter().all(|c| *c == 9));
}

#[test]
fn nothing_and_one_element_are_copied_too() {
    for device in devices() {
        let mut none: Tensor<f32, 3> = device.zeros([usize::MAX, 0, usize::MAX]).unwrap();
        none.fill(1.0).unwrap();
        none.copy_from(&device.full([usize::MAX, 0, usize::MAX], 2.0).unwrap()).unwrap();
        none.read_into(&mut []).unwrap();
        let mut one: Tensor<i64, 0> = device.full([], 5).unwrap();
        one.fill(-6).unwrap();
        let mut out = [0];
        one.read_into(&mut out).unwrap();
        assert_eq!(out, [-6]);
        one.copy_from(&device.tensor([9], []).unwrap()).unwrap();
        assert_eq!(one.to_vec().unwrap(), [9]);
        // SAFETY: nothing is there to be read.
        #[expect(unsafe_code, reason = "what is tested")]
        let undefined: Tensor<f32, 2> = unsafe { device.uninit([0, 1 << 31]).unwrap() };
        assert_eq!(undefined.to_vec().unwrap(), []);
    }
}

#[test]
fn other_shapes_and_slices_are_refused_and_nothing_is_written() {
    for device in devices() {
        let mut x = device.full([2, 3], 1.0f32).unwrap();
        let error = x.copy_from(&device.zeros([3, 2]).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Copy { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("[T1111] copy_from: the source has the shape [3, 2], but the tensor has [2, 3]\n  help: "),
            "{text}"
        );
        x.copy_from(&device.zeros([1, 3]).unwrap()).unwrap_err();
        x.view_mut().copy_from(&device.zeros([0, 3]).unwrap()).unwrap_err();
        let mut out = [7.0; 7];
        let text = x.read_into(&mut out).unwrap_err().to_string();
        let start = "[T1111] read_into: the slice has 7 elements, but the tensor of shape [2, 3] has 6\n  help: ";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(out, [7.0; 7]);
        x.read_into(&mut out[..6]).unwrap();
        assert_eq!(out, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 7.0]);
        x.read_into(&mut []).unwrap_err();
    }
}

/// Copies wait for launches on streams in both directions, and report what failed.
#[test]
fn copies_are_ordered_with_launches() {
    for device in devices() {
        let spins = if device == Device::cpu() { 20_000 } else { 100 };
        let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        slow_fill(&mut x, 3.0, spins).launch(&s).unwrap();
        y.copy_from(&x).unwrap();
        scale(&mut y, 2.0).launch(&t).unwrap();
        add(&y, &mut x, 1.0).launch(&s).unwrap();
        y.fill(9.0).unwrap();
        let mut out = [0.0; 4];
        x.read_into(&mut out).unwrap();
        assert_eq!((out, y.to_vec().unwrap()), ([7.0; 4], vec![9.0; 4]), "{device}");
        trap_at(&mut x, 1).launch(&s).unwrap();
        let error = y.copy_from(&x).unwrap_err();
        assert!(matches!(error, Error::Trap { .. }), "{error}");
        trap_at(&mut x, 1).launch(&s).unwrap();
        assert!(matches!(x.read_into(&mut out).unwrap_err(), Error::Trap { .. }));
        trap_at(&mut x, 1).launch(&s).unwrap();
        // What overwrites everything needs nothing of what failed.
        drop(x.fill(4.0));
        x.fill(4.0).unwrap();
        assert_eq!(x.to_vec().unwrap(), [4.0; 4]);
    }
}

/// What a launch writes completely needs no contents before. The emulators report what is read before it is written.
#[test]
#[expect(unsafe_code, reason = "what is tested")]
fn undefined_elements_are_written_before_they_are_read() {
    for device in devices() {
        // SAFETY: the launch writes all elements.
        let mut y: Tensor<f32, 1> = unsafe { device.uninit([5]).unwrap() };
        fill(&mut y, 2.0).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 5]);
        // SAFETY: as above.
        let mut y: Tensor<f32, 1> = unsafe { device.uninit([5]).unwrap() };
        y.write(&[1.0; 5]).unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0; 5]);
        if device == Device::cpu() {
            continue;
        }
        // SAFETY: the emulator reports what is read, and returns nothing of it.
        let mut y: Tensor<f32, 1> = unsafe { device.uninit([5]).unwrap() };
        y.slice_mut::<0>(0..4).unwrap().fill(1.0).unwrap();
        assert_eq!(y.slice::<0>(1..4).unwrap().to_vec().unwrap(), [1.0; 3]);
        let error = y.to_vec().unwrap_err();
        assert!(matches!(error, Error::Unwritten { .. }), "{error}");
        let text = error.to_string();
        let start = format!("[T1110] elements that nothing has written are read on {device}: ");
        assert!(text.starts_with(&start) && text.contains("\n  help: "), "{text}");
        y.read_into(&mut [0.0; 5]).unwrap_err();
        let mut z = device.zeros([5]).unwrap();
        match add(&y, &mut z, 1.0).sync() {
            Err(error) => assert!(matches!(error, Error::Emulated { .. }), "{error}"),
            // The emulator of gfx942 follows undefined bits to where something depends on them.
            Ok(()) => assert!(matches!(z.to_vec().unwrap_err(), Error::Unwritten { .. }), "{device}"),
        }
    }
}

#[test]
fn an_operation_that_is_not_used_is_dropped_or_forgotten_without_harm() {
    for device in devices() {
        let s = device.stream().unwrap();
        let mut x = device.zeros([4]).unwrap();
        let y = device.full([4], 6.0f32).unwrap();
        slow_fill(&mut x, 1.0, 100).launch(&s).unwrap();
        std::mem::forget(x.view_mut());
        std::mem::forget(y.view());
        x.copy_from(&y).unwrap();
        drop(y);
        drop(s);
        assert_eq!(x.to_vec().unwrap(), [6.0; 4]);
    }
}
