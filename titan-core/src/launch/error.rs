//! The errors for invalid arguments of a launch: one clause each, with the user's names, and a suggested fix.

use crate::diag::counted;
use crate::ir::{Elem, HostExprError};
use std::fmt;

/// A violation of the signature by the arguments of a launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Too few or too many arguments.
    #[error(
        "the kernel takes {}, but this launch gives {found}\n  help: pass one argument per parameter, `None` for an absent optional tensor",
        counted(*expected, "argument")
    )]
    Count {
        /// The number of parameters of the kernel.
        expected: usize,
        /// The number of arguments of the launch.
        found: usize,
    },
    /// A scalar for a tensor parameter, or a tensor for a scalar.
    #[error("`{param}` is {expected}, but {found} was given\n  help: pass {expected}")]
    Kind {
        /// The name of the parameter.
        param: String,
        /// What the parameter is, in words.
        expected: &'static str,
        /// What the argument is, in words.
        found: &'static str,
    },
    /// An argument with another element type.
    #[error(
        "`{param}` has elements of type `{expected}`, but `{found}` was given\n  help: convert the data to `{expected}`, or launch the instance for `{found}`"
    )]
    Element {
        /// The name of the parameter.
        param: String,
        /// The element type of the parameter.
        expected: Elem,
        /// The element type of the argument.
        found: Elem,
    },
    /// An argument with another number of axes.
    #[error(
        "`{param}` has rank {expected}, but a tensor of rank {found} was given\n  help: add an axis with `unsqueeze`, drop one with `index`, or `reshape`"
    )]
    Rank {
        /// The name of the parameter.
        param: String,
        /// The number of axes of the parameter.
        expected: usize,
        /// The number of axes of the argument.
        found: usize,
    },
    /// An extent that `i32` cannot index.
    #[error(
        "`{param}`: extent {axis} is {extent}, but kernels index with `i32`: at most 2147483647\n  help: split the tensor along that axis and launch once per part"
    )]
    Extent {
        /// The name of the parameter.
        param: String,
        /// The axis of the tensor.
        axis: usize,
        /// The extent along the axis.
        extent: i64,
    },
    /// A mutable tensor in which several indices refer to the same element.
    #[error(
        "`{param}` is written, but several of its indices name the same element (extents {extents:?}, strides {strides:?})\n  help: write to a tensor that is not broadcast, or to a copy"
    )]
    SelfOverlap {
        /// The name of the parameter.
        param: String,
        /// The extents of the argument.
        extents: Vec<i64>,
        /// The strides of the argument, in elements.
        strides: Vec<i64>,
    },
    /// An extent that differs from its declaration in `#[shape(..)]`.
    #[error("`{param}`: extent {axis} is {extent}, but {}{}\n  help: check the order of the arguments and of their axes; the kernel declares this extent with `#[shape(..)]`", Equation { declared, value: *value }, Origins { declared, origin })]
    Shape {
        /// The name of the parameter.
        param: String,
        /// The axis of the tensor.
        axis: usize,
        /// The extent of the argument.
        extent: i64,
        /// The declared expression.
        declared: String,
        /// The value of the declared expression.
        value: i64,
        /// The names in the declaration, with their values and origins.
        origin: Vec<Origin>,
    },
    /// A requirement of the kernel that does not hold.
    #[error(
        "the kernel requires `{condition}`{}\n  help: choose extents and arguments for which it holds, or another instance",
        But(values)
    )]
    Requirement {
        /// The condition, as the user wrote it.
        condition: String,
        /// The names in the condition with their values.
        values: Vec<(String, i64)>,
    },
    /// A declaration that contains a name without a value, because the tensor that binds it is absent.
    #[error("{place} needs `{name}`, which has no value because `{param}` is absent\n  help: pass `{param}`")]
    Unbound {
        /// The part of the signature with the declaration.
        rule: Rule,
        /// The declaration, in words.
        place: String,
        /// The name without a value.
        name: String,
        /// The name of the absent tensor parameter.
        param: String,
    },
    /// A declaration that has no value for these arguments.
    #[error(
        "{place}: `{expr}` has no value: {source}{}\n  help: choose extents and arguments for which it has a value",
        But(values)
    )]
    NoValue {
        /// The part of the signature with the declaration.
        rule: Rule,
        /// The declaration, in words.
        place: String,
        /// The expression without a value.
        expr: String,
        /// The names in the expression with their values.
        values: Vec<(String, i64)>,
        /// The error of the evaluation.
        source: HostExprError,
    },
    /// A grid with more than three axes.
    #[error(
        "the grid has {found} axes, but at most 3 exist\n  help: fold axes together and take them apart in the kernel with `unflatten`"
    )]
    GridAxes {
        /// The number of declared axes.
        found: usize,
    },
    /// A grid extent that is negative or too large.
    #[error(
        "extent {axis} of the grid, `{declared}`, is {value}, but must be 0 to 2147483647\n  help: check the extents of the tensors, or give a grid with `.grid([..])`"
    )]
    Grid {
        /// The axis of the grid.
        axis: usize,
        /// The declared expression.
        declared: String,
        /// The value of the declared expression.
        value: i64,
    },
    /// A grid without programs, for an output that has elements.
    #[error(
        "extent {axis} of the grid{} is 0{}: no program would run, and `{output}` of extents {extents:?} would keep what it holds\n  help: `cdiv(a, b)` rounds up where `a / b` rounds down; do not launch where there is nothing to do",
        Declared(declared.as_deref()),
        But(values)
    )]
    Idle {
        /// The axis of the grid.
        axis: usize,
        /// The declared expression; `None` if the launch stated the grid.
        declared: Option<String>,
        /// The names in the declaration with their values.
        values: Vec<(String, i64)>,
        /// The name of the output parameter that would not be written.
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
        /// The axis of the grid.
        axis: usize,
        /// The declared expression; `None` if the launch stated the grid.
        declared: Option<String>,
        /// The number of programs along the axis.
        found: u32,
        /// The required number of programs.
        wanted: i64,
        /// The names in the declaration with their values.
        values: Vec<(String, i64)>,
        /// The name of the output parameter.
        output: String,
        /// The extents of its argument.
        extents: Vec<i64>,
        /// The division of the output, in words.
        parts: String,
        /// The expression that must be declared so that all of the output is written.
        programs: String,
    },
}

/// The part of a signature that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The number, kinds, element types, ranks and sizes of the arguments.
    Argument,
    /// A `#[shape(..)]`.
    Shape,
    /// A `require(..)`.
    Requirement,
    /// The grid.
    Grid,
}

impl BindError {
    /// The part of the signature that the error is about.
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
    /// The value of the name.
    pub value: i64,
    /// For a shape name, the parameter and the axis that bound it.
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

/// Displays how to write all of an output.
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
                "launch at least {} along axis {axis}; or declare `grid(unchecked ..)`, if that is meant",
                counted(u64::try_from(*wanted).unwrap_or(0), "program")
            )
        }
    }
}

/// Displays a declaration as ``, `N / 128`,``.
struct Declared<'a>(Option<&'a str>);

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |text| write!(f, ", `{text}`,"))
    }
}

/// Displays the origins of the names of a declaration, in parentheses.
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

/// Displays names with values as ` (K = 10, G = 4)`.
struct With<'a>(&'a [(String, i64)]);

impl fmt::Display for With<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = {value}", if i == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

/// Displays names with values as `, but K = 10 and G = 4`.
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
