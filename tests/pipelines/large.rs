//! Kernels that need more shared memory than every device allows: each runs where it fits, and is a clear error elsewhere.

use titan::prelude::*;

/// One slot of 128 KiB.
#[titan::kernel(roles(load: 1 warp, work: 4 warps), allow(no_code))]
fn doubled_by_roles(#[shape(M, 256)] x: &Tensor<f32, 2>, #[shape(M, 256)] y: &mut Tensor<f32, 2>) {
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

/// A transpose whose tile of 128 KiB passes through shared memory.
#[titan::kernel]
fn transposed(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(N, M)] y: &mut Tensor<f32, 2>) {
    let (n, m) = (program_id(0), program_id(1));
    y.store_tile([n, m], x.load_tile::<256, 128>([m, n]).t());
}

#[test]
fn code_that_needs_more_says_which_devices_have_it() {
    let all = titan::kernels().unwrap();
    for (name, allowed) in [("doubled_by_roles", 163), ("transposed", 163)] {
        let found = all.iter().find(|k| k.name == name).unwrap();
        let ampere: Vec<_> = found.variants.iter().filter(|v| v.target == "sm_80").collect();
        assert!(!ampere.is_empty(), "{name}: {:?}", found.refused);
        let says = format!("the device grants a program {allowed} KiB of shared memory");
        for variant in ampere {
            assert!(variant.shared_bytes > 99 << 10, "{name}: {} bytes", variant.shared_bytes);
            assert!(variant.assumptions.contains(&says), "{name}: {:?}", variant.assumptions);
            let noted = |note: &String| note.contains("no device runs it that allows less than 163 KiB");
            assert!(variant.notes.iter().any(noted), "{name}: {:?}", variant.notes);
        }
    }
}

#[cfg(feature = "emulator")]
#[test]
fn devices_that_allow_enough_run_it() {
    for target in ["sm_80", "sm_90a", "sm_100a"] {
        let dev = Device::emulator(target).unwrap();
        for m in [1, 128, 200] {
            let x = dev.from_fn([m, 256], |[i, j]| (i * 256 + j) as f32).unwrap();
            let mut y = dev.zeros([m, 256]).unwrap();
            doubled_by_roles(&x, &mut y).sync().unwrap();
            let want: Vec<f32> = (0..m * 256).map(|i| 2.0 * i as f32).collect();
            assert!(y.to_vec().unwrap() == want, "{m} rows on {target}");
            let mut y = dev.zeros([256, m]).unwrap();
            transposed(&x, &mut y).sync().unwrap();
            let want: Vec<f32> = (0..256 * m).map(|i| (i % m * 256 + i / m) as f32).collect();
            assert!(y.to_vec().unwrap() == want, "{m} rows on {target}");
        }
    }
}

#[cfg(feature = "emulator")]
#[test]
fn devices_that_allow_less_say_how_much_is_missing() {
    for target in ["sm_86", "sm_89", "sm_120a"] {
        let dev = Device::emulator(target).unwrap();
        // One row whose length is no multiple of 16 bytes has another variant, which needs as much.
        for n in [256, 255] {
            let x = dev.full([3, n], 1.0f32).unwrap();
            let mut y = dev.zeros([n, 3]).unwrap();
            let error = transposed(&x, &mut y).sync().unwrap_err();
            assert!(matches!(error, titan::Error::Unsupported { .. }), "{error}");
            let text = error.to_string();
            let first = format!("kernel `transposed` cannot run on emulator:{target}: a program needs ");
            assert!(text.starts_with(&first), "{text}");
            assert!(text.contains(" bytes of shared memory, and the device allows 101376"), "{text}");
        }
    }
}
