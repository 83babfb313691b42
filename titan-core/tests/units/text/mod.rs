//! Tokens and suggestions of the text form. Parser and printer have tests of their own, `text_roundtrip` and `text_fuzz`.

mod lex;
mod suggest;
