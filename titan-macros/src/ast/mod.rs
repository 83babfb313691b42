//! The AST of kernels and device functions. Only the parser uses `syn`; all later passes use this tree.
//!
//! The tree keeps the user's identifiers and operator spans, so that the shadow can be printed from it and rustc underlines
//! the user's own tokens. Every expression has a number; the inferred types of an instance are a table over these numbers.

mod op;
mod ty;
mod walk;

pub(crate) use op::{BinaryOp, LazyOp, UnaryOp};
pub(crate) use ty::{GenericArg, GenericArgValue, Path, TypeKind, TypeRef};

use crate::hygiene::{Mark, Names};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote;
use titan_core::ir::Elem;

/// The number of an expression in its function.
pub(crate) type ExprId = usize;
/// The number of a local variable in its function.
pub(crate) type VarId = usize;
/// The number of a loop in its function.
pub(crate) type LoopId = usize;

/// A function with a kernel attribute.
#[derive(Debug)]
pub(crate) struct KernelItem {
    /// Doc comments and other attributes to keep, as written.
    pub(crate) attrs: Vec<TokenStream>,
    pub(crate) vis: TokenStream,
    pub(crate) func: Function,
    pub(crate) config: KernelConfig,
}

/// The arguments of `#[titan::kernel(..)]`.
#[derive(Debug, Default)]
pub(crate) struct KernelConfig {
    /// `instances(..)`: each axis names generics and lists their values.
    pub(crate) instances: Vec<InstanceAxis>,
    /// `grid(..)`
    pub(crate) grid: Option<(Span, Vec<Expr>)>,
    /// `grid(unchecked ..)`: programs need not cover all of an output.
    pub(crate) partial: bool,
    /// `targets(..)`: the GPU targets that the kernel is compiled for; `None` means all.
    pub(crate) targets: Option<Vec<&'static str>>,
    /// `tails(..)`: the treatment of iterations whose tiles are not whole; `None`: the compiler decides.
    pub(crate) tails: Option<titan_core::ir::Tails>,
    /// `schedule(..)`: what places the operations of pipelined loops in stages; `None`: the compiler decides.
    pub(crate) scheduler: Option<titan_core::ir::Scheduler>,
    /// `require(..)`
    pub(crate) requires: Vec<Expr>,
    /// `require(tma)`
    pub(crate) bulk: Option<Span>,
    /// `allow(..)` and `notes`
    pub(crate) warnings: crate::warning::Wanted,
    /// `crate = path`
    pub(crate) krate: Option<TokenStream>,
    /// `roles(producer: 1 warp, consumer: 2 warpgroups)`
    pub(crate) roles: Option<(Span, Vec<RoleAttr>)>,
}

/// One entry of `roles(..)`.
#[derive(Debug)]
pub(crate) struct RoleAttr {
    pub(crate) name: Ident,
    pub(crate) warps: u32,
    pub(crate) instances: u32,
}

impl RoleAttr {
    /// The name of its arm: `producer` is `Role::Producer`.
    pub(crate) fn arm(&self) -> String {
        let name = self.name.to_string();
        let mut upper = true;
        let mut out = String::new();
        for c in name.trim_start_matches("r#").chars() {
            if c == '_' {
                upper = true;
            } else if std::mem::take(&mut upper) {
                out.extend(c.to_uppercase());
            } else {
                out.push(c);
            }
        }
        out
    }
}

/// One entry of `instances(..)`.
#[derive(Debug)]
pub(crate) struct InstanceAxis {
    pub(crate) names: Vec<Ident>,
    pub(crate) values: Vec<Vec<InstanceValue>>,
}

/// The value of a generic parameter: a type or a constant, as written.
#[derive(Debug, Clone)]
pub(crate) struct InstanceValue {
    pub(crate) span: Span,
    pub(crate) tokens: TokenStream,
    pub(crate) value: GenericArgValue,
}

