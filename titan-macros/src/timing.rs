//! Prints the time of each part of an expansion; asserts only that the kernels compile:
//! `cargo test -p titan-gpu-macros --profile dev timing -- --nocapture` measures the macro as cargo builds it by default.

use crate::{cache, compile, ctxt::Ctxt, entry, hygiene::Names, items::Items, parse};
use proc_macro2::TokenStream;
use std::time::{Duration, Instant};

/// The examples that use no companions.
pub(crate) const KERNELS: [(&str, &str); 4] = [
    ("gemm", include_str!("../../examples/gemm.rs")),
    ("flash_attention", include_str!("../../examples/flash_attention.rs")),
    ("conv2d", include_str!("../../examples/conv2d.rs")),
    ("softmax", include_str!("../../examples/softmax.rs")),
];

/// The attribute and the function of the first kernel of a file.
pub(crate) fn first_kernel(source: &str) -> (TokenStream, TokenStream) {
    let file = syn::parse_file(source).unwrap();
    let kernel = |item: syn::Item| match item {
        syn::Item::Fn(mut f) => {
            let at = f.attrs.iter().position(|a| a.path().segments.last().is_some_and(|s| s.ident == "kernel"))?;
            let attr = match f.attrs.remove(at).meta {
                syn::Meta::List(list) => list.tokens,
                _ => TokenStream::new(),
            };
            Some((attr, quote::quote!(#f)))
        }
        _ => None,
    };
    file.items.into_iter().find_map(kernel).unwrap()
}

/// The median of several runs.
fn median(mut f: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
#[expect(clippy::print_stderr, reason = "the times are what it is for")]
fn times_of_an_expansion() {
    let dir = std::env::temp_dir().join(format!("titan-timing-{}", std::process::id()));
    eprintln!(
        "{:<18} {:>9} {:>12} {:>12} {:>12} {:>12}",
        "kernel", "instances", "whole", "parse", "per instance", "cache hit"
    );
    for (name, source) in KERNELS {
        let (attr, item) = first_kernel(source);
        let whole = median(|| drop(entry::kernel(attr.clone(), item.clone())));
        let parsed = median(|| {
            let cx = Ctxt::new();
            drop(parse::kernel(&cx, Names::by_text(), attr.clone(), item.clone()));
            cx.finish();
        });
        let cx = Ctxt::new();
        let mut kernel = parse::kernel(&cx, Names::by_text(), attr, item).unwrap();
        compile::resolve(&cx, &mut kernel);
        let compiled = compile::compile(&cx, &kernel, &Items::default());
        assert!(cx.finish().ours.is_empty() && compiled.iter().all(|c| c.kernel.is_some()), "{name} compiles");
        let all = median(|| {
            let cx = Ctxt::new();
            compile::compile(&cx, &kernel, &Items::default());
            cx.finish();
        });
        let text = compiled[0].kernel.as_ref().map(|k| titan_core::text::print(k)).unwrap();
        let kept = cache::Cache::open(&dir).unwrap();
        cache::get_or_make(Some(&kept), &text, || text.as_bytes().to_vec());
        let hit = median(|| drop(cache::get_or_make(Some(&kept), &text, Vec::new)));
        let n = u32::try_from(compiled.len()).unwrap();
        eprintln!("{name:<18} {n:>9} {whole:>12.2?} {parsed:>12.2?} {:>12.2?} {hit:>12.2?}", all / n);
    }
    let _ = std::fs::remove_dir_all(&dir);
}
