//! Every case and every kernel is assembled for every target.

use crate::kernels;
use crate::ptxas::{self, Usage};
use titan_core::lane::Func;
use titan_nv::ptx::Module;
use titan_nv::{EmitError, Machine, lower};

/// Kernels of several modules as one text: one header with the highest version.
pub(crate) fn joined(modules: &[Module]) -> String {
    let version = modules.iter().map(|m| m.version).max().unwrap_or(70);
    let mut text =
        format!(".version {}.{}\n.target {}\n.address_size 64\n", version / 10, version % 10, modules[0].target);
    text.push_str(".extern .shared .align 1024 .b8 smem[];\n");
    for (i, module) in modules.iter().enumerate() {
        let mut entry = module.entry.clone();
        entry.name = format!("k{i}_{}", entry.name);
        text.push_str(&entry.to_string());
    }
    text
}

fn lowered(func: &Func, machine: &Machine) -> Option<Module> {
    match lower::lower(func, machine, None) {
        Ok(module) => Some(module),
        Err(EmitError::Operation { .. }) => None,
        Err(error) => panic!("{}: {error}", func.name),
    }
}

#[test]
fn every_operation_is_assembled_for_every_target() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let cases = crate::coverage::all();
    for machine in Machine::all() {
        let modules: Vec<Module> = cases.iter().filter_map(|case| lowered(&case.func, machine)).collect();
        let text = joined(&modules);
        let usages =
            ptxas::assemble(&ptxas, machine.name, &text).unwrap_or_else(|said| panic!("{}: {said}", machine.name));
        assert_eq!(usages.len(), modules.len(), "{}", machine.name);
        let spilling: Vec<&Usage> = usages.iter().filter(|u| u.spilled > 0).collect();
        assert!(spilling.is_empty(), "{}: {spilling:?}", machine.name);
        ptxas::say(&format!("{}: {} of {} cases, no spills", machine.name, modules.len(), cases.len()));
    }
}

#[test]
fn kernels_are_assembled_without_spills() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let mut table = format!("{:26}", "registers");
    for machine in Machine::all() {
        table += &format!("{:>10}", machine.name);
    }
    for func in kernels::all().into_iter().chain([kernels::bytes()]) {
        table += &format!("\n{:26}", func.name);
        for machine in Machine::all() {
            let ptx = titan_nv::emit(&func, machine, Some(("src/lib.rs", 10)));
            if func.name == "bytes" && machine.capability < 89 {
                assert!(ptx.is_err(), "{} has no 8-bit floats", machine.name);
                table += &format!("{:>10}", "-");
                continue;
            }
            let text = ptx.unwrap().text;
            let usages = ptxas::assemble(&ptxas, machine.name, &text).unwrap_or_else(|said| panic!("{said}\n{text}"));
            let [usage] = usages.as_slice() else { panic!("{usages:?}") };
            assert_eq!(usage.spilled, 0, "{} for {}", func.name, machine.name);
            table += &format!("{:>10}", usage.registers);
        }
    }
    ptxas::say(&table);
}
