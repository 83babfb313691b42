//! LLVM's tools know what is emitted: every instruction is disassembled, and the metadata are valid.

use crate::launch::Ready;
use crate::nests::functions;
use crate::support::oracle;

#[test]
fn llvm_reads_what_is_emitted() {
    let programs = ["llvm-objdump", "llvm-readelf"].map(oracle::program);
    let [Some(objdump), Some(readelf)] = programs else {
        return oracle::skipped("emitted code objects against llvm-objdump and llvm-readelf");
    };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("codegen");
    std::fs::create_dir_all(&folder).expect("a folder for object files");
    let cases = crate::cases::registers().into_iter().map(|mut case| {
        case.func.lanes = 64;
        case.func
    });
    let nests = functions(test_depth::cases(200, 20)).map(|(_, func)| func);
    let (mut objects, mut instructions) = (0, 0);
    for (i, func) in cases.chain(nests).enumerate() {
        let Ok(ready) = Ready::new(&func) else { continue };
        // In the quick depth every seventh of the operations.
        if i % 7 != 0 && !test_depth::is_full() && func.name != "nest" {
            continue;
        }
        let path = folder.join("kernel.hsaco");
        std::fs::write(&path, &ready.emitted.object).expect("the object is written");
        let path = path.to_str().expect("a path in text");
        let (text, error) = oracle::run(&objdump, &["-d", "--mcpu=gfx942", path], "");
        assert!(error.is_empty(), "{}: {error}", func.name);
        assert!(!text.contains("unknown") && !text.contains(".long"), "{}: {text}", func.name);
        let own = ready.emitted.code.to_string();
        let emitted = own.lines().filter(|l| l.starts_with("    ") && !l.starts_with("    start")).count();
        let read = text.lines().filter(|l| l.contains("//")).count();
        assert!(read >= emitted, "{}: {read} instructions, not {emitted}\n{text}", func.name);
        let (notes, error) = oracle::run(&readelf, &["--notes", path], "");
        assert!(error.is_empty() && !notes.contains("Invalid"), "{}: {error}{notes}", func.name);
        assert!(notes.contains(&format!("{}.kd", ready.emitted.entry)), "{notes}");
        (objects, instructions) = (objects + 1, instructions + emitted);
    }
    assert!(objects > 40 && instructions > 1000, "{objects} objects, {instructions} instructions");
}
