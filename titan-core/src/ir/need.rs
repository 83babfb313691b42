//! The numbers of programs that outputs require of the grid, which a launch checks against its arguments. `analysis::cover` computes them.

use super::HostExpr;

/// The number of programs that an axis of the grid must have for an output to be written completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The axis of the grid.
    pub axis: u8,
    /// The index of the output parameter.
    pub param: usize,
    /// The required number of programs.
    pub programs: HostExpr,
    /// The division of the output into parts.
    pub parts: Vec<Parts>,
}

/// The division of an axis of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The axis of the output.
    pub axis: usize,
    /// The number of elements of a part along the axis; `None` for segments.
    pub size: Option<i64>,
}

impl Need {
    /// The division as text: `parts of 64 along axis 0`.
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
