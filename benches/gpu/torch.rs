//! PyTorch as the vendor's side of attention and of products of 8-bit floats, where `python3` finds it: a process of its own that launches on
//! request, so that both sides run alternately. Its arguments have the same extents and the same distribution of numbers, but are not the
//! same memory.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use titan::Result;

const SCRIPT: &str = include_str!("torch.py");

/// The backends of `scaled_dot_product_attention` and the product, and their names in the table.
const BACKENDS: [(&str, &str); 4] = [
    ("FLASH_ATTENTION", "torch flash"),
    ("CUDNN_ATTENTION", "torch cuDNN"),
    ("EFFICIENT_ATTENTION", "torch efficient"),
    ("SCALED_MM", "torch"),
];

/// A side of a case: its name, and how so many launches are run and waited for.
pub(crate) type Run = (&'static str, Box<dyn FnMut(usize) -> Result<()>>);

/// The process; it ends with its input.
struct Torch {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Torch {
    /// Starts it; returns the backends that it has for this work. `None` without Python, PyTorch or a device.
    fn start(work: &[String]) -> Option<(Torch, String)> {
        let mut command = Command::new("python3");
        command.arg("-c").arg(SCRIPT).args(work);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take()?));
        let mut torch = Torch { child, input, output };
        let backends = torch.line().filter(|line| !line.is_empty())?;
        Some((torch, backends))
    }

    /// The next line that it prints; `None` if it has ended.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim().to_owned())
    }

    /// Runs so many launches, and waits for them.
    fn run(&mut self, backend: &str, times: usize) {
        let input = self.input.as_mut().expect("its input is open until it ends");
        writeln!(input, "{backend} {times}").expect("PyTorch reads what it is to do");
        assert_eq!(self.line().as_deref(), Some("done"), "PyTorch launches it");
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.wait());
    }
}

/// Attention by each of PyTorch's backends that can; none without PyTorch.
pub(crate) fn attention(shape: [usize; 4], causal: bool) -> Vec<Run> {
    let kind = if causal { "causal" } else { "full" };
    runs(&[&[kind.to_owned()], &shape.map(|n| n.to_string())[..]].concat())
}

/// The product of square matrices of 8-bit floats; none without PyTorch.
pub(crate) fn product(n: usize) -> Vec<Run> {
    runs(&["product".to_owned(), n.to_string()])
}

fn runs(work: &[String]) -> Vec<Run> {
    let Some((torch, found)) = Torch::start(work) else { return Vec::new() };
    let torch = Rc::new(RefCell::new(torch));
    let is_there = |(backend, _): &&(&'static str, &'static str)| found.split(' ').any(|name| name == *backend);
    let side = |(backend, name): &(&'static str, &'static str)| -> Run {
        let (torch, backend) = (Rc::clone(&torch), *backend);
        let run = move |times| {
            torch.borrow_mut().run(backend, times);
            Ok(())
        };
        (name, Box::new(run))
    };
    BACKENDS.iter().filter(is_there).map(side).collect()
}

/// Whether PyTorch can be compared with, in words.
pub(crate) fn words() -> String {
    let version = "import torch; print(torch.__version__ if torch.cuda.is_available() else '')";
    let said = Command::new("python3").arg("-c").arg(version).stderr(Stdio::null()).output().ok();
    let said = said.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).filter(|text| !text.is_empty());
    said.map_or_else(
        || "PyTorch cannot be used: attention and products of 8-bit floats are compared with nothing".to_owned(),
        |version| format!("PyTorch {version}"),
    )
}
