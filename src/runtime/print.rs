//! The output of kernels, from any device.

/// Prints a line of a kernel's output.
pub(super) fn print_line(line: &str) {
    #[cfg(feature = "cpu")]
    titan_cpu::print_line(&format!("{line}\n"));
    #[cfg(not(feature = "cpu"))]
    {
        use std::io::Write as _;
        // A closed output is not the kernel's fault.
        drop(writeln!(std::io::stdout().lock(), "{line}"));
    }
}
