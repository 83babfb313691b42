//! The text of a diagnostic without what changes when nothing that a user would notice does: folders of this machine, and the line
//! numbers of TITAN's own sources.
//!
//! Places in a case keep their numbers, in every other file they lose them, in the arrow and in the margin. The margin then becomes as
//! narrow as the numbers that are left allow:
//!
//! ```text
//! error[E0277]: ...                              error[E0277]: ...
//!    --> ui/mma/rank.rs:7:9                       --> ui/mma/rank.rs:7:9
//!     |                                            |
//!   7 |     mma(a, b, c)                         7 |     mma(a, b, c)
//!     |     ---                                    |     ---
//! note: required by a bound in `titan::lang::mma`  note: required by a bound in `titan::lang::mma`
//!    --> src/lang/mma.rs:114:8                    --> $WORKSPACE/src/lang/mma.rs
//!     |                                            |
//! 114 | pub fn mma(                                | pub fn mma(
//! ```

/// How rustc begins the paths of cases: paths are relative to the workspace, and `ui-tests` is removed from these.
const CASES: &str = "ui/";

/// A diagnostic about a case whose file rustc calls `own`, as it is stored: it ends with one newline.
pub(crate) fn normalized(rendered: &str, own: &str) -> String {
    let mut lines = Vec::new();
    // Whether the lines are those of another file.
    let mut is_foreign = false;
    for line in rendered.trim_end().lines().map(str::trim_end) {
        if let Some((arrow, place)) = split_place(line) {
            let (path, numbers) = split_numbers(place);
            is_foreign = path != own;
            let numbers = if is_foreign { "" } else { numbers };
            lines.push(format!("{arrow}{}{numbers}", shown(path)));
        } else if is_foreign && line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '|' || c == '.') {
            lines.push(without_number(line));
        } else {
            is_foreign = false;
            lines.push(line.to_owned());
        }
    }
    narrow(&mut lines);
    lines.join("\n") + "\n"
}

/// The line of an arrow: what is before the place, and the place.
fn split_place(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let place = text.strip_prefix("--> ").or_else(|| text.strip_prefix("::: "))?;
    Some((&line[..line.len() - place.len()], place))
}

/// `a.rs:7:9` as `a.rs` and `:7:9`.
fn split_numbers(place: &str) -> (&str, &str) {
    let path = place.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    place.split_at(path.len())
}

/// A path without what depends on the machine.
fn shown(path: &str) -> String {
    let after = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
    if path.starts_with(CASES) || path.starts_with('<') {
        path.to_owned()
    } else if let Some(rest) = after("/registry/src/") {
        // The folder of the registry, then that of the package.
        format!("$CARGO/{}", rest.split_once('/').map_or(rest, |(_, file)| file))
    } else if let (true, Some(rest)) = (path.contains("/rustlib/") || path.starts_with("/rustc/"), after("/library/")) {
        format!("$RUST/{rest}")
    } else if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("$WORKSPACE/{path}")
    }
}

/// A line of source without its number.
fn without_number(line: &str) -> String {
    let source = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    format!("{}{source}", " ".repeat(line.len() - source.len()))
}

/// Makes the margin as wide as the widest number that is left, and at least one column. rustc right-aligns the numbers, so that each
/// line of the margin begins with what can be removed.
fn narrow(lines: &mut [String]) {
    let Some(first) = lines.iter().position(|line| split_place(line).is_some()) else { return };
    let old = lines[first].len() - lines[first].trim_start().len();
    let digits = |line: &String| line.trim_start().chars().take_while(char::is_ascii_digit).count();
    let has_margin = |line: &String| line.starts_with(|c: char| c == ' ' || c.is_ascii_digit());
    let numbers = lines[first..].iter().filter(|line| has_margin(line) && is_numbered(line)).map(digits);
    let surplus = old.saturating_sub(numbers.max().unwrap_or(0).max(1));
    // Lines after a `note:` or `help:` of its own line are aligned with its text, not with the margin.
    let mut is_aligned_with_text = false;
    for line in &mut lines[first..] {
        if !has_margin(line) {
            is_aligned_with_text = line.starts_with("note:") || line.starts_with("help:");
            // Where lines of a long place are left out, the margin follows the dots.
            if let Some(rest) = line.strip_prefix("...") {
                *line = format!("...{}", without_spaces(rest, surplus));
            }
            continue;
        }
        is_aligned_with_text &= !is_margin(line);
        if !is_aligned_with_text {
            *line = without_spaces(line, surplus).to_owned();
        }
    }
}

/// A line without this many of the spaces that it begins with.
fn without_spaces(line: &str, count: usize) -> &str {
    &line[count.min(line.len() - line.trim_start_matches(' ').len())..]
}

/// Whether a line that begins with a space or a number begins with the margin, rather than with text.
fn is_margin(line: &str) -> bool {
    let text = line.trim_start();
    text == "|"
        || ["| ", "= "].iter().any(|mark| text.starts_with(mark))
        || split_place(line).is_some()
        || is_numbered(line)
}

/// Whether a line begins with a number and a margin.
fn is_numbered(line: &str) -> bool {
    let after = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < line.trim_start().len() && [" |", " ~", " +", " -"].iter().any(|margin| after.starts_with(margin))
}

#[test]
fn numbers_of_other_files_are_removed_and_the_margin_is_narrowed() {
    let rendered = "\
error[E0277]: a mistake
   --> ui/mma/rank.rs:7:9
    |
  7 |     mma(a, b, c)
    |     --- ^ here
    |
    = note: two
            lines
help: one thing
      but another
   --> src/lang/mma.rs:109:1
    |
109 | / pub fn mma(
110 | |     a: A,
...   |
114 | | )
    | |_^
...
note: the case again
   --> ui/mma/rank.rs:10:1
    |
 10 | fn main() {}
help: write
      this
    |
  7 |     mma(a, b, d)
    |               ~

";
    let stored = "\
error[E0277]: a mistake
  --> ui/mma/rank.rs:7:9
   |
 7 |     mma(a, b, c)
   |     --- ^ here
   |
   = note: two
           lines
help: one thing
      but another
  --> $WORKSPACE/src/lang/mma.rs
   |
   | / pub fn mma(
   | |     a: A,
...  |
   | | )
   | |_^
...
note: the case again
  --> ui/mma/rank.rs:10:1
   |
10 | fn main() {}
help: write
      this
   |
 7 |     mma(a, b, d)
   |               ~
";
    assert_eq!(normalized(rendered, "ui/mma/rank.rs"), stored);
    // From another case the same place is foreign, and no number is left.
    let other = normalized(rendered, "ui/mma/other.rs");
    assert!(other.contains(" --> ui/mma/rank.rs\n  |\n  |     mma(a, b, c)\n") && !other.contains("10"), "{other}");
}

#[test]
fn folders_of_this_machine_are_not_shown() {
    assert_eq!(shown("ui/mma/rank.rs"), "ui/mma/rank.rs");
    assert_eq!(shown("titan-core/src/lib.rs"), "$WORKSPACE/titan-core/src/lib.rs");
    assert_eq!(
        shown("/home/u/.cargo/registry/src/index.crates.io-0123/half-2.7.1/src/lib.rs"),
        "$CARGO/half-2.7.1/src/lib.rs"
    );
    assert_eq!(shown("/home/u/.rustup/lib/rustlib/src/rust/library/core/src/ops.rs"), "$RUST/core/src/ops.rs");
    assert_eq!(shown("/rustc/59807616/library/core/src/ops.rs"), "$RUST/core/src/ops.rs");
}
