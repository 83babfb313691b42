//! Copies by tensor maps with one coordinate moved by one, in either direction.

/// A change of a text of PTX, and the changed text.
pub(crate) struct Moved {
    pub(crate) what: String,
    pub(crate) text: String,
}

/// The text with each coordinate of each copy moved, one at a time; `copies` is what the lines of these copies contain. The register is
/// restored behind the copy.
pub(crate) fn moved_coordinates(text: &str, copies: &str) -> Vec<Moved> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(copies)) {
        let (_, coordinates) = line.split_once('{').expect("coordinates");
        let (coordinates, _) = coordinates.split_once('}').expect("their end");
        for register in coordinates.split(", ") {
            for [by, back] in [["add", "sub"], ["sub", "add"]] {
                let moved = |op: &str| format!("  {op}.s32 {register}, {register}, 1;");
                let text = [&lines[..at], &[&moved(by), line, &moved(back)], &lines[at + 1..]].concat().join("\n");
                all.push(Moved { what: format!("{by} 1: {register} in {line}"), text });
            }
        }
    }
    all
}
