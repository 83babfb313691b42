//! Elements that no program writes, in every way that is found, and kernels that write all of them or could do so.

use titan_core::analysis::cover::unwritten;
use titan_core::analysis::partition::Partition;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Loc;
use titan_core::text::parse_one;

const HEAD: &str = "%m = program_id<0>\n%zero = const 0 : i32\n%one = const 1 : i32\n%four = const 4 : i32\n\
    %w = const 64 : i32\n%z = const 0.0 : f32\n%t = splat %z : tile<64xf32>\n%r = splat %z : tile<1x64xf32>\n";

/// The errors for a kernel.
fn errors(signature: &str, body: &str) -> Vec<Diagnostic<Loc>> {
    let text = format!("kernel @k{signature} {{\n{HEAD}{body}\nreturn\n}}\n");
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let partition = Partition::of(&kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let found = unwritten(&kernel, &partition);
    assert!(found.iter().all(|d| d.code == Code::Unwritten));
    found
}

/// The title and the help of the one error for a kernel.
fn one(signature: &str, body: &str) -> (String, Vec<String>) {
    match &errors(signature, body)[..] {
        [error] => (error.title.clone(), error.help.clone()),
        other => panic!("{signature}: {other:?}"),
    }
}

fn accepts(signature: &str, body: &str) {
    let found: Vec<String> = errors(signature, body).into_iter().map(|d| d.title).collect();
    assert_eq!(found, Vec::<String>::new(), "{signature}\n{body}");
}

#[test]
fn numbers_of_tiles_are_not_numbers_of_elements() {
    let vector = "(%c: mut tensor<f32>[N]) grid(cdiv(N, 64))";
    let (title, help) = one(vector, "%at = mul %m, %w\nstore_tile %c[%at], %t");
    assert_eq!(
        title,
        "with N = 65 no program writes `c` at index 64 along axis 0: this store writes 64 of every 4096 indices"
    );
    assert_eq!(
        help,
        [
            "coordinates of `store_tile` are numbers of tiles, not of elements: write `m` instead of `m * 64`",
            "or use `store_at`, all of whose coordinates are numbers of elements",
            "or `grid(unchecked cdiv(N, 64))`, if the rest is left unwritten on purpose"
        ]
    );
    accepts("(%c: mut tensor<f32>[N]) grid unchecked(cdiv(N, 64))", "%at = mul %m, %w\nstore_tile %c[%at], %t");
    // Another factor is no number of elements.
    let (_, help) = one(vector, "%at = mul %m, %four\nstore_tile %c[%at], %t");
    assert_eq!(
        help[0],
        "coordinates of `store_tile` are numbers of tiles: advance the one along axis 0 by 1 from tile to tile"
    );
    // As the help says.
    accepts(vector, "store_tile %c[%m], %t");
    accepts(vector, "%at = mul %m, %w\nstore_at %c[%at], %t");
    // Both coordinates of a matrix.
    let matrix = "(%c: mut tensor<f32>[M, N]) grid(cdiv(M, 32), cdiv(N, 16))";
    let body = "%n = program_id<1>\n%x = const 32 : i32\n%y = const 16 : i32\n%tile = splat %z : tile<32x16xf32>\n\
        %i = mul %x, %m\n%j = mul %n, %y\nstore_tile %c[%i, %j], %tile";
    let (title, help) = one(matrix, body);
    assert!(title.starts_with("with M = 33 no program writes `c` at index 32 along axis 0"), "{title}");
    assert!(
        help[0].ends_with("write `m` instead of `m * 32`") && help[1].ends_with("`n` instead of `n * 16`"),
        "{help:?}"
    );
}

#[test]
fn parts_at_a_larger_distance_leave_gaps() {
    let signature = "(%c: mut tensor<f32>[N]) grid(cdiv(N, 128))";
    let at = "%d = const 128 : i32\n%at = mul %m, %d\n";
    let (title, help) = one(signature, &format!("{at}store_at %c[%at], %t"));
    assert!(title.ends_with("at index 64 along axis 0: this store writes 64 of every 128 indices"), "{title}");
    assert_eq!(
        help[0],
        "advance the coordinate along axis 0 by 64, the extent of what is stored, from one store to the next"
    );
    let two = "%next = add %at, %w\nstore_at %c[%next], %t";
    accepts(signature, &format!("{at}store_at %c[%at], %t\n{two}"));
    let far = "%far = const 96 : i32\n%next = add %at, %far\nset %c[%next], %z";
    let (title, _) = one(signature, &format!("{at}store_at %c[%at], %t\n{far}"));
    assert!(title.ends_with("64 of every 128 indices, and no other store writes the rest"), "{title}");
    // The second store may not be executed, but it may be.
    let some = format!("{at}store_at %c[%at], %t\n%b = gt %n, %zero\nif %b {{\n{two}\nyield\n}} else {{\nyield\n}}");
    accepts("(%c: mut tensor<f32>[N], %n: i32) grid(cdiv(N, 128))", &some);
    // A loop writes the rest, but a shorter one does not.
    let each = |ends: &str| {
        format!(
            "{at}{ends}for %i = %zero to %end step %one {{\n%j = mul %i, %four\n%x = add %at, %j\n\
            %s = splat %z : tile<4xf32>\nstore_at %c[%x], %s\ncontinue\n}}"
        )
    };
    accepts(signature, &each("%end = const 32 : i32\n"));
    let (title, _) = one(signature, &each("%end = const 32 : i32\n").replace("%i, %four", "%i, %one"));
    assert!(title.ends_with("at index 35 along axis 0: this store writes at most 35 of every 128 indices"), "{title}");
    let (title, _) = one(signature, &each("%end = const 31 : i32\n"));
    assert!(title.contains("at index 124") && title.contains("at most 124 of every 128"), "{title}");
    // An argument determines the end, but there are at most four iterations.
    let by = "(%c: mut tensor<f32>[N], %n: i32) grid(cdiv(N, 128))";
    let few = each("%k = min %n, %four\n%end = max %k, %zero\n%e = const 32 : i32\n").replace("%i, %four", "%i, %e");
    assert!(one(by, &few).0.ends_with("this store writes at most 100 of every 128 indices"));
}

#[test]
fn every_source_and_argument_is_seen() {
    let body = |size: i64| {
        format!(
            "%h = dim<0> %c\n%i, %j = unflatten %m, %h, %four\n%d = const {size} : i32\n%at = mul %j, %d\n\
            store_at %c[%i, %at], %r"
        )
    };
    accepts("(%c: mut tensor<f32>[H, N]) grid(H * 4)", &body(64));
    let (title, _) = one("(%c: mut tensor<f32>[H, N]) grid(H * 4)", &body(128));
    assert!(title.ends_with("64 of every 128 indices"), "{title}");
    // An argument may fill in between, unless it is multiplied.
    let signature = "(%c: mut tensor<f32>[N], %n: i32) grid(cdiv(N, 128))";
    let at = "%d = const 128 : i32\n%x = mul %m, %d\n%k = min %n, %d\n%l = max %k, %zero\n";
    accepts(signature, &format!("{at}%at = add %x, %l\nstore_at %c[%at], %t"));
    accepts(signature, &format!("{at}%f = mul %m, %w\n%y = mul %l, %d\n%at = add %f, %y\nstore_at %c[%at], %t"));
    let (title, _) = one(signature, &format!("{at}%y = mul %l, %d\n%at = add %x, %y\nstore_at %c[%at], %t"));
    assert!(title.ends_with("64 of every 128 indices"), "{title}");
}

#[test]
fn the_first_elements_are_written() {
    let signature = "(%c: mut tensor<f32>[N]) grid(cdiv(N, 64))";
    let (title, help) = one(signature, "%at = add %m, %one\nstore_tile %c[%at], %t");
    assert_eq!(title, "with N = 1 no program writes `c` at index 0 along axis 0: the store begins at 64");
    assert_eq!(help[0], "the first tile has number 0: subtract 1 from the coordinate along axis 0");
    let (title, help) = one(signature, "%x = mul %m, %w\n%at = add %x, %four\nstore_at %c[%at], %t");
    assert_eq!(title, "with N = 1 no program writes `c` at index 0 along axis 0: the store begins at 4");
    assert_eq!(help[0], "subtract 4 from the coordinate along axis 0");
    // A launch rejects a grid without programs.
    let fewer = "(%c: mut tensor<f32>[N]) grid(cdiv(N, 64) - 1)";
    assert!(one(fewer, "%at = add %m, %one\nstore_tile %c[%at], %t").0.starts_with("with N = 65"));
    let wrong = "(%c: mut tensor<f32>[N]) grid(cdiv(N, 64)) require(N == 0)";
    accepts(wrong, "%at = add %m, %one\nstore_tile %c[%at], %t");
    // The loop, or the store that begins first, is what begins too late.
    let looped = "%n = dim<0> %c\n%k = const 63 : i32\n%u = add %n, %k\n%tiles = div %u, %w\n\
        for %i = %one to %tiles step %one {\nstore_tile %c[%i], %t\ncontinue\n}";
    let (title, help) = one("(%c: mut tensor<f32>[N])", looped);
    assert!(title.ends_with("the store begins at 64"), "{title}");
    assert_eq!(help[0], "let the first store along axis 0 begin at 0");
    let two = "%at = add %m, %four\nstore_tile %c[%at], %t\n%to = add %m, %one\nstore_tile %c[%to], %t";
    let (_, help) = one("(%c: mut tensor<f32>[N]) grid(1)", two);
    assert_eq!(help[0], "let the first store along axis 0 begin at 0");
    // Elements before the first one do not exist.
    accepts(signature, "%x = mul %m, %w\n%at = sub %x, %four\nstore_at %c[%at], %t");
}

#[test]
fn an_axis_that_no_program_divides_is_written_to_its_end() {
    let row = "store_tile %c[%m, %zero], %r";
    let (title, help) = one("(%c: mut tensor<f32>[M, N]) grid(M)", row);
    assert_eq!(title, "with N = 65 no program writes `c` at index 64 along axis 1: the store ends there");
    assert_eq!(
        help,
        [
            "`require(N <= 64)`, if the kernel is used only with such extents",
            "or loop over the tiles along axis 1: `for i in 0..cdiv(N, 64)`, with `i` as the coordinate",
            "or `grid(unchecked M)`, if the rest is left unwritten on purpose"
        ]
    );
    // As the help says.
    accepts("(%c: mut tensor<f32>[M, N]) grid(M) require(N <= 64)", row);
    let looped = "%n = dim<1> %c\n%k = const 63 : i32\n%u = add %n, %k\n%tiles = div %u, %w\n\
        for %i = %zero to %tiles step %one {\nstore_tile %c[%m, %i], %r\ncontinue\n}";
    accepts("(%c: mut tensor<f32>[M, N]) grid(M)", looped);
    accepts("(%c: mut tensor<f32>[M, N]) grid unchecked(M)", row);
    // Other ways to say it.
    accepts("(%c: mut tensor<f32>[M, N]) grid(M) require(dim(%c, 1) <= 64)", row);
    accepts("(%c: mut tensor<f32>[M, 64]) grid(M)", row);
    accepts("(%c: mut tensor<f32>[M, N * 2]) grid(M) require(N <= 32)", row);
    accepts("(%x: in tensor<f32>[N, 64], %c: mut tensor<f32>[M, dim(%x, 1)]) grid(M)", row);
    let like = "(%x: in tensor<f32>[M, N], %c: mut tensor<f32>[dim(%x, 0), dim(%x, 1)]) grid(M)";
    assert!(one(like, row).0.starts_with("with N = 65 no program"));
    assert!(one("(%c: mut tensor<f32>[M, N * 2]) grid(M) require(N <= 33)", row).0.starts_with("with N = 33"));
    assert!(one("(%c: mut tensor<f32>[M, N], %n: i32) grid(M) require(N <= %n)", row).0.starts_with("with N = 65"));
    assert!(one("(%c: mut tensor<f32>[M, %n], %n: u8) grid(M)", row).0.starts_with("with n = 65"));
    accepts("(%c: mut tensor<f32>[M, %n], %n: u8) grid(M) require(%n < 65)", row);
    // Nothing is declared about an extent without a name. Gaps are reported nevertheless.
    accepts("(%c: mut tensor<f32>[M, _]) grid(M)", row);
    let (title, help) = one("(%c: mut tensor<f32>[M, _]) grid(M)", "store_tile %c[%m, %one], %r");
    assert_eq!(title, "with c.dim(1) = 1 no program writes `c` at index 0 along axis 1: the store begins at 64");
    assert_eq!(help[0], "the first tile has number 0: subtract 1 from the coordinate along axis 1");
    // An extent that no argument determines.
    let (title, help) = one("(%c: mut tensor<f32>[M, 65]) grid(M)", row);
    assert_eq!(title, "no program writes `c` at index 64 along axis 1: the store ends there");
    assert_eq!(help[0], "loop over the tiles along axis 1: `for i in 0..cdiv(65, 64)`, with `i` as the coordinate");
    // Several stores together.
    let (title, _) = one("(%c: mut tensor<f32>[M, N]) grid(M)", &format!("{row}\nstore_tile %c[%m, %one], %r"));
    assert_eq!(title, "with N = 129 no program writes `c` at index 128 along axis 1: its stores end there");
    accepts("(%c: mut tensor<f32>[M, N]) grid(M) require(N <= 128)", &format!("{row}\nstore_tile %c[%m, %one], %r"));
    let apart = format!("{row}\n%two = const 2 : i32\nstore_tile %c[%m, %two], %r");
    let (title, help) = one("(%c: mut tensor<f32>[M, N]) grid(M)", &apart);
    assert_eq!(title, "with N = 65 no program writes `c` at index 64 along axis 1: the next store begins at 128");
    assert_eq!(
        help[0],
        "coordinates of `store_tile` are numbers of tiles: advance the one along axis 1 by 1 from tile to tile"
    );
    // The last extent of a tensor with two elements in a byte is even.
    let packed = "(%q: in tensor<u4>[M, N], %c: mut tensor<f32>[M, N]) grid(M)";
    assert!(one(packed, row).0.starts_with("with N = 66 no program"), "{:?}", one(packed, row));
    accepts(&format!("{packed} require(N <= 65)"), row);
    // The help is in the syntax of the attribute.
    let (_, help) = one("(%x: in tensor<f32>[K, N], %c: mut tensor<f32>[M, N]) grid(max(M, K))", row);
    assert!(help.iter().any(|h| h.contains("`grid(unchecked M.max(K))`")), "{help:?}");
}

#[test]
fn what_is_not_known_is_accepted() {
    let matrix = "(%c: mut tensor<f32>[M, N]) grid(M)";
    // A slice and a segment say themselves which elements are meant.
    let slice = "%row = index<0> %c, %m : tensor<f32, 1>\n%s = slice<0> %row, %zero, %w : tensor<f32, 1>\nstore_tile %s[%zero], %t";
    accepts(matrix, slice);
    let unsliced = slice.replace("%s = slice<0> %row, %zero, %w : tensor<f32, 1>\n", "").replace("%s[", "%row[");
    assert!(one(matrix, &unsliced).0.contains("index 64 along axis 1"));
    let segment = "%s = segment %c, %off, %m\nstore_tile %s[%zero, %zero], %r";
    accepts("(%off: in tensor<i32>[E], %c: mut tensor<f32>[M, 64]) grid(E - 1)", segment);
    // Outputs without parts.
    accepts(matrix, "%u = shared %c : tensor<f32, 2>\nstore_tile %u[%m, %zero], %r");
    accepts(matrix, "atomic_add_tile %c[%m, %zero], %r");
    // An assertion rejects arguments too.
    let row = "store_tile %c[%m, %zero], %r";
    accepts(matrix, &format!("%n = dim<1> %c\n%few = le %n, %w\nassert %few, \"few\"\n{row}"));
    // The coordinate is read from memory.
    let read = "%i = get %x[%m]\nstore_tile %c[%m, %i], %r";
    accepts("(%x: in tensor<i32>[M], %c: mut tensor<f32>[M, N]) grid(M)", read);
    // Programs of a persistent grid.
    let dealt = |end: &str, by: i64| {
        format!(
            "%n = dim<0> %c\n%by = const {by} : i32\n%half = div %n, %by\nfor %j = %zero to {end} step %one distributed {{\n\
            %i = mul %j, %by\nset %c[%i], %z\ncontinue\n}}"
        )
    };
    accepts("(%c: mut tensor<f32>[N]) grid persistent", &dealt("%n", 1));
    let (title, help) = one("(%c: mut tensor<f32>[N]) grid persistent", &dealt("%half", 2));
    assert!(title.ends_with("this store writes 1 of every 2 indices"), "{title}");
    assert_eq!(help[0], "advance the coordinate along axis 0 by 1 from one store to the next");
    assert_eq!(help[1], "or `grid(unchecked)`, if the rest is left unwritten on purpose");
    accepts("(%c: mut tensor<f32>[N]) grid unchecked persistent", &dealt("%half", 2));
    // Half of the iterations trap.
    accepts("(%c: mut tensor<f32>[N]) grid persistent", &dealt("%n", 2));
}

#[test]
fn arguments_that_a_program_rejects_are_no_example() {
    // Every element of `c` that exists is written, since a longer `c` makes a program trap.
    let row = "store_tile %c[%zero], %t";
    let few = "(%x: in tensor<f32>[64], %c: mut tensor<f32>[N]) grid(1)";
    let each = "%n = dim<0> %c\nfor %i = %zero to %n step %one {\n%v = get %x[%i]\ncontinue\n}\n";
    accepts(few, &format!("{each}{row}"));
    assert!(one(few, &format!("%v = get %x[%four]\n{row}")).0.starts_with("with N = 65 "));
    let many = "(%x: in tensor<f32>[N], %c: mut tensor<f32>[N]) grid(1)";
    assert!(one(many, &format!("{each}{row}")).0.starts_with("with N = 65 "));
    // Nothing is known about a coordinate that is read from memory, or that may be negative.
    let read = "%j = get %i[%zero]\n%v = get %x[%j]\n";
    accepts("(%i: in tensor<i32>[1], %x: in tensor<f32>[64], %c: mut tensor<f32>[N]) grid(1)", &format!("{read}{row}"));
    let before = "%n = dim<0> %c\n%j = sub %n, %one\n%v = get %x[%j]\n";
    accepts(few, &format!("{before}{row}"));
    // A `set` outside of the output is rejected as well.
    let set = "%two = const 2 : i32\n%at = mul %m, %two\nset %c[%at], %z";
    accepts("(%c: mut tensor<f32>[N]) grid(N)", set);
    assert!(
        one("(%c: mut tensor<f32>[N]) grid(cdiv(N, 2))", set).0.ends_with("this store writes 1 of every 2 indices")
    );
    // The segments of the programs exist.
    let body = "%s = segment %c, %off, %m\nstore_tile %s[%zero, %zero], %r";
    let signature = |grid: &str| format!("(%off: in tensor<i32>[E], %c: mut tensor<f32>[M, N]) grid({grid})");
    assert!(one(&signature("E - 1"), body).0.starts_with("with N = 65 "));
    accepts(&signature("E"), body);
}

#[test]
fn extents_of_unflatten_are_the_numbers_of_parts() {
    let programs = "(%c: mut tensor<f32>[M, N]) grid(M * cdiv(N, 64))";
    let unchecked = "(%c: mut tensor<f32>[M, N]) grid unchecked(M * cdiv(N, 64))";
    let extents = "%h = dim<0> %c\n%n = dim<1> %c\n%up = const 63 : i32\n%n1 = add %n, %up\n%k = div %n1, %w\n";
    let body = |how: &str| format!("{extents}%i, %j = {how}\nstore_tile %c[%i, %j], %r");
    for method in ["unflatten", "unflatten_grouped"] {
        let op = if method == "unflatten" { "unflatten" } else { "unflatten_grouped<4>" };
        accepts(programs, &body(&format!("{op} %m, %h, %k")));
        accepts(unchecked, &body(&format!("{op} %m, %k, %h")));
        // A constant number of columns.
        let (title, help) = one(programs, &body(&format!("{op} %m, %h, %four")));
        assert!(title.contains(" no program writes `c` at index "), "{title}");
        assert_eq!(help[0], format!("the extents of `{method}` are the numbers of parts of `c`: `[M, cdiv(N, 64)]`"));
        // Extents in the other order, and elements in the place of parts.
        for wrong in ["%k, %h", "%h, %n"] {
            let (title, _) = one(programs, &body(&format!("{op} %m, {wrong}")));
            assert!(title.contains(" no program writes `c` at index "), "{title}");
        }
        // More columns than there are: the last parts have numbers that no program has.
        let (title, _) = one(programs, &body(&format!("{op} %m, %h, %n")));
        assert!(title.contains(&format!(": `{method}` gives it the number ")), "{title}");
    }
}
