//! `.await`: on an executor of ten lines, from two threads, and dropped midway.

#![expect(clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

mod runtime_kernels;

use runtime_kernels::{add, fill, slow_fill, trap_at};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use titan::{Device, Error, Result, Tensor};

/// Enough additions to take a moment: few where every instruction is emulated.
fn spins() -> i32 {
    if Device::best().unwrap().kind() == titan::DeviceKind::Cpu { 20_000 } else { 300 }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(out) => return out,
            Poll::Pending => thread::park(),
        }
    }
}

async fn chain(dev: Device, v: f32) -> Result<Vec<f32>> {
    let mut x = dev.zeros([4])?;
    let mut y = dev.zeros([4])?;
    slow_fill(&mut x, v, spins() / 4).await?;
    add(&x, &mut y, 1.0).await?;
    y.to_vec()
}

#[test]
fn an_awaited_launch_has_run() {
    assert_eq!(block_on(chain(Device::best().unwrap(), 2.0)).unwrap(), [3.0; 4]);
}

#[test]
fn futures_move_to_threads() {
    let threads: Vec<_> =
        (0..2u8).map(|i| thread::spawn(move || block_on(chain(Device::best().unwrap(), i.into())))).collect();
    for (i, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap().unwrap(), [i as f32 + 1.0; 4]);
    }
}

#[test]
fn two_futures_polled_by_one_task_both_end() {
    let dev = Device::best().unwrap();
    let (mut x, mut y) = (dev.zeros([4]).unwrap(), dev.zeros([4]).unwrap());
    let (a, b) = (slow_fill(&mut x, 1.0, spins() / 4).into_future(), slow_fill(&mut y, 2.0, spins() / 4).into_future());
    let (mut a, mut b) = (pin!(a), pin!(b));
    let mut left = 2;
    let mut done = [false; 2];
    block_on(std::future::poll_fn(|context| {
        for (i, future) in [a.as_mut(), b.as_mut()].into_iter().enumerate() {
            if !done[i] && future.poll(context).is_ready() {
                done[i] = true;
                left -= 1;
            }
        }
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![1.0; 4], vec![2.0; 4]));
}

#[test]
fn an_awaited_failure_is_its_result() {
    let dev = Device::best().unwrap();
    let mut x: Tensor<f32, 1> = dev.zeros([4]).unwrap();
    assert!(matches!(block_on(trap_at(&mut x, 1).into_future()), Err(Error::Trap { .. })));
    assert!(x.to_vec().is_ok());
    let y = dev.zeros([3]).unwrap();
    assert!(matches!(block_on(add(&y, &mut x, 1.0).into_future()), Err(Error::Shape { .. })));
}

#[test]
fn a_future_dropped_midway_leaves_memory_in_order() {
    let dev = Device::best().unwrap();
    let mut x = dev.zeros([4]).unwrap();
    {
        let mut future = pin!(slow_fill(&mut x, 9.0, spins()).into_future());
        let mut context = Context::from_waker(Waker::noop());
        let _ = future.as_mut().poll(&mut context);
    }
    assert_eq!(x.to_vec().unwrap(), [9.0; 4], "it runs to its end");
    drop(fill(&mut x, 1.0).into_future());
    assert_eq!(x.to_vec().unwrap(), [9.0; 4], "never polled, never run");
    {
        let mut gone = dev.zeros([4]).unwrap();
        let mut future = pin!(slow_fill(&mut gone, 9.0, spins()).into_future());
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// A waker that does something when it is woken.
struct Does<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Polls once with a waker that runs `f`, and drops the future.
fn poll_with(launch: titan::Launch<'_>, f: impl Fn() + Send + Sync + 'static) -> Poll<Result<()>> {
    let waker = Waker::from(Arc::new(Does(f)));
    pin!(launch.into_future()).as_mut().poll(&mut Context::from_waker(&waker))
}

#[test]
fn a_waker_that_panics_ends_no_thread_that_others_need() {
    let dev = Device::best().unwrap();
    let panics = [
        (|| panic!("a text")) as fn(),
        || std::panic::panic_any(7),
        // Dropping what was thrown panics as well.
        || std::panic::panic_any(Thrown),
    ];
    for round in 0..3u8 {
        // Awaited launches are distributed over several streams; all of these are used.
        for throw in panics {
            let mut x = dev.zeros([4]).unwrap();
            let _ = poll_with(slow_fill(&mut x, 1.0, spins()), throw);
            x.to_vec().unwrap();
        }
        assert_eq!(block_on(chain(dev.clone(), round.into())).unwrap(), [f32::from(round) + 1.0; 4]);
    }
}

/// A waker that panics when its last handle goes.
struct Falls;

impl Wake for Falls {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Falls {
    fn drop(&mut self) {
        assert!(thread::panicking(), "the last handle is gone");
    }
}

#[test]
fn a_waker_that_panics_when_it_is_dropped_leaves_the_launch_as_it_is() {
    let dev = Device::best().unwrap();
    let stream = dev.stream().unwrap();
    for _ in 0..8 {
        let mut x = dev.zeros([4]).unwrap();
        slow_fill(&mut x, 1.0, spins()).launch(&stream).unwrap();
        let mut future = pin!(trap_at(&mut x, 0).into_future());
        let mut poll = |waker: Waker| {
            let polled = || future.as_mut().poll(&mut Context::from_waker(&waker));
            let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(polled));
            // If the launch has ended, this is the last handle.
            drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(waker))));
            polled.unwrap_or(Poll::Pending)
        };
        // The second one takes the place of the first, which falls.
        let told = match poll(Waker::from(Arc::new(Falls))) {
            Poll::Pending => poll(Waker::noop().clone()),
            told @ Poll::Ready(_) => told,
        };
        let told = match told {
            Poll::Pending => block_on(future.as_mut()),
            Poll::Ready(told) => told,
        };
        assert!(matches!(told, Err(Error::Trap { .. })), "{told:?}");
    }
}

struct Thrown;

impl Drop for Thrown {
    fn drop(&mut self) {
        assert!(thread::panicking(), "dropped in peace");
    }
}

#[test]
fn a_waker_may_launch_and_wait() {
    let dev = Device::best().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    for _ in 0..8 {
        let mut x = dev.zeros([4]).unwrap();
        let (inner, sender) = (dev.clone(), std::sync::Mutex::new(sender.clone()));
        let polled = poll_with(slow_fill(&mut x, 1.0, spins()), move || {
            let mut y = inner.zeros([4]).unwrap();
            fill(&mut y, 2.0).launch(&inner.default_stream()).unwrap();
            add(&inner.full([4], 1.0).unwrap(), &mut y, 2.0).sync().unwrap();
            sender.lock().unwrap().send(y.to_vec().unwrap()).unwrap();
        });
        if polled.is_pending() {
            assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(60)).unwrap(), [3.0; 4]);
        }
        // The thread that queries the launch may be the one that settles it.
        x.to_vec().unwrap();
    }
}
