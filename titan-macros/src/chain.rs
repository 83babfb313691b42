//! Companion macros, by which a kernel obtains the tokens of other items.
//!
//! An attribute macro sees only its own tokens. So `#[titan::device] fn f` and `#[titan::constant] const C` also make a
//! `macro_rules!` of the same name that contains the item, and, nested, the items that it uses in turn. A kernel that calls
//! `f` expands to `f! { step, state .. }`; the companion appends its item and calls [`step`](crate::step) back, which asks for
//! the next one. `use` imports the function together with its companion, so modules, globs and other crates need nothing special.
//!
//! # The state
//!
//! ```text
//! kernel | device | constant  { (crate path) (attribute) (item) (names) }  [ (path) .. still to ask ]  [ "key" .. in order ]  [ answer ] ..
//! answer:  device { item } (names) ("key" [ answer ])*   |   constant { item } ("key" [ answer ])*   |   broken   |   missing
//! ```

use crate::consts::NotConst;
use crate::ctxt::{Ctxt, compile_error};
use crate::hygiene::{self, Names};
use crate::items::{Constant, DeviceFn, Items};
use crate::names::Companion;
use crate::nearby;
use crate::parse;
use crate::resolve;
use crate::told;
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Elem;

/// The kind of item that is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernel,
    Device,
    Constant,
}

impl Kind {
    pub(crate) fn ident(self) -> Ident {
        match self {
            Kind::Kernel => format_ident!("kernel"),
            Kind::Device => format_ident!("device"),
            Kind::Constant => format_ident!("constant"),
        }
    }

    /// Reads what [`Kind::ident`] made.
    pub(crate) fn read(t: &TokenTree) -> Option<Kind> {
        match t {
            TokenTree::Ident(i) if i == "kernel" => Some(Kind::Kernel),
            TokenTree::Ident(i) if i == "device" => Some(Kind::Device),
            TokenTree::Ident(i) if i == "constant" => Some(Kind::Constant),
            _ => None,
        }
    }
}

/// An expansion that waits for companions.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    pub(crate) krate: TokenStream,
    pub(crate) attr: TokenStream,
    pub(crate) item: TokenStream,
    /// The numbers of the item's names, see [`Names::numbers`].
    pub(crate) names: Vec<u32>,
    pending: Vec<TokenStream>,
    pub(crate) keys: Vec<String>,
    pub(crate) answers: Vec<TokenStream>,
}

impl State {
    pub(crate) fn new(
        kind: Kind,
        krate: TokenStream,
        attr: TokenStream,
        item: TokenStream,
        names: &Names,
        companions: &[Companion],
    ) -> Self {
        State {
            kind,
            krate,
            attr,
            item,
            names: names.numbers(),
            pending: companions.iter().map(|c| c.path.clone()).collect(),
            keys: companions.iter().map(|c| c.key.clone()).collect(),
            answers: Vec::new(),
        }
    }

    /// Reads the state that [`State::ask`] wrote; `None` if the tokens are not such a state.
    pub(crate) fn read(tokens: TokenStream) -> Option<State> {
        let mut it = tokens.into_iter();
        let kind = Kind::read(&it.next()?)?;
        let mut payload = group(it.next()?)?.into_iter().filter_map(group);
        let (krate, attr, item) = (payload.next()?, payload.next()?, payload.next()?);
        let names = hygiene::read_literals(payload.next()?)?;
        let pending = group(it.next()?)?.into_iter().filter_map(group).collect();
        let keys = group(it.next()?)?.into_iter().filter_map(|t| string(&t)).collect();
        Some(State { kind, krate, attr, item, names, pending, keys, answers: it.filter_map(group).collect() })
    }

