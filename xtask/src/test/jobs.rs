//! The runs of test programs: each once, and those that ask for a device again on other devices.

use super::Group;
use super::build::{Built, Program};
use super::options::Options;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A run of a test program.
#[derive(Debug)]
pub(crate) struct Job {
    /// The package, the program, and the device if it is not the default.
    pub(crate) label: String,
    pub(crate) path: PathBuf,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// Arguments of its own.
    pub(crate) args: &'static [&'static str],
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

/// Those whose subject is the order in which a device works, and not what kernels compute.
const ON_ORDERS: [&str; 3] = ["runtime_launch", "runtime_await", "runtime_lifetimes"];

/// A device on which tests run again.
struct Device {
    /// The value of `TITAN_DEVICE`.
    name: &'static str,
    /// The order of the emulated CUDA driver, and its GPUs.
    driver: Option<(&'static str, &'static str)>,
    programs: &'static [&'static str],
}

/// In the quick depth, the code for both targets runs in the emulator, and the order of the runtime on the emulated driver.
const QUICK: [Device; 4] = [
    Device {
        name: "emulator:sm_80",
        driver: None,
        programs: &["language", "examples", "generic_host", "lang_semantics"],
    },
    Device {
        name: "emulator:sm_90a",
        driver: None,
        programs: &["language", "examples", "lang_semantics", "pipelines"],
    },
    Device {
        name: "cuda:0",
        driver: Some(("late", "sm_80")),
        programs: &["generic_host", "runtime_launch", "runtime_lifetimes"],
    },
    Device { name: "cuda:0", driver: Some(("random:2", "sm_90")), programs: &ON_ORDERS },
];

/// Everything on the emulated devices and on one driver, and the order of the runtime in random orders besides.
const FULL: [Device; 5] = [
    Device { name: "emulator:sm_80", driver: None, programs: &ON_DEVICES },
    Device { name: "emulator:sm_90a", driver: None, programs: &ON_DEVICES },
    Device { name: "cuda:0", driver: Some(("late", "sm_80")), programs: &ON_DEVICES },
    Device { name: "cuda:0", driver: Some(("random:1", "sm_80")), programs: &ON_ORDERS },
    Device { name: "cuda:0", driver: Some(("random:2", "sm_90")), programs: &ON_DEVICES },
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
    Job { label, path: program.path.clone(), folder: program.folder.clone(), environment, args: &[] }
}

fn on_device(built: &Built, device: &Device, args: &'static [&'static str]) -> io::Result<Vec<Job>> {
    let mut environment = vec![("TITAN_DEVICE", OsString::from(device.name))];
    let mut suffix = format!(" on {}", device.name);
    if let Some((order, gpu)) = device.driver {
        // The driver is loaded by its name: it is placed where the loader looks first.
        let Some(folder) = built.driver.as_deref().filter(|_| cfg!(target_os = "linux")).map(place).transpose()? else {
            return Ok(Vec::new());
        };
        environment.push(("LD_LIBRARY_PATH", folder.into_os_string()));
        environment.push(("CUDA_EMULATOR_ORDER", order.into()));
        environment.push(("CUDA_EMULATOR_DEVICES", format!("{gpu}:sms=3:memory=256").into()));
        suffix = format!(" on {gpu} through the driver, {order}");
    }
    let programs =
        built.programs.iter().filter(|p| p.package == "titan-gpu" && device.programs.contains(&p.name.as_str()));
    Ok(programs.map(|program| Job { args, ..job(program, &suffix, environment.clone()) }).collect())
}

/// Copies the emulated driver under the name of the real one; the folder.
fn place(driver: &Path) -> io::Result<PathBuf> {
    let folder = crate::tools::target()?.join("cuda-emulator");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(driver, folder.join("libcuda.so.1"))?;
    Ok(folder)
}
