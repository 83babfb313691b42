//! The format of the list, and what a defect makes of a text.

use crate::defect::{Defect, expect_unique, parse};
use crate::options::Options;

const LIST: &str = "\
# A comment.
defect sums: the last number is left out
file src/sum.rs
tests titan-core filetests, titan-nv
     for x in all {
-        sum += x;
+        sum = x;

defect sums: nothing is printed
file src/sum.rs
tests titan-cpu executor
-    print(sum);
";

const TEXT: &str = "fn sum() {\n    for x in all {\n        sum += x;\n    }\n    sum += x;\n    print(sum);\n}\n";

fn list() -> Vec<Defect> {
    parse("sums", LIST).expect("the list is good")
}

#[test]
fn fields_are_read() {
    let [first, second] = &list()[..] else { panic!("two defects") };
    assert_eq!((first.name.as_str(), first.area.as_str()), ("sums: the last number is left out", "sums"));
    assert_eq!(first.file, "src/sum.rs");
    let tests: Vec<String> = first.tests.iter().map(ToString::to_string).collect();
    assert_eq!(tests, ["titan-core filetests", "titan-nv"]);
    assert_eq!(second.tests[0].program.as_deref(), Some("executor"));
}

#[test]
fn one_line_is_changed() {
    let [first, second] = &list()[..] else { panic!("two defects") };
    let changed = first.plant(TEXT).expect("it occurs once");
    assert_eq!(changed, TEXT.replace("        sum += x;\n    }", "        sum = x;\n    }"));
    let removed = second.plant(TEXT).expect("it occurs once");
    assert_eq!(removed, TEXT.replace("    print(sum);\n", ""));
}

#[test]
fn the_end_of_a_text_stays() {
    let [_, second] = &list()[..] else { panic!("two defects") };
    assert_eq!(second.plant("a\n    print(sum);").as_deref(), Ok("a"));
    assert_eq!(second.plant("    print(sum);\n\nb\n").as_deref(), Ok("\nb\n"));
}

/// A part of a line is not the line.
#[test]
fn old_lines_occur_exactly_once() {
    let [_, second] = &list()[..] else { panic!("two defects") };
    for text in ["", "print(sum);\n", "    print(sum); \n", "     print(sum);\n"] {
        let error = second.plant(text).expect_err("it does not occur");
        assert!(error.contains("do not occur in src/sum.rs"), "{error}");
    }
    let error = second.plant("    print(sum);\n    print(sum);\n").expect_err("it occurs twice");
    assert!(error.contains("occur 2 times"), "{error}");
}

#[test]
fn bad_lists_are_errors() {
    let head = "defect a\nfile f\ntests t\n";
    let cases = [
        ("file f\n".to_owned(), "line 1: a defect begins with"),
        ("-x\n".to_owned(), "line 1: a defect begins with"),
        ("defect a\nfiles f\n".to_owned(), "line 2: `files` is not one of"),
        ("defect a\nfile f\nfile g\n".to_owned(), "line 3: `file` is given twice"),
        ("defect a\nfile\n".to_owned(), "line 2: `file` has no value"),
        ("defect a\nfile f\n-x\n+y\n\n".to_owned(), "line 5: the defect `a` before this line has no `tests`"),
        ("defect a\ntests t\n-x\n+y\n".to_owned(), "last line: the defect `a` before this line has no `file`"),
        ("defect a\ntests a b c\n".to_owned(), "line 2: `a b c` is not `PACKAGE`"),
        (format!("{head}-x\n-y\n+z\n"), "line 5: a defect changes one line"),
        (format!("{head}-x\n+y\n+z\n"), "line 6: a defect changes one line"),
        (format!("{head}-x\n+x\n"), "changes nothing"),
        (head.to_owned(), "changes nothing"),
        (format!("{head}-x\n+y\ndefect b\n"), "last line: the defect `b` before this line has no `file`"),
    ];
    for (text, expected) in cases {
        let error = parse("a", &text).expect_err(&text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn names_are_unique() {
    assert_eq!(expect_unique(&list()), Ok(()));
    let twice = [list(), list()].concat();
    assert!(expect_unique(&twice).is_err_and(|error| error.contains("two defects are called")));
}

#[test]
fn defects_are_chosen_by_area_and_by_name() {
    let [first, second] = &list()[..] else { panic!("two defects") };
    let asked = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        (first.is_asked_for(&names), second.is_asked_for(&names))
    };
    assert_eq!(asked(&[]), (true, true));
    assert_eq!(asked(&["sums"]), (true, true));
    assert_eq!(asked(&["printed"]), (false, true));
    assert_eq!(asked(&["other", "left out"]), (true, false));
}

#[test]
fn arguments_are_read() {
    let parse = |args: &str| Options::parse(&args.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let options = parse("--full fences --minutes 3 --write").expect("they are good");
    assert_eq!((options.full, options.write, options.check, options.minutes), (true, true, false, 3));
    assert_eq!(options.names, ["fences"]);
    assert_eq!(parse("").expect("none is needed").minutes, 10);
    for bad in ["--all", "--minutes", "--minutes 0", "--minutes x"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
