//! `tprint!`, `tassert!` and `static_assert!`: debugging of kernels.

use std::cell::RefCell;

use super::pipeline::once;
use super::shape::Shape;
use super::tile::Tile;

thread_local! {
    static PRINTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Prints a line from a kernel, with a format string as of `format!`; tiles are printed as nested lists.
#[macro_export]
macro_rules! tprint {
    ($($arg:tt)*) => {
        $crate::lang::emit_print(::std::format!($($arg)*))
    };
}

/// Traps unless a condition holds; a mask must hold for all elements. A format string as of `format!` may follow.
#[macro_export]
macro_rules! tassert {
    ($condition:expr $(,)?) => {
        if !$crate::lang::Holds::holds($condition) {
            $crate::lang::trap(::std::concat!("assertion failed: ", ::std::stringify!($condition)))
        }
    };
    ($condition:expr, $($arg:tt)+) => {
        if !$crate::lang::Holds::holds($condition) {
            $crate::lang::trap(::std::format!($($arg)+))
        }
    };
}

/// Checks a condition on constants when the instance is compiled. A literal message may follow.
#[macro_export]
macro_rules! static_assert {
    ($($arg:tt)+) => {
        const { ::std::assert!($($arg)+) }
    };
}

/// A condition of `tassert!`.
#[diagnostic::on_unimplemented(
    message = "`tassert!` takes a `bool` or a mask, not `{Self}`",
    label = "not a condition"
)]
pub trait Holds {
    #[doc(hidden)]
    fn holds(self) -> bool;
}

impl Holds for bool {
    fn holds(self) -> bool {
        self
    }
}

impl<S: Shape> Holds for Tile<bool, S> {
    fn holds(self) -> bool {
        self.values().iter().all(|x| *x)
    }
}

/// Called by `tprint!`: the line goes to [`capture_prints`] if that is running on this thread, else to stdout.
pub fn emit_print(line: String) {
    once(|| print(line));
}

#[expect(clippy::print_stdout, reason = "the author of the kernel asked for this output")]
fn print(line: String) {
    let left = PRINTED.with_borrow_mut(|lines| match lines {
        Some(lines) => {
            lines.push(line);
            None
        }
        None => Some(line),
    });
    if let Some(line) = left {
        println!("{line}");
    }
}

/// Runs `f`; returns its value and the lines that kernels printed on this thread while it ran.
pub fn capture_prints<R>(f: impl FnOnce() -> R) -> (R, Vec<String>) {
    let outer = PRINTED.replace(Some(Vec::new()));
    let value = f();
    (value, PRINTED.replace(outer).unwrap_or_default())
}
