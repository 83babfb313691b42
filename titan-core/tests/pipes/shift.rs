//! Which loops with two MMAs are shifted, so that the second one runs beside the next iteration: those whose stages and accumulator
//! nothing else uses. How shifted loops compute is tested where they run, in titan-cpu's `tests/simulator/attention.rs`.

use titan_core::ir::{Kernel, OpKind, TtgOp};
use titan_core::pipeline::implicit::{Candidate, candidates, pipeline};
use titan_core::pipeline::shift::{loads_apart, shift};
use titan_core::pipeline::split::split;
use titan_core::text::parse_one;
use titan_core::verify::verify;

const TEXT: &str = "kernel @chain(%q: in tensor<f16>[16, 16], %k: in tensor<f16>[N, 16], %v: in tensor<f16>[N, 16], \
%o: mut tensor<f32>[16, 16]) grid(1) {
    %n = dim<0> %k : i32
    %0 = const 0 : i32
    %1 = const 1 : i32
    %16 = const 16 : i32
    %steps = div %n, %16 : i32
    %pad = const 0.0 : f16
    %none = const 0.0 : f32
    %qt = load_tile %q[%0, %0] or %pad : tile<16x16xf16>
    %zero = splat %none : tile<16x16xf32>
    %sum = for %j = %0 to %steps step %1 pipelined carry(%x = %zero) : tile<16x16xf32> {
        %kt = load_tile %k[%j, %0] or %pad : tile<16x16xf16>
        %vt = load_tile %v[%j, %0] or %pad : tile<16x16xf16>
        %s = mma %qt, %kt, %zero : tile<16x16xf32>
        %p = exp2 %s : tile<16x16xf32>
        %a = cast %p : tile<16x16xf16>
        %y = mul %x, %p : tile<16x16xf32>
        %z = mma %a, %vt, %y : tile<16x16xf32>
        continue %z
    }
    store_tile %o[%0, %0], %sum
    return
}
";

/// The loop with a ring for each of its MMAs, or for all loads where they have none in common with one; shifted, if it is.
fn shifted(text: &str) -> Option<Kernel> {
    let kernel =
        verify(parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}"));
    let candidate = candidates(&kernel, &|_| true).remove(0);
    let rings = loads_apart(&kernel, candidate.op, &candidate.loads);
    let rings = rings.map_or_else(|| vec![candidate.loads.clone()], Vec::from);
    let mut made: Kernel = (*kernel).clone();
    for loads in rings {
        made = pipeline(&made, &Candidate { loads, ..candidate.clone() }, 2).expect("a ring");
    }
    let made = shift(&split(&made, 1).expect("two roles"))?;
    verify(made.clone()).unwrap_or_else(|e| panic!("{e:?}"));
    Some(made)
}

#[test]
fn a_loop_of_two_mmas_is_shifted() {
    let made = shifted(TEXT).expect("it is of the form");
    let count = |wanted: &OpKind| {
        let mut n = 0;
        made.walk(&mut |_, op| n += usize::from(op.kind == *wanted));
        n
    };
    // Of the first iteration, of the loop, and of the last iteration.
    assert_eq!(count(&OpKind::Mma), 2);
    assert_eq!(count(&OpKind::Ttg(TtgOp::ComputeIssue)), 2);
    assert_eq!(count(&OpKind::Ttg(TtgOp::ComputeWait)), 2);
    assert_eq!(count(&OpKind::Ttg(TtgOp::Release)), 4);
    assert_eq!(made.pipes.len(), 2);
}

#[test]
fn other_loops_stay_as_they_are() {
    let cases = [
        ("the accumulator is used otherwise", "%p = exp2 %s", "%w = add %s, %x : tile<16x16xf32>\n%p = exp2 %w"),
        ("the second MMA does not add to what the loop carries", "mma %a, %vt, %y", "mma %a, %vt, %p"),
        ("the first MMA does not feed the second one", "cast %p", "cast %x"),
        ("an MMA reads both stages", "mma %a, %vt, %y", "mma %kt, %vt, %y"),
        ("one MMA", "%z = mma %a, %vt, %y", "%z = add %y, %y"),
        ("the sum is scaled behind the MMA", "continue %z", "%u = mul %z, %p : tile<16x16xf32>\ncontinue %u"),
        ("an operation with an effect", "%p = exp2 %s", "print \"{}\", %j\n%p = exp2 %s"),
        ("the first MMA adds to the accumulator", "mma %qt, %kt, %zero", "mma %qt, %kt, %x"),
    ];
    for (what, from, to) in cases {
        assert!(TEXT.contains(from), "{what}");
        assert!(shifted(&TEXT.replace(from, to)).is_none(), "{what}");
    }
}
