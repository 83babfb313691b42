//! What outputs ask of a grid: facts of a kernel that a launch compares with its arguments. `analysis::cover` finds them.

use super::HostExpr;

/// How many programs an axis of the grid must have for all of an output to be some program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The axis of the grid.
    pub axis: u8,
    /// The output.
    pub param: usize,
    /// How many programs.
    pub programs: HostExpr,
    /// What is divided among them.
    pub parts: Vec<Parts>,
}

/// How an axis of an output is divided.
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
