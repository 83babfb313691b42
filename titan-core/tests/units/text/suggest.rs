//! Suggestions for misspelled names.

use titan_core::text::closest;

#[test]
fn a_slip_is_found_and_another_word_is_not() {
    let known = ["reduce_sum", "reduce_max", "mul"];
    assert_eq!(closest("reduce_smu", known), Some("reduce_sum"));
    assert_eq!(closest("mull", known), Some("mul"));
    assert_eq!(closest("gather", known), None);
}
