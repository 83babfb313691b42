//! tidy: table
//! The errors as a whole: every code has a page and a case, every case a twin that compiles, and no message speaks of what
//! users do not know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use titan_core::diag::{Code, Reporter};

/// A code that no Rust source reaches.
struct Elsewhere {
    code: Code,
    why: &'static str,
    /// Where it is broken and where it is not: files, and words in them. None: nothing breaks it, or nothing obeys it yet.
    fails: Option<(&'static str, &'static str)>,
    passes: Option<(&'static str, &'static str)>,
}

const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        code: Code::WrongTime,
        why: "only a text of tile IR writes times",
        fails: Some(("titan-core/filetests/verify/pipe_time_of_the_next.tir", "; error[T0614]")),
        passes: Some(("titan-core/filetests/verify/pipe_time_of_the_next.tir", "kernel @passes")),
    },
    Elsewhere {
        code: Code::NotFinalized,
        why: "only a text of tile IR can leave out what the macro writes at the end of each arm",
        fails: Some(("titan-core/filetests/verify/pipe_role_without_finalize.tir", "; error[T0619]")),
        passes: Some(("titan-core/filetests/verify/pipe_role_without_finalize.tir", "kernel @passes")),
    },
    Elsewhere {
        code: Code::NeverWritten,
        why: "kernels read shared memory only where the compiler has written it; a text of a barrier program reads what it likes",
        fails: Some(("titan-core/filetests/program/unwritten.tir", "; error[T0722]")),
        passes: Some(("titan-core/filetests/program/unwritten.tir", "kernel @written")),
    },
    Elsewhere {
        code: Code::StridedZeros,
        why: "only a text of tile IR states boxes and distances of elements",
        fails: Some(("titan-core/filetests/verify/barrier_strided_zeros.tir", "; error[T0906]")),
        passes: Some(("titan-core/filetests/verify/barrier_strided_zeros.tir", "kernel @strided")),
    },
    Elsewhere {
        code: Code::Structure,
        why: "only a text of tile IR can break a block",
        fails: Some(("titan-core/filetests/verify/terminator_missing.tir", "; error[T0802]")),
        passes: Some(("titan-core/filetests/verify/terminator_missing.tir", "kernel @passes")),
    },
    Elsewhere {
        code: Code::Visibility,
        why: "only a text of tile IR can use a value before it is defined",
        fails: Some(("titan-core/filetests/verify/visibility.tir", "; error[T0803]")),
        passes: Some(("titan-core/filetests/verify/visibility.tir", "kernel @passes")),
    },
    Elsewhere {
        code: Code::TypeAnnotation,
        why: "only a text of tile IR writes the types of results",
        fails: Some(("titan-core/filetests/text/error_type_annotation.tir", "; error[T0804]")),
        passes: Some(("titan-core/filetests/text/gemm.tir", " : tile<")),
    },
    Elsewhere {
        code: Code::Text,
        why: "the text form itself",
        fails: Some(("titan-core/filetests/text/error_unknown_op.tir", "; error[T0805]")),
        passes: Some(("titan-core/filetests/text/gemm.tir", "kernel @")),
    },
    Elsewhere {
        code: Code::ArtifactFormat,
        why: "bytes of another version, at run time",
        fails: Some(("titan-core/tests/artifact.rs", "fn damage_has_a_name()")),
        passes: Some(("titan-core/tests/artifact.rs", "fn an_artifact_reads_back()")),
    },
    Elsewhere {
        code: Code::GroupMma,
        why: "only a text of a barrier program states the operands of MMAs of warpgroups",
        fails: Some(("titan-nv/tests/hopper/why.rs", "Code::GroupMma")),
        passes: Some(("titan-nv/tests/hopper/why.rs", "assert_eq!(errors(good), [])")),
    },
    Elsewhere {
        code: Code::NoCode,
        why: "a warning: rustc prints it as the use of a deprecated constant",
        fails: Some(("ui-tests/ui/targets/no_code.stderr", "[T0907] there is no code for sm_90a")),
        passes: Some(("ui-tests/pass/targets/no_code.rs", "fn k")),
    },
    Elsewhere {
        code: Code::SimplerSchedule,
        why: "no kernel is known that causes it: such a kernel would show a defect to correct",
        fails: Some(("titan-macros/src/warning.rs", "[Code::SimplerSchedule]")),
        passes: Some(("tests/pipelines/main.rs", "fn none_is_compiled_to_barriers_that_cannot_be_verified")),
    },
    Elsewhere {
        code: Code::CodeNote,
        why: "a note, printed on request",
        fails: Some(("titan-macros/src/warning.rs", "[note, Code::SimplerSchedule, note, note]")),
        passes: Some(("titan-macros/src/warning.rs", "codes(false, &[])")),
    },
    Elsewhere {
        code: Code::ScheduleText,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/texts.rs", "Code::ScheduleText")),
        passes: Some(("titan-core/tests/schedule/texts.rs", "fn what_is_read_prints_back")),
    },
    Elsewhere {
        code: Code::ScheduleName,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/validation.rs", "Code::ScheduleName")),
        passes: Some(("titan-core/tests/schedule/validation.rs", "fn a_valid_graph_is_accepted")),
    },
    Elsewhere {
        code: Code::ScheduleNumber,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/validation.rs", "Code::ScheduleNumber")),
        passes: Some(("titan-core/tests/schedule/validation.rs", "fn a_valid_graph_is_accepted")),
    },
    Elsewhere {
        code: Code::ScheduleCircle,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/validation.rs", "Code::ScheduleCircle")),
        passes: Some(("titan-core/tests/schedule/validation.rs", "fn a_valid_graph_is_accepted")),
    },
    Elsewhere {
        code: Code::ScheduleSelfOverlap,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/validation.rs", "Code::ScheduleSelfOverlap")),
        passes: Some(("titan-core/tests/schedule/validation.rs", "fn a_valid_graph_is_accepted")),
    },
    Elsewhere {
        code: Code::ScheduleIllegal,
        why: "only the text of a dependence graph or of its schedule",
        fails: Some(("titan-core/tests/schedule/mutants.rs", "Code::ScheduleIllegal")),
        passes: Some(("titan-core/tests/schedule/mutants.rs", "fn the_schedules_themselves_are_legal")),
    },
    Elsewhere {
        code: Code::NoInstance,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/dispatch.rs", "[T1101] kernel `convert` has no instance")),
        passes: Some(("tests/generic_host/dispatch.rs", "fn values_choose_the_instance_for_typed_tensors")),
    },
    Elsewhere {
        code: Code::NotOfType,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/dynamic.rs", "[T1102] a tensor of type")),
        passes: Some(("tests/generic_host/dynamic.rs", "fn a_tensor_keeps_its_memory_when_it_gets_or_loses_its_type")),
    },
    Elsewhere {
        code: Code::TensorBytes,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/dynamic.rs", "[T1103] {n} bytes were given")),
        passes: Some(("tests/generic_host/dynamic.rs", "fn bytes_become_a_tensor_of_every_element_type")),
    },
    Elsewhere {
        code: Code::SafetensorsFile,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/safetensors.rs", "[T1104] the safetensors file is malformed")),
        passes: Some((
            "tests/generic_host/safetensors.rs",
            "fn files_of_the_library_are_read_with_every_element_type_that_titan_has",
        )),
    },
    Elsewhere {
        code: Code::SafetensorsElement,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/safetensors.rs", "[T1105] tensor `scales` has elements of type")),
        passes: Some((
            "tests/generic_host/safetensors.rs",
            "fn files_of_the_library_are_read_with_every_element_type_that_titan_has",
        )),
    },
    Elsewhere {
        code: Code::SafetensorsName,
        why: "values and files at run time",
        fails: Some(("tests/generic_host/safetensors.rs", "[T1106] the safetensors file has no tensor")),
        passes: Some((
            "tests/generic_host/safetensors.rs",
            "fn a_weight_of_a_file_goes_to_the_kernel_for_its_element_type",
        )),
    },
    Elsewhere {
        code: Code::ForeignGpu,
        why: "the machine on which a program runs",
        fails: Some(("hip-emulator/tests/kernels.rs", "[T1107] kernel `scaled` cannot run on hip:0")),
        passes: Some(("hip-emulator/tests/kernels.rs", "fn kernels_run_in_every_order")),
    },
    Elsewhere {
        code: Code::CodeObject,
        why: "files at run time",
        fails: Some(("hip-emulator/tests/kernels.rs", "[T1108] the code object cannot be loaded on hip:0")),
        passes: Some(("hip-emulator/tests/kernels.rs", "fn kernels_run_in_every_order")),
    },
    Elsewhere {
        code: Code::LaunchMemory,
        why: "the machine on which a program runs",
        fails: Some(("hip-emulator/tests/kernels.rs", "[T1109] kernel `vector_add` needs")),
        passes: Some(("hip-emulator/tests/kernels.rs", "fn kernels_run_in_every_order")),
    },
    Elsewhere {
        code: Code::HostUnwritten,
        why: "host code at run time",
        fails: Some(("tests/runtime_transfer.rs", "[T1110] elements that nothing has written are read")),
        passes: Some(("tests/runtime_transfer.rs", "fn tensors_are_made_filled_copied_and_read_on_every_device")),
    },
    Elsewhere {
        code: Code::HostCopy,
        why: "host code at run time",
        fails: Some(("tests/runtime_transfer.rs", "[T1111] copy_from: the source has the shape")),
        passes: Some(("tests/runtime_transfer.rs", "fn tensors_are_made_filled_copied_and_read_on_every_device")),
    },
    Elsewhere {
        code: Code::AxisView,
        why: "host code at run time",
        fails: Some(("tests/runtime_axes.rs", "[T1112] split_axis: axis 1 has extent 6")),
        passes: Some(("tests/runtime_axes.rs", "fn axes_are_divided_and_joined_like_reshapes")),
    },
    Elsewhere {
        code: Code::EventTime,
        why: "host code at run time",
        fails: Some(("tests/runtime_timing.rs", "[T1113] elapsed_since: ")),
        passes: Some(("tests/runtime_timing.rs", "fn an_event_is_over_when_what_is_before_it_has_run")),
    },
    Elsewhere {
        code: Code::Strided,
        why: "host code at run time",
        fails: Some(("tests/runtime_lent.rs", "[T1114] borrow_strided_mut: with strides")),
        passes: Some(("tests/runtime_lent.rs", "fn slices_are_borrowed_with_any_strides")),
    },
    Elsewhere {
        code: Code::Records,
        why: "files at run time",
        fails: Some(("tests/measurements/records.rs", "[T1121] the records of measurements: ")),
        passes: Some(("tests/measurements/records.rs", "fn a_file_is_read_and_written_as_a_whole")),
    },
    Elsewhere {
        code: Code::Measurement,
        why: "host code at run time",
        fails: Some(("tests/measurements/tune.rs", "[T1122] no instance is recorded: ")),
        passes: Some(("tests/measurements/tune.rs", "fn the_fastest_instance_wins_on_every_device")),
    },
    Elsewhere {
        code: Code::Capture,
        why: "host code at run time",
        fails: Some(("tests/graphs/refused.rs", "[T1123] `to_vec` cannot be captured into a graph: ")),
        passes: Some(("tests/graphs/replays.rs", "fn launches_are_captured_and_replayed_on_every_device")),
    },
    Elsewhere {
        code: Code::GraphUpdate,
        why: "host code at run time",
        fails: Some(("tests/graphs/refused.rs", "[T1124] the graph launches `fill` there, not `scale`")),
        passes: Some(("tests/graphs/replays.rs", "fn arguments_are_replaced_on_every_device")),
    },
    Elsewhere {
        code: Code::Foreign,
        why: "host code at run time",
        fails: Some((
            "cuda-emulator/tests/cuda_exchange.rs",
            "[T1120] borrow_dyn: the stream belongs to CUDA device 1",
        )),
        passes: Some(("cuda-emulator/tests/cuda_exchange.rs", "fn launches_run_on_streams_of_cudarc")),
    },
    Elsewhere {
        code: Code::Dlpack,
        why: "host code at run time",
        fails: Some(("tests/runtime_dlpack.rs", "[T1125] into_view: an element consists of 4 values")),
        passes: Some(("tests/runtime_dlpack.rs", "fn every_element_type_goes_out_and_comes_back")),
    },
    Elsewhere {
        code: Code::Internal,
        why: "no kernel is known that causes it: such a kernel would show a defect to correct",
        fails: None,
        passes: None,
    },
];

