//! docs/amd-emulator.md has the table of what the emulator does not have.

use std::path::Path;
use titan_amd::emu::Absent;

/// The lines between which the table stands.
const BEGIN: &str = "<!-- Made from titan-amd/src/emu/absent by `TITAN_BLESS=1 cargo xtask test -p titan-amd --test emu absent`. -->\n\n";
const END: &str = "<!-- The end of what is made. -->\n";

fn table() -> String {
    let mut out = "| feature | manual | used by |\n|---|---|---|\n".to_owned();
    for feature in Absent::ALL.iter().copied() {
        out += &format!("| {} | {} | {} |\n", feature.name(), feature.section(), feature.used_by());
    }
    out + "\n"
}

#[test]
fn the_page_has_every_feature() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/amd-emulator.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the line before the table");
    let (found, after) = rest.split_once(END).expect("the page has the line behind the table");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert!(found == table(), "docs/amd-emulator.md is not current: run this test with TITAN_BLESS=1 to rewrite it");
}
