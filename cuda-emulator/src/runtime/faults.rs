//! What this library has beyond the interface: settings, for tests that cannot choose their environment.

use super::abi::plain;
use super::host::{Out, Text};
use crate::code::Code;
use crate::driver;

plain! {
    /// Sets what `CUDA_EMULATOR_<key>` would have set. Devices and the order count until `cuInit`, the others always.
    fn cuEmulatorSet(key: Text, value: Text) {
        let (key, value) = (key.get()?, value.get()?);
        driver::session().setting().set(&key, &value).map_err(|why| {
            crate::say(&format!("{key}={value}: {why}"));
            Code::INVALID_VALUE
        })
    }

    /// How many calls of a function have failed by request since `FAULT` was set: whether a test has met what it asked for.
    fn cuEmulatorFaults(function: Text, count: Out<u64>) {
        let function = function.get()?;
        count.set(driver::session().setting().struck(&function))
    }
}