/// The signature and body of a kernel or device function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Ident,
    pub(crate) generics: Vec<GenericParam>,
    pub(crate) params: Vec<Param>,
    pub(crate) ret: Option<TypeRef>,
    pub(crate) body: Block,
    /// The number of expressions.
    pub(crate) n_exprs: usize,
    /// The local variables; the parameters come first.
    pub(crate) vars: Vec<Var>,
    /// The functions of the language that the body calls by an unqualified name, each once.
    pub(crate) intrinsics: Vec<Ident>,
    /// Other unqualified names of the language that the shadow does not repeat, each once.
    pub(crate) mentions: Vec<Mention>,
    /// The identifiers that may be variables or labels, in the order in which the parser reads them.
    pub(crate) names: Names,
}

/// A name of the language as the user imported it.
#[derive(Debug, Clone)]
pub(crate) enum Mention {
    Type(Ident),
    Macro(Ident),
}

/// A local variable.
#[derive(Debug)]
pub(crate) struct Var {
    pub(crate) name: Ident,
    pub(crate) mark: Mark,
}

/// The label of a loop, or of a `break` or `continue`.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub(crate) name: Ident,
    pub(crate) mark: Mark,
    /// The loop that has the label; `None` before names are resolved, and if there is none.
    pub(crate) of: Option<LoopId>,
}

/// A generic parameter.
#[derive(Debug)]
pub(crate) struct GenericParam {
    pub(crate) name: Ident,
    pub(crate) kind: GenericKind,
    /// The traits of `T: Float`, by their last names.
    pub(crate) bounds: Vec<String>,
    /// As written: `T: Float` or `const BM: i32`.
    pub(crate) tokens: TokenStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenericKind {
    /// `T: Float`: an element type.
    Elem,
    /// `S: Shape`, in device functions.
    Shape,
    /// `const N: i32` and the other integers.
    ConstInt(Elem),
    /// `const CAUSAL: bool`
    ConstBool,
}

impl GenericKind {
    pub(crate) const fn is_const(self) -> bool {
        matches!(self, GenericKind::ConstInt(_) | GenericKind::ConstBool)
    }
}

impl GenericParam {
    /// The parameter as a generic argument: a constant that has the name of a type is put in braces.
    pub(crate) fn argument(&self) -> TokenStream {
        let name = &self.name;
        if self.kind.is_const() && crate::names::is_type(&name.to_string()) { quote!({ #name }) } else { quote!(#name) }
    }
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: Ident,
    pub(crate) mark: Mark,
    pub(crate) mutable: bool,
    pub(crate) ty: TypeRef,
    pub(crate) shape: Option<(Span, Vec<Option<Expr>>)>,
}

/// An expression. The span is the token that messages point at: the operator, the method's name.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) id: ExprId,
    pub(crate) span: Span,
    pub(crate) kind: ExprKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Int(u128, Option<Elem>, Literal),
    Float(f64, Option<Elem>, Literal),
    Bool(bool, Ident),
    Path(Path, Res),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `&&` and `||` on scalars.
    Lazy(LazyOp, Box<Expr>, Box<Expr>),
    Assign(Box<Expr>, Box<Expr>),
    AssignOp(BinaryOp, Box<Expr>, Box<Expr>),
    Call {
        path: Path,
        callee: Callee,
        args: Vec<Expr>,
        paren: Span,
    },
    Method {
        recv: Box<Expr>,
        name: Ident,
        generics: Vec<GenericArg>,
        args: Vec<Expr>,
        paren: Span,
    },
    If {
        cond: Box<Cond>,
        then: Block,
        other: Option<Box<Expr>>,
    },
    Block(Block),
    Unsafe(Block),
    For {
        label: Option<Label>,
        pat: Pat,
        iter: Box<Expr>,
        body: Block,
    },
    While {
        label: Option<Label>,
        cond: Box<Expr>,
        body: Block,
    },
    Loop {
        label: Option<Label>,
        body: Block,
    },
    Break {
        label: Option<Label>,
        value: Option<Box<Expr>>,
    },
    Continue {
        label: Option<Label>,
    },
    Return(Option<Box<Expr>>),
    Array(Vec<Expr>, Span),
    Tuple(Vec<Expr>, Span),
    /// `a[i]` of an array value
    Index(Box<Expr>, Box<Expr>),
    /// `t.0`
    Field(Box<Expr>, usize, Literal),
    Closure {
        params: Vec<Pat>,
        body: Box<Expr>,
    },
    As(Box<Expr>, TypeRef),
    Range {
        lo: Box<Expr>,
        hi: Box<Expr>,
        inclusive: bool,
    },
    Paren(Box<Expr>, Span),
    Ref {
        mutable: bool,
        inner: Box<Expr>,
    },
    Macro {
        name: Ident,
        format: Option<String>,
        args: Vec<Expr>,
        tokens: TokenStream,
    },
    /// `match role() { Role::Producer => .., .. }`; the path is that of `role`.
    Roles {
        path: Path,
        arms: Vec<RoleArm>,
    },
    /// An expression that could not be parsed; an error has been reported.
    Bad,
}

/// The condition of an `if`.
#[derive(Debug, Clone)]
pub(crate) enum Cond {
    Expr(Expr),
    /// `if let Some(x) = option`
    LetSome {
        pat: Pat,
        option: Expr,
        span: Span,
    },
}

/// An arm of `match role()`.
#[derive(Debug, Clone)]
pub(crate) struct RoleArm {
    /// `Role`, and the name of the role.
    pub(crate) path: [Ident; 2],
    pub(crate) body: Expr,
}

/// The meaning of a path in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Res {
    /// Not resolved yet.
    None,
    Local(VarId),
    /// A constant generic parameter of the function.
    ConstParam(usize),
    /// A shape name of the kernel.
    Symbol(String),
    /// `f32::NEG_INFINITY`, `std::f32::consts::PI`
    Builtin,
    /// An associated constant of a generic element type: `T::NEG_INFINITY`.
    Assoc(usize),
    /// A `#[titan::constant]`, by the text of its path.
    Constant(String),
}

/// The callee of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Not resolved yet.
    None,
    /// An operation of the language.
    Builtin(Builtin),
    /// A `#[titan::device]` function, by the text of its path.
    Device(String),
}

/// Free functions of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    ProgramId,
    NumPrograms,
    Cdiv,
    Unflatten,
    UnflattenGrouped,
    Pipelined,
    Mma,
    Iota,
    Select,
    TileZeros,
    TileOnes,
    TileFull,
    Some,
    Role,
    MmaAsync,
    MmaAsyncReg,
    RingNew,
    StagingNew,
    AccZeros,
    AccFromTile,
    StageJoin,
}

