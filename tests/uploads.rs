//! Copies from pinned memory, on every device: order, failures, dropped and forgotten values, bad input; and outputs in memory without contents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod host_devices;
mod runtime_kernels;

use host_devices::devices;
use runtime_kernels::{add, copy_and_trap, slow_fill, trap_at};
use std::mem::MaybeUninit;
use titan::lang::{bf16, e4m3, i4};
use titan::{Device, Error};

#[test]
fn uploads_are_ordered_with_launches_of_all_streams() {
    for device in devices() {
        let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        let mut staging = device.pinned::<f32>(4).unwrap();
        assert_eq!(format!("{staging:?}"), "Pinned(4 elements of `f32`)");
        for step in 0..4 {
            staging.copy_from_slice(&[step as f32; 4]);
            // After the launches that read the tensor, and before those that are made later.
            slow_fill(&mut x, 99.0, 500).launch(&t).unwrap();
            let upload = x.upload(staging, &s).unwrap();
            add(&x, &mut y, 1.0).launch(&t).unwrap();
            staging = upload.wait().unwrap();
            assert_eq!(staging[..], [step as f32; 4]);
            assert_eq!(y.to_vec().unwrap(), [step as f32 + 1.0; 4], "{device}");
        }
    }
}

#[test]
fn every_plain_element_type_is_uploaded_to_any_contiguous_part() {
    for device in devices() {
        let s = device.default_stream();
        let mut x = device.full([3, 5], bf16::from_f32(-1.0)).unwrap();
        let mut staging = device.pinned::<bf16>(5).unwrap();
        staging.iter_mut().zip([1.0, 2.0, 3.0, 4.0, 5.0]).for_each(|(to, v)| *to = bf16::from_f32(v));
        let upload = x.index_mut::<0>(1).unwrap().upload(staging, &s).unwrap();
        let _ = format!("{upload:?}");
        upload.wait().unwrap();
        let found: Vec<f32> = x.to_vec().unwrap().iter().map(|v| v.to_f32()).collect();
        let expected = [[-1.0; 5], [1.0, 2.0, 3.0, 4.0, 5.0], [-1.0; 5]].concat();
        assert_eq!(found, expected, "{device}");
        let mut flags = device.full([3], false).unwrap();
        let mut staging = device.pinned::<bool>(3).unwrap();
        staging.as_mut()[1] = true;
        assert_eq!(device.tensor(&staging, [3]).unwrap().to_vec().unwrap(), [false, true, false]);
        flags.upload(staging, &s).unwrap().wait().unwrap();
        assert_eq!(flags.to_vec().unwrap(), [false, true, false]);
        let mut none = device.zeros::<f64, 1>([0]).unwrap();
        let staging = none.upload(device.pinned(0).unwrap(), &s).unwrap().wait().unwrap();
        assert!(staging.is_empty());
    }
}

#[test]
fn values_are_dropped_and_forgotten_in_every_order() {
    for device in devices() {
        for order in 0..6 {
            let s = device.stream().unwrap();
            let (mut x, mut y) = (device.zeros([64]).unwrap(), device.zeros([64]).unwrap());
            let mut staging = device.pinned::<f32>(64).unwrap();
            staging.fill(5.0);
            slow_fill(&mut x, 1.0, 1000).launch(&s).unwrap();
            let upload = x.upload(staging, &s).unwrap();
            add(&x, &mut y, 1.0).launch(&s).unwrap();
            match order {
                0 => drop((upload, x, s)),
                1 => drop((s, x, upload)),
                2 => std::mem::forget((upload, x, s)),
                3 => {
                    drop((x, s));
                    let again = upload.wait().unwrap();
                    assert_eq!(again[..], [5.0; 64]);
                }
                4 => std::thread::spawn(move || drop((x, upload.wait().unwrap()))).join().unwrap(),
                _ => {
                    while !upload.is_over() {
                        std::thread::yield_now();
                    }
                    std::mem::forget(upload.wait().unwrap());
                    drop(x);
                }
            }
            // What is allocated now is other memory.
            let others: Vec<_> = (0..4).map(|_| device.pinned::<f32>(64).unwrap()).collect();
            assert!(others.iter().all(|other| other.iter().all(|v| *v == 0.0)), "{device}");
            assert_eq!(y.to_vec().unwrap(), [6.0; 64], "{device}, {order}");
        }
    }
}

