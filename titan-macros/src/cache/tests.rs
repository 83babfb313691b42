//! Hits, misses, and files in the folder that are not artifacts.

use super::*;

fn dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("titan-cache-test-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

fn cache(name: &str) -> Cache {
    Cache::open(&dir(name)).unwrap()
}

fn path(cache: &Cache, input: &str) -> PathBuf {
    cache.path(hash(&[input.as_bytes()]))
}

fn get(cache: &Cache, input: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    get_or_make(Some(cache), input, make)
}

/// The names in the folder, in order.
fn names(cache: &Cache) -> Vec<String> {
    let entries = fs::read_dir(&cache.dir).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn set_age(path: &Path, age: Duration) {
    File::options().append(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_second_request_is_answered_from_disk() {
    let cache = cache("hit");
    assert_eq!(get(&cache, "in", || vec![1, 2]), [1, 2]);
    assert_eq!(get(&cache, "in", || unreachable!("it is cached")), [1, 2]);
    assert_eq!(get(&cache, "other", || vec![3]), [3]);
    assert_eq!(names(&cache).len(), 2, "two artifacts and nothing else");
    fs::remove_dir_all(&cache.dir).unwrap();
    assert_eq!(get(&cache, "in", || vec![1, 2]), [1, 2]);
    assert_eq!(get(&cache, "in", || unreachable!("the folder was made anew")), [1, 2]);
}

#[test]
fn a_damaged_file_is_a_miss() {
    let cache = cache("damage");
    get(&cache, "in", || vec![1, 2, 3, 4]);
    let path = path(&cache, "in");
    let good = fs::read(&path).unwrap();
    let read = || cache.read(hash(&[b"in"]), "in");
    assert_eq!(read(), Some(vec![1, 2, 3, 4]));
    for cut in 0..good.len() {
        fs::write(&path, &good[..cut]).unwrap();
        assert_eq!(read(), None, "cut at {cut}");
    }
    for flip in 0..good.len() {
        let mut bad = good.clone();
        bad[flip] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert_eq!(read(), None, "flipped byte {flip}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    assert!(matches!(Cache::open(Path::new("/proc/no/such/place")), Err(Refusal::Unwritable)));
    assert_eq!(get_or_make(None, "in", || vec![8]), [8]);
    let file = dir("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Cache::open(&file), Err(Refusal::Unwritable)));
}

#[test]
fn temporary_files_left_behind_are_removed_and_fresh_ones_are_not() {
    let cache = cache("temporary");
    let old = cache.dir.join("0123.tmp77-1");
    let fresh = cache.dir.join("0123.tmp78-0");
    let other = cache.dir.join("notes.txt");
    [&old, &fresh, &other].iter().for_each(|p| fs::write(p, "half").unwrap());
    [&old, &other].iter().for_each(|p| set_age(p, ABANDONED * 2));
    cache.sweep().unwrap();
    assert_eq!(names(&cache), ["0123.tmp78-0", "notes.txt"]);
    // A process with the process id of one that was killed during a write.
    let next = |n: u32| cache.dir.join(format!("{:016x}.{TEMPORARY}{}-{n}", hash(&[b"in"]), std::process::id()));
    (0..200).for_each(|n| fs::write(next(n), "half").unwrap());
    get(&cache, "in", || vec![1]);
    assert_eq!(get(&cache, "in", || unreachable!("it is cached")), [1]);
}

#[test]
fn the_files_not_used_for_longest_go_when_the_folder_is_full() {
    let mut cache = cache("full");
    cache.full = 16 * BLOCK;
    let input = |i: u64| format!("input {i}");
    for i in 0..17 {
        get(&cache, &input(i), || vec![7; 10]);
        let file = path(&cache, &input(i));
        if file.exists() {
            set_age(&file, RECENT * 2 * (18 - u32::try_from(i).unwrap()));
        }
    }
    // Reading the oldest file counts as a use, so the sweep keeps it.
    cache.read(hash(&[input(0).as_bytes()]), &input(0)).unwrap();
    cache.sweep().unwrap();
    let left: Vec<u64> = (0..17).filter(|i| path(&cache, &input(*i)).exists()).collect();
    assert_eq!(left.len(), 12, "{left:?}");
    assert!(left.contains(&0) && !left.contains(&1) && left.contains(&16), "{left:?}");
}

#[test]
fn a_folder_that_is_written_all_the_time_stays_small() {
    let mut cache = cache("bounded");
    cache.full = 64 * BLOCK;
    for i in 0..2000 {
        get(&cache, &format!("input {i}"), || vec![7; 10]);
    }
    let n = names(&cache).len();
    assert!(n < 1000, "{n} files in a folder for 64");
}

#[test]
fn what_is_too_large_is_made_every_time() {
    let cache = cache("large");
    let huge = vec![0; usize::try_from(LARGEST).unwrap() + 1];
    assert_eq!(get(&cache, "in", || huge.clone()).len(), huge.len());
    assert!(names(&cache).is_empty());
    // A large sparse file that is not an artifact.
    let file = File::create(path(&cache, "in")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(get(&cache, "in", || vec![1]), [1]);
    assert_eq!(get(&cache, "in", || unreachable!("it was replaced")), [1]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_and_its_files_are_for_their_user() {
        let cache = cache("modes");
        get(&cache, "in", || vec![1]);
        assert_eq!((mode(&cache.dir), mode(&path(&cache, "in"))), (0o700, 0o600));
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let dir = dir("open");
        fs::create_dir(&dir).unwrap();
        for (mode, is_refused) in [(0o777, true), (0o1777, true), (0o770, true), (0o702, true), (0o755, false)] {
            set_mode(&dir, mode);
            assert_eq!(matches!(Cache::open(&dir), Err(Refusal::Open)), is_refused, "{mode:o}");
        }
        assert!(fs::read_dir(&dir).unwrap().next().is_none(), "nothing is left of the attempts");
    }

    #[test]
    fn files_of_others_are_misses() {
        let mut cache = cache("others");
        get(&cache, "in", || vec![1]);
        let read = |cache: &Cache| cache.read(hash(&[b"in"]), "in");
        assert!(read(&cache).is_some());
        set_mode(&path(&cache, "in"), 0o620);
        assert!(read(&cache).is_none(), "others may have written it");
        set_mode(&path(&cache, "in"), 0o600);
        // The root folder is owned by root, so for any other user it is a foreign folder.
        let root = fs::metadata("/proc/1").or_else(|_| fs::metadata("/")).unwrap();
        cache.user = access::User::of(&root);
        let is_root = cache.user.owns(&fs::metadata(&cache.dir).unwrap());
        assert_eq!(read(&cache).is_some(), is_root);
    }

    /// Reading any of these would block the build or exhaust its memory.
    #[test]
    fn pipes_links_and_folders_are_misses() {
        let cache = cache("pipes");
        let entry = path(&cache, "in");
        let fifo = |at: &Path| assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
        let made = [
            &fifo as &dyn Fn(&Path),
            &|at: &Path| symlink("/dev/zero", at).unwrap(),
            &|at: &Path| symlink("/dev/stdin", at).unwrap(),
            &|at: &Path| symlink("nowhere", at).unwrap(),
        ];
        for make in made {
            make(&entry);
            assert_eq!(get(&cache, "in", || vec![1]), [1]);
            assert_eq!(get(&cache, "in", || unreachable!("it was replaced")), [1]);
            cache.sweep().unwrap();
            fs::remove_file(&entry).unwrap();
        }
        fs::create_dir(&entry).unwrap();
        assert_eq!(get(&cache, "in", || vec![1]), [1]);
        assert_eq!(names(&cache).len(), 1, "the folder stays, and nothing beside it");
    }

    #[test]
    fn a_link_to_an_artifact_is_a_miss() {
        let (cache, other) = (cache("link"), cache_of_another());
        symlink(path(&other, "in"), path(&cache, "in")).unwrap();
        assert_eq!(get(&cache, "in", || vec![2]), [2]);
    }

    fn cache_of_another() -> Cache {
        let other = cache("linked");
        get(&other, "in", || vec![1]);
        other
    }
}
