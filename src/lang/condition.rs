//! Conditions of `if`, `while`, `&&` and `||`: one `bool` for the whole program.
//!
//! A kernel's `if c` is `if condition(c)` in the shadow, so that the error for a mask has TITAN's message.

/// A type that can be a condition.
#[diagnostic::on_unimplemented(
    message = "a condition is one `bool`, not `{Self}`",
    label = "not one `bool`",
    note = "a mask: `select(mask, a, b)` chooses element by element, `mask.any::<0>()` and `mask.all::<0>()` reduce it to one `bool`; a number: compare it, as in `n != 0`"
)]
pub trait Condition {
    #[doc(hidden)]
    fn holds(self) -> bool;
}

impl Condition for bool {
    fn holds(self) -> bool {
        self
    }
}

/// The condition.
#[must_use]
pub fn condition<C: Condition>(c: C) -> bool {
    c.holds()
}
