//! The result types of an operation as a function of its kind and its operand types. This is the only definition of valid operands.
//!
//! The builder computes types with it, and the verifier compares with it. Operations with regions (`for`, `loop`, `if`) get their result
//! types from their regions, and are checked by the verifier.

use super::op::{BinOp, OpKind, UnOp};
use super::{BarrierTy, Elem, MMA_LEGAL, TileShape, Ty, mma_is_legal};
use super::{infer_barrier, infer_local, infer_memory as memory, infer_parts, infer_ttg};
use crate::diag::{Code, counted};

/// The reason why the operands of an operation are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// The violated rule.
    pub code: Code,
    /// The message, in the terms of the language.
    pub message: String,
    /// A suggested fix, if there is one.
    pub help: Option<String>,
}

impl TypeError {
    pub(super) fn new(code: Code, message: String) -> Self {
        TypeError { code, message, help: None }
    }

    pub(super) fn help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

type Types = Result<Vec<Ty>, TypeError>;

/// The result types of an operation without regions, or of a reduction or scan by a function.
///
/// # Errors
/// Returns an error if the operands are invalid: their number, shapes or element types, or an axis.
pub fn infer(kind: &OpKind, args: &[Ty]) -> Types {
    match kind {
        OpKind::Const(c) => args0(args, Ty::Scalar(c.elem())),
        OpKind::ProgramId(axis) | OpKind::NumPrograms(axis) => {
            if *axis < 3 {
                args0(args, Ty::I32)
            } else {
                Err(no_grid_axis(*axis))
            }
        }
        OpKind::Iota(n) => tile(Elem::I32, TileShape::new(&[*n])).and_then(|t| args0(args, t)),
        OpKind::Splat(shape) => match args {
            [Ty::Scalar(e)] => Ok(vec![tile(*e, Some(*shape))?]),
            _ => Err(operands("one scalar", args)),
        },
        OpKind::Unary(op) => unary(*op, args),
        OpKind::Binary(op) => binary(*op, args),
        OpKind::Cmp(_) => same_pair(args).map(|t| vec![t.with_elem(Elem::Bool)]).and_then(|r| compared(args, r)),
        OpKind::Select => select(args),
        OpKind::MulAdd => match args {
            [a, b, c] if a == b && b == c && a.elem().is_arith_float() && is_value(*a) => Ok(vec![*a]),
            _ => Err(mismatch(args)),
        },
        OpKind::Cast(to) => one_value(args).map(|t| vec![t.with_elem(*to)]),
        OpKind::Bitcast(to) => bitcast(*to, args),
        OpKind::Reshape(_) | OpKind::Broadcast { .. } | OpKind::Permute(_) | OpKind::Interleave | OpKind::Split => {
            shape_op(kind, args)
        }
        OpKind::Cut { axis, from, n } => infer_parts::cut(*axis, (*from, *n), args),
        OpKind::Concat(axis) => infer_parts::concat(*axis, args),
        OpKind::Reduce(_, axis) => reduction(*axis, args, false).map(|(t, _)| vec![t]),
        OpKind::ArgReduce(_, axis) => reduction(*axis, args, false).map(|(t, at)| vec![t, at]),
        OpKind::ReduceWith(axis) => reduction(*axis, args, true).map(|(t, _)| vec![t]),
        OpKind::Scan(_, axis) => reduction(*axis, args, false).map(|_| vec![args[0]]),
        OpKind::ScanWith(axis) => reduction(*axis, args, true).map(|_| vec![args[0]]),
        OpKind::Mma => mma(args),
        OpKind::Dim(axis) => memory::dim(*axis, args),
        OpKind::Present => memory::tensor_only(Ty::BOOL, args),
        OpKind::Shared => memory::tensor_only(args.first().copied().unwrap_or(Ty::BOOL), args),
        OpKind::Index(axis) => memory::index(*axis, args),
        OpKind::Slice(axis) => memory::slice(*axis, args),
        OpKind::Segment => memory::segment(args),
        OpKind::Load(_, shape) => memory::load(*shape, args),
        OpKind::Store(_) => memory::store(args),
        OpKind::AtomicTile(_) => memory::atomic_tile(args),
        OpKind::Get => memory::get(args),
        OpKind::Set => memory::set(args),
        OpKind::GatherRows { rows, width } => memory::gather_rows(*rows, *width, args),
        OpKind::ScatterRows => memory::scatter_rows(args),
        OpKind::Gather => memory::gather(args),
        OpKind::Scatter => memory::scatter(args, memory::whole_bytes),
        OpKind::Atomic(_) => memory::scatter(args, memory::atomic_elem),
        OpKind::Fetch(op) => memory::fetch(*op, args),
        OpKind::CompareExchange => memory::compare_exchange(args),
        OpKind::RaggedCount { .. } => memory::ragged_count(args),
        OpKind::RaggedTile { .. } => memory::ragged_tile(args),
        OpKind::Unflatten => unflatten(args),
        OpKind::UnflattenGrouped(rows) => unflatten_grouped(*rows, args),
        OpKind::Ttg(op) => infer_ttg::ttg(op, args),
        OpKind::Local(op) => infer_local::local(*op, args),
        OpKind::Region(op) => infer_barrier::region(op, args),
        OpKind::Nv(op) => infer_barrier::nv(op, args),
        OpKind::Amd(op) => infer_barrier::amd(op, args),
        OpKind::Print(_) => {
            // In a barrier program, a print also has a scratch region for its threads.
            let values = if let [values @ .., Ty::Barrier(BarrierTy::Region)] = args { values } else { args };
            values.iter().try_for_each(|t| one_value(&[*t]).map(drop)).map(|()| vec![])
        }
        OpKind::Assert(_) => match args {
            [Ty::Scalar(Elem::Bool) | Ty::Tile(Elem::Bool, _)] => Ok(vec![]),
            _ => Err(operands("one condition", args)),
        },
        OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return => Ok(vec![]),
    }
}

/// A tile type; an error if the extents are invalid.
pub(super) fn tile(elem: Elem, shape: Option<TileShape>) -> Result<Ty, TypeError> {
    let Some(shape) = shape else {
        return Err(TypeError::new(Code::BadAxis, "tiles have one to four axes".to_owned()));
    };
    match shape.problem() {
        Some(p) => Err(TypeError::new(Code::TileSize, p)),
        None => Ok(Ty::Tile(elem, shape)),
    }
}

pub(super) fn operands(wanted: &str, args: &[Ty]) -> TypeError {
    TypeError::new(Code::Operands, format!("this operation takes {wanted}, not {}", list(args)))
}

pub(super) fn mismatch(args: &[Ty]) -> TypeError {
    let elems_differ = args.windows(2).any(|w| w[0].elem() != w[1].elem());
    let code = if elems_differ { Code::ElementMismatch } else { Code::ShapeMismatch };
    TypeError::new(code, format!("{} do not fit together", list(args)))
        .help("`.cast::<..>()` for one element type; `.row()`, `.col()` or `.broadcast::<AXIS, N>()` for one shape")
}

pub(super) fn not_for(what: &str, elem: Elem) -> TypeError {
    TypeError::new(Code::ElementUnsupported, format!("{what} is not defined for `{elem}`"))
}

pub(super) fn all_i32(args: &[Ty]) -> Result<(), TypeError> {
    match args.iter().find(|t| **t != Ty::I32) {
        Some(t) => Err(TypeError::new(Code::IndexType, format!("an index is an `i32`, not {}", describe(*t)))),
        None => Ok(()),
    }
}

pub(super) fn bad_axis(axis: u8, rank: usize) -> TypeError {
    TypeError::new(Code::BadAxis, format!("there is no axis {axis}: the rank is {rank}"))
}

fn no_grid_axis(axis: u8) -> TypeError {
    TypeError::new(Code::GridAxis, format!("a grid has axes 0, 1 and 2, not {axis}"))
}

fn list(args: &[Ty]) -> String {
    match args {
        [] => "nothing".to_owned(),
        [one] => describe(*one),
        [init @ .., last] => {
            let init: Vec<String> = init.iter().map(|t| describe(*t)).collect();
            format!("{} and {}", init.join(", "), describe(*last))
        }
    }
}

fn extents(shape: TileShape) -> String {
    let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
    dims.join(", ")
}

/// A type in the notation of the surface language.
#[must_use]
pub fn describe(ty: Ty) -> String {
    match ty {
        Ty::Scalar(e) => format!("`{e}`"),
        Ty::Tile(e, s) => format!("`Tile<{e}, {}>`", extents(s)),
        Ty::Tensor(e, r) => format!("`Tensor<{e}, {r}>`"),
        Ty::Source(e, s) => format!("a source of {s} `{e}` (a tile that is not loaded)"),
        Ty::Smem(e, s) => format!("`Smem<{e}, {}>`", extents(s)),
        Ty::Compute(e, s) => format!("an MMA in flight (result {s} `{e}`)"),
        Ty::Acc(e, s, keep) => format!("`Acc<{e}, D{}<{}>, {keep}>`", s.rank(), extents(s)),
        Ty::Token(token, pipe) => format!("the `{token}` of {pipe}"),
        Ty::Barrier(BarrierTy::Region) => "a region".to_owned(),
        Ty::Barrier(BarrierTy::Mbarrier) => "a barrier".to_owned(),
        Ty::Barrier(BarrierTy::State) => "the state of a barrier".to_owned(),
        Ty::Barrier(BarrierTy::TensorMemory) => "columns of tensor memory".to_owned(),
        Ty::Barrier(BarrierTy::Vtok(class, _)) => format!("the token of a group of `{class}`"),
    }
}

fn args0(args: &[Ty], ty: Ty) -> Types {
    if args.is_empty() { Ok(vec![ty]) } else { Err(operands("no operand", args)) }
}

const fn is_value(ty: Ty) -> bool {
    matches!(ty, Ty::Scalar(_) | Ty::Tile(..))
}

fn one_value(args: &[Ty]) -> Result<Ty, TypeError> {
    match args {
        [t] if is_value(*t) => Ok(*t),
        _ => Err(operands("one scalar or tile", args)),
    }
}

fn same_pair(args: &[Ty]) -> Result<Ty, TypeError> {
    match args {
        [a, b] if a == b && is_value(*a) => Ok(*a),
        [a, b] if is_value(*a) && is_value(*b) => Err(mismatch(args)),
        _ => Err(operands("two scalars or tiles", args)),
    }
}

fn compared(args: &[Ty], result: Vec<Ty>) -> Types {
    match args {
        [a, _] if a.elem().is_arith() || a.elem() == Elem::Bool => Ok(result),
        [a, ..] => Err(not_for("a comparison", a.elem())),
        [] => Err(operands("two scalars or tiles", args)),
    }
}

fn unary(op: UnOp, args: &[Ty]) -> Types {
    let t = one_value(args)?;
    let e = t.elem();
    let ok = match op {
        UnOp::Neg | UnOp::Abs => e.is_arith(),
        UnOp::Not => e.is_arith_int() || e == Elem::Bool,
        UnOp::Exp
        | UnOp::Exp2
        | UnOp::Ln
        | UnOp::Log2
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Recip
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh
        | UnOp::Sigmoid
        | UnOp::Erf
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven
        | UnOp::IsNan => e.is_arith_float(),
        UnOp::CountOnes | UnOp::LeadingZeros => e.is_arith_int(),
    };
    if !ok {
        let error = not_for(&format!("`{op}`"), e);
        return Err(if matches!(op, UnOp::CountOnes | UnOp::LeadingZeros) { of_integers(error) } else { error });
    }
    Ok(vec![op.of_another_element().map_or(t, |elem| t.with_elem(elem))])
}

fn binary(op: BinOp, args: &[Ty]) -> Types {
    let t = same_pair(args)?;
    let e = t.elem();
    let ok = match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem | BinOp::Min | BinOp::Max => e.is_arith(),
        BinOp::MulHi | BinOp::Shl | BinOp::Shr => e.is_arith_int(),
        BinOp::Powf => e.is_arith_float(),
        BinOp::And | BinOp::Or | BinOp::Xor => e.is_arith_int() || e == Elem::Bool,
    };
    let error = || not_for(&format!("`{op}`"), e);
    if ok { Ok(vec![t]) } else { Err(if op == BinOp::MulHi { of_integers(error()) } else { error() }) }
}

