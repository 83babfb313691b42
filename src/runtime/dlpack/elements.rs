//! The element types of DLPack.

use super::abi::DLDataType;
use super::refuse;
use crate::error::Result;
use titan_core::ir::Elem;

/// The kinds, `DLDataTypeCode`.
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const BOOL: u8 = 6;
    pub(super) const E4M3FN: u8 = 10;
    pub(super) const E5M2: u8 = 12;
}

/// The element type for DLPack.
pub(super) fn to_dlpack(elem: Elem) -> Result<DLDataType> {
    let code = match elem {
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 => code::INT,
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 => code::UINT,
        Elem::F64 | Elem::F32 | Elem::F16 => code::FLOAT,
        Elem::Bf16 => code::BFLOAT,
        Elem::Bool => code::BOOL,
        Elem::E4m3 => code::E4M3FN,
        Elem::E5m2 => code::E5M2,
        Elem::Tf32 => return refuse("export", "DLPack has no element type `tf32`", "export `f32`"),
    };
    let bits = if elem == Elem::Bool { 8 } else { elem.bits() };
    // The widest have 64 bits.
    Ok(DLDataType { code, bits: u8::try_from(bits).unwrap_or(u8::MAX), lanes: 1 })
}

/// The element type of TITAN for one of DLPack; `padded` if elements of less than a byte have bytes of their own.
pub(super) fn from_dlpack(operation: &'static str, dtype: DLDataType, padded: bool) -> Result<Elem> {
    let DLDataType { code, bits, lanes } = dtype;
    if lanes != 1 {
        let problem = format!("an element consists of {lanes} values");
        return refuse(operation, problem, "pass a tensor with one more axis and one value for each element");
    }
    let found = match (code, bits) {
        (code::INT, 64) => Elem::I64,
        (code::INT, 32) => Elem::I32,
        (code::INT, 16) => Elem::I16,
        (code::INT, 8) => Elem::I8,
        (code::INT, 4) => Elem::I4,
        (code::UINT, 64) => Elem::U64,
        (code::UINT, 32) => Elem::U32,
        (code::UINT, 16) => Elem::U16,
        (code::UINT, 8) => Elem::U8,
        (code::UINT, 4) => Elem::U4,
        (code::FLOAT, 64) => Elem::F64,
        (code::FLOAT, 32) => Elem::F32,
        (code::FLOAT, 16) => Elem::F16,
        (code::BFLOAT, 16) => Elem::Bf16,
        (code::BOOL, 8) => Elem::Bool,
        (code::E4M3FN, 8) => Elem::E4m3,
        (code::E5M2, 8) => Elem::E5m2,
        _ => {
            let problem = format!("TITAN has no element type of {bits} bits of kind {code} ({})", name(code));
            let help = "convert it to a float of 64, 32 or 16 bits, a bfloat16, an 8-bit float e4m3fn or e5m2, an integer or a bool";
            return refuse(operation, problem, help);
        }
    };
    if padded && found.bits() < 8 {
        let problem = format!("each element of type `{found}` has a byte of its own");
        return refuse(operation, problem, "pass them packed, two to a byte with the lower index low");
    }
    Ok(found)
}

/// The name in the header of a kind, for messages.
fn name(code: u8) -> &'static str {
    match code {
        code::INT => "kDLInt",
        code::UINT => "kDLUInt",
        code::FLOAT => "kDLFloat",
        3 => "kDLOpaqueHandle",
        code::BFLOAT => "kDLBfloat",
        5 => "kDLComplex",
        code::BOOL => "kDLBool",
        7 => "kDLFloat8_e3m4",
        8 => "kDLFloat8_e4m3",
        9 => "kDLFloat8_e4m3b11fnuz",
        code::E4M3FN => "kDLFloat8_e4m3fn",
        11 => "kDLFloat8_e4m3fnuz",
        code::E5M2 => "kDLFloat8_e5m2",
        13 => "kDLFloat8_e5m2fnuz",
        14 => "kDLFloat8_e8m0fnu",
        15 => "kDLFloat6_e2m3fn",
        16 => "kDLFloat6_e3m2fn",
        17 => "kDLFloat4_e2m1fn",
        _ => "unknown",
    }
}
