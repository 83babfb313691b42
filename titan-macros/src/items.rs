//! Device functions, constants and generic arguments that a kernel can use.

use crate::ast::{Expr, ExprKind, Function, GenericArg, GenericArgValue, Path, Res, TypeKind, TypeRef};
use crate::consts::{self, ConstEnv, ConstValue, NotConst};
use crate::ctxt::Diag;
use proc_macro2::Span;
use titan_core::collections::SortedMap;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Elem, TileShape};

/// Items by the text of the path by which a function refers to them.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) devices: SortedMap<String, DeviceFn>,
    pub(crate) constants: SortedMap<String, Constant>,
}

/// A device function with the items that its body uses.
#[derive(Debug)]
pub(crate) struct DeviceFn {
    pub(crate) func: Function,
    pub(crate) items: Items,
}

/// A constant.
#[derive(Debug)]
pub(crate) struct Constant {
    /// The type of the value, or of each number of a table.
    pub(crate) elem: Elem,
    /// Whether it is an array of numbers.
    pub(crate) is_table: bool,
    pub(crate) expr: Expr,
    pub(crate) items: Items,
}

impl Constant {
    /// The value of a constant that is no table.
    pub(crate) fn value(&self) -> Result<ConstValue, NotConst> {
        if self.is_table { Err(NotConst::Runtime) } else { self.eval(&self.expr) }
    }

    /// The numbers of a table.
    pub(crate) fn entries(&self) -> Option<&[Expr]> {
        match &self.expr.kind {
            ExprKind::Array(list, _) if self.is_table => Some(list),
            _ => None,
        }
    }

    /// The number at a place of a table.
    pub(crate) fn entry(&self, place: i64) -> Option<Result<ConstValue, NotConst>> {
        let entry = usize::try_from(place).ok().and_then(|place| self.entries()?.get(place))?;
        Some(self.eval(entry))
    }

    /// The place of the first value that cannot be evaluated, and why; or that of all, and a value.
    pub(crate) fn checked(&self) -> (Span, Result<ConstValue, NotConst>) {
        let Some(entries) = self.entries() else { return (self.expr.span, self.value()) };
        let values = entries.iter().map(|e| (e.span, self.eval(e)));
        let (mut broken, mut all) = (None, (self.expr.span, Err(NotConst::Runtime)));
        for (span, value) in values {
            match value {
                Ok(_) => all = (span, value),
                Err(_) => broken = broken.or(Some((span, value))),
            }
        }
        broken.unwrap_or(all)
    }

