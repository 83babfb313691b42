//! Which MMAs on tensor memory there are: TITAN's rules against NVIDIA's assembler, for every combination of attributes. And that
//! kernels with such operations are verified, and refused by name where they would be lowered.
//!
//! Shapes and elements are in a descriptor that an instruction reads when it runs: the assembler does not see them.

use super::ptxas;
use std::collections::BTreeSet;
use std::process::Command;
use titan_core::driver::compile;
use titan_core::ir::{Collector, Kernel, Mma, MmaKind, NoMma, NvOp, OpKind, TensorElem};
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;

/// An MMA, whether its A is in tensor memory, and whether its scales are written.
type Form = (Mma, bool, bool);

fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for kind in MmaKind::ALL.iter().copied() {
        let operand = kind.elements()[0];
        let d = if kind == MmaKind::I8 { TensorElem::I32 } else { TensorElem::F32 };
        for bits in 0u32..32 {
            let is = |bit: u32| bits >> bit & 1 == 1;
            for collector in Collector::ALL.iter().copied() {
                for scales in [None, Some(0), Some(1), Some(2), Some(4)] {
                    let shape = if is(0) { [256, 64, kind.depth()] } else { [128, 64, kind.depth()] };
                    let mma = Mma {
                        kind,
                        cta_group: 1 + u32::from(is(0)),
                        stationary: is(1),
                        scale_vec: scales.unwrap_or(0),
                        shifted: is(2),
                        collector,
                        scaled_input: is(3),
                        a: operand,
                        b: operand,
                        d,
                        shape,
                    };
                    all.push((mma, is(4), scales.is_some()));
                }
            }
        }
    }
    all
}

fn spelled((mma, a_in_tensor_memory, scaled): &Form) -> String {
    let mut s = format!(
        "tcgen05.mma{}.cta_group::{}.kind::{}",
        if mma.stationary { ".ws" } else { "" },
        mma.cta_group,
        mma.kind
    );
    if *scaled {
        s += ".block_scale";
        if mma.scale_vec > 0 {
            s += &format!(".scale_vec::{}X", mma.scale_vec);
        }
    }
    if mma.shifted {
        s += ".ashift";
    }
    if mma.collector != Collector::Unstated {
        s += &format!(".collector::{}::{}", if mma.stationary { "b0" } else { "a" }, mma.collector);
    }
    let a = if *a_in_tensor_memory { "[%r2]" } else { "%rd1" };
    let scales = if *scaled { ", [%r4], [%r5]" } else { "" };
    let input = if mma.scaled_input { ", 1" } else { "" };
    format!("{s} [%r1], {a}, %rd2, %r3{scales}, %p1{input};")
}

/// Whether there is such an MMA. How blocks are scaled is part of the kind in TITAN's form.
fn exists((mma, a_in_tensor_memory, scaled): &Form) -> bool {
    *scaled == mma.kind.is_scaled() && !matches!(mma.check(*a_in_tensor_memory), Err(NoMma::Attributes(_)))
}

const HEADER: [&str; 5] = [
    ".version 8.8",
    ".target sm_100a",
    ".address_size 64",
    ".visible .entry k() {",
    ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>;",
];

/// The lines that the assembler refuses.
fn refused(ptxas: &std::path::Path, lines: &[String]) -> BTreeSet<usize> {
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tensor_memory_{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("forms.ptx");
    std::fs::write(&file, format!("{}\n{}\nret;\n}}\n", HEADER.join("\n"), lines.join("\n"))).expect("written");
    let made = Command::new(ptxas).args(["-arch", "sm_100a", "-o"]).arg(folder.join("forms.cubin")).arg(&file).output();
    let said = String::from_utf8_lossy(&made.expect("it runs").stderr).into_owned();
    let number = |line: &str| {
        let (_, rest) = line.rsplit_once(", line ")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()?.checked_sub(HEADER.len() + 1)
    };
    let found: BTreeSet<usize> = said.lines().filter(|l| l.contains("error")).filter_map(number).collect();
    assert!(!said.contains("syntax error"), "{said}");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    found
}

#[test]
fn the_assembler_has_the_same_attributes() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let forms = forms();
    // What stands at the same place of weight-stationary MMAs is a mask of columns.
    let forms: Vec<&Form> = forms.iter().filter(|(mma, ..)| !(mma.stationary && mma.scaled_input)).collect();
    let (mut differ, mut exist) = (Vec::new(), 0);
    for part in forms.chunks(400) {
        let lines: Vec<String> = part.iter().map(|form| spelled(form)).collect();
        let bad = refused(&ptxas, &lines);
        for (i, form) in part.iter().enumerate() {
            exist += usize::from(exists(form));
            // The manual has scaled accumulators for `f16` and `tf32` only; the assembler also takes them for `i8`.
            let lenient = form.0.kind == MmaKind::I8 && form.0.scaled_input;
            if exists(form) == bad.contains(&i) && !lenient {
                differ.push(format!("{}: {}", if bad.contains(&i) { "refused" } else { "accepted" }, lines[i]));
            }
        }
    }
    ptxas::say(&format!("{} forms, of which {exist} exist", forms.len()));
    assert!(differ.is_empty(), "{} of {}\n{}", differ.len(), forms.len(), differ.join("\n"));
    assert!(forms.len() > 4000 && exist > 200, "{} forms, {exist} exist", forms.len());
}

#[test]
fn operations_on_tensor_memory_are_refused_by_name() {
    let source = include_str!("../../../titan-core/filetests/verify/tensor_mma_shape.tir");
    let kernels = text::parse(source).expect("a text");
    let passing = kernels.into_iter().find(|k| k.sig.name == "passes").expect("it is there");
    let kernel = verify(passing).unwrap_or_else(|e| panic!("{e:?}"));
    let tensor_memory = |k: &Kernel| k.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::Tcgen05(_))));
    assert!(tensor_memory(&kernel));
    for machine in Machine::all() {
        let error = titan_core::driver::stages(&kernel, machine, true, None).expect_err("it is not lowered");
        assert_eq!(error.code().number(), "T0902");
        assert!(error.to_string().contains("tcgen05"), "{}: {error}", machine.name);
    }
    assert!(compile(&kernel, Machine::from_name("sm_80").expect("it is known"), None).is_err());
}
