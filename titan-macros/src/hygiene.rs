//! Which identifiers of a function are the same name.
//!
//! The variables and labels of a `macro_rules!` macro are hygienic: the `s` of a `let s` in the macro and the `s` in an expression of its
//! caller are two names. rustc compares text and syntax context of identifiers. A procedural macro cannot read the syntax context, so
//! it has rustc compare the identifiers.
//!
//! # How rustc is asked
//!
//! The metavariables of `macro_rules!` are hygienic in the same way: rustc replaces `$s` in the output of a rule only where it is the same
//! name as the `s` in the pattern. So a function with doubtful names expands to a macro that contains its identifiers:
//!
//! ```text
//! macro_rules! names { ($callback:path, $s:tt, $($state:tt)*) => { $callback! { $($state)* [ $s $s ] } } }
//! names! { step, yes, .. }
//! ```
//!
//! Each of the three `s` has the context of an identifier of the user; rustc answers `[ yes $s ]` if the second is the same name as the
//! first, and the third is not. Then those that are left are compared with each other, and at last the function is expanded
//! with the numbers of its names. Texts are compared here, so in place of its text an identifier has the number of its text.
//!
//! # Names in doubt
//!
//! Almost always all identifiers of a function have the same context, and nothing is asked. `Debug` prints the context of a span, as
//! in `#5 bytes(10..11)`. That form is not guaranteed: if it does not distinguish two contexts that are known to be different, all identifiers
//! are in doubt. Nothing depends on it but the time that an expansion takes and which programs are accepted: [`crate::judge`] has
//! rustc check where each name is bound.

#[cfg(test)]
mod tests;

use crate::cache;
use crate::chain::{Kind, group, place};
use crate::ctxt::compile_error;
use crate::entry;
use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use titan_core::collections::{SortedMap, SortedSet};
use titan_core::diag::{Code, Diagnostic};

/// The identity of a name: two identifiers of a function are the same variable or label name if and only if their marks are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Mark {
    /// The number of the first identifier of the name.
    first: u32,
    /// The number of names of the same text before it.
    nth: u32,
}

impl Mark {
    pub(crate) const fn nth(self) -> u32 {
        self.nth
    }
}

/// What an identifier does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occurs {
    /// It declares a variable or a label.
    Bound,
    /// It refers to a variable, a label or an item.
    Used,
}

/// The identifiers of a function that may be variables or labels, in the order in which the parser reads them.
#[derive(Debug)]
pub(crate) struct Names {
    contexts: Contexts,
    list: Vec<Identifier>,
    /// The first identifier of each text in each context.
    firsts: SortedMap<(String, u64), u32>,
    /// The names of each text.
    of_text: SortedMap<String, Vec<u32>>,
}

#[derive(Debug)]
struct Identifier {
    text: String,
    span: Span,
    /// The number of the first identifier that is the same name.
    name: u32,
    occurs: Occurs,
}

/// How contexts are compared.
#[derive(Debug)]
enum Contexts {
    /// All identifiers have the same.
    Same,
    /// By what `Debug` prints.
    Printed,
    /// Unknown: any two may be different.
    Unknown,
    /// The names have been found by an earlier expansion.
    Known(Vec<u32>),
}

impl Names {
    /// The names of a function that is expanded for the first time.
    pub(crate) fn of_tokens() -> Names {
        let inside_rustc = proc_macro::is_available();
        Names::new(match (inside_rustc, contexts_are_printed()) {
            (false, _) => Contexts::Same,
            (true, true) => Contexts::Printed,
            (true, false) => Contexts::Unknown,
        })
    }

    /// All identifiers of equal text are the same name.
    pub(crate) fn by_text() -> Names {
        Names::new(Contexts::Same)
    }

    /// The names that [`Names::numbers`] returned for the same tokens.
    pub(crate) fn known(numbers: Vec<u32>) -> Names {
        Names::new(if numbers.is_empty() { Contexts::Same } else { Contexts::Known(numbers) })
    }

    fn new(contexts: Contexts) -> Names {
        Names { contexts, list: Vec::new(), firsts: SortedMap::new(), of_text: SortedMap::new() }
    }

    /// Adds an identifier that is not a label.
    pub(crate) fn mark(&mut self, ident: &Ident, occurs: Occurs) -> Mark {
        self.add(text_of(ident), ident.span(), occurs)
    }

    /// Adds a label, or a use of one.
    pub(crate) fn mark_label(&mut self, ident: &Ident, occurs: Occurs) -> Mark {
        self.add(format!("'{}", text_of(ident)), ident.span(), occurs)
    }

