//! Captures, replays and updates.

use crate::host_devices::devices;
use crate::runtime_kernels::{accumulate, add, fill, scale, slow_fill, trap_at};
use titan::{Device, Error, Tensor};

fn three(device: &Device) -> [Tensor<f32, 1>; 3] {
    [(); 3].map(|()| device.zeros([4]).unwrap())
}

#[test]
fn launches_are_captured_and_replayed_on_every_device() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, mut z] = three(&device);
        let graph = s.capture(|| {
            add(&x, &mut y, 1.0).launch(&s)?;
            scale(&mut y, 2.0).launch(&s)?;
            add(&y, &mut z, 0.5).launch(&s)
        });
        let graph = graph.unwrap();
        assert_eq!((graph.launches(), graph.device()), (3, &device));
        assert_eq!(graph.kernels().collect::<Vec<_>>(), ["add", "scale", "add"]);
        assert!(format!("{graph:?}").contains("\"scale\""), "{graph:?}");
        assert_eq!(
            (y.to_vec().unwrap(), z.to_vec().unwrap()),
            (vec![0.0; 4], vec![0.0; 4]),
            "{device}: nothing has run"
        );
        for (value, stream) in [(0.0, &s), (1.0, &device.default_stream()), (5.0, &s), (5.0, &s)] {
            x.fill(value).unwrap();
            graph.launch(stream).unwrap();
            assert_eq!(z.to_vec().unwrap(), [2.0 * value + 2.5; 4], "{device}");
        }
        s.sync().unwrap();
    }
}

#[test]
fn replays_are_ordered_with_launches_of_all_streams() {
    for device in devices() {
        let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
        let [mut x, mut y, _] = three(&device);
        slow_fill(&mut x, 1.0, 2000).launch(&t).unwrap();
        // Each replay doubles x and adds it to y.
        let graph = s.capture(|| {
            scale(&mut x, 2.0).launch(&s)?;
            accumulate(&x, &mut y, 1).launch(&s)
        });
        let graph = graph.unwrap();
        graph.launch(&s).unwrap();
        graph.launch(&t).unwrap();
        add(&y, &mut x, 1.0).launch(&s).unwrap();
        graph.launch(&t).unwrap();
        // 2, 2 + 4, then x = 7, doubled, and added.
        assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![14.0; 4], vec![20.0; 4]), "{device}");
    }
}

#[test]
fn threads_replay_one_graph() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, _] = three(&device);
        fill(&mut x, 1.0).sync().unwrap();
        let graph = s.capture(|| accumulate(&x, &mut y, 1).launch(&s)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let stream = device.stream().unwrap();
                    (0..5).for_each(|_| graph.launch(&stream).unwrap());
                    stream.sync().unwrap();
                });
            }
        });
        assert_eq!(y.to_vec().unwrap(), [20.0; 4], "{device}");
    }
}

#[test]
fn arguments_are_replaced_on_every_device() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, mut z] = three(&device);
        let mut graph = s.capture(|| {
            fill(&mut x, 3.0).launch(&s)?;
            add(&x, &mut y, 1.0).launch(&s)
        });
        let graph = graph.as_mut().unwrap();
        graph.launch(&s).unwrap();
        // A number, a tensor, and a tensor of other extents.
        graph.set(0, fill(&mut x, 5.0)).unwrap();
        graph.set(1, add(&x, &mut z, 1.0)).unwrap();
        graph.launch(&s).unwrap();
        assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), (vec![4.0; 4], vec![6.0; 4]), "{device}");
        let mut long = device.zeros([200]).unwrap();
        graph.set(0, fill(&mut long, 7.0)).unwrap();
        graph.launch(&s).unwrap();
        assert_eq!((long.to_vec().unwrap(), z.to_vec().unwrap()), (vec![7.0; 200], vec![6.0; 4]), "{device}");
        // All at once.
        graph
            .update(|| {
                fill(&mut y, 8.0).launch(&s)?;
                add(&y, &mut x, 1.0).launch(&s)
            })
            .unwrap();
        graph.launch(&s).unwrap();
        assert_eq!((x.to_vec().unwrap(), long.to_vec().unwrap()), (vec![9.0; 4], vec![7.0; 200]), "{device}");
    }
}

