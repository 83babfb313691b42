//! The code blocks of the book as doc tests: each is compiled and run, and those marked `compile_fail` must be rejected. Run by
//! `cargo xtask book`, and in the full depth of the tests.
//!
//! Deliberately absent: anything else. What a block needs is in it, in hidden lines where the reader does not need it.

/// The pages, in the order of `book/src/SUMMARY.md`; a rule of `xtask/tests/tidy` compares the two lists.
macro_rules! pages {
    ($($name:ident $file:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../src/", $file))]
            mod $name {}
        )*
    };
}

pages! {
    introduction "introduction.md";
    install "install.md";
    cuda "porting/cuda.md";
    cuda_table "porting/cuda-table.md";
    triton "porting/triton.md";
    triton_table "porting/triton-table.md";
    vector_add "tutorials/vector-add.md";
    softmax "tutorials/softmax.md";
    matmul "tutorials/matmul.md";
    dropout "tutorials/dropout.md";
    layer_norm "tutorials/layer-norm.md";
    attention "tutorials/attention.md";
    persistent "tutorials/persistent.md";
    rings "tutorials/rings.md";
    host "host.md";
    recipes "recipes.md";
    tiles "tiles.md";
    tuning "tuning.md";
    interop "interop.md";
    testing "testing.md";
    debugging "debugging.md";
    errors "errors.md";
    packaging "packaging.md";
    amd "amd.md";
    how_it_works "how-it-works.md";
    comparison "comparison.md";
}