/// The codes of barriers, which only a text of tile IR states, and what breaks each and does not, of `filetests/verify`.
const BARRIERS: &[(Code, &str)] = &[
    (Code::RegionMade, "barrier_sizes"),
    (Code::BarrierWord, "barrier_words"),
    (Code::BarrierLife, "barrier_initialisation"),
    (Code::BarrierCount, "barrier_counts"),
    (Code::TxBytes, "barrier_bytes"),
    (Code::WaitParity, "barrier_parities"),
    (Code::NeverCompletes, "barrier_deadlocks"),
    (Code::GroupOpen, "barrier_store_in_no_group"),
    (Code::InFlightAtEnd, "barrier_copies_in_flight_at_the_end"),
    (Code::PhaseMixed, "barrier_arrives_twice_before_waiting"),
    (Code::NotShown, "barrier_not_shown"),
    (Code::FencePointless, "barrier_fence_between_one_proxy"),
    (Code::Participants, "barrier_participants"),
    (Code::GroupOrder, "barrier_token_out_of_order"),
    (Code::Unfenced, "barrier_fence_missing"),
    (Code::NoTensorMap, "barrier_copy_without_tensor_map"),
    (Code::TensorMma, "tensor_mma_scales"),
    (Code::TensorMmaShape, "tensor_mma_shape"),
    (Code::TensorColumns, "tensor_columns"),
    (Code::TensorThreads, "tensor_threads"),
    (Code::TensorUnfenced, "tensor_not_fenced"),
];

