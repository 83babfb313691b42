//! For how many clocks the loops of products and of attention occupy the units of a compute unit, in a model: docs/performance.md has the
//! table. Accesses to the local data share are those that the emulator sees, with the addresses of all lanes, under two models of its phases.

use crate::kernels::attention::{attention, causal_attention};
use crate::kernels::both::Launch;
use crate::kernels::products::Product;
use crate::launch::{Ready, machine};
use crate::page;
use crate::tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet};
use titan_amd::codegen::Emitted;
use titan_amd::codegen::machine_ir::Kind;
use titan_amd::emu::{Completion, LocalAccess, Options, Schedule, Uninitialised};
use titan_amd::isa::{Inst, decode};
use titan_amd::model::banks::{MODELS, Phases};
use titan_amd::model::units::{ENGINES, Engine, occupies};
use titan_core::driver::stages;
use titan_core::ir::Elem;
use titan_core::verify::Verified;

/// A loop with matrix instructions: its instructions, by their distance from the start of the kernel.
pub(crate) type Loop = BTreeMap<u64, Inst>;

/// The loops of a kernel, each of which is a run of blocks.
pub(crate) fn loops(emitted: &Emitted) -> Vec<Loop> {
    let (mut all, mut open, mut at): (Vec<Loop>, Loop, usize) = (Vec::new(), Loop::new(), 0);
    for block in &emitted.code.order {
        if emitted.code.blocks[block.index()].depth == 0 {
            all.push(std::mem::take(&mut open));
        }
        for inst in emitted.code.insts(*block) {
            let Kind::Row { row, .. } = &inst.kind else { continue };
            let (decoded, bytes) = decode(&emitted.text[at..]).expect("it was assembled");
            assert_eq!(decoded.row().name, row.name);
            if emitted.code.blocks[block.index()].depth > 0 {
                open.insert(at as u64, decoded);
            }
            at += bytes;
        }
    }
    all.push(open);
    all.retain(|own| own.values().any(|inst| inst.row().name.starts_with("v_mfma")));
    all
}

/// The clocks for which all waves of a program occupy the units of a compute unit in an iteration.
#[derive(Clone, Debug)]
struct Occupancy {
    clocks: BTreeMap<Engine, u64>,
    /// The conflicts in each model.
    conflicts: [u64; 2],
}

impl Occupancy {
    fn of(own: &Loop, waves: u64, accesses: &[LocalAccess]) -> Occupancy {
        let simds = u64::from(machine().simds_per_cu);
        let mut clocks: BTreeMap<Engine, u64> = ENGINES.iter().map(|engine| (*engine, 0)).collect();
        for (engine, n) in own.values().filter_map(occupies) {
            *clocks.entry(engine).or_default() += n * if engine.is_of_simd() { waves / simds } else { waves };
        }
        // Each instruction counts once for each wave.
        let mut seen = BTreeSet::new();
        let once = accesses.iter().filter(|access| own.contains_key(&access.offset));
        let once: Vec<&LocalAccess> = once.filter(|access| seen.insert((access.wave, access.offset))).collect();
        let of = |model: &Phases| {
            let each = once.iter().map(|access| model.clocks(access.store, access.bytes, &access.lanes));
            each.fold([0, 0], |sum, clocks| [sum[0] + clocks.least, sum[1] + clocks.conflicts])
        };
        let both = MODELS.each_ref().map(of);
        // The clocks without conflicts are those of the instructions, of which the exchanges between lanes access no memory.
        let exchanges =
            own.values().filter(|inst| inst.row().name.ends_with("permute_b32") || inst.row().name.contains("swizzle"));
        let exchanged = waves * exchanges.filter_map(occupies).map(|(_, n)| n).sum::<u64>();
        assert!(
            both.iter().all(|[least, _]| least + exchanged == clocks[&Engine::Local]),
            "{both:?}, {exchanged}, {clocks:?}"
        );
        Occupancy { clocks, conflicts: both.map(|[_, conflicts]| conflicts) }
    }

    /// The clocks of the matrix units, divided by those of the unit that is busiest, in a model.
    fn ratio(&self, model: usize) -> f64 {
        let of =
            |engine: &Engine| self.clocks[engine] + if *engine == Engine::Local { self.conflicts[model] } else { 0 };
        let busiest = ENGINES.iter().map(of).max().expect("there are units");
        self.clocks[&Engine::Matrix] as f64 / busiest as f64
    }

    fn row(&self, name: &str) -> String {
        let clocks: Vec<String> = ENGINES.iter().map(|engine| self.clocks[engine].to_string()).collect();
        let [a, b] = self.conflicts;
        format!("| {name} | {} | {a}, {b} | {:.2}, {:.2} |\n", clocks.join(" | "), self.ratio(0), self.ratio(1))
    }
}

fn zeros(extents: &[u32], elem: Elem) -> Option<Tensor> {
    let strides = (0..extents.len()).map(|axis| extents[axis + 1..].iter().product()).collect();
    let bytes = vec![0; (extents.iter().product::<u32>() * elem.bits() / 8) as usize];
    Some(Tensor { elem, extents: extents.to_vec(), strides, bytes, skip: 0 })
}

