//! Programs that the tests write.

use titan_amd::isa::parse;
use titan_amd::object::{ArgKind, KernelArg, KernelCode, Program, Resources};

/// The bytes of instructions.
pub(crate) fn code(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|l| parse(l).unwrap_or_else(|e| panic!("{l}: {e}")).bytes().unwrap()).collect()
}

/// A kernel that ends at once.
pub(crate) fn kernel(name: &str) -> KernelCode {
    let arg = |offset, size, kind| KernelArg { name: None, offset, size, kind };
    KernelCode {
        name: name.to_owned(),
        code: code(&["s_nop 0", "s_endpgm"]),
        resources: Resources {
            vgprs: 23,
            agprs: 16,
            sgprs: 52,
            lds_bytes: 1024,
            kernarg_bytes: 24,
            grid_axes: 2,
            item_axes: 1,
            ieee: true,
        },
        args: vec![
            arg(0, 8, ArgKind::GlobalBuffer),
            arg(8, 8, ArgKind::GlobalBuffer),
            KernelArg { name: Some("count".to_owned()), ..arg(16, 4, ArgKind::ByValue) },
        ],
        max_workgroup_size: 256,
    }
}

/// Several kernels, of which the last has a long name.
pub(crate) fn program() -> Program {
    let long = "a_kernel_with_a_name_of_more_than_thirty_one_bytes_for_metadata";
    Program { kernels: ["first", "second", "third", long].map(kernel).to_vec() }
}
