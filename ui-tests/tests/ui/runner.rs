//! Tests of the runner itself: it rejects programs that are no cases, and what is not stored, in batches as well as alone.

use super::batch::{Said, alone, together};
use super::cases::Case;
use super::compiler::of_this_test;
use super::judge::{self, Verdict};
use std::fs;
use std::path::Path;

/// The macro rejects it.
const MISTAKE: &str = "use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    y.set([0], x.get([0]).powi(2));
}

fn main() {}
";
const MARK: &str = ":5:27
  |
5 |     y.set([0], x.get([0]).powi(2));
  |                           ^^^^
";
/// A second mistake for the program above, which the last of rustc's checks finds.
const MOVED: &str = "
fn moved(s: String) {
    drop(s);
    drop(s);
}
";
/// Nothing is wrong.
const VALID: &str = "fn main() {}\n";
/// rustc looks for it only if there is no error.
const LINT: &str = "#[deny(unused_must_use)]
fn main() {
    Some(1).is_some();
}
";
/// rustc looks for it beside errors as well, and prints the path from the root of the crate.
const DEPRECATED: &str = "#![deny(deprecated)]
mod inner {
    #[deprecated]
    pub const OLD: u8 = 0;
}
fn main() {
    let _ = inner::OLD;
}
";
/// rustc does not continue after it.
const UNCLOSED: &str = "fn main() {\n";

/// Programs in a folder that belongs to one test, since tests run at the same time.
fn cases(folder: &str, programs: &[&str]) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui").join(folder);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let case = |(n, text): (usize, &&str)| {
        let path = folder.join(format!("case_{n}.rs"));
        fs::write(&path, text).unwrap();
        Case::new(path)
    };
    programs.iter().enumerate().map(case).collect()
}

fn each_alone(cases: &[Case]) -> Vec<Said> {
    cases.iter().map(|case| alone(of_this_test(), case).unwrap()).collect()
}

fn in_batch(cases: &[Case]) -> Vec<Option<Said>> {
    together(of_this_test(), &cases.iter().collect::<Vec<_>>())
}

/// In both depths.
fn verdicts(cases: &[Case]) -> Vec<Verdict> {
    let [quick, full] = [false, true].map(|is_full| judge::all(of_this_test(), cases, is_full));
    assert_eq!(quick, full);
    quick
}

#[test]
fn batches_decide_about_cases_with_errors_and_about_no_others() {
    let late = [MISTAKE, MOVED].concat();
    let cases = cases("decide", &[MISTAKE, VALID, LINT, &late]);
    let alone = each_alone(&cases);
    assert!(alone[0].is_rejected && alone[0].text.contains(MARK), "{}", alone[0].text);
    assert_eq!(alone[1], Said::default());
    assert!(alone[2].is_rejected && alone[2].text.contains("must be used"), "{}", alone[2].text);
    // What the macro reports does not keep rustc from the last of its checks.
    assert!(alone[3].text.contains(MARK) && alone[3].text.contains("\n\nerror[E0382]"), "{}", alone[3].text);
    assert_eq!(in_batch(&cases), [Some(alone[0].clone()), None, None, Some(alone[3].clone())]);
}

#[test]
fn a_batch_in_which_rustc_stops_decides_nothing() {
    let cases = cases("stop", &[MISTAKE, UNCLOSED]);
    assert!(in_batch(&cases[..1])[0].is_some());
    assert_eq!(in_batch(&cases), [None, None]);
    // Alone, each has its error.
    for (case, said) in cases.iter().zip(each_alone(&cases)) {
        assert!(said.is_rejected);
        case.bless(&said.text).unwrap();
    }
    assert_eq!(verdicts(&cases), [Verdict::Right, Verdict::Right]);
}

#[test]
fn no_batch_decides_about_a_lint_that_is_reported_beside_errors() {
    let cases = cases("deprecated", &[MISTAKE, DEPRECATED]);
    let [mistake, alone] = each_alone(&cases).try_into().unwrap();
    let (alone, together) = (alone.text, in_batch(&cases).remove(1).unwrap().text);
    assert!(alone.starts_with("error: use of deprecated constant `inner::OLD`\n"), "{alone}");
    assert!(together.starts_with("error: use of deprecated constant `case_1::inner::OLD`\n"), "{together}");
    cases[0].bless(&mistake.text).unwrap();
    cases[1].bless(&alone).unwrap();
    assert_eq!(verdicts(&cases), [Verdict::Right, Verdict::Right]);
    // Stored is what rustc says alone, whatever the batch would say.
    cases[1].bless(&together).unwrap();
    assert_eq!(verdicts(&cases)[1], Verdict::Differs { stored: Some(together), said: alone });
}

#[test]
fn a_case_is_right_only_if_all_its_errors_are_stored() {
    let late = [MISTAKE, MOVED].concat();
    for (folder, last) in [("errors", MISTAKE), ("errors_and_stop", UNCLOSED)] {
        let cases = cases(folder, &[&late, last]);
        let said = each_alone(&cases).remove(0).text;
        let (first, _) = said.split_once("\nerror[E0382]").unwrap();
        for stored in [first.to_owned(), format!("{said}\n"), String::new()] {
            cases[0].bless(&stored).unwrap();
            assert_eq!(verdicts(&cases)[0], Verdict::Differs { stored: Some(stored), said: said.clone() });
        }
        cases[0].bless(&said).unwrap();
        assert_eq!(verdicts(&cases)[0], Verdict::Right);
    }
}

#[test]
fn a_case_that_compiles_is_wrong_whatever_is_stored() {
    let cases = cases("compiles", &[VALID, VALID, VALID]);
    cases[0].bless("").unwrap();
    cases[1].bless("error: something\n").unwrap();
    assert_eq!(verdicts(&cases), [const { Verdict::Compiles(String::new()) }; 3]);
}

#[test]
fn reports_name_the_case_and_blessing_stores_its_message() {
    let cases = cases("report", &[MISTAKE, VALID]);
    let report = judge::report(&cases, &verdicts(&cases), false);
    assert!(report.contains(&format!("{}: no message is stored; it would be\n\nerror: [T0111] ", cases[0].shown)));
    assert!(report.contains(&format!("{}: it compiles", cases[1].shown)) && report.contains("2 of 2 cases fail"));
    assert!(report.contains("TITAN_BLESS=1 "));
    assert_eq!(cases[0].expected().unwrap(), None);
    let report = judge::report(&cases, &verdicts(&cases), true);
    assert!(!report.contains(&cases[0].shown) && report.contains("1 of 2 cases fail"), "{report}");
    assert_eq!(verdicts(&cases)[0], Verdict::Right);
}
