//! Loads and stores of all spaces, vectors, addressing, atomics.

use crate::harness::{b, gives, h, run_body};
use titan_nv::emu::Options;

#[test]
fn vectors_and_narrow_elements() {
    gives(
        "sm_80",
        ".shared .align 16 .b8 buf[2048];\n",
        "
        mov.u32 %r0, buf; mad.lo.u32 %r0, %ti, 16, %r0;
        add.u32 %r1, %ti, 1; add.u32 %r2, %ti, 2; add.u32 %r3, %ti, 3;
        st.shared.v4.u32 [%r0], {%ti, %r1, %r2, %r3};
        ld.shared.v2.u32 {%r4, %r5}, [%r0+8];
        ld.shared.v4.u8 {%h0, %h1, %h2, %h3}, [%r0];
        cvt.u32.u16 %r6, %h0;
        sub.u32 %r7, %r5, %r4; add.u32 %r7, %r7, %r6;
        st.global.u32 [%mine], %r7;",
        32,
        |t| 1 + t,
    );
    gives(
        "sm_80",
        ".shared .align 4 .b8 buf[128];\n",
        "
        mov.u32 %r0, buf; mad.lo.u32 %r0, %ti, 4, %r0;
        mov.u32 %r1, 0x80FF; st.shared.u16 [%r0], %r1; st.shared.u8 [%r0+2], %r1; st.shared.u8 [%r0+3], 7;
        ld.shared.s8 %r2, [%r0+1]; ld.shared.s16 %r3, [%r0]; ld.shared.u8 %r4, [%r0+2];
        ld.shared.s16 %rd0, [%r0]; cvt.u32.u64 %r5, %rd0; shr.u64 %rd1, %rd0, 32; cvt.u32.u64 %r6, %rd1;
        add.u32 %r2, %r2, %r4; sub.u32 %r3, %r3, %r5; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r6;
        st.global.u32 [%mine], %r2;",
        32,
        |_| (-128_i32 + 255 - 1) as u32,
    );
}

#[test]
fn generic_addresses_lead_to_their_spaces() {
    gives(
        "sm_80",
        ".shared .align 4 .b32 s[32];\n.const .align 4 .u32 c[2] = {5, 6};\n.global .align 4 .u32 g = 70;\n",
        "
        .local .align 4 .b32 l[2];
        mov.u64 %rd0, s; cvta.shared.u64 %rd0, %rd0; mad.wide.u32 %rd0, %ti, 4, %rd0;
        st.u32 [%rd0], %ti;
        mov.u64 %rd1, l; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2+4], 100; ld.local.u32 %r0, [l+4];
        mov.u64 %rd3, c; cvta.const.u64 %rd3, %rd3; ld.u32 %r1, [%rd3+4]; ld.const.u32 %r2, [c];
        ld.global.u32 %r3, [g];
        cvta.to.shared.u64 %rd4, %rd0; ld.shared.u32 %r4, [%rd4];
        isspacep.shared %p0, %rd0; selp.u32 %r5, 1000, 0, %p0; isspacep.global %p0, %rd0; selp.u32 %r6, 1, 0, %p0;
        add.u32 %v, %r0, %r1; add.u32 %v, %v, %r2; add.u32 %v, %v, %r3; add.u32 %v, %v, %r4; add.u32 %v, %v, %r5;
        add.u32 %v, %v, %r6; st.global.u32 [%mine], %v;",
        32,
        |t| 100 + 6 + 5 + 70 + t + 1000,
    );
}

#[test]
fn initialisers_hold_numbers_and_addresses() {
    gives(
        "sm_80",
        ".global .align 4 .u32 a[4] = {1, 2, 3};\n.global .align 8 .u64 p[2] = {a, a+8};\n.const .align 8 .f64 half = 2.5;\n.global .align 4 .f32 q[2] = {0f3F800000, -2.0};\n",
        "
        ld.global.u64 %rd0, [p+8]; ld.global.u32 %r0, [%rd0]; ld.global.u32 %r1, [a+12];
        ld.const.f64 %rd1, [half]; mov.b64 {%r2, %r3}, %rd1; ld.global.u32 %r4, [q+4];
        add.u32 %v, %r0, %r1; add.u32 %v, %v, %r3; add.u32 %v, %v, %r4; st.global.u32 [%mine], %v;",
        1,
        |_| 3_u32.wrapping_add((2.5_f64.to_bits() >> 32) as u32).wrapping_add((-2.0_f32).to_bits()),
    );
}

