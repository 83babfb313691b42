//! Right programs, changed a little: what the verifier accepts runs, and the most of what it refuses does not.

use crate::run::{ENDLESS, Pace, Rng, Run};
use std::path::Path;
use titan_core::ir::Kernel;
use titan_core::text::{parse, print};
use titan_core::verify::verify;

/// Barrier-level kernels that are right: the accepted ones, those whose control inputs decide, and repaired bugs.
fn right() -> Vec<Kernel> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let read = |name: &str| parse(&std::fs::read_to_string(root.join(name)).expect("a file")).expect("kernels");
    let mut kernels = read("verify/accepted_barriers.tir");
    for name in [
        "verify/barrier_counted_by_another_barrier.tir",
        "verify/barrier_turned_in_some_iterations.tir",
        "verify/tensor_in_flight.tir",
        "verify/tensor_out_of_order.tir",
        "verify/tensor_mma_scales.tir",
    ] {
        kernels.extend(read(name).into_iter().filter(|k| k.sig.name.starts_with("passes")));
    }
    let mut paths: Vec<_> =
        std::fs::read_dir(root.join("museum")).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let mut found = parse(&std::fs::read_to_string(path).expect("a file")).expect("kernels");
        kernels.extend(found.pop().filter(|k| k.pipes.is_empty()));
    }
    kernels
}

/// What goes wrong in runs with many numbers of iterations and orders.
fn fault(kernel: &Kernel, seed: u64) -> Option<String> {
    let mut rng = Rng(seed);
    for n in [0, 1, 2, 3, 4, 5, 7, 9, 14] {
        for m in [0, 2, 3] {
            for pace in [Pace::Early, Pace::Late, Pace::Any, Pace::Any] {
                let flags = [0, u64::MAX, rng.0, rng.0 >> 17][rng.below(4)];
                let run = Run::new(kernel, n, m, flags).and_then(|mut run| run.all(&mut rng, pace));
                if let Err(fault) = run.or_else(|f| if f == ENDLESS { Ok(()) } else { Err(f) }) {
                    return Some(format!("{fault}, with n = {n}, m = {m}, {pace:?}"));
                }
            }
        }
    }
    None
}

/// A text with one or two lines changed.
fn mutant(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(2) {
        let at = 1 + rng.below(lines.len() - 2);
        match rng.below(6) {
            0 => drop(lines.remove(at)),
            1 if at + 1 < lines.len() => lines.swap(at, at + 1),
            2 => lines.insert(at, lines[at].clone()),
            3 => lines[at] = number(&lines[at], rng),
            4 => {
                let to = 1 + rng.below(lines.len() - 2);
                let line = lines.remove(at);
                lines.insert(to.min(lines.len()), line);
            }
            _ => lines[at] = operand(&lines, at, rng),
        }
        if lines.len() < 8 {
            break;
        }
    }
    lines.join("\n")
}

/// A line with another number in it.
fn number(line: &str, rng: &mut Rng) -> String {
    let ends: Vec<usize> = line
        .match_indices(" = ")
        .map(|(i, _)| i + 3)
        .filter(|i| line[*i..].starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    let Some(at) = ends.get(rng.below(ends.len())) else {
        return line.replace("const 4", "const 3").replace("const 1 ", "const 2 ");
    };
    let digits: String = line[*at..].chars().take_while(char::is_ascii_digit).collect();
    let old: i64 = digits.parse().unwrap_or(0);
    let new = [old + 1, (old - 1).max(0), old * 2, old / 2][rng.below(4)];
    format!("{}{new}{}", &line[..*at], &line[at + digits.len()..])
}

/// A line with another value in it.
fn operand(lines: &[String], at: usize, rng: &mut Rng) -> String {
    let names = |line: &str| -> Vec<String> {
        line.split(|c: char| !(c.is_alphanumeric() || "%._\"".contains(c)))
            .filter(|w| w.starts_with('%'))
            .map(str::to_owned)
            .collect()
    };
    let own = names(&lines[at]);
    let before: Vec<String> = lines[..at].iter().flat_map(|l| names(l)).collect();
    if own.is_empty() || before.is_empty() {
        return lines[at].clone();
    }
    let old = &own[own.len() - 1 - rng.below(own.len().min(2))];
    lines[at].replacen(old.as_str(), &before[rng.below(before.len())], 1)
}

#[test]
fn what_is_right_runs() {
    for kernel in right() {
        assert_eq!(verify(kernel.clone()).err(), None, "{}", kernel.sig.name);
        assert_eq!(fault(&kernel, 1), None, "{}", kernel.sig.name);
    }
}

#[test]
fn accepted_mutants_run() {
    // With 3000, in a minute and a half, 15851 were accepted and ran, and of 12538 that were refused 12354 went wrong.
    let rounds = 150;
    let (mut accepted, mut refused, mut shown) = (0, 0, 0);
    for (i, kernel) in right().iter().enumerate() {
        let text = print(kernel);
        let mut rng = Rng(1000 + i as u64);
        for round in 0..rounds {
            let changed = mutant(&text, &mut rng);
            let Ok(Ok([mutant])) = parse(&changed).map(<[Kernel; 1]>::try_from) else { continue };
            if mutant == *kernel {
                continue;
            }
            match verify(mutant.clone()) {
                Ok(_) => {
                    accepted += 1;
                    let found = fault(&mutant, 77 + round);
                    assert_eq!(found, None, "accepted, but it goes wrong:\n{changed}");
                }
                Err(errors)
                    if errors
                        .iter()
                        .all(|e| ("T0704"..="T0711").contains(&e.code.number()) || e.code.number() == "T0721") =>
                {
                    refused += 1;
                    shown += usize::from(fault(&mutant, 77 + round).is_some());
                }
                Err(_) => {}
            }
        }
    }
    assert!(accepted > 100 && refused > 200, "{accepted} accepted, {refused} refused");
    assert!(shown * 10 >= refused * 9, "of {refused} that are refused only {shown} go wrong");
}
