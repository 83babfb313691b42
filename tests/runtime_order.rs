//! Ordering of launches, host copies and threads; what happens to memory and to failures meanwhile.

#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

mod runtime_kernels;

use runtime_kernels::{add, copy_and_trap, fill, scale, slow_fill, trap_at};
use std::error::Error as _;
use std::thread;
use titan::{Device, Error};

const SPINS: i32 = 20_000;

#[test]
fn a_reader_on_another_stream_sees_what_the_writer_wrote() {
    let dev = Device::best().unwrap();
    let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
    for round in 0..20 {
        let mut x = dev.zeros([4]).unwrap();
        let mut y = dev.zeros([4]).unwrap();
        slow_fill(&mut x, round as f32, SPINS / 10).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&t).unwrap();
        assert_eq!(y.to_vec().unwrap(), [round as f32 + 1.0; 4]);
    }
}

#[test]
fn a_writer_waits_for_the_readers_of_what_it_overwrites() {
    let dev = Device::best().unwrap();
    let streams: Vec<_> = (0..3).map(|_| dev.stream().unwrap()).collect();
    let mut x = dev.full([4], 1.0f32).unwrap();
    let mut ys: Vec<_> = (0..3).map(|_| dev.zeros([4]).unwrap()).collect();
    slow_fill(&mut ys[0], 0.0, SPINS).launch(&streams[0]).unwrap();
    for (y, s) in ys.iter_mut().zip(&streams) {
        add(&x, y, 1.0).launch(s).unwrap();
    }
    fill(&mut x, 100.0).launch(&streams[2]).unwrap();
    for y in &ys {
        assert_eq!(y.to_vec().unwrap(), [2.0; 4]);
    }
    assert_eq!(x.to_vec().unwrap(), [100.0; 4]);
}

#[test]
fn a_reader_waits_for_the_writer_behind_a_reader_of_the_writers_stream() {
    let dev = Device::best().unwrap();
    let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
    for fails in [false, true] {
        let (mut x, mut y, mut z) = (dev.zeros([4]).unwrap(), dev.zeros([4]).unwrap(), dev.zeros([4]).unwrap());
        if fails {
            trap_at(&mut x, 1).launch(&s).unwrap();
        } else {
            slow_fill(&mut x, 1.5, SPINS).launch(&s).unwrap();
        }
        add(&x, &mut y, 1.0).launch(&s).unwrap();
        add(&x, &mut z, 2.0).launch(&t).unwrap();
        let found = z.to_vec();
        assert!(if fails { found.is_err() } else { found.unwrap() == [3.5; 4] }, "the writer fails: {fails}");
        assert_eq!(s.sync().is_err() || y.to_vec().is_err(), fails);
    }
}

#[test]
fn a_writer_does_not_fail_with_a_reader_that_it_waits_for() {
    let dev = Device::best().unwrap();
    let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
    let (mut x, mut y) = (dev.full([4], 1.0f32).unwrap(), dev.zeros([4]).unwrap());
    copy_and_trap(&x, &mut y).launch(&s).unwrap();
    fill(&mut x, 2.0).launch(&t).unwrap();
    t.sync().unwrap();
    assert_eq!(x.to_vec().unwrap(), [2.0; 4]);
    assert!(s.sync().is_err());
}

#[test]
fn a_host_copy_waits_for_the_launch() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut x = dev.zeros([2]).unwrap();
    slow_fill(&mut x, 3.0, SPINS).launch(&s).unwrap();
    assert_eq!(x.to_vec().unwrap(), [3.0; 2]);
    slow_fill(&mut x, 4.0, SPINS).launch(&s).unwrap();
    x.write(&[8.0, 9.0]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [8.0, 9.0]);
    slow_fill(&mut x, 5.0, SPINS).launch(&s).unwrap();
    scale(&mut x, 2.0).sync().unwrap();
    assert_eq!(x.to_vec().unwrap(), [10.0; 2]);
}

#[test]
fn a_tensor_dropped_in_flight_lives_until_the_launch_ends() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut y = dev.zeros([4]).unwrap();
    {
        let mut x = dev.zeros([4]).unwrap();
        slow_fill(&mut x, 7.0, SPINS).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&s).unwrap();
    }
    drop(s);
    assert_eq!(y.to_vec().unwrap(), [8.0; 4], "a dropped stream finishes what it has");
}

