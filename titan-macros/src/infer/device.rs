//! Calls of device functions: the generic parameters that arguments determine, and the type of the result.

use super::advice::load_help;
use super::pipe::PipeTy;
use super::{E, ElemSlot, ITy, Infer, S};
use crate::ast::{Expr, GenericArg, GenericKind, Path, TypeKind, TypeRef};
use crate::consts::ConstValue;
use crate::items::{DeviceFn, Generics};
use crate::names::text_of;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::Elem;

impl Infer<'_> {
    pub(super) fn device(&mut self, key: &str, path: &Path, args: &[Expr], span: Span) -> ITy {
        let tys: Vec<ITy> = args.iter().map(|a| self.expr(a)).collect();
        let Some(device) = self.env.items.devices.get(key) else {
            self.cx.error(Code::UnknownName, span, format!("`{}` is not in scope", text_of(key)));
            return ITy::Unknown;
        };
        let (dev, func) = (device, &device.func);
        if args.len() != func.params.len() {
            let names: Vec<String> = func.params.iter().map(|p| format!("`{}`", p.name)).collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            let title = format!("`{}` takes {} argument{plural}, not {}", text_of(key), names.len(), args.len());
            let help = if names.is_empty() {
                "remove the arguments".to_owned()
            } else {
                format!("its parameters are {}", names.join(", "))
            };
            self.cx.error_help(Code::Arguments, span, title, help);
            return ITy::Unknown;
        }
        let mut bound = Bound::default();
        if let Some((_, generics)) = &path.generics {
            self.turbofish(dev, generics, &mut bound);
        }
        for ((param, ty), arg) in func.params.iter().zip(&tys).zip(args) {
            self.match_param(dev, &param.ty, ty, &mut bound, arg.span);
        }
        match &func.ret {
            None => ITy::Unit,
            Some(ret) => self.instantiate(dev, ret, &mut bound, span),
        }
    }

    fn turbofish(&mut self, dev: &DeviceFn, args: &[GenericArg], bound: &mut Bound) {
        for (param, arg) in dev.func.generics.iter().zip(args) {
            let name = param.name.to_string();
            match (param.kind, &arg.value) {
                (GenericKind::Elem, crate::ast::GenericArgValue::Type(t)) => {
                    let e = self.elem_ref(t);
                    bound.elems.push((name, e));
                }
                (GenericKind::Shape, _) => {
                    let shape = self.env.shape(std::slice::from_ref(arg), arg.span);
                    if let Some(s) = self.fault(shape) {
                        bound.shapes.push((name, self.known_shape(s)));
                    }
                }
                (GenericKind::ConstInt(_), _) => {
                    let value = self.env.const_arg(arg);
                    if let Some(v) = self.fault(value) {
                        bound.consts.push((name, v));
                    }
                }
                (GenericKind::ConstBool, value) => match self.flag(value) {
                    Some(flag) => bound.flags.push((name, flag)),
                    None => {
                        let title = format!("`{name}` of `{}` is `true` or `false`", dev.func.name);
                        self.cx.error_help(
                            Code::ConstEval,
                            arg.span,
                            title,
                            "write one of them, or a constant parameter",
                        );
                    }
                },
                (GenericKind::Elem, crate::ast::GenericArgValue::Const(_)) => {}
            }
        }
    }

    /// The value of a generic argument that is a `bool`.
    fn flag(&self, arg: &crate::ast::GenericArgValue) -> Option<bool> {
        let value = match arg {
            crate::ast::GenericArgValue::Const(e) => crate::consts::eval(e, &self.env).ok()?,
            crate::ast::GenericArgValue::Type(t) => match &t.kind {
                TypeKind::Elem(name, _) => *self.env.generics.consts.get(&name.to_string())?,
                _ => return None,
            },
        };
        if let ConstValue::Bool(flag) = value { Some(flag) } else { None }
    }

    /// Matches the type of a parameter against that of an argument, and binds the generic parameters in it.
    fn match_param(&mut self, dev: &DeviceFn, want: &TypeRef, got: &ITy, bound: &mut Bound, span: Span) {
        match (&want.kind, got) {
            (TypeKind::Elem(name, _), ITy::Scalar(e)) => self.match_elem(dev, &name.to_string(), *e, bound, span),
            (TypeKind::Tile(elem, dims, _), ITy::Tile(e, s)) => {
                if let TypeKind::Elem(name, _) = &elem.kind {
                    self.match_elem(dev, &name.to_string(), *e, bound, span);
                }
                self.match_shape(dev, dims, *s, bound, span);
            }
            (TypeKind::Tensor { elem, rank, optional, .. }, ITy::Tensor(t))
                if *rank == t.rank && *optional == t.optional =>
            {
                let e = self.known(t.elem);
                if let TypeKind::Elem(name, _) = &elem.kind {
                    self.match_elem(dev, &name.to_string(), e, bound, span);
                }
            }
            (TypeKind::Tuple(list), ITy::Tuple(tys)) if list.len() == tys.len() => {
                list.iter().zip(tys).for_each(|(w, g)| self.match_param(dev, w, g, bound, span));
            }
            (TypeKind::Array(item, _), ITy::Array(t, _)) => self.match_param(dev, item, t, bound, span),
            (TypeKind::Infer, _) | (_, ITy::Unknown | ITy::Never) => {}
            _ => {
                let title =
                    format!("{} does not match the type of this parameter of `{}`", self.describe(got), dev.func.name);
                self.cx.error_help(Code::Arguments, span, title, parameter_help(&want.kind, got));
            }
        }
    }

    fn match_elem(&mut self, dev: &DeviceFn, name: &str, got: E, bound: &mut Bound, span: Span) {
        if dev.func.generics.iter().any(|g| g.name == *name && g.kind == GenericKind::Elem) {
            match bound.elems.iter().find(|(n, _)| n == name) {
                Some((_, e)) => self.elem_or_report(*e, got, span),
                None => bound.elems.push((name.to_owned(), got)),
            }
        } else if let Some(e) = Elem::from_name(name) {
            let e = self.known(e);
            self.elem_or_report(e, got, span);
        }
    }

    fn match_shape(&mut self, dev: &DeviceFn, dims: &[GenericArg], got: S, bound: &mut Bound, span: Span) {
        if let Some(name) = shape_param(&dev.func, dims) {
            match bound.shapes.iter().find(|(n, _)| *n == name) {
                Some((_, s)) => {
                    if let Err((a, b)) = self.unify_shape(*s, got) {
                        let title = format!("expected a tile of shape {a}, found shape {b}");
                        self.cx.error_help(Code::ShapeMismatch, span, title, super::misfit::shape_help(a, b));
                    }
                }
                None => bound.shapes.push((name, got)),
            }
            return;
        }
        let dims = match dims {
            [
                GenericArg {
                    value: crate::ast::GenericArgValue::Type(TypeRef { kind: TypeKind::Dims(inner), .. }),
                    ..
                },
            ] => inner,
            _ => dims,
        };
        let Some(shape) = self.shape_of(got) else { return };
        if shape.rank() != dims.len() {
            let title = format!("expected a tile of rank {}, found rank {}", dims.len(), shape.rank());
            let help = if shape.rank() < dims.len() {
                "`.reshape::<..>()` adds axes of extent 1, `.broadcast::<AXIS, N>()` an axis of N"
            } else {
                "`.reshape::<..>()` merges axes, a reduction such as `.reduce_sum::<0>()` removes one"
            };
            self.cx.error_help(Code::ShapeMismatch, span, title, help);
            return;
        }
        for (dim, extent) in dims.iter().zip(shape.iter()) {
            let extent = i64::from(*extent);
            match const_param(&dev.func, dim) {
                Some(name) => match bound.consts.iter().find(|(n, _)| *n == name) {
                    Some((_, v)) if *v == extent => {}
                    Some((_, v)) => {
                        let title = format!("`{name}` is {v} by one argument and {extent} by another");
                        let help = format!(
                            "pass tiles of the same extent, or declare a parameter besides `{name}` for the other"
                        );
                        self.cx.error_help(Code::ShapeMismatch, span, title, help);
                    }
                    None => bound.consts.push((name, extent)),
                },
                None => {
                    let want = device_const(dev, dim, bound);
                    if let Some(want) = want.filter(|w| *w != extent) {
                        let title = format!("an extent is {extent}, but `{}` takes {want}", dev.func.name);
                        let help = format!(
                            "pass a tile of extent {want}, or make the extent a constant parameter: `const N: i32`"
                        );
                        self.cx.error_help(Code::ShapeMismatch, span, title, help);
                    }
                }
            }
        }
    }

    /// The type of a result, with the generics bound.
    fn instantiate(&mut self, dev: &DeviceFn, t: &TypeRef, bound: &mut Bound, span: Span) -> ITy {
        match &t.kind {
            TypeKind::Elem(name, _) => ITy::Scalar(self.bound_elem(dev, &name.to_string(), bound)),
            TypeKind::Tile(elem, dims, _) => {
                let e = match &elem.kind {
                    TypeKind::Elem(name, _) => self.bound_elem(dev, &name.to_string(), bound),
                    _ => self.fresh(ElemSlot::Any),
                };
                if let Some(name) = shape_param(&dev.func, dims)
                    && let Some((_, s)) = bound.shapes.iter().find(|(n, _)| *n == name)
                {
                    return ITy::Tile(e, *s);
                }
                let generics = bound.known(self);
                let env = crate::items::FnEnv { func: &dev.func, generics: &generics, items: &dev.items };
                match env.shape(dims, span) {
                    Ok(s) => ITy::Tile(e, self.known_shape(s)),
                    Err(_) => {
                        self.cannot_infer(span, "the shape of the result", "write the generic arguments: `f::<..>(..)`")
                    }
                }
            }
            TypeKind::Tuple(list) if list.is_empty() => ITy::Unit,
            TypeKind::Tuple(list) => ITy::Tuple(list.iter().map(|t| self.instantiate(dev, t, bound, span)).collect()),
            TypeKind::Array(t, n) => match n.kind {
                crate::ast::ExprKind::Int(n, ..) => {
                    ITy::Array(Box::new(self.instantiate(dev, t, bound, span)), usize::try_from(n).unwrap_or(0))
                }
                _ => ITy::Unknown,
            },
            TypeKind::Infer | TypeKind::Dims(_) | TypeKind::Smem(..) | TypeKind::Tensor { .. } => {
                self.cx.error(
                    Code::DeviceFn,
                    span,
                    format!("`{}` returns a value of a type that kernels do not have", dev.func.name),
                );
                ITy::Unknown
            }
        }
    }

    fn bound_elem(&mut self, dev: &DeviceFn, name: &str, bound: &mut Bound) -> E {
        if let Some((_, e)) = bound.elems.iter().find(|(n, _)| n == name) {
            return *e;
        }
        if let Some(e) = Elem::from_name(name) {
            return self.known(e);
        }
        let e = self.fresh(ElemSlot::Any);
        if dev.func.generics.iter().any(|g| g.name == *name) {
            bound.elems.push((name.to_owned(), e));
        }
        e
    }

    /// The generic arguments of a device function, from the finished types of a call.
    pub(crate) fn device_generics(
        &mut self,
        dev: &DeviceFn,
        path: &Path,
        args: &[ITy],
        ret: &ITy,
        span: Span,
    ) -> Generics {
        let mut bound = Bound::default();
        if let Some((_, generics)) = &path.generics {
            self.turbofish(dev, generics, &mut bound);
        }
        for (param, ty) in dev.func.params.iter().zip(args) {
            self.match_param(dev, &param.ty, ty, &mut bound, span);
        }
        if let Some(t) = &dev.func.ret {
            self.match_param(dev, t, ret, &mut bound, span);
        }
        bound.known(self)
    }
}

