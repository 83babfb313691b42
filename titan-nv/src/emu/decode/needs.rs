//! tidy: table
//! The PTX version and the target that an instruction needs, beyond PTX 7.0 and sm_80.
//!
//! A row applies if the opcode is its opcode and has all of its words; of several rows the most demanding one counts, but of rows with the
//! same words one suffices. Words
//! with `#` are about operands: `#_` a discarded result, `#3` the number of operands, `#pred` a predicate as the fourth,
//! `#cluster` a special register of clusters, `#to-block` a bulk copy into `.shared::cta`. Source: PTX ISA, the notes
//! "PTX ISA Notes" and "Target ISA Notes" of each instruction; `tests/emu/needs.rs` has an assembler check them.

use super::Decoder;
use crate::emu::ast::{Ast, Entry, Operand};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::ty::Ty;

struct Need {
    opcode: &'static str,
    words: &'static [&'static str],
    ptx: (u32, u32),
    sm: u32,
    /// The targets from this architecture on that have the instruction.
    on: On,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    /// All of them.
    Every,
    /// The architecture-specific ones, with an `a`.
    Specific,
    /// Only the architecture-specific one with this number.
    Alone,
}

const fn row(opcode: &'static str, words: &'static [&'static str], ptx: (u32, u32), sm: u32) -> Need {
    Need { opcode, words, ptx, sm, on: On::Every }
}

const NEEDS: &[Need] = &[
    row("cvt", &["e4m3x2"], (8, 1), 89),
    row("cvt", &["e4m3x2"], (7, 8), 90),
    row("cvt", &["e5m2x2"], (8, 1), 89),
    row("cvt", &["e5m2x2"], (7, 8), 90),
    row("cvt", &["satfinite", "#to-half"], (8, 1), 80),
    row("cvt", &["satfinite", "tf32"], (8, 1), 80),
    row("cvt", &["rn", "tf32"], (7, 8), 90),
    row("cvt", &["rz", "tf32"], (7, 8), 90),
    row("cvt", &["f32", "#from-bf16"], (7, 1), 80),
    row("cvt", &["#other-bf16"], (7, 8), 90),
    row("mma", &["e4m3"], (8, 4), 89),
    row("mma", &["e5m2"], (8, 4), 89),
    row("mma", &["e4m3", "f16"], (8, 7), 89),
    row("mma", &["e5m2", "f16"], (8, 7), 89),
    row("mma", &["e4m3", "m16n8k16"], (8, 7), 89),
    row("mma", &["e5m2", "m16n8k16"], (8, 7), 89),
    row("mma", &["f64", "m16n8k4"], (7, 8), 90),
    row("mma", &["f64", "m16n8k8"], (7, 8), 90),
    row("mma", &["f64", "m16n8k16"], (7, 8), 90),
    row("stmatrix", &[], (7, 8), 90),
    row("movmatrix", &[], (7, 8), 80),
    row("elect", &[], (8, 0), 90),
    row("mbarrier", &["arrive", "#_"], (7, 1), 80),
    row("mbarrier", &["arrive", "#3"], (7, 8), 90),
    row("mbarrier", &["arrive", "noComplete", "#3"], (7, 0), 80),
    row("mbarrier", &["arrive_drop", "#3"], (7, 8), 90),
    row("mbarrier", &["expect_tx"], (8, 0), 90),
    row("mbarrier", &["parity"], (7, 1), 80),
    row("mbarrier", &["try_wait"], (7, 8), 90),
    row("mbarrier", &["relaxed"], (8, 0), 80),
    row("mbarrier", &["acquire"], (8, 0), 80),
    row("mbarrier", &["release"], (8, 0), 80),
    row("mbarrier", &["shared::cta"], (7, 8), 80),
    row("cp", &["#pred"], (7, 5), 80),
    row("cp", &["L2::cache_hint"], (7, 4), 80),
    row("cp", &["L2::64B"], (7, 4), 80),
    row("cp", &["L2::128B"], (7, 4), 80),
    row("cp", &["L2::256B"], (7, 4), 80),
    row("ld", &["shared::cta"], (7, 8), 80),
    row("st", &["shared::cta"], (7, 8), 80),
    row("atom", &["shared::cta"], (7, 8), 80),
    row("red", &["shared::cta"], (7, 8), 80),
    row("ldmatrix", &["shared::cta"], (7, 8), 80),
    row("ld", &["#hint"], (7, 4), 80),
    row("st", &["#hint"], (7, 4), 80),
    row("createpolicy", &[], (7, 4), 80),
    row("prefetch", &["L2::evict_last"], (7, 4), 80),
    row("prefetch", &["L2::evict_normal"], (7, 4), 80),
    row("cp", &["bulk"], (8, 0), 90),
    row("cp", &["reduce"], (8, 0), 90),
    row("cp", &["#to-block"], (8, 6), 90),
    row("st", &["async"], (8, 1), 90),
    row("st", &["shared::cluster"], (7, 8), 90),
    row("ld", &["shared::cluster"], (7, 8), 90),
    row("atom", &["shared::cluster"], (7, 8), 90),
    row("red", &["shared::cluster"], (7, 8), 90),
    row("mbarrier", &["shared::cluster"], (8, 0), 90),
    row("mapa", &[], (7, 8), 90),
    row("getctarank", &[], (7, 8), 90),
    row("barrier", &["cluster"], (7, 8), 90),
    row("barrier", &["cluster", "relaxed"], (8, 0), 90),
    row("barrier", &["cluster", "acquire"], (8, 0), 90),
    row("barrier", &["cluster", "release"], (8, 0), 90),
    row("prefetch", &["tensormap"], (8, 0), 90),
    Need { opcode: "tensormap", words: &["replace"], ptx: (8, 3), sm: 90, on: On::Specific },
    row("tensormap", &["cp_fenceproxy"], (8, 3), 90),
    row("fence", &["proxy", "tensormap::generic"], (8, 3), 90),
    Need { opcode: "wgmma", words: &[], ptx: (8, 0), sm: 90, on: On::Alone },
    Need { opcode: "wgmma", words: &["s8", "u8"], ptx: (8, 4), sm: 90, on: On::Alone },
    row("griddepcontrol", &[], (7, 8), 90),
    Need { opcode: "setmaxnreg", words: &[], ptx: (8, 0), sm: 90, on: On::Specific },
    row("add", &["bf16"], (7, 8), 90),
    row("add", &["bf16x2"], (7, 8), 90),
    row("sub", &["bf16"], (7, 8), 90),
    row("sub", &["bf16x2"], (7, 8), 90),
    row("mul", &["bf16"], (7, 8), 90),
    row("mul", &["bf16x2"], (7, 8), 90),
    row("min", &["xorsign"], (7, 2), 86),
    row("max", &["xorsign"], (7, 2), 86),
    row("add", &["u16x2"], (8, 0), 90),
    row("add", &["s16x2"], (8, 0), 90),
    row("min", &["u16x2"], (8, 0), 90),
    row("min", &["s16x2"], (8, 0), 90),
    row("max", &["u16x2"], (8, 0), 90),
    row("max", &["s16x2"], (8, 0), 90),
    row("ex2", &["bf16"], (7, 8), 90),
    row("ex2", &["bf16x2"], (7, 8), 90),
    row("tanh", &["bf16"], (7, 8), 90),
    row("tanh", &["bf16x2"], (7, 8), 90),
    row("setp", &["bf16"], (7, 8), 90),
    row("setp", &["bf16x2"], (7, 8), 90),
    row("set", &["bf16"], (7, 8), 90),
    row("atom", &["bf16"], (7, 8), 90),
    row("atom", &["bf16x2"], (7, 8), 90),
    row("red", &["bf16"], (7, 8), 90),
    row("red", &["bf16x2"], (7, 8), 90),
    row("atom", &["v2"], (8, 1), 90),
    row("atom", &["v4"], (8, 1), 90),
    row("atom", &["v8"], (8, 1), 90),
    row("red", &["v2"], (8, 1), 90),
    row("red", &["v4"], (8, 1), 90),
    row("red", &["v8"], (8, 1), 90),
    row("fence", &["proxy", "alias"], (7, 5), 80),
    row("fence", &["proxy", "async"], (8, 0), 90),
    row("fence", &["mbarrier_init"], (8, 0), 90),
    row("barrier", &["cta"], (7, 8), 80),
    row("bar", &["cta"], (7, 8), 80),
    row("isspacep", &["param"], (7, 8), 80),
    row("mov", &["#cluster"], (7, 8), 90),
];

/// Checks that PTX version and target have clusters, if the kernel uses them: PTX 7.8 and sm_90.
pub(super) fn check_clusters(ast: &Ast, entry: &Entry) -> Result<(), EmuError> {
    let asks = entry.cluster.is_some() || entry.explicit_cluster;
    if !asks || (ast.version >= (7, 8) && sm_of(ast).0 >= 90) {
        return Ok(());
    }
    let message = format!("`{}` has clusters, which need PTX 7.8 and sm_90", entry.name);
    Err(EmuError::new(ErrorCode::Target, message))
}

/// The number of a module's target, and whether it is architecture-specific (ends in `a`).
fn sm_of(ast: &Ast) -> (u32, bool) {
    let digits: String = ast.target.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(0), ast.target.ends_with('a'))
}

