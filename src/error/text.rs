//! Parts of the messages of errors, and errors that are made of others.

use super::Error;
use std::fmt;
use std::sync::Arc;
use titan_core::launch::{BindError, Rule};

/// A location in the user's source. Columns count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Location {
    /// The file, as rustc names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if only the line is known.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// The help for a launch on a device that cannot run the kernel.
pub(super) const ANOTHER_DEVICE: &str =
    "launch it on another device, such as `Device::cpu()`; `Device::best()` is the one that `TITAN_DEVICE` names";

/// The help for a device that does not exist. The environment variable has no effect on devices that the program names.
pub(super) fn way_to_a_device(asked_by: &str, help: &Option<&'static str>) -> &'static str {
    match help {
        Some(help) => help,
        None if asked_by != "TITAN_DEVICE" => {
            "use `cpu`, or `Device::best()`; GPUs are named `cuda`, `cuda:N`, `hip` and `hip:N`"
        }
        None => "use `cpu`, or leave it unset; GPUs are named `cuda`, `cuda:N`, `hip` and `hip:N`",
    }
}

pub(super) fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!("; {reason}"))
}

/// The text for the file that an error is about.
pub(super) fn in_file(file: Option<&std::path::Path>) -> String {
    file.map_or_else(String::new, |file| format!(" in `{}`", file.display()))
}

/// The text for the free memory that a device reports.
pub(super) fn room(free: Option<(usize, usize)>) -> String {
    free.map_or_else(String::new, |(free, total)| format!(" ({free} of {total} bytes are free)"))
}

impl Error {
    /// The error of `what`, which did not run because something that it depends on failed with `error`.
    pub(crate) fn of_dependency(what: &str, error: Error) -> Error {
        let cause = if let Error::Dependency { cause, .. } = error { cause } else { Arc::new(error) };
        Error::Dependency { what: what.to_owned(), cause }
    }

    /// The error of a launch whose arguments do not match the kernel.
    pub(crate) fn of_bind(kernel: &str, why: BindError) -> Error {
        let (kernel, why) = (kernel.to_owned(), Box::new(why));
        match why.rule() {
            Rule::Shape => Error::Shape { kernel, why },
            Rule::Requirement => Error::Requirement { kernel, why },
            Rule::Grid => Error::Grid { kernel, why },
            Rule::Argument => Error::Argument { kernel, why },
        }
    }
}
