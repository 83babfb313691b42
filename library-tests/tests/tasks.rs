//! Launches on the CPU from tasks of a work-stealing pool: a thread that waits for a launch runs nothing else meanwhile, so no task
//! waits for one that is suspended below it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;
use titan::prelude::*;

/// Enough that a launch is dealt to threads.
const ROWS: usize = 64;
const COLS: usize = 4096;
const TASKS: usize = 24;

/// `y += 1`
#[titan::kernel(grid(M, cdiv(N, 512)))]
fn add_one(#[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let at = [program_id(0), program_id(1)];
    y.store_tile(at, y.load_tile::<1, 512>(at) + 1.0);
}

/// `c = a · bᵀ`
#[titan::kernel(grid(cdiv(M, 64), cdiv(N, 64)))]
fn product(
    #[shape(M, K)] a: &Tensor<f32, 2>,
    #[shape(N, K)] b: &Tensor<f32, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 64, 64>::zeros();
    for k in 0..cdiv(K, 64) {
        acc = mma(a.load_tile::<64, 64>([m, k]), b.load_tile::<64, 64>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc);
}

/// `a += 1` and `b += 2`
#[titan::kernel(grid(unchecked A))]
fn add_to_both(#[shape(A, B, C)] a: &mut Tensor<f32, 3>, #[shape(D, E, F)] b: &mut Tensor<f32, 3>) {
    let zero = program_id(0) * 0;
    if program_id(0) == 0 {
        a.store_tile([program_id(0), 0, 0], a.load_tile::<4, 4, 8>([program_id(0), 0, 0]) + 1.0);
        b.store_tile([program_id(0), zero, 0], b.load_tile::<4, 4, 8>([program_id(0), zero, 0]) + 2.0);
    }
}

/// Runs a case, which has to end.
#[track_caller]
fn ends(case: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        case();
        done.send(()).unwrap();
    });
    if ended.recv_timeout(Duration::from_secs(180)).is_ok() || thread.is_finished() {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    } else {
        panic!("the case does not end: some launch waits for itself");
    }
}

fn pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap()
}

#[test]
fn parts_of_a_tensor_from_tasks_of_one_scope() {
    ends(|| {
        let dev = Device::cpu();
        let mut y = dev.zeros::<f32, 2>([2 * ROWS, COLS]).unwrap();
        let (mut head, mut tail) = y.split_at_mut::<0>(ROWS).unwrap();
        for _ in 0..TASKS {
            pool().in_place_scope(|s| {
                s.spawn(|_| add_one(&mut head).sync().unwrap());
                add_one(&mut tail).sync().unwrap();
            });
            rayon::join(|| add_one(&mut head).sync().unwrap(), || add_one(&mut tail).sync().unwrap());
        }
        drop((head, tail));
        assert!(y.to_vec().unwrap().iter().all(|v| *v == 2.0 * TASKS as f32));
    });
}

#[test]
fn a_tensor_behind_a_lock() {
    ends(|| {
        let y = Mutex::new(Device::cpu().zeros::<f32, 2>([ROWS, COLS]).unwrap());
        rayon::scope(|s| (0..TASKS).for_each(|_| s.spawn(|_| add_one(&mut y.lock().unwrap()).sync().unwrap())));
        (0..TASKS).into_par_iter().for_each(|_| add_one(&mut y.lock().unwrap()).sync().unwrap());
        assert!(y.into_inner().unwrap().to_vec().unwrap().iter().all(|v| *v == 2.0 * TASKS as f32));
    });
}

/// The crate that multiplies may have threads of its own, if another crate of the program asks for them.
#[test]
fn products_behind_a_lock() {
    ends(|| {
        let dev = Device::cpu();
        let n = 512;
        let (a, b) = (dev.full([n, n], 1.0f32).unwrap(), dev.full([n, n], 2.0f32).unwrap());
        let c = Mutex::new(dev.zeros::<f32, 2>([n, n]).unwrap());
        pool().in_place_scope(|s| {
            for _ in 0..TASKS {
                s.spawn(|_| product(&a, &b, &mut c.lock().unwrap()).sync().unwrap());
            }
            product(&a, &b, &mut c.lock().unwrap()).sync().unwrap();
        });
        assert!(c.into_inner().unwrap().to_vec().unwrap().iter().all(|v| *v == 2.0 * n as f32));
    });
}

/// Every thread of the pool waits for a stream, whose launches run elsewhere.
#[test]
fn a_pool_that_waits_for_streams() {
    ends(|| {
        let dev = Device::cpu();
        let streams: Vec<Stream> = (0..2).map(|_| dev.stream().unwrap()).collect();
        let mut all: Vec<_> = (0..6).map(|_| dev.zeros::<f32, 2>([ROWS, COLS]).unwrap()).collect();
        pool().install(|| {
            all.par_iter_mut().enumerate().for_each(|(i, y)| {
                for _ in 0..TASKS {
                    add_one(y).launch(&streams[i % 2]).unwrap();
                }
                assert!(y.to_vec().unwrap().iter().all(|v| *v == TASKS as f32));
            });
        });
        streams.iter().for_each(|s| s.sync().unwrap());
    });
}

/// Copies and fills of the host, and events, wait for launches that run elsewhere.
#[test]
fn a_pool_that_copies_fills_and_waits_for_events() {
    ends(|| {
        let dev = Device::cpu();
        let stream = dev.stream().unwrap();
        let source = dev.full([ROWS, COLS], 5.0f32).unwrap();
        let mut all: Vec<_> = (0..6).map(|_| dev.zeros::<f32, 2>([ROWS, COLS]).unwrap()).collect();
        pool().install(|| {
            all.par_iter_mut().for_each(|y| {
                for _ in 0..TASKS {
                    y.fill(1.0).unwrap();
                    add_one(y).launch(&stream).unwrap();
                    let end = stream.record().unwrap();
                    end.wait().unwrap();
                    assert!(end.is_over());
                    y.slice_mut::<0>(0..1).unwrap().copy_from(&source.slice::<0>(3..4).unwrap()).unwrap();
                }
                let mut out = vec![0.0; ROWS * COLS];
                y.read_into(&mut out).unwrap();
                assert!(out[..COLS].iter().all(|v| *v == 5.0) && out[COLS..].iter().all(|v| *v == 2.0));
            });
        });
        stream.sync().unwrap();
    });
}

/// The parts of any axis share no element, so one launch may write both.
#[test]
fn both_parts_of_every_axis_in_one_launch() {
    fn check<const AX: usize>() {
        let dev = Device::cpu();
        let shape = [3, 4, 6];
        for at in 1..shape[AX] {
            let mut y = dev.zeros::<f32, 3>(shape).unwrap();
            let (mut head, mut tail) = y.split_at_mut::<AX>(at).unwrap();
            add_to_both(&mut head, &mut tail).sync().unwrap();
            drop((head, tail));
            let parts = y.split_at::<AX>(at).unwrap();
            assert!(parts.0.to_vec().unwrap().iter().all(|v| *v == 1.0), "axis {AX} at {at}");
            assert!(parts.1.to_vec().unwrap().iter().all(|v| *v == 2.0), "axis {AX} at {at}");
        }
    }
    check::<0>();
    check::<1>();
    check::<2>();
}
