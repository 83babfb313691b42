//! The numbers, names and prototypes of the runtime against AMD's header, where there is one.
//!
//! The header is searched in the folder `TITAN_HIP`, in `/opt/rocm/include`, and in Triton's package for the Python that
//! `TITAN_PYTHON` names, or `python3`; a C compiler is needed too. Otherwise the test reports that it is skipped. The numbers
//! were compared with the header of version 7.1.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use titan_amd::runtime::SYMBOLS;
use titan_amd::runtime::internals::{NUMBERS, PROPERTIES_ROOM, PROTOTYPES, names};

fn header() -> Option<PathBuf> {
    let python = std::env::var_os("TITAN_PYTHON").unwrap_or_else(|| "python3".into());
    let script = "import triton.backends.amd as a; print(list(a.__path__)[0] + '/include')";
    let triton = Command::new(python).args(["-c", script]).stderr(Stdio::null()).output().ok();
    let triton = triton.filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    let places = [std::env::var_os("TITAN_HIP").map(PathBuf::from), Some("/opt/rocm/include".into())];
    let all = places.into_iter().flatten().chain(triton.map(|t| PathBuf::from(t.trim())));
    all.into_iter().find(|folder| folder.join("hip/hip_runtime_api.h").is_file())
}

fn compiler() -> Option<&'static str> {
    let runs = |c: &&str| Command::new(c).arg("--version").output().is_ok_and(|o| o.status.success());
    ["cc", "clang-19", "clang", "gcc"].into_iter().find(runs)
}

/// The expected numbers, by expression in C.
fn numbers() -> Vec<(String, u64)> {
    let room = (format!("sizeof(hipDeviceProp_tR0600) <= {PROPERTIES_ROOM}"), 1);
    let numbers = NUMBERS.iter().map(|(expression, value)| ((*expression).to_owned(), *value));
    numbers.chain([room]).chain(names().map(|(name, code)| (name.to_owned(), u64::from(code)))).collect()
}

/// A type of the table in C. Whether something is constant differs between versions, and is left out on both sides.
fn spelled(function: &str, ty: &str) -> String {
    let plain = ty.replace("const ", "mut ");
    if let Some(to) = plain.strip_prefix("*mut ") {
        if function == "hipGetDevicePropertiesR0600" && to == "c_void" {
            return "hipDeviceProp_tR0600*".to_owned();
        }
        return format!("{}*", spelled("", to));
    }
    let handle = plain.strip_prefix("Hip").map(|h| format!("hip{h}_t"));
    let known = match plain.as_str() {
        "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "c_uint" => "unsigned",
        "u8" => "unsigned char",
        "usize" => "size_t",
        "u64" => "unsigned long long",
        "KernelNodeParams" => "hipKernelNodeParams",
        "f32" => "float",
        "Code" => "hipError_t",
        "DevicePtr" => "void*",
        _ => return handle.unwrap_or_else(|| panic!("the type `{ty}` of `{function}` has no spelling in C")),
    };
    known.to_owned()
}

fn program() -> String {
    let mut text = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        #include <string.h>\n#define const\n#define __HIP_PLATFORM_AMD__ 1\n#include <hip/hip_runtime_api.h>\nint main(void) {\n"
        .to_owned();
    for (expression, _) in numbers() {
        writeln!(text, "printf(\"%s = %llu\\n\", \"{expression}\", (unsigned long long)({expression}));").unwrap();
    }
    for (name, arguments, result) in PROTOTYPES {
        let arguments: Vec<String> = arguments.iter().map(|a| spelled(name, a)).collect();
        let ty = format!("{} ({})", spelled(name, result), arguments.join(", "));
        let same = format!("__builtin_types_compatible_p(__typeof__({name}), {ty})");
        writeln!(text, "printf(\"{name} = %d\\n\", {same});").unwrap();
    }
    text + "return 0;\n}\n"
}

/// The output of a program that the compiler makes of this text.
fn run(compiler: &str, include: &Path, text: &str) -> BTreeMap<String, u64> {
    let binary = std::env::temp_dir().join(format!("titan-amd-header-{}", std::process::id()));
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-w", "-x", "c", "-", "-I"]).arg(include).arg("-o").arg(&binary);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "the compiler refuses:\n{text}");
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_file(&binary).unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let pair = |l: &str| l.rsplit_once(" = ").map(|(k, v)| (k.to_owned(), v.parse().unwrap())).unwrap();
    lines.lines().map(pair).collect()
}

#[test]
fn numbers_and_prototypes_are_those_of_the_header() {
    let (Some(include), Some(compiler)) = (header(), compiler()) else {
        let line = b"SKIPPED numbers of the HIP runtime: no hip/hip_runtime_api.h (TITAN_HIP), or no C compiler\n";
        return std::io::stderr().write_all(line).unwrap();
    };
    let said = run(compiler, &include, &program());
    let functions = PROTOTYPES.iter().map(|(name, ..)| ((*name).to_owned(), 1));
    let mut compared = 0;
    for (expression, ours) in numbers().into_iter().chain(functions) {
        assert_eq!(said.get(&expression), Some(&ours), "{expression}");
        compared += 1;
    }
    assert!(compared >= 14 + 25 + SYMBOLS.len(), "{compared}");
}
