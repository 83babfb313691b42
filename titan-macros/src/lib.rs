//! `#[titan::kernel]`, `#[titan::device]` and `#[titan::constant]`; and `titan::dispatch!`.
//!
//! ```text
//! tokens ─ parse ─▶ ast ─ resolve ─▶ names ─ chain ─▶ items of other macros
//!             │      │         └─ judge ─▶ Rust in which rustc checks what every name is bound to
//!          hygiene   │
//!                    ├─ infer ─▶ lower ─▶ tile IR ─ verify ─▶ text ─ compile! ─▶ artifact      per instance
//!                    └─ shadow ─▶ Rust that rustc checks, and that runs as the reference       per tuple of element types
//! ```
//!
//! Errors are collected in a `ctxt::Ctxt`; if there are any, `expand::fallback` generates an item with which the rest of the user's
//! file still type-checks. After that point nothing can fail. The macro never panics, for any tokens.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a front end picks one shape of a tree among many; the walkers over all of it (resolve, infer, lower, shadow) are \
              exhaustive by hand"
)]

mod ast;
mod backends;
mod cache;
mod chain;
mod clock;
mod compile;
mod consts;
mod ctxt;
mod depth;
#[cfg(test)]
mod determinism;
mod dispatch;
mod embed;
mod entry;
mod env;
mod expand;
mod extents;
mod general;
mod hygiene;
mod infer;
mod instance;
mod items;
mod judge;
mod lower;
mod method;
mod method_pipe;
mod names;
mod nearby;
mod parse;
mod pipeline;
mod place;
mod resolve;
mod shadow;
mod signature;
mod targets;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;
mod told;
mod usage;
mod warning;

use proc_macro::TokenStream;

#[expect(missing_docs, reason = "documented in `titan`, where programs name it and examples of it run")]
#[proc_macro_attribute]
pub fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    clock::expansion("kernel", || entry::kernel(attr.into(), item.into()).into())
}

#[expect(missing_docs, reason = "documented in `titan`, where programs name it and examples of it run")]
#[proc_macro_attribute]
pub fn device(attr: TokenStream, item: TokenStream) -> TokenStream {
    clock::expansion("device", || entry::device(&attr.into(), item.into()).into())
}

#[expect(missing_docs, reason = "documented in `titan`, where programs name it and examples of it run")]
#[proc_macro_attribute]
pub fn constant(attr: TokenStream, item: TokenStream) -> TokenStream {
    clock::expansion("constant", || entry::constant(&attr.into(), item.into()).into())
}

/// One step of an expansion that obtains items from companions. Internal.
#[doc(hidden)]
#[proc_macro]
pub fn step(state: TokenStream) -> TokenStream {
    clock::expansion("step", || entry::step(state.into()).into())
}

/// Called by a step if there is no companion. Internal.
#[doc(hidden)]
#[proc_macro]
pub fn missing(call: TokenStream) -> TokenStream {
    clock::expansion("missing", || entry::missing(call.into()).into())
}

/// Compiles tile IR to the bytes of the artifact. Nested in the expansion of a kernel so that editors need not run it.
#[doc(hidden)]
#[proc_macro]
pub fn compile(text: TokenStream) -> TokenStream {
    clock::expansion("compile", || embed::compile(text.into()).into())
}

/// `dispatch!` of the facade, which passes its path. Internal.
#[doc(hidden)]
#[proc_macro]
pub fn dispatch(tokens: TokenStream) -> TokenStream {
    clock::expansion("dispatch", || dispatch::dispatch(tokens.into()).into())
}