    fn eval(&self, e: &Expr) -> Result<ConstValue, NotConst> {
        consts::eval(e, &ItemEnv { items: &self.items, elem: self.elem })
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

    fn entry(&self, table: &Res, place: i64) -> Option<Result<ConstValue, NotConst>> {
        match table {
            Res::Constant(key) => self.items.constants.get(key)?.entry(place),
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
    pub(crate) elems: SortedMap<String, Elem>,
    pub(crate) shapes: SortedMap<String, TileShape>,
    pub(crate) consts: SortedMap<String, ConstValue>,
}

/// A function with its generic arguments, in which the types and constants of its body are evaluated.
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

    fn entry(&self, table: &Res, place: i64) -> Option<Result<ConstValue, NotConst>> {
        match table {
            Res::Constant(key) => self.items.constants.get(key)?.entry(place),
            _ => None,
        }
    }
}

/// An error of a type or constant.
pub(crate) type Fault = Diag;

impl FnEnv<'_> {
    /// The element type that a name refers to.
    pub(crate) fn elem(&self, name: &str) -> Option<Elem> {
        self.generics.elems.get(name).copied().or_else(|| Elem::from_name(name))
    }

    /// The value of a generic argument that must be an integer.
    pub(crate) fn const_arg(&self, arg: &GenericArg) -> Result<i64, Fault> {
        self.const_arg_or(arg, "write a number or a constant parameter")
    }

    /// As [`FnEnv::const_arg`], with the help for a value that is known only at launch.
    fn const_arg_or(&self, arg: &GenericArg, help: &str) -> Result<i64, Fault> {
        let fault = |title: String| Diagnostic::new(Code::ConstEval, arg.span, title);
        let value = match &arg.value {
            GenericArgValue::Type(t) => match &t.kind {
                TypeKind::Elem(name, path) => {
                    let text = name.to_string();
                    match self.generics.consts.get(&text) {
                        Some(v) => Ok(*v),
                        None if self.elem(&text).is_some() => {
                            return Err(fault(format!("expected a number, found the type `{text}`")));
                        }
                        None => self.items.constants.get(&path.key()).map_or(Err(NotConst::Runtime), Constant::value),
                    }
                }
                _ => Err(NotConst::Runtime),
            },
            GenericArgValue::Const(e) => consts::eval(e, self),
        };
        match value {
            Ok(ConstValue::Int(v)) => Ok(v),
            Ok(_) => Err(fault("an extent or axis must be an integer".to_owned())),
            Err(NotConst::Runtime) => Err(fault(not_compiled_in(arg.tokens.to_string().trim())).help(help)),
            Err(NotConst::Error(e)) => Err(fault(format!("the constant expression has {e}"))),
        }
    }

    /// The shape that generic arguments name: extents, or one shape parameter, or one `D2<..>`.
    pub(crate) fn shape(&self, args: &[GenericArg], span: Span) -> Result<TileShape, Fault> {
        self.shape_or(args, span, &extent_help)
    }

    /// As [`FnEnv::shape`], with the help for an extent of this name that is known only at launch.
    pub(crate) fn shape_or(
        &self,
        args: &[GenericArg],
        span: Span,
        help: &dyn Fn(&str) -> String,
    ) -> Result<TileShape, Fault> {
        if let [GenericArg { value: GenericArgValue::Type(t), .. }] = args {
            match &t.kind {
                TypeKind::Dims(inner) => return self.shape_or(inner, span, help),
                TypeKind::Elem(name, _) => {
                    if let Some(shape) = self.generics.shapes.get(&name.to_string()) {
                        return Ok(*shape);
                    }
                }
                _ => {}
            }
        }
        let size = |span, title: String| {
            let help =
                "a tile has one to four extents of 1 or more; cover a larger region by a loop or by more programs";
            Diagnostic::new(Code::TileSize, span, title).help(help)
        };
        let mut dims = Vec::new();
        for arg in args {
            let v = self.const_arg_or(arg, &help(&arg_name(arg)))?;
            dims.push(i32::try_from(v).map_err(|_| size(arg.span, format!("the extent {v} is out of range")))?);
        }
        let shape = TileShape::new(&dims);
        let at = args.first().map_or(span, |a| a.span);
        let count =
            || size(args.get(4).map_or(at, |a| a.span), format!("a tile has one to four extents, not {}", dims.len()));
        let shape = shape.ok_or_else(count)?;
        shape.problem().map_or(Ok(shape), |p| Err(size(at, p)))
    }
}

/// The message about a value that is known only at launch, where a constant is needed.
pub(crate) fn not_compiled_in(value: &str) -> String {
    format!("`{value}` is not known when the kernel is compiled")
}

/// The help for an extent that is known only at launch.
pub(crate) fn extent_help(name: &str) -> String {
    format!(
        "the extents of a tile are constants, such as a parameter `const BN: i32` with `instances(BN in [64, 1024])`; cover a longer \
        axis by `for i in 0..cdiv({name}, BN)` or by more programs: loads outside of the tensor read zeros"
    )
}

/// The help for an extent of a changed shape that is known only at launch. Often it is the variable of a loop that halves a tile.
pub(crate) fn steps_help(_: &str) -> String {
    "a tile has one shape in all iterations of a loop: write the steps one after the other, each with its extents as numbers or constant \
     parameters, as in `let (a, b) = x.split::<32>(); let (c, d) = (a + b).split::<16>();`; `reduce_..` and `scan_..` combine all elements \
     along an axis at once"
        .to_owned()
}

/// The help for a shape name that may be meant as a constant.
pub(crate) fn constant_help(name: &str) -> String {
    format!(
        "`#[shape({name})]` makes `{name}` the name of an extent; a constant, marked `#[titan::constant]`, is written there in braces: \
        `#[shape({{ {name} }})]`"
    )
}

/// The name in an extent, for messages; `n` if the extent is another expression.
fn arg_name(arg: &GenericArg) -> String {
    match &arg.value {
        GenericArgValue::Type(TypeRef { kind: TypeKind::Elem(name, _), .. }) => name.to_string(),
        _ => "n".to_owned(),
    }
}
