//! cudarc's safe interface over the library, found where its loader looks: each test runs again in a process whose
//! `LD_LIBRARY_PATH` has it.

#![expect(unsafe_code, reason = "launches are unsafe in cudarc")]

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use std::process::Command;

const PLACED: &str = "CUDA_EMULATOR_PLACED";

/// Whether this is the process with the library; if not, runs the test in one.
fn placed(test: &str, settings: &[(&str, &str)]) -> bool {
    if std::env::var_os(PLACED).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let library = program.with_file_name("libcuda_emulator.so");
    let folder = std::env::temp_dir().join(format!("cuda-emulator-{}-{test}", std::process::id()));
    cuda_emulator::place::place(&library, &folder, &[]).unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", test, "--nocapture"]).env("LD_LIBRARY_PATH", &folder).env(PLACED, "1");
    let done = child.envs(settings.iter().copied()).status().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(done.success(), "{test}");
    false
}

const PTX: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n) {
    .reg .b64 %p; .reg .b32 %i<4>; .reg .f32 %v<2>; .reg .pred %q;
    ld.param.u64 %p, [x]; ld.param.f32 %v1, [by]; ld.param.u32 %i1, [n];
    mov.u32 %i0, %tid.x; mov.u32 %i2, %ctaid.x; mov.u32 %i3, %ntid.x; mad.lo.s32 %i0, %i2, %i3, %i0;
    setp.ge.u32 %q, %i0, %i1;
    @%q ret;
    mad.wide.u32 %p, %i0, 4, %p; ld.global.f32 %v0, [%p]; mul.f32 %v0, %v0, %v1; st.global.f32 [%p], %v0;
    ret;
}
";

#[test]
fn slices_streams_and_events() {
    if !placed("slices_streams_and_events", &[("CUDA_EMULATOR_ORDER", "random:4")]) {
        return;
    }
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.compute_capability().unwrap(), (8, 0));
    assert!(context.has_async_alloc());
    let scale = context.load_module(Ptx::from_src(PTX)).unwrap().load_function("scale").unwrap();
    let (one, other) = (context.new_stream().unwrap(), context.default_stream());
    let host: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let mut x = one.clone_htod(&host).unwrap();
    let n = 1000_u32;
    for (stream, by) in [(&one, 2.0_f32), (&other, 0.5), (&one, 3.0)] {
        let mut launch = stream.launch_builder(&scale);
        launch.arg(&mut x).arg(&by).arg(&n);
        // SAFETY: the kernel has these parameters, and `x` has `n` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.unwrap();
    }
    let y = other.clone_dtod(&x).unwrap();
    let zeros = one.alloc_zeros::<u8>(7).unwrap();
    assert_eq!(one.clone_dtoh(&zeros).unwrap(), [0; 7]);
    let expected: Vec<f32> = host.iter().map(|v| v * 3.0).collect();
    assert_eq!(other.clone_dtoh(&y).unwrap(), expected);
    drop((x, y, zeros));
    context.synchronize().unwrap();
    let (free, total) = context.mem_get_info().unwrap();
    assert_eq!(free, total);
}

#[test]
fn errors_reach_the_program() {
    if !placed("errors_reach_the_program", &[("CUDA_EMULATOR_FAULT", "cuMemAllocAsync:2:2")]) {
        return;
    }
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let first = stream.alloc_zeros::<f32>(8).unwrap();
    let error = stream.alloc_zeros::<f32>(8).unwrap_err();
    assert!(format!("{error:?}").contains("CUDA_ERROR_OUT_OF_MEMORY"), "{error:?}");
    assert_eq!(stream.clone_dtoh(&first).unwrap(), [0.0; 8]);
    let event = context.new_event(None).unwrap();
    event.record(&stream).unwrap();
    event.synchronize().unwrap();
    assert!(event.is_complete());
}
