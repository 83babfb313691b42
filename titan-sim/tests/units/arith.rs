//! The simulator's arithmetic, by kernels that do nothing else: against the machine's own, `libm`, and the written meaning.

use titan_core::ir::Elem;
use titan_core::num::{bf16_to_f64, e4m3_to_f64, e5m2_to_f64, f16_from_f64, f16_to_f64, unpack_nibbles};
use titan_core::verify::verify;
use titan_sim::sim::{Arg, Options, run};

const fn zero(elem: Elem) -> &'static str {
    if elem.is_float() {
        "0.0"
    } else if matches!(elem, Elem::Bool) {
        "false"
    } else {
        "0"
    }
}

/// The elements that an operation on tiles gives: `{0}`, `{1}` .. in its text are its operands, and the result is `%y`.
fn elementwise(operands: &[(Elem, Vec<u8>)], op: &str, to: Elem, n: usize) -> Vec<u8> {
    let (mut params, mut loads, mut op) = (String::new(), String::new(), op.to_owned());
    for (i, (elem, _)) in operands.iter().enumerate() {
        params += &format!("%a{i}: in tensor<{elem}>[N], ");
        loads += &format!("%pad{i} = const {} : {elem}\n", zero(*elem));
        loads += &format!("%x{i} = load_tile %a{i}[%p] or %pad{i} : tile<64x{elem}>\n");
        op = op.replace(&format!("{{{i}}}"), &format!("%x{i}"));
    }
    let text = format!(
        "kernel @k({params}%c: mut tensor<{to}>[N]) grid(cdiv(N, 64)) {{\n%p = program_id<0>\n{loads}%y = {op}\n\
         store_tile %c[%p], %y\nreturn\n}}\n"
    );
    let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let tensor = |elem: Elem, bytes: Vec<u8>| Arg::dense(elem, &[n as i64], bytes);
    let mut args: Vec<Arg> = operands.iter().map(|(elem, bytes)| tensor(*elem, bytes.clone())).collect();
    args.push(tensor(to, vec![0; (n * to.bits() as usize).div_ceil(8)]));
    let report = run(&kernel.into(), &mut args, None, &Options::default()).expect("arguments that fit");
    assert!(report.findings.is_empty(), "{:?}\n{text}", report.findings);
    let Some(Arg::Tensor { bytes, .. }) = args.pop() else { panic!("a tensor") };
    bytes
}

/// The elements of a tensor, as `f64`.
fn floats(elem: Elem, bytes: &[u8]) -> Vec<f64> {
    let size = elem.bits() as usize / 8;
    let one = |b: &[u8]| match elem {
        Elem::F64 => f64::from_le_bytes(b.try_into().expect("a size")),
        Elem::F32 | Elem::Tf32 => f32::from_le_bytes(b.try_into().expect("a size")).into(),
        Elem::F16 => f16_to_f64(u16::from_le_bytes(b.try_into().expect("a size"))),
        Elem::Bf16 => bf16_to_f64(u16::from_le_bytes(b.try_into().expect("a size"))),
        Elem::E4m3 => e4m3_to_f64(b[0]),
        Elem::E5m2 => e5m2_to_f64(b[0]),
        _ => panic!("{elem} is no float"),
    };
    bytes.chunks(size).map(one).collect()
}

/// The elements of a tensor of integers, extended.
fn ints(elem: Elem, bytes: &[u8]) -> Vec<i64> {
    let bits = elem.bits();
    let codes: Vec<u64> = if bits == 4 {
        unpack_nibbles(bytes, 2 * bytes.len()).into_iter().map(u64::from).collect()
    } else {
        let code = |b: &[u8]| b.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
        bytes.chunks(bits.max(8) as usize / 8).map(code).collect()
    };
    let unused = 64 - bits.max(4);
    let extend = |code: u64| {
        if elem.is_signed_int() { ((code << unused) as i64) >> unused } else { code as i64 }
    };
    codes.into_iter().map(extend).collect()
}

