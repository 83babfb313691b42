//! Why the arguments of a launch do not fit: one clause each, in the user's names, and how to mend it.

use crate::ir::{Elem, HostExprError};
use std::fmt;

/// A rule of the signature that the arguments break.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Too few or too many arguments.
    #[error(
        "the kernel takes {expected} arguments, but this launch gives {found}\n  help: pass one argument per parameter, `None` for an absent optional tensor"
    )]
    Count {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments of the launch.
        found: usize,
    },
    /// A scalar for a tensor, or the other way round.
    #[error("`{param}` is {expected}, but {found} was given\n  help: pass {expected}")]
    Kind {
        /// The parameter.
        param: String,
        /// What it takes.
        expected: &'static str,
        /// What it was given.
        found: &'static str,
    },
    /// Another element type.
    #[error(
        "`{param}` has elements of type `{expected}`, but `{found}` was given\n  help: convert the data to `{expected}`, or launch the instance for `{found}`"
    )]
    Element {
        /// The parameter.
        param: String,
        /// Its element type.
        expected: Elem,
        /// The argument's.
        found: Elem,
    },
    /// Another number of axes.
    #[error(
        "`{param}` has rank {expected}, but a tensor of rank {found} was given\n  help: add an axis with `unsqueeze`, drop one with `index`, or `reshape`"
    )]
    Rank {
        /// The parameter.
        param: String,
        /// Its axes.
        expected: usize,
        /// The argument's.
        found: usize,
    },
    /// An extent that `i32` cannot index.
    #[error(
        "`{param}`: extent {axis} is {extent}, but kernels index with `i32`: at most 2147483647\n  help: split the tensor along that axis and launch once per part"
    )]
    Extent {
        /// The parameter.
        param: String,
        /// Which axis.
        axis: usize,
        /// Its extent.
        extent: i64,
    },
    /// A tensor that is written has several indices for one element.
    #[error(
        "`{param}` is written, but several of its indices name the same element (extents {extents:?}, strides {strides:?})\n  help: write to a tensor that is not broadcast, or to a copy"
    )]
    SelfOverlap {
        /// The parameter.
        param: String,
        /// The argument's extents.
        extents: Vec<i64>,
        /// The argument's strides, in elements.
        strides: Vec<i64>,
    },
    /// An extent is not what `#[shape(..)]` says.
    #[error("`{param}`: extent {axis} is {extent}, but {}{}\n  help: check the order of the arguments and of their axes; the kernel declares this extent with `#[shape(..)]`", Equation { declared, value: *value }, Origins { declared, origin })]
    Shape {
        /// The parameter.
        param: String,
        /// Which axis.
        axis: usize,
        /// The argument's extent.
        extent: i64,
        /// What is declared.
        declared: String,
        /// Its value.
        value: i64,
        /// The names in the declaration.
        origin: Vec<Origin>,
    },
    /// A condition of the kernel does not hold.
    #[error(
        "the kernel requires `{condition}`{}\n  help: choose extents and arguments for which it holds, or another instance",
        But(values)
    )]
    Requirement {
        /// The condition.
        condition: String,
        /// The names in it with their values.
        values: Vec<(String, i64)>,
    },
    /// A declaration mentions a name that has no value because its tensor is absent.
    #[error("{place} needs `{name}`, which has no value because `{param}` is absent\n  help: pass `{param}`")]
    Unbound {
        /// What asks.
        rule: Rule,
        /// Who asks.
        place: String,
        /// The name.
        name: String,
        /// The absent tensor.
        param: String,
    },
    /// A declaration has no value for these arguments.
    #[error(
        "{place}: `{expr}` has no value: {source}{}\n  help: choose extents and arguments for which it has a value",
        But(values)
    )]
    NoValue {
        /// What asks.
        rule: Rule,
        /// Who asks.
        place: String,
        /// The expression.
        expr: String,
        /// The names in it with their values.
        values: Vec<(String, i64)>,
        /// What went wrong.
        source: HostExprError,
    },
    /// A grid of more than three axes.
    #[error(
        "the grid has {found} axes, but at most 3 exist\n  help: fold axes together and take them apart in the kernel with `unflatten`"
    )]
    GridAxes {
        /// How many were declared.
        found: usize,
    },
    /// A grid extent that is negative or too large.
    #[error(
        "extent {axis} of the grid, `{declared}`, is {value}, but must be 0 to 2147483647\n  help: check the extents of the tensors, or give a grid with `.grid([..])`"
    )]
    Grid {
        /// Which axis.
        axis: usize,
        /// What is declared.
        declared: String,
        /// Its value.
        value: i64,
    },
    /// A grid without programs, and an output that has elements.
    #[error(
        "extent {axis} of the grid{} is 0{}: no program would run, and `{output}` of extents {extents:?} would keep what it holds\n  help: `cdiv(a, b)` rounds up where `a / b` rounds down; do not launch where there is nothing to do",
        Declared(declared.as_deref()),
        But(values)
    )]
    Idle {
        /// Which axis.
        axis: usize,
        /// What is declared; `None` if the launch gave the grid.
        declared: Option<String>,
        /// The names in it with their values.
        values: Vec<(String, i64)>,
        /// The parameter that is left alone.
        output: String,
        /// The extents of its argument.
        extents: Vec<i64>,
    },
    /// A grid with fewer programs than an output has parts.
    #[error(
        "extent {axis} of the grid{} is {found}{}, but `{output}` of extents {extents:?} has {wanted} {parts}, one for each program: the rest would keep what it holds\n  help: {}",
        Declared(declared.as_deref()),
        With(values),
        Reach { axis: *axis, declared: declared.is_some(), programs, wanted: *wanted }
    )]
    Short {
        /// Which axis.
        axis: usize,
        /// What is declared; `None` if the launch gave the grid.
        declared: Option<String>,
        /// How many programs there would be.
        found: u32,
        /// How many there must be.
        wanted: i64,
        /// The names in what is declared with their values.
        values: Vec<(String, i64)>,
        /// The output.
        output: String,
        /// The extents of its argument.
        extents: Vec<i64>,
        /// How it is divided, in words.
        parts: String,
        /// What must be declared for all of it.
        programs: String,
    },
}

