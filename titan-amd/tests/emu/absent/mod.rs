//! What the emulator does not have: every feature is refused, by its name, where a kernel uses it; nothing else is.

mod examples;
mod llvm;
mod page;

use crate::bad::run_code;
use crate::harness::{Bench, ONE_POINTER, upload};
use crate::random::instruction;
use examples::{DESCRIPTORS, EXAMPLES, ROUNDING, WORDS};
use std::collections::BTreeSet;
use titan_amd::emu::{Absent, Arg, Args, EmuError, ErrorCode, Launch, Memory, Module, Options, Uninitialised};
use titan_amd::isa::{Row, all};
use titan_amd::object::{CodeObject, KernelCode, Program};
use titan_sim::engine::Rng;

/// What comes of a kernel with these instructions, one wave and a buffer: `v[0:1]` has addresses, `v2` and `v3` numbers, `s[8:9]` the
/// buffer's address.
fn run(body: &str) -> Result<(), EmuError> {
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 64]);
    let text = format!("{ONE_POINTER}\n{body}\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm");
    Bench::pointers(1).run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, &Options::default()).map(drop)
}

/// That an error refuses a feature, and how it names what uses it.
fn is_refusal(result: Result<(), EmuError>, feature: Absent, says: &str, of: &str) {
    let error = match result {
        Ok(()) => panic!("{of} is not refused"),
        Err(error) => error,
    };
    let want = format!("error[emu::unsupported]: the emulator does not have {}: ", feature.name());
    let text = error.to_string();
    assert_eq!(error.code(), ErrorCode::Unsupported, "{of}: {text}");
    assert!(text.starts_with(&want) && text.contains(says), "{of}: not `{want}` with `{says}`, but\n{text}");
}

#[test]
fn every_feature_has_an_example_that_is_refused_by_its_name() {
    let mut left: BTreeSet<Absent> = Absent::ALL.iter().copied().collect();
    assert_eq!(left.len(), Absent::ALL.len(), "a feature is listed twice");
    for (feature, says, body) in EXAMPLES {
        is_refusal(run(body), *feature, says, body);
        left.remove(feature);
    }
    let run_words = |words: &[u32]| {
        let code = words.iter().chain(&[0xBF81_0000]).flat_map(|w| w.to_le_bytes()).collect();
        run_code(code, &Options::default())
    };
    for (feature, says, words) in WORDS {
        is_refusal(run_words(words), *feature, says, says);
        left.remove(feature);
    }
    for feature in Absent::ALL.iter().copied() {
        for (name, word) in feature.instructions() {
            is_refusal(run_words(&[word, 0, 0]), feature, &format!("`{name}`"), name);
            left.remove(&feature);
        }
    }
    assert!(left.is_empty(), "features without an example: {left:?}");
}

#[test]
fn names_of_features_differ_and_are_not_empty() {
    let names: BTreeSet<_> = Absent::ALL.iter().map(|f| f.name()).collect();
    assert_eq!(names.len(), Absent::ALL.len());
    for feature in Absent::ALL.iter().copied() {
        assert!(feature.section().starts_with('§') && !feature.used_by().is_empty(), "{feature:?}");
        // The page names instructions, or the beginning of several.
        for (name, _) in feature.instructions() {
            let begins = |n: usize| feature.used_by().contains(&format!("`{}", &name[..n]));
            assert!((6..=name.len()).any(begins), "{name}: {}", feature.used_by());
        }
    }
}

#[test]
fn descriptors_that_ask_for_a_feature_are_refused_before_anything_runs() {
    for (feature, says, (at, bits), more) in DESCRIPTORS {
        let kernel = KernelCode {
            name: "k".to_owned(),
            code: titan_amd::isa::asm::assemble("s_endpgm").unwrap(),
            args: Vec::new(),
            resources: Bench::pointers(1).resources,
            max_workgroup_size: 1024,
        };
        let mut bytes = Program { kernels: vec![kernel] }.to_bytes().unwrap();
        let descriptor = CodeObject::read(&bytes).unwrap().kernels[0].descriptor_address as usize;
        for (at, bits) in [(*at, *bits), *more] {
            let word = &mut bytes[descriptor + at..][..4];
            let old = u32::from_le_bytes((&*word).try_into().unwrap());
            word.copy_from_slice(&(old | bits).to_le_bytes());
        }
        let module = Module::load(&bytes).unwrap();
        let launch = Launch { grid: [1; 3], block: [64, 1, 1], dynamic_lds: 0, args: Args::Packed(&[]) };
        let kernel = module.kernel("k").unwrap();
        is_refusal(kernel.run(&launch, &mut Memory::new(), &Options::default()).map(drop), *feature, says, says);
        is_refusal(kernel.check_launch(&launch), *feature, says, says);
    }
}

#[test]
fn rounding_by_the_mode_is_refused_where_an_instruction_rounds() {
    const NEAREST: &str = "s_nop 1\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0\n";
    let set = |bits: u32| format!("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {bits:#x}\n");
    let prepare =
        "v_mov_b32_e32 v4, 1.0\nv_mov_b32_e32 v5, 2.0\nv_mov_b32_e32 v6, v4\nv_mov_b32_e32 v7, v5\ns_mov_b64 vcc, 0\n";
    for (line, rounds) in ROUNDING {
        for bits in [1, 3, 4, 8, 12, 15] {
            let body = format!("{prepare}{}{line}", set(bits));
            if *rounds {
                is_refusal(run(&body), Absent::Rounding, "rounds as `MODE` says", &body);
            } else {
                run(&body).unwrap_or_else(|e| panic!("{body}: {e}"));
            }
        }
        let body = format!("{prepare}{}{NEAREST}{line}", set(3));
        run(&body).unwrap_or_else(|e| panic!("{body}: {e}"));
    }
}

/// Every row is computed, or refused as one of the features.
#[test]
fn no_instruction_of_the_tables_is_without_a_rule() {
    let mut rng = Rng::new(42);
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    for row in all() {
        for form in row.forms() {
            let inst = instruction(&mut rng, row, form);
            let mut code = inst.bytes().unwrap();
            code.extend(0xBF81_0000_u32.to_le_bytes());
            let uninitialised = Uninitialised::Random(7);
            let options = Options { uninitialised, hazards: false, max_steps: 10_000, ..Options::default() };
            let Err(error) = run_code(code, &options) else { continue };
            let text = error.to_string();
            assert!(!text.contains("no rule"), "{inst}: {text}");
            if error.code() == ErrorCode::Unsupported {
                let named = Absent::ALL.iter().any(|f| text.contains(f.name()));
                assert!(named, "{inst}: {text}");
                refused.insert(row.name);
            }
        }
    }
    let whole = all().filter(|row: &&'static Row| refused.contains(row.name) && is_never_computed(row)).count();
    assert_eq!(whole, all().filter(|row| is_never_computed(row)).count(), "{refused:?}");
}

/// The rows that are refused whatever their operands, as the page says.
fn is_never_computed(row: &Row) -> bool {
    let name = row.name;
    let narrow = name.contains("_lds_") && !name.ends_with("dword");
    let others = [
        "s_sendmsg",
        "s_sendmsghalt",
        "s_sethalt",
        "v_trig_preop_f64",
        "v_cvt_pkaccum_u8_f32",
        "v_qsad_pk_u16_u8",
        "v_mqsad_pk_u16_u8",
        "v_mqsad_u32_u8",
        "ds_condxchg32_rtn_b64",
    ];
    name.starts_with("v_smfmac") || name.starts_with("ds_wrxchg2") || narrow || others.contains(&name)
}
