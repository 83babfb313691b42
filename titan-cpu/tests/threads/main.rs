//! Launches from the tasks of a work-stealing pool, in every nesting; with threads of their own and without.
//!
//! A thread that ran other tasks while it waits for a launch could begin one that waits for the launch below it. So each case
//! lets tasks wait for each other in every way that is legal where threads may be blocked, and has to end.

// With the error that Windows has for it, the harness ends when it cannot start a thread.
#[cfg(not(windows))]
mod alone;
// Only there can the address space of a process be limited.
#[cfg(target_os = "linux")]
mod memory;

use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use titan_core::verify::verify;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Options, Program, set_print_sink};

/// Tiles of a launch: enough that it is not run by one thread because it is short.
const TILES: usize = if cfg!(miri) { 8 } else { 512 };
const TILE: usize = 256;
/// Tasks that launch.
const TASKS: usize = if cfg!(miri) { 4 } else { 48 };

/// `x += 1`, four threads at a time.
const ADD_ONE: &str = "kernel @add_one(%x: mut tensor<f32>[N]) grid(cdiv(N, 256)) {
    %p = program_id<0> : i32
    %zero = const 0.0 : f32
    %one = const 1.0 : f32
    %ones = splat %one : tile<256xf32>
    %t = load_tile %x[%p] or %zero : tile<256xf32>
    %u = add %t, %ones
    store_tile %x[%p], %u
    return
}";

/// As `ADD_ONE`, and the program in the middle prints.
const PRINT: &str = "kernel @prints(%x: mut tensor<f32>[N]) grid(cdiv(N, 256)) {
    %p = program_id<0> : i32
    %zero = const 0.0 : f32
    %one = const 1.0 : f32
    %middle = const 4 : i32
    %ones = splat %one : tile<256xf32>
    %t = load_tile %x[%p] or %zero : tile<256xf32>
    %u = add %t, %ones
    store_tile %x[%p], %u
    %c = eq %p, %middle : bool
    if %c {
        print \"here\"
        yield
    } else {
        yield
    }
    return
}";

fn program(text: &str, threads: usize) -> Program {
    let kernel = titan_core::text::parse_one(text).unwrap_or_else(|e| panic!("{e:?}"));
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}"));
    let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
    Program::compile_with(&kernel, options).unwrap()
}

/// A vector on the device that says how often one was added to it.
struct Vector(Memory);

impl Vector {
    fn new() -> Vector {
        Vector(Memory::zeroed(TILES * TILE * 4).unwrap())
    }

    fn add_one(&self, program: &Program) {
        let extents = vec![i32::try_from(TILES * TILE).unwrap()];
        let x = Arg::Tensor { memory: self.0.clone(), offset: 0, extents, strides: vec![1] };
        program.run(&[x], [u32::try_from(TILES).unwrap(), 1, 1]).unwrap();
    }

    #[track_caller]
    fn is(&self, times: usize) {
        let mut bytes = vec![0; TILES * TILE * 4];
        self.0.read(0, &mut bytes).unwrap();
        let want = (times as f32).to_le_bytes();
        assert!(bytes.chunks_exact(4).all(|v| v == want), "not everywhere {times}");
    }
}

/// Runs a case, which has to end.
#[track_caller]
fn ends(case: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    std::thread::spawn(move || done.send(catch_unwind(AssertUnwindSafe(case))));
    match ended.recv_timeout(Duration::from_secs(120)) {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(RecvTimeoutError::Timeout) => panic!("the case does not end: some launch waits for itself"),
        Err(RecvTimeoutError::Disconnected) => panic!("the case ended without a word"),
    }
}

/// A pool whose threads are few enough that its tasks have to be stolen.
fn pool() -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap()
}

/// What prints goes to one place.
fn printing() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn tasks_that_hold_a_lock_while_they_launch() {
    ends(|| {
        let (add, x) = (program(ADD_ONE, 4), Mutex::new(Vector::new()));
        pool().in_place_scope(|s| {
            for _ in 0..TASKS {
                s.spawn(|_| x.lock().unwrap().add_one(&add));
            }
            x.lock().unwrap().add_one(&add);
        });
        x.lock().unwrap().is(TASKS + 1);
    });
}

#[test]
fn tasks_of_the_global_pool_that_hold_a_lock_while_they_launch() {
    ends(|| {
        let (add, x) = (program(ADD_ONE, 4), Mutex::new(Vector::new()));
        rayon::scope(|s| (0..TASKS).for_each(|_| s.spawn(|_| x.lock().unwrap().add_one(&add))));
        (0..TASKS).into_par_iter().for_each(|_| x.lock().unwrap().add_one(&add));
        x.lock().unwrap().is(2 * TASKS);
    });
}

