use std::time::Instant;
use titan_core::{text, verify};
fn main() {
    let mut bad = 0; let mut good = 0;
    let filter = std::env::args().nth(1).unwrap_or_default();
    let machine = titan_nv::Machine::from_name("sm_80").unwrap();
    let mut files: Vec<_> = std::fs::read_dir("/tmp/tir").unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let _ = std::fs::create_dir_all("/tmp/ptx");
    let mut slow = Vec::new();
    for f in files {
        if !f.to_string_lossy().contains(&filter) { continue; }
        let src = std::fs::read_to_string(&f).unwrap();
        let k = match text::parse_one(&src) { Ok(k) => k, Err(e) => { println!("{f:?}: parse {e:?}"); continue } };
        let Ok(v) = verify::verify(k) else { continue };
            let t = Instant::now();
            match titan_nv::compile(&v, machine, Some(("kernel.rs", 1))) {
                Ok(l) => { good += 1; slow.push((t.elapsed(), f.clone())); for (i, v) in l.iter().enumerate() {
                    std::fs::write(format!("/tmp/ptx/{}_{i}.ptx", f.file_stem().unwrap().to_string_lossy()), &v.payload).unwrap();
                    if filter != "" { println!("{f:?} {:?} shared {} {} bytes", v.config, v.shared_bytes, v.payload.len()); for n in &v.notes { println!("   {n}"); } }
                } }
                Err(e) => { bad += 1; println!("{f:?}: {e}") }
            }
    }
    slow.sort(); for s in slow.iter().rev().take(5) { println!("{s:?}"); }
    println!("good {good} bad {bad}");
}
