//! Embedded code with one thing wrong: the emulator must say so, with the line of the PTX and the line of the kernel here.
//!
//! Each test edits the PTX of a kernel that `cargo build` embedded, one line at a time, and launches the result like any other
//! kernel. Edits that leave the program legal, such as another row of the same tile, must change what it computes.

use titan::__private::KernelRef;
use titan::prelude::*;
use titan::{Error, KernelInfo, Launch, VariantInfo};
use titan_core::artifact::{Artifact, Variant};

const TARGET: &str = "sm_80";

/// Products of tiles with edges: copies to shared memory, matrices from there, sums from one iteration to the next.
#[titan::kernel(grid(cdiv(M, 48), cdiv(N, 32)))]
fn product(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(K, N)] b: &Tensor<f16, 2>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 48, 32>::zeros();
    for k in pipelined(0..cdiv(K, 16)) {
        acc = mma(a.load_tile::<48, 16>([m, k]), b.load_tile::<16, 32>([k, n]), acc);
    }
    y.store_tile([m, n], acc);
}

/// A reduction across warps, followed by a transposition that uses the same shared memory.
#[titan::kernel(grid(cdiv(M, 16)))]
fn turned(#[shape(M, 48)] x: &Tensor<f32, 2>, #[shape(M, 48)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let v = x.load_tile::<16, 48>([m, 0]);
    let sums = v.reduce_sum::<0>();
    let turned = (v + sums.row()).reshape::<48, 16>().t().reshape::<16, 48>();
    y.store_tile([m, 0], turned - turned.reduce_max::<0>().row());
}

fn embedded(name: &str) -> KernelInfo {
    titan::kernels().unwrap().into_iter().find(|k| k.name == name).unwrap()
}

/// The variant that takes nothing for granted, and its lines.
fn general(info: &KernelInfo) -> (&VariantInfo, Vec<&str>) {
    let variant = info.variants.iter().rfind(|v| v.target == TARGET).unwrap();
    assert!(variant.assumptions.is_empty());
    (variant, std::str::from_utf8(&variant.code).unwrap().lines().collect())
}

/// The kernel with its PTX replaced by this one.
fn with_code(info: &KernelInfo, ptx: String) -> &'static KernelRef {
    let (own, lines) = general(info);
    let entry = lines.iter().find_map(|l| l.strip_prefix(".visible .entry ")).unwrap().trim_end_matches('(').to_owned();
    let variant = |v: &VariantInfo, payload| Variant {
        target: v.target.clone(),
        config: vec![("entry".to_owned(), entry.clone())],
        threads: v.threads,
        shared_bytes: v.shared_bytes,
        payload,
        ..Variant::default()
    };
    let cpu = info.variants.iter().find(|v| v.target == "cpu").unwrap();
    let variants = vec![variant(cpu, cpu.code.clone()), variant(own, ptx.into_bytes())];
    let bytes = Artifact { kernel: info.name.clone(), variants, refused: Vec::new() }.encode().leak();
    Box::leak(Box::new(KernelRef::new(info.name.clone().leak(), bytes, file!(), [info.location.line, 1])))
}

fn run(info: &KernelInfo, ptx: String) -> titan::Result<Vec<f32>> {
    let dev = Device::emulator(TARGET)?;
    let value = |i: usize, j: usize| ((i * 13 + j * 7) % 19) as f32 / 4.0;
    let kernel = with_code(info, ptx);
    if info.name == "product" {
        let (a, b) = (
            dev.from_fn([50, 40], |[i, j]| f16::from_f32(value(i, j)))?,
            dev.from_fn([40, 41], |[i, j]| f16::from_f32(value(j, i)))?,
        );
        let mut y = dev.zeros([50, 41])?;
        Launch::new(kernel, vec![(&a).into(), (&b).into(), (&mut y).into()]).sync()?;
        return y.to_vec();
    }
    let (x, mut y) = (dev.from_fn([20, 48], |[i, j]| value(i, j))?, dev.zeros([20, 48])?);
    Launch::new(kernel, vec![(&x).into(), (&mut y).into()]).sync()?;
    y.to_vec()
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The emulator reported one of the errors that were expected.
    Reported,
    Wrong,
    Survived,
}

