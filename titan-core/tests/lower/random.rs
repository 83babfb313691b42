//! Random kernels on integers: tiles from tensors, through every operation that moves elements, to tensors.

use crate::machine::Rng;
use titan_core::ir::{
    Access, ArgOp, BinOp, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, Kernel, OpKind, Pred, ReduceOp,
    TileShape, Ty, Unit, Value,
};

/// Programs of the grid.
pub(crate) const PROGRAMS: u32 = 2;

const EXTENTS: [i32; 15] = [1, 2, 3, 4, 5, 8, 12, 16, 16, 24, 32, 32, 48, 60, 64];

struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    /// Tensors that are read: value, element, rank.
    inputs: Vec<(Value, Elem, usize)>,
    outputs: Vec<(Value, usize)>,
    /// Tiles of i32 that are visible.
    tiles: Vec<Value>,
    scalars: Vec<Value>,
    depth: u32,
    most: i64,
}

/// A random kernel.
pub(crate) fn kernel(rng: &mut Rng) -> Kernel {
    let mut b = Builder::new("random", vec![]);
    let mut inputs = Vec::new();
    for i in 0..3 {
        let (elem, rank) = (rng.of(&[Elem::I32, Elem::I32, Elem::I16, Elem::I8, Elem::U8]), 1 + rng.below(3) as usize);
        inputs.push((b.tensor(&format!("a{i}"), elem, Access::In, false, vec![DimSpec::Any; rank]), elem, rank));
    }
    for i in 0..2 {
        inputs.push((b.tensor(&format!("m{i}"), Elem::I8, Access::In, false, vec![DimSpec::Any; 2]), Elem::I8, 2));
    }
    let count = 1 + rng.below(2);
    let outputs = (0..count).map(|i| {
        let rank = 1 + rng.below(3) as usize;
        (b.tensor(&format!("out{i}"), Elem::I32, Access::Mut, false, vec![DimSpec::Any; rank]), rank)
    });
    let outputs: Vec<_> = outputs.collect();
    let n = b.scalar("n", Elem::I32);
    b.set_grid(GridSpec::Extents(vec![HostExpr::Const(PROGRAMS.into())]));
    let most = rng.of(&[256, 1024, 2048]);
    let mut g = Gen { rng, b, inputs, outputs, tiles: vec![], scalars: vec![n], depth: 0, most };
    let p = g.op(OpKind::ProgramId(0), &[]);
    let zero = g.b.i32(0);
    g.scalars.extend([p, zero]);
    g.scalars[0] = p;
    g.scalars[1] = zero;
    g.scalars[2] = n;
    for _ in 0..3 + g.rng.below(8) {
        g.step();
    }
    g.finish()
}

