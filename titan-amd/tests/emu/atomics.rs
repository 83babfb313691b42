//! Atomic operations: every row of the tables once, against what each is defined to do; and many lanes at one place.

use crate::harness::records;
use half::{bf16, f16};
use titan_amd::emu::{Completion, Options};
use titan_amd::isa::all;

/// The new value of memory; `second` is what a comparing or masking operation takes besides.
fn reference(op: &str, wide: bool, lds: bool, old: u64, data: u64, second: u64) -> u64 {
    let mask = if wide { u64::MAX } else { 0xFFFF_FFFF };
    let bits = if wide { 64 } else { 32 };
    let signed = |x: u64| (x << (64 - bits)).cast_signed() >> (64 - bits);
    let float = |x: u64| if wide { f64::from_bits(x) } else { f64::from(f32::from_bits(x as u32)) };
    let back = |x: f64| if wide { x.to_bits() } else { (x as f32).to_bits().into() };
    let pair = |f: &dyn Fn(u16, u16) -> u16| {
        let part = |at: u32| u64::from(f((old >> at) as u16, (data >> at) as u16)) << at;
        part(0) | part(16)
    };
    let (new, compared) = if lds { (second, data) } else { (data, second) };
    let r = match op {
        "add" => old.wrapping_add(data),
        "sub" => old.wrapping_sub(data),
        "rsub" => data.wrapping_sub(old),
        "inc" => {
            if old >= data {
                0
            } else {
                old + 1
            }
        }
        "dec" => {
            if old == 0 || old > data {
                data
            } else {
                old - 1
            }
        }
        "smin" => {
            if signed(data) < signed(old) {
                data
            } else {
                old
            }
        }
        "smax" => {
            if signed(data) > signed(old) {
                data
            } else {
                old
            }
        }
        "umin" => old.min(data),
        "umax" => old.max(data),
        "and" => old & data,
        "or" => old | data,
        "xor" => old ^ data,
        "mskor" => old & !data | second,
        "swap" => data,
        "cmp" => {
            if old == compared {
                new
            } else {
                old
            }
        }
        "cmpf" => {
            if float(old) == float(compared) {
                new
            } else {
                old
            }
        }
        "fadd" => back(float(old) + float(data)),
        "fmin" => back(float(old).min(float(data))),
        "fmax" => back(float(old).max(float(data))),
        "pkf16" => pair(&|a, b| (f16::from_f64(f16::from_bits(a).to_f64() + f16::from_bits(b).to_f64())).to_bits()),
        "pkbf16" => pair(&|a, b| (bf16::from_f64(bf16::from_bits(a).to_f64() + bf16::from_bits(b).to_f64())).to_bits()),
        "wrap" => {
            if old >= data {
                old - data
            } else {
                old.wrapping_add(second)
            }
        }
        other => panic!("no reference for {other}"),
    };
    r & mask
}

