//! tidy: table
//! Bank conflicts of the local data share, from the addresses of all lanes.
//!
//! The local data share has 32 banks of 4 bytes (ISA §11.1), and serves 128 bytes in a clock: an access of 64 lanes of 16 bytes takes at
//! least 8 clocks, its *phases*, in each of which 8 lanes are served. In a phase, different words of one bank are served one after the other, and
//! lanes that access the same word share it. The clocks beyond one in each phase are the *conflicts*.
//!
//! Which lanes are served together is not in the manual. Two models of it are here, and code without conflicts has none in both:
//!
//! | model | access | lanes of a phase |
//! |---|---|---|
//! | [`IN_ORDER`] | all | as many as have 128 bytes, in order |
//! | [`DOCUMENTED`] | loads of 16 bytes | 0–3 and 20–23, 4–7 and 16–19, 8–11 and 28–31, 12–15 and 24–27; likewise from lane 32 on |
//! | | stores of 16 bytes | 0–7, 8–15, and so on |
//! | | narrower ones | in order |
//!
//! **Example.** Lanes read 16 bytes of rows of 128 bytes, lane *i* the first ones of row *i* mod 16, as lanes 0 to 15 do for a fragment of a
//! tile without a swizzle. Every row begins in bank 0. In order, the first phase has 8 rows whose words 0 to 3 are in banks 0 to 3: it takes
//! 8 clocks instead of 1, 7 conflicts. If the 16 bytes of row *i* are exchanged with those at place *i* mod 8, 8 rows are in all banks, and
//! there are none.

/// The number of banks: ISA §11.1, "Overview".
const BANKS: usize = 32;
/// The bytes of a word, which a bank serves in a clock.
const WORD: u64 = 4;

/// The clocks of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Those that it takes without conflicts.
    pub least: u64,
    /// Those that it takes in addition.
    pub conflicts: u64,
}

/// An order of lanes that are served in an order of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    store: bool,
    /// The bytes that a lane accesses.
    bytes: u32,
    /// The first of four adjacent lanes each, in the order in which they are served.
    fours: [u8; 16],
}

/// A model of the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// The name of the model.
    pub name: &'static str,
    /// The orders of accesses whose lanes are not served one after the other.
    orders: &'static [Order],
}

/// All lanes in order, as the manual may be understood: ISA §11.1, 128 bytes in a clock.
pub const IN_ORDER: Phases = Phases { name: "in order", orders: &[] };

/// As AMD documents it for its library Composable Kernel ("Understanding AMD GPU LDS and Bank Conflicts", rocm.docs.amd.com, 2025; "Avoiding LDS Bank
/// Conflicts on AMD GPUs Using CK-Tile Framework", rocm.blogs.amd.com, 25 July 2025). Measurements of HipKittens on gfx950, which has 64 banks, agree:
/// each phase of 16 lanes there is two of these (`analysis/paper_experiments/phases/ds_read_b128`), and 8 bytes are loaded by lanes in order.
pub const DOCUMENTED: Phases = Phases {
    name: "documented",
    orders: &[Order { store: false, bytes: 16, fours: [0, 20, 4, 16, 8, 28, 12, 24, 32, 52, 36, 48, 40, 60, 44, 56] }],
};

/// All models.
pub const MODELS: [Phases; 2] = [IN_ORDER, DOCUMENTED];

impl Phases {
    /// The lanes in the order in which they are served.
    fn order(&self, store: bool, bytes: u32) -> Vec<u8> {
        match self.orders.iter().find(|order| order.store == store && order.bytes == bytes) {
            Some(order) => order.fours.iter().flat_map(|first| *first..*first + 4).collect(),
            None => (0..64).collect(),
        }
    }

    /// The clocks of an access of so many bytes by each of the lanes, at these addresses. Phases of lanes that are not active take a clock too.
    #[must_use]
    pub fn clocks(&self, store: bool, bytes: u32, addresses: &[(u8, u64)]) -> Clocks {
        let mut of_lane = [None; 64];
        for (lane, address) in addresses {
            if let Some(own) = of_lane.get_mut(usize::from(*lane)) {
                *own = Some(*address);
            }
        }
        let bytes = bytes.max(1);
        let at_once = (128 / bytes.max(4)).max(1) as usize;
        let mut clocks = Clocks::default();
        for lanes in self.order(store, bytes).chunks(at_once) {
            let words = lanes.iter().filter_map(|lane| of_lane[usize::from(*lane)]).flat_map(|address| {
                let last = address + u64::from(bytes) - 1;
                address / WORD..=last / WORD
            });
            let mut words: Vec<u64> = words.collect();
            words.sort_unstable();
            words.dedup();
            let mut in_bank = [0_u64; BANKS];
            for word in words {
                let bank = usize::try_from(word % BANKS as u64).unwrap_or(0);
                in_bank[bank] += 1;
            }
            clocks.least += 1;
            clocks.conflicts += in_bank.into_iter().max().unwrap_or(0).saturating_sub(1);
        }
        clocks
    }
}
