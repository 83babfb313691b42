//! Compiles the kernels, once for all tests of the program: each file at every level of optimization, or in the sample at
//! one of them.

use crate::support::{depth, oracle};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];

/// A code object.
pub(crate) struct Object {
    /// The file with its level, as `small.hip -O1`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The code objects of the files of kernels that compute something; `None` if there is no compiler, which is said.
pub(crate) fn objects() -> Option<&'static [Object]> {
    static OBJECTS: OnceLock<Option<Vec<Object>>> = OnceLock::new();
    let objects = OBJECTS.get_or_init(compile_all).as_deref();
    if objects.is_none() {
        oracle::skipped("kernels that clang compiles");
    }
    objects
}

fn compile_all() -> Option<Vec<Object>> {
    let clang = Clang::find()?;
    let mut files: Vec<_> = std::fs::read_dir(folder()).expect("the folder is there").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    let mut objects = Vec::new();
    for file in files {
        let name = file.file_name().into_string().expect("names are text");
        if Language::of(&name).is_none() || name.starts_with("bad") {
            continue;
        }
        // The sample meets each level in turn.
        let turn = objects.len() % LEVELS.len();
        for level in if depth::full() { &LEVELS[..] } else { &LEVELS[turn..=turn] } {
            objects.push(Object { name: format!("{name} {level}"), bytes: clang.compile(&name, level) });
        }
    }
    Some(objects)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels")
}

#[derive(Clone, Copy)]
enum Language {
    OpenCl,
    Hip,
    C,
    Ir,
}

impl Language {
    fn of(file: &str) -> Option<Language> {
        match file.rsplit_once('.')?.1 {
            "cl" => Some(Language::OpenCl),
            "hip" => Some(Language::Hip),
            "c" => Some(Language::C),
            "ll" => Some(Language::Ir),
            _ => None,
        }
    }

    /// The flags of the language alone, and its header of the folder of kernels.
    fn flags(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Language::OpenCl => {
                let flags =
                    &["-x", "cl", "-cl-std=CL2.0", "-target", TARGET, CPU, "-cl-fp32-correctly-rounded-divide-sqrt"];
                (flags, Some("prelude.h"))
            }
            Language::Hip => {
                let flags = &[
                    "-x",
                    "hip",
                    "--cuda-device-only",
                    "--no-gpu-bundle-output",
                    "-nogpuinc",
                    "--offload-arch=gfx942",
                ];
                (flags, Some("hip.h"))
            }
            Language::C => (&["-x", "c", "-target", TARGET, CPU], None),
            Language::Ir => (&["-x", "ir", "-target", TARGET, CPU], None),
        }
    }
}

const TARGET: &str = "amdgcn-amd-amdhsa";
const CPU: &str = "-mcpu=gfx942";

/// The compiler.
pub(crate) struct Clang(PathBuf);

impl Clang {
    pub(crate) fn find() -> Option<Clang> {
        // clang links with the lld of its version.
        oracle::program("ld.lld").or_else(|| oracle::program("lld"))?;
        oracle::program("clang").map(Clang)
    }

    /// The code object of a file of the folder of kernels.
    pub(crate) fn compile(&self, file: &str, level: &str) -> Vec<u8> {
        let (flags, header) = Language::of(file).expect("a file of kernels").flags();
        let text = |p: &Path| p.to_str().expect("paths are text").to_owned();
        let out = std::env::temp_dir().join(format!("titan-amd-clang-{}{level}-{file}", std::process::id()));
        let mut args: Vec<String> = flags.iter().map(|s| (*s).to_owned()).collect();
        // Results are compared to the bit.
        args.extend(["-mcode-object-version=5", "-nogpulib", "-ffp-contract=off", level].map(str::to_owned));
        if let Some(header) = header {
            args.extend(["-include".to_owned(), text(&folder().join(header))]);
        }
        args.extend(["-o".to_owned(), text(&out), text(&folder().join(file))]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (_, err) = oracle::run(&self.0, &args, "");
        assert!(err.is_empty(), "{file} {level}: {err}");
        let bytes = std::fs::read(&out).expect("clang wrote the code object");
        std::fs::remove_file(&out).expect("the code object is still there");
        bytes
    }
}