fn of_f32(values: &[f32]) -> (Elem, Vec<u8>) {
    (Elem::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn of_f64(values: &[f64]) -> (Elem, Vec<u8>) {
    (Elem::F64, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn of_i32(values: &[i32]) -> (Elem, Vec<u8>) {
    (Elem::I32, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn of_64(elem: Elem, values: &[i64]) -> (Elem, Vec<u8>) {
    (elem, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

#[test]
fn bytes_read_back() {
    for elem in Elem::ALL {
        // What is cast to the type is written, and what is read is cast back.
        let (from, cells) = match elem {
            Elem::F64 => of_f32(&[1.0, -0.5, 0.0, 2.0]),
            _ if elem.is_float() => of_f64(&[1.0, -0.5, 0.0, 2.0]),
            Elem::I32 => of_64(Elem::I64, &[1, 0, 1, 1]),
            _ => of_i32(&[1, 0, 1, 1]),
        };
        let bytes = elementwise(&[(from, cells.clone())], &format!("cast {{0}} : tile<64x{elem}>"), elem, 4);
        let back = elementwise(&[(elem, bytes)], &format!("cast {{0}} : tile<64x{from}>"), from, 4);
        assert_eq!(back, cells, "{elem}");
    }
    let extended = elementwise(&[(Elem::I4, vec![0xF])], "cast {0} : tile<64xi32>", Elem::I32, 2);
    assert_eq!(ints(Elem::I32, &extended), [-1, 0]);
}

#[test]
fn erf_is_that_of_libm() {
    let mut xs: Vec<f64> = (-700..700).map(|i| f64::from(i) / 100.0).collect();
    xs.extend([0.0, f64::INFINITY, -9.0]);
    let found = floats(Elem::F64, &elementwise(&[of_f64(&xs)], "erf {0}", Elem::F64, xs.len()));
    for (x, y) in xs.iter().zip(&found).take(1400) {
        assert!((y - libm::erf(*x)).abs() <= 1e-14, "{x}: {y} {}", libm::erf(*x));
    }
    assert_eq!(found[1400..], [0.0, 1.0, -1.0]);
}

#[test]
fn a_fused_multiply_add_rounds_once() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from_bits(((seed >> 32) as u32 & 0x807F_FFFF) | ((seed >> 20) as u32 % 60 + 97) << 23)
    };
    let [mut a, mut b, mut c] = [(); 3].map(|()| Vec::new());
    for _ in 0..20_000 {
        [&mut a, &mut b, &mut c].into_iter().for_each(|list| list.push(next()));
    }
    let operands = [&a, &b, &c].map(|list| of_f32(list));
    let found = floats(Elem::F32, &elementwise(&operands, "mul_add {0}, {1}, {2}", Elem::F32, a.len()));
    for (i, found) in found.iter().enumerate() {
        let want = a[i].mul_add(b[i], c[i]);
        assert_eq!(*found, f64::from(want), "{} {} {}", a[i], b[i], c[i]);
    }
    // 1 + 2⁻¹¹ is a tie of f16, and what is added far below breaks it. As a product of two of them it is 3/2 · 683/1024.
    let (tie, tiny) = (2f64.powi(-11), 2f64.powi(-24));
    assert_eq!(1.5 * (683.0 / 1024.0), 1.0 + tie);
    let rounded = |a: f64, b: f64, c: f64| {
        let operands = [a, b, c].map(|x| {
            assert_eq!(f16_to_f64(f16_from_f64(x)), x, "an f16");
            (Elem::F16, f16_from_f64(x).to_le_bytes().to_vec())
        });
        floats(Elem::F16, &elementwise(&operands, "mul_add {0}, {1}, {2}", Elem::F16, 1))[0]
    };
    assert_eq!(rounded(tie, 1.0, 1.0), 1.0);
    assert_eq!(rounded(1.5, 683.0 / 1024.0, 0.0), 1.0);
    assert_eq!(rounded(1.5, 683.0 / 1024.0, tiny), 1.0 + 2f64.powi(-10));
}

#[test]
fn nan_loses_and_zeros_have_signs() {
    let of = |op: &str, a: f32, b: f32| {
        floats(Elem::F32, &elementwise(&[of_f32(&[a]), of_f32(&[b])], &format!("{op} {{0}}, {{1}}"), Elem::F32, 1))[0]
    };
    assert_eq!(of("min", f32::NAN, 1.0), 1.0);
    assert_eq!(of("max", 1.0, f32::NAN), 1.0);
    assert!(of("min", 0.0, -0.0).is_sign_negative());
    assert!(of("max", -0.0, 0.0).is_sign_positive());
}

#[test]
fn casts_follow_the_written_meaning() {
    let cast = |of: (Elem, Vec<u8>), to: Elem| elementwise(&[of], &format!("cast {{0}} : tile<64x{to}>"), to, 2);
    // The second element is the same one.
    let int = |of: (Elem, Vec<u8>), to: Elem| ints(to, &cast(of, to))[1];
    let float = |of: (Elem, Vec<u8>), to: Elem| floats(to, &cast(of, to))[1];
    assert_eq!(int(of_f32(&[300.7; 2]), Elem::I8), 127);
    assert_eq!(int(of_f32(&[-99.0; 2]), Elem::I4), -8);
    assert_eq!(int(of_f32(&[-1.0; 2]), Elem::U8), 0);
    assert_eq!(int(of_f64(&[f64::NAN; 2]), Elem::I64), 0);
    assert_eq!(int(of_f64(&[1.9e19; 2]), Elem::U64).cast_unsigned(), u64::MAX);
    assert_eq!(int(of_i32(&[-1; 2]), Elem::U8), 255);
    assert_eq!(int(of_64(Elem::U64, &[-1; 2]), Elem::Bool), 1);
    assert_eq!(float(of_64(Elem::U64, &[-1; 2]), Elem::F32), 18_446_744_073_709_551_616.0);
    assert_eq!(float(of_64(Elem::I64, &[16_777_217; 2]), Elem::F32), 16_777_216.0);
    assert_eq!(float(of_f32(&[f32::INFINITY; 2]), Elem::E4m3), 448.0);
}

#[test]
fn bits_stay() {
    let bitcast =
        |of: (Elem, Vec<u8>), to: Elem, n| elementwise(&[of], &format!("bitcast {{0}} : tile<64x{to}>"), to, n);
    let found = bitcast(of_f32(&[1.0, -2.0]), Elem::I32, 2);
    assert_eq!(ints(Elem::I32, &found), [0x3F80_0000, 0xC000_0000_u32.cast_signed().into()]);
    let found = bitcast((Elem::I16, 0x3C00_i16.to_le_bytes().to_vec()), Elem::F16, 1);
    assert_eq!(floats(Elem::F16, &found), [1.0]);
}