/// Which part of a signature an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Number, kinds, element types, ranks and sizes of the arguments.
    Argument,
    /// A `#[shape(..)]`.
    Shape,
    /// A `require(..)`.
    Requirement,
    /// The grid.
    Grid,
}

impl BindError {
    /// Which part of the signature the error is about.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        match self {
            BindError::Count { .. }
            | BindError::Kind { .. }
            | BindError::Element { .. }
            | BindError::Rank { .. }
            | BindError::Extent { .. }
            | BindError::SelfOverlap { .. } => Rule::Argument,
            BindError::Shape { .. } => Rule::Shape,
            BindError::Requirement { .. } => Rule::Requirement,
            BindError::Unbound { rule, .. } | BindError::NoValue { rule, .. } => *rule,
            BindError::GridAxes { .. } | BindError::Grid { .. } | BindError::Idle { .. } | BindError::Short { .. } => {
                Rule::Grid
            }
        }
    }
}

/// A name in a declaration, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The shape name, scalar or extent.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// The parameter and the axis that gave a shape name its value.
    pub bound_by: Option<(String, usize)>,
}

struct Equation<'a> {
    declared: &'a str,
    value: i64,
}

impl fmt::Display for Equation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.declared == self.value.to_string() {
            return write!(f, "the kernel declares {}", self.value);
        }
        write!(f, "`{}` is {}", self.declared, self.value)
    }
}

/// How to reach all of an output.
struct Reach<'a> {
    axis: usize,
    declared: bool,
    programs: &'a str,
    wanted: i64,
}

impl fmt::Display for Reach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reach { axis, declared, programs, wanted } = self;
        if *declared {
            write!(f, "declare `{programs}` as extent {axis} of the grid; or `grid(unchecked ..)`, if that is meant")
        } else {
            write!(
                f,
                "launch at least {wanted} programs along axis {axis}; or declare `grid(unchecked ..)`, if that is meant"
            )
        }
    }
}

/// ``, `N / 128`,``.
struct Declared<'a>(Option<&'a str>);

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |text| write!(f, ", `{text}`,"))
    }
}

/// Where the names of a declaration got their values, in parentheses.
struct Origins<'a> {
    declared: &'a str,
    origin: &'a [Origin],
}

impl fmt::Display for Origins<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Origin { name, value, bound_by }) in self.origin.iter().enumerate() {
            f.write_str(if i == 0 { " (" } else { ", " })?;
            match bound_by {
                Some((param, axis)) if name == self.declared => write!(f, "bound by `{param}`, extent {axis}")?,
                Some((param, axis)) => write!(f, "{name} = {value}, bound by `{param}`, extent {axis}")?,
                None => write!(f, "{name} = {value}")?,
            }
        }
        f.write_str(if self.origin.is_empty() { "" } else { ")" })
    }
}

/// ` (K = 10, G = 4)`.
struct With<'a>(&'a [(String, i64)]);

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = {value}", if i == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

/// `, but K = 10 and G = 4`.
struct But<'a>(&'a [(String, i64)]);

impl fmt::Display for But<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            let last = i + 1 == self.0.len();
            f.write_str(if i == 0 {
                ", but "
            } else if last {
                " and "
            } else {
                ", "
            })?;
            write!(f, "{name} = {value}")?;
        }
        Ok(())
    }
}
