//! Commands on a program: what is listed, checked, run and printed of the kernels that `cargo build` embedded in it.

use std::path::PathBuf;
use std::process::{Command, Output};
use titan_core::artifact::{Artifact, Assumption, Variant};
use titan_core::text::{parse_one, print};

const RING: &str = include_str!("files/ring.tir");
const OVERLAP: &str = include_str!("files/overlap.tir");
const GEMM: &str = include_str!("files/gemm.tir");

fn titan(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_titan")).args(args).output().expect("the tool runs")
}

/// The stdout of a run, which must end with this status.
fn stdout(args: &[&str], status: i32) -> String {
    let output = titan(args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a run that cannot use its file says.
fn refusal(args: &[&str]) -> String {
    let output = titan(args);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// A file that is removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("titan-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The artifact of a kernel with its tile IR, and with code for one target under an assumption.
fn artifact(text: &str) -> Vec<u8> {
    let kernel = parse_one(text).expect("tile IR");
    let cpu = Variant { target: "cpu".to_owned(), payload: print(&kernel).into_bytes(), ..Variant::default() };
    let gpu = Variant {
        target: "sm_80".to_owned(),
        assumptions: vec![Assumption::UnitStride { param: 0, axis: 1 }],
        shared_bytes: 4096,
        threads: 128,
        notes: vec!["two slots".to_owned()],
        payload: b"code".to_vec(),
        ..Variant::default()
    };
    let refused = vec![("sm_90a".to_owned(), "[T0902] it is too large".to_owned())];
    Artifact { kernel: kernel.sig.full_name(), variants: vec![cpu, gpu], refused }.encode()
}

/// An executable as far as the commands see it: artifacts between other bytes, among which is the magic number.
fn program(artifacts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x89TITAN\r\n\x89TITAN\r\n\xff\xff\xff\xff rest\x89\x89TITAN".to_vec();
    for artifact in artifacts {
        bytes.extend(artifact);
        bytes.extend([0x89, 0xFF, 0]);
    }
    bytes.extend(b"\x89TITAN\r\n");
    bytes
}

#[test]
fn list_says_what_is_embedded() {
    let file = File::new("list", &program(&[artifact(GEMM), artifact(RING)]));
    let text = stdout(&["list", file.path()], 0);
    let expected = "gemm::<f16, 128, 64, 32>\n  cpu\n  sm_80: 128 threads, 4096 bytes of shared memory\n    \
                    if `a` is contiguous along axis 1\n    - two slots\n  sm_90a: no code: [T0902] it is too large\nring\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with(": 2 kernels\n"), "{text}");
    assert!(stdout(&["list", file.path(), "ring"], 0).starts_with("ring\n"));
    let told = refusal(&["list", file.path(), "rung"]);
    assert!(told.contains("no kernel `rung`; the kernels are `gemm::<f16, 128, 64, 32>`, `ring`"), "{told}");
}

#[test]
fn kernels_of_a_program_are_checked_run_printed_and_compiled() {
    let file = File::new("all", &program(&[artifact(GEMM), artifact(OVERLAP), artifact(RING)]));
    let path = file.path();
    let text = stdout(&["check", path], 1);
    assert!(text.contains("error[T0402]") && text.ends_with(": 1 error\n"), "{text}");
    for name in ["gemm", "gemm::<f16, 128, 64, 32>", "gemm::<f16,128,64,32>", "ring"] {
        assert!(stdout(&["check", path, name], 0).ends_with(": 1 kernel, no errors\n"), "{name}");
    }
    let told = refusal(&["check", path, "gemm::<f16, 128, 64, 16>"]);
    assert!(told.contains("no kernel `gemm::<f16, 128, 64, 16>`; the kernels are `gemm::<"), "{told}");
    let svg = File::new("timeline.svg", b"");
    let text = stdout(&["sim", path, "ring", "--set", "n=3", "--timeline", svg.path()], 0);
    assert!(text.contains("`ring`") && text.contains("no errors found"), "{text}");
    assert!(std::fs::read_to_string(&svg.0).expect("a picture").contains("<svg"));
    assert_eq!(
        stdout(&["fmt", path, "gemm"], 0),
        format!("; gemm::<f16, 128, 64, 32>\n{}", print(&parse_one(GEMM).expect("tile IR")))
    );
    assert!(stdout(&["emit", path, "gemm", "--stage", "ptx"], 0).contains(".visible .entry"));
    assert!(stdout(&["explain", path, "gemm"], 0).starts_with("kernel `gemm::<f16, 128, 64, 32>`\n"));
    assert!(stdout(&["opt", path, "ring", "--passes", "fence"], 0).starts_with("kernel @ring("));
}

/// A finding of an instance names it, so that the command repeats this one.
#[test]
fn a_finding_of_an_instance_is_repeated_by_its_name() {
    let text = include_str!("files/one_missing.tir").replacen("@ring(", "@ring<D = 3>(", 1);
    let file = File::new("instances", &program(&[artifact(&text), artifact(RING)]));
    let found = stdout(&["sim", file.path(), "ring::<3>", "--seed", "3"], 1);
    assert!(found.contains("error[deadlock]") && found.contains(" 'ring::<3>' --schedule "), "{found}");
}

#[test]
fn programs_that_cannot_be_used_say_why() {
    let whole = artifact(RING);
    let nothing = File::new("nothing", &program(&[]));
    for command in
        [&["list"][..], &["check"], &["sim"], &["fmt"], &["emit"], &["explain"], &["opt", "--passes", "fence"]]
    {
        let told = refusal(&[command, &[nothing.path()]].concat());
        assert!(told.contains("neither a text, nor a program with kernels of TITAN"), "{command:?}: {told}");
    }
    let cut = File::new("cut", &[&b"\xff"[..], &whole[..whole.len() - 1]].concat());
    assert!(refusal(&["list", cut.path()]).contains("[T0806] the artifact has "), "{}", refusal(&["list", cut.path()]));
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    let damaged = File::new("damaged", &program(&[whole.clone(), damaged]));
    assert!(refusal(&["check", damaged.path()]).contains("its checksum does not agree"));
    let mut newer = whole;
    newer[8] += 1;
    let newer = File::new("newer", &program(&[newer]));
    assert!(refusal(&["sim", newer.path()]).contains("made by a newer TITAN"));
}
