//! Parses the text that the printer writes, and mnemonics without the suffix of their encoding.

mod modifier;
mod operand;

use super::error::IsaError;
use super::format::Field;
use super::inst::Inst;
use super::row::{Class, Form, Mods, Row};
use super::tables::by_name;
use modifier::{apply, mark_source};
use operand::operand;

/// The modifiers that are written at an operand.
#[derive(Clone, Copy, Default)]
struct Marks {
    neg: bool,
    abs: bool,
    sext: bool,
}

type Parsed<T> = Result<T, IsaError>;

fn syntax<T>(why: impl Into<String>) -> Parsed<T> {
    Err(IsaError::Syntax { why: why.into() })
}

/// Parses one instruction.
///
/// # Errors
/// [`IsaError`]; if several encodings are possible, the error for the last one with the right number of operands.
pub fn parse(text: &str) -> Parsed<Inst> {
    let text = text.trim();
    let (mnemonic, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let suffixed = |suffix, form| mnemonic.strip_suffix(suffix).map(|name| (name, vec![form]));
    let known = [("_e32", Form::Base), ("_e64", Form::E64), ("_sdwa", Form::Sdwa), ("_dpp", Form::Dpp)];
    let with_form = known.into_iter().find_map(|(s, f)| suffixed(s, f)).filter(|(name, _)| !by_name(name).is_empty());
    let (name, forms) = with_form.unwrap_or((mnemonic, vec![Form::Base, Form::E64]));
    let mut why = IsaError::Syntax { why: format!("there is no instruction `{mnemonic}`") };
    let mut near = false;
    for row in by_name(name) {
        for form in forms.iter().filter(|f| row.has_form(**f)) {
            match read(row, *form, rest) {
                Ok(inst) => return Ok(inst),
                // An error about an operand is more useful than one about their number.
                Err(IsaError::Count { .. }) if near => {}
                Err(error) => {
                    near = !matches!(error, IsaError::Count { .. });
                    why = error;
                }
            }
        }
    }
    Err(why)
}

fn read(row: &'static Row, form: Form, rest: &str) -> Parsed<Inst> {
    let args = row.args_in(form);
    let (operands, modifiers) = split(rest, args.as_slice().len(), row)?;
    let mut inst = Inst::unchecked(row, form, Vec::new());
    let mut marks = Vec::new();
    for (arg, text) in args.as_slice().iter().zip(&operands) {
        let (operand, mark) = operand(*arg, text)?;
        inst.operands_mut().push(operand);
        marks.push(mark);
    }
    for (n, (i, _)) in inst.sources().into_iter().enumerate() {
        if let Some(mark) = marks.get_mut(i).map(std::mem::take) {
            mark_source(&mut inst, n, mark)?;
        }
    }
    if marks.iter().any(|m| m.neg || m.abs || m.sext) {
        return syntax(format!("an operand of `{}` cannot be negated, made absolute or extended", row.name));
    }
    let mut seen = Vec::new();
    for modifier in modifiers {
        let name = modifier.split(':').next().unwrap_or(modifier);
        if seen.contains(&name) {
            return syntax(format!("`{name}` is said twice"));
        }
        seen.push(name);
        apply(&mut inst, modifier)?;
    }
    // Fields that the row fixes are written too, where they are visible.
    for (field, value) in row.fixed {
        let spelled = match field {
            Field::Sc0 => "sc0",
            Field::Lds => "lds",
            _ => continue,
        };
        if seen.contains(&spelled) != (*value == 1) && !(row.mods.has(Mods::CACHE) && *field == Field::Sc0) {
            return syntax(format!(
                "`{}` with these operands {} `{spelled}`",
                row.name,
                ["has no", "needs"][*value as usize & 1]
            ));
        }
    }
    inst.encode()?;
    Ok(inst)
}

/// Splits the text of an instruction into operands and modifiers.
fn split<'a>(rest: &'a str, count: usize, row: &Row) -> Parsed<(Vec<&'a str>, Vec<&'a str>)> {
    let mut rest = rest.trim();
    let mut operands = Vec::new();
    while operands.len() < count {
        if rest.is_empty() {
            return Err(IsaError::Count { name: row.name, wants: count, got: operands.len() });
        }
        let arg = row.args().get(operands.len());
        let whole = arg.is_some_and(|a| a.class == Class::Waitcnt);
        let end = if whole { rest.len() } else { operand_end(rest) };
        let (operand, tail) = rest.split_at(end);
        operands.push(operand.trim());
        let tail = tail.trim_start();
        rest = match tail.strip_prefix(',') {
            Some(more) if operands.len() < count => more.trim_start(),
            Some(_) => return Err(IsaError::Count { name: row.name, wants: count, got: count + 1 }),
            None if operands.len() < count => {
                return Err(IsaError::Count { name: row.name, wants: count, got: operands.len() });
            }
            None => tail,
        };
    }
    Ok((operands, words(rest)))
}

/// The end of the operand at the start of a text: a comma or blank outside of brackets.
fn operand_end(text: &str) -> usize {
    let mut depth = 0_i32;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' | ' ' | '\t' if depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

/// Splits a text into words, keeping blanks inside of brackets.
fn words(text: &str) -> Vec<&str> {
    let (mut all, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let mut depth = 0_i32;
        let end = rest.char_indices().find_map(|(i, c)| {
            depth += i32::from(c == '(' || c == '[') - i32::from(c == ')' || c == ']');
            (c.is_whitespace() && depth == 0).then_some(i)
        });
        let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
        all.push(word);
        rest = tail.trim_start();
    }
    all
}

/// Parses a decimal or hexadecimal number, signed or not.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { -value } else { value })
}

fn arguments<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let inner = text.strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(',').map(str::trim).collect())
}
