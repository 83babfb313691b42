//! `fetch` refuses what is not the published wheel, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use wheel::{Asset, Error, Origin, Outcome, Wheel};

/// A wheel that does not exist on the index.
const PINNED: Wheel = Wheel {
    package: "no-such-package",
    version: "1.0",
    file: "no_such_package-1.0-py3-none-any.whl",
    bytes: 3,
    sha256: "0000000000000000000000000000000000000000000000000000000000000000",
    command: "fetch it",
};

const FILE: Asset = Asset { name: "a.txt", entry: "package/a.txt", bytes: 3, sha256: ABC };

/// SHA-256 of `abc`, the example of FIPS 180-4.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn fetch(dir: &Path, wheel: PathBuf) -> Result<Outcome, Error> {
    wheel::fetch(&PINNED, &[FILE], dir, &Origin::Wheel(wheel))
}

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
    let error = fetch(&dir.join("assets"), wheel).unwrap_err();
    assert!(matches!(&error, Error::WheelHash { found, .. } if found == ABC), "{error}");
    assert!(error.to_string().contains(PINNED.sha256), "{error}");
    assert_eq!(names(&dir.join("assets")), [".lock"]);
}

#[test]
fn a_wheel_that_is_not_there_is_named() {
    let dir = folder("absent_wheel");
    let error = fetch(&dir, dir.join("absent.whl")).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot read `") && text.contains("absent.whl"), "{text}");
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_was_there_stays() {
    let dir = folder("killed_run");
    fs::create_dir(dir.join(".partial")).unwrap();
    fs::write(dir.join(".partial").join("half.whl"), "ha").unwrap();
    fs::write(dir.join(FILE.name), "older").unwrap();
    fetch(&dir, dir.join("absent.whl")).unwrap_err();
    assert_eq!(names(&dir), [".lock", FILE.name]);
    assert_eq!(fs::read_to_string(dir.join(FILE.name)).unwrap(), "older");
}

#[test]
fn files_that_are_there_with_their_hash_are_not_fetched() {
    let dir = folder("already_there");
    fs::write(dir.join(FILE.name), "abc").unwrap();
    assert_eq!(fetch(&dir, dir.join("absent.whl")).unwrap(), Outcome::AlreadyThere);
    fs::write(dir.join(FILE.name), "abd").unwrap();
    fetch(&dir, dir.join("absent.whl")).unwrap_err();
}
