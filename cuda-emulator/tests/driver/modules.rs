//! Modules and launches: rejected ones with their messages, and attributes of functions.

use crate::harness::{Cuda, INVALID_VALUE, KERNELS, MISALIGNED, OK, call};
use std::ffi::{CString, c_void};

/// Loads PTX; the result, and the error log.
fn load(cuda: &Cuda, ptx: &str) -> (u32, String) {
    let text = CString::new(ptx).unwrap();
    let (mut module, mut log) = (0_u64, vec![0_u8; 512]);
    let names = [5_u32, 6];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let done = call!(cuda, cuModuleLoadDataEx(
        &raw mut module => *mut u64, text.as_ptr() => *const i8, 2 => u32, names.as_ptr() => *const u32,
        values.as_mut_ptr() => *mut *mut c_void));
    log.truncate(values[1].addr());
    (done, String::from_utf8(log).unwrap())
}

#[test]
fn what_cannot_be_compiled_is_refused_with_a_log() {
    let cuda = Cuda::new(&[("VERSION", "12000")]);
    let ptx = |version: &str, target: &str, body: &str| {
        format!(".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {body} }}\n")
    };
    assert_eq!(load(&cuda, &ptx("8.0", "sm_80", "ret;")), (OK, String::new()));
    let (done, log) = load(&cuda, &ptx("8.4", "sm_80", "ret;"));
    assert_eq!(done, 222);
    assert!(log.contains("Unsupported .version 8.4; current version is '8.0'"), "{log}");
    let (done, log) = load(&cuda, &ptx("8.0", "sm_90", "ret;"));
    assert_eq!(done, 209);
    assert!(log.contains(".target sm_90"), "{log}");
    let (done, log) = load(&cuda, &ptx("8.0", "sm_80", "frob.u32 1;"));
    assert_eq!(done, 218);
    assert!(log.contains("line 4") && log.contains("frob"), "{log}");
    assert_eq!(load(&cuda, "this is no PTX").0, 218);
    assert_eq!(load(&cuda, "\u{7f}ELF").0, 209);
    // Null and what is not there.
    let mut module = 0_u64;
    assert_eq!(
        call!(cuda, cuModuleLoadData(&raw mut module => *mut u64, std::ptr::null() => *const i8)),
        INVALID_VALUE
    );
    assert_eq!(call!(cuda, cuModuleUnload(77 => u64)), 400);
}

#[test]
fn newer_targets_run_what_is_older_except_what_is_exact() {
    let cuda = Cuda::new(&[("DEVICES", "sm_90")]);
    let ptx =
        |target: &str| format!(".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n");
    assert_eq!(["sm_80", "sm_86", "sm_90", "sm_90a"].map(|t| load(&cuda, &ptx(t)).0), [OK; 4]);
    let cuda = Cuda::new(&[("DEVICES", "sm_89")]);
    assert_eq!(["sm_80", "sm_89", "sm_90", "sm_90a"].map(|t| load(&cuda, &ptx(t)).0), [OK, OK, 209, 209]);
    for board in ["sm_100", "sm_120"] {
        let cuda = Cuda::new(&[("DEVICES", board)]);
        assert_eq!(["sm_80", "sm_90", "sm_90a"].map(|t| load(&cuda, &ptx(t)).0), [OK, OK, 209], "{board}");
    }
}

#[test]
fn launches_are_checked() {
    let cuda = Cuda::new(&[]);
    let scale = cuda.kernel(KERNELS, "scale");
    let x = cuda.upload(&[1.0; 2048]);
    let launch = |grid: [u32; 3], block: [u32; 3], shared: u32| cuda.launch_with(scale, (grid, block, shared), 0, &[x]);
    assert_eq!(launch([2, 1, 1], [1024, 1, 1], 0), OK);
    for grid in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1 << 31, 1, 1], [1, 65536, 1], [1, 1, 65536]] {
        assert_eq!(launch(grid, [32, 1, 1], 0), INVALID_VALUE, "{grid:?}");
    }
    for block in [[0, 1, 1], [1025, 1, 1], [1, 1, 65], [32, 32, 2]] {
        assert_eq!(launch([1; 3], block, 0), INVALID_VALUE, "{block:?}");
    }
    assert_eq!(
        call!(cuda, cuLaunchKernel(
        scale => u64, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32, 0 => u64,
        std::ptr::null() => *const u64, std::ptr::null() => *const u64)),
        INVALID_VALUE
    );
    assert_eq!(cuda.launch(12345, (1, 1), 0, &[x]), 400);
    assert_eq!(cuda.launch(scale, (1, 1), 12345, &[x]), 400);
    // Nothing of that stays.
    assert_eq!(call!(cuda, cuCtxSynchronize()), OK);
    assert_eq!(cuda.download(x, 2048), Ok(vec![2.0; 2048]));
}

