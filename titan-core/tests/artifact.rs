//! Artifacts read back as they were written, choose by what holds, and never panic on other bytes.

#[path = "artifact/tiles.rs"]
mod tiles;

use proptest::prelude::*;
use titan_core::artifact::{
    Artifact, ArtifactError, Assumption, BankConflict, GridRule, TensorFact, TensorFacts, VERSION, Variant,
};
use titan_core::ir::{Elem, HostEnv, HostExpr, HostNames, HostOp, Loc, Swizzle, Symbol, TileShape, Ty};
use titan_core::launch::abi::{MapParam, PartMap};
use titan_core::launch::report::{Site, SiteKind};

fn rem(a: HostExpr, b: i64) -> HostExpr {
    HostExpr::binary(HostOp::Rem, a, HostExpr::Const(b))
}

fn map() -> MapParam {
    MapParam { param: 0, elem: Elem::F16, extents: vec![128, 64], swizzle: Swizzle::B128, part: PartMap::Whole }
}

fn sample() -> Artifact {
    let k = HostExpr::Symbol(Symbol::new(1));
    let odd = HostExpr::Not(Box::new(rem(HostExpr::Dim(2, 1), 2)));
    let tile = Ty::Tile(Elem::I32, TileShape::new(&[2, 3]).expect("rank 2"));
    let fast = Variant {
        target: "sm_90a".to_owned(),
        config: vec![("stages".to_owned(), "4".to_owned()), ("warps".to_owned(), "12".to_owned())],
        assumptions: vec![
            Assumption::UnitStride { param: 0, axis: 1 },
            Assumption::Aligned { param: 0, bytes: 16 },
            Assumption::StrideMultiple { param: 0, axis: 0, bytes: 16 },
            Assumption::Divisible { expr: HostExpr::binary(HostOp::Add, k, odd), by: 8 },
            Assumption::Divisible { expr: HostExpr::Scalar(3), by: 2 },
            Assumption::Holds(HostExpr::Scalar(3)),
            Assumption::Index32,
            Assumption::Reach { param: 1, tile: vec![128, 64] },
            Assumption::Apart { param: 1, axis: 0, rows: 64 },
            Assumption::SharedMemory { bytes: 163 << 10 },
            Assumption::TensorMap(map()),
            Assumption::TensorMap(MapParam {
                param: 2,
                elem: Elem::F32,
                extents: vec![],
                swizzle: Swizzle::None,
                part: PartMap::Whole,
            }),
        ],
        shared_bytes: 227 * 1024,
        threads: 384,
        cluster: 2,
        grid: GridRule::Persistent,
        notes: vec!["bulk copies: the inner extent is a multiple of 16 bytes".to_owned()],
        conflicts: vec![BankConflict { loc: Loc { line: 7, column: 1 }, degree: 4 }],
        sites: vec![
            Site { loc: Loc { line: 3, column: 9 }, kind: SiteKind::Trap("no such row".to_owned()) },
            Site {
                loc: Loc { line: 4, column: 9 },
                kind: SiteKind::Print("{} {}".to_owned(), vec![Ty::Scalar(Elem::F16), tile]),
            },
        ],
        payload: b".version 8.0\n.target sm_90a\n".to_vec(),
    };
    let amd =
        Variant { target: "gfx942".to_owned(), payload: b"\x7fELF\0\xff".to_vec(), threads: 256, ..Variant::default() };
    let cpu = Variant { target: "cpu".to_owned(), payload: b"kernel @k() {\n}\n".to_vec(), ..Variant::default() };
    Artifact {
        kernel: "gemm::<f16, 128>".to_owned(),
        variants: vec![fast, amd, cpu],
        refused: vec![("sm_80".to_owned(), "too large".to_owned())],
    }
}

#[test]
fn an_artifact_reads_back() {
    let artifact = sample();
    let bytes = artifact.encode();
    assert_eq!(Artifact::decode(&bytes), Ok(artifact.clone()));
    assert_eq!(artifact.encode(), bytes, "the bytes are a function of the artifact");
}

/// The bytes of version 9 stay what they are: programs embed them.
#[test]
fn the_bytes_are_those_of_the_format_table() {
    let cpu = Variant { target: "cpu".to_owned(), threads: 1, payload: vec![7], ..Variant::default() };
    let bytes = Artifact { kernel: "k".to_owned(), variants: vec![cpu], refused: Vec::new() }.encode();
    let body = b"\x01\0\0\0k\x01\0\0\0\x35\0\0\0\x03\0\0\0cpu\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\0\0\0\x04\0\0\0\xff\x7f\x7c\x01\0\0\0\0";
    assert_eq!(&bytes[..12], b"\x89TITAN\r\n\x09\0\0\0");
    assert_eq!(&bytes[24..], body);
    assert_eq!(bytes[12..16], u32::try_from(body.len()).expect("short").to_le_bytes());
}