/// What a mnemonic means, its width, and whether it takes two data.
fn meaning(name: &str) -> Option<(&'static str, bool, bool)> {
    let lds = name.starts_with("ds_");
    let core = name.trim_start_matches("ds_").replace("_rtn", "");
    let core = core.split_once("_atomic_").map_or(core.clone(), |(_, c)| c.to_owned());
    let wide = core.ends_with("64") || core.ends_with("_x2");
    let bare = core.replace("_x2", "");
    Some(match bare.as_str() {
        "add_u32" | "add_u64" | "add" => ("add", wide, false),
        "sub_u32" | "sub_u64" | "sub" => ("sub", wide, false),
        "rsub_u32" | "rsub_u64" => ("rsub", wide, false),
        "inc_u32" | "inc_u64" | "inc" => ("inc", wide, false),
        "dec_u32" | "dec_u64" | "dec" => ("dec", wide, false),
        "min_i32" | "min_i64" | "smin" => ("smin", wide, false),
        "max_i32" | "max_i64" | "smax" => ("smax", wide, false),
        "min_u32" | "min_u64" | "umin" => ("umin", wide, false),
        "max_u32" | "max_u64" | "umax" => ("umax", wide, false),
        "and_b32" | "and_b64" | "and" => ("and", wide, false),
        "or_b32" | "or_b64" | "or" => ("or", wide, false),
        "xor_b32" | "xor_b64" | "xor" => ("xor", wide, false),
        "mskor_b32" | "mskor_b64" => ("mskor", wide, true),
        "wrxchg_b32" | "wrxchg_b64" | "swap" => ("swap", wide, false),
        "cmpst_b32" | "cmpst_b64" | "cmpswap" => ("cmp", wide, true),
        "cmpst_f32" | "cmpst_f64" => ("cmpf", wide, true),
        "add_f32" | "add_f64" => ("fadd", wide, false),
        "min_f32" | "min_f64" => ("fmin", wide, false),
        "max_f32" | "max_f64" => ("fmax", wide, false),
        "pk_add_f16" => ("pkf16", false, false),
        "pk_add_bf16" => ("pkbf16", false, false),
        "wrap_b32" => ("wrap", false, true),
        _ => {
            // Exchanges of two places are refused; everything else that is no atomic was asked by mistake.
            assert!(!lds || name.contains("wrxchg2") || name.contains("condxchg"), "{name} has no reference");
            return None;
        }
    })
}

/// Old values, data and second data: numbers of the operation's kind, equal ones among them.
fn sample(op: &str, wide: bool) -> [(u64, u64, u64); 4] {
    if op.starts_with('f') || op == "cmpf" {
        let bits = |x: f64| if wide { x.to_bits() } else { u64::from((x as f32).to_bits()) };
        return [(1.5, 2.25, 2.25), (-3.0, 0.5, -3.0), (7.0, 7.0, 1.0), (0.0, -0.25, 0.0)]
            .map(|(a, b, c)| (bits(a), bits(b), bits(c)));
    }
    if op == "pkf16" {
        return [(0x3C00_4000, 0x3C00_3800, 0); 4];
    }
    if op == "pkbf16" {
        return [(0x3F80_4000, 0x3F80_3F00, 0); 4];
    }
    let top = if wide { 63 } else { 31 };
    [(5, 9, 5), (1 << top | 3, 7, 7), (9, 9, 100), (0, (1 << top) - 1, 12)]
}

fn check(name: &str, form: &dyn Fn(&str, &str) -> String, returns: bool) {
    let Some((op, wide, two)) = meaning(name) else { return };
    let lds = name.starts_with("ds_");
    for (old, data, second) in sample(op, wide) {
        let split = |x: u64| [x as u32, (x >> 32) as u32];
        // Data lie next to each other for memory, apart for the local data share.
        let pair =
            |first: usize, n: usize| if n == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + n - 1) };
        let n = if wide { 2 } else { 1 };
        let operand = match (two, lds) {
            (false, _) => pair(10, n),
            (true, true) => format!("{}, {}", pair(10, n), pair(12, n)),
            (true, false) => pair(10, 2 * n),
        };
        let next = if two && !lds && !wide {
            [split(data)[0], split(second)[0], 0, 0]
        } else {
            let (d, s) = (split(data), split(second));
            [d[0], d[1], s[0], s[1]]
        };
        let words: Vec<u32> = split(old).into_iter().chain(next).collect();
        // One lane does it: the others' places are theirs.
        let line = form(&if returns { format!("{}, ", pair(20, n)) } else { String::new() }, &operand);
        let body = if lds {
            let write = if wide { "ds_write_b64 v5, v[8:9]" } else { "ds_write_b32 v5, v8" };
            let read = if wide { "ds_read_b64 v[14:15], v5" } else { "ds_read_b32 v14, v5\nv_mov_b32_e32 v15, 0" };
            format!("v_lshlrev_b32_e32 v5, 3, v2\n{write}\n{line}\ns_waitcnt lgkmcnt(0)\n{read}\ns_waitcnt lgkmcnt(0)")
        } else {
            format!(
                "s_mov_b32 s10, 0x10000\ns_mov_b32 s11, 0x27000\n{line}\ns_waitcnt vmcnt(0) lgkmcnt(0)
                global_load_dwordx2 v[14:15], v[0:1], off\ns_waitcnt vmcnt(0)"
            )
        };
        let body = format!(
            "v_mov_b32_e32 v20, 0\nv_mov_b32_e32 v21, 0\n{body}\nv_mov_b32_e32 v16, v20\nv_mov_b32_e32 v17, v21"
        );
        let all: Vec<u32> = (0..64).flat_map(|_| words.clone()).collect();
        let got = records(&body, (6, 4), &all, &Options::default()).unwrap_or_else(|e| panic!("{line}: {e}"));
        let new = reference(op, wide, lds, old, data, second);
        let keep = |x: u64| if wide { split(x) } else { [split(x)[0], 0] };
        let got_new = if wide { [got[0], got[1]] } else { [got[0], 0] };
        assert_eq!(got_new, keep(new), "{line} of {old:#x}, {data:#x}, {second:#x}");
        assert_eq!([got[2], got[3]], if returns { keep(old) } else { [0, 0] }, "{line}: the old value");
    }
}

