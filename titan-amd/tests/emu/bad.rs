//! Bad input: launches that cannot be, waves that jump out of the code, and random code.

use crate::harness::{Bench, upload};
use crate::random::instruction;
use crate::support::depth::tries;
use titan_amd::emu::{Arg, Args, EmuError, ErrorCode, Launch, Memory, Module, Options};
use titan_amd::isa::all;
use titan_amd::object::{KernelCode, Program};
use titan_sim::engine::Rng;

fn told(grid: [u32; 3], block: [u32; 3], dynamic_lds: u32) -> String {
    let module = Bench::pointers(1).module("s_endpgm");
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0]);
    let args = [Arg::Ptr(x)];
    let launch = Launch { grid, block, dynamic_lds, args: Args::Each(&args) };
    let error = module.kernel("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Launch);
    error.to_string()
}

#[test]
fn launches_that_cannot_be_are_refused_in_words() {
    assert!(
        told([1, 1, 1], [64, 1, 1], 61_441).contains("65537 bytes of the local data share: a workgroup can have 65536")
    );
    assert!(told([1, 1, 1], [64, 1, 1], u32::MAX).contains("bytes of the local data share"));
    assert!(told([1, 1, 1], [1025, 1, 1], 0).contains("1 to 1024 are possible"));
    assert!(told([1, 1, 1], [1 << 16, 1 << 16, 1], 0).contains("1 to 1024 are possible"));
    assert!(told([1, 1, 1], [0, 1, 1], 0).contains("1 to 1024 are possible"));
    assert!(told([0, 1, 1], [64, 1, 1], 0).contains("a grid of 0 × 1 × 1"));
    assert!(told([u32::MAX, 1, 1], [64, 1, 1], 0).contains("is not possible"));
    // More workgroups than 64 bits count.
    assert!(told([1 << 25; 3], [64, 1, 1], 0).contains("is not possible"));
    let module = Bench::pointers(1).module("s_endpgm");
    let no_args = Launch { grid: [1; 3], block: [64, 1, 1], dynamic_lds: 0, args: Args::Each(&[]) };
    let kernel = module.kernel("k").unwrap();
    let text = kernel.run(&no_args, &mut Memory::new(), &Options::default()).unwrap_err().to_string();
    assert!(text.contains("`k` takes 1 arguments, not 0"), "{text}");
    let packed = Launch { args: Args::Packed(&[0; 9]), ..no_args };
    let text = kernel.run(&packed, &mut Memory::new(), &Options::default()).unwrap_err().to_string();
    assert!(text.contains("takes 8 bytes of arguments, not 9"), "{text}");
    assert!(module.kernel("other").unwrap_err().to_string().contains("there is no kernel `other`; the module has `k`"));
}

pub(crate) fn run_code(code: Vec<u8>, options: &Options) -> Result<(), EmuError> {
    let mut resources = Bench::pointers(1).resources;
    // Registers are not what is missing.
    (resources.vgprs, resources.agprs, resources.sgprs, resources.lds_bytes) = (256, 256, 96, 65_536);
    let args = vec![titan_amd::object::KernelArg {
        name: None,
        offset: 0,
        size: 8,
        kind: titan_amd::object::ArgKind::GlobalBuffer,
    }];
    let kernel = KernelCode { name: "k".to_owned(), code, args, resources, max_workgroup_size: 1024 };
    let module = Module::load(&Program { kernels: vec![kernel] }.to_bytes().unwrap())?;
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 256]);
    let args = [Arg::Ptr(x)];
    let launch = Launch { grid: [1, 1, 1], block: [128, 1, 1], dynamic_lds: 0, args: Args::Each(&args) };
    module.kernel("k")?.run(&launch, &mut memory, options).map(drop)
}

#[test]
fn a_wave_that_runs_into_data_is_told_where() {
    // Two words of data behind the code, which nothing ends.
    let code = [0xBF80_0000_u32, 0xFFFF_FFFF, 0xFFFF_FFFF].iter().flat_map(|w| w.to_le_bytes()).collect();
    let text = run_code(code, &Options::default()).unwrap_err().to_string();
    for want in
        ["emu::unknown", "the wave runs into what is no instruction", "(`k` + 0x4)", "wave 0 of workgroup (0, 0, 0)"]
    {
        assert!(text.contains(want), "{want} is not in:\n{text}");
    }
    // Nothing but idle instructions: it runs out of the code.
    let text = run_code(0xBF80_0000_u32.to_le_bytes().repeat(4), &Options::default()).unwrap_err().to_string();
    assert!(
        text.contains("the wave runs outside of the code") && text.contains("a kernel ends by `s_endpgm`"),
        "{text}"
    );
}

