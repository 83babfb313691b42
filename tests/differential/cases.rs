//! Kernels of one operation: tiles of random extents from ragged tensors, through it, to ragged tensors.

use crate::machine::Rng;
use crate::numbers::{Num, decode, encode, greatest, is_float, range, round};
use crate::random::PROGRAMS;
use crate::reference::Want;
use crate::tensor::Tensor;
use titan_core::ir::{
    Access, Builder, Const, DimSpec, Elem, GridSpec, HostExpr, Kernel, OpKind, TileShape, Ty, TypeError, Unit, Value,
};

/// Elements, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) shape: Vec<i32>,
    pub(crate) data: Vec<Num>,
}

/// Which numbers are in a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// All there are, the rare ones often.
    Any,
    /// Numbers near 1 and 0, none of them special.
    Tame,
    /// Mostly zeros of either sign, and few other numbers.
    Zeros,
}

/// What makes the results out of the tiles.
pub(crate) type Build = dyn Fn(&mut Builder, &[Value]) -> Result<Vec<Value>, TypeError>;

/// What the results should be, row-major, one list for each.
pub(crate) type Expect = dyn Fn(&[Tile]) -> Vec<Vec<Want>>;

/// Element and extents of each of some tiles.
pub(crate) type Shapes = Vec<(Elem, Vec<i32>)>;

/// A kernel of one operation.
pub(crate) struct Case {
    /// The operation and its types.
    pub(crate) name: String,
    /// The tiles that are loaded.
    pub(crate) inputs: Shapes,
    pub(crate) values: Values,
    pub(crate) build: Box<Build>,
    pub(crate) expect: Box<Expect>,
}

/// What is loaded from outside of a tensor.
const PAD: i64 = 1;

impl Case {
    /// The kernel, and the tiles that it stores.
    pub(crate) fn kernel(&self) -> Result<(Kernel, Shapes), TypeError> {
        let mut b = Builder::new("one", vec![]);
        let any = |shape: &[i32]| vec![DimSpec::Any; shape.len()];
        let tensors: Vec<Value> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(i, (elem, shape))| b.tensor(&format!("a{i}"), *elem, Access::In, false, any(shape)))
            .collect();
        // What comes out is known when the operation has been built once.
        let outs = self.results()?;
        let stored: Vec<Value> = outs
            .iter()
            .enumerate()
            .map(|(i, (elem, shape))| b.tensor(&format!("out{i}"), *elem, Access::Mut, false, any(shape)))
            .collect();
        b.set_grid(GridSpec::Extents(vec![HostExpr::Const(PROGRAMS.into())]));
        let p = b.op1(OpKind::ProgramId(0), &[])?;
        let zero = b.i32(0);
        let at = |tensor: Value, rank: usize| [vec![tensor, p], vec![zero; rank - 1]].concat();
        let mut tiles = Vec::new();
        for (tensor, (elem, shape)) in tensors.iter().zip(&self.inputs) {
            let args = [at(*tensor, shape.len()), vec![pad(&mut b, *elem)]].concat();
            tiles.push(b.op1(OpKind::Load(Unit::Tile, TileShape::new(shape).expect("a shape")), &args)?);
        }
        let results = (self.build)(&mut b, &tiles)?;
        for ((tensor, (_, shape)), result) in stored.iter().zip(&outs).zip(results) {
            b.op(OpKind::Store(Unit::Tile), &[at(*tensor, shape.len()), vec![result]].concat())?;
        }
        b.terminate(OpKind::Return, &[]);
        Ok((b.finish(), outs))
    }

    fn results(&self) -> Result<Shapes, TypeError> {
        let mut b = Builder::new("one", vec![]);
        let mut tiles = Vec::new();
        for (elem, shape) in &self.inputs {
            let one = pad(&mut b, *elem);
            tiles.push(b.op1(OpKind::Splat(TileShape::new(shape).expect("a shape")), &[one])?);
        }
        let results = (self.build)(&mut b, &tiles)?;
        let of = |ty: Ty| (ty.elem(), ty.tile_shape().expect("a tile").to_vec());
        Ok(results.iter().map(|r| of(b.ty(*r))).collect())
    }
}

