//! What the main loops of products and attention cost on sm_80: instructions for each matrix instruction, counted in what
//! NVIDIA's assembler makes of them. An instruction of the loop's addresses counts once, whether it runs or not; what only pads
//! does not. docs/performance.md has the table.

use crate::{ptxas, sass};
use titan_core::driver::compile;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;

const GEMM: &str = include_str!("loops/gemm.tir");
const GEMM_WS: &str = include_str!("loops/gemm_ws.tir");
const GROUPED: &str = include_str!("loops/grouped.tir");
const ATTENTION: &str = include_str!("loops/attention.tir");

/// A kernel, and the most instructions that its loop and all of it may have; barriers in its loop count with the others.
struct Case {
    name: &'static str,
    text: String,
    mma: usize,
    in_loop: usize,
    whole: usize,
    barriers: usize,
}

pub(super) fn gemm(tile: [u32; 3]) -> String {
    of_tile(GEMM, tile)
}

fn of_tile(text: &str, [bm, bn, bk]: [u32; 3]) -> String {
    [("BM", bm), ("BN", bn), ("BK", bk)]
        .iter()
        .fold(text.to_owned(), |text, (name, n)| text.replace(name, &n.to_string()))
}

fn attention(size: u32, causal: bool) -> String {
    let text = ATTENTION.replace("SIZE", &size.to_string());
    if causal { text } else { text.replace("select %seen.2", "select %seen").replace("min %NK, %32", "min %NK, %NK") }
}

fn cases() -> Vec<Case> {
    let case = |name: &'static str, text, [mma, in_loop, whole]: [usize; 3]| {
        // One barrier lets all warps read a stage and copy over another one.
        Case { name, text, mma, in_loop, whole, barriers: 1 }
    };
    vec![
        case("gemm 128x256x64", gemm([128, 256, 64]), [128, 233, 945]),
        case("gemm 128x128x64", gemm([128, 128, 64]), [128, 249, 990]),
        case("gemm 128x128x32", gemm([128, 128, 32]), [64, 137, 800]),
        case("gemm 64x128x32", gemm([64, 128, 32]), [32, 93, 605]),
        case("gemm_ws 128x128x64", GEMM_WS.to_owned(), [128, 249, 895]),
        case("grouped_gemm 128x128x64", of_tile(GROUPED, [128, 128, 64]), [128, 287, 1205]),
        case("grouped_gemm 64x64x64", of_tile(GROUPED, [64, 64, 64]), [32, 119, 760]),
        case("attention 64", attention(64, false), [64, 396, 2030]),
        case("attention 64 causal", attention(64, true), [64, 396, 2160]),
        case("attention 128", attention(128, false), [128, 543, 2760]),
        case("attention 128 causal", attention(128, true), [128, 543, 2840]),
    ]
}

#[test]
fn main_loops_take_no_more_instructions_than_they_did() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let machine = Machine::all().iter().find(|m| m.name == "sm_80").expect("sm_80 is there");
    let mut wrong = Vec::new();
    for case in cases() {
        let kernels = text::parse(&case.text).unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
        let kernel = verify(kernels[0].clone()).unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
        let variants = compile(&kernel, machine, None).expect("sm_80 runs it");
        let text = String::from_utf8(variants[0].payload.clone()).expect("PTX is text");
        let code = sass::assemble(&ptxas, "sm_80", &text).unwrap_or_else(|said| panic!("{}: {said}", case.name));
        let around = code.main_loop(&[sass::HMMA]).expect("there is a loop");
        let (mma, in_loop) = (sass::count(around, &[sass::HMMA]), sass::without_padding(around));
        let (whole, barriers) = (sass::without_padding(&code.instructions), sass::count(around, &[sass::BAR]));
        let per = in_loop as f64 / mma as f64;
        let line = format!(
            "{:23} {in_loop:4} instructions, {mma:4} products, {per:.2} each, {barriers} barriers; {whole} in all",
            case.name
        );
        ptxas::say(&line);
        // Without a barrier the count would be of another opcode.
        let synchronised = (1..=case.barriers).contains(&barriers);
        if mma != case.mma || in_loop > case.in_loop || whole > case.whole || !synchronised {
            wrong.push(format!("{line}; {}, {} and {} are expected", case.in_loop, case.barriers, case.whole));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
