//! A launch keeps what it uses until it has run, on every device: tensors, views, streams and launches dropped in all orders.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod launch_graphs;
mod runtime_kernels;

use launch_graphs::Graph;
use runtime_kernels::{add, fill, slow_fill};
use titan::{Device, DeviceKind, Tensor};

/// The best device; if that is the CPU, also the others that need no hardware.
fn devices() -> Vec<Device> {
    let best = Device::best().unwrap();
    if best.kind() != DeviceKind::Cpu {
        return vec![best];
    }
    #[cfg_attr(
        not(any(feature = "emulator", feature = "simulator")),
        expect(unused_mut, reason = "there are no others")
    )]
    let mut all = vec![best];
    #[cfg(feature = "emulator")]
    all.push(Device::emulator("sm_80").unwrap());
    #[cfg(feature = "simulator")]
    all.push(Device::simulator(titan::sim::Options::default()));
    all
}

/// Orders of four things: all, or in the quick depth some in which each thing is at every place, and before and behind each other one.
fn orders_of_four() -> Vec<Vec<usize>> {
    let traits = |order: &Vec<usize>| {
        let at = |i: usize| order[i + 1..].iter().map(move |later| (order[i], 4 + later)).chain([(order[i], i)]);
        (0..4).flat_map(at).collect()
    };
    test_depth::covering(orders(4), traits)
}

/// All orders of `n` things.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let longer = |shorter: &Vec<usize>, at: usize| {
        let mut order = shorter.clone();
        order.insert(at, n - 1);
        order
    };
    orders(n - 1).iter().flat_map(|shorter| (0..n).map(move |at| longer(shorter, at))).collect()
}

#[test]
fn arguments_live_until_the_launch_has_run() {
    for device in devices() {
        // The queue is busy while its arguments are dropped.
        let spins = if device.kind() == DeviceKind::Cpu { 20_000 } else { 200 };
        for order in orders_of_four() {
            let s = device.stream().unwrap();
            let (mut x, y) = (device.full([4], 1.0f32).unwrap(), device.full([8], 2.0f32).unwrap());
            let (mut sum, mut out) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
            slow_fill(&mut x, 3.0, spins).launch(&s).unwrap();
            add(&x, &mut sum, 1.0).launch(&s).unwrap();
            add(&sum, &mut out, 1.0).launch(&s).unwrap();
            add(&y.slice::<0>(2..6).unwrap(), &mut sum, 1.0).launch(&s).unwrap();
            add(&device.full([4], 10.0).unwrap(), &mut sum, 5.0).launch(&s).unwrap();
            let mut owners: [Option<Box<dyn std::any::Any>>; 4] =
                [Some(Box::new(x)), Some(Box::new(y)), Some(Box::new(sum)), Some(Box::new(s))];
            for which in &order {
                drop(owners[*which].take());
                // What is freed too early is overwritten now.
                drop(device.full([4], 99.0f32).unwrap());
            }
            assert_eq!(out.to_vec().unwrap(), [5.0; 4], "{device}, {order:?}");
        }
    }
}

#[test]
fn a_temporary_may_be_the_only_owner() {
    for device in devices() {
        // Not the default stream: other tests share it, and `sync` would report the traps of their kernels.
        let (s, beside) = (device.stream().unwrap(), device.stream().unwrap());
        let mut out = device.zeros([4]).unwrap();
        for _ in 0..10 {
            add(&device.full([4], 6.0).unwrap(), &mut out, 1.0).launch(&s).unwrap();
            fill(&mut device.zeros([4]).unwrap(), 1.0).launch(&beside).unwrap();
        }
        assert_eq!(out.to_vec().unwrap(), [7.0; 4], "{device}");
        drop(out);
        s.sync().unwrap();
        beside.sync().unwrap();
    }
}

#[test]
fn random_graphs_are_in_order_on_every_device() {
    for device in devices() {
        for seed in 0..test_depth::cases(12, 4) {
            let mut graph = Graph::new(&device, seed).unwrap();
            graph.run(60);
            graph.read_all();
            assert!(graph.unexplained.is_empty(), "{device}, seed {seed}: {:?}", graph.unexplained);
        }
    }
}

#[test]
fn threads_drop_what_others_launch_with() {
    for device in devices() {
        let (sender, receiver) = std::sync::mpsc::channel::<Tensor<f32, 1>>();
        std::thread::scope(|scope| {
            scope.spawn(move || receiver.into_iter().for_each(drop));
            for _ in 0..2 {
                let (sender, device) = (sender.clone(), device.clone());
                scope.spawn(move || {
                    let s = device.stream().unwrap();
                    let mut out = device.zeros([4]).unwrap();
                    for round in 0..20u8 {
                        let x = device.full([4], f32::from(round)).unwrap();
                        add(&x, &mut out, 1.0).launch(&s).unwrap();
                        sender.send(x).unwrap();
                        if round % 5 == 0 {
                            assert_eq!(out.to_vec().unwrap(), [f32::from(round) + 1.0; 4]);
                        }
                    }
                });
            }
            drop(sender);
        });
    }
}
