//! Kernels on integers, run element by element: what the operations of the tile IR mean, written down once more.

use crate::tensor::Tensor;
use titan_core::ir::{ArgOp, BinOp, Block, Const, Elem, Kernel, Op, OpKind, Pred, ReduceOp, Ty, Unit, Value};

/// Elements, row-major; a scalar has no extents.
#[derive(Clone, Debug, Default)]
struct Tile {
    shape: Vec<i64>,
    data: Vec<i64>,
}

enum Flow {
    Next(Vec<Tile>),
    Break(u32, Vec<Tile>),
    Continue(u32, Vec<Tile>),
    Return,
}

struct Run<'a> {
    k: &'a Kernel,
    tensors: &'a mut [Option<Tensor>],
    values: Vec<Tile>,
    program: u32,
}

/// Runs one program.
pub(crate) fn run(kernel: &Kernel, tensors: &mut [Option<Tensor>], scalar: i32, program: u32) {
    let values = vec![scalar_tile(scalar.into()); kernel.values.len()];
    let mut run = Run { k: kernel, tensors, values, program };
    run.block(kernel.body);
}

fn scalar_tile(x: i64) -> Tile {
    Tile { shape: vec![], data: vec![x] }
}

/// Every place of a box, row-major.
fn places(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    for n in shape {
        all = all.iter().flat_map(|at: &Vec<i64>| (0..*n).map(move |i| [&at[..], &[i]].concat())).collect();
    }
    all
}

fn linear(shape: &[i64], at: &[i64]) -> usize {
    shape.iter().zip(at).fold(0, |sum, (n, x)| sum * n + x) as usize
}

impl Tile {
    fn at(&self, place: &[i64]) -> i64 {
        self.data[linear(&self.shape, place)]
    }

    fn make(shape: &[i64], f: impl FnMut(&Vec<i64>) -> i64) -> Tile {
        Tile { shape: shape.to_vec(), data: places(shape).iter().map(f).collect() }
    }
}

/// The number that an element type makes of another.
fn wrap(elem: Elem, x: i64) -> i64 {
    match elem {
        Elem::I32 => i64::from(x as i32),
        Elem::I16 => i64::from(x as i16),
        Elem::I8 => i64::from(x as i8),
        Elem::U8 => i64::from(x as u8),
        Elem::Bool => x & 1,
        _ => x,
    }
}

fn shape_of(ty: Ty) -> Vec<i64> {
    ty.tile_shape().map_or(vec![], |s| s.iter().map(|n| i64::from(*n)).collect())
}

