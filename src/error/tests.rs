//! The texts of errors: the sentence, and the help on a line of its own.

use super::*;

/// Checks the text of an error: one sentence, and the help on a separate line.
fn check(error: &Error, sentence: &str, help: &str) {
    assert_eq!(error.to_string(), format!("{sentence}\n  help: {help}"));
    assert_eq!(format!("{error:?}"), error.to_string());
}

fn text(s: &str) -> String {
    s.to_owned()
}

#[test]
fn arguments_that_do_not_fit_name_the_kernel() {
    let why = BindError::Count { expected: 2, found: 1 };
    check(
        &Error::of_bind("gemm", why),
        "kernel `gemm`: the kernel takes 2 arguments, but this launch gives 1",
        "pass one argument per parameter, `None` for an absent optional tensor",
    );
    let why = BindError::GridAxes { found: 4 };
    assert!(matches!(Error::of_bind("gemm", why), Error::Grid { .. }));
}

#[test]
fn arguments_that_clash_are_both_named() {
    check(
        &Error::Alias { kernel: text("gemm"), written: text("c"), other: text("a") },
        "kernel `gemm`: `c` is written, but shares elements with `a`",
        "pass parts that do not overlap (`split_at_mut`), or a `.copy()`; a kernel that works in place takes the tensor once, by `&mut`, and \
         loads from it what it stores",
    );
    check(
        &Error::DeviceMismatch {
            kernel: text("gemm"),
            first: text("a"),
            first_device: Device::cpu(),
            second: text("`b`"),
            second_device: Device::cpu(),
        },
        &format!("kernel `gemm`: `a` is on {0}, but `b` is on {0}", Device::cpu()),
        "move one of them with `.to_device(&device)`",
    );
}

#[test]
fn errors_are_small_enough_to_return() {
    assert!(size_of::<Error>() < 128);
}

#[test]
fn what_memory_cannot_hold_says_how_much_was_asked() {
    check(
        &Error::ElementCount { found: 5, shape: vec![2, 3], expected: 6 },
        "5 elements were given for shape [2, 3], which needs 6",
        "pass as many elements as the product of the extents",
    );
    check(
        &Error::TooLarge { shape: vec![1 << 40, 1 << 40] },
        "a tensor of shape [1099511627776, 1099511627776] would have more than 2^63 - 1 elements or bytes",
        "check the extents",
    );
    check(
        &Error::OutOfMemory { bytes: 64, device: text("cpu"), free: None },
        "cpu is out of memory: it could not allocate 64 bytes",
        "drop tensors that are no longer needed, or use smaller ones",
    );
    check(
        &Error::OutOfMemory { bytes: 64, device: text("cuda:0"), free: Some((32, 128)) },
        "cuda:0 is out of memory: it could not allocate 64 bytes (32 of 128 bytes are free)",
        "drop tensors that are no longer needed, or use smaller ones",
    );
    check(
        &Error::Layout { operation: "slice", problem: text("3..9 is too long"), help: "give less" },
        "slice: 3..9 is too long",
        "give less",
    );
}

#[test]
fn devices_and_kernels_that_do_not_go_together_say_which() {
    let missing = |asked, (reason, help): (Option<&str>, Option<&'static str>)| Error::NoSuchDevice {
        asked_by: "TITAN_DEVICE",
        asked: text(asked),
        available: text("cpu"),
        reason: reason.map(text),
        help,
    };
    check(
        &missing("gpu", (None, None)),
        "TITAN_DEVICE is `gpu`, but the available devices are: cpu",
        "use `cpu`, or leave it unset; GPUs are named `cuda`, `cuda:N`, `hip` and `hip:N`",
    );
    check(
        &missing("CUDA:1", (Some("there is no driver"), Some("install it"))),
        "TITAN_DEVICE is `CUDA:1`, but the available devices are: cpu; there is no driver",
        "install it",
    );
    check(
        &missing("hip:7", (None, None)),
        "TITAN_DEVICE is `hip:7`, but the available devices are: cpu",
        "use `cpu`, or leave it unset; GPUs are named `cuda`, `cuda:N`, `hip` and `hip:N`",
    );
    check(
        &Error::Unsupported { kernel: text("k"), device: text("cpu"), reason: text("no f128") },
        "kernel `k` cannot run on cpu: no f128",
        "launch it on another device, such as `Device::cpu()`; `Device::best()` is the one that `TITAN_DEVICE` names",
    );
    check(
        &Error::Artifact { kernel: text("k"), reason: text("version 9") },
        "the compiled form of kernel `k` cannot be read: version 9",
        "use one version of all `titan-gpu` crates, and rebuild the crate of the kernel after `cargo clean -p`",
    );
}

#[test]
fn failures_of_a_run_say_where_and_have_their_source() {
    let location = Location { file: text("src/k.rs"), line: 7, column: 0 };
    let trap = Error::Trap { kernel: text("k"), message: text("off"), location, program: [1, 2, 3] };
    check(
        &trap,
        "kernel `k` stopped at src/k.rs:7 in program [1, 2, 3]: off",
        "the tensors that it writes may be partly written",
    );
    let once = Error::of_dependency("kernel `b`", trap);
    let twice = Error::of_dependency("`to_vec`", once);
    let line = twice.to_string();
    assert!(
        line.starts_with("`to_vec` did not run, because a launch that it depends on failed: kernel `k` stopped"),
        "{line}"
    );
    let source = std::error::Error::source(&twice).map(ToString::to_string);
    assert!(source.is_some_and(|s| s.starts_with("kernel `k` stopped")));
    let source = Arc::new(std::io::Error::other("no more"));
    check(
        &Error::Thread { source },
        "the operating system could not create a thread for a stream: no more",
        "use fewer streams, or raise the limit on threads",
    );
    check(
        &Error::Internal { doing: text("`to_vec`"), message: text("oops") },
        "`to_vec` failed inside of TITAN: oops",
        "this is a bug in TITAN; please report it with the kernel",
    );
}
