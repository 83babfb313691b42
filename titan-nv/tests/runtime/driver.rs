//! The driver that there is not.

#![expect(unsafe_code, reason = "libraries are opened")]

use titan_nv::runtime::internals::{LIBRARIES, absence};
use titan_nv::runtime::{Absence, Driver, SYMBOLS};

/// Why a library cannot be used, if that is so.
fn of_library(name: &str) -> Option<Absence> {
    // SAFETY: the library does not exist, or it is the system's, which is in this process already.
    unsafe { absence(&[name, "libtitan-has-not-this-one.so"]) }
}

#[test]
fn an_absence_says_what_is_missing_and_what_to_do() {
    let absent = of_library("libtitan-has-no-such-library.so").expect("there is no such library");
    let text = absent.to_string();
    // The message of Windows does not name the file.
    let says = |reason: &str| !reason.is_empty() && (cfg!(windows) || reason.contains("libtitan-has-no-such-library"));
    assert!(matches!(&absent, Absence::NoLibrary { reason } if says(reason) && text.contains(reason)), "{absent:?}");
    assert!(text.contains(LIBRARIES[0]), "{text}");
    assert!(absent.help().contains("install"));
    let old = Absence::MissingSymbols { names: vec!["cuMemAllocAsync", "cuMemFreeAsync"] };
    assert_eq!(
        old.to_string(),
        "NVIDIA's driver library has no function `cuMemAllocAsync`, and one more function is missing"
    );
    assert!(old.help().contains("CUDA 12"));
}

#[test]
fn asking_for_the_driver_never_panics() {
    match Driver::get() {
        Ok(driver) => assert!(!driver.devices().is_empty()),
        Err(absence) => assert!(!absence.to_string().is_empty()),
    }
}

#[test]
fn a_library_without_the_functions_is_told_by_their_names() {
    let library = match std::env::consts::OS {
        "windows" => "kernel32.dll",
        "macos" => "libSystem.B.dylib",
        _ => "libc.so.6",
    };
    let missing = Absence::MissingSymbols { names: SYMBOLS.to_vec() };
    assert_eq!(of_library(library), Some(missing));
}
