use std::time::Instant;
use titan_core::{ir::Elem, lane::MmaAtom, lower, plan, text, verify};
fn atom(m: u32, n: u32, k: u32, a: Elem, b: Elem, acc: Elem) -> MmaAtom { MmaAtom { m, n, k, a, b, acc } }
fn main() {
    let target = plan::Target {
        name: "sm_80", lanes: 32, max_warps: 32, registers: 255, shared_bytes: 99 * 1024,
        atoms: vec![
            atom(16, 8, 16, Elem::F16, Elem::F16, Elem::F32), atom(16, 8, 16, Elem::Bf16, Elem::Bf16, Elem::F32),
            atom(16, 8, 8, Elem::Tf32, Elem::Tf32, Elem::F32), atom(16, 8, 32, Elem::I8, Elem::I8, Elem::I32),
            atom(8, 8, 4, Elem::F64, Elem::F64, Elem::F64),
        ],
        copy_async: true, load_matrix: true, fp8_convert: false, bf16_arithmetic: false,
    };
    let mut bad = 0; let mut good = 0;
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut files: Vec<_> = std::fs::read_dir("/tmp/tir").unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for f in files {
        if !f.to_string_lossy().contains(&filter) { continue; }
        let src = std::fs::read_to_string(&f).unwrap();
        let k = match text::parse_one(&src) { Ok(k) => k, Err(e) => { println!("{f:?}: parse {e:?}"); continue } };
        let Ok(v) = verify::verify(k) else { continue };
        for aligned in [true, false] {
            let t = Instant::now();
            let p = plan::plan(&v, &target, aligned);
            let planned = t.elapsed();
            match lower::lower(&v, &p) {
                Ok(l) => { good += 1; if filter != "" { println!("{f:?} aligned={aligned} ops {} shared {} barriers {} plan {planned:?} all {:?}", l.func.ops.len(), l.func.shared_bytes, l.barriers, t.elapsed());
                    for n in &p.notes { println!("  {n}"); }
                    if std::env::args().nth(2).is_some() { println!("{}", l.func); } } }
                Err(e) => { bad += 1; println!("{f:?} aligned={aligned}: {e}") }
            }
        }
    }
    println!("good {good} bad {bad}");
}
