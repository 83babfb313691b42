//! The folder of cached artifacts.

use std::ffi::OsString;
use titan_core::artifact::cache_dir;

#[test]
fn the_first_variable_that_says_so_decides() {
    let of = |set: &'static [(&str, &str)]| {
        cache_dir(move |name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    };
    assert_eq!(of(&[("TITAN_CACHE", "off"), ("HOME", "/h")]), None);
    assert_eq!(of(&[("TITAN_CACHE", "0"), ("HOME", "/h")]), None);
    assert_eq!(of(&[("TITAN_CACHE", "/c"), ("HOME", "/h")]), Some("/c".into()));
    assert_eq!(of(&[("TITAN_CACHE", ""), ("HOME", "/h")]), Some("/h/.cache/titan-gpu".into()));
    assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/titan-gpu".into()));
    assert_eq!(of(&[("LOCALAPPDATA", "/l")]), Some("/l/titan-gpu".into()));
    assert_eq!(of(&[]), None);
}
