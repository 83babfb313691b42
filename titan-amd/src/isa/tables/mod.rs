//! The rows of all instructions.

mod build;
mod ds;
mod flat;
mod mfma;
mod mubuf;
mod smem;
mod sop;
mod vop;
mod vop3;
mod vop3p;
mod vopc;

use super::row::Row;
use std::collections::BTreeMap;
use std::sync::OnceLock;

static TABLES: [&[Row]; 18] = [
    sop::SOP2,
    sop::SOPK,
    sop::SOP1,
    sop::SOPC,
    sop::SOPP,
    smem::SMEM,
    vop::VOP2,
    vop::VOP1,
    vopc::VOPC,
    vop3::VOP3,
    vop3p::VOP3P,
    mfma::MAI,
    ds::DS,
    flat::FLAT,
    flat::GLOBAL,
    flat::SCRATCH,
    mubuf::MUBUF,
    mubuf::CACHE,
];

/// All rows.
pub fn all() -> impl Iterator<Item = &'static Row> {
    TABLES.iter().flat_map(|t| t.iter())
}

/// The rows of a mnemonic: more than one where operands or a fixed field distinguish instructions.
#[must_use]
pub fn by_name(name: &str) -> &'static [&'static Row] {
    static NAMES: OnceLock<BTreeMap<&'static str, Vec<&'static Row>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        all().for_each(|row| names.entry(row.name).or_default().push(row));
        names
    });
    names.get(name).map_or(&[], Vec::as_slice)
}
