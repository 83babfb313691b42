//! What a kernel may use besides its own tokens: device functions and constants, and the generic arguments of an instance.

use crate::ast::{Expr, Function, GenericArg, GenericArgValue, Path, Res, TypeKind};
use crate::consts::{self, ConstEnv, ConstValue, NotConst};
use proc_macro2::Span;
use std::collections::BTreeMap;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

/// Items by the text of the path with which a function names them.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) devices: BTreeMap<String, DeviceFn>,
    pub(crate) constants: BTreeMap<String, Constant>,
}

/// A device function with the items that its own body names.
#[derive(Debug)]
pub(crate) struct DeviceFn {
    pub(crate) func: Function,
    pub(crate) items: Items,
}

/// A constant.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) elem: Elem,
    pub(crate) expr: Expr,
    pub(crate) items: Items,
}

impl Constant {
    pub(crate) fn value(&self) -> Result<ConstValue, NotConst> {
        consts::eval(&self.expr, &ItemEnv { items: &self.items, elem: self.elem })
    }
}

struct ItemEnv<'a> {
    items: &'a Items,
    elem: Elem,
}

impl ConstEnv for ItemEnv<'_> {
    fn value(&self, _: &Path, res: &Res) -> Option<ConstValue> {
        match res {
            Res::Constant(key) => self.items.constants.get(key)?.value().ok(),
            _ => None,
        }
    }

    fn round(&self, v: f64) -> f64 {
        if self.elem == Elem::F32 { consts::round_to_f32(v) } else { v }
    }
}

/// The generic arguments of a function.
#[derive(Debug, Default, Clone)]
pub(crate) struct Generics {
    pub(crate) elems: BTreeMap<String, Elem>,
    pub(crate) shapes: BTreeMap<String, TileShape>,
    pub(crate) consts: BTreeMap<String, ConstValue>,
}

/// A function with its generic arguments: what types and constants of its body mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FnEnv<'a> {
    pub(crate) func: &'a Function,
    pub(crate) generics: &'a Generics,
    pub(crate) items: &'a Items,
}

impl ConstEnv for FnEnv<'_> {
    fn value(&self, path: &Path, res: &Res) -> Option<ConstValue> {
        match res {
            Res::ConstParam(i) => self.generics.consts.get(&self.func.generics[*i].name.to_string()).copied(),
            Res::Constant(key) => self.items.constants.get(key)?.value().ok(),
            Res::Assoc(i) => {
                let elem = self.generics.elems.get(&self.func.generics[*i].name.to_string())?;
                match consts::assoc(*elem, &path.last()?.to_string())? {
                    titan_core::ir::Const::Int(_, v) => Some(ConstValue::Int(v)),
                    titan_core::ir::Const::Float(_, v) => Some(ConstValue::Float(v)),
                }
            }
            _ => None,
        }
    }
}

/// An error of a type or constant, at a token.
pub(crate) type Fault = (Code, Span, String);

impl FnEnv<'_> {
    /// The element type that a name means here.
    pub(crate) fn elem(&self, name: &str) -> Option<Elem> {
        self.generics.elems.get(name).copied().or_else(|| Elem::from_name(name))
    }

    /// The integer that a generic argument is.
    pub(crate) fn const_arg(&self, arg: &GenericArg) -> Result<i64, Fault> {
        let value = match &arg.value {
            GenericArgValue::Type(t) => match &t.kind {
                TypeKind::Elem(name, path) => {
                    let text = name.to_string();
                    let key = path.to_string().replace(' ', "");
                    match self.generics.consts.get(&text) {
                        Some(v) => Ok(*v),
                        None => self.items.constants.get(&key).map_or(Err(NotConst::Runtime), Constant::value),
                    }
                }
                _ => Err(NotConst::Runtime),
            },
            GenericArgValue::Const(e) => consts::eval(e, self),
        };
        match value {
            Ok(ConstValue::Int(v)) => Ok(v),
            Ok(_) => Err((Code::ConstEval, arg.span, "an extent or axis is an integer".to_owned())),
            Err(NotConst::Runtime) => {
                Err((Code::ConstEval, arg.span, format!("`{}` is not a constant", arg.tokens.to_string().trim())))
            }
            Err(NotConst::Error(e)) => Err((Code::ConstEval, arg.span, format!("the constant expression has {e}"))),
        }
    }

    /// The shape that generic arguments are: extents, or one shape parameter, or one `D2<..>`.
    pub(crate) fn shape(&self, args: &[GenericArg], span: Span) -> Result<TileShape, Fault> {
        if let [GenericArg { value: GenericArgValue::Type(t), .. }] = args {
            match &t.kind {
                TypeKind::Dims(inner) => return self.shape(inner, span),
                TypeKind::Elem(name, _) => {
                    if let Some(shape) = self.generics.shapes.get(&name.to_string()) {
                        return Ok(*shape);
                    }
                }
                _ => {}
            }
        }
        let mut dims = Vec::new();
        for arg in args {
            let v = self.const_arg(arg)?;
            dims.push(
                i32::try_from(v).map_err(|_| (Code::TileSize, arg.span, format!("the extent {v} is out of range")))?,
            );
        }
        let shape = TileShape::new(&dims);
        let at = args.first().map_or(span, |a| a.span);
        let shape = shape.ok_or((
            Code::TileSize,
            args.get(4).map_or(at, |a| a.span),
            format!("a tile has one to four extents, not {}", dims.len()),
        ))?;
        match shape.problem() {
            Some(p) => Err((Code::TileSize, at, p)),
            None => Ok(shape),
        }
    }
}
