//! Tests in processes of their own, with the emulated runtime first on the library path and set as the test says.
#![allow(dead_code, reason = "every test program uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use titan_amd::isa::asm::assemble;
use titan_amd::object::{ArgKind, KernelArg, KernelCode, Program, Resources};

/// Set in the processes that tests start.
const CHILD: &str = "TITAN_HIP_RUNTIME_TEST";

/// After this, a process is taken to hang.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(300);

pub(crate) fn is_child() -> bool {
    std::env::var(CHILD).is_ok()
}

/// Runs this test program again, with only `test` in it, which runs `body` there. Without `missing`, there is no library.
pub(crate) fn process(test: &str, missing: Option<&[&str]>, settings: &[(&str, &str)], body: impl FnOnce()) {
    if is_child() {
        std::thread::spawn(|| {
            std::thread::sleep(LIMIT);
            std::process::abort();
        });
        return body();
    }
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hip-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    if let Some(missing) = missing {
        let library: PathBuf = std::env::current_exe().unwrap().with_file_name("libhip_emulator.so");
        hip_emulator::place::place(&library, &folder, missing).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").env("LD_LIBRARY_PATH", &folder);
    let output = command.envs(settings.iter().copied()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
    assert!(output.status.success() && text.contains("1 passed"), "with {settings:?}:\n{text}");
}

pub(crate) fn with(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    process(test, Some(&[]), settings, body);
}

/// With streams that run as late, as early and as randomly as they may.
pub(crate) fn in_every_order(test: &str, body: impl Fn()) {
    for order in ["late", "early", "random:1", "random:2", "random:3"] {
        with(test, &[("HIP_EMULATOR_ORDER", order)], &body);
        if is_child() {
            return;
        }
    }
}

/// The code object of two kernels: `vector_add`, of x, y, z and a length, 256 work items each; and `stray`, which writes far
/// behind its first argument.
pub(crate) fn code_object() -> Vec<u8> {
    object_with_lds(0)
}

/// The same kernels with a local data share of so many bytes.
pub(crate) fn object_with_lds(lds_bytes: u32) -> Vec<u8> {
    let stray = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_mov_b32_e32 v0, 0\ns_waitcnt lgkmcnt(0)
        s_add_u32 s4, s4, 0x10000000\ns_addc_u32 s5, s5, 0\nglobal_store_dword v0, v0, s[4:5]\ns_endpgm";
    let kernel = |name: &str, text: &str| {
        let pointer = |i: u32| KernelArg { name: None, offset: 8 * i, size: 8, kind: ArgKind::GlobalBuffer };
        let mut args: Vec<KernelArg> = (0..3).map(pointer).collect();
        args.push(KernelArg { name: None, offset: 24, size: 4, kind: ArgKind::ByValue });
        KernelCode {
            name: name.to_owned(),
            code: assemble(text).unwrap_or_else(|e| panic!("{e}")),
            args,
            resources: Resources {
                vgprs: 8,
                agprs: 0,
                sgprs: 32,
                lds_bytes,
                kernarg_bytes: 32,
                grid_axes: 1,
                item_axes: 1,
                ieee: true,
            },
            max_workgroup_size: 256,
        }
    };
    let kernels =
        vec![kernel("vector_add", include_str!("../../../titan-amd/tests/hand/vector_add.s")), kernel("stray", stray)];
    Program { kernels }.to_bytes().unwrap()
}
