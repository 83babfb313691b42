//! The target tables agree with themselves and with the arithmetic of the manual.

use titan_amd::codegen::matrix_row;
use titan_amd::machine::MfmaElem;
use titan_amd::object::CodeObject;
use titan_amd::{Fp8, Machine};
use titan_core::driver::{Backend, compile};
use titan_core::ir::Elem;
use titan_core::lane::Ty;
use titan_core::text::{parse, parse_located};
use titan_core::verify::verify;

#[test]
fn machines_are_found_by_their_name() {
    for machine in Machine::all() {
        assert_eq!(Machine::from_name(machine.name), Ok(machine));
    }
    let names: Vec<_> = Machine::all().iter().map(|m| m.name).collect();
    assert!(names.windows(2).all(|w| w[0] < w[1]), "each once, in order");
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let text = Machine::from_name("gfx90a").unwrap_err().to_string();
    assert_eq!(text, "there is no AMD target `gfx90a`; the known ones are `gfx942`");
}

#[test]
fn limits_fit_into_each_other() {
    for m in Machine::all() {
        assert_eq!(m.arch_vgprs + m.acc_vgprs, m.vgprs_per_simd, "{}: one wave can have the whole file", m.name);
        assert_eq!(m.vgprs_per_simd % m.vgpr_granule, 0, "{}", m.name);
        assert_eq!(m.lds_bytes % m.lds_granule, 0, "{}", m.name);
        assert!(m.threads_per_group <= m.wave_size * m.waves_per_simd * m.simds_per_cu, "{}", m.name);
        assert!([m.vmcnt_max, m.lgkmcnt_max].iter().all(|n| (n + 1).is_power_of_two()), "{}: bit fields", m.name);
    }
}

#[test]
fn more_registers_leave_fewer_waves() {
    let m = Machine::from_name("gfx942").unwrap();
    let table = [(1, 8), (64, 8), (65, 7), (72, 7), (80, 6), (96, 5), (128, 4), (168, 3), (256, 2), (512, 1), (513, 0)];
    for (registers, waves) in table {
        assert_eq!(m.waves_by_registers(registers), waves, "{registers} registers");
    }
    assert!((1..600).all(|n| m.waves_by_registers(n) >= m.waves_by_registers(n + 1)));
}

#[test]
fn matrix_instructions_fill_the_registers_of_a_wave() {
    for m in Machine::all() {
        for i in m.mfma {
            let bytes = match i.elem {
                MfmaElem::F64 => 8,
                MfmaElem::F32 | MfmaElem::Xf32 => 4,
                MfmaElem::Half => 2,
                MfmaElem::Byte => 1,
            };
            assert_eq!(i.operand_registers * m.wave_size * 4, i.mn * i.k * bytes, "{}: {i:?}", m.name);
            let words = if i.elem == MfmaElem::F64 { 2 } else { 1 };
            assert_eq!(i.accumulator_registers * m.wave_size, i.mn * i.mn * words, "{}: {i:?}", m.name);
        }
    }
}

#[test]
fn the_wide_instruction_does_twice_the_work_in_twice_the_time() {
    // 32×32 instructions multiply four times as many pairs over half of K.
    for m in Machine::all() {
        for wide in m.mfma.iter().filter(|i| i.mn == 32) {
            let narrow = m.mfma.iter().find(|i| i.elem == wide.elem && i.mn == 16).expect("there is a narrow one");
            assert_eq!(wide.k * 2, narrow.k);
            assert_eq!(wide.passes, 2 * narrow.passes, "{wide:?}");
        }
    }
}

/// Each instruction that plans use has its row in the tables of the encoder, with the registers and the passes of the machine's.
#[test]
fn matrix_instructions_have_rows() {
    for m in Machine::all() {
        let target = m.target();
        assert_eq!(target.check(), Ok(()), "{}", m.name);
        for atom in &target.atoms {
            let mma = atom.mma;
            let row = matrix_row(&mma).unwrap_or_else(|| panic!("{mma:?} has no row"));
            let [d, a, b, c] = row.args() else { panic!("{}: four operands", row.name) };
            let count = mma.registers(m.wave_size);
            let words = |n: usize, ty: Ty| n * if ty == Ty::B64 { 2 } else { 1 };
            let dwords = [d, a, b, c].map(|arg| usize::from(arg.ty.dwords()));
            let (operand, acc) = (words(count.a, count.operand), words(count.c, count.acc));
            assert_eq!(dwords, [acc, operand, words(count.b, count.operand), acc], "{}", row.name);
            let own = m.mfma.iter().find(|i| (i.mn, i.k) == (mma.m, mma.k) && i.operand_registers as usize == operand);
            let own = own.unwrap_or_else(|| panic!("{mma:?} is none of {}'s", m.name));
            assert_eq!(own.passes, u32::from(row.passes), "{}", row.name);
        }
        let elems = [Elem::F64, Elem::F32, Elem::Tf32, Elem::F16, Elem::Bf16, Elem::I8];
        let has = |elem, n, k| target.atoms.iter().any(|atom| (atom.mma.a, atom.mma.n, atom.k) == (elem, n, k));
        assert!(elems.iter().all(|elem| has(*elem, 16, 128 / elem.bits() * 4)), "16 bytes of K for each lane");
        assert!(has(Elem::F16, 32, 16) && has(Elem::F16, 32, 8) && has(Elem::F16, 16, 16) && !has(Elem::E4m3, 16, 32));
    }
}

#[test]
fn fp8_of_gfx942_is_not_that_of_the_language() {
    assert_eq!(Machine::from_name("gfx942").unwrap().fp8, Fp8::Fnuz);
}

/// A kernel of one store becomes a code object that has its entry point.
#[test]
fn kernels_become_code_objects() {
    let text = "kernel @one(%y: mut tensor<f32>[N]) grid(N) {\n    %p = program_id<0> : i32\n    %x = const 1.0 : f32\n    \
                set %y[%p], %x\n    return\n}\n";
    let kernel = parse(text).expect("the text is a kernel").remove(0);
    let kernel = verify(kernel).expect("the kernel is right");
    for machine in Machine::all() {
        let variants = compile(&kernel, machine, None).unwrap_or_else(|e| panic!("{e}"));
        assert!(!variants.is_empty());
        for variant in variants {
            let object = CodeObject::read(&variant.payload).expect("it is a code object");
            let entry = variant.config.iter().find(|(key, _)| key == "entry").map(|(_, name)| name.as_str());
            assert_eq!(entry, Some("one"));
            assert!(object.kernels.iter().any(|kernel| kernel.name == "one"));
        }
    }
}

/// Roles wait for each other at barriers that this machine does not have.
#[test]
fn what_the_machine_lacks_names_the_line() {
    let text = include_str!("../../titan-nv/golden/roles_mbarrier.tir");
    let kernel = parse_located(text).expect("the text is a kernel").remove(0);
    let kernel = verify(kernel.kernel).expect("the kernel is right");
    for machine in Machine::all() {
        let error = compile(&kernel, machine, None).unwrap_err();
        assert_eq!(error.code().number(), "T0902");
        assert!(error.loc.line > 0, "{error}");
        assert!(error.to_string().contains("no barriers for some of a program's threads"), "{error}");
    }
}