    fn add(&mut self, text: String, span: Span, occurs: Occurs) -> Mark {
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let context = match &self.contexts {
            Contexts::Same => 0,
            // A span whose context cannot be read is like no other.
            Contexts::Printed => context(span).unwrap_or(u64::MAX - u64::from(number)),
            Contexts::Unknown => u64::from(number),
            Contexts::Known(numbers) => {
                numbers.get(number as usize).map_or(u64::MAX - u64::from(number), |n| u64::from(*n))
            }
        };
        let first = *self.firsts.entry((text.clone(), context)).or_insert(number);
        let names = self.of_text.entry(text.clone()).or_default();
        let nth = names.iter().position(|n| *n == first).unwrap_or_else(|| {
            names.push(first);
            names.len() - 1
        });
        self.list.push(Identifier { text, span, name: first, occurs });
        Mark { first, nth: u32::try_from(nth).unwrap_or(u32::MAX) }
    }

    /// The number of each identifier's name; nothing if all identifiers of equal text are the same name.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        if self.of_text.values().all(|names| names.len() == 1) {
            return Vec::new();
        }
        self.list.iter().map(|i| i.name).collect()
    }

    /// The question to rustc which identifiers are the same name; `None` if that is known. `state` is the item with its attribute.
    pub(crate) fn question(&self, state: &Item<'_>) -> Option<TokenStream> {
        if matches!(self.contexts, Contexts::Same | Contexts::Known(_)) {
            return None;
        }
        let bound: SortedSet<&str> =
            self.list.iter().filter(|i| i.occurs == Occurs::Bound).map(|i| i.text.as_str()).collect();
        let mut numbers: Vec<u32> = self.list.iter().map(|i| i.name).collect();
        let mut open = Vec::new();
        for (nth, (text, names)) in self.of_text.iter().enumerate() {
            if names.len() < 2 {
                continue;
            }
            if bound.contains(text.as_str()) {
                open.push(names.iter().map(|n| self.witness(*n, nth)).collect::<Vec<_>>());
            } else if matches!(self.contexts, Contexts::Unknown) && text != "$crate" {
                // Items are not hygienic: the same text is the same item.
                merge(&mut numbers, names);
            }
        }
        let asked = Asked { numbers, open };
        (!asked.open.is_empty()).then(|| asked.ask(state))
    }

    /// The identifier of this number, with the number of its text in place of the text.
    fn witness(&self, number: u32, text: usize) -> (u32, Ident) {
        let span = self.list.get(number as usize).map_or_else(Span::call_site, |i| i.span);
        (number, format_ident!("n{}", text, span = span))
    }
}

/// The text of an identifier: `r#s` is the same name as `s`.
pub(crate) fn text_of(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// Makes several names one.
fn merge(numbers: &mut [u32], names: &[u32]) {
    let Some(first) = names.first() else { return };
    numbers.iter_mut().filter(|n| names.contains(n)).for_each(|n| *n = *first);
}

/// The number of a span's syntax context, as `Debug` prints it.
fn context(span: Span) -> Option<u64> {
    context_in(&format!("{span:?}"))
}

/// `5` in `#5 bytes(10..11)`.
fn context_in(printed: &str) -> Option<u64> {
    let (number, rest) = printed.strip_prefix('#')?.split_once(' ')?;
    let is_place = rest.strip_prefix("bytes(")?.strip_suffix(')')?.split_once("..").is_some();
    number.parse().ok().filter(|_| is_place)
}

/// Whether `Debug` prints the contexts of spans: it distinguishes two contexts that are different, and not two places in one context.
fn contexts_are_printed() -> bool {
    let (call, mixed) = (Span::call_site(), Span::mixed_site());
    let (Some(at_call), Some(at_mixed)) = (context(call), context(mixed)) else { return false };
    at_call != at_mixed
        && context(mixed.resolved_at(call)) == Some(at_call)
        && context(call.resolved_at(mixed)) == Some(at_mixed)
}

/// An item that is expanded as soon as its names are known.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) kind: Kind,
    pub(crate) krate: &'a TokenStream,
    pub(crate) attr: &'a TokenStream,
    pub(crate) item: &'a TokenStream,
}

/// A question to rustc.
struct Asked {
    /// The name of each identifier, as far as it is known.
    numbers: Vec<u32>,
    /// For each text the names that may be the same, with an identifier of each.
    open: Vec<Vec<(u32, Ident)>>,
}

