//! A value that is created at its first use; if that fails, the next use tries again.

use super::lock;
use std::sync::{Mutex, OnceLock};

/// A value that is initialized once, by a function that may fail. Failures are not kept: what the driver refuses now, for
/// example for lack of memory, it may grant later.
#[derive(Debug, Default)]
pub struct Once<T> {
    value: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Once<T> {
    /// Creates an empty cell.
    #[must_use]
    pub const fn new() -> Self {
        Once { value: OnceLock::new(), making: Mutex::new(()) }
    }

    /// The value, created by `make` if there is none yet. One thread at a time creates it.
    ///
    /// # Errors
    /// The error of `make`; the next call tries again.
    pub fn get_or_try<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _alone = lock(&self.making);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(self.value.get_or_init(|| made))
    }
}
