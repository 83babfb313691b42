//! One small kernel at every stage of the way to its code: docs/stages.md is made here.

use std::fmt::Write as _;
use std::path::Path;
use titan_core::driver::stages;
use titan_core::text::{parse_one, print};
use titan_core::verify::verify;
use titan_nv::Machine;

/// The text of a kernel without the places of a file.
fn bare(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(" @") {
        Some((before, place)) if place.split(':').all(|n| n.parse::<u32>().is_ok()) => before.to_owned(),
        Some(_) | None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The lines from the last one that begins a loop to the one that ends it.
fn last_loop(text: &str, begins: impl Fn(&str) -> bool, ends: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().rposition(|line| begins(line)).unwrap();
    let end = first + lines[first..].iter().position(|line| ends(line)).unwrap();
    lines[first..=end].join("\n")
}

#[test]
fn the_page_of_stages_is_current() {
    let tile = super::loops::gemm([32, 32, 32]);
    let kernel = verify(parse_one(&tile).unwrap()).unwrap();
    let machine = Machine::from_name("sm_80").unwrap();
    let all = stages(&kernel, machine, true, None).unwrap();
    let ptx = std::str::from_utf8(&all.code.payload).unwrap();
    // The loop ends where it branches back to its label.
    let label = ptx.lines().rev().find_map(|l| l.trim().strip_prefix("@")?.split_once("bra.uni ")).unwrap().1;
    let code = last_loop(
        ptx,
        |l| l == format!("{}:", label.trim_end_matches(';')),
        |l| l.ends_with(&format!("bra.uni {label}")),
    );
    let lanes = all.lanes.to_string();
    let lanes = last_loop(&lanes, |l| l.starts_with("  ") && l.contains(" = for "), |l| l == "  }");
    let shown = [
        ("Tile", "What the user wrote, as `#[titan::kernel]` reads it: tiles, loops, products.", bare(&print(&kernel))),
        (
            "Rings",
            "The target has asynchronous copies, so the `pipelined` loop has become a ring: slots in shared memory that copies fill \
             iterations ahead of the products. Every slot is a token: acquired, filled, waited for, read, released.",
            bare(&print(&all.rings)),
        ),
        (
            "Laid out",
            "Every tile has a layout, which says what thread holds which element, or an encoding, which says where its elements lie \
             in shared memory. A product is steps of `k`, with the fragments that the instruction takes.",
            bare(&print(&all.laid_out)),
        ),
        (
            "Barrier program",
            "Tokens are gone. The ring is a region of shared memory, its slots are numbers that loops carry, its waits are commit \
             groups and barriers between warps (between roles they are mbarriers with parities). `ttg.claim.*` says what that does \
             to the ring; it is checked and emits nothing ([lowering.md](lowering.md)).",
            bare(&print(&all.barriers)),
        ),
        ("Lanes", "What each thread does. The main loop:", lanes),
        ("PTX", "The main loop again:", code),
    ];
    let mut page = "# One kernel at every stage\n\n\
        <!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-nv --test emit stages`. -->\n\n\
        A matrix product with small tiles on its way to sm_80, as `titan emit FILE --stage ..` prints it. Each of the first four is \
        tile IR ([ir.md](ir.md)): a text that can be read, checked and lowered again.\n"
        .to_owned();
    for (name, about, text) in &shown {
        let _ = write!(page, "\n## {name}\n\n{about}\n\n```text\n{}\n```\n", text.trim_end());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stages.md");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/stages.md is not current: run with TITAN_BLESS=1"
    );
}