    /// The paths for which no companion answered.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &String> {
        let of = |answer: &TokenStream| answer.clone().into_iter().next().is_some_and(|t| t.to_string() == "missing");
        self.keys.iter().zip(&self.answers).filter(move |(_, answer)| of(answer)).map(|(key, _)| key)
    }

    /// The call of the next companion, or `None` when all have answered.
    pub(crate) fn ask(&mut self) -> Option<TokenStream> {
        if self.pending.is_empty() {
            return None;
        }
        let path = self.pending.remove(0);
        let (kind, names) = (self.kind.ident(), hygiene::literals(&self.names));
        let State { krate, attr, item, pending, answers, .. } = self;
        let keys = self.keys.iter().map(|k| Literal::string(k));
        let state = quote! {
            {
                #krate::__private::step,
                #kind { (#krate) (#attr) (#item) (#(#names)*) } [ #((#pending))* ] [ #(#keys)* ] #([ #answers ])*
            }
        };
        Some(self.call(&path, &state))
    }

    /// Calls a companion. If there is none, a kernel calls `missing!` with the same state instead.
    ///
    /// The outermost block calls `missing` by another name, the next gives that name to the companion, the innermost calls it.
    /// A type of the companion's name makes the `use` right if there is no such name at all. The call has a block of its own,
    /// because a block with an unresolved call in it might still get any name from it, and rustc would wait for that.
    ///
    /// The expansion of a device function or a constant must be at the top level of the user's module, so this does not work for it; see
    /// [`State::call_by_name`].
    fn call(&self, path: &TokenStream, state: &TokenStream) -> TokenStream {
        let krate = &self.krate;
        let Some(TokenTree::Ident(name)) = path.clone().into_iter().last() else { return quote!(#path! #state) };
        if self.kind != Kind::Kernel {
            return self.call_by_name(path, &name, state);
        }
        let asked = Ident::new("asked", Span::call_site().located_at(name.span()));
        let lone = path.clone().into_iter().count() == 1;
        let itself = lone.then(|| quote!(enum #name {}));
        quote! {
            #[allow(dead_code, non_camel_case_types, unused_imports, non_local_definitions)]
            const _: () = {
                use #krate::__private::missing as #asked;
                const _: () = {
                    #itself
                    use #path as #asked;
                    const _: () = { #asked! #state };
                };
            };
        }
    }
}

impl State {
    /// Calls the companion of an item that a device function or a constant uses. If there is none, rustc reports that it cannot find the macro, which
    /// no attribute can prevent. An item of the same file that seems to be not marked is called by a name that says so.
    fn call_by_name(&self, path: &TokenStream, name: &Ident, state: &TokenStream) -> TokenStream {
        let (text, own) = (unraw(name), self.name());
        own.iter().for_each(|own| told::waits(own));
        let lone = path.clone().into_iter().count() == 1;
        let mark = if lone { nearby::missing_mark(&text, name.span()) } else { None };
        let Some((mark, own)) = mark.zip(own) else { return quote!(#path! #state) };
        let said = Ident::new(&format!("{text}_in_{own}_is_not_marked_titan_{mark}"), name.span());
        quote! {
            #[doc(hidden)]
            #[allow(unused_imports, non_upper_case_globals)]
            use #path as #said;
            #said! #state
        }
    }

    /// The name of a device function or a constant.
    fn name(&self) -> Option<String> {
        let mut tokens = self.item.clone().into_iter();
        let keyword = if self.kind == Kind::Constant { "const" } else { "fn" };
        tokens.by_ref().find(|t| matches!(t, TokenTree::Ident(i) if i == keyword))?;
        match tokens.next() {
            Some(TokenTree::Ident(name)) => Some(unraw(&name)),
            _ => None,
        }
    }
}

pub(crate) fn group(t: TokenTree) -> Option<TokenStream> {
    match t {
        TokenTree::Group(g) => Some(g.stream()),
        _ => None,
    }
}

fn string(t: &TokenTree) -> Option<String> {
    syn::parse_str::<syn::LitStr>(&t.to_string()).ok().map(|s| s.value())
}

/// The items that companions answered with; `None` if one of them is broken (it has reported its errors itself).
pub(crate) fn items(keys: &[String], answers: &[TokenStream]) -> Option<Items> {
    let mut items = Items::default();
    for (key, answer) in keys.iter().zip(answers) {
        let mut it = answer.clone().into_iter();
        let kind = it.next()?;
        match kind.to_string().as_str() {
            "device" => {
                let (item, names) = (group(it.next()?)?, hygiene::read_literals(group(it.next()?)?)?);
                let device = device(item, names, it)?;
                items.devices.insert(key.clone(), device);
            }
            "constant" => {
                let constant = constant(group(it.next()?)?, it)?;
                items.constants.insert(key.clone(), constant);
            }
            _ => return None,
        }
    }
    Some(items)
}

/// The nested answers of an item.
fn nested(it: impl Iterator<Item = TokenTree>) -> Option<Items> {
    let (mut keys, mut answers) = (Vec::new(), Vec::new());
    for t in it {
        match t {
            TokenTree::Group(g) => answers.push(g.stream()),
            other => keys.push(string(&other)?),
        }
    }
    items(&keys, &answers)
}

fn device(item: TokenStream, names: Vec<u32>, rest: impl Iterator<Item = TokenTree>) -> Option<DeviceFn> {
    // Errors of the item were reported at the item.
    let cx = Ctxt::new();
    let parsed = parse::device(&cx, Names::known(names), item);
    let func = parsed.map(|(_, _, mut func)| {
        resolve::resolve(&cx, Kind::Device, &mut func, &[]);
        func
    });
    let broken = cx.has_errors();
    cx.finish();
    let items = nested(rest)?;
    func.filter(|_| !broken).map(|func| DeviceFn { func, items })
}

fn constant(item: TokenStream, rest: impl Iterator<Item = TokenTree>) -> Option<Constant> {
    constant_of(&syn::parse2(item).ok()?, nested(rest)?)
}

/// A constant, and the items that it uses.
fn constant_of(item: &syn::ItemConst, items: Items) -> Option<Constant> {
    let (elem, is_table) = (constant_elem(item)?, is_table(item));
    let cx = Ctxt::new();
    let mut expr = parse::constant_expr(&cx, &item.expr);
    resolve::resolve_constant(&cx, &mut expr);
    let broken = cx.has_errors();
    cx.finish();
    (!broken).then_some(Constant { elem, is_table, expr, items })
}

/// Whether a constant is an array.
fn is_table(item: &syn::ItemConst) -> bool {
    matches!(parse::ungrouped_type(&item.ty), syn::Type::Array(_))
}

/// The element type of a constant, or of the numbers in it.
pub(crate) fn constant_elem(item: &syn::ItemConst) -> Option<Elem> {
    let ty = match parse::ungrouped_type(&item.ty) {
        syn::Type::Array(array) => parse::ungrouped_type(&array.elem),
        other => other,
    };
    match ty {
        syn::Type::Path(p) => Elem::from_name(&p.path.segments.last()?.ident.to_string()),
        _ => None,
    }
    .filter(|e| e.is_arith_int() || matches!(e, Elem::F32 | Elem::F64 | Elem::Bool))
}

/// The companion macro of an item.
pub(crate) struct Published<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) is_pub: bool,
    pub(crate) answer: TokenStream,
}

impl Published<'_> {
    pub(crate) fn tokens(&self) -> TokenStream {
        let Published { name, is_pub, answer } = self;
        told::is_published(&unraw(name));
        // Exported macros share one namespace in a crate: the name must differ for items of equal name.
        let mark = crate::cache::hash(&[place(name.span()).as_bytes(), answer.to_string().as_bytes()]);
        let mac = format_ident!("__titan_item_{}_{:016x}", unraw(name), mark, span = Span::call_site());
        let (export, vis) =
            if *is_pub { (quote!(#[macro_export]), quote!(pub)) } else { (quote!(), quote!(pub(crate))) };
        let body = Group::new(Delimiter::Bracket, answer.clone());
        quote! {
            #[doc(hidden)]
            #export
            macro_rules! #mac { ($cb:path, $($st:tt)*) => { $cb! { $($st)* #body } }; }
            #[doc(hidden)]
            #[allow(unused_imports)]
            #vis use #mac as #name;
        }
    }
}

/// Makes the companion of a constant, and reports that its value cannot be determined, once where it is written and not where it is used.
fn publish_constant(State { item, keys, answers, .. }: &State) -> TokenStream {
    let Ok(written) = syn::parse2::<syn::ItemConst>(item.clone()) else { return TokenStream::new() };
    let is_pub = matches!(written.vis, syn::Visibility::Public(_));
    let (mut errors, mut answer) = (TokenStream::new(), quote!(broken));
    // The error of a constant that it uses has been reported there.
    if let Some(items) = items(keys, answers) {
        let constant = constant_of(&written, items);
        match constant.map(|c| c.checked()) {
            Some((span, Err(NotConst::Runtime))) => {
                let title = format!("the value of `{}` cannot be determined", written.ident);
                let help = "kernels can use literals, operators, `as`, `if`, `min`, `max`, `cdiv` and other constants that are marked \
                    `#[titan::constant]`; write the value instead";
                errors = compile_error(&Diagnostic::new(Code::ConstEval, span, title).help(help));
            }
            // rustc reports a value that has an error, or the use does.
            Some((_, Ok(_) | Err(NotConst::Error(_)))) => {
                let keys = keys.iter().map(|k| Literal::string(k));
                answer = quote!(constant { #item } #(#keys [ #answers ])*);
            }
            None => {}
        }
    }
    let published = Published { name: &written.ident, is_pub, answer }.tokens();
    quote!(#errors #published)
}

fn unraw(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

pub(crate) fn place(span: Span) -> String {
    let start = span.start();
    format!("{}:{}:{}", span.file(), start.line, start.column)
}

/// Makes the companion of a device function or a constant whose own companions have answered: it answers with the item, the names of a
/// function, and the items that it uses.
pub(crate) fn publish(state: &State) -> TokenStream {
    let State { item, names, keys, answers, .. } = state;
    if state.kind == Kind::Constant {
        return publish_constant(state);
    }
    let Ok(function) = parse::function(item) else { return TokenStream::new() };
    let is_pub = matches!(function.vis, syn::Visibility::Public(_));
    let (names, keys) = (hygiene::literals(names), keys.iter().map(|k| Literal::string(k)));
    let answer = quote!(device { #item } (#(#names)*) #(#keys [ #answers ])*);
    Published { name: &function.sig.ident, is_pub, answer }.tokens()
}

/// Removes doc comments, which a companion does not need.
pub(crate) fn strip_docs(item: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut it = item.into_iter().peekable();
    while let Some(t) = it.next() {
        let is_attribute =
            matches!(&t, TokenTree::Punct(p) if p.as_char() == '#') && matches!(it.peek(), Some(TokenTree::Group(_)));
        if is_attribute {
            it.next();
            continue;
        }
        out.extend([t]);
        break;
    }
    out.extend(it);
    out
}