/// The same of a tensor map, which is an assumption.
#[test]
fn the_bytes_of_a_tensor_map_are_those_of_the_format_table() {
    let target = |assumptions| Variant { target: "t".to_owned(), assumptions, ..Variant::default() };
    let bytes = |v| Artifact { kernel: String::new(), variants: vec![v], refused: Vec::new() }.encode();
    let with = bytes(target(vec![Assumption::TensorMap(map())]));
    let f16 = Elem::ALL.iter().position(|e| *e == Elem::F16).expect("there is one");
    let map = [7, 0, 0, 0, 0, u8::try_from(f16).expect("few"), 3, 2, 0, 0, 0, 128, 0, 0, 0, 64, 0, 0, 0, 0];
    // Behind kernel, variants, length, target, configuration, and the number of assumptions.
    assert_eq!(with[24 + 4 + 4 + 4 + 5 + 4..][..4], 1u32.to_le_bytes());
    assert_eq!(with[24 + 4 + 4 + 4 + 5 + 4 + 4..][..map.len()], map);
    for (at, byte) in [(5, 18), (6, 4)] {
        let mut body = with[24..].to_vec();
        body[4 + 4 + 4 + 5 + 4 + 4 + at] = byte;
        let refused = Artifact::decode(&sealed(&body)).expect_err("there is none");
        assert!(refused.to_string().contains("a tensor map of an element or a swizzle that there is not"), "{refused}");
    }
    // The last byte is 0 for the whole tensor; the bytes of parts are there instead. The length of the variant is in front.
    let body_with = |part: &[u8]| {
        let (mut body, at) = (with[24..].to_vec(), 4 + 4 + 4 + 5 + 4 + 4 + map.len() - 1);
        body.splice(at..=at, part.iter().copied());
        let length =
            u32::from_le_bytes(body[8..12].try_into().expect("4 bytes")) + u32::try_from(part.len()).expect("few") - 1;
        body[8..12].copy_from_slice(&length.to_le_bytes());
        Artifact::decode(&sealed(&body))
    };
    let ending = |axes: &[u8], entries: Option<u32>| PartMap::Ending { table: 3, axes: axes.to_vec(), entries };
    let along = body_with(&[1, 0]).expect("parts along an axis");
    assert_eq!(along.variants[0].maps().map(|m| m.part.clone()).collect::<Vec<_>>(), [PartMap::Along(0)]);
    for (of_part, part) in [
        (&[2u8, 3, 0, 0, 0, 0, 0, 0, 0, 0][..], ending(&[], None)),
        (&[2, 3, 0, 0, 0, 2, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0], ending(&[0, 1], Some(5))),
    ] {
        let table = Assumption::TensorMap(MapParam { part, ..self::map() });
        let config = vec![("maps".to_owned(), "m".to_owned())];
        let encoded = bytes(Variant { config, ..target(vec![table]) });
        // Behind the same, and a name and a value in the configuration.
        let at = 24 + 4 + 4 + 4 + 5 + 4 + 4 + (8 + 5) + map.len() - 1;
        assert_eq!(&encoded[at..][..of_part.len()], of_part);
        assert_eq!(Artifact::decode(&encoded).map(|read| read.encode()), Ok(encoded));
    }
    for (bytes, why) in [
        (&[1u8, 1][..], "for parts along an axis that has none"),
        (&[1, 255], "for parts along an axis that has none"),
        (&[2, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0], "for parts along an axis that has none"),
        (&[2, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0], "for parts along an axis that has none"),
        (&[2, 3, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0], "for parts along an axis that has none"),
        (&[2, 3, 0, 0, 0, 0, 0, 0, 0, 2], "a table of tensor maps of an unknown kind"),
        (&[3], "for parts of an unknown kind"),
    ] {
        let refused = body_with(bytes).expect_err(why);
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let sample = sample();
    let maps: Vec<u32> = sample.variants[0].maps().map(|m| m.param).collect();
    assert_eq!(maps, [0, 2], "in the order of the assumptions");
}

#[test]
fn damage_has_a_name() {
    let bytes = sample().encode();
    let with = |at: usize, b: u8| {
        let mut changed = bytes.clone();
        changed[at] = b;
        Artifact::decode(&changed)
    };
    assert_eq!(Artifact::decode(b""), Err(ArtifactError::NotAnArtifact));
    assert_eq!(Artifact::decode(b"\x7fELF\x02\x01\x01\0 and more than a header"), Err(ArtifactError::NotAnArtifact));
    assert_eq!(Artifact::decode(&bytes[..10]), Err(ArtifactError::Length { found: 10, expected: 24 }));
    assert_eq!(with(8, 10), Err(ArtifactError::TooNew { found: VERSION + 1 }));
    assert_eq!(with(8, 0), Err(ArtifactError::TooOld { found: 0 }));
    assert!(matches!(with(10, 1), Err(ArtifactError::Malformed { at: 10, .. })));
    assert_eq!(with(40, bytes[40] ^ 1), Err(ArtifactError::Checksum));
    let (n, cut) = (bytes.len(), bytes.len() - 1);
    assert_eq!(Artifact::decode(&bytes[..cut]), Err(ArtifactError::Length { found: cut, expected: n }));
    let text = with(8, 10).expect_err("a newer one").to_string();
    assert!(text.starts_with("made by a newer TITAN"), "{text}");
}

/// An artifact with this body and a right header.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x89TITAN\r\n".to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(u32::try_from(body.len()).expect("short").to_le_bytes());
    let fnv = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.extend(body.iter().fold(0xcbf2_9ce4_8422_2325, fnv).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn what_is_malformed_inside_has_a_place() {
    let decode = |body: &[u8]| Artifact::decode(&sealed(body)).expect_err("malformed");
    assert_eq!(decode(b"\x05\0\0\0k"), ArtifactError::Truncated { what: "the kernel's name", at: 24 });
    assert_eq!(
        decode(b"\x01\0\0\0\xff\0\0\0\0"),
        ArtifactError::Malformed { what: "a text that is not UTF-8", at: 28 }
    );
    assert_eq!(decode(b"\0\0\0\0\xff\xff\xff\xff"), ArtifactError::Truncated { what: "the variants", at: 28 });
    assert_eq!(
        decode(b"\0\0\0\0\0\0\0\0\0\0\0\0x"),
        ArtifactError::Malformed { what: "bytes after the end of a section", at: 36 }
    );
    let deep = [&b"\0\0\0\0\x01\0\0\0\x40\x01\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x03"[..], &[4; 307]].concat();
    assert!(matches!(decode(&deep), ArtifactError::Malformed { what: "an expression that nests too deep", .. }));
}

/// `a: [M, K]` of f16 at 4096, and an optional tensor that is not given.
struct Args {
    extents: [i64; 2],
    strides: [i64; 2],
    address: u64,
}

impl HostEnv for Args {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.extents[symbol.index()]
    }
    fn scalar(&self, _: usize) -> i64 {
        0
    }
    fn dim(&self, _: usize, axis: usize) -> i64 {
        self.extents[axis]
    }
}

impl TensorFacts for Args {
    fn params(&self) -> u32 {
        2
    }
    fn tensor(&self, param: u32) -> Option<TensorFact<'_>> {
        let fact = TensorFact { address: self.address, elem_bits: 16, extents: &self.extents, strides: &self.strides };
        (param == 0).then_some(fact)
    }
    fn shared_memory(&self) -> u32 {
        99 << 10
    }
    fn tensor_map(&self, map: &MapParam) -> Result<(), String> {
        let fits = map.param == 0 && self.address.is_multiple_of(16);
        if fits { Ok(()) } else { Err("it begins anywhere".to_owned()) }
    }
}

