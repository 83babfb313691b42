//! The runs of test programs: each once, and those that ask for a device again on other devices.

use super::build::{Built, Program};
use super::options::Options;
use super::{Group, Runner};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A run of a test program.
#[derive(Debug)]
pub(crate) struct Job {
    /// The package, the program, and the device if it is not the default.
    pub(crate) label: String,
    pub(crate) path: PathBuf,
    /// The program that runs it, if this system does not.
    pub(crate) runner: Option<PathBuf>,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// Arguments of its own.
    pub(crate) args: Vec<&'static str>,
}

impl Job {
    /// The same by another program.
    pub(crate) fn run_by(self, runner: &Runner) -> Job {
        let name = runner.program.file_name().unwrap_or_default().to_string_lossy();
        Job { label: format!("{} under {name}", self.label), runner: Some(runner.program.clone()), ..self }
    }
}

/// Tests in modules of this name choose their devices by themselves. On other devices they would do the same again, which the quick depth
/// leaves out.
const WITHOUT_NAMED: &[&str] = &["--skip", "named_devices::"];

/// The programs of the facade that ask for a device by its name.
const ON_DEVICES: [&str; 8] = [
    "language",
    "examples",
    "generic_host",
    "lang_semantics",
    "pipelines",
    "runtime_launch",
    "runtime_await",
    "runtime_lifetimes",
];

/// Those of them whose kernels have code for AMD's GPUs, which pipelines with roles have not.
const ON_AMD: [&str; 7] =
    ["language", "examples", "generic_host", "lang_semantics", "runtime_launch", "runtime_await", "runtime_lifetimes"];

/// Those whose subject is the order in which a device works, and not what kernels compute.
const ON_ORDERS: [&str; 3] = ["runtime_launch", "runtime_await", "runtime_lifetimes"];

/// A device on which tests run again.
struct Device {
    /// The value of `TITAN_DEVICE`.
    name: &'static str,
    driver: Driver,
    programs: &'static [&'static str],
    /// Tests that cannot run there, by parts of their names.
    without: &'static [&'static str],
}