#[test]
fn every_atomic_of_the_local_data_share() {
    let mut n = 0;
    for row in all().filter(|r| r.name.starts_with("ds_")) {
        let plain = ["read", "write", "permute", "swizzle", "nop"];
        if plain.iter().any(|p| row.name.contains(p)) {
            continue;
        }
        let name = row.name;
        check(name, &|d, x| format!("{name} {d}v5, {x}"), name.contains("_rtn"));
        n += 1;
    }
    assert!(n > 70, "{n}");
}

#[test]
fn every_atomic_of_memory() {
    let mut names: Vec<&str> = all().map(|r| r.name).filter(|n| n.contains("_atomic_")).collect();
    names.dedup();
    assert!(names.len() > 85, "{}", names.len());
    for name in names {
        if name.starts_with("buffer") {
            // The buffer begins where the arguments point to; a lane's record has six words.
            let first = "v_mul_u32_u24_e32 v5, 24, v2\n";
            check(name, &|_, x| format!("{first}{name} {x}, v5, s[8:11], 0 offen"), false);
            check(
                name,
                &|d, x| {
                    let data = x.trim_end_matches(']').trim_start_matches("v[").trim_start_matches('v');
                    let first_data: usize = data.split(':').next().unwrap().parse().unwrap();
                    // What comes back replaces the data.
                    let n = if d.contains(':') { 2 } else { 1 };
                    let mut moves = String::new();
                    (0..n).for_each(|i| moves.push_str(&format!("\nv_mov_b32_e32 v{}, v{}", 20 + i, first_data + i)));
                    format!("{first}{name} {x}, v5, s[8:11], 0 offen sc0\ns_waitcnt vmcnt(0){moves}")
                },
                true,
            );
        } else {
            let off = if name.starts_with("global") { ", off" } else { "" };
            check(name, &|_, x| format!("{name} v[0:1], {x}{off}"), false);
            check(name, &|d, x| format!("{name} {d}v[0:1], {x}{off} sc0"), true);
        }
    }
}

#[test]
fn lanes_at_one_place_take_turns() {
    for completion in [Completion::Early, Completion::Late, Completion::Seeded(3)] {
        let options = Options { completion, ..Options::default() };
        let body = "v_mov_b32_e32 v5, 64\nv_mov_b32_e32 v6, 0\nds_write_b32 v5, v6\ns_waitcnt lgkmcnt(0)
            ds_add_rtn_u32 v9, v5, v8\ns_waitcnt lgkmcnt(0)\nds_read_b32 v10, v5";
        let words: Vec<u32> = (0..64).map(|l| 1 << (l % 20)).collect();
        let got = records(body, (1, 2), &words, &options).unwrap();
        let sum: u32 = words.iter().sum();
        let mut seen: Vec<u32> = got.chunks(2).map(|g| g[0]).collect();
        assert!(got.chunks(2).all(|g| g[1] == sum));
        // Each lane saw what the lanes before it left, in some order: all differ.
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.len(), seen[0]), (64, 0));
    }
}
