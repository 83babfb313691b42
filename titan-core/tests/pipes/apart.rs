//! Which loops with two MMAs get a ring for each, so that the second one can run beside the next iteration: those of which the second adds to
//! what the loop carries. How such loops compute is tested where they run, in titan-cpu's `tests/simulator/attention.rs`.

use titan_core::pipeline::apart::loads_apart;
use titan_core::pipeline::implicit::candidates;
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

/// The number of loads of each of the two MMAs, if these have loads of their own.
fn apart(text: &str) -> Option<[usize; 2]> {
    let kernel =
        verify(parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}"));
    let candidate = candidates(&kernel, &|_| true).remove(0);
    loads_apart(&kernel, candidate.op, &candidate.loads).map(|loads| loads.map(|own| own.len()))
}

#[test]
fn two_mmas_in_a_row_have_loads_of_their_own() {
    assert_eq!(apart(TEXT), Some([1, 1]));
}

#[test]
fn other_loops_have_one_ring() {
    let cases = [
        ("the accumulator is used otherwise", "%p = exp2 %s", "%w = add %s, %x : tile<16x16xf32>\n%p = exp2 %w"),
        ("the second MMA does not add to what the loop carries", "mma %a, %vt, %y", "mma %a, %vt, %p"),
        ("the first MMA does not feed the second one", "cast %p", "cast %x"),
        ("an MMA reads both stages", "mma %a, %vt, %y", "mma %kt, %vt, %y"),
        ("one MMA", "%z = mma %a, %vt, %y", "%z = add %y, %y"),
        ("the sum is scaled behind the MMA", "continue %z", "%u = mul %z, %p : tile<16x16xf32>\ncontinue %u"),
        ("the first MMA adds to the accumulator", "mma %qt, %kt, %zero", "mma %qt, %kt, %x"),
    ];
    for (what, from, to) in cases {
        assert!(TEXT.contains(from), "{what}");
        assert!(apart(&TEXT.replace(from, to)).is_none(), "{what}");
    }
}
