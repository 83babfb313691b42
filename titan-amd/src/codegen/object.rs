//! The code object of a kernel: its descriptor, and the metadata by which a runtime launches it.
//!
//! The arguments are the parameter block, word by word ([`titan_core::launch::abi`]). If the code reads the extents of the grid, they follow
//! as hidden arguments, which the runtime fills in.

use super::error::Fault;
use super::select::grid_offset;
use crate::object::{ArgKind, KernelArg, KernelCode, Program, Resources};
use titan_core::lane::Func;
use titan_core::launch::abi::{self, Slot};

/// The symbol and the code object of a function.
pub(crate) fn object(
    func: &Func,
    text: &[u8],
    [sgprs, vgprs, agprs]: [u16; 3],
    reads_grid: bool,
) -> Result<(String, Vec<u8>), Fault> {
    let (offsets, bytes) = abi::offsets(&func.slots);
    let small = |n: usize| u32::try_from(n).map_err(|_| Fault::Defect("arguments of more than 4 GiB".to_owned()));
    let mut args = Vec::new();
    for (slot, offset) in func.slots.iter().zip(offsets) {
        let kind = match slot {
            Slot::Address(_) | Slot::Report => ArgKind::GlobalBuffer,
            Slot::Extent(..) | Slot::Stride(..) | Slot::Scalar { .. } => ArgKind::ByValue,
        };
        let name = Some(argument(*slot));
        args.push(KernelArg { name, offset: small(offset)?, size: small(slot.bytes())?, kind });
    }
    let mut end = bytes;
    if reads_grid {
        let at = grid_offset(func);
        let kinds = [ArgKind::HiddenBlockCountX, ArgKind::HiddenBlockCountY, ArgKind::HiddenBlockCountZ];
        for (axis, kind) in kinds.into_iter().enumerate() {
            args.push(KernelArg { name: None, offset: small(at + 4 * axis)?, size: 4, kind });
        }
        end = at + 12;
    }
    let name = symbol(&func.name);
    let kernel = KernelCode {
        name: name.clone(),
        code: text.to_vec(),
        resources: Resources {
            vgprs: vgprs.into(),
            agprs: agprs.into(),
            sgprs: sgprs.into(),
            lds_bytes: func.shared_bytes,
            kernarg_bytes: small(end.next_multiple_of(8))?,
            grid_axes: 3,
            item_axes: 1,
            // A minimum or maximum with any NaN is the other operand: `select::float`.
            ieee: false,
        },
        args,
        max_workgroup_size: func.threads,
    };
    let object = Program { kernels: vec![kernel] }.to_bytes()?;
    Ok((name, object))
}

fn argument(slot: Slot) -> String {
    match slot {
        Slot::Address(param) => format!("address_{param}"),
        Slot::Extent(param, axis) => format!("extent_{param}_{axis}"),
        Slot::Stride(param, axis) => format!("stride_{param}_{axis}"),
        Slot::Scalar { param, .. } => format!("scalar_{param}"),
        Slot::Report => "report".to_owned(),
    }
}

/// A name that assemblers and loaders accept: each run of characters that are neither letters nor digits becomes one `_`.
fn symbol(name: &str) -> String {
    let mut symbol = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => symbol.push(c),
            _ if symbol.ends_with('_') => {}
            _ => symbol.push('_'),
        }
    }
    let symbol = symbol.trim_matches('_');
    if symbol.starts_with(|c: char| c.is_ascii_alphabetic()) { symbol.to_owned() } else { format!("k_{symbol}") }
}
