//! Kernels that once went wrong, written down.

use crate::kernels::complaint;
use titan_core::text::parse_one;
use titan_core::verify::verify;

fn runs(body: &str) {
    let text = format!(
        "kernel @case(\n %a: in tensor<i8>[_, _],\n %b: in tensor<i8>[_, _],\n %c: in tensor<i32>[_, _],\n \
         %out: mut tensor<i32>[_, _],\n %n: i32,\n) grid(2) {{\n %p = program_id<0> : i32\n %zero = const 0 : i32\n \
         %one = const 1 : i32\n %pad = const 0 : i8\n{body}\n return\n}}\n"
    );
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let verified = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    for seed in 0..test_depth::cases(4, 2) {
        for (lanes, aligned) in [(32, true), (32, false), (64, false)] {
            if let Some(what) = complaint(&verified, lanes, aligned, seed) {
                panic!("{lanes} lanes, aligned {aligned}: {what}\n{text}");
            }
        }
    }
}

/// The operands go to shared memory asynchronously; what is between them and the product must not take their place, and the
/// barriers of other buffers do not settle their copies.
#[test]
fn copies_are_waited_for_on_every_path() {
    let load = " %x = load_tile %a[%p, %zero] or %pad : tile<32x32xi8>\n %y = load_tile %b[%zero, %p] or %pad : tile<32x32xi8>\n \
                %s = splat %zero : tile<32x32xi32>\n";
    // A product in one arm only, then an exchange in the same place.
    runs(&format!(
        "{load} %cond = lt %n, %zero : bool\n %r = if %cond : tile<32x32xi32> {{\n %m = mma %x, %y, %s : tile<32x32xi32>\n \
         yield %m\n }} else {{\n yield %s\n }}\n %t = load_tile %c[%p, %zero] or %zero : tile<32x32xi32>\n \
         %u = permute<1, 0> %t : tile<32x32xi32>\n %v = add %u, %r : tile<32x32xi32>\n store_tile %out[%p, %zero], %v"
    ));
    // A loop that may have no round.
    runs(&format!(
        "{load} %r = for %i = %zero to %p step %one carry(%acc = %s) : tile<32x32xi32> {{\n \
         %m = mma %x, %y, %acc : tile<32x32xi32>\n continue %m\n }}\n \
         %t = load_tile %c[%p, %zero] or %zero : tile<32x32xi32>\n %u = permute<1, 0> %t : tile<32x32xi32>\n \
         %v = add %u, %r : tile<32x32xi32>\n store_tile %out[%p, %zero], %v"
    ));
    // An exchange, with its barriers, between the loads and the product.
    runs(&format!(
        "{load} %t = load_tile %c[%p, %zero] or %zero : tile<32x32xi32>\n %u = permute<1, 0> %t : tile<32x32xi32>\n \
         %m = mma %x, %y, %u : tile<32x32xi32>\n %v = add %m, %t : tile<32x32xi32>\n store_tile %out[%p, %zero], %v"
    ));
}

/// What all threads have computed by shuffles decides for all of them.
#[test]
fn a_reduced_scalar_may_steer() {
    runs(
        " %t = load_tile %c[%p, %zero] or %zero : tile<4x32xi32>\n %r = reduce_max<1> %t : tile<4xi32>\n \
         %m = reduce_max<0> %r : i32\n %cond = lt %m, %n : bool\n %v = if %cond : tile<4x32xi32> {\n \
         %w = permute<1, 0> %t : tile<32x4xi32>\n %x = scan_sum<0> %w : tile<32x4xi32>\n \
         %y = permute<1, 0> %x : tile<4x32xi32>\n yield %y\n } else {\n yield %t\n }\n store_tile %out[%p, %zero], %v",
    );
}

/// Lanes beyond an extent of 1 hold padding, not copies.
#[test]
fn an_axis_of_one_may_be_padded() {
    runs(
        " %x = load_tile %a[%p, %zero] or %pad : tile<1x32xi8>\n %y = load_tile %b[%zero, %zero] or %pad : tile<32x1xi8>\n \
         %s = load_tile %c[%p, %p] or %one : tile<1x1xi32>\n %m = mma %x, %y, %s : tile<1x1xi32>\n \
         %f = reshape %m : tile<1xi32>\n %sum = reduce_sum<0> %f : i32\n %v = splat %sum : tile<4x60xi32>\n \
         store_tile %out[%p, %zero], %v",
    );
}

/// A line that is longer than its layout is scanned part by part, from the sum of all parts before.
#[test]
fn sums_of_all_parts_of_a_long_line_are_carried() {
    runs(
        " %i = iota<2048> : tile<2048xi32>\n %s = splat %n : tile<2048xi32>\n %t = add %i, %s : tile<2048xi32>\n \
         %x = scan_sum<0> %t : tile<2048xi32>\n %m = reduce_max<0> %x : i32\n %k = reduce_min<0> %x : i32\n \
         %d = sub %m, %k : i32\n %v = splat %d : tile<4x8xi32>\n store_tile %out[%p, %zero], %v",
    );
}
