//! Files of records: the format, damaged ones, and where they are.

use std::time::Duration;
use titan::bench::Bench;
use titan::records::{Outcome, Record, Records};
use titan::{Device, Error};

/// A comparison of cases with these times, as a record.
fn record(what: &str, class: &str, times: &[(&str, u64)]) -> Record {
    let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
    let bench = Bench::on(&Device::cpu()).rounds(3);
    let compared = bench.sample(&names, |case| Ok(Duration::from_nanos(times[case].1))).unwrap();
    Record::of(&compared, &Device::cpu(), what, class)
}

fn some() -> Records {
    let mut records = Records::default();
    records.insert(record("softmax", "rows of \"4096\"\\\n\u{1}ü", &[("a", 3000), ("b", 1500), ("c", 4500)]));
    let other = record("gemm", "large", &[("x", 1_234_567)]);
    records.insert(other.leaving_out(0, "w", "it cannot run"));
    records.insert(record("gemm", "small", &[("x", 12), ("y", 12)]));
    records
}

#[test]
fn records_are_the_same_after_they_were_written_and_read() {
    let records = some();
    let text = records.to_string();
    let read = Records::parse(&text).unwrap();
    assert_eq!(read, records);
    assert_eq!(read.to_string(), text);
    let none = Records::default();
    assert_eq!(Records::parse(&none.to_string()).unwrap(), none);
    let keys: Vec<(&str, &str)> = read.all().iter().map(|r| (r.what.as_str(), r.class.as_str())).collect();
    assert_eq!(keys, [("gemm", "large"), ("gemm", "small"), ("softmax", "rows of \"4096\"\\\n\u{1}ü")]);
    let softmax = read.get("softmax", keys[2].1, &Device::cpu()).unwrap();
    assert_eq!((softmax.fastest.as_str(), softmax.rounds, softmax.source.as_str()), ("b", 3, ""));
    let Outcome::Measured { nanoseconds, ratio, .. } = &softmax.cases[1].outcome else { panic!("{softmax}") };
    assert_eq!((nanoseconds.median, ratio.median), (1500.0, 0.5));
    let large = &read.all()[0];
    assert_eq!(large.cases[0].outcome, Outcome::LeftOut("it cannot run".to_owned()));
    let shown = large.to_string();
    assert!(shown.starts_with("gemm, large, on cpu (") && shown.contains("\n* x"), "{shown}");
    assert!(shown.contains("\n  w left out: it cannot run"), "{shown}");
    assert!(read.get("softmax", "others", &Device::cpu()).is_none());
}

#[test]
fn a_record_takes_the_place_of_the_one_with_its_key() {
    let mut records = some();
    records.insert(record("gemm", "small", &[("z", 5)]));
    assert_eq!(records.all().len(), 3);
    assert_eq!(records.get("gemm", "small", &Device::cpu()).unwrap().fastest, "z");
}

#[test]
fn records_are_collected_and_extended() {
    let some = some();
    let mut collected: Records = some.all().iter().rev().cloned().collect();
    assert_eq!(collected, some);
    collected.extend([record("gemm", "small", &[("z", 5)]), record("gemm", "tiny", &[("z", 5)])]);
    assert_eq!(collected.all().len(), 4);
    assert_eq!(collected.get("gemm", "small", &Device::cpu()).unwrap().fastest, "z");
}