#[test]
fn a_lock_held_over_a_join_of_launches() {
    ends(|| {
        let (add, x, y) = (program(ADD_ONE, 4), Mutex::new(Vector::new()), Vector::new());
        pool().scope(|s| {
            for _ in 0..TASKS {
                s.spawn(|_| {
                    rayon::join(|| x.lock().unwrap().add_one(&add), || x.lock().unwrap().add_one(&add));
                });
            }
        });
        let held = x.lock().unwrap();
        rayon::join(|| held.add_one(&add), || y.add_one(&add));
        held.is(2 * TASKS + 1);
        y.is(1);
    });
}

#[test]
fn parallel_iterators_over_vectors_within_each_other() {
    ends(|| {
        let add = program(ADD_ONE, 4);
        let all: Vec<Vec<Vector>> = (0..4).map(|_| (0..TASKS / 4).map(|_| Vector::new()).collect()).collect();
        let turns: Vec<Mutex<()>> = (0..4).map(|_| Mutex::new(())).collect();
        pool().install(|| {
            all.par_iter().zip(&turns).for_each(|(some, turn)| {
                some.par_iter().for_each(|x| {
                    let _turn = turn.lock().unwrap();
                    x.add_one(&add);
                });
                some.par_iter().for_each(|x| x.add_one(&add));
            });
        });
        all.iter().flatten().for_each(|x| x.is(2));
    });
}

/// Every thread of the pool is blocked until a launch elsewhere has ended.
#[test]
fn a_pool_that_is_blocked_does_not_block_launches() {
    ends(|| {
        let (add, x, pool) = (program(ADD_ONE, 4), Vector::new(), pool());
        let (all, ended) = (Barrier::new(4), Barrier::new(4));
        pool.in_place_scope(|s| {
            for _ in 0..3 {
                s.spawn(|_| {
                    all.wait();
                    ended.wait();
                });
            }
            all.wait();
            x.add_one(&add);
            ended.wait();
        });
        x.is(1);
    });
}

#[test]
fn many_threads_launch_at_once_one_program() {
    ends(|| {
        for threads in [1, 2, 3, 16] {
            let add = program(ADD_ONE, threads);
            let vectors: Vec<Vector> = (0..8).map(|_| Vector::new()).collect();
            std::thread::scope(|s| {
                for x in &vectors {
                    s.spawn(|| (0..4).for_each(|_| x.add_one(&add)));
                }
            });
            vectors.iter().for_each(|x| x.is(4));
        }
    });
}

/// The sink of a kernel launches a kernel whose sink launches one.
#[test]
fn launches_inside_a_callback() {
    let _one = printing();
    ends(|| {
        let (add, depth) = (program(PRINT, 4), Arc::new(AtomicUsize::new(0)));
        let vectors: Arc<Vec<Vector>> = Arc::new((0..4).map(|_| Vector::new()).collect());
        let inner = (Arc::clone(&vectors), program(PRINT, 4), Arc::clone(&depth));
        set_print_sink(Some(Arc::new(move |_| {
            let (vectors, add, depth) = &inner;
            if let Some(x) = vectors.get(depth.fetch_add(1, Relaxed) + 1) {
                rayon::join(|| x.add_one(add), || ());
            }
        })));
        pool().install(|| vectors[0].add_one(&add));
        set_print_sink(None);
        vectors.iter().for_each(|x| x.is(1));
        assert_eq!(depth.load(Relaxed), 4);
    });
}

/// A panic of the sink ends the launch with it, in whatever thread it was, and nothing after it.
#[test]
fn a_callback_that_panics() {
    let _one = printing();
    ends(|| {
        let (prints, add, x) = (program(PRINT, 4), program(ADD_ONE, 4), Vector::new());
        for _ in 0..TASKS {
            set_print_sink(Some(Arc::new(|_| std::panic::resume_unwind(Box::new("the sink")))));
            let panic = catch_unwind(AssertUnwindSafe(|| x.add_one(&prints))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"the sink"));
        }
        set_print_sink(None);
        // The memory is free again, and so are the threads.
        let y = Vector::new();
        x.0.write(0, &vec![0; TILES * TILE * 4]).unwrap();
        pool().install(|| rayon::join(|| x.add_one(&add), || y.add_one(&add)));
        x.is(1);
        y.is(1);
    });
}