impl Run<'_> {
    fn get(&self, v: Value) -> &Tile {
        &self.values[v.index()]
    }

    fn number(&self, v: Value) -> i64 {
        self.get(v).data[0]
    }

    fn set(&mut self, to: &[Value], from: Vec<Tile>) {
        to.iter().zip(from).for_each(|(v, t)| self.values[v.index()] = t);
    }

    fn all(&self, values: &[Value]) -> Vec<Tile> {
        values.iter().map(|v| self.get(*v).clone()).collect()
    }

    fn block(&mut self, block: Block) -> Flow {
        let k = self.k;
        for id in &k.block(block).ops {
            let op = k.op(*id);
            match &op.kind {
                OpKind::Yield => return Flow::Next(self.all(&op.args)),
                OpKind::Break(n) => return Flow::Break(*n, self.all(&op.args)),
                OpKind::Continue(n) => return Flow::Continue(*n, self.all(&op.args)),
                OpKind::Return => return Flow::Return,
                OpKind::If => {
                    let arm = op.regions[usize::from(self.number(op.args[0]) == 0)];
                    match self.block(arm) {
                        Flow::Next(values) => self.set(&op.results, values),
                        other => return other,
                    }
                }
                OpKind::For(_) | OpKind::Loop => {
                    if let Some(out) = self.repeat(op) {
                        return out;
                    }
                }
                _ => {
                    let results = self.plain(op);
                    self.set(&op.results, results);
                }
            }
        }
        Flow::Return
    }

    fn repeat(&mut self, op: &Op) -> Option<Flow> {
        let counted = matches!(op.kind, OpKind::For(_));
        let (bounds, init) = op.args.split_at(if counted { 3 } else { 0 });
        let bounds: Vec<i64> = bounds.iter().map(|b| self.number(*b)).collect();
        let args = self.k.block(op.regions[0]).args.clone();
        let (index, inner) = args.split_at(usize::from(counted));
        let mut carried = self.all(init);
        let mut at = bounds.first().copied().unwrap_or(0);
        loop {
            if counted && at >= bounds[1] {
                self.set(&op.results, carried);
                return None;
            }
            self.set(index, vec![scalar_tile(at)]);
            self.set(inner, carried.clone());
            match self.block(op.regions[0]) {
                Flow::Break(0, values) => {
                    self.set(&op.results, values);
                    return None;
                }
                Flow::Continue(0, values) => carried = values,
                Flow::Break(n, values) => return Some(Flow::Break(n - 1, values)),
                Flow::Continue(n, values) => return Some(Flow::Continue(n - 1, values)),
                Flow::Next(_) | Flow::Return => return Some(Flow::Return),
            }
            at += bounds.get(2).copied().unwrap_or(0);
        }
    }

    fn plain(&mut self, op: &Op) -> Vec<Tile> {
        let ty = op.results.first().map_or(Ty::I32, |r| self.k.ty(*r));
        let (elem, shape) = (ty.elem(), shape_of(ty));
        let args: Vec<Tile> = op.args.iter().map(|a| self.get(*a).clone()).collect();
        let each = |f: &dyn Fn(usize) -> i64| {
            let n = shape.iter().product::<i64>() as usize;
            vec![Tile { shape: shape.clone(), data: (0..n).map(|i| wrap(elem, f(i))).collect() }]
        };
        // A scalar condition of tiles is the same everywhere.
        let element = |a: usize, i: usize| if args[a].data.len() == 1 { args[a].data[0] } else { args[a].data[i] };
        match &op.kind {
            OpKind::Const(Const::Int(_, x)) => vec![scalar_tile(*x)],
            OpKind::ProgramId(axis) => vec![scalar_tile(if *axis == 0 { self.program.into() } else { 0 })],
            OpKind::Iota(n) => vec![Tile { shape, data: (0..i64::from(*n)).collect() }],
            OpKind::Splat(_) => each(&|_| args[0].data[0]),
            OpKind::Binary(f) => each(&|i| binary(*f, element(0, i), element(1, i))),
            OpKind::Cmp(p) => each(&|i| i64::from(compare(*p, element(0, i), element(1, i)))),
            OpKind::Select => each(&|i| if element(0, i) != 0 { element(1, i) } else { element(2, i) }),
            OpKind::Cast(_) => each(&|i| element(0, i)),
            OpKind::Reshape(_) => each(&|i| args[0].data[i]),
            OpKind::Broadcast { axis, .. } => {
                vec![Tile::make(&shape, |at| {
                    let mut at = at.clone();
                    at.remove(usize::from(*axis));
                    args[0].at(&at)
                })]
            }
            OpKind::Permute(perm) => {
                vec![Tile::make(&shape, |at| {
                    let mut from = at.clone();
                    (0..at.len()).for_each(|i| from[usize::from(perm[i])] = at[i]);
                    args[0].at(&from)
                })]
            }
            OpKind::Cut { axis, from, .. } => {
                vec![Tile::make(&shape, |at| {
                    let mut at = at.clone();
                    at[usize::from(*axis)] += i64::from(*from);
                    args[0].at(&at)
                })]
            }
            OpKind::Concat(axis) => {
                vec![Tile::make(&shape, |at| {
                    let (mut at, axis) = (at.clone(), usize::from(*axis));
                    let first = args[0].shape[axis];
                    if at[axis] < first {
                        return args[0].at(&at);
                    }
                    at[axis] -= first;
                    args[1].at(&at)
                })]
            }
            OpKind::Interleave => each(&|i| args[i % 2].data[i / 2]),
            OpKind::Split => (0..2).map(|half| each(&|i| args[0].data[2 * i + half]).remove(0)).collect(),
            OpKind::Reduce(f, axis) => {
                vec![Tile::make(&shape, |at| {
                    line(&args[0], at, *axis).into_iter().reduce(|x, y| fold(*f, x, y)).expect("one")
                })]
            }
            OpKind::ArgReduce(f, axis) => arg_reduce(&args[0], &shape, *f, *axis),
            OpKind::Scan(f, axis) => {
                vec![Tile::make(&shape, |at| {
                    let mut rest = at.clone();
                    let end = rest.remove(usize::from(*axis)) as usize;
                    line(&args[0], &rest, *axis)[..=end].iter().copied().reduce(|x, y| fold(*f, x, y)).expect("one")
                })]
            }
            OpKind::Mma => vec![product(&args, &shape)],
            OpKind::Load(unit, _) => vec![self.load(op, *unit, &shape)],
            OpKind::Gather => vec![self.gather(op, &shape)],
            OpKind::Store(unit) => {
                self.store(op, *unit);
                vec![]
            }
            kind => panic!("{kind:?} is not run here"),
        }
    }

    fn tensor(&mut self, v: Value) -> &mut Tensor {
        self.tensors[v.index()].as_mut().expect("a tensor")
    }

    fn read(&mut self, tensor: Value, at: &[i64]) -> Option<i64> {
        let t = self.tensor(tensor);
        let (place, size) = (t.place(at)?, (t.elem.bits() / 8) as usize);
        let raw = t.bytes[place..place + size].iter().rev().fold(0i64, |w, b| w << 8 | i64::from(*b));
        Some(wrap(t.elem, raw))
    }

    /// Where an element of a tile lies in the tensor.
    fn origin(&self, op: &Op, unit: Unit, shape: &[i64]) -> Vec<i64> {
        let scale = |n: i64| if unit == Unit::Tile { n } else { 1 };
        shape.iter().enumerate().map(|(i, n)| self.number(op.args[1 + i]) * scale(*n)).collect()
    }

    fn load(&mut self, op: &Op, unit: Unit, shape: &[i64]) -> Tile {
        let origin = self.origin(op, unit, shape);
        let pad = self.number(op.args[1 + shape.len()]);
        Tile::make(shape, |at| {
            let at: Vec<i64> = at.iter().zip(&origin).map(|(x, o)| x + o).collect();
            self.read(op.args[0], &at).unwrap_or(pad)
        })
    }

    fn gather(&mut self, op: &Op, shape: &[i64]) -> Tile {
        let rank = op.args.len() - 2;
        let columns = self.all(&op.args[1..=rank]);
        let pad = self.number(op.args[rank + 1]);
        Tile::make(shape, |at| {
            let at: Vec<i64> = columns.iter().map(|c| c.at(at)).collect();
            self.read(op.args[0], &at).unwrap_or(pad)
        })
    }

    fn store(&mut self, op: &Op, unit: Unit) {
        let tile = self.get(*op.args.last().expect("a tile")).clone();
        let origin = self.origin(op, unit, &tile.shape);
        for at in places(&tile.shape) {
            let there: Vec<i64> = at.iter().zip(&origin).map(|(x, o)| x + o).collect();
            let t = self.tensor(op.args[0]);
            if let Some(place) = t.place(&there) {
                let size = (t.elem.bits() / 8) as usize;
                t.bytes[place..place + size].copy_from_slice(&tile.at(&at).to_le_bytes()[..size]);
            }
        }
    }
}