impl Decoder<'_> {
    /// Whether the instruction has a word of a row: a part of its opcode, or a property of its operands.
    fn has_word(&self, word: &str) -> bool {
        let parts = &self.instr.parts;
        let part = |p: &str| parts.iter().skip(1).any(|x| x == p);
        let operands = &self.instr.operands;
        let types: Vec<Ty> = parts.iter().skip(1).filter_map(|p| Ty::named(p)).collect();
        match word {
            "#_" => operands.first() == Some(&Operand::Sink),
            "#3" => operands.len() == 3,
            "#pred" => {
                operands.get(3).is_some_and(|o| matches!(o, Operand::Not(_)) || self.declared(o) == Some(Ty::Pred))
            }
            "#hint" => parts.iter().any(|p| p.starts_with("L1::") || p.starts_with("L2::")),
            "#cluster" => operands.iter().any(|o| match o {
                Operand::Special(name) => name.contains("cluster"),
                _ => false,
            }),
            // A bulk copy to the shared memory of the own block.
            "#to-block" => {
                let bulk = part("bulk") && part("global");
                bulk && parts
                    .iter()
                    .find(|p| *p == "global" || p.starts_with("shared::"))
                    .is_some_and(|p| p == "shared::cta")
            }
            "#from-bf16" => types.last() == Some(&Ty::Bf16),
            "#to-half" => matches!(types.first(), Some(Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2)),
            // A conversion between bf16 and a type other than f32.
            "#other-bf16" => types.contains(&Ty::Bf16) && !types.contains(&Ty::F32),
            _ => part(word),
        }
    }

    /// Checks that the module's version and target have the instruction.
    pub(super) fn check_needs(&self) -> Result<(), EmuError> {
        let target = &self.ast.target;
        let (sm, specific) = sm_of(self.ast);
        let rows = NEEDS.iter().filter(|n| n.opcode == self.opcode() && n.words.iter().all(|w| self.has_word(w)));
        // A row with more words is about a narrower case: it replaces those whose words it has.
        let rows: Vec<&Need> = rows.collect();
        let replaced = |n: &Need| {
            rows.iter().any(|o| o.words.len() > n.words.len() && n.words.iter().all(|w| o.words.contains(w)))
        };
        let fits = |n: &Need| {
            let on = match n.on {
                On::Every => true,
                On::Specific => specific,
                On::Alone => specific && sm == n.sm,
            };
            self.ast.version >= n.ptx && sm >= n.sm && on
        };
        for n in rows.iter().filter(|n| !replaced(n)) {
            if !rows.iter().any(|o| o.words == n.words && fits(o)) {
                let (major, minor) = n.ptx;
                let suffix = if n.on == On::Every { "" } else { "a" };
                let (has_major, has_minor) = self.ast.version;
                let message = format!(
                    "`{}` needs PTX {major}.{minor} and sm_{}{suffix}; the module is PTX {has_major}.{has_minor} for {target}",
                    self.full(),
                    n.sm
                );
                return Err(self.error(ErrorCode::Target, message));
            }
        }
        Ok(())
    }
}