/// Replaces, one at a time, each line that contains `at` by what `edit` makes of it. An error must be one of `codes`, and must
/// name the mutated kernel's lines in this file.
fn mutate(name: &str, at: &str, codes: &[&str], edit: impl Fn(&str) -> String) -> Vec<Fate> {
    let info = embedded(name);
    let (_, lines) = general(&info);
    let right = run(&info, lines.join("\n")).unwrap();
    let body = info.location.line..info.location.line + 12;
    let mut fates = Vec::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, l)| l.contains(at)) {
        let mut mutant: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        mutant[i] = edit(line);
        assert_ne!(mutant[i], *line);
        fates.push(match run(&info, mutant.join("\n")) {
            Ok(found) if found == right => Fate::Survived,
            Ok(_) => Fate::Wrong,
            Err(Error::Emulated { kernel, report, .. }) => {
                assert_eq!(kernel, name);
                assert!(codes.iter().any(|c| report.starts_with(&format!("error[emu::{c}]"))), "{at}:\n{report}");
                assert!(report.contains("\n  at PTX line "), "{report}");
                let place = report
                    .split_once(&format!("from {}:", file!()))
                    .unwrap_or_else(|| panic!("no line of the kernel: {report}"))
                    .1;
                let line: u32 = place.split(':').next().unwrap().parse().unwrap();
                assert!(body.contains(&line), "line {line} is not the kernel's: {report}");
                Fate::Reported
            }
            Err(other) => panic!("{other}"),
        });
    }
    assert!(!fates.is_empty(), "no line of `{name}` contains `{at}`");
    fates
}

fn count(fates: &[Fate], fate: Fate) -> usize {
    fates.iter().filter(|f| **f == fate).count()
}

#[test]
fn a_barrier_that_is_missing_is_a_race() {
    for name in ["product", "turned"] {
        let fates = mutate(name, "bar.sync", &["race", "uninitialised"], |_| String::new());
        assert_eq!(count(&fates, Fate::Reported), fates.len(), "{name}: {fates:?}");
    }
}

#[test]
fn a_barrier_that_some_threads_skip_is_told() {
    let divergent = |_: &str| {
        "{ .reg .pred %some; .reg .b32 %where; mov.u32 %where, %laneid; setp.lt.u32 %some, %where, 16; @%some bra HERE; bar.sync 0; HERE: }"
            .to_owned()
    };
    for name in ["product", "turned"] {
        let fates = mutate(name, "bar.sync", &["divergence", "race", "uninitialised", "barrier"], divergent);
        assert_eq!(count(&fates, Fate::Reported), fates.len(), "{name}: {fates:?}");
    }
}

#[test]
fn masks_keep_accesses_inside() {
    let unmasked = |line: &str| line.trim().split_once(' ').unwrap().1.to_owned();
    for (name, at) in
        [("product", " st.global"), ("product", " ld.global"), ("turned", " st.global"), ("turned", " ld.global")]
    {
        let fates = mutate(name, at, &["out-of-bounds"], unmasked);
        assert!(count(&fates, Fate::Reported) > 0, "{name} {at}: {fates:?}");
    }
}

#[test]
fn what_is_not_stored_is_not_read() {
    let fates = mutate("product", "st.shared", &["uninitialised"], |_| String::new());
    assert_eq!(count(&fates, Fate::Reported), fates.len(), "{fates:?}");
    let fates = mutate("turned", "st.shared", &["uninitialised"], |_| String::new());
    assert!(count(&fates, Fate::Reported) > 0 && count(&fates, Fate::Survived) == 0, "{fates:?}");
}

#[test]
fn matrices_are_read_where_they_are() {
    // Another place in the same tile is legal, and gives other products; a place beyond the tile is not.
    let moved = |bytes: u32| move |line: &str| line.replace(']', &format!("+{bytes}]"));
    let fates = mutate("product", "ldmatrix", &["out-of-bounds", "uninitialised", "race"], moved(16));
    assert_eq!(count(&fates, Fate::Survived), 0, "{fates:?}");
    let fates = mutate("product", "ldmatrix", &["out-of-bounds"], moved(1 << 16));
    assert_eq!(count(&fates, Fate::Reported), fates.len(), "{fates:?}");
}
