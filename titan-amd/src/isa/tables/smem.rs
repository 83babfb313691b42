//! tidy: table
//! Scalar memory: SMEM.
//!
//! Source: ISA §8 "Scalar Memory Operations", §12.6 "SMEM Instructions". Results come in any order: only a wait for all
//! of `lgkmcnt` says that one is there.

use super::build::{load, plain};
use crate::isa::row::Row;
use crate::isa::ty::*;

pub(super) const SMEM: &[Row] = &[
    load(0, "s_load_dword", B32, B64),
    load(1, "s_load_dwordx2", B64, B64),
    load(2, "s_load_dwordx4", B128, B64),
    load(3, "s_load_dwordx8", B256, B64),
    load(4, "s_load_dwordx16", B512, B64),
    load(8, "s_buffer_load_dword", B32, B128),
    load(9, "s_buffer_load_dwordx2", B64, B128),
    load(10, "s_buffer_load_dwordx4", B128, B128),
    load(11, "s_buffer_load_dwordx8", B256, B128),
    load(12, "s_buffer_load_dwordx16", B512, B128),
    plain(32, "s_dcache_inv"),
    plain(33, "s_dcache_wb"),
    plain(34, "s_dcache_inv_vol"),
    plain(35, "s_dcache_wb_vol"),
    plain(36, "s_memtime").sdata(U64),
    plain(37, "s_memrealtime").sdata(U64),
];
