//! Which instruction needs which version and target: accepted from there on, refused below, as by the assembler.

use crate::harness::toolkit_accepts;
use titan_nv::emu::{ErrorCode, Module};

/// Target and version, lowest first, and the instruction.
const NEEDS: &[(&str, &str, &str)] = &[
    ("sm_89", "8.1", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;"),
    ("sm_89", "8.1", "cvt.rn.f16x2.e5m2x2 %r2, %h0;"),
    (
        "sm_89",
        "8.4",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f0,%f1,%f2,%f3}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f0,%f1,%f2,%f3};",
    ),
    (
        "sm_89",
        "8.7",
        "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r8,%r9}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%r8,%r9};",
    ),
    (
        "sm_89",
        "8.7",
        "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {%f0,%f1,%f2,%f3}, {%r2,%r3}, {%r6}, {%f0,%f1,%f2,%f3};",
    ),
    (
        "sm_90",
        "7.8",
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1,%fd2,%fd3}, {%fd4,%fd5}, {%fd6}, {%fd0,%fd1,%fd2,%fd3};",
    ),
    (
        "sm_80",
        "7.0",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%f0,%f1,%f2,%f3};",
    ),
    ("sm_80", "7.0", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0,%fd1}, {%fd4}, {%fd6}, {%fd0,%fd1};"),
    (
        "sm_80",
        "7.0",
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r8,%r9,%r10,%r11}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%r8,%r9,%r10,%r11};",
    ),
    ("sm_90", "7.8", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r2};"),
    ("sm_80", "7.0", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r0];"),
    ("sm_80", "7.8", "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;"),
    ("sm_90", "8.0", "elect.sync %r2|%p0, -1;"),
    ("sm_80", "7.0", "mbarrier.init.shared.b64 [%r0], 1;"),
    ("sm_80", "7.0", "mbarrier.arrive.shared.b64 %rd1, [%r0];"),
    ("sm_80", "7.1", "mbarrier.arrive.shared.b64 _, [%r0];"),
    ("sm_90", "7.8", "mbarrier.arrive.shared.b64 %rd1, [%r0], 2;"),
    ("sm_80", "7.0", "mbarrier.arrive.noComplete.shared.b64 %rd1, [%r0], 1;"),
    ("sm_80", "8.0", "mbarrier.arrive.release.cta.shared.b64 %rd1, [%r0];"),
    ("sm_80", "7.0", "mbarrier.arrive_drop.shared.b64 %rd1, [%r0];"),
    ("sm_90", "8.0", "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r0], 1;"),
    ("sm_90", "8.0", "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r0], 1;"),
    ("sm_80", "7.0", "mbarrier.test_wait.shared.b64 %p0, [%r0], %rd1;"),
    ("sm_80", "7.1", "mbarrier.test_wait.parity.shared.b64 %p0, [%r0], %r1;"),
    ("sm_90", "7.8", "mbarrier.try_wait.parity.shared.b64 %p0, [%r0], %r1;"),
    ("sm_90", "8.0", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r0], %r1;"),
    ("sm_80", "8.0", "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r0], %r1;"),
    ("sm_80", "7.0", "cp.async.mbarrier.arrive.noinc.shared.b64 [%r0];"),
    ("sm_80", "7.0", "cp.async.cg.shared.global [%r0], [%rd0], 16, %r1;"),
    ("sm_80", "7.5", "cp.async.cg.shared.global [%r0], [%rd0], 16, %p0;"),
    ("sm_80", "7.4", "cp.async.cg.shared.global.L2::128B [%r0], [%rd0], 16;"),
    ("sm_80", "7.4", "cp.async.cg.shared.global.L2::cache_hint [%r0], [%rd0], 16, %rd1;"),
    ("sm_80", "7.8", "ld.shared::cta.u32 %r2, [%r0];"),
    ("sm_80", "7.4", "ld.global.L1::no_allocate.L2::128B.u32 %r2, [%rd0];"),
    ("sm_80", "7.4", "ld.global.nc.L1::evict_last.u32 %r2, [%rd0];"),
    ("sm_80", "7.4", "ld.global.L2::cache_hint.u32 %r2, [%rd0], %rd1;"),
    ("sm_80", "7.4", "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;"),
    ("sm_90", "7.8", "griddepcontrol.wait;"),
    ("sm_90a", "8.0", "setmaxnreg.dec.sync.aligned.u32 24;"),
    ("sm_90", "7.8", "add.bf16 %h0, %h1, %h2;"),
    ("sm_90", "7.8", "add.bf16x2 %r2, %r3, %r4;"),
    ("sm_90", "7.8", "sub.bf16 %h0, %h1, %h2;"),
    ("sm_80", "7.0", "fma.rn.bf16 %h0, %h1, %h2, %h3;"),
    ("sm_80", "7.0", "fma.rn.relu.f16 %h0, %h1, %h2, %h3;"),
    ("sm_80", "7.0", "min.f16 %h0, %h1, %h2;"),
    ("sm_80", "7.0", "max.NaN.f32 %f0, %f1, %f2;"),
    ("sm_80", "7.0", "max.bf16x2 %r2, %r3, %r4;"),
    ("sm_80", "7.0", "neg.bf16 %h0, %h1;"),
    ("sm_80", "7.0", "abs.f16 %h0, %h1;"),
    ("sm_86", "7.2", "max.xorsign.abs.f32 %f0, %f1, %f2;"),
    ("sm_86", "7.2", "max.xorsign.abs.f16 %h0, %h1, %h2;"),
    ("sm_90", "8.0", "add.u16x2 %r2, %r3, %r4;"),
    ("sm_90", "8.0", "min.s16x2 %r2, %r3, %r4;"),
    ("sm_80", "7.0", "ex2.approx.f16 %h0, %h1;"),
    ("sm_90", "7.8", "ex2.approx.ftz.bf16 %h0, %h1;"),
    ("sm_80", "7.0", "tanh.approx.f32 %f0, %f1;"),
    ("sm_90", "7.8", "tanh.approx.bf16 %h0, %h1;"),
    ("sm_80", "7.0", "cvt.rn.bf16.f32 %h0, %f0;"),
    ("sm_80", "7.0", "cvt.rn.bf16x2.f32 %r2, %f0, %f1;"),
    ("sm_80", "7.1", "cvt.f32.bf16 %f0, %h0;"),
    ("sm_90", "7.8", "cvt.rn.bf16.f16 %h0, %h1;"),
    ("sm_90", "7.8", "cvt.rn.bf16.s32 %h0, %r2;"),
    ("sm_80", "7.0", "cvt.rna.tf32.f32 %r2, %f0;"),
    ("sm_90", "7.8", "cvt.rn.tf32.f32 %r2, %f0;"),
    ("sm_80", "8.1", "cvt.rna.satfinite.tf32.f32 %r2, %f0;"),
    ("sm_80", "8.1", "cvt.rn.satfinite.f16.f32 %h0, %f0;"),
    ("sm_80", "7.0", "cvt.rn.relu.f16.f32 %h0, %f0;"),
    ("sm_80", "8.1", "cvt.rn.satfinite.f16x2.f32 %r2, %f0, %f1;"),
    ("sm_80", "7.0", "cvt.pack.sat.s16.s32 %r2, %r3, %r4;"),
    ("sm_90", "7.8", "setp.lt.bf16 %p0, %h0, %h1;"),
    ("sm_80", "7.0", "setp.lt.f16x2 %p0|%p1, %r2, %r3;"),
    ("sm_90", "7.8", "set.lt.u32.bf16 %r2, %h0, %h1;"),
    ("sm_80", "7.0", "redux.sync.add.u32 %r2, %r3, -1;"),
    ("sm_90", "7.8", "atom.global.add.noftz.bf16 %h0, [%rd0], %h1;"),
    ("sm_90", "7.8", "atom.global.add.noftz.bf16x2 %r2, [%rd0], %r3;"),
    ("sm_80", "7.0", "atom.global.add.noftz.f16 %h0, [%rd0], %h1;"),
    ("sm_90", "8.1", "red.global.add.v4.f32 [%rd0], {%f0,%f1,%f2,%f3};"),
    ("sm_90", "8.1", "red.global.add.noftz.v4.bf16x2 [%rd0], {%r2,%r3,%r4,%r5};"),
    ("sm_80", "7.0", "atom.global.cas.b16 %h0, [%rd0], %h1, %h2;"),
    ("sm_80", "7.0", "atom.acq_rel.gpu.global.add.u32 %r2, [%rd0], %r3;"),
    ("sm_80", "7.0", "fence.acq_rel.cta;"),
    ("sm_90", "8.0", "fence.proxy.async;"),
    ("sm_90", "8.0", "fence.proxy.async.shared::cta;"),
    ("sm_80", "7.5", "fence.proxy.alias;"),
    ("sm_90", "8.0", "fence.mbarrier_init.release.cluster;"),
    ("sm_80", "7.0", "fence.acquire.cta;"),
    ("sm_90a", "8.4", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%r2,%r3,%r4,%r5}, %rd0, %rd1, %p0;"),
    ("sm_90", "7.8", "mapa.shared::cluster.u32 %r2, %r0, %r1;"),
    ("sm_90", "7.8", "mapa.u64 %rd1, %rd0, %r1;"),
    ("sm_90", "7.8", "getctarank.shared::cluster.u32 %r2, %r0;"),
    ("sm_90", "7.8", "ld.shared::cluster.u32 %r2, [%r0];"),
    ("sm_90", "7.8", "st.shared::cluster.u32 [%r0], %r2;"),
    ("sm_90", "7.8", "atom.shared::cluster.add.u32 %r2, [%r0], %r3;"),
    ("sm_90", "7.8", "barrier.cluster.arrive;"),
    ("sm_90", "7.8", "barrier.cluster.wait.aligned;"),
    ("sm_90", "8.0", "barrier.cluster.arrive.relaxed.aligned;"),
    ("sm_90", "8.0", "barrier.cluster.arrive.release;"),
    ("sm_90", "8.0", "barrier.cluster.wait.acquire;"),
    ("sm_90", "8.0", "mbarrier.arrive.shared::cluster.b64 _, [%r0];"),
    ("sm_90", "8.0", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0], 2;"),
    ("sm_90", "8.0", "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r0], 16;"),
    ("sm_90", "8.0", "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r0], 16;"),
    ("sm_90", "8.1", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r2, [%r1];"),
    ("sm_90", "8.1", "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r0], {%r2,%r3,%r4,%r5}, [%r1];"),
    ("sm_90", "8.0", "cp.async.bulk.commit_group;"),
    ("sm_90", "8.0", "cp.async.bulk.wait_group 0;"),
    ("sm_90", "8.0", "cp.async.bulk.wait_group.read 1;"),
    ("sm_90", "8.0", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0], %r2, [%r1];"),
    ("sm_90", "8.6", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0], %r2, [%r1];"),
    (
        "sm_90",
        "8.0",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r0], [%r3], %r2, [%r1];",
    ),
    ("sm_90", "8.0", "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], %r2;"),
    ("sm_90", "8.0", "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd0], [%r0], %r2, %rd1;"),
    ("sm_90", "8.0", "cp.async.bulk.prefetch.L2.global [%rd0], %r2;"),
    ("sm_90", "8.0", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd0], [%r0], %r2;"),
    ("sm_90", "8.0", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd0], [%r0], %r2;"),
    (
        "sm_90",
        "8.0",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r2, %r3}], [%r1];",
    ),
    (
        "sm_90",
        "8.6",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r2, %r3}], [%r1];",
    ),
    (
        "sm_90",
        "8.0",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%rd0, {%r2}], [%r1], %rd1;",
    ),
    (
        "sm_90",
        "8.0",
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%rd0, {%r2, %r3, %r4}], [%r1], %h0;",
    ),
    ("sm_90", "8.0", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {%r2, %r3}], [%r0];"),
    (
        "sm_90",
        "8.0",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd0, {%r2, %r3}], [%r0];",
    ),
    ("sm_90", "8.0", "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd0, {%r2, %r3}];"),
    ("sm_90", "8.0", "prefetch.tensormap [%rd0];"),
    ("sm_90a", "8.3", "tensormap.replace.tile.global_address.global.b1024.b64 [%rd0], %rd1;"),
    ("sm_90a", "8.3", "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 4, %r2;"),
    ("sm_90a", "8.3", "tensormap.replace.tile.elemtype.b1024.b32 [%rd0], 10;"),
    (
        "sm_90",
        "8.3",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r0], 128;",
    ),
    ("sm_90", "8.3", "fence.proxy.tensormap::generic.release.cluster;"),
    ("sm_90", "8.3", "fence.proxy.tensormap::generic.acquire.sys [%rd0], 128;"),
    ("sm_90a", "8.0", "wgmma.fence.sync.aligned;"),
    ("sm_90a", "8.0", "wgmma.commit_group.sync.aligned;"),
    ("sm_90a", "8.0", "wgmma.wait_group.sync.aligned 1;"),
    (
        "sm_90a",
        "8.0",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, -1, 0, 1;",
    ),
    (
        "sm_90a",
        "8.0",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r2,%r3}, {%r4,%r5,%r6,%r7}, %rd1, %p0, 1, 1, 0;",
    ),
    ("sm_90a", "8.0", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1;"),
    ("sm_90a", "8.0", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1;"),
    ("sm_90a", "8.0", "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.s8.s8 {%r2,%r3,%r4,%r5}, %rd0, %rd1, %p0;"),
    ("sm_80", "7.0", "barrier.sync 0;"),
    ("sm_80", "7.8", "barrier.cta.sync.aligned 0;"),
    ("sm_80", "7.8", "bar.cta.sync 0;"),
    ("sm_80", "7.0", "match.any.sync.b32 %r2, %r3, -1;"),
    ("sm_80", "7.0", "dp4a.s32.s32 %r2, %r3, %r4, %r5;"),
    ("sm_90", "7.8", "mul.bf16x2 %r2, %r3, %r4;"),
    ("sm_80", "7.0", "lop3.b32 %r2, %r3, %r4, %r5, 1;"),
    ("sm_80", "7.0", "copysign.f32 %f0, %f1, %f2;"),
    ("sm_80", "7.4", "prefetch.global.L2::evict_last [%rd0];"),
    ("sm_80", "7.0", "prefetchu.L1 [%rd0];"),
    ("sm_80", "7.8", "isspacep.param %p0, %rd0;"),
    ("sm_90", "7.8", "mov.u32 %r2, %clusterid.x;"),
    ("sm_90", "7.8", "mov.u32 %r2, %cluster_ctarank;"),
    ("sm_80", "7.0", "mov.u32 %r2, %total_smem_size;"),
    ("sm_80", "7.0", "mov.u64 %rd1, %globaltimer;"),
    ("sm_80", "7.0", "nanosleep.u32 100;"),
    ("sm_80", "7.0", "ld.relaxed.gpu.global.u32 %r2, [%rd0];"),
    ("sm_80", "7.0", "ld.acquire.cta.shared.u32 %r2, [%r0];"),
    ("sm_80", "7.0", "cvt.rn.relu.bf16x2.f32 %r2, %f0, %f1;"),
    ("sm_89", "8.1", "cvt.rn.relu.f16x2.e4m3x2 %r2, %h0;"),
    ("sm_89", "8.1", "cvt.rn.satfinite.e5m2x2.f16x2 %h0, %r2;"),
];

const VERSIONS: [&str; 15] =
    ["7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.8", "8.0", "8.1", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8"];
/// Targets with the first version that knows them.
const TARGETS: [(&str, &str); 5] =
    [("sm_80", "7.0"), ("sm_86", "7.1"), ("sm_89", "7.8"), ("sm_90", "7.8"), ("sm_90a", "8.0")];

fn text(target: &str, version: &str, instruction: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() .maxntid 128 .minnctapersm 1 {{\n\
         .reg .b64 %rd<8>; .reg .b32 %r<16>; .reg .b16 %h<8>; .reg .pred %p<4>; .reg .f32 %f<8>; .reg .f64 %fd<16>;\n\
         .shared .align 16 .b8 buf[256];\n{instruction}\nret;\n}}\n"
    )
}

#[test]
fn each_is_accepted_from_its_version_and_target_on() {
    let at = |v: &str| VERSIONS.iter().position(|x| *x == v).unwrap();
    for (target, version, instruction) in NEEDS {
        let index = TARGETS.iter().position(|(t, _)| t == target).unwrap();
        Module::parse(&text(target, version, instruction)).unwrap_or_else(|e| panic!("{target} {version}: {e}"));
        // The next lower version, unless the target itself is younger; and the next lower target, with any version.
        let older = (at(version) > at(TARGETS[index].1)).then(|| (*target, VERSIONS[at(version) - 1]));
        let smaller = index.checked_sub(1).map(|i| (TARGETS[i].0, "8.8"));
        for (target, version) in older.into_iter().chain(smaller) {
            let error = Module::parse(&text(target, version, instruction)).expect_err(instruction);
            assert_eq!(error.code(), ErrorCode::Target, "{target} {version} {error}");
        }
    }
}

/// Conversions of fp8 came to sm_90 before they came to sm_89.
#[test]
fn conversions_of_fp8_are_in_two_versions() {
    for instruction in [
        "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;",
        "cvt.rn.satfinite.e5m2x2.f32 %h0, %f0, %f1;",
        "cvt.rn.satfinite.e4m3x2.f16x2 %h0, %r2;",
        "cvt.rn.f16x2.e4m3x2 %r2, %h0;",
        "cvt.rn.relu.f16x2.e5m2x2 %r2, %h0;",
    ] {
        for (target, version, fits) in [
            ("sm_90", "7.8", true),
            ("sm_90a", "8.0", true),
            ("sm_89", "8.1", true),
            ("sm_89", "8.0", false),
            ("sm_89", "7.8", false),
            ("sm_86", "8.8", false),
        ] {
            let text = text(target, version, instruction);
            let code = Module::parse(&text).err().map(|e| e.code());
            assert_eq!(code, (!fits).then_some(ErrorCode::Target), "{target} {version} {instruction}");
            assert_ne!(toolkit_accepts(&text, target), Some(!fits), "{target} {version} {instruction}");
        }
    }
}

/// The table itself, against the toolkit's assembler: all accepted texts in one module for each version and target.
#[test]
fn the_assembler_agrees() {
    for (target, version, instruction) in NEEDS {
        let Some(accepted) = toolkit_accepts(&text(target, version, instruction), target) else { return };
        assert!(accepted, "{target} {version} {instruction}");
        let index = TARGETS.iter().position(|(t, _)| t == target).unwrap();
        if let Some(smaller) = index.checked_sub(1) {
            let lower = TARGETS[smaller].0;
            assert_eq!(toolkit_accepts(&text(lower, "8.8", instruction), lower), Some(false), "{lower} {instruction}");
        }
    }
}

#[test]
fn the_message_names_both_sides() {
    let error = Module::parse(&text("sm_80", "7.0", "elect.sync %r2|%p0, -1;")).unwrap_err();
    let want = "`elect.sync` needs PTX 8.0 and sm_90; the module is PTX 7.0 for sm_80";
    assert!(error.to_string().contains(want), "{error}");
}