/// What no message may contain: names from inside the compiler, and types behind the language's own.
const DENIED: &[&str] = &[
    "T0901",
    "__titan",
    "__private",
    "TITAN_RUN",
    "titan_core",
    "titan_macros",
    "ITy",
    "FnLower",
    "TypeKind",
    "GenericArgValue",
    "ElemSlot",
    "InstanceValue",
    "OpKind",
    "%0",
    "please report",
    "panicked",
    "unused import",
    "unused variable",
    "Nothing",
    "{integer}` is not",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A text; empty if there is no such file, which the assertions then report.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The files of `ui/` or `pass/` with this extension, as `family/name`.
fn cases(folder: &str, extension: &str) -> BTreeSet<String> {
    let list = |dir: PathBuf| {
        fs::read_dir(dir).map(|d| d.filter_map(Result::ok).map(|e| e.path()).collect::<Vec<_>>()).unwrap_or_default()
    };
    let families = list(root().join(folder)).into_iter().filter(|p| p.is_dir());
    let files = families.flat_map(list).filter(|p| p.extension().is_some_and(|e| e == extension));
    let name =
        |p: PathBuf| Some(p.with_extension("").strip_prefix(root().join(folder)).ok()?.to_str()?.replace('\\', "/"));
    files.filter_map(name).filter(|n| !n.ends_with("/mod")).collect()
}

fn stderr(case: &str) -> String {
    read(&root().join("ui").join(case).with_extension("stderr"))
}

/// `ui/lang` is the same rules on the types alone, without kernels.
fn kernels() -> impl Iterator<Item = String> {
    cases("ui", "rs").into_iter().filter(|c| !c.starts_with("lang/"))
}

#[test]
fn every_code_has_a_page() {
    for code in Code::ALL {
        let page = read(&root().join(format!("../docs/errors/{code}.md")));
        assert!(page.starts_with(&format!("# {code}: {}\n", code.title())), "the title of docs/errors/{code}.md");
        assert!(page.contains("\n## Why\n"), "docs/errors/{code}.md does not say why the rule exists");
        let index = read(&root().join("../docs/errors/README.md"));
        assert!(
            index.contains(&format!("[{code}]({code}.md) | {} |", code.title())),
            "{code} in docs/errors/README.md"
        );
    }
}

#[test]
fn every_code_has_a_case() {
    let texts: Vec<String> = kernels().map(|c| stderr(&c)).collect();
    for code in Code::ALL {
        let shown = texts.iter().any(|t| t.contains(&format!("error: [{code}]")));
        if let Some((_, name)) = BARRIERS.iter().find(|(c, _)| c == code) {
            let text = read(&root().join(format!("../titan-core/filetests/verify/{name}.tir")));
            assert!(
                !shown && text.contains(&format!("; error[{code}]")) && text.contains("kernel @passes"),
                "{name} does not test {code}"
            );
            continue;
        }
        match (ELSEWHERE.iter().find(|e| e.code == *code), code.reporter()) {
            (Some(e), _) => {
                assert!(!shown, "{code} has a case now: strike it from the list ({})", e.why);
                for (file, words) in e.fails.iter().chain(&e.passes) {
                    assert!(
                        read(&root().join("..").join(file)).contains(words),
                        "{file} does not test {code}: no `{words}`"
                    );
                }
            }
            (None, Reporter::Titan | Reporter::TitanInKernels) => assert!(shown, "no case shows {code}"),
            (None, Reporter::Rustc) => {
                assert!(!shown, "{code} is rustc's to report");
                let page = read(&root().join(format!("../docs/errors/{code}.md")));
                let case = page.split("(../../ui-tests/ui/").nth(1).and_then(|t| t.split(".rs)").next());
                let case = case.unwrap_or("");
                assert!(!case.is_empty(), "docs/errors/{code}.md links no case");
                assert!(stderr(case).contains("error[E"), "rustc does not report {case}");
            }
        }
    }
}

#[test]
fn pages_show_what_their_cases_are() {
    for code in Code::ALL {
        let page = read(&root().join(format!("../docs/errors/{code}.md")));
        let Some(case) = page.split("(../../ui-tests/ui/").nth(1).and_then(|t| t.split(".rs)").next()) else {
            continue;
        };
        let blocks: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|b| b.split("```").next()).collect();
        for (folder, block) in ["ui", "pass"].into_iter().zip(blocks) {
            let source = read(&root().join(folder).join(case).with_extension("rs"));
            assert!(source.contains(block.trim_end()), "docs/errors/{code}.md differs from {folder}/{case}.rs");
        }
    }
}

