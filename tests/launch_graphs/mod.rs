//! Random graphs of launches, copies, drops and swaps, compared with a model of the contents of every tensor.
//!
//! The model follows the guarantees of the runtime: a launch that returns an error counts as never made, whatever is still running; one
//! that returns `Ok` has its effect, unless work that it depends on fails, which a read then reports.
#![allow(dead_code, reason = "every test program uses some of it")]

use crate::runtime_kernels::{accumulate, add, fill, fill_beside, scale, slow_fill, trap_at};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use titan::{Device, Launch, Stream, Tensor};

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holds {
    /// This value, everywhere.
    Value(f32),
    /// Unknown contents; a read may report a failure.
    Bad,
    /// Unknown contents; all failures have been reported.
    Anything,
}

/// Elements of a tensor.
const N: usize = 4;

/// Programs along the second axis of a grid that no GPU has.
const TOO_MANY: i32 = 70_000;

/// A graph in the making.
pub(crate) struct Graph {
    device: Device,
    streams: Vec<Stream>,
    tensors: Vec<(Tensor<f32, 1>, Holds)>,
    random: u64,
    /// Errors of reads that nothing in the graph explains.
    pub(crate) unexplained: Vec<String>,
    /// Launches that were refused.
    pub(crate) refused: usize,
    traps: bool,
    leaks: bool,
}

impl Graph {
    /// Some tensors and streams; `None` if the device has no room for them.
    pub(crate) fn new(device: &Device, seed: u64) -> titan::Result<Graph> {
        let streams = vec![device.default_stream(), device.stream()?, device.stream()?];
        let tensors = (0..4u8)
            .map(|i| Ok((device.full([N], f32::from(i))?, Holds::Value(f32::from(i)))))
            .collect::<titan::Result<_>>()?;
        let device = device.clone();
        let (unexplained, refused) = (Vec::new(), 0);
        Ok(Graph { device, streams, tensors, random: seed, unexplained, refused, traps: true, leaks: true })
    }

    /// The same without kernels that trap: then nothing fails but what is refused.
    pub(crate) fn without_traps(self) -> Graph {
        Graph { traps: false, ..self }
    }

    /// The same without leaked guards, whose memory is never released.
    pub(crate) fn without_leaks(self) -> Graph {
        Graph { leaks: false, ..self }
    }

