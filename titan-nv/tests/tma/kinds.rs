//! The numbers of the driver.

use titan_nv::tma::{Element, Fill, L2Promotion, Swizzle};

#[test]
fn numbers_are_read_back() {
    for number in 0..20 {
        assert!(Element::from_number(number).is_none_or(|e| e as u32 == number));
        assert!(Swizzle::from_number(number).is_none_or(|s| s as u32 == number));
    }
    assert_eq!((Element::from_number(10), Swizzle::from_number(4)), (None, None));
    assert_eq!((L2Promotion::from_number(3), L2Promotion::from_number(4)), (Some(L2Promotion::B256), None));
    assert_eq!((Fill::from_number(1), Fill::from_number(2)), (Some(Fill::Nan), None));
}