/// The emulated driver through which a device is found.
#[derive(Clone, Copy)]
enum Driver {
    /// None: the program has the device itself.
    None,
    /// CUDA's, with this order and these GPUs.
    Cuda(&'static str, &'static str),
    /// HIP's, with this order.
    Hip(&'static str),
}

const fn emulated(name: &'static str, programs: &'static [&'static str]) -> Device {
    Device { name, driver: Driver::None, programs, without: &[] }
}

const fn cuda(order: &'static str, gpu: &'static str, programs: &'static [&'static str]) -> Device {
    Device { name: "cuda:0", driver: Driver::Cuda(order, gpu), programs, without: &[] }
}

const fn hip(order: &'static str, programs: &'static [&'static str]) -> Device {
    Device { name: "hip:0", driver: Driver::Hip(order), programs, without: NOT_ON_GFX942 }
}

/// Tests of kernels with roles, and of those whose programs need more shared memory, for which there is no code on gfx942; the programs' tests of
/// what is refused there list them.
const NOT_ON_GFX942: &[&str] = &["gemm_ws", "macros::roles"];

/// In the quick depth, the code for each target runs in the emulator, and the order of the runtime on the emulated drivers.
const QUICK: [Device; 6] = [
    emulated("emulator:sm_80", &["language", "examples", "generic_host", "lang_semantics"]),
    emulated("emulator:sm_90a", &["language", "examples", "lang_semantics", "pipelines"]),
    Device { without: NOT_ON_GFX942, ..emulated("emulator:gfx942", &["language", "lang_semantics"]) },
    cuda("late", "sm_80", &["generic_host", "runtime_launch", "runtime_lifetimes"]),
    cuda("random:2", "sm_90", &ON_ORDERS),
    hip("random:2", &["runtime_launch", "runtime_lifetimes"]),
];

/// Everything on the emulated devices and on a driver of each vendor, and the order of the runtime in random orders besides.
const FULL: [Device; 8] = [
    emulated("emulator:sm_80", &ON_DEVICES),
    emulated("emulator:sm_90a", &ON_DEVICES),
    Device { without: NOT_ON_GFX942, ..emulated("emulator:gfx942", &ON_AMD) },
    cuda("late", "sm_80", &ON_DEVICES),
    cuda("random:1", "sm_80", &ON_ORDERS),
    cuda("random:2", "sm_90", &ON_DEVICES),
    hip("late", &ON_AMD),
    hip("random:1", &ON_ORDERS),
];

/// The programs that run longest on two cores, in that order: they start first, so that the last minutes have no single one.
const LONGEST: [&str; 8] = ["hopper", "simulator", "shipped", "mutation", "explored", "ui", "emit", "sim"];

/// All runs that are asked for, the longest first.
pub(crate) fn plan(built: &Built, options: &Options) -> io::Result<Vec<Job>> {
    let mut jobs: Vec<Job> = built.programs.iter().map(|program| job(program, "", Vec::new())).collect();
    // Devices are the subject of these runs; who names a package or a test has the default device.
    if options.is_everything() {
        let devices = if options.full { &FULL[..] } else { &QUICK };
        let args: &[&str] = if options.full { &[] } else { WITHOUT_NAMED };
        for device in devices {
            jobs.extend(on_device(built, device, args)?);
        }
    }
    let rank = |job: &Job| {
        let name = job.label.split(' ').nth(1).unwrap_or_default();
        LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len())
    };
    jobs.sort_by_key(rank);
    Ok(jobs)
}

/// The runs of a group.
pub(crate) fn of_group(built: &Built, group: &Group) -> Vec<Job> {
    let programs = built.programs.iter().filter(|program| group.programs.contains(&program.name.as_str()));
    programs.map(|program| job(program, "", group.environment.clone())).collect()
}

fn job(program: &Program, suffix: &str, environment: Vec<(&'static str, OsString)>) -> Job {
    let package = program.package.strip_prefix("titan-gpu-").map_or(program.package.clone(), |p| format!("titan-{p}"));
    let label = format!("{package} {}{suffix}", program.name);
    Job {
        label,
        path: program.path.clone(),
        runner: None,
        folder: program.folder.clone(),
        environment,
        args: Vec::new(),
    }
}

fn on_device(built: &Built, device: &Device, args: &[&'static str]) -> io::Result<Vec<Job>> {
    let mut environment = vec![("TITAN_DEVICE", OsString::from(device.name))];
    let mut suffix = format!(" on {}", device.name);
    let place = |library: &Option<PathBuf>, folder: &str, name: &str| {
        // A driver is loaded by its name: it is placed where the loader looks first.
        library.as_deref().filter(|_| cfg!(target_os = "linux")).map(|library| place(library, folder, name)).transpose()
    };
    match device.driver {
        Driver::None => {}
        Driver::Cuda(order, gpu) => {
            let Some(folder) = place(&built.driver, "cuda-emulator", "libcuda.so.1")? else { return Ok(Vec::new()) };
            environment.push(("LD_LIBRARY_PATH", folder.into_os_string()));
            environment.push(("CUDA_EMULATOR_ORDER", order.into()));
            environment.push(("CUDA_EMULATOR_DEVICES", format!("{gpu}:sms=3:memory=256").into()));
            suffix = format!(" on {gpu} through the driver, {order}");
        }
        Driver::Hip(order) => {
            let Some(folder) = place(&built.hip, "hip-emulator", "libamdhip64.so.7")? else { return Ok(Vec::new()) };
            environment.push(("LD_LIBRARY_PATH", folder.into_os_string()));
            environment.push(("HIP_EMULATOR_ORDER", order.into()));
            suffix = format!(" on gfx942 through the runtime, {order}");
        }
    }
    let args: Vec<&'static str> =
        args.iter().copied().chain(device.without.iter().flat_map(|test| ["--skip", *test])).collect();
    let programs =
        built.programs.iter().filter(|p| p.package == "titan-gpu" && device.programs.contains(&p.name.as_str()));
    Ok(programs.map(|program| Job { args: args.clone(), ..job(program, &suffix, environment.clone()) }).collect())
}

/// Copies an emulated driver under the name of the real one; the folder.
fn place(library: &Path, folder: &str, name: &str) -> io::Result<PathBuf> {
    let folder = crate::tools::target()?.join(folder);
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(library, folder.join(name))?;
    Ok(folder)
}
