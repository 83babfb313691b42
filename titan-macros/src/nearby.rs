//! What else the user's file contains, for the help lines of messages. A macro sees only its own tokens, so the text of the file is searched.
//!
//! Nothing but the words of an error that exists anyway depends on it: a file that cannot be read, or a name that is only in a comment, changes
//! a help line at most.

#[cfg(test)]
mod tests;

use crate::env;
use proc_macro2::Span;

/// Whether the file of this place seems to declare or import a constant of this name.
pub(crate) fn has_constant(name: &str, at: Span) -> bool {
    text_at(at).is_some_and(|text| is_declared(&text, &["const", "static"], name) || is_imported(&text, name))
}

/// The attribute without which the file of this place seems to declare an item of this name, if it does.
pub(crate) fn missing_mark(name: &str, at: Span) -> Option<&'static str> {
    let text = text_at(at)?;
    let is_unmarked =
        |keyword: &str, mark: &str| heads(&text, keyword, name).any(|head| !words(head).any(|w| w == mark));
    let all = [("fn", "device"), ("const", "constant")];
    all.into_iter().find(|(keyword, mark)| is_unmarked(keyword, mark)).map(|(_, mark)| mark)
}

/// What precedes the declarations of items of a name: attributes and the visibility.
fn heads<'t>(text: &'t str, keyword: &str, name: &str) -> impl Iterator<Item = &'t str> {
    let declaration = format!("{keyword} {name}");
    let starts: Vec<usize> = text.match_indices(&declaration).map(|(at, _)| at).collect();
    let whole = move |at: &usize| {
        let after = text.get(at + declaration.len()..).unwrap_or_default();
        !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    starts.into_iter().filter(whole).map(|at| {
        let before = text.get(..at).unwrap_or_default();
        before.rsplit([';', '}', '{']).next().unwrap_or_default()
    })
}

/// Whether the file of this place seems to declare or import a function of this name.
pub(crate) fn has_function(name: &str, at: Span) -> bool {
    text_at(at).is_some_and(|text| is_declared(&text, &["fn"], name) || is_imported(&text, name))
}

fn text_at(at: Span) -> Option<String> {
    env::source(&at.local_file()?)
}

/// The words of a text, and what separates them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

fn is_declared(text: &str, keywords: &[&str], name: &str) -> bool {
    let mut before = "";
    words(text).any(|word| keywords.contains(&std::mem::replace(&mut before, word)) && word == name)
}

/// Whether a `use` of something else than the language names it.
fn is_imported(text: &str, name: &str) -> bool {
    let uses = text.split(';').filter_map(|item| item.split_once("use ").map(|(_, names)| names));
    let mut named = uses.filter(|names| !names.contains(['(', '=', '.']));
    named.any(|names| words(names).any(|w| w == name) && words(names).all(|w| w != "titan"))
}
