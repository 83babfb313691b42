//! Shows the lines in which two texts differ.

/// The lines of a longest common subsequence begin with a space, those that only `old` or `new` has with `-` or `+`. Of common lines,
/// only neighbours of others are shown.
pub(crate) fn difference(old: &str, new: &str) -> String {
    let lines = aligned(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let is_shown = |n: usize| lines[n.saturating_sub(1)..(n + 2).min(lines.len())].iter().any(|(mark, _)| *mark != ' ');
    let mut text = String::new();
    for (n, (mark, line)) in lines.iter().enumerate() {
        if is_shown(n) {
            text += &format!("{mark} {line}\n");
        } else if n > 0 && is_shown(n - 1) {
            text += "  ...\n";
        }
    }
    text
}

fn aligned<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    // common[i][j]: the length of a longest common subsequence of old[i..] and new[j..].
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

#[test]
fn only_what_differs_and_its_neighbours_are_shown() {
    assert_eq!(difference("a\nb\nc\nd\ne\n", "a\nb\nx\ny\nd\ne\n"), "  b\n- c\n+ x\n+ y\n  d\n  ...\n");
    assert_eq!(difference("a\nb\nc\nd\ne\n", "x\nb\nc\nd\n"), "- a\n+ x\n  b\n  ...\n  d\n- e\n");
    assert_eq!(difference("a\na\n", "a\n"), "  a\n- a\n");
    assert_eq!(difference("", "a\n"), "+ a\n");
    assert_eq!(difference("a\nb\n", "a\nb\n"), "");
}
