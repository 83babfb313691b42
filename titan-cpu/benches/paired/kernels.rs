//! The kernels of the benchmarks, as a user's kernels become IR.

use titan_core::ir::{
    Access, BinOp, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, OpKind, ReduceOp, TileShape, UnOp, Unit,
    Value,
};
use titan_core::verify::verify;
use titan_cpu::Program;

/// The builder with shorthands.
struct K(Builder);

impl K {
    fn new() -> Self {
        K(Builder::new("benchmark", Vec::new()))
    }

    fn tensor(&mut self, elem: Elem, access: Access, rank: usize) -> Value {
        self.0.tensor("t", elem, access, false, vec![DimSpec::Any; rank])
    }

    fn op(&mut self, kind: OpKind, args: &[Value]) -> Value {
        self.0.op1(kind, args).expect("a well-typed benchmark")
    }

    fn float(&mut self, v: f64) -> Value {
        self.0.constant(Const::Float(Elem::F32, v))
    }

    fn load(&mut self, t: Value, at: &[Value], shape: &[i32]) -> Value {
        let elem = self.0.ty(t).elem();
        let pad = self.0.constant(Const::Float(elem, 0.0));
        let args: Vec<Value> = [t].into_iter().chain(at.iter().copied()).chain([pad]).collect();
        self.op(OpKind::Load(Unit::Tile, shape_of(shape)), &args)
    }

    fn store(&mut self, t: Value, at: &[Value], tile: Value) {
        let args: Vec<Value> = [t].into_iter().chain(at.iter().copied()).chain([tile]).collect();
        self.0.op(OpKind::Store(Unit::Tile), &args).expect("a well-typed benchmark");
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        self.op(OpKind::Binary(op), &[a, b])
    }

    fn splat(&mut self, v: Value, shape: &[i32]) -> Value {
        self.op(OpKind::Splat(shape_of(shape)), &[v])
    }

    /// `[rows]` to `[rows, n]`.
    fn col(&mut self, v: Value, n: i32) -> Value {
        self.op(OpKind::Broadcast { axis: 1, n }, &[v])
    }

    fn compile(self) -> Program {
        let mut kernel = self.0.finish();
        let mut axes = 0;
        kernel.walk(&mut |_, op| {
            if let OpKind::ProgramId(axis) = op.kind {
                axes = axes.max(usize::from(axis) + 1);
            }
        });
        kernel.sig.grid = GridSpec::Extents(vec![HostExpr::Const(1 << 16); axes]);
        let kernel = verify(kernel).expect("a valid benchmark");
        Program::compile(&kernel).expect("a valid benchmark")
    }
}

fn shape_of(dims: &[i32]) -> TileShape {
    TileShape::new(dims).expect("one to four axes")
}

/// The design document's `gemm`.
pub(crate) fn gemm(elem: Elem, [bm, bn, bk]: [i32; 3]) -> Program {
    let mut k = K::new();
    let (a, b) = (k.tensor(elem, Access::In, 2), k.tensor(elem, Access::In, 2));
    let c = k.tensor(elem, Access::Mut, 2);
    let (m, n) = (k.op(OpKind::ProgramId(0), &[]), k.op(OpKind::ProgramId(1), &[]));
    let zero = k.float(0.0);
    let init = k.splat(zero, &[bm, bn]);
    let extent = k.op(OpKind::Dim(1), &[a]);
    let (less, by) = (k.0.i32(bk - 1), k.0.i32(bk));
    let sum = k.binary(BinOp::Add, extent, less);
    let steps = k.binary(BinOp::Div, sum, by);
    let (lo, one) = (k.0.i32(0), k.0.i32(1));
    let open = k.0.begin_for(ForKind::Pipelined, [lo, steps, one], &[init]).expect("i32 bounds");
    let (acc, index) = (open.carried[0], open.index.expect("a for has an index"));
    let at = k.load(a, &[m, index], &[bm, bk]);
    let bt = k.load(b, &[n, index], &[bn, bk]);
    let bt = k.op(OpKind::Permute([1, 0, 2, 3]), &[bt]);
    let next = k.op(OpKind::Mma, &[at, bt, acc]);
    k.0.terminate(OpKind::Continue(0), &[next]);
    let acc = k.0.end_loop(open, &[])[0];
    let result = k.op(OpKind::Cast(elem), &[acc]);
    k.store(c, &[m, n], result);
    k.compile()
}

