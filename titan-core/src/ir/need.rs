//! Requirements of outputs on the grid, which a launch checks against its arguments. `analysis::cover` finds them.

use super::HostExpr;

/// The number of programs that an axis of the grid must have for an output to be written completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The axis of the grid.
    pub axis: u8,
    /// The output.
    pub param: usize,
    /// How many programs.
    pub programs: HostExpr,
    /// The divisions of the output.
    pub parts: Vec<Parts>,
}

/// The division of an axis of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The axis of the output.
    pub axis: usize,
    /// Elements of a part; `None` for segments.
    pub size: Option<i64>,
}

impl Need {
    /// The division in words: `parts of 64 along axis 0`.
    #[must_use]
    pub fn text(&self) -> String {
        let one = |p: &Parts| match p.size {
            Some(1) => format!("elements along axis {}", p.axis),
            Some(n) => format!("parts of {n} along axis {}", p.axis),
            None => format!("segments along axis {}", p.axis),
        };
        self.parts.iter().map(one).collect::<Vec<_>>().join(" times ")
    }
}