struct Words;

impl HostNames for Words {
    fn symbol(&self, symbol: Symbol) -> String {
        ["M", "K"][symbol.index()].to_owned()
    }
    fn param(&self, param: usize) -> String {
        ["a", "bias"][param].to_owned()
    }
}

#[test]
fn assumptions_hold_or_do_not_and_say_what_they_are() {
    let good = Args { extents: [100, 64], strides: [64, 1], address: 4096 };
    let bad = Args { extents: [100, 65], strides: [65, 2], address: 4098 };
    let check = |a: Assumption, text: &str, sentence: &str| {
        assert!(a.holds(&good), "{text}");
        assert!(!a.holds(&bad), "{text}");
        assert_eq!((a.text(&Words).as_str(), a.sentence(&Words).as_str()), (text, sentence));
    };
    check(Assumption::UnitStride { param: 0, axis: 1 }, "unit_stride(a, 1)", "`a` is contiguous along axis 1");
    check(Assumption::Aligned { param: 0, bytes: 16 }, "aligned(a, 16)", "`a` starts at a multiple of 16 bytes");
    check(
        Assumption::StrideMultiple { param: 0, axis: 0, bytes: 16 },
        "stride_multiple(a, 0, 16)",
        "neighbours of `a` along axis 0 are a multiple of 16 bytes apart",
    );
    let k = HostExpr::Symbol(Symbol::new(1));
    check(Assumption::Divisible { expr: k.clone(), by: 8 }, "divisible(K, 8)", "`K` is a multiple of 8");
    let few = HostExpr::binary(HostOp::Le, k.clone(), HostExpr::Const(64));
    check(Assumption::Holds(few), "holds(K <= 64)", "`K <= 64`");
    check(Assumption::TensorMap(map()), "tensor_map(a, 128 × 64)", "`a` has a tensor map with boxes of 128 × 64");
    let told = |a: Assumption, args: &Args| a.violation(args, &Words);
    assert_eq!(told(Assumption::TensorMap(map()), &good), None);
    let why = "it needs that `a` has a tensor map with boxes of 128 × 64: it begins anywhere";
    assert_eq!(told(Assumption::TensorMap(map()), &bad).as_deref(), Some(why));
    let why = "it needs that `a` starts at a multiple of 16 bytes";
    assert_eq!(told(Assumption::Aligned { param: 0, bytes: 16 }, &bad).as_deref(), Some(why));
    // An optional tensor that is not given has no map.
    assert!(!Assumption::TensorMap(MapParam { param: 1, ..map() }).holds(&good));
    let granted = Assumption::SharedMemory { bytes: 99 << 10 };
    assert!(granted.holds(&good));
    assert_eq!(granted.text(&Words), "shared_memory(101376)");
    assert_eq!(granted.sentence(&Words), "the device grants a program 99 KiB of shared memory");
    for nonsense in [
        Assumption::SharedMemory { bytes: 100 << 10 },
        Assumption::Divisible { expr: k, by: 0 },
        Assumption::Divisible { expr: rem(HostExpr::Const(1), 0), by: 1 },
        Assumption::UnitStride { param: 0, axis: 9 },
        Assumption::Aligned { param: 0, bytes: 0 },
        Assumption::StrideMultiple { param: 0, axis: 0, bytes: 0 },
    ] {
        assert!(!nonsense.holds(&good), "{}", nonsense.text(&Words));
    }
    let reach = Assumption::Reach { param: 0, tile: vec![128, 64] };
    let sentence = "tiles of 128 × 64 of `a` lie within 2^31 bytes, and its rows within 2^32";
    assert_eq!((reach.text(&Words).as_str(), reach.sentence(&Words).as_str()), ("reach(a, 128 × 64)", sentence));
    let apart = Assumption::Apart { param: 0, axis: 0, rows: 64 };
    let sentence = "rows of `a` along axis 0 do not overlap, and 64 of them lie within 2^31 bytes";
    assert_eq!((apart.text(&Words).as_str(), apart.sentence(&Words).as_str()), ("apart(a, 0, 64)", sentence));
    assert!(Assumption::Aligned { param: 1, bytes: 16 }.holds(&good), "an absent tensor satisfies the assumption");
}

