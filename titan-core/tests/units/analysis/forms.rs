//! Properties of analyses that the verifier's verdict does not show: forms, numbers, keys, bounds and inferred grids.

use titan_core::analysis::affine::{Affine, I32, Range, Term};
use titan_core::analysis::forms::Forms;
use titan_core::analysis::grid::{bound, infer_grid, max_extent};
use titan_core::analysis::number::Numbers;
use titan_core::analysis::partition::{By, Class, Key, Partition};
use titan_core::analysis::uses::Tree;
use titan_core::diag::Code;
use titan_core::ir::{GridSpec, HostExpr, Kernel, OpId, OpKind, Value};
use titan_core::text::parse_one;

/// A kernel with this signature after its name, and this body, to which a `return` is added.
fn kernel(signature: &str, body: &str) -> Kernel {
    let text = format!("kernel @k{signature} {{\n{body}\nreturn\n}}\n");
    parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn named(kernel: &Kernel, name: &str) -> Value {
    let at = kernel.values.iter().position(|v| v.name.as_deref() == Some(name));
    Value::new(at.unwrap_or_else(|| panic!("no value `{name}`")))
}

fn form(kernel: &Kernel, name: &str) -> Affine {
    Forms::new(kernel, true).of(named(kernel, name))
}

#[test]
fn arithmetic_on_program_indices_stays_affine() {
    let k = kernel(
        "(%c: mut tensor<f32>[N]) grid(N)",
        "%p = program_id<0>\n%q = program_id<1>\n%four = const 4 : i32\n%a = mul %p, %four\n%b = sub %a, %q\n\
         %one = const 1 : i32\n%c2 = shl %b, %one\n%d = not %c2\n%e = neg %d",
    );
    let e = form(&k, "e");
    assert_eq!(e.terms.get(&Term::Program(0)), Some(&8));
    assert_eq!(e.terms.get(&Term::Program(1)), Some(&-2));
    assert_eq!(e.rest, Range::point(1));
}

#[test]
fn what_is_no_ring_operation_asks_whether_the_value_may_have_wrapped() {
    let body = "%p = program_id<0>\n%c4 = const 4 : i32\n%seven = const 7 : i32\n%a = mul %p, %c4\n%m = min %a, %seven\n\
                %r = rem %a, %seven\n%d = div %a, %c4\n%s = shr %a, %c4";
    let small = kernel("(%c: mut tensor<f32>[N]) grid(5)", body);
    assert_eq!(form(&small, "m").rest, Range { lo: 0, hi: 7 });
    assert_eq!(form(&small, "r").rest, Range { lo: 0, hi: 6 });
    assert_eq!(form(&small, "d").rest, Range { lo: 0, hi: 4 });
    assert_eq!(form(&small, "s").rest, Range { lo: 0, hi: 1 });
    let large = kernel("(%c: mut tensor<f32>[N]) grid(N)", body);
    assert_eq!(form(&large, "m").rest, Range { lo: I32.lo, hi: 7 });
    assert_eq!(form(&large, "r").rest, Range { lo: -6, hi: 6 });
    assert_eq!(form(&large, "d"), Affine::unknown());
    assert_eq!(form(&large, "s"), Affine::unknown());
}

#[test]
fn a_side_that_never_loses_keeps_its_form() {
    let k = kernel(
        "(%c: mut tensor<f32>[N]) grid(5)",
        "%p = program_id<0>\n%ten = const 10 : i32\n%zero = const 0 : i32\n%a = min %p, %ten\n%b = max %p, %zero\n\
         %five = const 5 : i32\n%r = rem %p, %five\n%on = lt %p, %five\n%x = select %on, %a, %b",
    );
    for name in ["a", "b", "r", "x"] {
        assert_eq!(form(&k, name), Affine::term(Term::Program(0)), "{name}");
    }
}

#[test]
fn loop_variables_have_the_range_of_their_bounds() {
    let k = kernel(
        "(%c: mut tensor<f32>[N], %n: i32) grid(5)",
        "%p = program_id<0>\n%two = const 2 : i32\n%nine = const 9 : i32\n\
         for %i = %two to %nine step %two {\ncontinue\n}\n\
         %hi = add %p, %nine\nfor %j = %p to %hi step %two {\ncontinue\n}\n\
         for %k = %two to %nine step %n {\ncontinue\n}\n\
         for %l = %nine to %two step %two {\ncontinue\n}",
    );
    assert_eq!(form(&k, "i"), Affine::range(Range { lo: 2, hi: 8 }));
    let j = form(&k, "j");
    assert_eq!((j.terms.get(&Term::Program(0)), j.rest), (Some(&1), Range { lo: 0, hi: 8 }));
    assert_eq!(form(&k, "k"), Affine::unknown(), "a step that may be negative");
    assert_eq!(form(&k, "l"), Affine::range(Range { lo: 9, hi: 9 }), "an empty loop");
}

/// `N / 1 + (N % 1 != 0)` may not be 2³¹, as the ranges of its parts would allow.
#[test]
fn the_number_of_tiles_of_one_element_is_the_extent() {
    let k = kernel(
        "(%c: mut tensor<f32>[N]) grid(5)",
        "%n = dim<0> %c : i32\n%one = const 1 : i32\n%zero = const 0 : i32\n%whole = div %n, %one : i32\n\
         %rest = rem %n, %one : i32\n%some = ne %rest, %zero : bool\n%more = cast %some : i32\n\
         %count = add %whole, %more : i32\n%two = const 2 : i32\n%other = div %n, %two : i32\n\
         %sum = add %other, %more : i32",
    );
    assert_eq!(form(&k, "count"), form(&k, "n"));
    assert_ne!(form(&k, "sum"), form(&k, "n"), "a quotient by another number");
}

#[test]
fn loop_variables_are_between_limits_of_their_bounds() {
    let k = kernel(
        "(%c: mut tensor<f32>[N], %n: i32) grid(cdiv(N, 8))",
        "%p = program_id<0>\n%one = const 1 : i32\n%eight = const 8 : i32\n%from = mul %p, %eight\n\
         %end = add %from, %eight\n%to = min %n, %end\nfor %i = %from to %to step %one {\n\
         %twice = add %i, %i\n%next = add %i, %one\nfor %j = %i to %next step %one {\ncontinue\n}\ncontinue\n}\n\
         for %k = %from to %n step %one {\ncontinue\n}\n\
         %late = max %from, %n\nfor %l = %late to %end step %one {\ncontinue\n}\n\
         %more = max %end, %n\nfor %m = %from to %more step %one {\ncontinue\n}",
    );
    let forms = Forms::new(&k, true);
    let of_program = |name: &str| {
        let of = |form: Affine| form.terms.get(&Term::Program(0)).map(|c| (*c, form.rest.lo, form.rest.hi));
        forms.all(named(&k, name)).into_iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(of_program("i"), [(8, 0, 7)]);
    assert!(of_program("twice").contains(&(16, 0, 14)));
    assert_eq!(of_program("j"), [(8, 0, 7)]);
    assert_eq!(of_program("l"), [(8, 0, 7)]);
    assert_eq!((of_program("k"), of_program("m")), (vec![], vec![]));
}

#[test]
fn a_range_may_end_where_integers_do() {
    let body = "%p = program_id<0>\n%one = const 1 : i32\n%two = const 2 : i32\n%from = mul %p, %two\n\
                %to = add %from, %two\nfor %i = %from to %to step %one {\ncontinue\n}";
    let of = |grid: &str| form(&kernel(&format!("(%c: mut tensor<f32>[N]) grid({grid})"), body), "i");
    let i = of("cdiv(N, 2)");
    assert_eq!((i.terms.get(&Term::Program(0)), i.rest), (Some(&2), Range { lo: 0, hi: 1 }));
    // With an index of 2³⁰, the start is −2³¹.
    assert_eq!(of("N").terms.len(), 0);
}

#[test]
fn bits_without_a_common_one_are_added() {
    let k = kernel(
        "(%c: mut tensor<f32>[N], %n: i32) grid(9)",
        "%p = program_id<0>\n%three = const 3 : i32\n%seven = const 7 : i32\n%nine = const 9 : i32\n%mask = const -8 : i32\n\
         %low = and %n, %seven\n%high = shl %p, %three\n%a = or %high, %low\n%b = xor %low, %high\n\
         %part = rem %p, %seven\n%at = add %high, %part\n%c2 = xor %at, %low\n%d = and %at, %mask\n%e = or %at, %nine\n\
         %times = mul %p, %nine\n%scaled = shl %times, %three\n%f = or %scaled, %low",
    );
    let forms = Forms::new(&k, true);
    let of_program = |name: &str| {
        let of = |form: Affine| form.terms.get(&Term::Program(0)).map(|c| (*c, form.rest.lo, form.rest.hi));
        forms.all(named(&k, name)).into_iter().find_map(of)
    };
    let (a, b) = (of_program("a"), of_program("b"));
    // The number of `low` is a term by itself.
    assert_eq!((a, b), (Some((8, 0, 0)), Some((8, 0, 0))));
    assert_eq!(of_program("c2"), Some((8, 0, 7)));
    assert_eq!(of_program("d"), Some((8, 0, 6)));
    assert_eq!(of_program("e"), None, "bit 3 is that of the next part");
    assert_eq!(of_program("f"), Some((72, 0, 0)));
}

#[test]
fn permutations_are_parts_of_what_they_permute() {
    let k = kernel(
        "(%c: mut tensor<f32>[N], %n: i32) grid(9, 5)",
        "%p = program_id<0>\n%q = program_id<1>\n%one = const 1 : i32\n%three = const 3 : i32\n\
         %a = xor %p, %n\n%b = xor %n, %p\n%by = and %p, %three\n%c2 = xor %by, %q\n%d = xor %p, %by\n%e = xor %q, %three",
    );
    let forms = Forms::new(&k, true);
    let part = |name: &str| match forms.of(named(&k, name)).as_source() {
        Some((Term::Part(group, 0), 1)) => Some(group),
        Some(_) | None => None,
    };
    let a = part("a").expect("a part");
    assert_eq!((part("b"), part("d")), (Some(a), None));
    assert_eq!((&forms.groups[a].base, &forms.groups[a].with[..], forms.groups[a].block), (&form(&k, "p"), &[][..], 1));
    let c = &forms.groups[part("c2").expect("a part")];
    assert_eq!((&c.base, &c.with[..], c.block), (&form(&k, "q"), &[Term::Program(0)][..], 4));
    assert_eq!(forms.range(named(&k, "c2")), Range { lo: 0, hi: 7 });
    assert_eq!(forms.groups[part("e").expect("a part")].block, 4);
}

#[test]
fn quotients_by_a_divisor_of_the_coefficients_are_rounded_down() {
    let k = kernel(
        "(%c: mut tensor<f32>[N]) grid(9)",
        "%p = program_id<0>\n%one = const 1 : i32\n%twelve = const 12 : i32\n%four = const 4 : i32\n%five = const 5 : i32\n\
         %t = mul %p, %twelve\n%at = add %t, %five\n%a = div %at, %four\n%less = sub %t, %five\n%b = div %less, %four\n\
         %c2 = shr %less, %one\n%d = div %at, %five",
    );
    let forms = Forms::new(&k, true);
    let of_program = |name: &str| {
        let of = |form: Affine| form.terms.get(&Term::Program(0)).map(|c| (*c, form.rest.lo, form.rest.hi));
        forms.all(named(&k, name)).into_iter().find_map(of)
    };
    assert_eq!(of_program("a"), Some((3, 1, 1)));
    assert_eq!(of_program("b"), None, "-5 / 4 is -1, and rounded down -2");
    assert_eq!(of_program("c2"), Some((6, -3, -3)));
    assert_eq!(of_program("d"), None);
}

#[test]
fn tiles_and_narrow_integers_have_ranges() {
    let k = kernel(
        "(%b: in tensor<u8>[_], %c: mut tensor<f32>[N]) grid(5)",
        "%p = program_id<0>\n%i = iota<16> : tile<16xi32>\n%s = splat %p : tile<16xi32>\n%t = add %i, %s\n\
         %x = get %b[%p] : u8\n%y = cast %x : i32\n%on = const true : bool\n%z = cast %on : i32\n%best, %at = argmax<0> %t",
    );
    let t = form(&k, "t");
    assert_eq!((t.terms.get(&Term::Program(0)), t.rest), (Some(&1), Range { lo: 0, hi: 15 }));
    assert_eq!(form(&k, "y").rest, Range { lo: 0, hi: 255 });
    assert_eq!(form(&k, "at").rest, Range { lo: 0, hi: 15 });
}

#[test]
fn equal_invariants_have_one_number_and_data_has_none() {
    let k = kernel(
        "(%a: in tensor<i32>[M, N], %n: i32) grid(5)",
        "%p = program_id<0>\n%d = dim<0> %a\n%e = dim<0> %a\n%x = mul %d, %n\n%y = mul %e, %n\n%z = mul %n, %d\n\
         %g = get %a[%p, %p]\n%h = add %g, %n",
    );
    let numbers = Numbers::new(&k);
    let of = |name| numbers.of(named(&k, name));
    assert_eq!(of("x"), of("y"));
    assert_ne!(of("x"), of("z"), "no algebra");
    assert_eq!((of("g"), of("h"), of("p")), (None, None, None));
}

#[test]
fn early_exits_decide_what_always_runs() {
    let k = kernel(
        "(%c: mut tensor<f32>[N], %on: bool) grid(N)",
        "%a = const 1 : i32\nif %on {\n%b = const 2 : i32\nreturn\n} else {\nyield\n}\n%d = const 3 : i32",
    );
    let tree = Tree::new(&k);
    let runs = |name: &str| {
        let v = named(&k, name);
        let op = k.ops.iter().position(|o| o.results.contains(&v)).expect("defined");
        tree.always_runs(&k, OpId::new(op))
    };
    assert_eq!([runs("a"), runs("b"), runs("d")], [true, false, false]);
    assert_eq!(tree.users(named(&k, "on")).len(), 1);
}

#[test]
fn keys_say_how_an_output_is_divided() {
    let k = kernel(
        "(%off: in tensor<i32>[_], %q: mut tensor<f32>[R, H, D]) grid(4, H, 7)",
        "%m = program_id<0>\n%h = program_id<1>\n%b = program_id<2>\n%zero = const 0 : i32\n%z = const 0.0 : f32\n\
         %v = index<1> %q, %h\n%s = segment %v, %off, %b\n%t = splat %z : tile<8x16xf32>\nstore_tile %s[%m, %zero], %t",
    );
    let partition = Partition::of(&k).expect("divided");
    let stride = |source, axis, size, plain| Key {
        source: Term::Program(source),
        axis,
        by: By::Stride { size, offset: 0, plain },
    };
    let segment = Key { source: Term::Program(2), axis: 0, by: By::Segment { offsets: Some(0) } };
    let keys = vec![segment, stride(0, 0, 8, false), stride(1, 1, 1, true)];
    assert_eq!(partition.outputs, vec![(1, Class::Partitioned(keys))]);
}

#[test]
fn classes_without_parts() {
    let class = |body: &str| {
        let k = kernel(
            "(%c: mut tensor<f32>[N]) grid(N)",
            &format!("%i = iota<4> : tile<4xi32>\n%z = const 0.0 : f32\n%v = splat %z : tile<4xf32>\n{body}"),
        );
        Partition::of(&k).expect("a class").outputs.remove(0).1
    };
    assert_eq!(class("scatter %c[%i], %v"), Class::Scattered);
    assert_eq!(class("atomic_add %c[%i], %v"), Class::Atomic);
    assert_eq!(class("%s = shared %c\nscatter %s[%i], %v\natomic_add %s[%i], %v"), Class::Unchecked);
}

fn grid_text(kernel: &Kernel) -> Result<String, (Code, String)> {
    match infer_grid(kernel) {
        Err(e) => Err((e.code, e.title)),
        Ok(GridSpec::Persistent) => Ok("persistent".to_owned()),
        Ok(GridSpec::Extents(extents)) => {
            let mut text = Vec::new();
            for extent in &extents {
                let mut one = String::new();
                extent.write(&mut one, &kernel.sig).expect("a string takes everything");
                text.push(one);
            }
            Ok(text.join(", "))
        }
    }
}

#[test]
fn grids_follow_from_the_outputs() {
    let two = "%m = program_id<0>\n%n = program_id<1>\n%z = const 0.0 : f32\n%t = splat %z : tile<128x64xf32>\n";
    let one = "%m = program_id<0>\n%zero = const 0 : i32\n%z = const 0.0 : f32\n%r = splat %z : tile<1x64xf32>\n%t = splat %z : tile<8x64xf32>\n";
    let check = |signature: &str, body: String, want: &str| {
        assert_eq!(grid_text(&kernel(signature, &body)).as_deref(), Ok(want))
    };
    check("(%c: mut tensor<f32>[M, N])", format!("{two}store_tile %c[%m, %n], %t"), "cdiv(M, 128), cdiv(N, 64)");
    check(
        "(%c: mut tensor<f32>[_, _])",
        format!("{two}store_tile %c[%m, %n], %t"),
        "cdiv(dim(c, 0), 128), cdiv(dim(c, 1), 64)",
    );
    check(
        "(%a: mut tensor<f32>[M, N], %b: mut tensor<f32>[M, N])",
        format!("{one}store_tile %a[%m, %zero], %r\nstore_tile %b[%m, %zero], %r"),
        "M",
    );
    check(
        "(%c: mut tensor<f32>[M, N])",
        format!("{one}store_tile %c[%zero, %zero], %t").replace("%m = program_id<0>\n", ""),
        "",
    );
    let offsets = "%s = segment %c, %off, %m\nstore_tile %s[%zero, %zero], %t";
    check("(%off: in tensor<i32>[E], %c: mut tensor<f32>[M, N])", format!("{one}{offsets}"), "E - 1");
    let dealt = "%zero = const 0 : i32\n%one = const 1 : i32\n%n = dim<0> %c\nfor %j = %zero to %n step %one distributed {\ncontinue\n}";
    check("(%c: mut tensor<f32>[M])", dealt.to_owned(), "persistent");
}

#[test]
fn grids_that_do_not_follow_are_asked_for() {
    let head = "%p = program_id<0>\n%zero = const 0 : i32\n%z = const 0.0 : f32\n%t = splat %z : tile<8xf32>\n%u = splat %z : tile<4xf32>\n";
    let disagree = kernel(
        "(%a: mut tensor<f32>[N], %b: mut tensor<f32>[N])",
        &format!("{head}store_tile %a[%p], %t\nstore_tile %b[%p], %u"),
    );
    let title = "axis 0 of the grid is cdiv(N, 8) by `a` and cdiv(N, 4) by `b`";
    assert_eq!(grid_text(&disagree), Err((Code::GridDisagrees, title.to_owned())));
    let title = "axis 0 of the grid cannot be inferred: no output is divided evenly by `program_id(0)`";
    let atomic = kernel("(%a: mut tensor<f32>[N])", &format!("{head}atomic_add_tile %a[%p], %t"));
    assert_eq!(grid_text(&atomic), Err((Code::Grid, title.to_owned())));
    let shifted = kernel("(%a: mut tensor<f32>[N], %n: i32)", &format!("{head}%q = add %p, %n\nstore_tile %a[%q], %t"));
    assert_eq!(grid_text(&shifted), Err((Code::Grid, title.to_owned())));
}

#[test]
fn bounds_of_grids() {
    let k = kernel("(%c: mut tensor<f32>[N], %n: i32, %b: u8) grid(cdiv(N, 128), %b, 3)", "%z = const 0 : i32");
    assert_eq!([0, 1, 2, 3].map(|a| max_extent(&k.sig, a)), [1 << 24, 255, 3, 1]);
    let text = |e: &str| {
        let k = kernel(&format!("(%c: mut tensor<f32>[N], %n: i32) grid({e})"), "%z = const 0 : i32");
        let GridSpec::Extents(extents) = &k.sig.grid else { panic!("extents") };
        bound(&k.sig, &extents[0])
    };
    assert_eq!(text("N % 4"), Range { lo: 0, hi: 3 });
    assert_eq!(text("min(N, 7) + 2"), Range { lo: 2, hi: 9 });
    assert_eq!(text("max(%n, 0) / 2"), Range { lo: 0, hi: (1 << 30) - 1 });
    assert_eq!(text("%n - N"), Range { lo: 2 * -(1 << 31) + 1, hi: (1 << 31) - 1 });
    assert_eq!(text("N / %n"), Range { lo: i64::MIN, hi: i64::MAX });
    let checked = |signature: &str, e: &str| {
        let k = kernel(&format!("({signature}) grid({e})"), "%z = const 0 : i32");
        let GridSpec::Extents(extents) = &k.sig.grid else { panic!("extents") };
        bound(&k.sig, &extents[0]).hi
    };
    let most = i64::from(i32::MAX);
    assert_eq!(checked("%x: in tensor<f32>[G], %c: mut tensor<f32>[G * 2, N]", "G"), most / 2);
    assert_eq!(checked("%x: in tensor<f32>[G], %c: mut tensor<f32>[cdiv(8 * G + 5, 3)]", "G"), (3 * most - 5) / 8);
    assert_eq!(checked("%x: in tensor<f32>[G], %c: in optional tensor<f32>[G * 2]", "G"), most, "it may be absent");
    let pair = "%x: in tensor<f32>[G], %c: mut tensor<f32>[H], %n: i32";
    assert_eq!(checked(pair, "G) require(H == G * 4"), most / 4);
    assert_eq!(checked(pair, "G) require(%n > 0 && G * 4 + H <= 100"), 25);
    assert_eq!(checked(pair, "%n) require(H > %n * 8"), (most - 1) / 8);
    assert_eq!(checked(pair, "G) require(G * 4 != H"), most);
    assert_eq!(bound(&k.sig, &HostExpr::Scalar(0)), Range { lo: i64::MIN, hi: i64::MAX }, "not a scalar");
    assert!(k.ops.iter().all(|o| o.kind != OpKind::Present));
}
