//! Tensor maps that kernels change: every fence between the change and the copy that uses the map is needed, in a scope that has both
//! threads, and what the encoder would refuse is refused when a copy uses the map.
//!
//! Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar/fence".

use crate::harness::{assemble, words32};
use titan_nv::emu::{Completion, EmuError, ErrorCode, Launch, Memory, Module, Options, Param, Schedule};
use titan_nv::tma::{Element, TensorMap};

/// The elements of a box.
const BOX: u32 = 16;
/// The change of the map in shared memory by one thread, its copy to global memory with the release, and the acquire.
const CHANGE: &str = "@%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %from;
    @%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0, %n;";
const PUBLISH: &str =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [map], 128;";
const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;";
const SYNC: &str = "bar.warp.sync -1;";

/// The head of a kernel of one warp: a template of a map, numbers, global memory for a map, and the output.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n
.visible .entry k(.param .align 64 .b8 template[128], .param .u64 x, .param .u64 scratch, .param .u64 out)
{{
    .reg .b64 %rd<9>, %from, %map, %x, %out; .reg .b32 %r<9>, %lane, %n, %block; .reg .pred %p<4>, %first;
    .shared .align 128 .b8 box[128]; .shared .align 128 .b8 map[128]; .shared .align 8 .b8 bar[8];
    ld.param.u64 %x, [x]; ld.param.u64 %map, [scratch]; ld.param.u64 %out, [out];
    mov.u32 %lane, %laneid; mov.u32 %block, %ctaid.x; setp.eq.u32 %first, %lane, 0;
    @%first mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mul.wide.u32 %rd1, %lane, 4; mov.u64 %rd2, template; add.s64 %rd2, %rd2, %rd1; ld.param.b32 %r1, [%rd2];
    mov.u32 %r2, map; mad.lo.u32 %r2, %lane, 4, %r2; st.shared.b32 [%r2], %r1;
    {SYNC}
    {body}
    ret;
}}\n"
    )
}

/// Copies the box at coordinate 0 by the map in global memory to `out[16 tile ..]`, once in the kernel for each number.
fn use_map(tile: u32) -> String {
    let parity = tile % 2;
    format!(
        "@%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    @%first cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [box], [%map, {{0}}], [bar];
wait{tile}: mbarrier.try_wait.parity.shared.b64 %p1, [bar], {parity};
    @!%p1 bra wait{tile};
    mov.u32 %r3, box; mad.lo.u32 %r3, %lane, 4, %r3; setp.lt.u32 %p2, %lane, {BOX};
    @%p2 ld.shared.b32 %r4, [%r3]; mul.wide.u32 %rd3, %lane, 4; add.s64 %rd3, %rd3, %out;
    @%p2 st.global.b32 [%rd3+{}], %r4;
    fence.proxy.async.shared::cta;
    {SYNC}",
        tile * BOX * 4
    )
}

/// Element 100 `tile` of `x`, and the elements that the map has from there.
fn tile(tile: u32, n: u32) -> String {
    format!("add.s64 %from, %x, {}; mov.u32 %n, {n};", 400 * tile)
}

fn want(tile: u32, n: u32) -> Vec<u32> {
    (0..BOX).map(|i| if i < n { 1000 + 100 * tile + i } else { 0 }).collect()
}

fn template(address: u64) -> TensorMap {
    TensorMap::tiled(Element::U32, address, &[16], &[], &[BOX])
}

/// Runs a kernel on `x[i] = 1000 + i`, with a map of all 16 elements of `x[300..]` in global memory; 32 numbers of the output.
fn run(text: &str, blocks: u32, cluster: Option<[u32; 3]>, options: &Options) -> Result<Vec<u32>, EmuError> {
    assemble(text, "sm_90a");
    let module = Module::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new();
    let numbers: Vec<u8> = (0..400_u32).flat_map(|i| (1000 + i).to_le_bytes()).collect();
    let x = memory.upload("x", &numbers);
    let map = memory.upload("map", &template(x.address() + 1200).to_bytes());
    let out = memory.upload("out", &[0; 128]);
    let host = Param::Bytes(template(x.address()).to_bytes().to_vec());
    let params = [host, Param::Ptr(x), Param::Ptr(map), Param::Ptr(out)];
    let launch = Launch { grid: [blocks, 1, 1], block: [32, 1, 1], dynamic_shared: 0, cluster, params: &params };
    module.entry("k")?.run(&launch, &mut memory, options)?;
    Ok(words32(&memory, out, 32))
}