/// The help of an operation on the bits of integers.
fn of_integers(error: TypeError) -> TypeError {
    error.help("it takes integers; `.bitcast::<u32>()` reads the bits of an `f32` as an integer")
}

fn select(args: &[Ty]) -> Types {
    match args {
        [mask, a, b] if is_value(*mask) && is_value(*a) && is_value(*b) => {
            if mask.elem() != Elem::Bool {
                return Err(operands("a mask first", args));
            }
            if a != b {
                return Err(mismatch(&[*a, *b]));
            }
            if *mask == Ty::BOOL || mask.tile_shape() == a.tile_shape() {
                Ok(vec![*a])
            } else {
                Err(mismatch(&[*mask, *a]))
            }
        }
        _ => Err(operands("a mask and two values", args)),
    }
}

fn bitcast(to: Elem, args: &[Ty]) -> Types {
    let t = one_value(args)?;
    if t.elem().bits() != to.bits() || t.elem() == Elem::Bool || to == Elem::Bool {
        let (from, to_bits) = (t.elem(), to.bits());
        let message = format!("`{from}` has {} bits and `{to}` has {to_bits}: a bitcast keeps the width", from.bits());
        return Err(TypeError::new(Code::BitcastWidth, message).help("`.cast::<..>()` converts the value"));
    }
    Ok(vec![t.with_elem(to)])
}