#[test]
fn a_replay_that_is_enqueued_keeps_its_arguments() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, mut z] = three(&device);
        let mut graph = s.capture(|| fill(&mut y, 1.0).launch(&s)).unwrap();
        slow_fill(&mut x, 1.0, 2000).launch(&s).unwrap();
        graph.launch(&s).unwrap();
        graph.set(0, fill(&mut z, 2.0)).unwrap();
        graph.launch(&s).unwrap();
        assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), (vec![1.0; 4], vec![2.0; 4]), "{device}");
    }
}

#[test]
fn a_failed_replay_is_reported_once_and_the_next_one_may_succeed() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, mut z] = three(&device);
        let mut graph = s.capture(|| {
            fill(&mut x, 1.0).launch(&s)?;
            trap_at(&mut y, 2).launch(&s)?;
            fill(&mut z, 1.0).launch(&s)
        });
        let graph = graph.as_mut().unwrap();
        graph.launch(&s).unwrap();
        let error = s.sync().unwrap_err();
        assert!(matches!(error, Error::Trap { .. }) && error.to_string().contains("`trap_at"), "{device}: {error}");
        s.sync().unwrap();
        // It fails as a whole, so what depends on any of its outputs fails.
        graph.launch(&s).unwrap();
        assert!(matches!(x.to_vec(), Err(Error::Trap { .. })), "{device}");
        graph.launch(&s).unwrap();
        let other = device.stream().unwrap();
        scale(&mut z, 2.0).launch(&other).unwrap();
        assert!(matches!(other.sync(), Err(Error::Dependency { .. })), "{device}");
        let _ = s.sync();
        graph.set(1, trap_at(&mut y, 4)).unwrap();
        [&mut x, &mut z].into_iter().for_each(|t| t.write(&[0.0; 4]).unwrap());
        y.write(&[0.0; 4]).unwrap();
        graph.launch(&s).unwrap();
        assert_eq!([&x, &y, &z].map(|t| t.to_vec().unwrap()), [[1.0; 4]; 3].map(Vec::from), "{device}");
        s.sync().unwrap();
    }
}

#[test]
fn a_replay_of_bad_data_does_not_run() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [mut x, mut y, _] = three(&device);
        let graph = s.capture(|| add(&x, &mut y, 1.0).launch(&s)).unwrap();
        trap_at(&mut x, 0).launch(&s).unwrap();
        graph.launch(&s).unwrap();
        let error = y.to_vec().unwrap_err();
        assert!(matches!(error, Error::Trap { .. } | Error::Dependency { .. }), "{device}: {error}");
        let _ = s.sync();
        x.write(&[1.0; 4]).unwrap();
        y.write(&[0.0; 4]).unwrap();
        graph.launch(&s).unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 4], "{device}");
    }
}

#[test]
fn memory_without_contents_may_be_made_in_a_capture() {
    for device in devices() {
        let s = device.stream().unwrap();
        let [x, _, mut z] = three(&device);
        let graph = s.capture(|| {
            // SAFETY: `add` writes all elements before `z` is made of them.
            #[expect(unsafe_code, reason = "what is tested")]
            let mut between: Tensor<f32, 1> = unsafe { device.uninit([4])? };
            add(&x, &mut between, 1.0).launch(&s)?;
            add(&between, &mut z, 1.0).launch(&s)
        });
        let graph = graph.unwrap();
        for _ in 0..3 {
            z.fill(0.0).unwrap();
            graph.launch(&s).unwrap();
            assert_eq!(z.to_vec().unwrap(), [2.0; 4], "{device}");
        }
    }
}
