//! Tokens of the text form, as the parser sees them.

use titan_core::diag::Diagnostic;
use titan_core::ir::{Builder, Const, Elem, GridSpec, HostExpr, HostOp, Kernel, OpKind, Symbol, TileShape, Ty};
use titan_core::text::{TextPos, parse_one, print};

/// A kernel with this grid and this body, to which a `return` is added.
fn read(grid: &str, body: &str) -> Result<Kernel, Vec<Diagnostic<TextPos>>> {
    parse_one(&format!("kernel @k(%a: in tensor<f32>[K]) grid({grid}) {{\n{body}\nreturn\n}}\n"))
}

fn kernel(grid: &str, body: &str) -> Kernel {
    read(grid, body).unwrap_or_else(|e| panic!("grid({grid}) {body}: {e:?}"))
}

/// The errors of a body, each with its line and column; the first line of the body is 2.
fn errors(body: &str) -> Vec<(u32, u32, String)> {
    let errors = read("1", body).expect_err(body);
    errors.into_iter().map(|e| (e.site.line, e.site.column, e.title)).collect()
}

#[test]
fn a_percent_sign_is_a_value_only_before_a_name() {
    let k = kernel("K % 4", "");
    let symbol = k.sig.symbols.iter().position(|s| s == "K").map(Symbol::new).expect("a shape name");
    let rest = HostExpr::binary(HostOp::Rem, HostExpr::Symbol(symbol), HostExpr::Const(4));
    assert_eq!(k.sig.grid, GridSpec::Extents(vec![rest]));
    // Errors quote the whole token.
    assert_eq!(
        errors("%x = add %acc.2, %7\n%y = add %\"a b\".3, %x"),
        [
            (2, 10, "`%acc.2` is not defined above".to_owned()),
            (2, 18, "`%7` is not defined above".to_owned()),
            (3, 10, "`%\"a b\".3` is not defined above".to_owned()),
        ]
    );
    let k =
        kernel("1", "%acc = const 1 : i32\n%acc.2 = const 2 : i32\n%7 = add %acc, %acc.2\n%\"a b\".3 = sub %7, %acc.2");
    let args = |at: usize| k.ops[at].args.clone();
    let results = |at: usize| k.ops[at].results[0];
    assert_eq!((args(2), args(3)), (vec![results(0), results(1)], vec![results(2), results(1)]));
}

#[test]
fn numbers_keep_their_letters_and_exponents() {
    let k = kernel("1-5", "%x = const 1e-5 : f16\n%t = splat %x : tile<128x64xf16>");
    assert_eq!(k.ops[0].kind, OpKind::Const(Const::Float(Elem::F16, 1e-5)));
    let shape = TileShape::new(&[128, 64]).expect("a shape");
    assert_eq!(k.ty(k.ops[1].results[0]), Ty::Tile(Elem::F16, shape));
    let one_less_five = HostExpr::Binary(HostOp::Sub, Box::new(HostExpr::Const(1)), Box::new(HostExpr::Const(5)));
    assert_eq!(k.sig.grid, GridSpec::Extents(vec![one_less_five]));
    // The sign after the digits of a hexadecimal number is a token of its own.
    assert_eq!(errors("%x = const nan(0x1e-5) : f32"), [(2, 20, "expected `)`, found `-`".to_owned())]);
}

#[test]
fn strings_come_back_as_they_were() {
    for s in ["", "a", "{}\n\t\\\"\u{0}\u{7f}é; %x", "\u{1}\u{2}u{3}", "\\u{41}"] {
        let mut b = Builder::new("k", Vec::new());
        let on = b.constant(Const::Int(Elem::Bool, 1));
        b.op(OpKind::Assert(s.to_owned()), &[on]).expect("a condition");
        let asserts = b.finish();
        let text = print(&asserts);
        let line = text.lines().find(|l| l.contains("assert")).expect("the operation");
        assert!(line.ends_with('"'), "a string is on one line: {text}");
        assert_eq!(parse_one(&text).as_ref(), Ok(&asserts), "{text}");
    }
    let escape = |column: u32| (3, column, "an escape that strings do not have".to_owned());
    let refused = |text: &str| errors(&format!("%on = const true : bool\nassert %on, \"{text}\""));
    // Column 13 is the quotation mark.
    assert_eq!(refused("ab\\q"), [escape(14 + 2)]);
    assert_eq!(refused("\\u{110000}"), [escape(14)]);
}