/// The constant that is loaded from outside of a tensor.
fn pad(b: &mut Builder, elem: Elem) -> Value {
    b.constant(if is_float(elem) { Const::Float(elem, PAD as f64) } else { Const::Int(elem, PAD) })
}

/// A random number of a type.
pub(crate) fn number(rng: &mut Rng, elem: Elem, values: Values) -> Num {
    if elem == Elem::Bool {
        return Num::Int((rng.word() & 1).into());
    }
    if !is_float(elem) {
        let (low, high) = range(elem);
        let small = i128::from(rng.below(9)) - 4;
        return Num::Int(match (rng.below(4), values) {
            (0, Values::Any) => rng.of(&[low, high, low + 1, 0, 1]),
            (1 | 2, Values::Any) => {
                decode(elem, if elem.bits() == 64 { rng.word() } else { rng.word() & ((1 << elem.bits()) - 1) }).int()
            }
            _ => small.clamp(low, high),
        });
    }
    if values == Values::Zeros {
        let zero = if rng.below(8) == 0 { 0.0 } else { -0.0 };
        let other = rng.of(&[1.0, -1.0, 2f64.powi(-149), -2f64.powi(-149), -0.5]);
        return Num::Float(round(elem, if rng.below(16) == 0 { other } else { zero }));
    }
    let fraction = (rng.word() >> 11) as f64 / 2f64.powi(53) * 2.0 - 1.0;
    let kind = if values == Values::Tame { 9 } else { rng.below(10) };
    let x = match kind {
        0 => {
            rng.of(&[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, greatest(elem), 2f64.powi(-149)])
        }
        1 | 2 => return decode_finite(rng, elem),
        3 => f64::from(rng.below(40)) / 2.0 - 10.0,
        4..=6 => fraction * 2f64.powi(rng.below(16) as i32 - 8),
        _ => fraction * 2.0,
    };
    // `tf32` in memory has more bits than it uses: here it has none.
    Num::Float(round(elem, x))
}

fn decode_finite(rng: &mut Rng, elem: Elem) -> Num {
    let mask = if elem.bits() == 64 { u64::MAX } else { (1 << elem.bits()) - 1 };
    let mask = if elem == Elem::Tf32 { 0xffff_e000 } else { mask };
    decode(elem, rng.word() & mask)
}

/// A tensor of random numbers.
pub(crate) fn tensor(rng: &mut Rng, elem: Elem, rank: usize, aligned: bool, values: Values) -> Tensor {
    let mut tensor = Tensor::new(rng, elem, rank, aligned);
    for at in places(&tensor.extents) {
        let bits = encode(elem, number(rng, elem, values));
        put(&mut tensor, &at, bits);
    }
    tensor
}

/// Every index of a box.
pub(crate) fn places(extents: &[u32]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![vec![]], |all, n| {
        all.iter().flat_map(|at: &Vec<i64>| (0..i64::from(*n)).map(move |i| [&at[..], &[i]].concat())).collect()
    })
}

fn put(tensor: &mut Tensor, at: &[i64], bits: u64) {
    let (place, size) = (tensor.place(at).expect("inside"), (tensor.elem.bits() / 8) as usize);
    tensor.bytes[place..place + size].copy_from_slice(&bits.to_le_bytes()[..size]);
}

/// An element, if it exists.
pub(crate) fn get(tensor: &Tensor, at: &[i64]) -> Option<Num> {
    let (place, size) = (tensor.place(at)?, (tensor.elem.bits() / 8) as usize);
    let bits = tensor.bytes[place..place + size].iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    Some(decode(tensor.elem, bits))
}

/// What a program loads.
pub(crate) fn load(tensor: &Tensor, shape: &[i32], program: u32) -> Tile {
    let extents: Vec<u32> = shape.iter().map(|n| n.unsigned_abs()).collect();
    let pad = if is_float(tensor.elem) { Num::Float(PAD as f64) } else { Num::Int(PAD.into()) };
    let there = |mut at: Vec<i64>| {
        at[0] += i64::from(program) * i64::from(shape[0]);
        get(tensor, &at).unwrap_or(pad)
    };
    Tile { shape: shape.to_vec(), data: places(&extents).into_iter().map(there).collect() }
}