#[test]
fn one_element_has_no_stride_and_offsets_count_from_both_sides() {
    let one = Args { extents: [100, 1], strides: [1, 77], address: 0 };
    assert!(Assumption::UnitStride { param: 0, axis: 1 }.holds(&one));
    let index32 = |extents, strides| Assumption::Index32.holds(&Args { extents, strides, address: 0 });
    assert!(index32([1 << 15, 1 << 16], [1 << 16, 1]));
    assert!(!index32([(1 << 15) + 1, 1 << 16], [1 << 16, 1]));
    assert!(index32([3, 2], [-(1 << 30), 1]));
    assert!(!index32([4, 2], [-(1 << 30), 1]));
    assert!(index32([0, 1 << 40], [1 << 40, 1]), "nothing to address");
    assert!(!index32([i64::MAX, i64::MAX], [i64::MAX, 1]));
}

#[test]
fn the_first_variant_that_fits_is_chosen() {
    let mut artifact = sample();
    artifact.variants[0].assumptions = vec![Assumption::Aligned { param: 0, bytes: 16 }];
    let mut general = artifact.variants[0].clone();
    general.assumptions.clear();
    artifact.variants.push(general);
    let at = |address| Args { extents: [1, 1], strides: [1, 1], address };
    let chosen = |address, target: &str| artifact.choose(target, &at(address)).map(|v| v.assumptions.len());
    assert_eq!(chosen(16, "sm_90a"), Some(1));
    assert_eq!(chosen(17, "sm_90a"), Some(0));
    assert_eq!(chosen(17, "sm_80"), None);
}

