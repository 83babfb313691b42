//! What the macro states about names, for rustc to check.
//!
//! The names of a kernel are resolved by the macro for devices and by rustc for the reference. Where they could differ, a
//! kernel contains a function in which every variable has a type of its own, and every use states the variable that the macro has found.

/// The type of the variable of number `N`; also the value of a loop with a label.
#[derive(Debug, Clone, Copy)]
pub struct Variable<const N: usize>;

/// The variable of number `N`.
#[diagnostic::on_unimplemented(
    message = "this name is another variable or loop than TITAN takes it for",
    label = "rustc and TITAN find different declarations",
    note = "a macro declares the same name as its caller: rename one of them"
)]
pub trait Is<const N: usize> {}

impl<const N: usize> Is<N> for Variable<N> {}

/// A use of the variable of number `N`.
pub fn is<const N: usize>(_: impl Is<N>) {}

/// The value with which a `break` or `continue` leaves the loop of number `N`.
#[must_use]
pub fn target<const N: usize, L: Is<N>>() -> L {
    unreachable!("no kernel is executed here")
}
