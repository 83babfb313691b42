//! The loops and conditions that are recognised, and the arithmetic that they justify.

use titan_core::analysis::tiles::{Count, counts_near, empty_unless};
use titan_core::analysis::uses::Tree;
use titan_core::ir::{Kernel, Value};
use titan_core::text::parse_one;

/// A loop from `from` to `to` over tiles of `by`, which defines a number `%near` and a condition `%more`.
fn kernel(from: i32, by: i32, to: &str, inner: &str) -> Kernel {
    let text = format!(
        "kernel @k(%a: in tensor<f32>[K], %c: mut tensor<f32>[N], %n: i32) grid(1) {{\n\
         %zero = const 0 : i32\n%from = const {from} : i32\n%by = const {by} : i32\n%one = const 1 : i32\n\
         %three = const 3 : i32\n%K = dim<0> %a\n%whole = div %K, %by\n%rest = rem %K, %by\n%is = gt %rest, %zero\n\
         %some = cast %is : i32\n%count = add %whole, %some\n%limit = sub %count, %three\n%least = min %count, %n\n\
         %other = sub %least, %three\n%end = min %n, %K\n%whole2 = div %end, %by\n%rest2 = rem %end, %by\n\
         %is2 = gt %rest2, %zero\n%some2 = cast %is2 : i32\n%before = add %whole2, %some2\n\
         %not = ne %rest2, %zero\n%some3 = cast %not : i32\n%after = add %whole2, %some3\nfor %k = %from to {to} step %one {{\n{inner}\ncontinue\n}}\nreturn\n}}\n"
    );
    parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn named(kernel: &Kernel, name: &str) -> Value {
    let at = kernel.values.iter().position(|v| v.name.as_deref() == Some(name));
    Value::new(at.unwrap_or_else(|| panic!("no value `{name}`")))
}

fn is_near(kernel: &Kernel) -> bool {
    let counts = counts_near(kernel, &Tree::new(kernel), named(kernel, "near"));
    assert!(counts.iter().all(|count| *count == Count { extent: named(kernel, "K"), tile: 64 }));
    !counts.is_empty()
}

#[test]
fn numbers_of_loops_over_tiles_are_near() {
    let ahead = "%near = add %k, %three";
    assert!(is_near(&kernel(0, 64, "%count", "%near = add %k, %zero")));
    assert!(is_near(&kernel(0, 64, "%count", ahead)));
    assert!(is_near(&kernel(0, 64, "%count", "%near = add %three, %k")));
    assert!(is_near(&kernel(1, 64, "%count", ahead)));
    assert!(is_near(&kernel(0, 64, "%least", ahead)));
    assert!(is_near(&kernel(0, 64, "%before", ahead)));
    // Negative numbers; other bounds; tiles of one element; numbers below the loop's or far above them.
    assert!(!is_near(&kernel(-1, 64, "%count", ahead)));
    assert!(!is_near(&kernel(0, 64, "%n", ahead)));
    assert!(!is_near(&kernel(0, 64, "%after", ahead)));
    assert!(!is_near(&kernel(0, 64, "%K", ahead)));
    assert!(!is_near(&kernel(0, 64, "%whole", ahead)));
    assert!(!is_near(&kernel(0, 1, "%count", ahead)));
    assert!(!is_near(&kernel(0, 0, "%count", ahead)));
    assert!(!is_near(&kernel(0, 64, "%count", "%near = sub %k, %three")));
    assert!(!is_near(&kernel(0, 64, "%count", "%far = const 65 : i32\n%near = add %k, %far")));
    assert!(!is_near(&kernel(0, 64, "%count", "%near = add %k, %k")));
    assert!(!is_near(&kernel(0, 64, "%count", "%near = add %n, %three")));
}

#[test]
fn conditions_that_say_what_the_extent_says() {
    let implied = |to: &str, inner: &str| {
        let k = kernel(0, 64, to, inner);
        empty_unless(&k, &Tree::new(&k), named(&k, "more"), named(&k, "near")).is_some()
    };
    let ahead = "%near = add %k, %three\n";
    assert!(implied("%count", &format!("{ahead}%more = lt %k, %limit")));
    assert!(implied("%count", &format!("{ahead}%more = lt %near, %count")));
    assert!(implied("%count", &format!("{ahead}%more = lt %k, %count")));
    // A tile inside of the extent although the condition is false; another limit; another comparison; another number.
    assert!(!implied("%count", "%near = add %k, %one\n%more = lt %k, %limit"));
    assert!(!implied("%count", &format!("{ahead}%more = lt %near, %limit")));
    assert!(!implied("%count", &format!("{ahead}%more = lt %k, %other")));
    assert!(!implied("%count", &format!("{ahead}%more = gt %k, %limit")));
    assert!(!implied("%count", &format!("{ahead}%more = lt %n, %limit")));
    assert!(!implied("%count", &format!("{ahead}%more = lt %near, %before")));
    assert!(!implied("%n", &format!("{ahead}%more = lt %k, %limit")));
}

/// In 32 bits, `extent - tile · number - thread` is the exact difference, for every number that is near.
#[test]
fn differences_of_near_tiles_do_not_wrap() {
    let extents = (0..200).chain([i32::MAX, i32::MAX - 1, i32::MAX - 63, i32::MAX - 64, 1 << 30, (1 << 30) + 1]);
    for extent in extents {
        for tile in [2, 3, 64, 100, 4096, 1 << 19] {
            let count = extent / tile + i32::from(extent % tile > 0);
            let numbers = (0..count.min(70)).chain((count - 70).max(0)..count + 64);
            for number in numbers {
                for thread in [0, tile - 1, 2 * tile] {
                    let left = extent.wrapping_sub(number.wrapping_mul(tile).wrapping_add(thread));
                    let exact = i64::from(extent) - i64::from(number) * i64::from(tile) - i64::from(thread);
                    assert_eq!(i64::from(left), exact, "{extent} - {tile} · {number} - {thread}");
                }
            }
        }
    }
}