#[test]
fn an_upload_after_a_failure_does_not_run_and_says_so() {
    for device in devices() {
        let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
        let mut x = device.zeros([4]).unwrap();
        trap_at(&mut x, 1).launch(&t).unwrap();
        let mut staging = device.pinned::<f32>(4).unwrap();
        staging.fill(2.0);
        // As with launches: it writes what the failed one should have written.
        let outcome = x.upload(staging, &s).and_then(titan::Upload::wait);
        assert!(matches!(outcome.unwrap_err(), Error::Dependency { .. } | Error::Trap { .. }), "{device}");
        let (_, _) = (s.sync(), t.sync());
        x.write(&[0.0; 4]).unwrap();
        let mut staging = device.pinned::<f32>(4).unwrap();
        staging.fill(3.0);
        x.upload(staging, &s).unwrap().wait().unwrap();
        assert_eq!(x.to_vec().unwrap(), [3.0; 4], "{device}");
        // A launch after it that traps is not its failure.
        let mut y = device.zeros([4]).unwrap();
        let upload = x.upload(device.pinned(4).unwrap(), &s).unwrap();
        copy_and_trap(&x, &mut y).launch(&s).unwrap();
        upload.wait().unwrap();
        s.sync().unwrap_err();
    }
}

#[test]
fn uploads_that_do_not_fit_are_refused() {
    let all = devices();
    for device in &all {
        let s = device.stream().unwrap();
        let mut x = device.full([2, 4], 1.0f32).unwrap();
        let told = |error: Error, says: &str| {
            assert!(matches!(error, Error::Copy { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("[T1111] upload: {says}")) && text.contains("\n  help: "), "{text}");
        };
        let staging = || device.pinned::<f32>(8).unwrap();
        let few = x.upload(device.pinned(7).unwrap(), &s).unwrap_err();
        told(few, "the memory has 7 elements, but the tensor of shape [2, 4] has 8");
        told(x.transpose_mut::<0, 1>().unwrap().upload(staging(), &s).unwrap_err(), "the tensor has strides [1, 4]");
        for other in all.iter().filter(|other| *other != device) {
            let error = x.upload(staging(), &other.default_stream()).unwrap_err();
            told(error, &format!("the tensor is on {device}, but the stream is on {other}"));
        }
        assert_eq!(x.to_vec().unwrap(), [1.0; 8]);
        for error in [device.pinned::<i4>(8).map(drop), device.pinned::<e4m3>(8).map(drop)] {
            let text = error.unwrap_err().to_string();
            assert!(
                text.starts_with("pinned: elements of type `") && text.contains("\n  help: pin their bytes"),
                "{text}"
            );
        }
        assert!(matches!(device.pinned::<f64>(usize::MAX / 4).unwrap_err(), Error::TooLarge { .. }));
        assert!(matches!(device.pinned::<u8>(1 << 62).unwrap_err(), Error::OutOfMemory { .. }));
        let captured = s.capture(|| x.upload(staging(), &s).map(drop)).unwrap_err();
        assert!(captured.to_string().starts_with("[T1123] `upload` cannot be captured into a graph: "), "{captured}");
    }
}

#[test]
fn outputs_are_written_to_memory_without_contents() {
    let x = vec![1.5f32; 100];
    let mut y: Vec<f32> = Vec::with_capacity(100);
    let mut part = [MaybeUninit::<u16>::uninit(); 6];
    titan::cpu::scope(|host| {
        let x = host.borrow(&x, [100])?;
        let room = &mut y.spare_capacity_mut()[..100];
        let mut y = host.borrow_uninit_mut(room, [100])?;
        add(&x, &mut y, 1.0).sync()?;
        let mut part = host.borrow_uninit_mut(&mut part, [2, 3])?;
        part.index_mut::<0>(1)?.fill(7)
    })
    .unwrap();
    // SAFETY: the scope has initialized all of them.
    #[expect(unsafe_code, reason = "what is tested")]
    let part = unsafe {
        y.set_len(100);
        part.map(|v| v.assume_init())
    };
    assert_eq!((y, part), (vec![2.5; 100], [0, 0, 0, 7, 7, 7]));
    let (mut few, mut flags) = ([MaybeUninit::<f32>::uninit(); 3], [MaybeUninit::<bool>::uninit(); 3]);
    let refused = titan::cpu::scope(|host| {
        let count = host.borrow_uninit_mut(&mut few, [4]).map(drop).unwrap_err();
        assert!(matches!(count, Error::ElementCount { found: 3, expected: 4, .. }), "{count}");
        host.borrow_uninit_mut(&mut flags, [3]).map(drop).unwrap_err()
    });
    assert!(refused.to_string().starts_with("borrow_uninit_mut: elements of type `bool`"), "{refused}");
    drop(Device::cpu());
}
