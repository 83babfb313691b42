//! The results of the driver, against bindings that are made from the header.

use cudarc::driver::sys::cudaError_enum as Known;
use titan_nv::runtime::internals::names;
use titan_nv::runtime::{DriverError, Kind};

#[test]
fn rows_are_in_order_and_say_something() {
    let codes: Vec<u32> = names().map(|(_, code)| code).collect();
    assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    for row in codes.iter().map(|code| DriverError::new("cuInit", *code, || None)) {
        assert!(!row.meaning().is_empty() && !row.meaning().ends_with('.') && !row.help().is_empty(), "{}", row.name);
    }
}

/// The numbers and names, against those of the bindings, which are made from the header.
#[test]
fn numbers_belong_to_their_names() {
    let bindings = [
        Known::CUDA_ERROR_INVALID_VALUE,
        Known::CUDA_ERROR_OUT_OF_MEMORY,
        Known::CUDA_ERROR_NOT_INITIALIZED,
        Known::CUDA_ERROR_DEINITIALIZED,
        Known::CUDA_ERROR_STUB_LIBRARY,
        Known::CUDA_ERROR_DEVICE_UNAVAILABLE,
        Known::CUDA_ERROR_NO_DEVICE,
        Known::CUDA_ERROR_INVALID_DEVICE,
        Known::CUDA_ERROR_INVALID_IMAGE,
        Known::CUDA_ERROR_INVALID_CONTEXT,
        Known::CUDA_ERROR_MAP_FAILED,
        Known::CUDA_ERROR_NO_BINARY_FOR_GPU,
        Known::CUDA_ERROR_ECC_UNCORRECTABLE,
        Known::CUDA_ERROR_INVALID_PTX,
        Known::CUDA_ERROR_NVLINK_UNCORRECTABLE,
        Known::CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        Known::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        Known::CUDA_ERROR_JIT_COMPILATION_DISABLED,
        Known::CUDA_ERROR_INVALID_SOURCE,
        Known::CUDA_ERROR_OPERATING_SYSTEM,
        Known::CUDA_ERROR_INVALID_HANDLE,
        Known::CUDA_ERROR_ILLEGAL_STATE,
        Known::CUDA_ERROR_NOT_FOUND,
        Known::CUDA_ERROR_ILLEGAL_ADDRESS,
        Known::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        Known::CUDA_ERROR_LAUNCH_TIMEOUT,
        Known::CUDA_ERROR_CONTEXT_IS_DESTROYED,
        Known::CUDA_ERROR_ASSERT,
        Known::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        Known::CUDA_ERROR_HARDWARE_STACK_ERROR,
        Known::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        Known::CUDA_ERROR_MISALIGNED_ADDRESS,
        Known::CUDA_ERROR_INVALID_ADDRESS_SPACE,
        Known::CUDA_ERROR_INVALID_PC,
        Known::CUDA_ERROR_LAUNCH_FAILED,
        Known::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        Known::CUDA_ERROR_NOT_PERMITTED,
        Known::CUDA_ERROR_NOT_SUPPORTED,
        Known::CUDA_ERROR_SYSTEM_NOT_READY,
        Known::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
        Known::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
        Known::CUDA_ERROR_MPS_CONNECTION_FAILED,
        Known::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
        Known::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        Known::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        Known::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        Known::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        Known::CUDA_ERROR_UNKNOWN,
    ];
    for known in bindings {
        let row = names().find(|(_, code)| *code == known as u32).unwrap_or_else(|| panic!("no row for {known:?}"));
        assert_eq!(row.0, format!("{known:?}"));
    }
    // All rows but those that are younger than the bindings.
    assert_eq!(names().count(), bindings.len() + ["CUDA_ERROR_CONTAINED"].len());
}

#[test]
fn results_that_are_not_known_keep_their_number() {
    let error = DriverError::new("cuInit", 4242, || None);
    assert_eq!((error.kind(), error.name.as_str()), (Kind::Other, "CUresult 4242"));
    let error = DriverError::new("cuInit", 4242, || Some("CUDA_ERROR_OF_TOMORROW".to_owned()));
    assert!(error.to_string().ends_with("(CUDA_ERROR_OF_TOMORROW from cuInit)"), "{error}");
}
