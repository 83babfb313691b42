//! Compiles the kernels, once for all tests of the program.

use crate::support::oracle;
use std::path::Path;
use std::sync::OnceLock;

/// A code object, and what it is called.
type Object = (String, Vec<u8>);

/// Each file's code object by its name and how it was optimized; `None` if there is no compiler, which is said.
pub(crate) fn objects() -> Option<&'static [Object]> {
    static OBJECTS: OnceLock<Option<Vec<Object>>> = OnceLock::new();
    let objects = OBJECTS.get_or_init(compile).as_deref();
    if objects.is_none() {
        oracle::skipped("kernels that clang compiles");
    }
    objects
}

fn compile() -> Option<Vec<Object>> {
    let clang = oracle::program("clang")?;
    // clang links with the lld of its version.
    oracle::program("ld.lld").or_else(|| oracle::program("lld"))?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("the folder is there").flatten().collect();
    files.retain(|f| f.path().extension().is_some_and(|e| e == "cl"));
    files.sort_by_key(std::fs::DirEntry::path);
    let out = std::env::temp_dir().join(format!("titan-amd-clang-{}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a folder for code objects");
    let prelude = folder.join("prelude.h");
    let levels = ["-O0", "-O2"];
    // Without optimization, elements of matrices are chosen by indexed registers, which the tables do not have.
    let indexes = |file: &std::fs::DirEntry, level: &str| level == "-O0" && file.file_name() == "matrix.cl";
    let all = files.iter().flat_map(|file| levels.map(|level| (file, level)));
    let all = all.filter(|(file, level)| !indexes(file, level)).map(|(file, level)| {
        let name = format!("{} {level}", file.file_name().into_string().expect("names are text"));
        let (object, source) = (out.join(&name), file.path());
        let text = |p: &Path| p.to_str().expect("paths are text").to_owned();
        let mut args: Vec<String> = FLAGS.iter().map(|s| (*s).to_owned()).collect();
        args.extend([
            level.to_owned(),
            "-include".to_owned(),
            text(&prelude),
            "-o".to_owned(),
            text(&object),
            text(&source),
        ]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (_, err) = oracle::run(&clang, &args, "");
        assert!(err.is_empty(), "{name}: {err}");
        (name, std::fs::read(&object).expect("clang wrote the code object"))
    });
    let all = all.collect();
    std::fs::remove_dir_all(&out).expect("the folder is still there");
    Some(all)
}

const FLAGS: &[&str] = &[
    "-x",
    "cl",
    "-cl-std=CL2.0",
    "-target",
    "amdgcn-amd-amdhsa",
    "-mcpu=gfx942",
    "-mcode-object-version=5",
    "-nogpulib",
    // Results are compared to the bit.
    "-ffp-contract=off",
    "-cl-fp32-correctly-rounded-divide-sqrt",
];
