//! The only module that reads the environment: `TITAN_DEVICE`.

use std::env::VarError;

/// The variable that chooses the device of `Device::best`.
pub(crate) const DEVICE: &str = "TITAN_DEVICE";

/// The value of `TITAN_DEVICE`; text that is not Unicode is converted lossily.
#[expect(clippy::disallowed_methods, reason = "read when the program runs, not when it is compiled")]
pub(crate) fn device() -> Option<String> {
    match std::env::var(DEVICE) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(raw)) => Some(raw.to_string_lossy().into_owned()),
    }
}
