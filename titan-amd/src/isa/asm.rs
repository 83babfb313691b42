//! Programs in text: one instruction a line, labels, comments.
//!
//! ```text
//! loop:                         // a label
//!     s_sub_u32 s4, s4, 1
//!     s_cmp_lg_u32 s4, 0
//!     s_cbranch_scc1 loop       ; branches name labels, or distances in words
//! ```
//!
//! Deliberately absent: directives, expressions, macros. Kernels are written by hand only in tests.

use super::error::IsaError;
use super::inst::Inst;
use super::operand::Operand;
use super::parse::parse;
use super::row::Class;
use std::collections::BTreeMap;
use std::fmt;

/// An incorrect line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The reason why it is incorrect.
    pub why: String,
}

impl fmt::Display for AsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}\n    {}", self.line, self.why, self.text)
    }
}

impl std::error::Error for AsmError {}

/// A line that contains an instruction.
struct Line<'a> {
    number: usize,
    text: &'a str,
    inst: Inst,
    /// The label to which a branch refers.
    target: Option<&'a str>,
}

/// Assembles a program to instructions, with branches resolved.
///
/// # Errors
/// [`AsmError`], for the first incorrect line.
pub fn program(text: &str) -> Result<Vec<Inst>, AsmError> {
    let (mut lines, mut labels, mut at) = (Vec::new(), BTreeMap::new(), 0_u64);
    for (i, raw) in text.lines().enumerate() {
        let mut rest = raw.split("//").next().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let wrong = |why: String| AsmError { line: i + 1, text: raw.trim().to_owned(), why };
        while let Some((label, tail)) = rest.split_once(':').filter(|(l, _)| is_label(l)) {
            if labels.insert(label, at).is_some() {
                return Err(wrong(format!("the label `{label}` is there twice")));
            }
            rest = tail.trim();
        }
        if rest.is_empty() {
            continue;
        }
        let (inst, target) = instruction(rest).map_err(|e| wrong(e.to_string()))?;
        at += inst.size();
        lines.push(Line { number: i + 1, text: raw, inst, target });
    }
    let mut next = 0;
    let mut all = Vec::new();
    for mut line in lines {
        next += line.inst.size();
        if let Some(label) = line.target {
            let why = |why: String| AsmError { line: line.number, text: line.text.trim().to_owned(), why };
            let to = labels.get(label).ok_or_else(|| why(format!("there is no label `{label}`")))?;
            let words = (to.cast_signed() - next.cast_signed()) / 4;
            let distance = i16::try_from(words).map_err(|_| why(format!("`{label}` is too far away")))?;
            if let Some(operand) = line.inst.operands_mut().last_mut() {
                *operand = Operand::Imm(distance.into());
            }
        }
        all.push(line.inst);
    }
    Ok(all)
}

/// Assembles a program to bytes.
///
/// # Errors
/// As [`program`].
pub fn assemble(text: &str) -> Result<Vec<u8>, AsmError> {
    let mut bytes = Vec::new();
    for inst in program(text)? {
        let wrong = |e: IsaError| AsmError { line: 0, text: inst.to_string(), why: e.to_string() };
        bytes.extend(inst.bytes().map_err(wrong)?);
    }
    Ok(bytes)
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// Parses an instruction, and the label to which it branches.
fn instruction(text: &str) -> Result<(Inst, Option<&str>), IsaError> {
    let (head, last) = text.rsplit_once([' ', ',']).map_or((text, ""), |(h, l)| (h, l.trim()));
    let named = is_label(last) && !last.starts_with(|c: char| c.is_ascii_digit());
    if named
        && let Ok(inst) = parse(&format!("{}{}0", head, &text[head.len()..=head.len()]))
        && inst.args().last().is_some_and(|(a, _)| a.class == Class::Branch)
    {
        return Ok((inst, Some(last)));
    }
    parse(text).map(|inst| (inst, None))
}