/// The message of a text that is not one of records.
fn told(text: &str) -> String {
    let error = Records::parse(text).unwrap_err();
    assert!(matches!(error, Error::Records { file: None, .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("[T1121] the records of measurements: "), "{text}");
    assert!(
        text.ends_with("\n  help: restore the file from version control, or delete it and measure again"),
        "{text}"
    );
    text
}

#[test]
fn a_text_that_is_cut_off_anywhere_is_an_error() {
    let text = some().to_string();
    let whole = text.trim_end().len();
    for end in (0..whole).filter(|end| text.is_char_boundary(*end)) {
        told(&text[..end]);
    }
    Records::parse(&text[..whole]).unwrap();
}

#[test]
fn damaged_texts_say_what_is_wrong() {
    let text = some().to_string();
    let changed = |from: &str, to: &str, says: &str| {
        assert!(text.contains(from), "{from}");
        let message = told(&text.replacen(from, to, 1));
        assert!(message.contains(says), "{message}");
    };
    changed("titan measurements 1", "titan measurements 2", "their format is `titan measurements 2`");
    changed("\"format\"", "\"forma\"", "the member `forma` is not of the format");
    changed("\"what\": \"gemm\"", "\"what\": 7", "`\"` is expected at byte ");
    changed("      \"clock\": \"host\",\n", "", "a record lacks the member `clock`");
    changed("\"clock\": \"host\"", "\"clock\": \"sun\"", "`sun` is no clock");
    changed("\"rounds\": 3", "\"rounds\": 3, \"rounds\": 3", "the member `rounds` occurs twice");
    changed("\"rounds\": 3", "\"rounds\": -3", "a whole number of at most 64 bits is expected");
    changed("\"class\": \"large\"", "\"class\": \"small\"", "there are two records of `gemm`, `small` for `cpu (");
    changed("\"fastest\": \"b\"", "\"fastest\": \"d\"", "has no times of its fastest case, `d`");
    changed("\"fastest\": \"b\"", "\"fastest\": \"a\"", "`b` has a smaller ratio than the fastest case, `a`");
    changed("\"name\": \"y\"", "\"name\": \"x\"", "has the case `x` twice");
    changed(
        "\"left_out\": \"it cannot run\"",
        "\"ns\": [1, 1, 1, 1]",
        "case `w` must have `ns` and `ratio`, or else `left_out`",
    );
    changed("[1500.0, ", "[", "times and ratios are four numbers, not 3");
    changed("[1500.0, ", "[1600.0, ", "four numbers in ascending order, none below 0");
    changed("[1500.0, ", "[-1, ", "four numbers in ascending order, none below 0");
    changed("[1500.0, ", "[NaN, ", "a number is expected at byte ");
    changed("[1500.0, ", "[1e999, ", "a number is expected at byte ");
    let more = told(&format!("{text}{{}}"));
    assert!(more.contains("the end of the file is expected at byte "), "{more}");
}

#[test]
fn random_damage_is_an_error_or_other_records_and_never_a_panic() {
    let text = some().to_string().into_bytes();
    let mut random = 7u64;
    for _ in 0..test_depth::cases(&[(); 20_000][..], &[(); 2_000][..]).len() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut damaged = text.clone();
        let at = (random >> 33) as usize % damaged.len();
        damaged[at] = (random >> 24) as u8;
        if let Ok(damaged) = String::from_utf8(damaged) {
            drop(Records::parse(&damaged));
        }
    }
}

#[test]
fn a_file_is_read_and_written_as_a_whole() {
    let folder = std::env::temp_dir().join(format!("titan-records-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tuning.json");
    let mut records = Records::open(&file).unwrap();
    assert!(records.all().is_empty());
    some().all().iter().for_each(|record| records.insert(record.clone()));
    records.save().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), some().to_string());
    assert_eq!(Records::open(&file).unwrap(), records);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "something else is left");

    std::fs::write(&file, &some().to_string()[..99]).unwrap();
    let error = Records::open(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("[T1121] the records of measurements in `{}`: ", file.display())), "{error}");
    std::fs::write(&file, [0xFF, 0xFE]).unwrap();
    Records::open(&file).unwrap_err();
    let error = Records::open(&folder).unwrap_err().to_string();
    assert!(error.contains(": they cannot be read: "), "{error}");
    let nowhere = Records::open(folder.join("no/such/folder.json")).unwrap();
    let error = nowhere.save().unwrap_err().to_string();
    assert!(error.contains(": they cannot be written: "), "{error}");
    let error = some().save().unwrap_err().to_string();
    assert!(error.contains(": they are of no file\n  help: open a file with `Records::open`"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What could not be read again is refused, and the file stays as it was.
#[test]
fn records_with_a_case_twice_are_not_written() {
    let folder = std::env::temp_dir().join(format!("titan-twice-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tuning.json");
    let mut records = Records::open(&file).unwrap();
    records.insert(record("gemm", "small", &[("x", 12)]));
    records.save().unwrap();
    let before = std::fs::read(&file).unwrap();
    records.insert(record("gemm", "large", &[("x", 12), ("x", 13)]));
    let error = records.save().unwrap_err().to_string();
    assert!(error.starts_with("[T1121] ") && error.contains("has the case `x` twice"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Each writer has a file of its own until it takes the place of the old one.
#[test]
fn threads_save_records_to_one_file() {
    let folder = std::env::temp_dir().join(format!("titan-together-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tuning.json");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..50 {
                    let mut records = Records::open(file).unwrap();
                    records.insert(record("gemm", &format!("{thread} {round}"), &[("x", 12)]));
                    records.save().unwrap();
                }
            });
        }
    });
    assert!(!Records::open(&file).unwrap().all().is_empty());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "something else is left");
    std::fs::remove_dir_all(&folder).unwrap();
}