fn all_options() -> Vec<Options> {
    let base = Options::default();
    let seeded = |n| Options {
        completion: Completion::Seeded(n),
        schedule: Schedule::Seeded(n),
        sanitize: true,
        ..Options::default()
    };
    vec![base.clone(), Options { completion: Completion::Early, ..base }, seeded(1), seeded(2)]
}

/// That a kernel of one block gives these two boxes, in all orders of completion.
fn gives(text: &str, want: [Vec<u32>; 2]) {
    for options in all_options() {
        let got = run(text, 1, None, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(got, want.concat(), "{text}");
    }
}

fn fails(text: &str, code: ErrorCode, says: &str) {
    let error = run(text, 1, None, &Options::default()).expect_err(text);
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

/// Two tiles by one map, made twice in the same place: 16 elements, then 5 elsewhere.
fn two_tiles(steps: [&str; 4]) -> String {
    let [change, sync, publish, acquire] = steps;
    let (one, two) = (tile(1, 16), tile(2, 5));
    let (first, second) = (use_map(0), use_map(1));
    kernel(&format!(
        "{one}\n{CHANGE}\n{SYNC}\n{PUBLISH}\n{ACQUIRE}\n{first}\n{two}\n{change}\n{sync}\n{publish}\n{acquire}\n{second}"
    ))
}

#[test]
fn a_map_changed_in_shared_memory_needs_copy_and_acquire() {
    gives(&two_tiles([CHANGE, SYNC, PUBLISH, ACQUIRE]), [want(1, 16), want(2, 5)]);
    // Without the copy, or without the acquire, the second tile is copied by the map of the first.
    gives(&two_tiles([CHANGE, SYNC, "", ACQUIRE]), [want(1, 16), want(1, 16)]);
    gives(&two_tiles([CHANGE, SYNC, PUBLISH, ""]), [want(1, 16), want(1, 16)]);
    // An acquire before the release is none, nor is one by other threads.
    gives(&two_tiles([CHANGE, SYNC, ACQUIRE, PUBLISH]), [want(1, 16), want(1, 16)]);
    let others = format!("@!%first {ACQUIRE}");
    gives(&two_tiles([CHANGE, SYNC, PUBLISH, &others]), [want(1, 16), want(1, 16)]);
    // Other threads of the block may acquire it, if the one that copies has synchronised with them since.
    gives(&two_tiles([CHANGE, SYNC, PUBLISH, &format!("{others}\n{SYNC}")]), [want(1, 16), want(2, 5)]);
    // Where races are not looked for, the order of threads is not known.
    let unordered = Options { races: false, ..Options::default() };
    let got = run(&two_tiles([CHANGE, SYNC, PUBLISH, &others]), 1, None, &unordered).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got, [want(1, 16), want(2, 5)].concat());
    // The fence of the asynchronous proxy is not the one of the tensor-map proxy.
    gives(&two_tiles([CHANGE, SYNC, PUBLISH, "fence.proxy.async;"]), [want(1, 16), want(1, 16)]);
    // What one thread changed, all threads of the warp copy.
    fails(&two_tiles([CHANGE, "", PUBLISH, ACQUIRE]), ErrorCode::Race, "`map`");
}

#[test]
fn a_map_changed_in_global_memory_needs_release_and_acquire() {
    let change = CHANGE.replace("shared::cta", "global").replace("[map]", "[%map]");
    let release = "@%first fence.proxy.tensormap::generic.release.gpu;";
    gives(&two_tiles([&change, "", release, ACQUIRE]), [want(1, 16), want(2, 5)]);
    gives(&two_tiles([&change, "", "", ACQUIRE]), [want(1, 16), want(1, 16)]);
    gives(&two_tiles([&change, "", release, ""]), [want(1, 16), want(1, 16)]);
    gives(&two_tiles([release, "", &change, ACQUIRE]), [want(1, 16), want(1, 16)]);
    gives(
        &two_tiles([&change, "", "@!%first fence.proxy.tensormap::generic.release.gpu;", ACQUIRE]),
        [want(1, 16), want(1, 16)],
    );
    // By ordinary stores, which every thread releases itself.
    let stores =
        "ld.shared.b32 %r5, [%r2]; mul.wide.u32 %rd4, %lane, 4; add.s64 %rd4, %rd4, %map; st.global.b32 [%rd4], %r5;";
    let (stores, each) = (format!("{CHANGE}\n{SYNC}\n{stores}"), "fence.proxy.tensormap::generic.release.gpu;");
    gives(&two_tiles([&stores, SYNC, each, ACQUIRE]), [want(1, 16), want(2, 5)]);
    gives(&two_tiles([&stores, SYNC, "", ACQUIRE]), [want(1, 16), want(1, 16)]);
}

#[test]
fn a_map_of_the_host_in_global_memory_must_be_acquired() {
    let with = |fence: &str| kernel(&format!("{fence}\n{}", use_map(0)));
    for scope in ["gpu", "sys"] {
        gives(&with(&ACQUIRE.replace("gpu", scope)), [want(3, 16), vec![0; 16]]);
    }
    fails(&with(""), ErrorCode::Race, "this thread has not acquired it");
    fails(&with("add.s64 %rd5, %map, 0; add.s64 %map, %map, 64;"), ErrorCode::OutOfBounds, "`map`");
    for scope in ["cta", "cluster"] {
        fails(&with(&ACQUIRE.replace("gpu", scope)), ErrorCode::Uninitialised, "has acquired no contents");
    }
    // A map in the parameters is the kernel's own copy.
    let own = use_map(0).replace("[%map,", "[%rd6,");
    gives(&kernel(&format!("mov.u64 %rd5, template; cvta.param.u64 %rd6, %rd5;\n{own}")), [want(0, 16), vec![0; 16]]);
}

/// Block 0 makes the map of tile 1 and says so in `out[31]`; block 1 waits for that and uses it.
fn two_blocks(release: &str, acquire: &str) -> String {
    let publish = PUBLISH.replace("release.gpu", &format!("release.{release}"));
    let acquire = ACQUIRE.replace("acquire.gpu", &format!("acquire.{acquire}"));
    let (tile, copy) = (tile(1, 7), use_map(0));
    kernel(&format!(
        "setp.ne.u32 %p3, %block, 0;\n@%p3 bra reader;
    {tile}\n{CHANGE}\n{SYNC}\n{publish}\n
    @%first st.release.gpu.global.u32 [%out+124], 1;\nret;
reader: ld.acquire.gpu.global.u32 %r6, [%out+124]; setp.eq.u32 %p1, %r6, 0;\n@%p1 bra reader;
    {SYNC}\n{acquire}\n{copy}"
    ))
}

#[test]
fn both_fences_need_a_scope_that_has_both_threads() {
    let scopes = ["cta", "cluster", "gpu", "sys"];
    for (cluster, least) in [(None, 2), (Some([2, 1, 1]), 1)] {
        for (r, release) in scopes.into_iter().enumerate() {
            for (a, acquire) in scopes.into_iter().enumerate() {
                let text = two_blocks(release, acquire);
                let result = run(&text, 2, cluster, &Options::default());
                let what = format!("{cluster:?} release.{release} acquire.{acquire}");
                if r >= least && a >= least {
                    assert_eq!(result.unwrap_or_else(|e| panic!("{what} {e}"))[..16], want(1, 7), "{what}");
                } else if a >= 2 {
                    // The host's map, which was there before.
                    assert_eq!(result.unwrap_or_else(|e| panic!("{what} {e}"))[..16], want(3, 16), "{what}");
                } else {
                    assert_eq!(result.expect_err(&what).code(), ErrorCode::Uninitialised, "{what}");
                }
            }
        }
    }
}

/// One tile by a map with some of its fields changed.
fn changed(change: &str) -> String {
    kernel(&format!("{}\n{CHANGE}\n{change}\n{SYNC}\n{PUBLISH}\n{ACQUIRE}\n{}", tile(1, 16), use_map(0)))
}

#[test]
fn a_map_may_be_changed_when_its_copies_have_ended() {
    // The second map is made before the wait for the first copy.
    let (issue, wait) = use_map(0).split_once("wait0:").map(|(a, b)| (a.to_owned(), format!("wait0:{b}"))).unwrap();
    let (one, two, last) = (tile(1, 16), tile(2, 5), use_map(1));
    let text = |between: &str, after: &str| {
        kernel(&format!(
            "{one}\n{CHANGE}\n{SYNC}\n{PUBLISH}\n{ACQUIRE}\n{issue}\n{SYNC}\n{two}\n{CHANGE}\n{SYNC}\n{between}\n{wait}\n{after}\n{ACQUIRE}\n{last}"
        ))
    };
    gives(&text("", PUBLISH), [want(1, 16), want(2, 5)]);
    for change in [PUBLISH, "@%first st.global.b32 [%map+124], 0;"] {
        let error = run(&text(change, ""), 1, None, &Options::default()).expect_err(change).to_string();
        assert!(error.contains("is changed, and a copy in flight uses it\n"), "{error}");
        assert!(error.contains("against a copy of thread (0, 0, 0)"), "{error}");
    }
    // Stores: their sources are read, and the map may still be used.
    let store = format!(
        "{one}\n{CHANGE}\n{SYNC}\n{PUBLISH}\n{ACQUIRE}\nmov.u32 %r3, box; mad.lo.u32 %r3, %lane, 4, %r3; st.shared.b32 [%r3], %lane;
        fence.proxy.async.shared::cta;\n{SYNC}\n
        @%first cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%map, {{0}}], [box];
        @%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group WAIT;\n{SYNC}\n{two}\n{CHANGE}\n{SYNC}\n{PUBLISH}"
    );
    run(&kernel(&store.replace("WAIT", "0")), 1, None, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    for wait in ["wait_group.read 0", "wait_group 1"] {
        fails(&kernel(&store.replace("wait_group WAIT", wait)), ErrorCode::Race, "a copy in flight uses it");
    }
}

#[test]
fn what_the_encoder_refuses_is_refused_when_a_copy_uses_the_map() {
    let set = |field: &str, value: &str| {
        changed(&format!("@%first tensormap.replace.tile.{field} [map], {value};").replace("KIND", "shared::cta.b1024"))
    };
    gives(&set("rank.KIND.b32", "0"), [want(1, 16), vec![0; 16]]);
    for (field, value, says) in [
        ("global_dim.KIND.b32", "0, 0", "0 elements"),
        ("global_address.KIND.b64", "%rd0", "begins at"),
        ("box_dim.KIND.b32", "0, 257", "257"),
        ("box_dim.KIND.b32", "0, 3", "12 bytes"),
        ("element_stride.KIND.b32", "0, 2", "stride"),
        ("rank.KIND.b32", "5", "6"),
        ("rank.KIND.b32", "1", "2 dimensions"),
        ("fill_mode.KIND.b32", "1", "NaN"),
        ("swizzle_mode.KIND.b32", "1", "swizzle"),
    ] {
        let text = set(field, value).replace(CHANGE, &format!("add.s64 %rd0, %x, 8;\n{CHANGE}"));
        let error = run(&text, 1, None, &Options::default()).expect_err(field);
        assert_eq!(error.code(), ErrorCode::Operand, "{error}");
        let message = error.to_string();
        assert!(message.contains(says) && message.contains("cp.async.bulk.tensor"), "{field} {value}: {message}");
    }
}

#[test]
fn a_map_made_of_zeros_has_every_field_from_the_kernel() {
    // Two rows of four numbers, 8 apart, in a tensor of two rows of three: the fourth is outside and NaN.
    let fields = [
        ("global_address", "b64", "%x"),
        ("rank", "b32", "1"),
        ("box_dim", "b32", "0, 4"),
        ("box_dim", "b32", "1, 4"),
        ("global_dim", "b32", "0, 3"),
        ("global_dim", "b32", "1, 5"),
        ("global_stride", "b64", "0, 32"),
        ("element_stride", "b32", "0, 1"),
        ("element_stride", "b32", "1, 1"),
        ("elemtype", "b32", "7"),
        ("interleave_layout", "b32", "0"),
        ("swizzle_mode", "b32", "0"),
        ("fill_mode", "b32", "1"),
    ];
    let text = |left_out: &str| {
        let all: Vec<String> = fields
            .iter()
            .filter(|(name, ..)| *name != left_out)
            .map(|(name, ty, value)| {
                format!("@%first tensormap.replace.tile.{name}.shared::cta.b1024.{ty} [map], {value};")
            })
            .collect();
        let copy = use_map(0).replace("tensor.1d", "tensor.2d").replace("{0}", "{0, 2}");
        let all = all.join("\n");
        kernel(&format!(
            "mov.u32 %r7, 0; st.shared.b32 [%r2], %r7;\n{SYNC}\n{all}\n{SYNC}\n{PUBLISH}\n{ACQUIRE}\n{copy}"
        ))
    };
    let nan = u32::MAX;
    let row = |y: u32| if y < 5 { [1000 + 8 * y, 1001 + 8 * y, 1002 + 8 * y, nan] } else { [nan; 4] };
    gives(&text(""), [(2..6).flat_map(row).collect(), vec![0; 16]]);
    for needed in ["rank", "box_dim", "global_dim", "element_stride", "elemtype"] {
        fails(&text(needed), ErrorCode::Operand, "");
    }
}

#[test]
fn wrong_uses() {
    let replace = "tensormap.replace.tile.rank";
    for (body, code, says) in [
        (format!("@%first {replace}.shared::cta.b1024.b32 [box], 0;"), ErrorCode::Uninitialised, "`box`"),
        (
            format!("@%first {replace}.shared::cta.b1024.b32 [map+32], 0;"),
            ErrorCode::Misaligned,
            "not a multiple of 64",
        ),
        (format!("@%first {replace}.shared::cta.b1024.b32 [map+64], 0;"), ErrorCode::OutOfBounds, "`map`"),
        (format!("@%first {replace}.global.b1024.b32 [%x], 0;"), ErrorCode::Operand, "neither a tensor map"),
        (
            format!("mov.u64 %rd5, template; cvta.param.u64 %rd6, %rd5; {replace}.b1024.b32 [%rd6], 0;"),
            ErrorCode::Operand,
            "changed",
        ),
        (format!("{replace}.shared::cta.b1024.b32 [map], 0;"), ErrorCode::Race, "`map`"),
        (format!("@%first {PUBLISH}"), ErrorCode::Divergence, "a copy of a tensor map"),
        (PUBLISH.replace("[%map]", "[%rd1]"), ErrorCode::Divergence, "their addresses differ"),
        (
            "cvta.shared.u64 %rd5, map; fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;".into(),
            ErrorCode::Operand,
            "global memory",
        ),
    ] {
        let body = body.replace("cvta.shared.u64 %rd5, map", "mov.u64 %rd4, map; cvta.shared.u64 %rd5, %rd4");
        fails(&kernel(&body), code, says);
    }
    for size in [PUBLISH, ACQUIRE] {
        let error = Module::parse(&kernel(&size.replace("128;", "64;"))).unwrap_err();
        assert!(error.to_string().contains("a tensor map has 128 bytes"), "{error}");
    }
}

/// A map for a later kernel: nothing in this launch acquires it.
#[test]
fn a_map_for_a_later_launch_must_be_released() {
    let change = "@%first tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 0, 7;";
    let changes = |after: &str| run(&kernel(&format!("{change} {after}")), 1, None, &Options::default());
    changes("@%first fence.proxy.tensormap::generic.release.gpu;").unwrap_or_else(|e| panic!("{e}"));
    // Another thread releases its own changes.
    for after in ["", "@!%first fence.proxy.tensormap::generic.release.gpu;"] {
        let error = changes(after).expect_err("a change that is not released");
        assert_eq!(error.code(), ErrorCode::Race);
        assert!(error.to_string().contains("is changed and never released"), "{error}");
    }
}
