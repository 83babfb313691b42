//! Descriptors of matrices in shared memory.

use titan_nv::emu::internals::{bf16_units, unit};

#[test]
fn units_are_where_the_copy_engine_puts_them() {
    let d = 1024 >> 4 | 1 << 16 | (1024 >> 4) << 32 | 1 << 62;
    assert_eq!(unit(d, false, 9, 16), Some(2176));
    assert_eq!(bf16_units(d, 8..9, 16), Some(vec![2048, 2064]));
    assert_eq!(bf16_units(d, 9..10, 16), Some(vec![2048 + 128 + 16, 2048 + 128]));
}

#[test]
fn core_matrices_without_swizzle() {
    // Two units along K 512 bytes apart, groups of eight rows 128 apart.
    let d = 512 >> 4 << 16 | (128 >> 4) << 32;
    assert_eq!(unit(d, false, 8, 16), Some(128 + 512));
    // Along N, units 128 bytes apart; groups of eight k 512.
    assert_eq!(unit(d, true, 9, 16), Some(128 + 512 + 16));
}