fn expr() -> impl Strategy<Value = HostExpr> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(HostExpr::Const),
        (0..9usize).prop_map(|s| HostExpr::Symbol(Symbol::new(s))),
        (0..9usize).prop_map(HostExpr::Scalar),
        (0..9usize, 0..4usize).prop_map(|(p, a)| HostExpr::Dim(p, a)),
    ];
    leaf.prop_recursive(6, 24, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| HostExpr::Not(Box::new(a))),
            (0..HostOp::ALL.len(), inner.clone(), inner).prop_map(|(i, a, b)| HostExpr::Binary(
                HostOp::ALL[i].0,
                Box::new(a),
                Box::new(b)
            )),
        ]
    })
}

/// Lines as code has them, and some that it has not.
pub(crate) fn code() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (0..200u32, 0..200u32).prop_map(|(a, b)| format!("  add.s32 %r{a}, %r{b}, {};", a * b)),
        (any::<u32>(), 0..3u32).prop_map(|(a, b)| format!("$L{b}: %a{b}b_{a} 0x{a:x} {a} 00{b} b{a}f32 @{b}:{a}")),
        "[%$ab_1-9 0]{0,12}",
        ".{0,6}",
    ];
    let lines = (proptest::collection::vec(line, 0..6), 1..5usize);
    lines.prop_map(|(lines, times)| vec![lines.join("\n"); times].join("\n"))
}

fn tensor_map() -> impl Strategy<Value = MapParam> {
    let extents = proptest::collection::vec(any::<u32>(), 0..6);
    let kinds = (0..Elem::ALL.len(), 0..Swizzle::ALL.len());
    let axes = proptest::collection::btree_set(0..5u8, 0..4);
    let part = (proptest::option::of(0..5u8), axes, any::<u32>(), proptest::option::of(any::<u32>()));
    (any::<u32>(), kinds, extents, part).prop_map(|(param, (elem, swizzle), extents, (along, axes, table, entries))| {
        let axes: Vec<u8> = axes.into_iter().filter(|axis| usize::from(*axis) < extents.len()).collect();
        let part = match along {
            Some(axis) if usize::from(axis) + 1 < extents.len() => PartMap::Along(axis),
            Some(_) => PartMap::Whole,
            None => PartMap::Ending { table, axes, entries },
        };
        MapParam { param, elem: Elem::ALL[elem], extents, swizzle: Swizzle::ALL[swizzle], part }
    })
}

fn variant() -> impl Strategy<Value = Variant> {
    let assumption = prop_oneof![
        (any::<u32>(), any::<u32>()).prop_map(|(param, axis)| Assumption::UnitStride { param, axis }),
        (any::<u32>(), any::<u32>()).prop_map(|(param, bytes)| Assumption::Aligned { param, bytes }),
        any::<[u32; 3]>().prop_map(|[param, axis, bytes]| Assumption::StrideMultiple { param, axis, bytes }),
        (expr(), any::<i64>()).prop_map(|(expr, by)| Assumption::Divisible { expr, by }),
        Just(Assumption::Index32),
        expr().prop_map(Assumption::Holds),
        any::<u32>().prop_map(|bytes| Assumption::SharedMemory { bytes }),
        (any::<u32>(), proptest::collection::vec(any::<u32>(), 0..5))
            .prop_map(|(param, tile)| Assumption::Reach { param, tile }),
        any::<[u32; 3]>().prop_map(|[param, axis, rows]| Assumption::Apart { param, axis, rows }),
        tensor_map().prop_map(Assumption::TensorMap),
    ];
    let texts = proptest::collection::vec(".{0,9}", 0..3);
    let payload = prop_oneof![proptest::collection::vec(any::<u8>(), 0..64), code().prop_map(String::into_bytes)];
    let config = proptest::collection::vec((".{0,9}", ".{0,9}"), 0..3);
    let conflict =
        any::<[u32; 3]>().prop_map(|[line, column, degree]| BankConflict { loc: Loc { line, column }, degree });
    let conflicts = proptest::collection::vec(conflict, 0..3);
    let lists = (config, proptest::collection::vec(assumption, 0..4), texts, conflicts);
    (".{0,9}", lists, any::<[u32; 3]>(), 0usize..3, payload).prop_map(
        |(target, (mut config, assumptions, notes, conflicts), [shared_bytes, threads, cluster], grid, payload)| {
            // A kernel that makes tables is there if there are tables.
            config.retain(|(name, _)| name != "maps");
            config.extend(assumptions.iter().any(is_table).then(|| ("maps".to_owned(), "makes".to_owned())));
            Variant {
                target,
                config,
                assumptions,
                shared_bytes,
                threads,
                cluster,
                grid: [GridRule::Declared, GridRule::Persistent, GridRule::Flat][grid],
                notes,
                conflicts,
                sites: Vec::new(),
                payload,
            }
        },
    )
}