/// `c = a · bᵀ` by the matmul crate, `b` given row by row of `bᵀ`'s columns.
#[expect(unsafe_code, reason = "the crate's function takes pointers")]
pub(crate) fn crate_product(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
    let m = c.len() / n;
    assert!(a.len() == m * k && b.len() == n * k, "slices of the matrices' sizes");
    let (row_a, row_c) = (k.cast_signed(), n.cast_signed());
    // SAFETY: the slices hold m·n, m·k and n·k elements, as just checked.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            n,
            m,
            k,
            c.as_mut_ptr(),
            row_c,
            1,
            false,
            b.as_ptr(),
            1,
            row_a,
            a.as_ptr(),
            row_a,
            1,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

pub(crate) fn bytes_of(elem: Elem, values: &[f32]) -> Vec<u8> {
    let bits = |v: &f32| match elem {
        Elem::F16 => titan_core::num::f16_from_f32(*v).to_le_bytes().to_vec(),
        Elem::Bf16 => titan_core::num::bf16_from_f32(*v).to_le_bytes().to_vec(),
        _ => v.to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bits).collect()
}

pub(crate) fn empty() -> Program {
    K::new().compile()
}

pub(crate) fn copy(n: i32) -> Program {
    let mut k = K::new();
    let (x, y) = (k.tensor(Elem::F32, Access::In, 2), k.tensor(Elem::F32, Access::Mut, 2));
    let (p, zero) = (k.op(OpKind::ProgramId(0), &[]), k.0.i32(0));
    let t = k.load(x, &[p, zero], &[1, n]);
    k.store(y, &[p, zero], t);
    k.compile()
}

/// Kernels that turn a row into a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowKernel {
    Copy,
    Softmax,
    RmsNorm,
    LayerNorm,
}

impl RowKernel {
    pub(crate) const ALL: [RowKernel; 4] =
        [RowKernel::Copy, RowKernel::Softmax, RowKernel::RmsNorm, RowKernel::LayerNorm];

    pub(crate) fn by_hand(self) -> crate::rows::ByHand {
        match self {
            RowKernel::Copy => crate::rows::copy,
            RowKernel::Softmax => crate::rows::softmax,
            RowKernel::RmsNorm => crate::rows::rms_norm,
            RowKernel::LayerNorm => crate::rows::layer_norm,
        }
    }
}

/// `y[p] = f(x[p], w)` on tiles of whole rows.
pub(crate) fn rows(kernel: RowKernel, rows: i32, n: i32) -> Program {
    let mut k = K::new();
    let (x, w) = (k.tensor(Elem::F32, Access::In, 2), k.tensor(Elem::F32, Access::In, 1));
    let y = k.tensor(Elem::F32, Access::Mut, 2);
    let (p, zero) = (k.op(OpKind::ProgramId(0), &[]), k.0.i32(0));
    let t = k.load(x, &[p, zero], &[rows, n]);
    let value = match kernel {
        RowKernel::Copy => t,
        RowKernel::Softmax => softmax(&mut k, t, n),
        RowKernel::RmsNorm => rms_norm(&mut k, t, w, rows, n),
        RowKernel::LayerNorm => layer_norm(&mut k, t, w, rows, n),
    };
    k.store(y, &[p, zero], value);
    k.compile()
}

fn softmax(k: &mut K, t: Value, n: i32) -> Value {
    let max = k.op(OpKind::Reduce(ReduceOp::Max, 1), &[t]);
    let max = k.col(max, n);
    let t = k.binary(BinOp::Sub, t, max);
    let e = k.op(OpKind::Unary(UnOp::Exp), &[t]);
    let sum = k.op(OpKind::Reduce(ReduceOp::Sum, 1), &[e]);
    let sum = k.col(sum, n);
    k.binary(BinOp::Div, e, sum)
}

/// 1 / √(mean of squares + ε), of each row.
fn rstd(k: &mut K, t: Value, rows: i32, n: i32) -> Value {
    let squares = k.binary(BinOp::Mul, t, t);
    let sum = k.op(OpKind::Reduce(ReduceOp::Sum, 1), &[squares]);
    let (count, eps) = (k.float(n.into()), k.float(1e-5));
    let (count, eps) = (k.splat(count, &[rows]), k.splat(eps, &[rows]));
    let mean = k.binary(BinOp::Div, sum, count);
    let mean = k.binary(BinOp::Add, mean, eps);
    k.op(OpKind::Unary(UnOp::Rsqrt), &[mean])
}

fn weighted(k: &mut K, t: Value, w: Value, rows: i32, n: i32) -> Value {
    let zero = k.0.i32(0);
    let w = k.load(w, &[zero], &[n]);
    let w = k.op(OpKind::Broadcast { axis: 0, n: rows }, &[w]);
    k.binary(BinOp::Mul, t, w)
}

fn rms_norm(k: &mut K, t: Value, w: Value, rows: i32, n: i32) -> Value {
    let rstd = rstd(k, t, rows, n);
    let rstd = k.col(rstd, n);
    let t = k.binary(BinOp::Mul, t, rstd);
    weighted(k, t, w, rows, n)
}

fn layer_norm(k: &mut K, t: Value, w: Value, rows: i32, n: i32) -> Value {
    let sum = k.op(OpKind::Reduce(ReduceOp::Sum, 1), &[t]);
    let count = k.float(n.into());
    let count = k.splat(count, &[rows]);
    let mean = k.binary(BinOp::Div, sum, count);
    let mean = k.col(mean, n);
    let t = k.binary(BinOp::Sub, t, mean);
    let rstd = rstd(k, t, rows, n);
    let rstd = k.col(rstd, n);
    let t = k.binary(BinOp::Mul, t, rstd);
    weighted(k, t, w, rows, n)
}