fn shape_op(kind: &OpKind, args: &[Ty]) -> Types {
    let (e, s) = match (kind, args.first()) {
        (_, Some(Ty::Tile(e, s))) | (OpKind::Permute(_), Some(Ty::Smem(e, s))) => (*e, *s),
        (_, _) => return Err(operands("a tile", args)),
    };
    match (kind, args) {
        (OpKind::Reshape(to), [_]) => {
            let ty = tile(e, Some(*to))?;
            if to.len() == s.len() {
                return Ok(vec![ty]);
            }
            let elements = counted(s.len(), "element");
            let message = format!("{} has {elements}, the new shape `{to}` has {}", describe(args[0]), to.len());
            Err(TypeError::new(Code::ElementCount, message).help("a reshape keeps the number of elements"))
        }
        (OpKind::Broadcast { axis, n }, [_]) => match s.with(usize::from(*axis), *n) {
            Some(to) => Ok(vec![tile(e, Some(to))?]),
            None => Err(bad_axis(*axis, s.rank() + 1)),
        },
        (OpKind::Permute(perm), [_]) => {
            let mut seen = [false; 4];
            let dims: Vec<i32> = perm[..s.rank()].iter().filter_map(|p| s.get(usize::from(*p)).copied()).collect();
            perm[..s.rank()].iter().for_each(|p| seen[usize::from(*p) & 3] = true);
            if dims.len() != s.rank() || seen.iter().filter(|x| **x).count() != s.rank() {
                return Err(TypeError::new(
                    Code::BadAxis,
                    format!("{:?} is not an order of {} axes", &perm[..s.rank()], s.rank()),
                ));
            }
            let tile = tile(e, TileShape::new(&dims))?;
            let shape = tile.tile_shape().filter(|_| matches!(args[0], Ty::Smem(..)));
            Ok(vec![shape.map_or(tile, |s| Ty::Smem(e, s))])
        }
        (OpKind::Interleave, [a, b]) if a == b => {
            let mut dims = s.to_vec();
            dims[s.rank() - 1] = dims[s.rank() - 1].saturating_mul(2);
            Ok(vec![tile(e, TileShape::new(&dims))?])
        }
        (OpKind::Interleave, [_, _]) => Err(mismatch(args)),
        (OpKind::Split, [_]) => {
            let mut dims = s.to_vec();
            let last = dims[s.rank() - 1];
            if last % 2 != 0 {
                let message = format!("the last extent of {} is odd", describe(args[0]));
                return Err(TypeError::new(Code::ElementCount, message).help("`split` halves the last axis"));
            }
            dims[s.rank() - 1] = last / 2;
            let half = tile(e, TileShape::new(&dims))?;
            Ok(vec![half, half])
        }
        _ => Err(operands("tiles", args)),
    }
}

