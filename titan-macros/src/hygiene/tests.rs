//! Questions to rustc and its answers, and the names that follow from them.

use super::{Asked, Contexts, Names, Occurs, context_in, replaced};
use crate::entry;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

#[test]
fn contexts_are_read_from_what_rustc_prints_and_from_nothing_else() {
    assert_eq!(context_in("#5 bytes(10..11)"), Some(5));
    assert_eq!(context_in("#0 bytes(0..0)"), Some(0));
    for other in [
        "bytes(1..2)",
        "Span",
        "#x bytes(1..2)",
        "#5",
        "#5 bytes(10)",
        "#5 lines(1..2)",
        "src/main.rs:1:2: 1:3 (#0)",
        "",
    ] {
        assert_eq!(context_in(other), None, "{other}");
    }
}

fn ident(text: &str) -> Ident {
    Ident::new(text, Span::call_site())
}

#[test]
fn identifiers_of_equal_text_are_one_name_unless_their_contexts_differ() {
    let mut names = Names::by_text();
    let marks = ["s", "t", "s", "r#s"].map(|text| {
        let ident = if text == "r#s" { Ident::new_raw("s", Span::call_site()) } else { ident(text) };
        names.mark(&ident, Occurs::Used)
    });
    assert!(marks[0] == marks[2] && marks[0] == marks[3] && marks[0] != marks[1]);
    assert_ne!(names.mark_label(&ident("s"), Occurs::Bound), marks[0], "a label is not a variable");
    assert_eq!(names.numbers(), [], "nothing has to be remembered");

    let mut names = Names::known(vec![0, 1, 2, 2, 0]);
    let marks = ["s", "t", "s", "s", "s"].map(|text| names.mark(&ident(text), Occurs::Used));
    assert!(marks[0] == marks[4] && marks[2] == marks[3] && marks[0] != marks[2]);
    assert_eq!((marks[0].nth(), marks[1].nth(), marks[2].nth()), (0, 0, 1));
    assert_eq!(names.numbers(), [0, 1, 2, 2, 0]);
}

#[test]
fn only_names_that_are_declared_are_asked_for() {
    let (attr, item, krate) = (
        TokenStream::new(),
        quote!(
            fn f() {}
        ),
        quote!(::titan),
    );
    let whole = super::Item { kind: crate::chain::Kind::Kernel, krate: &krate, attr: &attr, item: &item };
    let mut names = Names::new(Contexts::Unknown);
    for text in ["f", "f", "x"] {
        names.mark(&ident(text), Occurs::Used);
    }
    names.mark(&ident("y"), Occurs::Bound);
    assert!(names.question(&whole).is_none(), "a function that is called twice, and variables with one identifier");
    names.mark(&ident("y"), Occurs::Used);
    let question = names.question(&whole).expect("two identifiers `y`").to_string();
    assert!(question.contains("[0 0 2 3 4]"), "the calls are of one function: {question}");
    assert_eq!(question.matches("[3 n2 4 n2]").count(), 1, "{question}");
    assert!(question.contains(":: titan :: __private :: step"), "{question}");
}

#[test]
fn answers_are_read_and_what_is_left_is_asked_again() {
    let name = |n| (n, format_ident!("n0"));
    let mut asked = Asked { numbers: vec![0, 1, 2, 3, 4, 1], open: vec![vec![name(0), name(1), name(3), name(4)]] };
    assert!(asked.add([quote!(yes $n0 $n0)].into_iter()));
    assert_eq!(asked.numbers, [0, 0, 2, 3, 4, 0]);
    assert_eq!(asked.open.len(), 1);
    assert_eq!(asked.open[0].iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4]);
    assert!(asked.add([quote!(yes)].into_iter()));
    assert_eq!(asked.numbers, [0, 0, 2, 3, 3, 0]);
    assert!(asked.open.is_empty());
}

#[test]
fn answers_to_another_question_are_refused() {
    let name = |n| (n, format_ident!("n0"));
    let asked = || Asked { numbers: vec![0, 1, 2], open: vec![vec![name(0), name(1), name(2)]] };
    for answers in
        [vec![], vec![quote!(yes)], vec![quote!(yes yes yes)], vec![quote!(yes no)], vec![quote!(yes yes); 2]]
    {
        assert!(!asked().add(answers.clone().into_iter()), "{answers:?}");
    }
    assert_eq!(replaced(quote!(yes $n0 yes)), Some(vec![true, false, true]));
    assert_eq!(replaced(quote!($)), None);
}

/// The expansion of a kernel with this body.
fn expanded(body: TokenStream) -> String {
    let item = quote!(fn k(#[shape(N)] y: &mut Tensor<i32, 1>, n: i32) { #body });
    entry::kernel(quote!(grid(N)), item).to_string()
}

#[test]
fn rustc_is_told_where_names_are_declared_that_are_declared_twice() {
    let once = expanded(quote! { let p = program_id(0); y.set([p], n); });
    assert!(!once.contains("names"), "{once}");
    let twice = expanded(quote! {
        let p = program_id(0);
        let q = p + n;
        'a: for n in 0..n { if n == q { break 'a; } }
        'a: loop { break 'a; }
        y.set([p], n);
    });
    // `y`, `n`, `p`, `q` and the other `n` have the numbers 1 to 5, and 0 is none.
    let want = [
        "let n0 = :: titan :: lang :: names :: Variable :: < 0 > ;",
        "let n0 = :: titan :: lang :: names :: Variable :: < 2 > ;",
        ":: titan :: lang :: names :: is :: < 2 > (n0) ;",
        "{ let n0 = :: titan :: lang :: names :: Variable :: < 5 > ;",
        "let _ : :: titan :: lang :: names :: Variable < 0 > = 'a : {",
        "{ :: titan :: lang :: names :: is :: < 5 > (n0) ; { break 'a :: titan :: lang :: names :: target :: < 0 , _ > () ; }",
        "break 'a :: titan :: lang :: names :: target :: < 1 , _ > () ;",
    ];
    for line in want {
        assert!(twice.contains(line), "no `{line}` in {twice}");
    }
    assert!(!twice.contains("n1"), "one text is declared twice: {twice}");
    // In the order of the text: `p + n`, `0..n`, `n == q`, `n` at the end.
    let uses: Vec<&str> = twice.split("names :: is :: < ").skip(1).filter_map(|t| t.split(' ').next()).collect();
    assert_eq!(uses, ["2", "2", "5", "2"]);
}
