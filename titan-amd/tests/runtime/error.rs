//! The results of the runtime.

use titan_amd::runtime::internals::names;
use titan_amd::runtime::{DriverError, Kind};

#[test]
fn rows_are_in_order_and_say_something() {
    let codes: Vec<u32> = names().map(|(_, code)| code).collect();
    assert!(codes.len() > 20 && codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    for row in codes.iter().map(|code| DriverError::new("hipInit", *code, || None)) {
        assert!(!row.meaning().is_empty() && !row.meaning().ends_with('.') && !row.help().is_empty(), "{}", row.name);
        assert!(row.name.starts_with("hipError"));
    }
}

#[test]
fn results_that_are_not_known_keep_their_number() {
    let error = DriverError::new("hipInit", 4242, || None);
    assert_eq!((error.kind(), error.name.as_str()), (Kind::Other, "hipError_t 4242"));
    let error = DriverError::new("hipInit", 4242, || Some("hipErrorOfTomorrow".to_owned()));
    assert!(error.to_string().ends_with("(hipErrorOfTomorrow from hipInit)"), "{error}");
}
