//! The edge between C and the driver.
//!
//! `plain!` functions may be called before `cuInit`, `started!` ones only after it, and `within!` ones need a current context, whose
//! sticky error they return if it has one.

use crate::code::{Code, Done};
use crate::driver::{self, Session};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function; a panic becomes `CUDA_ERROR_UNKNOWN`.
pub(super) fn edge(name: &str, body: impl FnOnce() -> Done) -> u32 {
    let run = || {
        if driver::inside_host_function() {
            crate::say(&format!("{name}: a function of cuLaunchHostFunc must not call the driver"));
            return Err(Code::NOT_PERMITTED);
        }
        let mut session = driver::session();
        session.count_call();
        if session.setting().without.iter().any(|f| f == name) {
            return Err(Code::NOT_SUPPORTED);
        }
        let fault = session.setting().fault(name);
        drop(session);
        match fault {
            None => body(),
            Some(Code(0)) => Ok(()),
            Some(code) => Err(code),
        }
    };
    let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is given");
        crate::say(&format!("{name}: a mistake of this library: {text}"));
        Err(Code::UNKNOWN)
    });
    if driver::session().setting().log {
        crate::say(&match done {
            Ok(()) => name.to_owned(),
            Err(code) => format!("{name}: {code}"),
        });
    }
    done.map_or_else(|code| code.0, |()| 0)
}

/// Calls `body` with the driver locked, after `cuInit`.
pub(super) fn after_start(body: impl FnOnce(&mut Session) -> Done) -> Done {
    let mut session = driver::session();
    if !session.has_started() {
        return Err(Code::NOT_INITIALIZED);
    }
    body(&mut session)
}

/// Calls `body` with the current context.
pub(super) fn in_context(body: impl FnOnce(&mut Session, u64) -> Done) -> Done {
    after_start(|session| {
        let context = driver::current().ok_or(Code::INVALID_CONTEXT)?;
        session.sticky(context)?;
        body(session, context)
    })
}

/// Defines functions that have no precondition.
macro_rules! plain {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        // SAFETY: no other library of the program defines a symbol of the driver.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::runtime::abi::edge(stringify!($name), || $body)
        }
    )*};
}

/// Defines functions that need `cuInit`.
macro_rules! started {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = |$session:ident| $body:block)*) => {$(
        $(#[$meta])*
        // SAFETY: no other library of the program defines a symbol of the driver.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::runtime::abi::edge(stringify!($name), || $crate::runtime::abi::after_start(|$session| $body))
        }
    )*};
}

/// Defines functions that need a context.
macro_rules! within {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = |$session:ident, $context:ident| $body:block)*) => {$(
        $(#[$meta])*
        // SAFETY: no other library of the program defines a symbol of the driver.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::runtime::abi::edge(stringify!($name), || $crate::runtime::abi::in_context(|$session, $context| $body))
        }
    )*};
}

pub(super) use {plain, started, within};