#[test]
fn structures_are_parameters() {
    // Read by name, by offset, and through a generic address.
    use titan_nv::emu::{Launch, Memory, Module, Param};
    let text = crate::harness::header("sm_80")
        + "
        .visible .entry k(.param .u8 a, .param .align 8 .b8 s[16], .param .u64 out) {
        .reg .b64 %rd<4>; .reg .b32 %r<4>;
        ld.param.u8 %r0, [a]; ld.param.u32 %r1, [s+4]; ld.param.u64 %rd0, [out];
        mov.b64 %rd1, s; cvta.param.u64 %rd2, %rd1; ld.u32 %r2, [%rd2+12];
        add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; st.global.u32 [%rd0], %r0; ret; }";
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new();
    let out = memory.alloc(4);
    let structure: Vec<u8> = [0_u32, 10, 0, 200].iter().flat_map(|x| x.to_le_bytes()).collect();
    let params = [Param::U8(3), Param::Bytes(structure), Param::Ptr(out)];
    let launch = Launch { grid: [1; 3], block: [1; 3], dynamic_shared: 0, cluster: None, params: &params };
    module.entry("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap();
    assert_eq!(crate::harness::words32(&memory, out, 1), [213]);
    crate::harness::assemble(&text, "sm_80");
}

/// The word that 32 threads leave behind, each having done `op` once; and what they saw, summed.
fn atomic(target: &str, start: u64, wide: bool, op: &str) -> u64 {
    let (load, store) =
        if wide { ("ld.shared.u64 %rd1", "mov.b64 {%r2, %r3}, %rd1") } else { ("ld.shared.u32 %r2", "mov.u32 %r3, 0") };
    let body = format!(
        "
        mov.u32 %r0, w; setp.ne.u32 %p0, %ti, 0; mov.u64 %rd0, {start};
        @!%p0 st.shared.u64 [%r0], %rd0; bar.sync 0;
        add.u32 %r1, %ti, 1; cvt.u64.u32 %rd2, %r1; cvt.rn.f32.u32 %f0, %r1; mov.b32 %r4, %f0; cvt.rn.f16.u32 %h0, %r1;
        mov.b32 %r5, {{%h0, %h0}};
        {op}
        bar.sync 0; {load}, [%r0]; {store}; mov.u32 %v, %r2; setp.eq.u32 %p1, %ti, 1; @%p1 mov.u32 %v, %r3;
        st.global.u32 [%mine], %v;"
    );
    let out = run_body(target, ".shared .align 8 .b64 w;\n", &body, 32, &Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    u64::from(out[1]) << 32 | u64::from(out[0])
}

#[test]
fn atomics_of_all_operations() {
    let narrow = |start, op: &str| atomic("sm_80", start, false, op) & 0xFFFF_FFFF;
    assert_eq!(narrow(0, "atom.shared.add.u32 %r6, [%r0], %r1;"), 528);
    assert_eq!(narrow(0, "red.shared.add.s32 [%r0], %r1;"), 528);
    assert_eq!(narrow(5, "red.shared.min.u32 [%r0], %r1;"), 1);
    assert_eq!(narrow(5, "red.shared.max.s32 [%r0], %r1;"), 32);
    assert_eq!(narrow(0xFF, "red.shared.and.b32 [%r0], 0x3C;"), 0x3C);
    assert_eq!(narrow(0, "red.shared.or.b32 [%r0], %r1;"), 63);
    assert_eq!(narrow(0, "red.shared.xor.b32 [%r0], %r1;"), 32);
    assert_eq!(narrow(9, "atom.shared.inc.u32 %r6, [%r0], 10;"), 8, "9, 10, 0, 1, ...");
    assert_eq!(narrow(2, "atom.shared.dec.u32 %r6, [%r0], 3;"), 2);
    assert_eq!(narrow(7, "atom.shared.cas.b32 %r6, [%r0], 7, %r1;"), 1, "the first swaps 1 in, and 7 is gone");
    assert_eq!(narrow(0, "red.shared.add.f32 [%r0], %f0;"), u64::from(528f32.to_bits()));
    assert_eq!(narrow(0, "red.shared.add.noftz.f16x2 [%r0], %r5;"), h(528.0) << 16 | h(528.0));
    assert_eq!(narrow(0, "atom.relaxed.cta.shared.add.u32 %r6, [%r0], %r1;"), 528);
    let wide = |start, op: &str| atomic("sm_80", start, true, op);
    assert_eq!(wide(1 << 40, "atom.shared.add.u64 %rd3, [%r0], %rd2;"), (1 << 40) + 528);
    assert_eq!(wide(1 << 40, "red.shared.max.u64 [%r0], %rd2;"), 1 << 40);
    assert_eq!(wide(u64::MAX, "red.shared.max.s64 [%r0], %rd2;"), 32);
    let out = atomic(
        "sm_90",
        0,
        false,
        "cvt.rn.bf16.u32 %h0, %r1; mov.b32 %r5, {%h0, %h0}; red.shared.add.noftz.bf16x2 [%r0], %r5;",
    );
    // Sums above 256 round to even at every step.
    let want = (1..=32).fold(0.0_f32, |s, i| f32::from_bits((b(s + i as f32) as u32) << 16));
    assert_eq!(out & 0xFFFF, b(want));
}

#[test]
fn the_first_atomic_comes_first() {
    // Each thread sees a different ticket.
    let out = run_body(
        "sm_80",
        ".shared .align 4 .b32 w;\n",
        "
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        atom.shared.add.u32 %v, [%r0], 1; st.global.u32 [%mine], %v;",
        64,
        &Options::default(),
    )
    .unwrap();
    let mut sorted = out.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..64).collect::<Vec<_>>());
}

