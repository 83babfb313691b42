//! Names of values in messages.

use titan_core::text::parse_one;

#[test]
fn numbers_of_values_in_messages_become_names_or_lines() {
    let text =
        "kernel @k(%n: i32) grid(1) {\n    %1 = program_id<0> : i32\n    %rows = program_id<0> : i32\n    return\n}\n";
    let kernel = parse_one(text).expect("it is well-formed");
    let line = kernel.ops.iter().map(|op| op.loc.line).find(|line| *line > 0);
    let unnamed =
        line.map_or("a value without a name".to_owned(), |line| format!("the value of line {line} of the kernel"));
    let cases = [
        ("`%1` is not made yet", format!("{unnamed} is not made yet")),
        ("%1, %2 and `%0`", format!("{unnamed}, `rows` and `n`")),
        ("5 % of %9 and %", "5 % of %9 and %".to_owned()),
        ("%n stays, `%2`", "%n stays, `rows`".to_owned()),
        ("", String::new()),
    ];
    for (message, want) in cases {
        assert_eq!(kernel.without_numbers(message), want, "{message}");
    }
}
