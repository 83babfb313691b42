//! Events, timers and the counts of memory, on every device: the order of work, failures, dropped and forgotten values, bad input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod host_devices;
mod host_operations;
mod runtime_kernels;

use host_devices::devices;
use host_operations::{count, time};
use runtime_kernels::{add, fill, slow_fill, trap_at};
use std::time::Duration;
use titan::{Device, Error, Event};

fn spins(device: &Device) -> i32 {
    if *device == Device::cpu() { 20_000 } else { 200 }
}

#[test]
fn points_are_timed_and_memory_is_counted_on_every_device() {
    for device in devices() {
        time(&device).unwrap();
        count(&device).unwrap();
    }
}

#[test]
fn an_event_is_over_when_what_is_before_it_has_run() {
    for device in devices() {
        let s = device.stream().unwrap();
        let mut x = device.zeros([4]).unwrap();
        let start = s.record().unwrap();
        slow_fill(&mut x, 3.0, spins(&device)).launch(&s).unwrap();
        let end = s.record().unwrap();
        let again = end.clone();
        assert_eq!(end.device(), &device);
        end.wait().unwrap();
        assert!(start.is_over() && end.is_over() && again.is_over());
        assert!(format!("{end:?}").starts_with("Event(over) on "), "{end:?}");
        let took = again.elapsed_since(&start).unwrap();
        assert!(took > Duration::ZERO && took < Duration::from_secs(600), "{device}: {took:?}");
        assert_eq!(end.elapsed_since(&again).unwrap(), Duration::ZERO);
        assert_eq!(x.to_vec().unwrap(), [3.0; 4]);
    }
}

#[test]
fn a_timer_measures_what_is_launched_after_it() {
    for device in devices() {
        let s = device.stream().unwrap();
        let mut x = device.zeros([4]).unwrap();
        let timer = s.timer().unwrap();
        slow_fill(&mut x, 3.0, spins(&device)).launch(&s).unwrap();
        let long = timer.stop().unwrap();
        let both = s.timer().unwrap();
        let none = s.timer().unwrap().stop().unwrap();
        assert!(long > Duration::ZERO && none <= both.stop().unwrap(), "{device}: {long:?}, {none:?}");
        // A timer may be dropped, and outlives its stream.
        drop(s.timer().unwrap());
        let timer = device.default_stream().timer().unwrap();
        drop(s);
        timer.stop().unwrap();
    }
}

#[test]
fn events_without_a_time_between_them_are_refused() {
    let all = devices();
    let told = |later: &Event, earlier: &Event, says: &str| {
        let error = later.elapsed_since(earlier).unwrap_err();
        assert!(matches!(error, Error::Timing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("[T1113] elapsed_since: ") && text.contains(says), "{text}");
        assert!(text.contains("\n  help: "), "{text}");
    };
    for device in &all {
        let s = device.stream().unwrap();
        let first = s.record().unwrap();
        let mut x = device.zeros([4]).unwrap();
        slow_fill(&mut x, 3.0, spins(device)).launch(&s).unwrap();
        let second = s.record().unwrap();
        told(&first, &second, "was reached before the one that is given as the earlier one");
        for other in all.iter().filter(|other| *other != device) {
            told(&other.default_stream().record().unwrap(), &first, "one event is on ");
        }
    }
}

#[test]
fn a_failure_ends_the_work_before_an_event_and_is_reported_as_always() {
    for device in devices() {
        let s = device.stream().unwrap();
        let mut x = device.zeros([4]).unwrap();
        trap_at(&mut x, 1).launch(&s).unwrap();
        let end = s.record().unwrap();
        end.wait().unwrap();
        assert!(matches!(s.sync(), Err(Error::Trap { .. })), "{device}");
        end.wait().unwrap();
        trap_at(&mut x, 1).launch(&s).unwrap();
        drop(s.record().unwrap());
        assert!(matches!(x.to_vec(), Err(Error::Trap { .. })), "{device}");
        s.sync().unwrap();
    }
}

#[test]
fn events_and_streams_are_dropped_and_forgotten_in_every_order() {
    for device in devices() {
        for order in 0..6 {
            let s = device.stream().unwrap();
            let mut x = device.zeros([4]).unwrap();
            slow_fill(&mut x, 3.0, 100).launch(&s).unwrap();
            let (event, timer) = (s.record().unwrap(), s.timer().unwrap());
            match order {
                0 => drop((s, event, timer)),
                1 => drop((event, timer, s)),
                2 => drop((timer, s, event)),
                3 => {
                    std::mem::forget(timer);
                    drop(s);
                    event.wait().unwrap();
                }
                4 => {
                    std::mem::forget(event);
                    timer.stop().unwrap();
                    s.sync().unwrap();
                }
                _ => {
                    drop(s);
                    timer.stop().unwrap();
                    assert!(event.is_over());
                }
            }
            assert_eq!(x.to_vec().unwrap(), [3.0; 4], "{device}, {order}");
        }
    }
}

#[test]
fn threads_wait_for_one_event() {
    for device in devices() {
        let s = device.stream().unwrap();
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        slow_fill(&mut x, 3.0, spins(&device)).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&s).unwrap();
        let end = s.record().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    end.wait().unwrap();
                    assert!(end.is_over());
                    assert_eq!(y.to_vec().unwrap(), [4.0; 4]);
                });
            }
        });
    }
}

/// Each emulator has counts of its own, which no other test changes.
#[test]
fn tensors_are_counted_and_what_borrows_memory_is_not() {
    for device in devices().into_iter().filter(|device| *device != Device::cpu()) {
        let used = |what: &str, tensors: usize, bytes: usize, peak: usize, allocations: u64| {
            let used = device.memory_use().unwrap();
            let found = (used.tensors, used.bytes, used.peak_bytes, used.allocations);
            assert_eq!(found, (tensors, bytes, peak, allocations), "{device}, {what}");
            assert_eq!((used.reserved, used.free, used.total), (None, None, None));
        };
        used("nothing", 0, 0, 0, 0);
        let x = device.zeros::<f32, 2>([10, 10]).unwrap();
        let y = device.full([3], 1u8).unwrap();
        used("two tensors", 2, 403, 403, 2);
        let view = x.slice::<0>(2..4).unwrap();
        let other = view.clone();
        used("views", 2, 403, 403, 2);
        let copy = other.copy().unwrap();
        used("a copy", 3, 483, 483, 3);
        // Views hold the memory until they are dropped, even if their tensor was moved.
        drop((copy, view, other));
        used("a dropped copy", 2, 403, 483, 3);
        device.reset_peak_memory();
        used("a new peak", 2, 403, 403, 3);
        device.zeros::<f64, 1>([1 << 59]).unwrap_err();
        used("an allocation that failed", 2, 403, 403, 3);
        let empty = device.zeros::<f32, 1>([0]).unwrap();
        used("a tensor without elements", 3, 403, 403, 4);
        let mut running = device.zeros([4]).unwrap();
        fill(&mut running, 1.0f32).launch(&device.default_stream()).unwrap();
        drop((running, empty, y));
        used("dropped tensors", 1, 400, 419, 5);
        device.default_stream().sync().unwrap();
        device.release_memory().unwrap();
        let dynamic = titan::DynTensor::from(x);
        used("a tensor of a type of run time", 1, 400, 419, 5);
        drop(dynamic);
        used("nothing again", 0, 0, 419, 5);
    }
}