#[test]
fn every_mistake_has_a_twin_without_it() {
    let twins = cases("pass", "rs");
    for case in kernels() {
        let lines = read(&root().join("ui").join(&case).with_extension("rs")).lines().count();
        assert!(lines <= 25, "ui/{case}.rs has {lines} lines; at most 25 show one rule");
        assert!(twins.contains(&case), "ui/{case}.rs has no twin in pass/");
    }
    for twin in twins {
        let (family, name) = twin.split_once('/').unwrap_or_default();
        let list = read(&root().join("pass").join(family).join("mod.rs"));
        let listed = list.contains(&format!("mod {name};")) || list.contains(&format!("\"{name}.rs\""));
        assert!(listed, "pass/{family}/mod.rs does not list {name}");
    }
}

/// The lines of a message without the place and the numbers of lines, which depend on the file.
fn without_places(message: &str) -> Vec<String> {
    let place = |line: &str| -> String {
        let line = line.trim();
        if line.starts_with("--> ") {
            return "-->".to_owned();
        }
        let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let line = if numbered.starts_with('|') { numbered } else { line };
        line.split_whitespace()
            .map(|word| word.trim_end_matches(':'))
            .filter(|w| w.parse::<u32>().is_err())
            .collect::<Vec<_>>()
            .join(" ")
    };
    message.lines().map(place).collect()
}