fn unflatten(args: &[Ty]) -> Types {
    if !(2..=5).contains(&args.len()) {
        return Err(operands("an index and one to four extents", args));
    }
    all_i32(args)?;
    Ok(vec![Ty::I32; args.len() - 1])
}

fn unflatten_grouped(rows: i32, args: &[Ty]) -> Types {
    if rows < 1 {
        let message = format!("a group of {rows} rows: groups have at least one");
        return Err(TypeError::new(Code::TileSize, message));
    }
    if args.len() < 3 {
        return Err(operands("an index and two to four extents", args));
    }
    unflatten(args)
}

/// The types of a reduction along an axis: of the values, and of the indices. A reduction by a closure also has a neutral element.
fn reduction(axis: u8, args: &[Ty], by_closure: bool) -> Result<(Ty, Ty), TypeError> {
    let Some(Ty::Tile(e, s)) = args.first().copied() else { return Err(operands("a tile", args)) };
    if usize::from(axis) >= s.rank() {
        return Err(bad_axis(axis, s.rank()));
    }
    let fits = if by_closure { args.len() == 2 && args[1] == Ty::Scalar(e) } else { args.len() == 1 };
    if !fits {
        return Err(operands("a tile, and the neutral element of its type for a closure", args));
    }
    if !(e.is_arith() || (by_closure && e == Elem::Bool)) {
        return Err(not_for("a reduction", e));
    }
    let rest = |e| s.without(usize::from(axis)).map_or(Ty::Scalar(e), |r| Ty::Tile(e, r));
    Ok((rest(e), rest(Elem::I32)))
}