#[test]
fn one_stream_keeps_its_order() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut y = dev.full([3], 1.0f32).unwrap();
    for _ in 0..100 {
        add_in_place(&mut y, &s);
    }
    s.sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1024.0; 3]);
}

fn add_in_place(y: &mut titan::Tensor<f32, 1>, s: &titan::Stream) {
    let doubled = y.to_vec().unwrap()[0] < 1024.0;
    scale(y, if doubled { 2.0 } else { 1.0 }).launch(s).unwrap();
}

#[test]
fn a_failure_is_told_once_by_the_read_that_needs_the_result() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut y = dev.zeros([4]).unwrap();
    trap_at(&mut y, 1).launch(&s).unwrap();
    let error = y.to_vec().unwrap_err();
    assert!(matches!(&error, Error::Trap { kernel, .. } if kernel == "trap_at::<f32>"), "{error}");
    assert!(y.to_vec().is_ok());
    s.sync().unwrap();
}

#[test]
fn a_failure_is_told_once_by_the_stream() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut y = dev.zeros([4]).unwrap();
    let mut z = dev.zeros([4]).unwrap();
    trap_at(&mut y, 1).launch(&s).unwrap();
    trap_at(&mut z, 1).launch(&s).unwrap();
    fill(&mut dev.zeros([4]).unwrap(), 1.0).launch(&s).unwrap();
    assert!(matches!(s.sync(), Err(Error::Trap { .. })));
    s.sync().unwrap();
    y.to_vec().unwrap();
    z.to_vec().unwrap();
}

#[test]
fn what_depends_on_a_failure_does_not_run_and_says_why() {
    let dev = Device::best().unwrap();
    let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
    let mut x = dev.zeros([4]).unwrap();
    let mut y = dev.full([4], 5.0f32).unwrap();
    trap_at(&mut x, 1).launch(&s).unwrap();
    add(&x, &mut y, 1.0).launch(&t).unwrap();
    let error = y.to_vec().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("kernel `add` did not run, because a launch that it depends on failed: "), "{text}");
    assert!(text.contains("kernel `trap_at::<f32>` stopped at src/kernels.rs:12:9"), "{text}");
    assert!(error.source().is_some());
    // This call reported the trap as well.
    s.sync().unwrap();
    t.sync().unwrap();
    x.to_vec().unwrap();
    let y_then = y.to_vec().unwrap();
    // A GPU had it before the failure was known; then its results count for nothing.
    assert!(dev.kind() != titan::DeviceKind::Cpu || y_then == [5.0; 4], "{y_then:?}");
    fill(&mut x, 1.0).sync().unwrap();
    add(&x, &mut y, 1.0).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 4]);
}

#[test]
fn a_long_chain_of_failures_is_told_at_its_end() {
    let dev = Device::best().unwrap();
    let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
    let mut x = dev.zeros([4]).unwrap();
    trap_at(&mut x, 1).launch(&s).unwrap();
    for i in 0..4000 {
        scale(&mut x, 1.0).launch(if i % 2 == 0 { &t } else { &s }).unwrap();
    }
    let text = x.to_vec().unwrap_err().to_string();
    assert!(text.starts_with("kernel `scale` did not run"), "{text}");
    assert!(text.len() < 300, "{text}");
    s.sync().unwrap_err();
    t.sync().unwrap_err();
    x.to_vec().unwrap();
}

#[test]
fn a_blocking_launch_tells_of_an_earlier_failure_and_does_not_run() {
    let dev = Device::best().unwrap();
    let mut x = dev.full([4], 1.0f32).unwrap();
    trap_at(&mut x, 0).launch(&dev.default_stream()).unwrap();
    assert!(matches!(scale(&mut x, 3.0).sync(), Err(Error::Trap { .. })));
    scale(&mut x, 2.0).sync().unwrap();
    let then = x.to_vec().unwrap();
    assert!(dev.kind() != titan::DeviceKind::Cpu || then == [2.0; 4], "{then:?}");
}

#[test]
fn a_failed_reader_does_not_spoil_what_it_read() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut x = dev.full([4], 1.0f32).unwrap();
    let short = dev.zeros([2]).unwrap();
    let mut y = dev.zeros([4]).unwrap();
    trap_at(&mut y, 0).launch(&s).unwrap();
    assert!(add(&short, &mut y, 1.0).launch(&s).is_err(), "a shape");
    assert_eq!(x.to_vec().unwrap(), [1.0; 4]);
    fill(&mut x, 2.0).sync().unwrap();
    assert!(s.sync().is_err());
}