/// The elements along an axis at a place of the rest.
fn line(tile: &Tile, rest: &[i64], axis: u8) -> Vec<i64> {
    let axis = usize::from(axis);
    (0..tile.shape[axis])
        .map(|i| {
            let mut at = rest.to_vec();
            at.insert(axis, i);
            tile.at(&at)
        })
        .collect()
}

fn arg_reduce(tile: &Tile, shape: &[i64], f: ArgOp, axis: u8) -> Vec<Tile> {
    let place = |at: &Vec<i64>| {
        let line = line(tile, at, axis);
        let best = if f == ArgOp::Max { line.iter().max() } else { line.iter().min() };
        let best = *best.expect("one");
        (best, line.iter().position(|x| *x == best).expect("there") as i64)
    };
    vec![Tile::make(shape, |at| place(at).0), Tile::make(shape, |at| place(at).1)]
}

fn product(args: &[Tile], shape: &[i64]) -> Tile {
    let depth = args[0].shape[1];
    Tile::make(shape, |at| {
        let sum: i64 = (0..depth).map(|k| args[0].at(&[at[0], k]) * args[1].at(&[k, at[1]])).sum();
        wrap(Elem::I32, sum + args[2].at(at))
    })
}

fn binary(f: BinOp, x: i64, y: i64) -> i64 {
    match f {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr | BinOp::MulHi | BinOp::Powf => {
            panic!("{f} is not run here")
        }
    }
}

fn fold(f: ReduceOp, x: i64, y: i64) -> i64 {
    let out = match f {
        ReduceOp::Sum => x + y,
        ReduceOp::Prod => x.wrapping_mul(y),
        ReduceOp::Max => x.max(y),
        ReduceOp::Min => x.min(y),
    };
    wrap(Elem::I32, out)
}

fn compare(p: Pred, x: i64, y: i64) -> bool {
    match p {
        Pred::Eq => x == y,
        Pred::Ne => x != y,
        Pred::Lt => x < y,
        Pred::Le => x <= y,
        Pred::Gt => x > y,
        Pred::Ge => x >= y,
    }
}
