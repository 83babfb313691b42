//! Golden files: the lane IR and the PTX of a few small kernels (`titan-nv/golden`), so that a change of the lowering is seen as a
//! change of its results. `TITAN_BLESS=1` rewrites them.
//!
//! The comments at the top of a kernel say for which target it is compiled (`; target: sm_80`), and may ask for slots that
//! are released by counters (`; free: sequence`), which no target of today prefers.
//!
//! Deliberately absent: whether the code is right (`execute`, and titan-cpu's `tests/simulator`), and whether it is fast (`loops`).

use std::path::{Path, PathBuf};
use titan_core::driver::{lower, stages};
use titan_core::ir::FreeBy;
use titan_core::plan::plan;
use titan_core::text::parse_one;
use titan_core::verify::verify;
use titan_nv::{Machine, emit, target};

/// The most bytes of all golden files: each kernel uses tiles as small as its feature allows.
const MOST_BYTES: usize = 176 << 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// What a comment at the top says.
fn said<'a>(text: &'a str, what: &str) -> Option<&'a str> {
    let comments = text.lines().take_while(|line| line.starts_with(';'));
    comments.filter_map(|line| line.strip_prefix("; ")?.strip_prefix(what)?.strip_prefix(": ")).next()
}

/// The lane IR and the PTX of a kernel.
fn made(text: &str) -> (String, String) {
    let machine = Machine::from_name(said(text, "target").expect("a target")).expect("a target that exists");
    let kernel = verify(parse_one(text).expect("it parses")).expect("it is right");
    let Some(free) = said(text, "free") else {
        let all = stages(&kernel, machine, true, None).expect("it is compiled");
        return (all.lanes.to_string(), String::from_utf8(all.code.payload).expect("PTX is text"));
    };
    let mut plan = plan(&kernel, &target(machine), true);
    plan.free = FreeBy::from_name(free).expect("a way to release slots");
    let func = lower(&kernel, &plan).expect("it is lowered").func;
    (func.to_string(), emit(&func, machine, None).expect("it is printed").text)
}

/// The first line in which two texts differ, and what stands there.
fn first_difference(old: &str, new: &str) -> String {
    let at = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("the end").to_owned();
    format!("line {}:\n  - {}\n  + {}", at + 1, line(old), line(new))
}

#[test]
fn golden_files_are_current() {
    let bless = std::env::var_os("TITAN_BLESS").is_some();
    let mut sources: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.sort();
    let mut others = sources.clone();
    sources.retain(|path| path.extension().is_some_and(|e| e == "tir"));
    others.retain(|path| !sources.contains(path));
    let (mut wrong, mut bytes) = (Vec::new(), 0);
    for path in &sources {
        let (lanes, ptx) = made(&std::fs::read_to_string(path).unwrap());
        for (kind, new) in [("lanes", lanes), ("ptx", ptx)] {
            let file = path.with_extension(kind);
            others.retain(|other| *other != file);
            bytes += new.len();
            if bless {
                std::fs::write(&file, &new).unwrap();
            }
            let old = std::fs::read_to_string(&file).unwrap_or_default();
            if old != new {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                wrong.push(format!("{name}, {}", first_difference(&old, &new)));
            }
        }
    }
    assert!(wrong.is_empty(), "the code has changed (TITAN_BLESS=1 rewrites the files):\n{}", wrong.join("\n"));
    assert!(others.is_empty(), "no kernel belongs to {others:?}");
    assert!(sources.len() >= 10, "{} kernels", sources.len());
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
}

/// Each file shows the instructions that it is there for.
#[test]
fn golden_files_show_what_they_are_there_for() {
    for (name, instructions) in [
        ("add", &["ld.global.v4", "st.global.v4", "add.rn.f32"][..]),
        ("row_sum", &["shfl.sync.bfly", "cvt.f32.f16"]),
        ("transpose", &["st.shared", "bar.sync", "ld.shared"]),
        ("mma", &["mma.sync.aligned.m16n8k16"]),
        ("gather", &["ld.global", "st.global"]),
        ("gemm_loop", &["cp.async.ca", "cp.async.commit_group", "cp.async.wait_group", "ldmatrix", "mma.sync"]),
        ("roles_mbarrier", &["cp.async.mbarrier.arrive.noinc", "mbarrier.test_wait.parity", "mbarrier.arrive"]),
        ("roles_counter", &["st.release.cta.shared", "ld.acquire.cta.shared"]),
        (
            "gemm_bulk",
            &["cp.async.bulk.tensor", "mbarrier.try_wait", "wgmma.mma_async", "setmaxnreg", "barrier.cluster"],
        ),
        ("attention", &["mma.sync", "ex2.approx", "shfl.sync"]),
    ] {
        let (_, ptx) = made(&std::fs::read_to_string(folder().join(name).with_extension("tir")).unwrap());
        for instruction in instructions {
            assert!(ptx.contains(instruction), "{name} has no `{instruction}`");
        }
    }
}
