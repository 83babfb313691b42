//! Fuzz tests: the macro never panics, for any tokens, and its output always parses as items.
//!
//! The inputs are valid kernels with random mutations of tokens, and random sequences of tokens that occur in kernels. The random
//! numbers have fixed seeds, and a failure prints its seed. `TITAN_FUZZ=100000` runs more cases than the default.

use crate::{dispatch, embed, entry};
use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Attribute and item of kernels that use the whole language.
const KERNELS: &[(&str, &str)] = &[
    (
        "instances(T in [f16, bf16], (BM, BN, BK) in [(16, 32, 8), (8, 8, 8)]), grid(cdiv(M, BM), cdiv(N, BN))",
        "pub fn gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
            #[shape(M, K)] a: &Tensor<T, 2>, #[shape(N, K)] b: &Tensor<T, 2>, #[shape(M, N)] c: &mut Tensor<T, 2>,
        ) {
            let (m, n) = (program_id(0), program_id(1));
            let mut acc = Tile::<f32, BM, BN>::zeros();
            for k in pipelined(0..cdiv(K, BK)) {
                acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
            }
            c.store_tile([m, n], acc.cast::<T>());
        }",
    ),
    (
        "instances(BN in [16]), grid(M), require(N <= BN)",
        "fn softmax<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
            let at = [program_id(0), 0];
            let v = x.load_tile_or::<1, BN>(at, f32::NEG_INFINITY);
            let e = (v - v.reduce_max::<1>().col()).exp();
            y.store_tile(at, e / e.reduce_sum::<1>().col());
        }",
    ),
    (
        "instances((BM, BN) in [(8, 16)])",
        "pub fn scaled<const BM: i32, const BN: i32>(
            #[shape(M, N)] a: &Tensor<bf16, 2>, #[shape(N)] bias: Option<&Tensor<bf16, 1>>, #[shape(M, N)] c: &mut Tensor<bf16, 2>, s: f32,
        ) {
            for out in c.tiles::<BM, BN>() {
                let [m, n] = out.index();
                let mut acc = a.load_tile::<BM, BN>([m, n]).cast::<f32>() * s;
                if let Some(b) = bias { acc += b.load_tile::<BN>([n]).cast::<f32>().row(); }
                if m > n { out.skip(); continue; }
                out.store(acc.cast());
            }
        }",
    ),
    (
        "grid(cdiv(TOK, 4), H)",
        "fn rope(#[shape(TOK, H, 16)] q: &mut Tensor<f16, 3>, #[shape(TOK)] pos: &Tensor<i32, 1>, #[shape(_, 8)] cos: &Tensor<f32, 2>) {
            let (t, h) = (program_id(0), program_id(1));
            let c = cos.gather_rows::<4, { 16 / 2 }>(pos.load_tile::<4>([t]), 0);
            let mut q = q.index_mut::<1>(h);
            let (lo, hi) = q.load_tile::<4, 16>([t, 0]).cast::<f32>().split::<4, 8>();
            q.store_tile([t, 0], (lo * c).interleave::<4, 16>(hi * c).cast());
        }",
    ),
    (
        "",
        "fn histogram(x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>, seen: &mut Tensor<bool, 1>) {
            let p = program_id(0);
            let v = x.load_tile::<64>([p]).clamp(0, 255);
            y.atomic_add([v], Tile::<i32, 64>::ones());
            seen.store_tile([p], v.map(|e| if e % 2 == 0 { true } else { false }) & !(v < 7));
        }",
    ),
    (
        "grid(N), crate = ::titan",
        "fn newton(#[shape(N)] x: &Tensor<f64, 1>, #[shape(N)] y: &mut Tensor<f64, 1>, eps: f64) {
            let p = program_id(0);
            let (a, mut r, mut n) = (x.get([p]), 1.0, 0i64);
            'steps: loop {
                let next = 0.5 * (r + a / r);
                if (next - r).abs() < eps || n >= 50 { break 'steps; }
                r = next;
                n += 1;
            }
            let scale = unsafe { if a > 0.0 { -1.0 } else { 1e-3 } };
            tassert!(r == r, \"not a number\");
            tprint!(\"{} {}\", p, r);
            y.set([p], r * scale + n as f64);
        }",
    ),
    (
        "instances(CAUSAL in [true, false])",
        "fn rows<const CAUSAL: bool>(#[shape(R, C)] x: &Tensor<f32, 2>, #[shape(R)] y: &mut Tensor<f32, 1>, off: &Tensor<i32, 1>) {
            static_assert!(8 * 8 == 64);
            let r = program_id(0);
            let mut c = 0;
            let mut best = f32::NEG_INFINITY;
            while c < C { let v = x.get([r, c]); best = best.max(v); c += 1; }
            if CAUSAL { best = best.min(0.0); } else if r > 3 { return; }
            let [i, j] = unflatten(r, [4, 8]);
            y.set([r], best + (i ^ j | 3 << 2) as f32 - x.slice::<1>(0..i).segment(off, j).dim(0) as f32);
        }",
    ),
    (
        "instances((BM, BN, D) in [(16, 8, 2)]), roles(load: 1 warp, math: 2 warpgroups)",
        "fn product<const BM: i32, const BN: i32, const D: i32>(
            #[shape(M, K)] a: &Tensor<f16, 2>, #[shape(N, K)] b: &Tensor<f16, 2>, #[shape(M, N)] c: &mut Tensor<f16, 2>, n: i32,
        ) {
            let (ring, staging) = (Ring::<(Smem<f16, BM, 16>, Smem<f16, BN, 16>), D>::new(), Staging::<Smem<f16, BM, BN>, 1>::new());
            let work = c.work::<BM, BN>();
            match role() {
                Role::Load => for [m, n] in work.indices() {
                    for (t, slot) in ring.produce(0..cdiv(K, 16)) { slot.copy((a.tile([m, t]), b.tile([n, t]))).commit(); }
                },
                Role::Math => for out in work.tiles() {
                    let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
                    for (_, ready) in ring.consume(0..cdiv(K, 16)) { acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t())); }
                    out.store_from(staging.acquire().write(acc.finish().cast())).wait();
                },
            }
        }",
    ),
    (
        "roles(fill: 1 warp, read: 1 warp), grid(1), require(N > 0)",
        "fn parts(#[shape(N, _)] x: &Tensor<f16, 2>, ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 2>, n: i32) {
            let ring = Ring::<Smem<f16, 16, 16>, 2>::new();
            match role() {
                Role::Fill => {
                    ring.acquire().zero().commit();
                    for (t, slot) in ring.produce(0..n) {
                        if t > 2 {
                            slot.copy_or_poison(t != 3, x.tile_at([t, 0])).commit();
                        } else if t > 1 {
                            slot.copy_if(n > t, x.rows(ix.load_tile::<16>([t]), 0)).commit();
                        } else {
                            slot.poison().commit();
                        }
                    }
                }
                Role::Read => {
                    let mut sum = Tile::<f32, 16, 16>::zeros();
                    if let Some(first) = ring.ready().wait_filled() { first.release(); }
                    for (_, ready) in ring.consume(0..n) {
                        if let Some(stage) = ready.wait_filled() {
                            let [p, q] = stage.split::<2>();
                            let next = mma_async(p.get(), q.get().t(), sum);
                            sum = mma_async_reg(q.get().load(), p.get(), next.wait()).wait();
                            Stage::join([p, q]).release();
                        } else { sum += 1.0; }
                    }
                    y.store_tile([0, 0], sum);
                }
            }
        }",
    ),
    ("grid(1)", "fn calls(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) { y.set([0], util::double::<8>(x.get([WIDTH]))); }"),
];

