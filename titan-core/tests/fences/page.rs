//! `docs/fences.md`: what the pass makes of programs, shown on those that are tested.

use std::fmt::Write;
use std::path::Path;
use titan_core::ir::Kernel;
use titan_core::pipeline::fence::{Mode, Options, fence};
use titan_core::text::{parse, print};
use titan_core::verify::verify;

/// A kernel of the filetests of the pass.
fn kernel(file: &str, name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/fence").join(file);
    let text = std::fs::read_to_string(path).expect("a text");
    let kernels = parse(&text).expect("it parses");
    kernels.into_iter().find(|k| k.sig.name == name).unwrap_or_else(|| panic!("{file} has no @{name}"))
}

/// The lines of the body, without constants and the ends of the kernel.
fn body(kernel: &Kernel) -> Vec<String> {
    let text = print(kernel);
    let from = text.lines().position(|l| l.ends_with(") {") || l.ends_with("() {")).map_or(0, |i| i + 1);
    let skip = |l: &&str| l.contains(" = const ") || l.trim() == "return";
    let lines = text.lines().skip(from).filter(|l| !skip(l)).map(|l| l.strip_prefix("    ").unwrap_or(l).to_owned());
    let mut lines: Vec<String> = lines.collect();
    lines.retain(|l| l != "}" || !l.is_empty());
    lines.pop();
    lines
}

/// Before and after, as a difference: what was added begins with `+`.
fn shown(kernel: &Kernel, options: &Options) -> String {
    let fenced = fence(kernel, options);
    let (before, after) = (body(&kernel.canonical()), body(&fenced.kernel));
    let mut old = before.iter().peekable();
    let mut out = String::new();
    for line in &after {
        let same = old.peek().is_some_and(|o| *o == line);
        if same {
            old.next();
        }
        let _ = writeln!(out, "{} {line}", if same { ' ' } else { '+' });
    }
    assert_eq!(old.next(), None, "something was taken away:\n{out}");
    out
}

fn example(file: &str, name: &str, options: &Options) -> String {
    let kernel = kernel(file, name);
    let codes = |k: Kernel| verify(k).err().map(|e| e[0].code.number());
    let (before, after) = (codes(kernel.clone()), codes(fence(&kernel, options).kernel));
    assert_eq!(after, None, "@{name} is not accepted after the pass");
    let said = before.map_or("accepted as it is".to_owned(), |code| {
        format!("rejected before with [{code}](errors/{code}.md), accepted after")
    });
    format!(
        "`@{name}` of [{file}](../titan-core/filetests/fence/{file}), {said}:\n\n```diff\n{}```\n",
        shown(&kernel, options)
    )
}

#[test]
fn the_example_of_the_seed_gets_its_one_fence() {
    for mode in [Mode::Regions, Mode::Tilelang] {
        let text = shown(&kernel("seed.tir", "main"), &Options { mode, ..Options::default() });
        let added: Vec<&str> = text.lines().filter(|l| l.starts_with('+')).collect();
        assert_eq!(added, ["+ ttg.fence.proxy {from = generic, to = async, scope = cta, space = shared}"]);
        let lines: Vec<&str> = text.lines().map(|l| l[2..].trim()).collect();
        let at = lines.iter().position(|l| l.starts_with("ttg.fence.proxy")).expect("a fence");
        assert!(
            lines[at - 1].starts_with("ttg.region.write") && lines[at + 1].starts_with("ttg.nv.wgmma.mma_async"),
            "{text}"
        );
    }
}

#[test]
fn the_page_is_current() {
    let usual = Options::default();
    let tilelang = Options { mode: Mode::Tilelang, handshake: false, ..Options::default() };
    let template = include_str!("page.txt");
    let mut page = String::from(
        "<!-- Made from titan-core/tests/fences/page.txt by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test fences`. -->\n\n",
    );
    for line in template.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["@example", file, name] => page.push_str(&example(file, name, &usual)),
            ["@tilelang", file, name] => page.push_str(&example(file, name, &tilelang)),
            _ => {
                page.push_str(line);
                page.push('\n');
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fences.md");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/fences.md is not current: TITAN_BLESS=1 rewrites it"
    );
}
