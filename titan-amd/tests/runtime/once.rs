//! Values that are made once.

use titan_amd::runtime::Once;

#[test]
fn a_failure_is_tried_again_and_a_value_is_kept() {
    let place = Once::new();
    assert_eq!(place.get_or_try(|| Err::<u8, _>("not now")), Err("not now"));
    assert_eq!(place.get_or_try(|| Ok::<_, &str>(7)), Ok(&7));
    assert_eq!(place.get_or_try(|| Err("never asked")), Ok(&7));
}
