//! `tprint!`: whole lines, to standard output or to a sink.

use super::{Machine, Outcome, out_of_memory};
use crate::ops::{cast, words};
use crate::plan::Slot;
use crate::rep::{self, Rep};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Arc, RwLock};
use titan_core::ir::Elem;

/// Receives whole lines, each with its line break, from any thread.
pub type PrintSink = Arc<dyn Fn(&str) + Send + Sync>;

static SINK: RwLock<Option<PrintSink>> = RwLock::new(None);

/// A line that grows; running out of memory is an error.
struct Line(String);

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.try_reserve(text.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(text);
        Ok(())
    }
}

/// Sets the sink for the output of kernels; `None` is standard output.
///
/// Any thread that runs programs, launches or waits may call the sink, before the launch that prints counts as ended: it may
/// launch kernels itself, but not wait for the launch that prints.
pub fn set_print_sink(sink: Option<PrintSink>) {
    *SINK.write().unwrap_or_else(std::sync::PoisonError::into_inner) = sink;
}

/// Prints a line, with its line break, to the sink of kernels' output: other devices report to the host and use this too.
pub fn print_line(line: &str) {
    let sink = SINK.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    match sink {
        Some(sink) => sink(line),
        // A closed standard output is not an error of the kernel.
        None => drop(std::io::stdout().lock().write_all(line.as_bytes())),
    }
}

impl Machine<'_, '_> {
    pub(super) fn print(&mut self, format: &str, args: &[(Slot, Elem)]) -> Outcome<()> {
        for (slot, _) in args {
            if let Slot::Tile(tile) = slot {
                self.make_dense(*tile)?;
            }
        }
        let mut line = Line(String::new());
        self.write_line(&mut line, format, args).map_err(|fmt::Error| out_of_memory(line.0.len()))?;
        print_line(&line.0);
        Ok(())
    }

    fn write_line(&self, line: &mut Line, format: &str, args: &[(Slot, Elem)]) -> fmt::Result {
        let mut args = args.iter();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('{', Some('{')) | ('}', Some('}')) => {
                    chars.next();
                    line.write_char(c)?;
                }
                ('{', _) => {
                    // Up to the closing brace there are only format specifications, which do not matter here.
                    chars.by_ref().find(|c| *c == '}');
                    if let Some((slot, elem)) = args.next() {
                        self.print_value(line, *slot, *elem)?;
                    }
                }
                _ => line.write_char(c)?,
            }
        }
        line.write_char('\n')
    }

    fn print_value(&self, line: &mut Line, slot: Slot, elem: Elem) -> fmt::Result {
        match slot {
            Slot::Scalar(scalar) => print_element(line, elem, self.scalar(scalar)),
            Slot::Tile(tile) => {
                let info = &self.plan.tiles[tile as usize];
                print_axis(line, &info.shape[4 - info.rank..], &mut 0, &mut |line, i| {
                    let bits = words::element(self.dense(tile), info.size, i);
                    print_element(line, elem, rep::extend(elem, bits))
                })
            }
            Slot::View(_) => line.write_str("<tensor>"),
        }
    }
}

/// Prints nested lists; `element` prints the innermost elements.
fn print_axis(
    line: &mut Line,
    dims: &[i32],
    next: &mut usize,
    element: &mut dyn FnMut(&mut Line, usize) -> fmt::Result,
) -> fmt::Result {
    let Some((n, rest)) = dims.split_first() else {
        element(line, *next)?;
        *next += 1;
        return Ok(());
    };
    line.write_char('[')?;
    for i in 0..*n {
        if i > 0 {
            line.write_str(", ")?;
        }
        print_axis(line, rest, next, element)?;
    }
    line.write_char(']')
}

fn print_element(line: &mut Line, elem: Elem, bits: u64) -> fmt::Result {
    match elem {
        Elem::Bool => write!(line, "{}", bits != 0),
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 => write!(line, "{}", bits.cast_signed()),
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 => write!(line, "{bits}"),
        Elem::F64 => write!(line, "{}", f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 => {
            let single = (cast::cast(elem, Elem::F32).scalar)([bits, 0, 0]);
            write!(line, "{}", <f32 as Rep>::from_bits(single))
        }
    }
}