#[test]
fn readme_shows_what_is_printed() {
    let printed: Vec<_> = kernels().map(|case| without_places(&stderr(&case))).collect();
    let readme = read(&root().join("../README.md"));
    let shown: Vec<&str> = readme
        .split("```text\n")
        .skip(1)
        .filter_map(|block| block.split("```").next().filter(|b| b.starts_with("error")))
        .collect();
    assert!(shown.len() >= 3, "README.md shows {} messages", shown.len());
    for message in shown {
        let lines = without_places(message);
        let is_printed = printed.iter().any(|p| p.windows(lines.len()).any(|window| window == lines));
        assert!(is_printed, "no case prints this message of README.md:\n{message}");
    }
}

#[test]
fn messages_speak_of_what_users_wrote() {
    for case in cases("ui", "stderr") {
        let text = stderr(&case);
        for word in DENIED {
            assert!(!text.contains(word), "ui/{case}.stderr contains `{word}`");
        }
    }
}

#[test]
fn no_mistake_is_reported_twice() {
    for case in kernels() {
        let text = stderr(&case);
        let (ours, rustcs) = (text.matches("error: [T").count(), text.matches("error[E").count());
        assert!(ours == 0 || rustcs == 0, "ui/{case}.stderr: rustc repeats what TITAN reports");
        assert!(
            // Each of these has two mistakes.
            ours <= 1 && rustcs <= 1 || ["instances/listed_twice", "pipelines/left_by_both_roles"].contains(&&*case),
            "ui/{case}.stderr has more than one error"
        );
    }
}

#[test]
fn the_fifteen_are_all_there_and_rejected_with_help() {
    let readme = read(&root().join("README.md"));
    for n in 1..=15 {
        let starts = |c: &String| c.starts_with(&format!("fifteen/{n:02}_"));
        let (mistake, twin) =
            (cases("ui", "rs").into_iter().find(starts), cases("pass", "rs").into_iter().find(starts));
        let twin = twin.unwrap_or_default();
        let Some(mistake) = mistake else {
            assert!(
                n == 12 && readme.contains(&format!("| 12 | [an extent of 48](pass/{twin}.rs)")),
                "number {n} is not a case"
            );
            continue;
        };
        assert!(readme.contains(&format!("(ui/{mistake}.rs)")) && mistake == twin, "README.md does not list {mistake}");
        let text = stderr(&mistake);
        assert!(text.contains(&format!("--> ui/{mistake}.rs:")), "ui/{mistake}.stderr names no line");
        assert!(text.contains("help:") || text.contains("= note:"), "ui/{mistake}.stderr says nothing of what to do");
    }
}
