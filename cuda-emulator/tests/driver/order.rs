//! When operations run, and the errors of operations that are not ordered.

use crate::harness::{Cuda, KERNELS, LAUNCH_FAILED, NOT_READY, OK, call};

const ORDERS: [&str; 5] = ["late", "early", "random:1", "random:2", "random:3"];

#[test]
fn a_missing_wait_is_told_in_every_order() {
    for order in ORDERS {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (first, second) = (cuda.stream(), cuda.stream());
        let scale = cuda.kernel(KERNELS, "scale");
        for waits in [true, false] {
            let x = cuda.upload(&[1.0; 32]);
            assert_eq!(cuda.launch(scale, (1, 32), first, &[x]), OK);
            if waits {
                let event = cuda.event();
                cuda.record(event, first);
                cuda.wait(second, event);
            }
            let launched = cuda.launch(scale, (1, 32), second, &[x]);
            let synced = (cuda.sync(second), cuda.sync(first));
            if waits {
                assert_eq!((launched, synced), (OK, (OK, OK)), "{order}");
                assert_eq!(cuda.download(x, 32), Ok(vec![4.0; 32]), "{order}");
            } else {
                assert_eq!(synced.1, LAUNCH_FAILED, "{order}");
                // From then on every call returns the error.
                assert_eq!(cuda.download(x, 32), Err(LAUNCH_FAILED), "{order}");
                assert_eq!(call!(cuda, cuCtxSynchronize()), LAUNCH_FAILED);
            }
        }
    }
}

#[test]
fn halves_of_an_allocation_are_not_each_others() {
    for order in ORDERS {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (first, second) = (cuda.stream(), cuda.stream());
        let scale = cuda.kernel(KERNELS, "scale");
        let x = cuda.upload(&[1.0; 64]);
        assert_eq!(cuda.launch(scale, (1, 32), first, &[x]), OK);
        assert_eq!(cuda.launch(scale, (1, 32), second, &[x + 128]), OK);
        assert_eq!((cuda.sync(first), cuda.sync(second)), (OK, OK), "{order}");
        assert_eq!(cuda.download(x, 64), Ok(vec![2.0; 64]));
        // One element in common.
        assert_eq!(cuda.launch(scale, (1, 32), first, &[x]), OK);
        cuda.launch(scale, (1, 32), second, &[x + 124]);
        assert_eq!((cuda.sync(first), cuda.sync(second)).1, LAUNCH_FAILED, "{order}");
    }
}

#[test]
fn late_is_when_somebody_waits() {
    let cuda = Cuda::new(&[("ORDER", "late")]);
    let (one, other) = (cuda.stream(), cuda.stream());
    let scale = cuda.kernel(KERNELS, "scale");
    let (x, y) = (cuda.upload(&[1.0; 32]), cuda.upload(&[1.0; 32]));
    assert_eq!(cuda.launch(scale, (1, 32), one, &[x]), OK);
    assert_eq!(cuda.launch(scale, (1, 32), other, &[y]), OK);
    let event = cuda.event();
    cuda.record(event, one);
    assert_eq!(call!(cuda, cuEventQuery(event => u64)), NOT_READY);
    assert_eq!(cuda.sync(other), OK);
    // Polling terminates.
    let answers: Vec<u32> = (0..4).map(|_| call!(cuda, cuStreamQuery(one => u64))).collect();
    assert_eq!(answers.last(), Some(&OK), "{answers:?}");
    assert_eq!(call!(cuda, cuEventQuery(event => u64)), OK);
    assert_eq!((cuda.download(x, 32), cuda.download(y, 32)), (Ok(vec![2.0; 32]), Ok(vec![2.0; 32])));
}

#[test]
fn the_default_stream_waits_for_blocking_streams_only() {
    for order in ORDERS {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let mut blocking = 0_u64;
        assert_eq!(call!(cuda, cuStreamCreate(&raw mut blocking => *mut u64, 0 => u32)), OK);
        let scale = cuda.kernel(KERNELS, "scale");
        let x = cuda.upload(&[1.0; 32]);
        for stream in [blocking, 0, blocking, 0] {
            assert_eq!(cuda.launch(scale, (1, 32), stream, &[x]), OK);
        }
        assert_eq!(cuda.download(x, 32), Ok(vec![16.0; 32]), "{order}");
        // A copy that the host waits for is on the default stream, and waits for no other kind.
        let free = cuda.stream();
        assert_eq!(cuda.launch(scale, (1, 32), free, &[x]), OK);
        let copied = cuda.download(x, 32);
        assert!(copied == Err(LAUNCH_FAILED) || cuda.sync(free) == LAUNCH_FAILED, "{order}");
    }
}

#[test]
fn atomic_operations_need_no_order_among_themselves() {
    for order in ORDERS {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (one, other) = (cuda.stream(), cuda.stream());
        let count = cuda.kernel(KERNELS, "count");
        let x = cuda.upload(&[0.0]);
        assert_eq!(cuda.launch(count, (2, 32), one, &[x]), OK);
        assert_eq!(cuda.launch(count, (1, 32), other, &[x]), OK);
        assert_eq!((cuda.sync(one), cuda.sync(other)), (OK, OK), "{order}");
        assert_eq!(cuda.download(x, 1).map(|v| v[0].to_bits()), Ok(96));
        // With anything else they do.
        assert_eq!(cuda.launch(count, (1, 32), one, &[x]), OK);
        call!(cuda, cuMemsetD8Async(x => u64, 0 => u8, 4 => usize, other => u64));
        assert_eq!((cuda.sync(one), cuda.sync(other)).1, LAUNCH_FAILED, "{order}");
    }
}

#[test]
fn events_carry_order_from_stream_to_stream_to_host() {
    for order in ORDERS {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let streams = [cuda.stream(), cuda.stream(), cuda.stream()];
        let scale = cuda.kernel(KERNELS, "scale");
        let x = cuda.upload(&[1.0; 32]);
        let event = cuda.event();
        for stream in streams {
            cuda.wait(stream, event);
            assert_eq!(cuda.launch(scale, (1, 32), stream, &[x]), OK);
            // The same event again: the earlier wait refers to the earlier record.
            cuda.record(event, stream);
        }
        assert_eq!(call!(cuda, cuEventSynchronize(event => u64)), OK);
        // It is ordered before the host, so it is ordered before the default stream as well.
        assert_eq!(cuda.download(x, 32), Ok(vec![8.0; 32]), "{order}");
        assert_eq!(call!(cuda, cuStreamDestroy_v2(streams[0] => u64)), OK);
        assert_eq!(cuda.sync(streams[0]), 400);
        assert_eq!((call!(cuda, cuEventDestroy_v2(event => u64)), call!(cuda, cuEventQuery(event => u64))), (OK, 400));
    }
}