    /// A number below `n`. SplitMix64.
    fn below(&mut self, n: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ z >> 31) % n as u64).unwrap()
    }

    /// Some stream.
    fn stream(&mut self) -> Stream {
        let at = self.below(self.streams.len());
        self.streams[at].clone()
    }

    /// Two different tensors.
    fn pair(&mut self) -> (usize, usize) {
        let n = self.tensors.len();
        let i = self.below(n);
        (i, (i + 1 + self.below(n - 1)) % n)
    }

    /// Does so many things, at random.
    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.below(21) {
                0..8 => self.launch(),
                8 => self.fresh_kernel(),
                9 => self.refuse(),
                10 | 11 => self.replace(),
                12 | 13 => self.read(),
                14 => self.write(),
                15 => self.copy(),
                16 => self.forget(),
                17 => self.swap(),
                18 => self.change_stream(),
                19 => self.nothing(),
                _ => {
                    // Tells of traps and of what depends on them; both are `Bad` anyway.
                    let _told = self.stream().sync();
                }
            }
        }
    }

    /// Reads everything; afterwards nothing is pending.
    pub(crate) fn read_all(&mut self) {
        for i in 0..self.tensors.len() {
            self.read_one(i);
        }
    }

    fn launch(&mut self) {
        let (i, j) = self.pair();
        let (which, v) = (self.below(if self.traps { 6 } else { 5 }), f32::from(u8::try_from(self.below(9)).unwrap()));
        let how = self.below(6);
        let stream = self.stream();
        let [(x, from), (y, to)] = self.tensors.get_disjoint_mut([i, j]).unwrap();
        let (launch, then) = match which {
            0 => (fill(y, v), Holds::Value(v)),
            1 => (slow_fill(y, v, 20), Holds::Value(v)),
            // Its input is a view that is gone when the launch runs.
            2 => return self.launch_of_view(i, j, v),
            3 => (scale(y, 1.0), *to),
            4 => (add(x, y, v), from.map(|x| x + v)),
            _ => (trap_at(y, 0), Holds::Bad),
        };
        let then = to.then(then);
        finish(to, then, launch, how, &stream, &mut self.refused);
    }

    fn launch_of_view(&mut self, i: usize, j: usize, v: f32) {
        let stream = self.stream();
        let [(x, from), (y, to)] = self.tensors.get_disjoint_mut([i, j]).unwrap();
        let Ok(view) = x.slice::<0>(0..N) else { return };
        let then = to.then(from.map(|x| x + v));
        finish(to, then, add(&view, y, v), 0, &stream, &mut self.refused);
    }

    /// A kernel that the device has never seen.
    fn fresh_kernel(&mut self) {
        let source = "kernel @fresh(%y: mut tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %v = const 5.0 : f32
            set %y[%p], %v
            return
        }";
        let kernel = titan::__private::KernelRef::new("fresh", source.as_bytes(), "src/kernels.rs", [1, 8]);
        let j = self.below(self.tensors.len());
        let stream = self.stream();
        let (y, to) = &mut self.tensors[j];
        let launch = Launch::new(Box::leak(Box::new(kernel)), vec![y.into()]);
        finish(to, to.then(Holds::Value(5.0)), launch, 0, &stream, &mut self.refused);
    }

    /// A launch that the device refuses, between others.
    fn refuse(&mut self) {
        let (i, j) = self.pair();
        let stream = self.stream();
        let many = if self.below(3) == 0 { 1 } else { TOO_MANY };
        let [(x, from), (y, to)] = self.tensors.get_disjoint_mut([i, j]).unwrap();
        let sum = match (*from, *to) {
            (Holds::Value(x), Holds::Value(y)) => Holds::Value(x + y),
            (Holds::Bad, _) | (_, Holds::Bad) => Holds::Bad,
            (Holds::Anything, _) | (_, Holds::Anything) => Holds::Anything,
        };
        let run = if many == 1 { sum } else { *to };
        let before = self.refused;
        finish(to, run, accumulate(x, y, many), 0, &stream, &mut self.refused);
        // If a host thread runs the grid, its failure is reported later; so is the failure of an input.
        if many != 1 && self.refused == before {
            self.tensors[j].1 = Holds::Bad;
        }
    }

    /// Drops a tensor while work may be in flight, and makes another one.
    fn replace(&mut self) {
        let i = self.below(self.tensors.len());
        let v = f32::from(u8::try_from(self.below(9)).unwrap());
        let new = if v == 0.0 { self.device.zeros([N]) } else { self.device.full([N], v) };
        if let Ok(new) = new {
            self.tensors[i] = (new, Holds::Value(v));
        }
    }

    fn read(&mut self) {
        let i = self.below(self.tensors.len());
        self.read_one(i);
    }

    fn read_one(&mut self, i: usize) {
        let (tensor, holds) = &mut self.tensors[i];
        for _ in 0..20 {
            match (tensor.to_vec(), &mut *holds) {
                (Ok(values), Holds::Value(v)) => {
                    assert_eq!(values, [*v; N]);
                    return;
                }
                (Ok(_), holds) => {
                    *holds = Holds::Anything;
                    return;
                }
                (Err(_), Holds::Bad) => {}
                (Err(error), Holds::Value(_) | Holds::Anything) => self.unexplained.push(error.to_string()),
            }
        }
        panic!("failures of {tensor:?} have no end, {:?} among them", self.unexplained);
    }

    fn write(&mut self) {
        let i = self.below(self.tensors.len());
        let v = f32::from(u8::try_from(self.below(9)).unwrap());
        let (tensor, holds) = &mut self.tensors[i];
        match tensor.write(&[v; N]) {
            Ok(()) => *holds = Holds::Value(v),
            Err(_) if *holds == Holds::Bad => {}
            Err(error) => {
                self.unexplained.push(error.to_string());
                *holds = Holds::Anything;
            }
        }
    }

    fn copy(&mut self) {
        let (i, j) = self.pair();
        let holds = self.tensors[i].1;
        match self.tensors[i].0.copy() {
            Ok(copy) => self.tensors[j] = (copy, if holds == Holds::Bad { Holds::Anything } else { holds }),
            Err(_) if holds == Holds::Bad => {}
            Err(error) => self.unexplained.push(error.to_string()),
        }
    }

    /// Launches and guards that are forgotten.
    fn forget(&mut self) {
        let (i, j) = self.pair();
        let [(x, _), (y, _)] = self.tensors.get_disjoint_mut([i, j]).unwrap();
        if self.leaks {
            std::mem::forget(x.slice::<0>(0..2));
            std::mem::forget(x.view_mut());
        }
        // Made, and never given to a stream.
        let launch = add(x, y, 1.0);
        drop(launch);
        drop(fill(y, 1.0).into_future());
    }

    /// Memory without elements, which comes and goes like any other.
    fn nothing(&mut self) {
        let j = self.below(self.tensors.len());
        let (stream, how) = (self.stream(), self.below(6));
        let Ok(mut none) = self.device.tensor::<f32, 1>(&[], [0]) else { return };
        let (y, to) = &mut self.tensors[j];
        match how {
            0 => drop(none.to_vec()),
            1 => drop(none.copy()),
            _ => {
                finish(to, to.then(Holds::Value(3.0)), fill_beside(y, &mut none, 3.0), how, &stream, &mut self.refused)
            }
        }
    }

    /// Tensors that change places, and guards that do.
    fn swap(&mut self) {
        let (i, j) = self.pair();
        self.tensors.swap(i, j);
        let [(x, _), (y, _)] = self.tensors.get_disjoint_mut([i, j]).unwrap();
        let (mut a, mut b) = (x.view_mut(), y.view_mut());
        std::mem::swap(&mut a, &mut b);
        drop(a);
        if self.leaks {
            std::mem::forget(b);
        }
    }

    /// Drops a stream with all that is in it.
    fn change_stream(&mut self) {
        let s = 1 + self.below(self.streams.len() - 1);
        if let Ok(stream) = self.device.stream() {
            self.streams[s] = stream;
        }
    }
}

impl Holds {
    fn map(self, f: impl FnOnce(f32) -> f32) -> Holds {
        match self {
            Holds::Value(v) => Holds::Value(f(v)),
            other @ (Holds::Bad | Holds::Anything) => other,
        }
    }

    /// The state after a launch that would write `new`: a launch whose input failed does not run.
    fn then(self, new: Holds) -> Holds {
        if self == Holds::Bad { Holds::Bad } else { new }
    }
}

/// Launches in one of several ways, and notes what the tensor holds then.
fn finish(to: &mut Holds, then: Holds, launch: Launch<'_>, how: usize, stream: &Stream, refused: &mut usize) {
    match how {
        0 => match launch.sync() {
            Ok(()) => *to = then,
            // It did not run, or failed; other failures are reported by later reads.
            Err(_) => *to = Holds::Bad,
        },
        1 => {
            // Polled once, and dropped.
            let mut future = pin!(launch.into_future());
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) | Poll::Pending => *to = then,
                Poll::Ready(Err(_)) => *to = Holds::Bad,
            }
        }
        _ => match launch.launch(stream) {
            Ok(()) => *to = then,
            Err(_) => *refused += 1,
        },
    }
}