impl Gen<'_> {
    fn op(&mut self, kind: OpKind, args: &[Value]) -> Value {
        self.b.op1(kind, args).expect("operands fit")
    }

    fn shape(&self, v: Value) -> Vec<i32> {
        self.b.ty(v).tile_shape().expect("a tile").to_vec()
    }

    fn any_shape(&mut self, rank: usize) -> Vec<i32> {
        loop {
            let shape: Vec<i32> = (0..rank).map(|_| self.rng.of(&EXTENTS)).collect();
            if shape.iter().map(|n| i64::from(*n)).product::<i64>() <= self.most {
                return shape;
            }
        }
    }

    fn pick(&mut self) -> Value {
        match self.tiles.len() {
            0 => {
                let rank = 1 + self.rng.below(3) as usize;
                let shape = self.any_shape(rank);
                self.load(&shape)
            }
            n => self.tiles[self.rng.below(n as u32) as usize],
        }
    }

    fn small(&mut self) -> Value {
        match self.rng.below(4) {
            0 => self.scalars[0],
            1 => {
                let c = self.rng.below(3) as i32 - 1;
                self.b.i32(c)
            }
            _ => self.scalars[1],
        }
    }

    fn tile_shape(shape: &[i32]) -> TileShape {
        TileShape::new(shape).expect("a shape")
    }

    /// A tile of this shape from a tensor of its rank, or made of nothing.
    fn load(&mut self, shape: &[i32]) -> Value {
        let fits: Vec<_> = self.inputs.iter().filter(|i| i.2 == shape.len()).copied().collect();
        let tile = if fits.is_empty() || self.rng.below(8) == 0 {
            self.made(shape)
        } else {
            let (tensor, elem, _) = fits[self.rng.below(fits.len() as u32) as usize];
            let unit = self.rng.of(&[Unit::Tile, Unit::Tile, Unit::Elem]);
            let mut args = vec![tensor];
            for _ in shape {
                args.push(self.small());
            }
            let pad = self.rng.of(&[0, 0, 0, 3]);
            args.push(self.b.constant(Const::Int(elem, pad)));
            let tile = self.op(OpKind::Load(unit, Self::tile_shape(shape)), &args);
            if elem == Elem::I32 { tile } else { self.op(OpKind::Cast(Elem::I32), &[tile]) }
        };
        self.tiles.push(tile);
        tile
    }

    /// Coordinates and constants.
    fn made(&mut self, shape: &[i32]) -> Value {
        let axis = self.rng.below(shape.len() as u32) as usize;
        let mut tile = self.op(OpKind::Iota(shape[axis]), &[]);
        for (i, n) in shape.iter().enumerate() {
            if i != axis {
                tile = self.op(OpKind::Broadcast { axis: i as u8, n: *n }, &[tile]);
            }
        }
        tile
    }

    /// A tile of the same shape as another.
    fn partner(&mut self, v: Value) -> Value {
        let shape = self.shape(v);
        let same: Vec<Value> = self.tiles.iter().filter(|t| self.shape(**t) == shape).copied().collect();
        match self.rng.below(4) {
            0 => self.load(&shape),
            1 => {
                let c = self.rng.of(&[1, 7, -3]);
                let c = self.b.i32(c);
                self.op(OpKind::Splat(Self::tile_shape(&shape)), &[c])
            }
            _ => same[self.rng.below(same.len() as u32) as usize],
        }
    }

    /// A part of a tile along an axis.
    fn cut(&mut self, tile: Value, axis: u8) -> Value {
        let n = self.shape(tile)[usize::from(axis)];
        let from = self.rng.below(n as u32) as i32;
        let n = 1 + self.rng.below((n - from) as u32) as i32;
        self.op(OpKind::Cut { axis, from, n }, &[tile])
    }

    #[expect(clippy::too_many_lines, reason = "one line for each kind of step")]
    fn step(&mut self) {
        let tile = self.pick();
        let shape = self.shape(tile);
        let rank = shape.len();
        let axis = self.rng.below(rank as u32) as u8;
        let len: i64 = shape.iter().map(|n| i64::from(*n)).product();
        let made = match self.rng.below(24) {
            0 => {
                let rank = 1 + self.rng.below(4) as usize;
                let shape = self.any_shape(rank);
                self.load(&shape);
                return;
            }
            1..=3 => {
                let other = self.partner(tile);
                let f =
                    self.rng.of(&[BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Min, BinOp::Max, BinOp::And, BinOp::Xor]);
                self.op(OpKind::Binary(f), &[tile, other])
            }
            4 => {
                let other = self.partner(tile);
                let pred = self.rng.of(&[Pred::Lt, Pred::Ge, Pred::Eq]);
                let mask = self.op(OpKind::Cmp(pred), &[tile, other]);
                self.op(OpKind::Select, &[mask, other, tile])
            }
            5 | 6 => {
                let order = self.rng.permutation(rank);
                let mut perm = [0u8, 1, 2, 3];
                (0..rank).for_each(|i| perm[i] = order[i] as u8);
                self.op(OpKind::Permute(perm), &[tile])
            }
            7 | 8 => self.reshaped(tile, len as i32),
            9 | 10 if rank > 1 => {
                let f = self.rng.of(&[ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod]);
                let narrow = self.op(OpKind::Reduce(f, axis), &[tile]);
                if self.rng.below(2) == 0 {
                    self.tiles.push(narrow);
                    self.op(OpKind::Broadcast { axis, n: shape[usize::from(axis)] }, &[narrow])
                } else {
                    narrow
                }
            }
            9 | 10 => {
                let total = self.op(OpKind::Reduce(ReduceOp::Sum, 0), &[tile]);
                self.op(OpKind::Splat(Self::tile_shape(&shape)), &[total])
            }
            11 if rank < 4 => {
                let n = self.rng.of(&[2, 3, 4, 8]);
                if len * i64::from(n) > self.most {
                    return;
                }
                self.op(OpKind::Broadcast { axis, n }, &[tile])
            }
            12 | 13 => {
                let f = self.rng.of(&[ReduceOp::Sum, ReduceOp::Max]);
                self.op(OpKind::Scan(f, axis), &[tile])
            }
            14 if 2 * len <= self.most => {
                let other = self.partner(tile);
                self.op(OpKind::Interleave, &[tile, other])
            }
            14 | 15 if shape[rank - 1] % 2 == 0 => {
                let halves = self.b.op(OpKind::Split, &[tile]).expect("an even extent");
                self.tiles.push(halves[0]);
                halves[1]
            }
            16 if rank > 1 => {
                let f = self.rng.of(&[ArgOp::Max, ArgOp::Min]);
                let both = self.b.op(OpKind::ArgReduce(f, axis), &[tile]).expect("an axis");
                self.tiles.push(both[0]);
                both[1]
            }
            17 => self.gathered(tile),
            22 => self.cut(tile, axis),
            23 if len < self.most => {
                // A part of the tile, where that fits: behind the tile or before it.
                let n = shape[usize::from(axis)];
                let room = (self.most - len) / (len / i64::from(n));
                if room == 0 {
                    return;
                }
                let more = i32::try_from(room).map_or(n, |room| n.min(room));
                let part = self.op(OpKind::Cut { axis, from: n - more, n: more }, &[tile]);
                let both = if self.rng.below(2) == 0 { [tile, part] } else { [part, tile] };
                self.op(OpKind::Concat(axis), &both)
            }
            18 | 19 => self.product(),
            20 if self.depth < 2 => return self.repeated(tile),
            21 if self.depth < 2 => return self.chosen(tile),
            _ => {
                let other = self.partner(tile);
                self.op(OpKind::Binary(BinOp::Add), &[tile, other])
            }
        };
        self.tiles.push(made);
    }

    fn reshaped(&mut self, tile: Value, len: i32) -> Value {
        let rank = 1 + self.rng.below(4) as usize;
        let mut shape = vec![1; rank];
        let mut left = len;
        while left > 1 {
            let factor = (2..=left).find(|f| left % f == 0).expect("a factor");
            shape[self.rng.below(rank as u32) as usize] *= factor;
            left /= factor;
        }
        self.op(OpKind::Reshape(Self::tile_shape(&shape)), &[tile])
    }

    /// Elements of a tensor named by a tile of indices.
    fn gathered(&mut self, tile: Value) -> Value {
        let (tensor, elem, rank) = self.inputs[self.rng.below(3) as usize];
        let mask = self.b.i32(31);
        let shape = Self::tile_shape(&self.shape(tile));
        let mask = self.op(OpKind::Splat(shape), &[mask]);
        let index = self.op(OpKind::Binary(BinOp::And), &[tile, mask]);
        let mut args = vec![tensor];
        args.extend(std::iter::repeat_n(index, rank));
        args.push(self.b.constant(Const::Int(elem, 5)));
        let rows = self.op(OpKind::Gather, &args);
        if elem == Elem::I32 { rows } else { self.op(OpKind::Cast(Elem::I32), &[rows]) }
    }

    /// A product of tiles of bytes, each as it was loaded, transposed, or computed.
    fn product(&mut self) -> Value {
        let some = [1, 8, 12, 16, 24, 32, 48];
        let [m, n, k] = [self.rng.of(&some), self.rng.of(&some), self.rng.of(&[4, 16, 32, 32, 40, 64])];
        let acc = match self.rng.below(2) {
            0 => {
                let zero = self.b.i32(0);
                self.op(OpKind::Splat(Self::tile_shape(&[m, n])), &[zero])
            }
            _ => self.load(&[m, n]),
        };
        let (a, b) = (self.operand(m, k), self.operand(k, n));
        self.op(OpKind::Mma, &[a, b, acc])
    }

    fn operand(&mut self, rows: i32, columns: i32) -> Value {
        let pad = self.rng.of(&[0, 0, 3]);
        let pad = self.b.constant(Const::Int(Elem::I8, pad));
        let tensor = self.inputs[3 + self.rng.below(2) as usize].0;
        let at = [self.small(), self.scalars[1]];
        let turned = self.rng.below(2) == 0;
        let shape = if turned { [columns, rows] } else { [rows, columns] };
        let mut tile = self.op(OpKind::Load(Unit::Tile, Self::tile_shape(&shape)), &[tensor, at[0], at[1], pad]);
        if turned {
            tile = self.op(OpKind::Permute([1, 0, 2, 3]), &[tile]);
        }
        if self.rng.below(3) == 0 {
            // Computed: what is beyond the tile is not zero.
            let shape = Self::tile_shape(&self.shape(tile));
            let one = self.b.constant(Const::Int(Elem::I8, 1));
            let ones = self.op(OpKind::Splat(shape), &[one]);
            tile = self.op(OpKind::Binary(BinOp::Add), &[tile, ones]);
        }
        if self.rng.below(3) == 0 {
            // Not only read by products any more.
            let wide = self.op(OpKind::Cast(Elem::I32), &[tile]);
            self.tiles.push(wide);
        }
        tile
    }

    /// A loop that carries a tile: counted, or left in its middle.
    fn repeated(&mut self, tile: Value) {
        let (seen, shape) = (self.tiles.len(), self.shape(tile));
        self.depth += 1;
        let counted = self.rng.below(3) > 0;
        let trips = self.rng.below(4) as i32;
        let (zero, hi, one) = (self.b.i32(0), self.b.i32(trips), self.b.i32(1));
        let result = if counted {
            let open = self.b.begin_for(ForKind::Sequential, [zero, hi, one], &[tile]).expect("bounds");
            self.tiles.push(open.carried[0]);
            self.scalars.push(open.index.expect("an index"));
            let next = self.body(open.carried[0], &shape);
            self.b.terminate(OpKind::Continue(0), &[next]);
            self.scalars.pop();
            self.b.end_loop(open, &[])
        } else {
            let open = self.b.begin_loop(&[tile, zero]);
            let (carried, count) = (open.carried[0], open.carried[1]);
            self.tiles.push(carried);
            let next = self.body(carried, &shape);
            let done = self.op(OpKind::Cmp(Pred::Ge), &[count, hi]);
            let mut arms = self.b.begin_if(done);
            self.b.terminate(OpKind::Break(0), &[next]);
            self.b.begin_else(&mut arms);
            self.b.terminate(OpKind::Yield, &[]);
            self.b.end_if(arms, &[]);
            let late = self.body(next, &shape);
            let more = self.op(OpKind::Binary(BinOp::Add), &[count, one]);
            self.b.terminate(OpKind::Continue(0), &[late, more]);
            self.b.end_loop(open, &[Ty::Tile(Elem::I32, Self::tile_shape(&shape))])
        };
        self.depth -= 1;
        self.tiles.truncate(seen);
        self.tiles.extend(result);
    }

    /// Some steps, and a tile of the shape that is carried.
    fn body(&mut self, carried: Value, shape: &[i32]) -> Value {
        for _ in 0..self.rng.below(3) {
            self.step();
        }
        let same: Vec<Value> = self.tiles.iter().filter(|t| self.shape(**t) == shape).copied().collect();
        let other = same[self.rng.below(same.len() as u32) as usize];
        self.op(OpKind::Binary(BinOp::Add), &[carried, other])
    }

    fn chosen(&mut self, tile: Value) {
        let (seen, shape) = (self.tiles.len(), self.shape(tile));
        self.depth += 1;
        let one = self.b.i32(1);
        // By the program, by an argument, or by what was computed.
        let of = match self.rng.below(3) {
            0 => self.scalars[0],
            1 => self.scalars[2],
            _ => {
                let mut flat = self.pick();
                while let Some(n) = self.b.ty(flat).tile_shape() {
                    let _ = n;
                    flat = self.op(OpKind::Reduce(ReduceOp::Max, 0), &[flat]);
                }
                flat
            }
        };
        let cond = self.op(OpKind::Cmp(Pred::Lt), &[of, one]);
        let mut arms = self.b.begin_if(cond);
        let first = self.body(tile, &shape);
        self.b.terminate(OpKind::Yield, &[first]);
        self.tiles.truncate(seen);
        self.b.begin_else(&mut arms);
        let second = if self.rng.below(2) == 0 { tile } else { self.body(tile, &shape) };
        self.b.terminate(OpKind::Yield, &[second]);
        self.tiles.truncate(seen);
        let out = self.b.end_if(arms, &[Ty::Tile(Elem::I32, Self::tile_shape(&shape))]);
        self.depth -= 1;
        self.tiles.extend(out);
    }

    /// Stores to every output, with what was there or without.
    fn finish(mut self) -> Kernel {
        for (tensor, rank) in self.outputs.clone() {
            let fits: Vec<Value> = self.tiles.iter().filter(|t| self.shape(**t).len() == rank).copied().collect();
            let mut tile = match fits.last() {
                Some(last) => *last,
                None => {
                    let (tile, shape) = (self.pick(), self.any_shape(rank));
                    let len: i32 = self.shape(tile).iter().product();
                    let flat = self.op(OpKind::Reshape(Self::tile_shape(&[len])), &[tile]);
                    let total = self.op(OpKind::Reduce(ReduceOp::Sum, 0), &[flat]);
                    let total = self.op(OpKind::Splat(Self::tile_shape(&shape)), &[total]);
                    let made = self.made(&shape);
                    self.op(OpKind::Binary(BinOp::Add), &[total, made])
                }
            };
            let mut at = vec![self.scalars[0]];
            at.extend(std::iter::repeat_n(self.scalars[1], rank - 1));
            let shape = Self::tile_shape(&self.shape(tile));
            if self.rng.below(3) == 0 {
                let mut args = vec![tensor];
                args.extend(&at);
                args.push(self.b.i32(0));
                let old = self.op(OpKind::Load(Unit::Tile, shape), &args);
                tile = self.op(OpKind::Binary(BinOp::Add), &[tile, old]);
            }
            let args: Vec<Value> = [tensor].into_iter().chain(at).chain([tile]).collect();
            self.b.op(OpKind::Store(Unit::Tile), &args).expect("stored");
        }
        self.b.terminate(OpKind::Return, &[]);
        self.b.finish()
    }
}