/// Generic parameters of a device function, as far as a call determines them.
#[derive(Default)]
struct Bound {
    elems: Vec<(String, E)>,
    shapes: Vec<(String, S)>,
    consts: Vec<(String, i64)>,
    flags: Vec<(String, bool)>,
}

impl Bound {
    fn known(&self, infer: &Infer<'_>) -> Generics {
        Generics {
            elems: self.elems.iter().filter_map(|(n, e)| Some((n.clone(), infer.elem_of(*e)?))).collect(),
            shapes: self.shapes.iter().filter_map(|(n, s)| Some((n.clone(), infer.shape_of(*s)?))).collect(),
            consts: self
                .consts
                .iter()
                .map(|(n, v)| (n.clone(), ConstValue::Int(*v)))
                .chain(self.flags.iter().map(|(n, v)| (n.clone(), ConstValue::Bool(*v))))
                .collect(),
        }
    }
}

/// The shape parameter that `Tile<T, S>` names.
fn shape_param(func: &crate::ast::Function, dims: &[GenericArg]) -> Option<String> {
    match dims {
        [
            GenericArg {
                value: crate::ast::GenericArgValue::Type(TypeRef { kind: TypeKind::Elem(name, _), .. }), ..
            },
        ] => {
            let is_shape = |g: &crate::ast::GenericParam| g.kind == GenericKind::Shape && g.name == *name;
            func.generics.iter().any(is_shape).then(|| name.to_string())
        }
        _ => None,
    }
}

