//! The theorem of TMA correctness, by the figures of its document.

use titan_core::analysis::fttc::fttc;

#[test]
fn the_documents_figures() {
    // Figure 5: 8 elements in boxes of 4, every third.
    let e = fttc(1, Some(8), 4, 3).unwrap_err();
    assert_eq!((e.dim, e.x, e.position, e.element), (1, 1, 1, 4));
    assert_eq!(
        e.to_string(),
        "along dimension 1, of 8 elements in boxes of 4, one in every 3 is copied: the copy that starts at 1 has element \
         4 at position 1 of its tile, where the box has ended and zero is wanted"
    );
    // Three cases that are possible: a tensor no larger than the box, an element stride above the box, and one that divides the box.
    assert_eq!([fttc(1, Some(4), 4, 3), fttc(1, Some(8), 4, 5), fttc(1, Some(8), 4, 2)], [Ok(()); 3]);
    assert_eq!(fttc(0, None, 4, 3).unwrap_err().size, 5);
}
