//! One message for each cause, although the instances of a kernel are compiled one by one, and each for several targets.
//!
//! Warnings wait for the last instance of their kernel and name the instances that have them. An error cannot wait: it is printed for the first
//! instance that has it, and the others are not told the same again. Targets of one instance that refuse it for the same reason are listed.
//!
//! Two texts have the same cause if they differ only in numbers and in the names of the instance and its target.
//!
//! Deliberately absent: what is said; see [`crate::warning`] and [`crate::targets`].

use crate::warning::listed;
use proc_macro2::Span;
use std::sync::{Mutex, PoisonError};
use titan_core::collections::{SortedMap, SortedSet};
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Loc;

/// A kernel: the place of its name, and the name.
type Key = (String, usize, usize, String);

/// The warnings of the instances of a kernel that have been compiled so far.
#[derive(Default)]
struct Open {
    instances: usize,
    warnings: Vec<(String, Diagnostic<Loc>, Vec<String>)>,
}

/// Adds the warnings of an instance. Returns those of all instances when this was the last one, and nothing before.
pub(crate) fn once(name: Span, instance: &str, instances: usize, found: Vec<Diagnostic<Loc>>) -> Vec<Diagnostic<Loc>> {
    static OPEN: Mutex<SortedMap<Key, Open>> = Mutex::new(SortedMap::new());
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = all.entry(key(name, instance)).or_default();
    open.instances += 1;
    add(&mut open.warnings, instance, found);
    if open.instances < instances {
        return Vec::new();
    }
    let Open { warnings, .. } = std::mem::take(open);
    warnings.into_iter().map(|(_, warning, of)| with_instances(warning, &of, instances)).collect()
}

fn add(known: &mut Vec<(String, Diagnostic<Loc>, Vec<String>)>, instance: &str, found: Vec<Diagnostic<Loc>>) {
    for warning in found {
        // The numbers of a note are what it says.
        let cause = match warning.code {
            Code::CodeNote => warning.title.clone(),
            _ => cause(&warning.title, instance, ""),
        };
        let is_same = |(other, w, _): &&mut (String, Diagnostic<Loc>, Vec<String>)| {
            *other == cause && w.code == warning.code && w.site == warning.site
        };
        match known.iter_mut().find(is_same) {
            Some((_, _, of)) if of.iter().any(|i| i == instance) => {}
            Some((_, _, of)) => of.push(instance.to_owned()),
            None => known.push((cause, warning, vec![instance.to_owned()])),
        }
    }
}

/// The device functions and constants that wait for the companion of another item. rustc reports those that wait for one that does not exist.
static WAITING: Mutex<SortedSet<String>> = Mutex::new(SortedSet::new());

/// A device function or a constant asks for the companion of another item.
pub(crate) fn waits(name: &str) {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
}

/// A device function or a constant has its own companion.
pub(crate) fn is_published(name: &str) {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
}

/// Whether a device function or a constant has no companion because it waits for another, so that an error has been reported.
pub(crate) fn is_waiting(name: &str) -> bool {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
}

/// Names the instances that have a warning, unless there is only one or all have it.
fn with_instances(warning: Diagnostic<Loc>, of: &[String], instances: usize) -> Diagnostic<Loc> {
    let names = |of: &[String]| {
        let names: Vec<String> = of.iter().map(|i| format!("`{i}`")).collect();
        listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    match of {
        [first, others @ ..] if warning.title.contains(first.as_str()) => match others {
            [] => warning,
            others if of.len() < instances => warning.note(format!("the same of {}", names(others))),
            _ => warning.note("the same of all other instances"),
        },
        of if of.len() < instances => Diagnostic { title: format!("{}, in {}", warning.title, names(of)), ..warning },
        _ => warning,
    }
}

/// Whether no instance of the kernel has been told this error.
pub(crate) fn is_first(name: Span, instance: &str, error: &Diagnostic<Span>) -> bool {
    static TOLD: Mutex<SortedSet<(Key, Code, usize, usize, String)>> = Mutex::new(SortedSet::new());
    let at = error.site.start();
    let told = (key(name, instance), error.code, at.line, at.column, cause(&error.title, instance, ""));
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(told)
}

/// The errors of an instance for its targets, with one for all targets that refuse it for the same reason.
pub(crate) fn of_targets<'t>(errors: impl Iterator<Item = (&'t str, Diagnostic<Loc>)>) -> Vec<Diagnostic<Loc>> {
    let mut all: Vec<(String, Diagnostic<Loc>, Vec<&str>)> = Vec::new();
    for (target, error) in errors {
        let cause = cause(&error.title, "", target);
        match all.iter_mut().find(|(other, e, _)| *other == cause && e.code == error.code && e.site == error.site) {
            Some((_, _, others)) => others.push(target),
            None => all.push((cause, error, Vec::new())),
        }
    }
    let with_targets = |(_, error, others): (String, Diagnostic<Loc>, Vec<&str>)| match &others[..] {
        [] => error,
        others => error.note(format!("the same on {}", listed(others))),
    };
    all.into_iter().map(with_targets).collect()
}

fn key(name: Span, instance: &str) -> Key {
    let start = name.start();
    let kernel = instance.split("::<").next().unwrap_or(instance);
    (name.file(), start.line, start.column, kernel.to_owned())
}

/// A text without numbers and the names of an instance and a target.
fn cause(text: &str, instance: &str, target: &str) -> String {
    let mut text = text.to_owned();
    for name in [instance, target].iter().filter(|name| !name.is_empty()) {
        text = text.replace(name, "_");
    }
    text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(title: &str) -> Diagnostic<Loc> {
        Diagnostic::new(Code::NoCode, Loc::default(), title)
    }

    #[test]
    fn the_last_instance_tells_the_warnings_of_all() {
        let name = Span::call_site();
        let of = |instance: &str, bytes: u32| {
            once(name, instance, 3, vec![warning(&format!("`{instance}`: it needs {bytes} bytes")), warning("all")])
        };
        assert_eq!(of("k::<8>", 100), []);
        assert_eq!(once(name, "k::<16>", 3, vec![warning("all")]), []);
        let told = of("k::<32>", 2000);
        assert_eq!(told, [warning("`k::<8>`: it needs 100 bytes").note("the same of `k::<32>`"), warning("all")]);
        assert_eq!(once(name, "k::<8>", 1, vec![warning("again")]), [warning("again")], "another kernel of the name");
    }

    #[test]
    fn an_error_is_told_of_the_first_instance() {
        let name = Span::call_site();
        let error = |text: &str| Diagnostic::new(Code::Backend, name, text);
        assert!(is_first(name, "one::<8>", &error("`one::<8>`: it needs 100 bytes")));
        assert!(!is_first(name, "one::<16>", &error("`one::<16>`: it needs 2000 bytes")));
        assert!(is_first(name, "one::<16>", &error("`one::<16>`: it has no instruction")));
        assert!(is_first(name, "two::<16>", &error("`two::<16>`: it needs 2000 bytes")));
    }

    #[test]
    fn targets_with_the_same_reason_are_listed() {
        let error =
            |target: &str, n: u32| (target.to_owned(), warning(&format!("code for {target} may use {n} bytes")));
        let all = [error("sm_90a", 7), error("sm_80", 5), error("sm_100a", 7)];
        let told = of_targets(all.iter().map(|(target, e)| (target.as_str(), e.clone())));
        assert_eq!(told, [all[0].1.clone().note("the same on sm_80 and sm_100a")]);
    }
}
