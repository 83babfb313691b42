//! Kernels that are compiled for some targets only.

use titan::prelude::*;

/// One slot of 128 KiB, which older GPUs than sm_90 do not have, but for sm_80 itself.
#[titan::kernel(roles(load: 1 warp, work: 4 warps), targets(cpu, sm_90a))]
fn large(#[shape(M, 256)] x: &Tensor<f32, 2>, #[shape(M, 256)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 128, 256>, 1>::new();
    let tiles = y.work::<128, 256>();
    match role() {
        Role::Load => {
            for at in tiles.indices() {
                ring.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Work => {
            for out in tiles.tiles() {
                let stage = ring.ready().wait();
                out.store(stage.get().load() * 2.0);
                stage.release();
            }
        }
    }
}

/// C[m, n] = Σ_k A[m, k] · B[n, k], with code of its own for each family of GPUs.
#[titan::kernel(targets(cpu, sm_80, sm_100a, sm_120a), grid(cdiv(M, 64), cdiv(N, 64)))]
fn everywhere(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 64, 64>::zeros();
    for k in pipelined(0..cdiv(K, 64)) {
        acc = mma(a.load_tile::<64, 64>([m, k]), b.load_tile::<64, 64>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc);
}

/// The same with 16 rows, which warpgroups do not multiply, for Hopper alone.
#[titan::kernel(targets(cpu, sm_90a), grid(cdiv(M, 16), cdiv(N, 64)))]
fn few_rows(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 16, 64>::zeros();
    for k in pipelined(0..cdiv(K, 64)) {
        acc = mma(a.load_tile::<16, 64>([m, k]), b.load_tile::<64, 64>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc);
}

#[test]
fn hopper_alone_has_the_code_of_older_gpus_too() {
    let all = titan::kernels().unwrap();
    let found = all.iter().find(|k| k.name == "few_rows").unwrap();
    let hopper: Vec<_> = found.variants.iter().filter(|v| v.target == "sm_90a").collect();
    let [aligned, .., any] = &hopper[..] else { panic!("{} variants", hopper.len()) };
    let has = |notes: &[String], what: &str| notes.iter().any(|note| note.contains(what));
    assert!(has(&aligned.notes, "pipelined: the tile of `a`, the tile of `b` in 4 slots"), "{:?}", aligned.notes);
    assert!(any.assumptions.is_empty() && has(&any.notes, "rows of any alignment"), "{:?}", any.notes);
}

fn doubled(dev: &Device, m: usize) {
    let x = dev.from_fn([m, 256], |[i, j]| (i * 256 + j) as f32).unwrap();
    let mut y = dev.zeros([m, 256]).unwrap();
    large(&x, &mut y).sync().unwrap();
    let want: Vec<f32> = (0..m * 256).map(|i| 2.0 * i as f32).collect();
    assert!(y.to_vec().unwrap() == want, "{m} rows on {dev}");
}

#[test]
fn a_kernel_for_the_cpu_and_hopper_runs_there() {
    doubled(&Device::cpu(), 130);
    #[cfg(feature = "emulator")]
    for m in [0, 1, 128, 300] {
        doubled(&Device::emulator("sm_90a").unwrap(), m);
    }
}

/// The reason why the targets of every kernel are not those of this one, which is the same for all.
fn left_out(kernel: &titan::KernelInfo) -> &str {
    let targets: Vec<&str> = kernel.refused.iter().map(|(target, _)| target.as_str()).collect();
    let default = if cfg!(feature = "hip") { &["sm_80", "gfx942"][..] } else { &["sm_80"] };
    assert_eq!(targets, default);
    assert!(kernel.refused.iter().all(|(_, why)| *why == kernel.refused[0].1));
    &kernel.refused[0].1
}

#[test]
fn the_code_for_older_gpus_is_left_out() {
    let all = titan::kernels().unwrap();
    let found = all.iter().find(|k| k.name == "large").unwrap();
    let targets: Vec<&str> = found.variants.iter().map(|v| v.target.as_str()).collect();
    // Bulk copies; copies by threads, of aligned rows and of any.
    assert_eq!(targets, ["cpu", "sm_90a", "sm_90a", "sm_90a"]);
    let assumes: Vec<bool> = found.variants.iter().map(|v| !v.assumptions.is_empty()).collect();
    assert_eq!(assumes, [false, true, true, false]);
    let why = left_out(found);
    assert!(
        why.starts_with("it has no code for this device: `targets(..)` in its attribute lists only `sm_90a`\n"),
        "{why}"
    );
}

#[titan::kernel(targets(cpu))]
fn on_the_cpu(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

#[test]
fn a_kernel_for_the_cpu_alone_says_what_can_be_listed() {
    let all = titan::kernels().unwrap();
    let found = all.iter().find(|k| k.name == "on_the_cpu").unwrap();
    assert_eq!(
        left_out(found),
        "it is compiled for the CPU alone, by `targets(cpu)` in its attribute\n  help: list a target that this device runs; the targets \
         are `sm_80`, `sm_90a`, `sm_100a`, `sm_103a`, `sm_120a` and `gfx942` (with feature `hip` of `titan-gpu`); every kernel runs on \
         the CPU, whether `cpu` is listed or not"
    );
}

#[cfg(feature = "emulator")]
#[test]
fn tensors_that_cannot_be_copied_in_bulk_have_code_too() {
    let dev = Device::emulator("sm_90a").unwrap();
    // Rows of 257 elements do not start at multiples of 16 bytes.
    let whole = dev.from_fn([130, 257], |[i, j]| (i * 257 + j) as f32).unwrap();
    let x = whole.slice::<1>(1..257).unwrap();
    let mut y = dev.zeros([130, 256]).unwrap();
    let choice = large(&*x, &mut y).choice().unwrap().unwrap();
    assert_eq!(choice.target, "sm_90a");
    assert!(matches!(&choice.passed_over[0], (target, why) if target == "sm_90a" && why.contains("`x`")), "{choice}");
    large(&*x, &mut y).sync().unwrap();
    let want: Vec<f32> = (0..130 * 256).map(|i| 2.0 * (i / 256 * 257 + 1 + i % 256) as f32).collect();
    assert!(y.to_vec().unwrap() == want);
}

#[cfg(feature = "emulator")]
#[test]
fn devices_of_other_targets_refuse_it() {
    for target in ["sm_80", "sm_100a"] {
        let dev = Device::emulator(target).unwrap();
        let (x, mut y) = (dev.full([3, 256], 1.0f32).unwrap(), dev.zeros([3, 256]).unwrap());
        let error = large(&x, &mut y).sync().unwrap_err().to_string();
        let first = format!("kernel `large` cannot run on emulator:{target}: it has no code for this device: ");
        assert!(error.starts_with(&first), "{error}");
    }
}

#[cfg(feature = "emulator")]
#[test]
fn each_device_runs_the_best_code_that_it_can() {
    let mut random = crate::Random(12);
    let [m, n, k] = [70, 72, 136];
    let (a, b) = (random.many::<f16>(m * k), random.many::<f16>(n * k));
    let want = crate::product(&a, &b, [m, n, k]);
    let codes = [
        ("sm_80", "sm_80"),
        ("sm_90a", "sm_90a"),
        ("sm_100a", "sm_100a"),
        ("sm_103a", "sm_80"),
        ("sm_120a", "sm_120a"),
    ];
    for (target, code) in codes {
        let dev = Device::emulator(target).unwrap();
        let (a, b) = (dev.tensor(&a, [m, k]).unwrap(), dev.tensor(&b, [n, k]).unwrap());
        let mut c = dev.full([m, n], f32::NAN).unwrap();
        let choice = everywhere(&a, &b, &mut c).choice().unwrap().unwrap();
        assert_eq!(choice.target, code, "{target}: {choice}");
        everywhere(&a, &b, &mut c).sync().unwrap();
        crate::close(&c.to_vec().unwrap(), &want, 1e-5);
    }
}
