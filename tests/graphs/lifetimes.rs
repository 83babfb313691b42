//! Graphs, their tensors, streams and devices are dropped and forgotten in every order.

use crate::host_devices::devices;
use crate::runtime_kernels::{add, fill, slow_fill};
use titan::Device;

#[test]
fn a_graph_keeps_the_memory_of_its_tensors() {
    for device in devices() {
        let s = device.stream().unwrap();
        let mut z = device.zeros([4]).unwrap();
        let graph = {
            let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
            s.capture(|| {
                fill(&mut x, 3.0).launch(&s)?;
                add(&x, &mut y, 1.0).launch(&s)?;
                add(&y, &mut z, 1.0).launch(&s)
            })
        };
        let graph = graph.unwrap();
        // What is allocated now is other memory.
        let others: Vec<_> = (0..8).map(|_| device.full([4], -1.0f32).unwrap()).collect();
        for _ in 0..2 {
            z.fill(0.0).unwrap();
            graph.launch(&s).unwrap();
            assert_eq!(z.to_vec().unwrap(), [5.0; 4], "{device}");
        }
        assert!(others.iter().all(|other| other.to_vec().unwrap() == [-1.0; 4]), "{device}");
    }
}

#[test]
fn graphs_tensors_and_streams_are_dropped_and_forgotten_in_every_order() {
    for device in devices() {
        for order in 0..10 {
            let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
            let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
            let mut graph = s.capture(|| {
                slow_fill(&mut x, 3.0, 300).launch(&s)?;
                add(&x, &mut y, 1.0).launch(&s)
            });
            let graph_ref = graph.as_mut().unwrap();
            graph_ref.launch(&t).unwrap();
            let graph = graph.unwrap();
            match order {
                0 => drop((graph, s, t, x)),
                1 => drop((x, t, s, graph)),
                2 => drop((t, x, graph, s)),
                3 => {
                    std::mem::forget(graph);
                    drop((x, s));
                    t.sync().unwrap();
                }
                4 => {
                    graph.launch(&s).unwrap();
                    drop((s, t, graph));
                    x.fill(0.0).unwrap();
                }
                5 => {
                    std::mem::forget((x, s));
                    graph.launch(&t).unwrap();
                    drop(graph);
                }
                6 => {
                    drop((s, x));
                    graph.launch(&t).unwrap();
                    std::mem::forget(t);
                }
                7 => {
                    std::thread::spawn(move || drop((graph, x))).join().unwrap();
                }
                8 => {
                    let mut graph = graph;
                    let mut z = device.zeros([4]).unwrap();
                    graph.set(0, slow_fill(&mut z, 9.0, 1)).unwrap();
                    drop((x, z));
                    graph.launch(&s).unwrap();
                    drop(graph);
                }
                _ => {
                    let device = device.clone();
                    let again = s.capture(|| add(&x, &mut y, 2.0).launch(&s)).unwrap();
                    drop((graph, s, t, x));
                    again.launch(&device.default_stream()).unwrap();
                }
            }
            let expected = if order == 9 { 5.0 } else { 4.0 };
            assert_eq!(y.to_vec().unwrap(), [expected; 4], "{device}, {order}");
        }
    }
}

/// Each emulator has counts of its own.
#[test]
fn the_memory_of_a_graph_is_released_with_it() {
    for device in devices().into_iter().filter(|device| *device != Device::cpu()) {
        let s = device.stream().unwrap();
        let bytes = || device.memory_use().unwrap().bytes;
        let mut x = device.zeros([64]).unwrap();
        let mut graph = s.capture(|| fill(&mut x, 1.0).launch(&s)).unwrap();
        drop(x);
        assert_eq!(bytes(), 256, "{device}");
        let mut y = device.zeros([128]).unwrap();
        graph.set(0, fill(&mut y, 1.0)).unwrap();
        graph.launch(&s).unwrap();
        drop(y);
        s.sync().unwrap();
        assert_eq!(bytes(), 512, "{device}: the first tensor is released, the second one is not");
        drop(graph);
        s.sync().unwrap();
        // The thread of the stream may be about to drop its handles.
        let gone = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            bytes() == 0
        });
        assert!(gone, "{device}: {} bytes are left", bytes());
        // A capture that fails keeps nothing.
        let mut z = device.zeros([64]).unwrap();
        s.capture(|| {
            fill(&mut z, 1.0).launch(&s)?;
            z.to_vec().map(drop)
        })
        .unwrap_err();
        drop(z);
        assert_eq!(bytes(), 0, "{device}");
    }
}