/// The constant parameter that an extent names.
fn const_param(func: &crate::ast::Function, dim: &GenericArg) -> Option<String> {
    match &dim.value {
        crate::ast::GenericArgValue::Type(TypeRef { kind: TypeKind::Elem(name, _), .. }) => {
            let is_const = |g: &crate::ast::GenericParam| matches!(g.kind, GenericKind::ConstInt(_)) && g.name == *name;
            func.generics.iter().any(is_const).then(|| name.to_string())
        }
        _ => None,
    }
}

/// The value of an extent in a device function's signature that is not a lone parameter.
fn device_const(dev: &DeviceFn, dim: &GenericArg, bound: &Bound) -> Option<i64> {
    let generics = Generics {
        consts: bound.consts.iter().map(|(n, v)| (n.clone(), ConstValue::Int(*v))).collect(),
        ..Generics::default()
    };
    crate::items::FnEnv { func: &dev.func, generics: &generics, items: &dev.items }.const_arg(dim).ok()
}

/// Help for an argument of a device function that is of another kind than its parameter.
fn parameter_help(want: &TypeKind, got: &ITy) -> String {
    match (want, got) {
        (TypeKind::Tile(..) | TypeKind::Elem(..), ITy::Tensor(t)) => load_help(t.rank),
        (TypeKind::Tile(..), ITy::Scalar(_)) => {
            "`Tile::<f32, 64>::full(v)` makes a tile that repeats one value".to_owned()
        }
        (TypeKind::Tile(..), ITy::Row(..) | ITy::Col(..)) => {
            "pass the vector without `.row()` or `.col()`, or `.broadcast::<AXIS, N>()` of it".to_owned()
        }
        (TypeKind::Tile(..), ITy::Pipe(PipeTy::View(..))) => {
            "`.load()` loads a tile of a stage to registers".to_owned()
        }
        (TypeKind::Tile(..), _) => "the parameter is a tile".to_owned(),
        (TypeKind::Elem(..), ITy::Tile(..)) => {
            "the parameter is a scalar: reduce the tile along each axis, `.reduce_sum::<0>()`, or declare a tile"
                .to_owned()
        }
        (TypeKind::Elem(..), _) => "the parameter is a scalar".to_owned(),
        (TypeKind::Tensor { rank, optional: false, .. }, _) => format!("the parameter is a tensor of rank {rank}"),
        (TypeKind::Tensor { rank, .. }, _) => format!("the parameter is an `Option` of a tensor of rank {rank}"),
        (TypeKind::Tuple(list), _) => format!("the parameter is a tuple of {}", list.len()),
        (TypeKind::Array(..), _) => "the parameter is an array".to_owned(),
        _ => "pass a value of the type of the parameter".to_owned(),
    }
}