const DEVICES: &[&str] = &[
    "pub fn gelu<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> { 0.5 * x * (1.0 + (x * 0.707_106_77).erf()) }",
    "fn pick<T: Float, const N: i32>(x: Tile<T, N>, (y): [i32; 2], t: &Tensor<T, 1>) -> (T, i32) {
        for i in 0..=y[0] { if i > 3 { return (x.reduce::<0>(T::ZERO, |a, b| a + b), i); } }
        (half(x).reduce_sum::<0>(), -y[1])
    }",
];

const CONSTANTS: &[&str] =
    &["pub const D: i32 = 2 * (3 + 4) % 5;", "const EPS: f32 = 1e-6;", "const ON: bool = !(1 < 2) || D == 8;"];

const STATES: &[&str] = &[
    "kernel { (::titan) (grid(1)) (fn k(y: &mut Tensor<f32, 1>) { y.set([0], gelu(D as f32)); }) } [] [\"gelu\" \"D\"]
        [device { fn gelu(x: f32) -> f32 { x * half() } } \"half\" [device { fn half() -> f32 { 0.5 } }]] [constant { const D: i32 = 8; }]",
    "device { (::titan) (::titan) (fn twice(x: f32) -> f32 { once(x) }) } [(a::b)] [\"once\" \"a::b\"] [device { fn once(x: f32) -> f32 { x } }]",
    "kernel { (::titan) () (fn k<const N: i32>() {}) } [] [\"f\"] [broken]",
];

const TEXTS: &[&str] = &["\"kernel @k(%y: mut tensor<f32>[N]) grid(N) { return }\"", "\"\"", "b\"x\" 1"];

const WORDS: &[&str] = &[
    "fn",
    "const",
    "let",
    "mut",
    "if",
    "else",
    "for",
    "in",
    "while",
    "loop",
    "match",
    "break",
    "continue",
    "return",
    "unsafe",
    "async",
    "move",
    "as",
    "struct",
    "Some",
    "Tile",
    "Tensor",
    "Option",
    "f32",
    "f16",
    "i32",
    "i4",
    "bool",
    "usize",
    "T",
    "N",
    "BM",
    "x",
    "y",
    "acc",
    "program_id",
    "cdiv",
    "pipelined",
    "mma",
    "select",
    "iota",
    "unflatten",
    "unflatten_grouped",
    "tiles_grouped",
    "unchecked",
    "targets",
    "zeros",
    "load_tile",
    "store_tile",
    "tiles",
    "store",
    "index",
    "role",
    "Role",
    "Ring",
    "Smem",
    "Acc",
    "Staging",
    "Stage",
    "acquire",
    "ready",
    "copy",
    "commit",
    "wait",
    "wait_filled",
    "release",
    "produce",
    "consume",
    "get",
    "join",
    "mma_async",
    "finish",
    "work",
    "tile",
    "roles",
    "warp",
    "cast",
    "reshape",
    "split",
    "row",
    "t",
    "map",
    "shape",
    "instances",
    "grid",
    "require",
    "crate",
    "self",
    "true",
    "device",
    "r#fn",
    "größe",
    "_",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "8",
    "255",
    "-1",
    "2147483648",
    "9223372036854775808",
    "340282366920938463463374607431768211456",
    "0xFF",
    "1.5",
    "1e400",
    "1e-400",
    "0i32",
    "300u8",
    "1f16",
    "2.0f32",
    "1usize",
    "'c'",
    "\"text {} {\"",
    "b\"bytes\"",
    "\"²\"",
    "1x",
    "0b102",
];

/// `dispatch!`, after the path of the facade.
const DISPATCHES: &[&str] = &[
    "::titan; a::gemm::<x.elem(), 64, _, { b < 3 }>(&x, None, &mut y)",
    "::titan; gemm::reference[instances[0]](&x, &mut y)",
    "::titan; match x.elem() { T in [f16, titan::bf16] => f::<T>(&x)? }",
];

/// A small generator: xorshift.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n.max(1)).unwrap_or(1);
        usize::try_from(self.next() % n).unwrap_or(0)
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

fn random_token(rng: &mut Rng, depth: usize) -> TokenTree {
    match rng.below(if depth < 4 { 10 } else { 8 }) {
        0..=2 => TokenTree::Ident(word(rng.of(WORDS))),
        3..=4 => number(rng.of(NUMBERS)),
        5..=7 => {
            let marks: Vec<char> = "=<>!~+-*/%^&|@.,;:#$?'".chars().collect();
            let spacing = if rng.below(2) == 0 { Spacing::Alone } else { Spacing::Joint };
            TokenTree::Punct(Punct::new(marks[rng.below(marks.len())], spacing))
        }
        _ => {
            let n = rng.below(6);
            let inner = (0..n).map(|_| random_token(rng, depth + 1)).collect();
            TokenTree::Group(Group::new(delimiter(rng), inner))
        }
    }
}

fn word(text: &str) -> Ident {
    text.strip_prefix("r#")
        .map_or_else(|| Ident::new(text, Span::call_site()), |raw| Ident::new_raw(raw, Span::call_site()))
}

fn number(text: &str) -> TokenTree {
    let parsed = text.parse::<Literal>().map(TokenTree::Literal);
    parsed.unwrap_or_else(|_| TokenTree::Ident(Ident::new("x", Span::call_site())))
}

fn delimiter(rng: &mut Rng) -> Delimiter {
    [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None][rng.below(4)]
}

/// Changes one place, somewhere in the tree.
fn mutate(stream: TokenStream, rng: &mut Rng) -> TokenStream {
    let mut list: Vec<TokenTree> = stream.into_iter().collect();
    if list.is_empty() {
        return random_token(rng, 0).into();
    }
    let groups: Vec<usize> = (0..list.len()).filter(|i| matches!(&list[*i], TokenTree::Group(_))).collect();
    if !groups.is_empty() && rng.below(4) != 0 {
        let at = groups[rng.below(groups.len())];
        if let TokenTree::Group(g) = &list[at] {
            let changed = Group::new(g.delimiter(), mutate(g.stream(), rng));
            list[at] = TokenTree::Group(changed);
        }
        return list.into_iter().collect();
    }
    let (at, other) = (rng.below(list.len()), rng.below(list.len()));
    match rng.below(9) {
        0 | 1 => drop(list.remove(at)),
        2 => list.insert(at, list[other].clone()),
        3 => list.swap(at, other),
        4 | 5 => list[at] = random_token(rng, 2),
        6 => list.insert(at, random_token(rng, 2)),
        7 => list[at] = TokenTree::Group(Group::new(delimiter(rng), list[at].clone().into())),
        _ => match list.remove(at) {
            TokenTree::Group(g) => drop(list.splice(at..at, g.stream())),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => list.truncate(at.max(1)),
        },
    }
    list.into_iter().collect()
}

fn soup(rng: &mut Rng) -> TokenStream {
    let n = rng.below(24);
    (0..n).map(|_| random_token(rng, 0)).collect()
}

fn cases() -> u64 {
    crate::env::fuzz_cases().unwrap_or_else(|| test_depth::cases(6000, 250))
}

/// Runs an entry point; a panic, or an expansion that is not items, fails with the seed and the input.
fn survives(what: &str, seed: u64, input: &str, expand: impl FnOnce() -> TokenStream) {
    match catch_unwind(AssertUnwindSafe(expand)) {
        Ok(out) => {
            let parsed = syn::parse2::<syn::File>(out.clone());
            assert!(parsed.is_ok(), "{what}, seed {seed}: not items: {:?}\n{input}\n→ {out}", parsed.err());
        }
        Err(_) => assert!(what.is_empty(), "{what}, seed {seed}: a panic\n{input}"),
    }
}

#[test]
fn good_kernels_expand() {
    for (attr, item) in KERNELS {
        let out = entry::kernel(tokens(attr), tokens(item)).to_string();
        assert!(!out.contains("compile_error"), "{item}\n→ {out}");
    }
    for item in DEVICES.iter().take(1) {
        assert!(!entry::device(&TokenStream::new(), tokens(item)).to_string().contains("compile_error"), "{item}");
    }
}

#[test]
fn mutated_kernels_never_panic() {
    for seed in 0..cases() {
        let mut rng = Rng::new(seed);
        let (attr, item) = KERNELS[rng.below(KERNELS.len())];
        let (mut attr, mut item) = (tokens(attr), tokens(item));
        for _ in 0..=rng.below(3) {
            if rng.below(5) == 0 { attr = mutate(attr, &mut rng) } else { item = mutate(item, &mut rng) }
        }
        survives("kernel", seed, &format!("#[kernel({attr})] {item}"), || entry::kernel(attr.clone(), item.clone()));
    }
}

#[test]
fn mutated_items_never_panic() {
    for seed in 0..cases() / 2 {
        let mut rng = Rng::new(seed);
        let many = rng.below(3);
        let change = |list: &[&str], rng: &mut Rng| {
            let good = tokens(rng.of(list));
            (0..=many).fold(good, |t, _| mutate(t, rng))
        };
        let device = change(DEVICES, &mut rng);
        survives("device", seed, &device.to_string(), || entry::device(&TokenStream::new(), device.clone()));
        let constant = change(CONSTANTS, &mut rng);
        survives("constant", seed, &constant.to_string(), || {
            // An item that is not a constant is kept, together with the error.
            let out = entry::constant(&TokenStream::new(), constant.clone());
            if syn::parse2::<syn::ItemConst>(constant.clone()).is_ok() { out } else { TokenStream::new() }
        });
        let state = change(STATES, &mut rng);
        survives("step", seed, &state.to_string(), || drop_tokens(entry::step(state.clone())));
        let chosen = change(DISPATCHES, &mut rng);
        survives("dispatch", seed, &chosen.to_string(), || drop_tokens(dispatch::dispatch(chosen.clone())));
        let text = change(TEXTS, &mut rng);
        survives("compile", seed, &text.to_string(), || drop_tokens(embed::compile(text.clone())));
    }
}

/// Checks only that there is no panic: the tokens are nested in others.
fn drop_tokens(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

#[test]
fn token_soup_never_panics() {
    for seed in 0..cases() {
        let mut rng = Rng::new(seed);
        let (attr, item) = (soup(&mut rng), soup(&mut rng));
        let body = Group::new(Delimiter::Brace, item.clone());
        let function = tokens("fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32)")
            .into_iter()
            .chain([TokenTree::Group(body)]);
        let function: TokenStream = function.collect();
        survives("kernel", seed, &format!("#[kernel({attr})] {item}"), || entry::kernel(attr.clone(), item.clone()));
        survives("body", seed, &function.to_string(), || entry::kernel(TokenStream::new(), function.clone()));
        survives("device", seed, &function.to_string(), || entry::device(&attr, function.clone()));
        survives("constant", seed, &item.to_string(), || drop_tokens(entry::constant(&attr, item.clone())));
        survives("step", seed, &item.to_string(), || drop_tokens(entry::step(item.clone())));
        survives("dispatch", seed, &item.to_string(), || drop_tokens(dispatch::dispatch(item.clone())));
        survives("compile", seed, &item.to_string(), || drop_tokens(embed::compile(item.clone())));
    }
}
