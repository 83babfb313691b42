//! Reports of traps and printed values.

use titan_core::ir::{Elem, Loc, TileShape, Ty};
use titan_core::launch::report::{Site, SiteKind, Told, read};

#[test]
fn a_report_is_read_as_it_was_written() {
    let tile = Ty::Tile(Elem::I8, TileShape::new(&[2, 2]).unwrap());
    let sites = [
        Site { loc: Loc { line: 3, column: 5 }, kind: SiteKind::Trap("no".into()) },
        Site { loc: Loc::default(), kind: SiteKind::Print("{{{} {}}}".into(), vec![tile, Ty::Scalar(Elem::F64)]) },
    ];
    let one = 1.5f64.to_bits();
    let record = [2, 7, 0, 0, 1, 2, u32::MAX, 4, one as u32, (one >> 32) as u32];
    let mut report = vec![1, 4, 5, 6, 20, 10, 0, 0];
    report.extend(record);
    let told = read(&report, &sites);
    assert_eq!(told.trap, Some((Loc { line: 3, column: 5 }, "no".into(), [4, 5, 6])));
    assert_eq!(told.lines, ["{[[1, 2], [-1, 4]] 1.5}"]);
    assert_eq!(told.lost, 10);
}

#[test]
fn a_report_of_nonsense_is_nothing() {
    assert_eq!(read(&[], &[]), Told::default());
    assert_eq!(read(&[9, 0, 0, 0, 0, 0, 0, 0, 3, 3], &[]), Told::default());
    let told = read(
        &[0, 0, 0, 0, u32::MAX, u32::MAX, 0, 0, 1],
        &[Site { loc: Loc::default(), kind: SiteKind::Print(String::new(), vec![]) }],
    );
    assert!(told.lines.is_empty());
}