fn is_table(assumption: &Assumption) -> bool {
    matches!(assumption, Assumption::TensorMap(MapParam { part: PartMap::Ending { .. }, .. }))
}

/// Maps that a device makes come with the kernel that makes them.
#[test]
fn tables_of_maps_have_a_kernel_that_makes_them() {
    let mut artifact = sample();
    let part = PartMap::Ending { table: 0, axes: vec![0], entries: None };
    let table = Assumption::TensorMap(MapParam { part, ..map() });
    let entry = ("maps".to_owned(), "makes".to_owned());
    let read = |artifact: &Artifact| Artifact::decode(&artifact.encode()).map_err(|e| e.to_string());
    artifact.variants[0].assumptions.push(table);
    let error = read(&artifact).expect_err("nothing makes the table");
    assert!(error.contains("tables of tensor maps, and no kernel that makes them"), "{error}");
    artifact.variants[0].config.push(entry);
    assert_eq!(read(&artifact), Ok(artifact.clone()));
    artifact.variants[0].assumptions.pop();
    let error = read(&artifact).expect_err("it makes no table");
    assert!(error.contains("a kernel that makes tables of tensor maps, and no tables"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_artifact_reads_back(kernel in ".{0,20}", variants in proptest::collection::vec(variant(), 0..4)) {
        let artifact = Artifact { kernel, variants, refused: Vec::new() };
        prop_assert_eq!(Artifact::decode(&artifact.encode()), Ok(artifact));
    }

    /// Whatever lies between them, and wherever the file ends: what is there as a whole is found, and what is cut is reported.
    #[test]
    fn artifacts_are_found_in_files(
        names in proptest::collection::vec("[a-z]{0,9}", 0..4),
        between in proptest::collection::vec(any::<u8>(), 0..40),
        cut in any::<proptest::sample::Index>(),
    ) {
        let artifact = |kernel: &String| Artifact { kernel: kernel.clone(), variants: vec![], refused: vec![] };
        let (mut file, mut ends) = (between.clone(), Vec::new());
        for name in &names {
            file.extend(artifact(name).encode());
            ends.push(file.len());
            file.extend(&between);
        }
        let found: Vec<Artifact> = names.iter().map(artifact).collect();
        prop_assert_eq!(Artifact::embedded(&file), (found.clone(), Vec::new()));
        let cut = cut.index(file.len() + 1);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (some, errors) = Artifact::embedded(&file[..cut]);
        prop_assert_eq!(&some[..], &found[..whole]);
        // Where only a part of a header is left, nothing says that it is one.
        let begins = |end: &usize| *end > cut && *end - artifact(&names[whole]).encode().len() + 24 <= cut;
        prop_assert_eq!(errors.len(), usize::from(ends.get(whole).is_some_and(begins)));
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Artifact::decode(&bytes);
        let _ = Artifact::decode(&sealed(&bytes));
        let _ = Artifact::embedded(&[&bytes[..], &sealed(&bytes)[..], &bytes[..]].concat());
    }

    #[test]
    fn damaged_bodies_never_panic(
        code in code(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut artifact = sample();
        artifact.variants[0].payload = code.into_bytes();
        let mut body = artifact.encode()[24..].to_vec();
        let i = at.index(body.len());
        body[i] = byte;
        if let Ok(artifact) = Artifact::decode(&sealed(&body)) {
            prop_assert_eq!(artifact.encode(), sealed(&body), "one encoding");
        }
        let _ = Artifact::decode(&sealed(&body[..cut.index(body.len())]));
    }
}