fn mma(args: &[Ty]) -> Types {
    let [a_arg, b_arg, Ty::Tile(ec, c)] = args else { return Err(operands("three tiles", args)) };
    let (Some((ea, a)), Some((eb, b))) = (infer_ttg::operand(*a_arg), infer_ttg::operand(*b_arg)) else {
        return Err(operands("three tiles", args));
    };
    if !mma_is_legal(ea, eb, *ec) {
        let message = format!("`mma` has no instruction for elements ({ea}, {eb}, {ec})");
        return Err(TypeError::new(Code::MmaElements, message).help(&format!("legal: {MMA_LEGAL}")));
    }
    let fits = match (&a[..], &b[..], &c[..]) {
        ([m, k], [k2, n], [m2, n2]) => k == k2 && m == m2 && n == n2,
        ([l, m, k], [l2, k2, n], [l3, m2, n2]) => l == l2 && l == l3 && k == k2 && m == m2 && n == n2,
        _ => false,
    };
    if fits {
        return Ok(vec![args[2]]);
    }
    let message = format!(
        "`mma` of {} · {} + {}: the extents do not fit",
        describe(args[0]),
        describe(args[1]),
        describe(args[2])
    );
    Err(TypeError::new(Code::ShapeMismatch, message)
        .help("`mma(a, b, acc)` takes [M, K] · [K, N] + [M, N]; `.t()` transposes"))
}
