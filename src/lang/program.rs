//! Programs of the reference: one after the other on the calling thread, each with its ids and its own arena of tiles.
//!
//! A trap unwinds with a [`Trap`] as its payload, without a message and without calling the panic hook, and [`run`] returns it.
//! With `panic = "abort"` there is no unwinding, and a trap ends the process.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use super::arena;
use super::arith::Arith;
use super::pipeline::{RoleState, begin_program, begin_role};

thread_local! {
    static CURRENT: Cell<Program> = const { Cell::new(Program { id: [0; 3], grid: [1; 3] }) };
}

/// The program and the grid that this thread executes.
#[derive(Clone, Copy)]
struct Program {
    id: [i32; 3],
    grid: [i32; 3],
}

/// The reason why a program stopped: a `get` or `set` outside its tensor, a bad `segment`, a failed `tassert!`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trap {
    /// The message, with the values.
    pub message: String,
    /// The indices of the program in the grid.
    pub program: [i32; 3],
    /// The file of the kernel.
    pub file: &'static str,
    /// The line in the file, from 1.
    pub line: u32,
    /// The column in the line, from 1.
    pub column: u32,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trap { message, program: [x, y, z], file, line, column } = self;
        write!(f, "{file}:{line}:{column}: {message} (program {x}, {y}, {z})")
    }
}

impl std::error::Error for Trap {}

/// The index of this program along an axis of the grid, 0 to 2.
#[must_use]
#[track_caller]
pub fn program_id(axis: usize) -> i32 {
    along(CURRENT.get().id, axis)
}

/// The extent of the grid along an axis, 0 to 2.
#[must_use]
#[track_caller]
pub fn num_programs(axis: usize) -> i32 {
    along(CURRENT.get().grid, axis)
}

#[track_caller]
fn along(values: [i32; 3], axis: usize) -> i32 {
    values.get(axis).copied().unwrap_or_else(|| trap(format!("a grid has no axis {axis}: 0, 1 or 2")))
}

/// The coordinates of `i` in a box of these extents, the last one fastest.
#[must_use]
pub fn unflatten<const R: usize>(mut i: i32, extents: [i32; R]) -> [i32; R] {
    let mut out = [0; R];
    for axis in (1..R).rev() {
        out[axis] = i.remainder(extents[axis]);
        i = i.over(extents[axis]);
    }
    // The first coordinate is the remaining quotient, so different numbers have different coordinates for any extents.
    if let Some(first) = out.first_mut() {
        *first = i;
    }
    out
}

/// The coordinates of `i` in a box of `[rows, columns]`, `G` rows at a time (the last ones may be fewer) and through each
/// group column by column: programs that run at the same time share rows and columns of what they read.
#[must_use]
pub fn unflatten_grouped<const G: i32>(i: i32, extents: [i32; 2]) -> [i32; 2] {
    regroup(unflatten(i, extents), extents, G)
}

/// Reorders the last two of row-major coordinates by groups of rows; coordinates outside of the box stay outside.
pub(super) fn regroup<const R: usize>(mut at: [i32; R], extents: [i32; R], group: i32) -> [i32; R] {
    let ([.., row, column], [.., rows, columns]) = (&mut at[..], &extents[..]) else { return at };
    let (rows, columns) = (*rows, *columns);
    if (0..rows).contains(row) && (0..columns).contains(column) {
        // The number of rows before the group; all groups before the last one are full.
        let (group, columns) = (i64::from(group.clamp(1, rows)), i64::from(columns));
        let before = i64::from(*row) * columns + i64::from(*column);
        let first = before / (group * columns) * group;
        let height = group.min(i64::from(rows) - first);
        let inside = before - first * columns;
        let narrow = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
        (*row, *column) = (narrow(first + inside % height), narrow(inside / height));
    }
    at
}

/// The range of a loop whose loads the compiler overlaps with its computation. Here, the range.
#[must_use]
pub fn pipelined(range: Range<i32>) -> Range<i32> {
    range
}

/// Stops the program. The position is the caller's.
#[track_caller]
pub fn trap(message: impl Into<String>) -> ! {
    let at = Location::caller();
    let (file, line, column) = (at.file(), at.line(), at.column());
    resume_unwind(Box::new(Trap { message: message.into(), program: CURRENT.get().id, file, line, column }))
}

/// Runs `body` once for every program of the grid, the first axis fastest.
///
/// # Errors
/// The first trap; later programs do not run. Memory keeps what was stored before.
pub fn run(grid: [i32; 3], body: impl FnMut()) -> Result<(), Trap> {
    run_roles(grid, &[0], body)
}

/// As [`run`], of a kernel with roles: once for every role of a program, in this order of their numbers.
///
/// # Errors
/// The same as of [`run`].
pub fn run_roles(grid: [i32; 3], roles: &[usize], mut body: impl FnMut()) -> Result<(), Trap> {
    let _outer = Restore { program: CURRENT.get(), roles: Some(begin_program(RoleState::new())) };
    let mut program = || {
        begin_program(RoleState::new());
        for (nth, role) in roles.iter().enumerate() {
            begin_role(*role, roles.len() > 1, nth == 0);
            body();
        }
    };
    let axis = |n: i32| 0..n.max(0);
    for z in axis(grid[2]) {
        for y in axis(grid[1]) {
            for x in axis(grid[0]) {
                CURRENT.set(Program { id: [x, y, z], grid });
                let ended = catch_unwind(AssertUnwindSafe(&mut program));
                arena::clear();
                if let Err(payload) = ended {
                    return match payload.downcast::<Trap>() {
                        Ok(trap) => Err(*trap),
                        Err(panic) => resume_unwind(panic),
                    };
                }
            }
        }
    }
    Ok(())
}

/// Restores the thread's program when `run` ends, also by unwinding.
struct Restore {
    program: Program,
    roles: Option<RoleState>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.program);
        if let Some(roles) = self.roles.take() {
            begin_program(roles);
        }
    }
}
