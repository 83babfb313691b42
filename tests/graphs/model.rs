//! Random captures, replays, updates, launches, copies and drops, beside a model of the contents of every tensor.

use crate::runtime_kernels::{add, fill, scale};
use titan::{Device, Graph, Result, Stream, Tensor};

const N: usize = 4;
const TENSORS: usize = 4;

/// A launch, by the numbers of its tensors.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fill(usize, f32),
    Add(usize, usize, f32),
    Scale(usize, f32),
}

struct Model {
    random: u64,
    tensors: Vec<Tensor<f32, 1>>,
    /// What each of them holds.
    held: Vec<f32>,
}

impl Model {
    /// A number below `n`. SplitMix64.
    fn below(&mut self, n: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % n as u64) as usize
    }

    fn step(&mut self) -> Step {
        let (a, b) = (self.below(TENSORS), self.below(TENSORS - 1));
        let v = self.below(7) as f32;
        match self.below(3) {
            0 => Step::Fill(a, v),
            1 => Step::Add(a, (a + 1 + b) % TENSORS, v),
            // Values stay small, so that sums are exact.
            _ => Step::Scale(a, [0.0, 1.0, -1.0][self.below(3)]),
        }
    }

    /// Another launch of the same kernel.
    fn like(&mut self, old: Step) -> Step {
        loop {
            let new = self.step();
            if std::mem::discriminant(&new) == std::mem::discriminant(&old) {
                return new;
            }
        }
    }

    /// Two different tensors.
    fn pair(&mut self, from: usize, to: usize) -> (&Tensor<f32, 1>, &mut Tensor<f32, 1>) {
        let (low, high) = self.tensors.split_at_mut(from.max(to));
        if from < to { (&low[from], &mut high[0]) } else { (&high[0], &mut low[to]) }
    }

    fn launch(&mut self, step: Step, stream: &Stream) -> Result<()> {
        match step {
            Step::Fill(to, v) => fill(&mut self.tensors[to], v).launch(stream),
            Step::Add(from, to, v) => {
                let (from, to) = self.pair(from, to);
                add(from, to, v).launch(stream)
            }
            Step::Scale(to, v) => scale(&mut self.tensors[to], v).launch(stream),
        }
    }

    /// The effect of a launch that runs.
    fn ran(&mut self, step: Step) {
        match step {
            Step::Fill(to, v) => self.held[to] = v,
            Step::Add(from, to, v) => self.held[to] = self.held[from] + v,
            Step::Scale(to, v) => self.held[to] *= v,
        }
    }

    fn read(&self, at: usize) -> Result<()> {
        assert_eq!(self.tensors[at].to_vec()?, [self.held[at]; N], "tensor {at} on {}", self.tensors[at].device());
        Ok(())
    }
}

/// Makes so many random steps; what does not fail must be right.
pub(crate) fn run(device: &Device, seed: u64, steps: usize) -> Result<()> {
    let streams = [device.default_stream(), device.stream()?, device.stream()?];
    let tensors = (0..TENSORS).map(|i| device.full([N], i as f32)).collect::<Result<_>>()?;
    let mut model = Model { random: seed, tensors, held: (0..TENSORS).map(|i| i as f32).collect() };
    let mut graphs: Vec<(Graph, Stream, Vec<Step>)> = Vec::new();
    for _ in 0..steps {
        let stream = streams[model.below(3)].clone();
        match model.below(9) {
            0 => {
                let list: Vec<Step> = (0..1 + model.below(4)).map(|_| model.step()).collect();
                let graph = stream.capture(|| list.iter().try_for_each(|step| model.launch(*step, &stream)))?;
                graphs.push((graph, stream, list));
            }
            1 if !graphs.is_empty() => {
                let at = model.below(graphs.len());
                let (graph, own, list) = &mut graphs[at];
                let nth = model.below(list.len());
                let new = model.like(list[nth]);
                let _ = own;
                // A launch borrows the tensors, so the three kinds are written out.
                match new {
                    Step::Fill(to, v) => graph.set(nth, fill(&mut model.tensors[to], v))?,
                    Step::Add(from, to, v) => {
                        let (from, to) = model.pair(from, to);
                        graph.set(nth, add(from, to, v))?;
                    }
                    Step::Scale(to, v) => graph.set(nth, scale(&mut model.tensors[to], v))?,
                }
                list[nth] = new;
            }
            2 if !graphs.is_empty() => {
                let at = model.below(graphs.len());
                let (graph, own, list) = &mut graphs[at];
                let new: Vec<Step> = list.iter().map(|old| model.like(*old)).collect();
                graph.update(|| new.iter().try_for_each(|step| model.launch(*step, own)))?;
                *list = new;
            }
            3 if graphs.len() > 2 => {
                let at = model.below(graphs.len());
                drop(graphs.swap_remove(at));
            }
            4 => {
                let at = model.below(TENSORS);
                model.read(at)?;
            }
            5 => {
                let (at, v) = (model.below(TENSORS), model.below(5) as f32);
                model.tensors[at].fill(v)?;
                model.held[at] = v;
            }
            6 => {
                let step = model.step();
                model.launch(step, &stream)?;
                model.ran(step);
            }
            _ if !graphs.is_empty() => {
                let at = model.below(graphs.len());
                let (graph, _, list) = &graphs[at];
                graph.launch(&stream)?;
                list.clone().into_iter().for_each(|step| model.ran(step));
            }
            _ => {}
        }
    }
    drop(graphs);
    (0..TENSORS).try_for_each(|at| model.read(at))?;
    streams.iter().try_for_each(Stream::sync)
}