#[test]
fn much_shared_memory_must_be_asked_for() {
    let cuda = Cuda::new(&[]);
    let dynamic = cuda.kernel(KERNELS, "dynamic");
    let x = cuda.upload(&[3.0; 32]);
    let launch = |shared: u32| cuda.launch_with(dynamic, ([1; 3], [32, 1, 1], shared), 0, &[x]);
    assert_eq!((launch(48 << 10), launch((48 << 10) + 4)), (OK, INVALID_VALUE));
    let set = |bytes: i32| call!(cuda, cuFuncSetAttribute(dynamic => u64, 8 => u32, bytes => i32));
    assert_eq!((set(164 << 10), set(163 << 10)), (INVALID_VALUE, OK));
    assert_eq!((launch(163 << 10), launch((163 << 10) + 4)), (OK, INVALID_VALUE));
    assert_eq!(cuda.download(x, 32), Ok(vec![3.0; 32]));
    // 164 KiB of an SM, one of them the system's: 163 for one block, 81 for each of two.
    let blocks = |shared: usize| {
        let mut blocks = -1;
        let done = call!(cuda, cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &raw mut blocks => *mut i32, dynamic => u64, 32 => i32, shared => usize));
        (done, blocks)
    };
    assert_eq!([163 << 10, 81 << 10, (81 << 10) + 128, 164 << 10].map(blocks), [(OK, 1), (OK, 2), (OK, 1), (OK, 0)]);
    assert_eq!(blocks(0), (OK, 32));
}

#[test]
fn functions_say_what_they_need() {
    let cuda = Cuda::new(&[]);
    let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() .maxntid 128, 1, 1 {\n\
               .shared .align 4 .b8 s[400]; .local .align 4 .b8 l[8]; .reg .b32 %r<20>; .reg .b64 %d<4>; ret; }\n";
    let k = cuda.kernel(ptx, "k");
    let attribute = |number: u32| {
        let mut value = -1;
        let done = call!(cuda, cuFuncGetAttribute(&raw mut value => *mut i32, number => u32, k => u64));
        (done, value)
    };
    assert_eq!([0, 1, 3, 4, 5, 6, 8].map(attribute), [128, 400, 8, 28, 70, 80, 48 * 1024 - 400].map(|v| (OK, v)));
    assert_eq!(attribute(99).0, INVALID_VALUE);
    assert_eq!(cuda.launch(k, (1, 129), 0, &[]), INVALID_VALUE);
}

#[test]
fn variables_belong_to_a_loaded_module() {
    let cuda = Cuda::new(&[]);
    let ptx = CString::new(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 n = 5;\n\
         .visible .entry k() { .reg .b32 %r; ld.global.u32 %r, [n]; add.u32 %r, %r, 1; st.global.u32 [n], %r; ret; }\n",
    )
    .unwrap();
    let modules = [(); 2].map(|()| {
        let mut module = 0_u64;
        assert_eq!(call!(cuda, cuModuleLoadData(&raw mut module => *mut u64, ptx.as_ptr() => *const i8)), OK);
        module
    });
    let mut k = 0_u64;
    let found = call!(cuda, cuModuleGetFunction(&raw mut k => *mut u64, modules[0] => u64, c"k".as_ptr() => *const i8));
    assert_eq!(found, OK);
    assert_eq!(cuda.launch(k, (1, 1), 0, &[]), OK);
    let values = modules.map(|module| {
        let (mut at, mut bytes, mut value) = (0_u64, 0_usize, 0_u32);
        assert_eq!(
            call!(cuda, cuModuleGetGlobal_v2(
            &raw mut at => *mut u64, &raw mut bytes => *mut usize, module => u64, c"n".as_ptr() => *const i8)),
            OK
        );
        assert_eq!(bytes, 4);
        assert_eq!(call!(cuda, cuMemcpyDtoH_v2(&raw mut value => *mut u32, at => u64, 4 => usize)), OK);
        value
    });
    assert_eq!(values, [6, 5]);
    let missing = call!(cuda, cuModuleGetFunction(
        &raw mut k => *mut u64, modules[0] => u64, c"absent".as_ptr() => *const i8));
    assert_eq!(missing, 500);
}

#[test]
fn what_the_emulator_finds_is_the_error_of_hardware() {
    let cuda = Cuda::new(&[]);
    let x = cuda.upload(&[1.0; 32]);
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.launch(scale, (1, 33), 0, &[x]), OK);
    assert_eq!(cuda.sync(0), 700);

    let cuda = Cuda::new(&[]);
    let x = cuda.upload(&[1.0; 32]);
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.launch(scale, (1, 16), 0, &[x + 2]), OK);
    assert_eq!(cuda.sync(0), MISALIGNED);

    // A new life of the primary context has no memory of it.
    assert_eq!(call!(cuda, cuDevicePrimaryCtxRelease_v2(0 => i32)), OK);
    assert_eq!(call!(cuda, cuCtxSynchronize()), 709);
    assert_eq!(cuda.retain(0), OK);
    assert_eq!(call!(cuda, cuCtxSynchronize()), OK);
}
