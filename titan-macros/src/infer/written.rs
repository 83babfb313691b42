//! The meaning of types and patterns in the source.

use super::{E, ElemSlot, ITy, Infer, TensorTy};
use crate::ast::{Pat, PatKind, TypeKind, TypeRef};
use titan_core::diag::Code;
use titan_core::ir::Access;

impl Infer<'_> {
    /// The type that a type in the source denotes.
    pub(crate) fn ty_ref(&mut self, t: &TypeRef) -> ITy {
        match &t.kind {
            TypeKind::Infer => ITy::Unknown,
            TypeKind::Elem(name, _) => match self.env.elem(&name.to_string()) {
                Some(e) => ITy::Scalar(self.known(e)),
                None => {
                    self.not_a_type(name, t.span);
                    ITy::Unknown
                }
            },
            TypeKind::Tile(elem, dims, _) => {
                let e = self.elem_ref(elem);
                match self.env.shape(dims, t.span) {
                    Ok(s) => ITy::Tile(e, self.known_shape(s)),
                    Err(fault) => {
                        self.cx.push(fault);
                        ITy::Unknown
                    }
                }
            }
            TypeKind::Tensor { elem, rank, mutable, optional, .. } => {
                let e = self.elem_ref(elem);
                let access = if *mutable { Access::Mut } else { Access::In };
                match self.elem_of(e) {
                    Some(elem) => ITy::Tensor(TensorTy { elem, rank: *rank, access, optional: *optional, reads: None }),
                    None => ITy::Unknown,
                }
            }
            TypeKind::Tuple(list) if list.is_empty() => ITy::Unit,
            TypeKind::Tuple(list) => ITy::Tuple(list.iter().map(|t| self.ty_ref(t)).collect()),
            TypeKind::Array(t, n) => {
                let item = self.ty_ref(t);
                match crate::consts::eval(n, &self.env) {
                    Ok(crate::consts::ConstValue::Int(n @ 0..=64)) => {
                        ITy::Array(Box::new(item), usize::try_from(n).unwrap_or(0))
                    }
                    _ => ITy::Unknown,
                }
            }
            TypeKind::Smem(..) => {
                let help = "it is only used in the type of a ring: `Ring::<Smem<f16, 128, 64>, 4>::new()`";
                self.cx.error_help(Code::RingMade, t.span, "no value has the type `Smem`", help);
                ITy::Unknown
            }
            TypeKind::Dims(_) => ITy::Unknown,
        }
    }

    /// Reports a name that is not an element type. It may be a Rust type, but not one that kernels support.
    fn not_a_type(&self, name: &proc_macro2::Ident, span: proc_macro2::Span) {
        let text = name.to_string();
        let help =
            match (text.as_str(), titan_core::text::closest(&text, titan_core::ir::Elem::ALL.iter().map(|e| e.name())))
            {
                ("usize" | "isize" | "u128" | "i128" | "char" | "str" | "String", _) => {
                    "indices and extents are `i32`".to_owned()
                }
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => {
                    "the types are scalars, `Tile<T, A, B>`, tuples and arrays; type aliases cannot be used in kernels"
                        .to_owned()
                }
            };
        self.cx.error_help(Code::Syntax, span, format!("`{text}` is not a type of the kernel language"), help);
    }

    /// The element type of a turbofish or tile type; `_` is open.
    pub(super) fn elem_ref(&mut self, t: &TypeRef) -> E {
        match &t.kind {
            TypeKind::Elem(name, _) => match self.env.elem(&name.to_string()) {
                Some(e) => self.known(e),
                None => {
                    self.not_a_type(name, t.span);
                    self.fresh(ElemSlot::Any)
                }
            },
            _ => self.fresh(ElemSlot::Any),
        }
    }

    /// Assigns types to the names of a pattern.
    pub(super) fn bind(&mut self, pat: &Pat, ty: &ITy) {
        match (&pat.kind, ty) {
            (PatKind::Bind { var, .. }, t) => self.vars[*var] = t.clone(),
            (PatKind::Tuple(pats), ITy::Tuple(tys)) if pats.len() == tys.len() => {
                pats.iter().zip(tys).for_each(|(p, t)| self.bind(p, t));
            }
            (PatKind::Array(pats), ITy::Array(t, n)) if pats.len() == *n => pats.iter().for_each(|p| self.bind(p, t)),
            (PatKind::Wild | PatKind::Bad, _) | (PatKind::Tuple(_) | PatKind::Array(_), ITy::Unknown | ITy::Never) => {}
            (PatKind::Tuple(_) | PatKind::Array(_), t) => {
                let title = format!("this pattern does not match {}", self.describe(t));
                let parts = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ");
                let help = match t {
                    ITy::Tuple(tys) => format!("name each of its parts: `({})`", parts(tys.len())),
                    ITy::Array(_, n) => format!("name each of its parts: `[{}]`", parts(*n)),
                    _ => "it has no parts: write one name".to_owned(),
                };
                self.cx.error_help(Code::Arguments, pat.span, title, help);
            }
        }
    }
}