#[test]
fn a_wave_that_never_ends_is_given_up() {
    let code = [0xBF82_FFFF_u32].iter().flat_map(|w| w.to_le_bytes()).collect();
    let options = Options { max_steps: 10_000, ..Options::default() };
    assert_eq!(run_code(code, &options).unwrap_err().code(), ErrorCode::Limit);
}

/// Every error that an instruction causes says which one, where, and in which wave; those of a launch are about all of it.
fn is_complete(error: &EmuError) {
    let report = error.report();
    match error.code() {
        ErrorCode::Limit | ErrorCode::Launch | ErrorCode::Object => {}
        ErrorCode::Unsupported if report.message.ends_with("of the kernel's descriptor") => {}
        _ => assert!(report.site.is_some() && report.wave.is_some(), "{error}"),
    }
}

#[test]
fn random_instructions_never_panic() {
    let rows: Vec<_> = all().flat_map(|row| row.forms().into_iter().map(move |form| (row, form))).collect();
    let mut rng = Rng::new(99);
    let (mut ended, mut failed) = (0, 0);
    let rounds = tries(1500, 6000_u64);
    for round in 0..rounds {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(4) {
            let (row, form) = rows[rng.below(rows.len())];
            code.extend(instruction(&mut rng, row, form).bytes().unwrap());
        }
        code.extend(0xBF81_0000_u32.to_le_bytes());
        let uninitialised = titan_amd::emu::Uninitialised::Random(round);
        let hazards = round % 2 == 0;
        match run_code(code, &Options { uninitialised, hazards, max_steps: 10_000, ..Options::default() }) {
            Ok(()) => ended += 1,
            Err(error) => {
                is_complete(&error);
                failed += 1;
            }
        }
    }
    assert!(20 * ended > rounds && 6 * failed > rounds, "{ended} ended, {failed} failed");
}

#[test]
fn random_bits_never_panic() {
    let mut rng = Rng::new(100);
    for round in 0..tries(1000, 4000_u64) {
        let words = 1 + rng.below(12);
        let code: Vec<u8> = (0..words).flat_map(|_| (rng.next_u64() as u32).to_le_bytes()).collect();
        let uninitialised = titan_amd::emu::Uninitialised::Random(round);
        let error = run_code(code, &Options { uninitialised, max_steps: 10_000, ..Options::default() });
        error.as_ref().err().map(is_complete);
    }
}

#[test]
fn corrupted_objects_never_panic_when_they_run() {
    let code: Vec<u8> = titan_amd::isa::asm::assemble(&format!(
        "{}\nglobal_load_dword v4, v[0:1], off\ns_waitcnt vmcnt(0)\nglobal_store_dword v[0:1], v4, off\ns_endpgm",
        crate::harness::ONE_POINTER
    ))
    .unwrap();
    let kernel = KernelCode {
        name: "k".to_owned(),
        code,
        args: vec![titan_amd::object::KernelArg {
            name: None,
            offset: 0,
            size: 8,
            kind: titan_amd::object::ArgKind::GlobalBuffer,
        }],
        resources: Bench::pointers(1).resources,
        max_workgroup_size: 1024,
    };
    let good = Program { kernels: vec![kernel] }.to_bytes().unwrap();
    let mut rng = Rng::new(101);
    let (mut ended, mut failed) = (0, 0);
    let objects = tries(5000, 20_000);
    for _ in 0..objects {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(2) {
            let at = rng.below(bytes.len());
            bytes[at] = if rng.below(2) == 0 { bytes[at] ^ 1 << rng.below(8) } else { rng.next_u64() as u8 };
        }
        let Ok(module) = Module::load(&bytes) else { continue };
        // Images of hundreds of megabytes are no mistake, but slow.
        if module.object().image.len() > 1 << 20 {
            continue;
        }
        for entry in &module.object().kernels {
            let mut memory = Memory::new();
            let x = upload(&mut memory, "x", &[0; 64]);
            let visible = entry.args().iter().filter(|a| !a.kind.is_hidden());
            let args: Vec<Arg> =
                visible.map(|a| if a.size == 8 { Arg::Ptr(x) } else { Arg::Bytes(vec![0; a.size as usize]) }).collect();
            let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], dynamic_lds: 0, args: Args::Each(&args) };
            let options = Options { max_steps: 10_000, ..Options::default() };
            match module.kernel(&entry.name).unwrap().run(&launch, &mut memory, &options) {
                Ok(_) => ended += 1,
                Err(error) => {
                    is_complete(&error);
                    failed += 1;
                }
            }
        }
    }
    assert!(20 * ended > objects && 200 * failed > objects, "{ended} ended, {failed} failed");
}
