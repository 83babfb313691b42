//! Versions and targets in the tables are the lowest: one lower, and `ptxas` refuses.

use crate::kernels;
use crate::ptxas;
use std::collections::BTreeMap;
use titan_core::lane::Func;
use titan_nv::ptx::isa;
use titan_nv::ptx::{Form, Module};
use titan_nv::{Machine, lower};

/// The PTX versions there are from 7.0 on, times ten: "Release Notes: PTX ISA Release History".
const PUBLISHED: [u32; 18] = [70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88];

/// For each instruction a module that has it, for the oldest machine that does.
fn examples() -> BTreeMap<&'static str, (Module, &'static Machine)> {
    let funcs: Vec<Func> = crate::coverage::all().into_iter().map(|c| c.func).chain(kernels::all()).collect();
    let mut found = BTreeMap::new();
    for machine in Machine::all() {
        for module in funcs.iter().filter_map(|f| lower::lower(f, machine, None).ok()) {
            for inst in module.instructions() {
                found.entry(inst.form.text).or_insert_with(|| (module.clone(), machine));
            }
        }
    }
    found
}

#[test]
fn a_version_is_one_that_was_published() {
    for form in isa::all() {
        assert!(form.ptx < 70 || PUBLISHED.contains(&form.ptx), "`{}`", form.text);
    }
}

#[test]
fn a_lower_version_does_not_have_the_instruction() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let examples = examples();
    let mut checked = 0;
    // What the target itself demands is no evidence.
    let late = |form: &&&Form| examples.get(form.text).is_some_and(|(_, machine)| form.ptx > machine.ptx);
    for form in isa::all().iter().filter(late) {
        let (module, machine) = &examples[form.text];
        let before = PUBLISHED.iter().rev().find(|v| **v < form.ptx).unwrap();
        let lower = Module { version: *before, ..module.clone() };
        let said = ptxas::assemble(&ptxas, machine.name, &lower.to_string());
        assert!(said.is_err(), "PTX {before} has `{}`", form.text);
        checked += 1;
    }
    ptxas::say(&format!("{checked} instructions are refused one version lower"));
    assert!(checked > 0);
}

#[test]
fn a_lower_target_does_not_have_the_instruction() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let examples = examples();
    let mut checked = 0;
    // Of the MMAs of warpgroups, one for each pair of elements.
    let first = |form: &&&Form| !form.text.contains("wgmma.mma_async") || form.text.contains("m64n8k");
    for form in isa::all().iter().filter(|form| form.sm > 80).filter(first) {
        let (module, _) = &examples[form.text];
        let before = Machine::all().iter().rev().find(|m| m.capability < form.sm).unwrap();
        let older = Module { target: before.name, ..module.clone() };
        let said = ptxas::assemble(&ptxas, before.name, &older.to_string());
        assert!(said.is_err(), "{} has `{}`", before.name, form.text);
        checked += 1;
    }
    ptxas::say(&format!("{checked} instructions are refused on the target before"));
    assert!(checked > 0);
}