/// The occupancy of each loop of a kernel that one program executes.
fn measured(kernel: &Verified, tensors: &[Option<Tensor>]) -> Vec<Occupancy> {
    let stages = stages(kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
    let options = Options {
        completion: Completion::Early,
        schedule: Schedule::InTurn,
        uninitialised: Uninitialised::Random(1),
        sanitize: false,
        hazards: false,
        ..Options::default()
    };
    let launch = Launch { grid: [1, 1, 1], tensors, scalar: &|_| 0 };
    let (_, accesses) = launch.recorded(&stages.lanes, &ready, &options).unwrap_or_else(|e| panic!("{e}"));
    let waves = u64::from(stages.lanes.threads / 64);
    let executed = |own: &&Loop| accesses.iter().any(|access| own.contains_key(&access.offset));
    let loops = loops(&ready.emitted);
    loops.iter().filter(executed).map(|own| Occupancy::of(own, waves, &accesses)).collect()
}

fn of_product(tile: [u32; 3], along_k: bool) -> Occupancy {
    let product = Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, tile) };
    let ([m, n, _], k) = (tile, 3 * tile[2]);
    let b = if along_k { [n, k] } else { [k, n] };
    let tensors = [zeros(&[m, k], Elem::Bf16), zeros(&b, Elem::Bf16), zeros(&[m, n], Elem::F32)];
    measured(&product.kernel(), &tensors).remove(0)
}

/// The loops of attention of 128 queries, heads of 128 and 64 keys at a time; all keys are seen without masks, or those of two tiles by some
/// queries.
fn of_attention(causal: bool) -> Vec<Occupancy> {
    let kernel = if causal { causal_attention(128, 128) } else { attention(Elem::Bf16, 128, 128) };
    let of = |rows: u32| zeros(&[1, 1, rows, 128], Elem::Bf16);
    let tensors = [of(128), of(512), of(512), of(128), None];
    measured(&kernel, &tensors)
}

const BEGIN: &str = "<!-- Made by `TITAN_BLESS=1 cargo xtask test -p titan-gpu-amd --test codegen occupancy`. -->\n\n";
const END: &str = "<!-- The end of what is made. -->\n";

#[test]
fn the_page_has_the_occupancy_of_units() {
    let heads = ENGINES.iter().map(|engine| engine.name()).collect::<Vec<_>>().join(" | ");
    let mut table = format!(
        "| loop | {heads} | conflicts: {} | matrix ÷ busiest unit |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        MODELS.map(|model| model.name).join(", ")
    );
    let mut goals = Vec::new();
    for (name, tile, along_k) in [
        ("256×256×64", [256, 256, 64], true),
        ("the same, rows of B along N", [256, 256, 64], false),
        ("128×128×64", [128, 128, 64], true),
        ("the same, rows of B along N", [128, 128, 64], false),
    ] {
        let own = of_product(tile, along_k);
        assert_eq!(own.conflicts, [0, 0], "{name}");
        table += &own.row(name);
        goals.push((own, 0.95));
    }
    // Without the causal mask only the last tile has masks, behind which nothing is stored to shared memory.
    let all = [of_attention(false).into_iter().take(1).collect(), of_attention(true)].concat();
    for (own, name) in all.into_iter().zip(["attention", "the same, causal", "its loop with masks"]) {
        table += &own.row(name);
        goals.push((own, 0.90));
    }
    for (own, least) in goals {
        assert!((0..MODELS.len()).all(|model| own.ratio(model) >= least), "{:?}, {:?}", own.clocks, own.conflicts);
    }
    page::told([BEGIN, END], &table);
}

/// Lanes with 16 bytes each of rows of 128 bytes, at a place of the row that depends on the row.
fn rows_of_128(place: impl Fn(u64) -> u64) -> Vec<(u8, u64)> {
    (0..64u8).map(|lane| (lane, 128 * u64::from(lane % 16) + 16 * place(u64::from(lane % 16)))).collect()
}

#[test]
fn known_patterns_have_known_conflicts() {
    let of = |store, bytes, lanes: &[(u8, u64)]| {
        MODELS.map(|model| model.clocks(store, bytes, lanes)).map(|clocks| [clocks.least, clocks.conflicts])
    };
    // Every row in the same banks; exchanged places; lanes one after the other; one address for all.
    assert_eq!(of(false, 16, &rows_of_128(|_| 0)), [[8, 8 * 7]; 2]);
    assert_eq!(of(true, 16, &rows_of_128(|row| row % 8)), [[8, 0]; 2]);
    assert_eq!(of(false, 16, &rows_of_128(|row| row % 8)), [[8, 0]; 2]);
    for (bytes, least) in [(4u8, 2), (8, 4), (16, 8)] {
        let adjacent: Vec<(u8, u64)> = (0..64).map(|lane| (lane, u64::from(lane) * u64::from(bytes))).collect();
        let same: Vec<(u8, u64)> = (0..64).map(|lane| (lane, 48)).collect();
        for store in [true, false] {
            assert_eq!(of(store, bytes.into(), &adjacent), [[least, 0]; 2]);
            assert_eq!(of(store, bytes.into(), &same), [[least, 0]; 2]);
        }
    }
    // Lanes 0 to 3 and 20 to 23 load together in one model, 0 to 7 in the other: so the models differ for loads, and not for stores.
    let apart = |lane: u8| if lane < 4 { 0 } else { 512 };
    let lanes: Vec<(u8, u64)> = (0..8).map(|lane| (lane, 16 * u64::from(lane % 4) + apart(lane))).collect();
    assert_eq!(of(false, 16, &lanes), [[8, 1], [8, 0]]);
    assert_eq!(of(true, 16, &lanes), [[8, 1]; 2]);
    // No lane, and words in part.
    assert_eq!(of(false, 16, &[]), [[8, 0]; 2]);
    assert_eq!(of(false, 2, &[(0, 0), (1, 2), (2, 126), (3, 128)]), [[2, 1]; 2]);
}
