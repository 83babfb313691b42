//! Settings, from the environment.

/// When operations of streams run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As late as possible: when a wait needs them.
    Late,
    /// When they are enqueued, as soon as what they wait for has run.
    Early,
    /// By a seed.
    Random(u64),
}

/// Calls of a function that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) function: String,
    /// Which call, from 1.
    pub(crate) call: u64,
    /// Whether later ones fail too.
    pub(crate) later: bool,
    pub(crate) code: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) devices: Vec<String>,
    pub(crate) order: Order,
    pub(crate) fault: Option<Fault>,
    pub(crate) memory: usize,
}

impl Settings {
    /// The settings in the environment.
    #[expect(clippy::disallowed_methods, reason = "the library is set by the environment of the program that loads it")]
    pub(crate) fn read() -> Settings {
        let get = |name: &str| std::env::var(format!("HIP_EMULATOR_{name}")).ok();
        let devices = get("DEVICES").unwrap_or_else(|| "gfx942:sramecc+:xnack-".to_owned());
        let devices = devices.split(',').filter(|d| *d != "none").map(str::to_owned).collect();
        Settings {
            devices,
            order: get("ORDER").and_then(|o| order(&o)).unwrap_or(Order::Late),
            fault: get("FAULT").and_then(|f| fault(&f)),
            memory: get("MEMORY").and_then(|m| m.parse().ok()).unwrap_or(256 << 20),
        }
    }
}

fn order(text: &str) -> Option<Order> {
    match text {
        "late" => Some(Order::Late),
        "early" => Some(Order::Early),
        _ => text.strip_prefix("random:")?.parse().ok().map(Order::Random),
    }
}

fn fault(text: &str) -> Option<Fault> {
    let mut parts = text.split(':');
    let (function, call, code) = (parts.next()?.to_owned(), parts.next()?, parts.next()?.parse().ok()?);
    let later = call.ends_with('+');
    Some(Fault { function, call: call.trim_end_matches('+').parse().ok()?, later, code })
}
