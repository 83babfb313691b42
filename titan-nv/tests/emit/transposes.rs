//! Bank conflicts of transpositions on sm_80: the greatest degree of the writes and reads of the exchange in shared memory, and the
//! bytes of it, which are at most those of rows padded by 16 bytes.

use titan_core::driver::compile;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;

fn kernel(elem: &str, [m, n]: [u32; 2]) -> String {
    let zero = if elem.starts_with('i') { "0" } else { "0.0" };
    format!(
        "kernel @transpose(%x: in tensor<{elem}>[M, N], %y: mut tensor<{elem}>[N, M]) grid(cdiv(M, {m}), cdiv(N, {n})) {{
            %p = program_id<0> : i32
            %q = program_id<1> : i32
            %zero = const {zero} : {elem}
            %v = load_tile %x[%p, %q] or %zero : tile<{m}x{n}x{elem}>
            %w = permute<1, 0> %v : tile<{n}x{m}x{elem}>
            store_tile %y[%q, %p], %w
            return
        }}"
    )
}

const SHAPES: [[u32; 2]; 9] =
    [[32, 32], [64, 64], [128, 128], [32, 64], [64, 32], [64, 128], [128, 64], [32, 128], [128, 32]];

/// For each element the degrees of [`SHAPES`]. Before the padding was chosen by the conflicts they were, for `f32`, 4, 8, 16, 8, 4,
/// 16, 8, 16, 4; for `f16` the same; for `i8` 4, 4, 8, 4, 2, 8, 4, 8, 2.
const DEGREES: [(&str, u32, [u32; 9]); 3] =
    [("f32", 4, [1; 9]), ("f16", 2, [2, 2, 2, 1, 1, 2, 2, 1, 1]), ("i8", 1, [2, 2, 2, 2, 2, 2, 2, 1, 1])];

#[test]
fn transpositions_have_no_more_conflicts_than_they_had() {
    let machine = Machine::all().iter().find(|m| m.name == "sm_80").expect("sm_80 is there");
    let mut wrong = Vec::new();
    for (elem, bytes, degrees) in DEGREES {
        for (shape, most) in SHAPES.into_iter().zip(degrees) {
            let kernels = text::parse(&kernel(elem, shape)).expect("it is a kernel");
            let kernel = verify(kernels[0].clone()).expect("it is right");
            let variants = compile(&kernel, machine, None).expect("sm_80 runs it");
            let found = variants[0].conflicts.iter().map(|c| c.degree).max().unwrap_or(1);
            let [m, n] = shape;
            let padded = n * (m * bytes + 16);
            crate::ptxas::say(&format!("{elem} {m}x{n}: {found}, {} bytes of {padded}", variants[0].shared_bytes));
            if found != most || variants[0].shared_bytes > padded {
                wrong.push(format!("{elem} {m}x{n}: {found}, not {most}; {} bytes", variants[0].shared_bytes));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