impl Asked {
    /// The macro that compares the first name of each list with the others, and its call. The answer follows the state, in one group for
    /// each list.
    fn ask(&self, state: &Item<'_>) -> TokenStream {
        let Item { kind, krate, attr, item } = state;
        let (kind, numbers) = (kind.ident(), literals(&self.numbers));
        let first: Vec<&Ident> = self.open.iter().filter_map(|list| Some(&list.first()?.1)).collect();
        let yes = first.iter().map(|_| quote!(yes));
        let others = self.open.iter().map(|list| {
            let others = list.iter().skip(1).map(|(_, ident)| ident);
            quote!([ #($ #others)* ])
        });
        let open = self.open.iter().map(|list| {
            let (numbers, idents) =
                (list.iter().map(|(n, _)| Literal::u32_unsuffixed(*n)), list.iter().map(|(_, i)| i));
            quote!([ #(#numbers #idents)* ])
        });
        let state = quote!(names #kind { (#krate) (#attr) (#item) } [ #(#numbers)* ] { #(#open)* });
        let site = first.first().map(|i| place(i.span())).unwrap_or_default();
        let hash = cache::hash(&[site.as_bytes(), state.to_string().as_bytes()]);
        let mac = format_ident!("__titan_names_{:016x}", hash, span = Span::call_site());
        quote! {
            macro_rules! #mac {
                ($titan_callback:path, #($ #first:tt)*, $($titan_state:tt)*) => {
                    $titan_callback! { $($titan_state)* #(#others)* }
                };
            }
            #mac! { #krate::__private::step, #(#yes)*, #state }
        }
    }

    /// Adds rustc's answers; returns whether they belong to the question. The names that are left in `open` are still to be compared.
    fn add(&mut self, answers: impl Iterator<Item = TokenStream>) -> bool {
        let answers: Vec<Option<Vec<bool>>> = answers.map(replaced).collect();
        let fits = |(list, answer): (&Vec<(u32, Ident)>, &Option<Vec<bool>>)| {
            answer.as_ref().is_some_and(|a| a.len() + 1 == list.len())
        };
        if answers.len() != self.open.len() || !self.open.iter().zip(&answers).all(fits) {
            return false;
        }
        for (list, answer) in std::mem::take(&mut self.open).into_iter().zip(answers.into_iter().flatten()) {
            let mut names = list.into_iter();
            let mut same: Vec<u32> = names.next().into_iter().map(|(n, _)| n).collect();
            let (mut left, mut is_same) = (Vec::new(), answer.into_iter());
            for name in names {
                if is_same.next() == Some(true) { same.push(name.0) } else { left.push(name) }
            }
            merge(&mut self.numbers, &same);
            if left.len() > 1 {
                self.open.push(left);
            }
        }
        true
    }
}

/// Which of the metavariables rustc has replaced by `yes`. It leaves the others as they are: `$s`.
fn replaced(answer: TokenStream) -> Option<Vec<bool>> {
    let mut out = Vec::new();
    let mut tokens = answer.into_iter();
    while let Some(t) = tokens.next() {
        match t {
            TokenTree::Ident(i) if i == "yes" => out.push(true),
            TokenTree::Punct(p) if p.as_char() == '$' && matches!(tokens.next(), Some(TokenTree::Ident(_))) => {
                out.push(false);
            }
            _ => return None,
        }
    }
    Some(out)
}

pub(crate) fn literals(numbers: &[u32]) -> impl Iterator<Item = Literal> {
    numbers.iter().map(|n| Literal::u32_unsuffixed(*n))
}

/// The numbers that [`literals`] wrote.
pub(crate) fn read_literals(tokens: TokenStream) -> Option<Vec<u32>> {
    tokens.into_iter().map(|t| t.to_string().parse().ok()).collect()
}

/// Whether these tokens are an answer of rustc's, for [`answered`].
pub(crate) fn is_answer(tokens: &TokenStream) -> bool {
    matches!(tokens.clone().into_iter().next(), Some(TokenTree::Ident(i)) if i == "names")
}

/// rustc has compared names: the expansion of the item, or the next question.
pub(crate) fn answered(tokens: TokenStream) -> TokenStream {
    resume(tokens).unwrap_or_else(|| {
        let title = "the comparison of the names in this function has failed; please report it";
        compile_error(&Diagnostic::new(Code::Internal, Span::call_site(), title))
    })
}

fn resume(tokens: TokenStream) -> Option<TokenStream> {
    let mut it = tokens.into_iter().skip(1);
    let kind = Kind::read(&it.next()?)?;
    let mut payload = group(it.next()?)?.into_iter().filter_map(group);
    let (krate, attr, item) = (payload.next()?, payload.next()?, payload.next()?);
    let numbers = read_literals(group(it.next()?)?)?;
    let open = group(it.next()?)?.into_iter().map(|t| names(group(t)?)).collect::<Option<Vec<_>>>()?;
    let mut asked = Asked { numbers, open };
    if !asked.add(it.map_while(group)) {
        return None;
    }
    if !asked.open.is_empty() {
        return Some(asked.ask(&Item { kind, krate: &krate, attr: &attr, item: &item }));
    }
    let names = Names::known(asked.numbers);
    match kind {
        Kind::Kernel => Some(entry::kernel_of(names, attr, item)),
        Kind::Device => Some(entry::device_of(names, &attr, item)),
        // It has no variables or labels.
        Kind::Constant => None,
    }
}

/// Numbers and identifiers in turn.
fn names(tokens: TokenStream) -> Option<Vec<(u32, Ident)>> {
    let mut out = Vec::new();
    let mut it = tokens.into_iter();
    while let Some(number) = it.next() {
        let TokenTree::Ident(ident) = it.next()? else { return None };
        out.push((number.to_string().parse().ok()?, ident));
    }
    Some(out)
}
