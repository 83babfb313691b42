//! What `titan::kernels()` says of the lines of the source.

use titan::prelude::*;

const FIRST: u32 = line!();
#[titan::kernel(grid(cdiv(M, 64), cdiv(N, 64)))]
fn turned(#[shape(M, N)] x: &Tensor<f16, 2>, #[shape(N, M)] y: &mut Tensor<f16, 2>) {
    let (p, q) = (program_id(0), program_id(1));
    let tile = x.load_tile::<64, 64>([p, q]);
    y.store_tile([q, p], tile.t());
}

#[titan::kernel(grid(cdiv(N, 32)))]
fn one_each(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<32>([p]) + 1.0);
}

#[test]
fn one_thing_is_counted_as_one() {
    let kernels = titan::kernels().unwrap();
    let kernel = kernels.iter().find(|k| k.name == "one_each").expect("it is in this program");
    let notes: Vec<&String> = kernel.variants.iter().filter(|v| v.target == "sm_80").flat_map(|v| &v.notes).collect();
    assert!(notes.iter().any(|note| note.ends_with("1 warp: 1 element a thread of 32")), "{notes:?}");
}

/// The exchange of a transposition belongs to the line that needs it.
#[test]
fn bank_conflicts_are_notes_with_the_line_of_the_file() {
    let kernels = titan::kernels().unwrap();
    let kernel = kernels.iter().find(|k| k.name == "turned").expect("it is in this program");
    assert!(kernel.location.file.ends_with("notes.rs"), "{:?}", kernel.location);
    // The name of the kernel, as rustc counts columns.
    assert_eq!([kernel.location.line, kernel.location.column], [FIRST + 2, 4]);
    let place = format!("{}:{}:", kernel.location.file, FIRST + 5);
    for variant in kernel.variants.iter().filter(|v| v.target == "sm_80") {
        let note = variant.notes.iter().find(|note| note.ends_with("-way bank conflicts in shared memory"));
        assert!(note.is_some_and(|note| note.starts_with(&place)), "{place} {:?}", variant.notes);
    }
    assert!(kernel.variants.iter().any(|v| v.target == "sm_80"), "nothing was looked at");
}
