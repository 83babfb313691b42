//! The text of attention, with the mask and the sizes of a test.

/// The keys that a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Every row of the tiles of keys, also beyond the last key, where they are zero.
    None,
    /// Every key.
    Tail,
    /// The keys up to its own; the last query sees the last key.
    Causal,
}

/// Attention with so many queries a program, heads of this size, and so many keys a step.
pub(crate) fn text([queries, head, keys]: [u32; 3], mask: Mask) -> String {
    let text = include_str!("attention.tir");
    let all = |text: String| text.replace("min %NK, %next", "min %NK, %NK");
    let text = match mask {
        Mask::None => {
            let lines = text.lines().filter(|line| !line.contains("%masked ="));
            all(lines.map(|line| line.replace("%masked", "%s") + "\n").collect())
        }
        Mask::Tail => all(text.replace("select %seen,", "select %inside,")),
        Mask::Causal => text.to_owned(),
    };
    [("QUERIES", queries), ("HEAD", head), ("KEYS", keys)]
        .iter()
        .fold(text, |text, (name, n)| text.replace(name, &n.to_string()))
}
