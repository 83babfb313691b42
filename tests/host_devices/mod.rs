//! The devices on which the tests of host code run.

use titan::Device;

/// The devices that need no hardware: the CPU, and the emulators of each vendor's targets.
pub(crate) fn devices() -> Vec<Device> {
    #[cfg_attr(not(feature = "emulator"), expect(unused_mut, reason = "there are no others"))]
    let mut all = vec![Device::cpu()];
    #[cfg(feature = "emulator")]
    all.extend(["sm_80", "sm_90a"].map(|target| Device::emulator(target).expect("an emulator")));
    #[cfg(all(feature = "emulator", feature = "hip"))]
    all.push(Device::emulator("gfx942").expect("an emulator"));
    all
}