#[test]
fn many_threads_and_streams_keep_every_chain_in_order() {
    let dev = Device::best().unwrap();
    let shared = dev.full([8], 1.0f32).unwrap();
    thread::scope(|scope| {
        for worker in 0..6u16 {
            let (dev, shared) = (&dev, &shared);
            scope.spawn(move || {
                let streams: Vec<_> = (0..3).map(|_| dev.stream().unwrap()).collect();
                let mut a = dev.zeros([8]).unwrap();
                let mut b = dev.zeros([8]).unwrap();
                let mut expected = 0.0;
                for step in 0..60usize {
                    let v = f32::from(worker) + step as f32;
                    add(if step == 0 { shared } else { &b }, &mut a, v).launch(&streams[step % 3]).unwrap();
                    expected = if step == 0 { 1.0 + v } else { expected + v };
                    add(&a, &mut b, 0.0).launch(&streams[(step * 7 + 1) % 3]).unwrap();
                    if step % 16 == 0 {
                        assert_eq!(b.to_vec().unwrap(), [expected; 8]);
                    }
                }
                assert_eq!(b.to_vec().unwrap(), [expected; 8]);
            });
        }
    });
}

#[test]
fn threads_that_write_halves_of_two_tensors_do_not_wait_for_each_other_forever() {
    let dev = Device::best().unwrap();
    let (mut a, mut b) = (dev.zeros::<f32, 1>([8]).unwrap(), dev.zeros::<f32, 1>([8]).unwrap());
    let (mut a0, mut a1) = a.split_at_mut::<0>(4).unwrap();
    let (mut b0, mut b1) = b.split_at_mut::<0>(4).unwrap();
    let s = dev.stream().unwrap();
    thread::scope(|scope| {
        let s = &s;
        let dev = &dev;
        scope.spawn(move || {
            for i in 0..200 {
                add(&a0, &mut b0, 1.0).launch(s).unwrap();
                add(&b0, &mut a0, 1.0).launch(&dev.default_stream()).unwrap();
                if i % 50 == 0 {
                    scale(&mut a0, 1.0).sync().unwrap();
                }
            }
        });
        scope.spawn(move || {
            for _ in 0..200 {
                add(&b1, &mut a1, 1.0).launch(&dev.default_stream()).unwrap();
                add(&a1, &mut b1, 1.0).launch(s).unwrap();
            }
        });
    });
    assert_eq!(a.to_vec().unwrap(), [400., 400., 400., 400., 399., 399., 399., 399.]);
    assert_eq!(b.to_vec().unwrap(), [399., 399., 399., 399., 400., 400., 400., 400.]);
}

#[test]
fn the_host_and_launches_use_parts_of_one_tensor_at_once() {
    let dev = Device::best().unwrap();
    let streams: Vec<_> = (0..3).map(|_| dev.stream().unwrap()).collect();
    let mut all = dev.zeros::<f32, 1>([12]).unwrap();
    let (mut head, mut rest) = all.split_at_mut::<0>(4).unwrap();
    let (mut middle, mut tail) = rest.split_at_mut::<0>(4).unwrap();
    thread::scope(|scope| {
        let streams = &streams;
        scope.spawn(move || {
            for i in 0..100u8 {
                slow_fill(&mut head, i.into(), 100).launch(&streams[usize::from(i) % 3]).unwrap();
            }
        });
        scope.spawn(move || {
            for i in 0..100u8 {
                middle.write(&[f32::from(i); 4]).unwrap();
                assert_eq!(middle.to_vec().unwrap(), [f32::from(i); 4]);
            }
        });
        scope.spawn(move || {
            for i in 0..100u8 {
                slow_fill(&mut tail, i.into(), 100).sync().unwrap();
            }
        });
    });
    assert_eq!(all.to_vec().unwrap(), [99.0; 12]);
}

#[test]
fn a_failure_in_one_part_does_not_spoil_another() {
    let dev = Device::best().unwrap();
    let s = dev.stream().unwrap();
    let mut all = dev.zeros::<f32, 1>([8]).unwrap();
    let (mut head, mut tail) = all.split_at_mut::<0>(4).unwrap();
    trap_at(&mut head, 0).launch(&s).unwrap();
    fill(&mut tail, 2.0).launch(&s).unwrap();
    assert_eq!(tail.to_vec().unwrap(), [2.0; 4]);
    assert!(matches!(all.to_vec(), Err(Error::Trap { .. })));
}
