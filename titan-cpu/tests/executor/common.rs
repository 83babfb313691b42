//! What the tests share: building kernels, tensors of any element type as `f64`s, running.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "test data are small"
)]

use titan_core::ir::{Access, Builder, DimSpec, Elem, GridSpec, HostExpr, OpKind, TileShape, Unit, Value};
use titan_core::num;
use titan_core::verify::verify;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Options, Program, RunError};

/// A kernel under construction, with shorthands that unwrap.
pub(crate) struct K(pub(crate) Builder);

impl K {
    pub(crate) fn new(name: &str) -> Self {
        K(Builder::new(name, Vec::new()))
    }

    pub(crate) fn input(&mut self, name: &str, elem: Elem, rank: usize) -> Value {
        self.0.tensor(name, elem, Access::In, false, vec![DimSpec::Any; rank])
    }

    pub(crate) fn output(&mut self, name: &str, elem: Elem, rank: usize) -> Value {
        self.0.tensor(name, elem, Access::Mut, false, vec![DimSpec::Any; rank])
    }

    pub(crate) fn op(&mut self, kind: OpKind, args: &[Value]) -> Value {
        self.0.op1(kind, args).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn run(&mut self, kind: OpKind, args: &[Value]) -> Vec<Value> {
        self.0.op(kind, args).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn i32(&mut self, v: i32) -> Value {
        self.0.i32(v)
    }

    pub(crate) fn pid(&mut self, axis: u8) -> Value {
        self.op(OpKind::ProgramId(axis), &[])
    }

    pub(crate) fn zero(&mut self, elem: Elem) -> Value {
        let c =
            if elem.is_float() { titan_core::ir::Const::Float(elem, 0.0) } else { titan_core::ir::Const::Int(elem, 0) };
        self.0.constant(c)
    }

    /// A tile in tile units, zero outside.
    pub(crate) fn load(&mut self, tensor: Value, at: &[Value], shape: &[i32]) -> Value {
        let pad = self.zero(self.0.ty(tensor).elem());
        let args: Vec<Value> = [tensor].into_iter().chain(at.iter().copied()).chain([pad]).collect();
        self.op(OpKind::Load(Unit::Tile, shape_of(shape)), &args)
    }

    /// The tensor outside of the output rule: what programs may write is not what these tests are about.
    pub(crate) fn shared(&mut self, tensor: Value) -> Value {
        self.op(OpKind::Shared, &[tensor])
    }

    pub(crate) fn store(&mut self, tensor: Value, at: &[Value], tile: Value) {
        let packed = self.0.ty(tensor).elem().bits() == 4;
        let tensor = if packed { self.shared(tensor) } else { tensor };
        let args: Vec<Value> = [tensor].into_iter().chain(at.iter().copied()).chain([tile]).collect();
        self.run(OpKind::Store(Unit::Tile), &args);
    }

    pub(crate) fn compile(self, options: Options) -> Program {
        let mut kernel = self.0.finish();
        kernel.sig.grid = grid_of(&kernel);
        let kernel = verify(kernel).unwrap_or_else(|d| panic!("{d:?}"));
        Program::compile_with(&kernel, options).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// The program of a kernel as text.
pub(crate) fn compile_text(text: &str, options: Options) -> Program {
    let kernel = titan_core::text::parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    Program::compile_with(&kernel, options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A grid with the axes that a kernel names, as large as any test runs.
fn grid_of(kernel: &titan_core::ir::Kernel) -> GridSpec {
    let (mut axes, mut distributed) = (0, false);
    kernel.walk(&mut |_, op| match op.kind {
        OpKind::ProgramId(axis) | OpKind::NumPrograms(axis) => axes = axes.max(usize::from(axis) + 1),
        OpKind::For(titan_core::ir::ForKind::Distributed) => distributed = true,
        _ => {}
    });
    if distributed { GridSpec::Persistent } else { GridSpec::Extents(vec![HostExpr::Const(1 << 17); axes]) }
}

pub(crate) fn shape_of(dims: &[i32]) -> TileShape {
    TileShape::new(dims).expect("one to four axes")
}

/// Every combination of the fast paths that tests compare.
pub(crate) fn all_options() -> Vec<Options> {
    let all = Options::default();
    let mut none = all;
    (none.fuse, none.products, none.lazy) = (false, false, false);
    vec![all, none, Options { fuse: false, ..all }, Options { products: false, ..all }, Options { lazy: false, ..all }]
}

/// Random numbers that are the same in every run.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// In -1 .. 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A dense tensor on the device.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) elem: Elem,
    pub(crate) extents: Vec<i32>,
    pub(crate) strides: Vec<i64>,
    pub(crate) memory: Memory,
    pub(crate) offset: usize,
}

impl Tensor {
    pub(crate) fn zeros(elem: Elem, extents: &[i32]) -> Self {
        let len: usize = extents.iter().map(|n| *n as usize).product();
        let mut strides = vec![1i64; extents.len()];
        for i in (0..extents.len().saturating_sub(1)).rev() {
            strides[i] = strides[i + 1] * i64::from(extents[i + 1]);
        }
        let memory = Memory::zeroed(elem.bytes_for(len)).unwrap();
        Tensor { elem, extents: extents.to_vec(), strides, memory, offset: 0 }
    }

    /// From values, which must be values of the element type.
    pub(crate) fn new(elem: Elem, extents: &[i32], values: &[f64]) -> Self {
        let tensor = Tensor::zeros(elem, extents);
        tensor.memory.write(0, &encode(elem, values)).unwrap();
        tensor
    }

    pub(crate) fn ints(elem: Elem, extents: &[i32], values: &[i64]) -> Self {
        let tensor = Tensor::zeros(elem, extents);
        tensor.memory.write(0, &encode_ints(elem, values)).unwrap();
        tensor
    }

    pub(crate) fn arg(&self) -> Arg {
        Arg::Tensor {
            memory: self.memory.clone(),
            offset: self.offset,
            extents: self.extents.clone(),
            strides: self.strides.clone(),
        }
    }

    /// All elements of the memory.
    pub(crate) fn values(&self) -> Vec<f64> {
        let mut bytes = vec![0; self.memory.len()];
        self.memory.read(0, &mut bytes).unwrap();
        decode(self.elem, &bytes)
    }

    pub(crate) fn int_values(&self) -> Vec<i64> {
        let mut bytes = vec![0; self.memory.len()];
        self.memory.read(0, &mut bytes).unwrap();
        decode_ints(self.elem, &bytes)
    }
}

/// Bytes of integers, or the bits of floats.
pub(crate) fn encode_ints(elem: Elem, values: &[i64]) -> Vec<u8> {
    if elem.bits() == 4 {
        let nibbles: Vec<u8> = values.iter().map(|v| *v as u8).collect();
        return num::pack_nibbles(&nibbles);
    }
    let size = elem.bits() as usize / 8;
    values.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect()
}

pub(crate) fn decode_ints(elem: Elem, bytes: &[u8]) -> Vec<i64> {
    if elem.bits() == 4 {
        let nibbles = num::unpack_nibbles(bytes, bytes.len() * 2);
        let signed = |n: u8| if elem == Elem::I4 { i64::from(num::nibble_to_i8(n)) } else { i64::from(n) };
        return nibbles.into_iter().map(signed).collect();
    }
    let size = elem.bits() as usize / 8;
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(chunk);
        titan_core::ir::fold::wrap(elem, i64::from_le_bytes(bytes))
    };
    bytes.chunks_exact(size).map(word).collect()
}

/// The bits of a number in an element type.
pub(crate) fn bits_of(elem: Elem, v: f64) -> i64 {
    match elem {
        Elem::F64 => v.to_bits() as i64,
        Elem::F32 => i64::from((v as f32).to_bits()),
        Elem::Tf32 => i64::from(num::tf32_from_f64(v).to_bits()),
        Elem::F16 => num::f16_from_f64(v).into(),
        Elem::Bf16 => num::bf16_from_f64(v).into(),
        Elem::E4m3 => num::e4m3_from_f64(v).into(),
        Elem::E5m2 => num::e5m2_from_f64(v).into(),
        _ => v as i64,
    }
}

/// The number that bits are in an element type.
pub(crate) fn of_bits(elem: Elem, bits: i64) -> f64 {
    match elem {
        Elem::F64 => f64::from_bits(bits as u64),
        Elem::F32 | Elem::Tf32 => f32::from_bits(bits as u32).into(),
        Elem::F16 => num::f16_to_f64(bits as u16),
        Elem::Bf16 => num::bf16_to_f64(bits as u16),
        Elem::E4m3 => num::e4m3_to_f64(bits as u8),
        Elem::E5m2 => num::e5m2_to_f64(bits as u8),
        Elem::U64 => bits as u64 as f64,
        _ => bits as f64,
    }
}

pub(crate) fn encode(elem: Elem, values: &[f64]) -> Vec<u8> {
    let bits: Vec<i64> = values.iter().map(|v| bits_of(elem, *v)).collect();
    encode_ints(elem, &bits)
}

pub(crate) fn decode(elem: Elem, bytes: &[u8]) -> Vec<f64> {
    let wide = |e| if e == Elem::F64 { Elem::I64 } else { e };
    decode_ints(wide(elem), bytes).into_iter().map(|b| of_bits(elem, b)).collect()
}

/// Rounds to the element type.
pub(crate) fn round_to(elem: Elem, v: f64) -> f64 {
    of_bits(elem, bits_of(elem, v))
}

/// Small random values that the element type holds exactly.
pub(crate) fn data(elem: Elem, n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng(seed | 1);
    let value = |rng: &mut Rng| match elem {
        Elem::Bool => rng.below(2) as f64,
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 => rng.below(100) as f64,
        Elem::U4 => rng.below(16) as f64,
        Elem::I4 => rng.below(16) as f64 - 8.0,
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 => rng.below(200) as f64 - 100.0,
        _ => round_to(elem, rng.unit() * 4.0),
    };
    (0..n).map(|_| value(&mut rng)).collect()
}

pub(crate) fn run(program: &Program, args: &[Arg], grid: [u32; 3]) {
    program.run(args, grid).unwrap_or_else(|e: RunError| panic!("{e}"));
}

/// Compares within a relative and absolute tolerance.
pub(crate) fn assert_close(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let close = (g - w).abs() <= tolerance * w.abs().max(1.0) || g == w || g.is_nan() && w.is_nan();
        assert!(close, "{what}: element {i} is {g}, not {w}");
    }
}
