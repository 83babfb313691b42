//! The settings from the environment, or from [`crate`]'s `cuEmulatorSet`.

use crate::board::{Board, Fitted};
use crate::code::Code;

/// The time at which operations of streams run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As late as possible: when a wait needs them.
    Late,
    /// When they are enqueued.
    Early,
    /// At calls of the driver, in an order determined by the seed.
    Random(u64),
}

/// A call that is made to fail; with the code 0, it does nothing and returns success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) function: String,
    /// The number of the call, from 1.
    pub(crate) nth: u64,
    /// Whether all later calls fail too.
    pub(crate) onwards: bool,
    pub(crate) code: Code,
    /// The number of calls so far.
    pub(crate) seen: u64,
    /// The number of calls that have failed by request.
    pub(crate) struck: u64,
}

/// All settings.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) devices: Vec<Fitted>,
    pub(crate) order: Order,
    pub(crate) faults: Vec<Fault>,
    /// The functions that return that they are not supported.
    pub(crate) without: Vec<String>,
    /// The version that `cuDriverGetVersion` returns, such as 12080.
    pub(crate) version: u32,
    /// Whether reads of registers and memory that were never written are errors.
    pub(crate) strict: bool,
    /// Whether unordered accesses to shared memory are errors.
    pub(crate) races: bool,
    /// Whether every call is printed.
    pub(crate) log: bool,
    /// Settings that could not be parsed.
    pub(crate) wrong: Vec<String>,
}

/// The names of settings; environment variables have the prefix `CUDA_EMULATOR_`.
const KEYS: [&str; 9] = ["DEVICES", "ORDER", "FAULT", "WITHOUT", "VERSION", "POOLS", "STRICT", "RACES", "LOG"];
const MIB: u64 = 1 << 20;

impl Default for Setting {
    fn default() -> Self {
        Setting {
            devices: device("sm_80").into_iter().collect(),
            order: Order::Late,
            faults: Vec::new(),
            without: Vec::new(),
            version: 12_080,
            strict: true,
            races: true,
            log: false,
            wrong: Vec::new(),
        }
    }
}

impl Setting {
    /// The settings in the environment.
    pub(crate) fn of_environment() -> Setting {
        let mut setting = Setting::default();
        let mut given = Vec::new();
        for key in KEYS {
            if let Some(value) = std::env::var_os(format!("CUDA_EMULATOR_{key}")) {
                given.push((key, value.to_string_lossy().into_owned()));
            }
        }
        for (key, value) in given {
            if let Err(why) = setting.set(key, &value) {
                setting.wrong.push(format!("CUDA_EMULATOR_{key}={value}: {why}"));
            }
        }
        setting
    }

    /// Sets the value of a setting.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let items = || value.split(',').map(str::trim).filter(|s| !s.is_empty());
        match key {
            "DEVICES" => self.devices = items().map(device).collect::<Result<_, _>>()?,
            "ORDER" => self.order = order(value)?,
            "FAULT" => self.faults = items().map(fault).collect::<Result<_, _>>()?,
            "WITHOUT" => self.without = items().map(str::to_owned).collect(),
            "VERSION" => self.version = value.parse().map_err(|_| "a number such as 12080 is expected".to_owned())?,
            "POOLS" => {
                let pools = flag(value)?;
                self.devices.iter_mut().for_each(|d| d.pools = pools);
            }
            "STRICT" => self.strict = flag(value)?,
            "RACES" => self.races = flag(value)?,
            "LOG" => self.log = flag(value)?,
            _ => return Err(format!("there is no such setting; there are {}", KEYS.join(", "))),
        }
        Ok(())
    }

    /// The result with which a call fails by request, if it does.
    pub(crate) fn fault(&mut self, function: &str) -> Option<Code> {
        let mut found = None;
        for fault in self.faults.iter_mut().filter(|f| f.function == function) {
            fault.seen += 1;
            if fault.seen == fault.nth || fault.onwards && fault.seen > fault.nth {
                found = Some(fault.code);
                fault.struck += 1;
            }
        }
        found
    }

    /// The number of calls of a function that have failed by request.
    pub(crate) fn struck(&self, function: &str) -> u64 {
        self.faults.iter().filter(|f| f.function == function).map(|f| f.struck).sum()
    }
}

fn flag(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("0 or 1 is expected".to_owned()),
    }
}

fn order(value: &str) -> Result<Order, String> {
    match value.split_once(':') {
        None if value == "late" => Ok(Order::Late),
        None if value == "early" => Ok(Order::Early),
        Some(("random", seed)) => {
            seed.parse().map(Order::Random).map_err(|_| format!("`{seed}` is no seed: a number is expected"))
        }
        _ => Err("`late`, `early` or `random:SEED` is expected".to_owned()),
    }
}

/// Parses `function:nth:code`, or `function:nth+:code` for all calls from the nth on.
fn fault(text: &str) -> Result<Fault, String> {
    let wrong = || format!("`{text}`: `function:nth:code` is expected, `nth+` for all calls from the nth on");
    let parts: Vec<&str> = text.split(':').collect();
    let [function, nth, code] = parts[..] else { return Err(wrong()) };
    let (nth, onwards) = nth.strip_suffix('+').map_or((nth, false), |n| (n, true));
    Ok(Fault {
        function: function.to_owned(),
        nth: nth.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
        onwards,
        code: Code(code.parse().map_err(|_| wrong())?),
        seen: 0,
        struck: 0,
    })
}

/// Parses `sm_80`, perhaps with `:sms=4` and `:memory=64` (MiB).
fn device(text: &str) -> Result<Fitted, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let board = Board::named(name).ok_or_else(|| format!("`{name}` is none of {}", Board::names().join(", ")))?;
    let mut device = Fitted { board, sms: 3, memory: 256 * MIB, pools: true };
    for part in parts {
        let wrong = || format!("`{part}`: `sms=COUNT` or `memory=MEBIBYTES` is expected");
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let number: u32 = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
        match key {
            "sms" => device.sms = number,
            "memory" => device.memory = u64::from(number) * MIB,
            _ => return Err(wrong()),
        }
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_mistakes_are_told() {
        let mut setting = Setting::default();
        setting.set("DEVICES", "sm_80, sm_90:sms=7:memory=1").unwrap();
        assert_eq!(setting.devices.iter().map(|d| (d.board.capability, d.sms)).collect::<Vec<_>>(), [(80, 3), (90, 7)]);
        assert_eq!(setting.devices[1].memory, MIB);
        setting.set("ORDER", "random:7").unwrap();
        assert_eq!(setting.order, Order::Random(7));
        setting.set("FAULT", "cuMemAlloc_v2:2:2,cuLaunchKernel:1+:719").unwrap();
        let answers: Vec<_> = (0..3).map(|_| setting.fault("cuMemAlloc_v2").is_some()).collect();
        assert_eq!((answers, setting.struck("cuMemAlloc_v2")), (vec![false, true, false], 1));
        assert!((0..3).all(|_| setting.fault("cuLaunchKernel") == Some(Code::LAUNCH_FAILED)));
        for (key, value) in [
            ("DEVICES", "sm_70"),
            ("DEVICES", "sm_80:size=3"),
            ("ORDER", "soon"),
            ("ORDER", "random:x"),
            ("FAULT", "cuInit:0:1"),
            ("FAULT", "cuInit:1"),
            ("POOLS", "no"),
            ("COLOUR", "1"),
        ] {
            assert!(setting.set(key, value).is_err(), "{key}={value}");
        }
    }
}