impl Builtin {
    /// Whether it is a function of a type, as `Tile::zeros`.
    pub(crate) const fn of_a_type(self) -> bool {
        matches!(
            self,
            Builtin::TileZeros
                | Builtin::TileOnes
                | Builtin::TileFull
                | Builtin::RingNew
                | Builtin::StagingNew
                | Builtin::AccZeros
                | Builtin::AccFromTile
                | Builtin::StageJoin
        )
    }
}

/// A block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    /// The closing brace, for messages about what is missing at the end.
    pub(crate) close: Span,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Stmt {
    Let {
        pat: Pat,
        ty: Option<TypeRef>,
        init: Option<Expr>,
        span: Span,
    },
    /// An expression; if a semicolon follows, at `semi`, its value is dropped.
    Expr {
        expr: Expr,
        semi: Option<Span>,
    },
}

/// A pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pat {
    pub(crate) span: Span,
    pub(crate) kind: PatKind,
}

#[derive(Debug, Clone)]
pub(crate) enum PatKind {
    Wild,
    Bind {
        name: Ident,
        mark: Mark,
        mutable: bool,
        var: VarId,
    },
    Tuple(Vec<Pat>),
    Array(Vec<Pat>),
    /// An error has been reported.
    Bad,
}

/// The way in which a parameter is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamTyKind {
    Scalar,
    /// `&Tensor`
    In,
    /// `Option<&Tensor>`
    Optional,
    /// `&mut Tensor`
    Mut,
    /// `Option<&mut Tensor>`
    OptionalMut,
}
