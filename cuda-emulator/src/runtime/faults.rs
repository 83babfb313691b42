//! Extensions of this library beyond the driver's interface: settings, for tests that cannot choose their environment.

use super::abi::plain;
use super::host::{Out, Text};
use crate::code::Code;
use crate::driver;

plain! {
    /// Sets the value that `CUDA_EMULATOR_<key>` would have set. Devices and the order can be set until `cuInit`, the others always.
    fn cuEmulatorSet(key: Text, value: Text) {
        let (key, value) = (key.get()?, value.get()?);
        driver::session().setting().set(&key, &value).map_err(|why| {
            crate::say(&format!("{key}={value}: {why}"));
            Code::INVALID_VALUE
        })
    }

    /// The number of calls of a function that have failed by request since `FAULT` was set, so that tests can check that they were reached.
    fn cuEmulatorFaults(function: Text, count: Out<u64>) {
        let function = function.get()?;
        count.set(driver::session().setting().struck(&function))
    }
}
