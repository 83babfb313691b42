//! The target tables agree with themselves and with the arithmetic of the manuals.

use titan_core::driver::{Estimate, compile};
use titan_core::text::parse;
use titan_core::verify::verify;
use titan_nv::{Feature, Machine};

#[test]
fn machines_are_found_by_their_name() {
    for machine in Machine::all() {
        assert_eq!(Machine::from_name(machine.name), Ok(machine));
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let text = Machine::from_name("sm_70").unwrap_err().to_string();
    for machine in Machine::all() {
        assert!(text.contains(&format!("`{}`", machine.name)), "{text}");
    }
    let text = Machine::from_name("sm_90").unwrap_err().to_string();
    assert!(text.ends_with("help: kernels need what only `sm_90a` has"), "{text}");
}

#[test]
fn the_system_reserves_shared_memory_for_each_program() {
    // 100 KiB for all programs of a multiprocessor, of which the system takes 1 KiB for each.
    let target = titan_nv::target(Machine::from_name("sm_80").unwrap());
    assert_eq!((target.shared_bytes, target.shared_reserved), (99 << 10, 1 << 10));
    let with = |kib: u32| Estimate { shared_bytes: kib << 10, registers: 32, warps: 4, copies_in_bulk: false };
    for (kib, programs) in [(99, 1), (50, 1), (49, 2), (33, 2), (32, 3)] {
        assert_eq!(with(kib).programs(&target), programs, "{kib} KiB each");
    }
}

#[test]
fn names_are_unique_and_rows_are_in_order() {
    for pair in Machine::all().windows(2) {
        assert!(pair[0].capability < pair[1].capability, "{} before {}", pair[0].name, pair[1].name);
        assert_eq!(pair[1].name.trim_start_matches("sm_").trim_end_matches('a'), pair[1].capability.to_string());
    }
}

#[test]
fn limits_fit_into_each_other() {
    for m in Machine::all() {
        let name = m.name;
        assert_eq!(m.shared_per_sm - m.shared_per_block, 1024, "{name}: the system keeps 1 KiB");
        assert!(m.threads_per_block <= m.warps_per_sm * m.warp_size, "{name}");
        // A full program gets at least 64 registers a thread.
        assert!(m.registers_per_sm / m.threads_per_block >= 64, "{name}");
        assert!(m.registers_per_thread < 256, "{name}: R255 is not a register");
    }
}

#[test]
fn features_are_listed_once_and_stay() {
    for m in Machine::all() {
        assert!(m.features.windows(2).all(|w| w[0] < w[1]), "{}: sorted, each once", m.name);
    }
    for pair in Machine::all().windows(2) {
        let lost: Vec<_> = pair[0].features.iter().filter(|f| !pair[1].has(**f)).collect();
        // sm_100a has no wgmma, and sm_120a no tensor memory and no fast multicast.
        let expected: &[&Feature] = match pair[1].name {
            "sm_100a" => &[&Feature::Wgmma],
            "sm_120a" => &[&Feature::Multicast, &Feature::Tcgen05],
            _ => &[],
        };
        assert_eq!(lost, expected, "{} to {}", pair[0].name, pair[1].name);
    }
}

#[test]
fn matrix_instructions_belong_to_a_feature_and_read_a_fixed_width() {
    for m in Machine::all() {
        for shape in m.mma {
            assert!(m.has(shape.family), "{}: {shape:?}", m.name);
            assert_eq!((shape.n.0 % 8, shape.n.1 % 8), (0, 0), "{}: {shape:?}", m.name);
            // Rows of the left operand are 32 bytes: 256 bits of K, whatever the element.
            assert_eq!(shape.k * shape.bits, 256, "{}: {shape:?}", m.name);
        }
        assert!(!m.mma.is_empty(), "{}", m.name);
    }
}

#[test]
fn the_portable_code_runs_where_shared_memory_is_least() {
    let least = Machine::all().iter().map(|m| m.shared_per_block).min();
    assert_eq!(least, Some(99 * 1024), "what is made for sm_80 and runs on sm_86 stays below this");
}

#[test]
fn devices_run_code_of_their_own_first_and_of_no_later_machine() {
    let names = |capability| Machine::of_capability(capability).iter().map(|m| m.name).collect::<Vec<_>>();
    assert_eq!(names(75), [""; 0]);
    assert_eq!(names(80), ["sm_80"]);
    assert_eq!(names(87), ["sm_86", "sm_80"]);
    assert_eq!(names(90), ["sm_90a", "sm_89", "sm_86", "sm_80"]);
    // PTX for sm_90a runs on devices of 9.0 alone.
    assert_eq!(names(100), ["sm_100a", "sm_89", "sm_86", "sm_80"]);
    assert_eq!(names(103), ["sm_103a", "sm_89", "sm_86", "sm_80"]);
    assert_eq!(names(120), ["sm_120a", "sm_89", "sm_86", "sm_80"]);
    assert_eq!(names(121), ["sm_89", "sm_86", "sm_80"]);
}

#[test]
fn a_kernel_becomes_ptx_of_every_target() {
    let text = "kernel @one(%y: mut tensor<f32>[N]) grid(N) {\n    %p = program_id<0> : i32\n    %x = const 1.0 : f32\n    \
                set %y[%p], %x\n    return\n}\n";
    let kernel = parse(text).expect("the text is a kernel").remove(0);
    let kernel = verify(kernel).expect("the kernel is right");
    for machine in Machine::all() {
        let variants = compile(&kernel, machine, None).unwrap_or_else(|e| panic!("{}: {e}", machine.name));
        if machine.has(Feature::Tma) {
            // It needs nothing that older machines have not: their code runs there.
            assert!(variants.is_empty(), "{}", machine.name);
            continue;
        }
        let last = variants.last().expect("there is a variant");
        assert!(last.assumptions.is_empty(), "the last variant runs with any arguments");
        let ptx = String::from_utf8(last.payload.clone()).expect("PTX is text");
        assert!(ptx.contains(&format!(".target {}\n", machine.name)), "{ptx}");
    }
}

#[test]
fn fragments_of_all_matrix_instructions_hold_their_operands() {
    for machine in Machine::all() {
        let target = titan_nv::target(machine);
        assert_eq!(target.check(), Ok(()));
        assert!(!target.atoms.is_empty(), "{}", machine.name);
    }
}
