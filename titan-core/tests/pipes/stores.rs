//! Stores from staging slots in loops of few iterations: two to one tile are refused, one is right.

use titan_core::text::parse_one;
use titan_core::verify::verify;

/// What is wrong with stores to one tile, or to one for each iteration, in loops of so many iterations.
fn refused(outer: u8, inner: u8, tile: &str) -> Option<&'static str> {
    let text = format!(
        "kernel @k(%c: mut tensor<f32>[M, K]) grid(cdiv(M, 16)) pipe(2, tile<16x16xf32>) {{\n%p = program_id<0> : i32\n\
         %zero = const 0 : i32\n%one = const 1 : i32\n%outer = const {outer} : i32\n%inner = const {inner} : i32\n%f = const 0.0 : f32\n\
         %t = splat %f : tile<16x16xf32>\nfor %i = %zero to %outer step %one {{\nfor %j = %zero to %inner step %one {{\n\
         %s = ttg.stage.acquire<0>\n%w = ttg.stage.write %s, %t\n%x = ttg.store.issue_tile %c[%p, {tile}], %w\nttg.store.wait %x\n\
         continue\n}}\ncontinue\n}}\nreturn\n}}\n"
    );
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(kernel).err().map(|errors| errors[0].code.number())
}

#[test]
fn a_store_that_runs_twice_goes_to_two_tiles() {
    for (outer, inner) in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)] {
        let twice = (outer > 1).then_some("T0707");
        let again = (inner > 1).then_some("T0707");
        assert_eq!(refused(outer, inner, "%zero"), twice.or(again), "{outer} {inner}");
        assert_eq!(refused(outer, inner, "%j"), twice, "{outer} {inner}");
        assert_eq!(refused(outer, inner, "%i"), again, "{outer} {inner}");
    }
}

#[test]
fn stores_to_two_places_are_right() {
    for (second, wanted) in [("%c[%p, %one]", None), ("%d[%p, %zero]", None), ("%c[%p, %zero]", Some("T0707"))] {
        let text = format!(
            "kernel @k(%c: mut tensor<f32>[M, K], %d: mut tensor<f32>[M, K]) grid(cdiv(M, 16)) pipe(2, tile<16x16xf32>) {{\n\
             %p = program_id<0> : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n%f = const 0.0 : f32\n%t = splat %f : tile<16x16xf32>\n\
             store_tile %d[%p, %zero], %t\n%s = ttg.stage.acquire<0>\n%w = ttg.stage.write %s, %t\n\
             %x = ttg.store.issue_tile %c[%p, %zero], %w\nttg.store.wait %x\n%s2 = ttg.stage.acquire<0>\n\
             %w2 = ttg.stage.write %s2, %t\n%x2 = ttg.store.issue_tile {second}, %w2\nttg.store.wait %x2\nreturn\n}}\n"
        );
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        assert_eq!(verify(kernel).err().map(|errors| errors[0].code.number()), wanted, "{text}");
    }
}