#[test]
fn vector_reductions_of_sm_90() {
    let out = run_body(
        "sm_90",
        "",
        "
        mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;
        red.global.add.v4.f32 [%out], {%f0, %f1, %f2, %f3};",
        4,
        &Options::default(),
    );
    let out = out.unwrap().iter().map(|x| f32::from_bits(*x)).collect::<Vec<_>>();
    assert_eq!(out, [4.0, 8.0, 12.0, 16.0]);
}

#[test]
fn windows_are_given_out_again_when_their_allocations_are_forgotten() {
    const WINDOWS: u64 = 4200;
    let mut memory = titan_nv::emu::Memory::with_windows(5, 4 + WINDOWS);
    let places: Vec<_> = (0..WINDOWS).map(|i| memory.try_alloc(&format!("a{i}"), 16).unwrap()).collect();
    assert!(places.iter().zip(5..).all(|(p, window)| p.address() >> 32 == window));
    assert_eq!(memory.try_alloc("c", 16), None);
    memory.free(places[0]);
    // Once is enough.
    memory.free(places[0]);
    let late = memory.check(places[0], 1).unwrap_err().to_string();
    assert!(late.contains("belongs to `a0`, which is freed"), "{late}");
    assert_eq!(memory.try_alloc("c", 16), None, "it is remembered");
    places[1..].iter().for_each(|place| memory.free(*place));
    assert_eq!(memory.try_alloc("c", 16), Some(places[0]));
    memory.write(places[0], &[1; 16]).unwrap();
    // One that is removed at once and made anew at its place is not the one that was freed there.
    let place = memory.alloc_at("d", 0x7000_0000_1000, 16).unwrap();
    memory.free(place);
    memory.forget(place);
    memory.alloc_at("e", place.address(), 16).unwrap();
    (0..5000).for_each(|_| {
        let short = memory.try_alloc("short", 1).unwrap();
        memory.free(short);
    });
    memory.write(place, &[1; 16]).unwrap();
}

#[test]
fn more_than_there_is_is_not_allocated() {
    let mut memory = titan_nv::emu::Memory::new();
    for bytes in [1 << 61, usize::MAX] {
        assert_eq!(memory.try_alloc("much", bytes), None);
    }
    let place = memory.try_alloc("little", 16).unwrap();
    memory.write(place, &[1; 16]).unwrap();
}

#[test]
fn what_a_launch_touches_is_told() {
    let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n\
        .reg .b64 %p<2>; .reg .b32 %i<2>; ld.param.u64 %p0, [x]; mov.u32 %i0, %tid.x; mad.wide.u32 %p1, %i0, 4, %p0;\n\
        ld.global.u32 %i1, [%p1]; st.global.u32 [%p1+64], %i1; atom.global.add.u32 %i0, [%p0+128], 1; ret; }\n";
    let module = titan_nv::emu::Module::parse(text).unwrap();
    let mut memory = titan_nv::emu::Memory::new();
    let x = memory.upload("x", &[0; 132]);
    let params = [titan_nv::emu::Param::Ptr(x)];
    let launch =
        titan_nv::emu::Launch { grid: [1; 3], block: [8, 1, 1], dynamic_shared: 0, cluster: None, params: &params };
    memory.watch();
    module.entry("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap();
    let touched = memory.touched();
    let from = |at: i64, bytes: i64| vec![(x.add(at).address(), x.add(at + bytes).address())];
    let all = [&touched.reads, &touched.writes, &touched.strong].map(|r| r.iter().collect::<Vec<_>>());
    assert_eq!(all, [from(0, 32), from(64, 32), from(128, 4)]);
}

/// Time grows with the allocations, not with their square: this took minutes.
#[test]
fn many_allocations_are_made_and_freed_in_time() {
    let mut memory = titan_nv::emu::Memory::new();
    let started = std::time::Instant::now();
    let kept: Vec<_> = (0..20_000).map(|_| memory.try_alloc("kept", 16).unwrap()).collect();
    for i in 0..200_000u32 {
        let place = memory.try_alloc("short", 4).unwrap();
        memory.write(place, &i.to_le_bytes()).unwrap();
        memory.free(place);
    }
    kept.iter().rev().for_each(|place| memory.free(*place));
    let seconds = started.elapsed().as_secs();
    assert!(seconds < 60, "{seconds} s for 220,000 allocations");
}
