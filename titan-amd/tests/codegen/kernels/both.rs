//! A launch of a kernel in both ways: its code object in the emulator, and its lane IR evaluated. Both must leave the same bytes.

use crate::floats;
use crate::launch::{Ready, orders};
use crate::machine::{Machine, memory};
use crate::tensor::Tensor;
use titan_amd::emu::{DevicePtr, LocalAccess, Memory, Options};
use titan_core::ir::Elem;
use titan_core::lane::Func;
use titan_core::launch::abi::{self, Slot};

/// The arguments of a launch: its tensors, by parameter, and the bits of its scalars.
pub(crate) struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) tensors: &'a [Option<Tensor>],
    pub(crate) scalar: &'a dyn Fn(u32) -> u64,
}

/// The bytes of a report: room for a few records.
const REPORT: usize = 1 << 16;

fn report() -> Vec<u8> {
    let mut bytes = vec![0; REPORT];
    bytes[20..24].copy_from_slice(&(REPORT as u32 / 4 - 8).to_le_bytes());
    bytes
}

impl Launch<'_> {
    fn word(&self, slot: Slot, addresses: &[u64], report: u64) -> u64 {
        let tensor = |p: u32| self.tensors[p as usize].as_ref().expect("a tensor");
        match slot {
            Slot::Address(p) => addresses[p as usize] + tensor(p).skip as u64,
            Slot::Extent(p, axis) => tensor(p).extents[usize::from(axis)].into(),
            Slot::Stride(p, axis) => tensor(p).strides[usize::from(axis)].into(),
            Slot::Scalar { param, .. } => (self.scalar)(param),
            Slot::Report => report,
        }
    }

    fn programs(&self) -> impl Iterator<Item = [u32; 3]> + '_ {
        let [x, y, z] = self.grid;
        (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
    }

    /// The tensors after a launch in the emulator.
    pub(crate) fn emulated(&self, func: &Func, ready: &Ready, order: usize) -> Result<Vec<Vec<u8>>, String> {
        self.emulated_by(func, ready, &orders()[order % 3])
    }

    pub(crate) fn emulated_by(&self, func: &Func, ready: &Ready, options: &Options) -> Result<Vec<Vec<u8>>, String> {
        self.recorded(func, ready, options).map(|(tensors, _)| tensors)
    }

    /// The tensors after a launch in the emulator, and the accesses to the local data share.
    pub(crate) fn recorded(
        &self,
        func: &Func,
        ready: &Ready,
        options: &Options,
    ) -> Result<(Vec<Vec<u8>>, Vec<LocalAccess>), String> {
        let mut memory = Memory::new();
        let upload = |m: &mut Memory, name: &str, bytes: &[u8]| m.upload(name, bytes).map_err(|e| e.to_string());
        let mut places: Vec<DevicePtr> = Vec::new();
        for (i, tensor) in self.tensors.iter().enumerate() {
            let mut bytes = tensor.as_ref().map_or(Vec::new(), |t| t.bytes.clone());
            // Memory is allocated in words, which an update of half of one reads as a whole.
            bytes.resize(bytes.len().next_multiple_of(4).max(4), 0);
            places.push(upload(&mut memory, &format!("parameter {i}"), &bytes)?);
        }
        let told = upload(&mut memory, "the report", &report())?;
        let addresses: Vec<u64> = places.iter().map(|p| p.address()).collect();
        let (offsets, size) = abi::offsets(&func.slots);
        let mut args = vec![0; size];
        for (slot, at) in func.slots.iter().zip(offsets) {
            let word = self.word(*slot, &addresses, told.address()).to_le_bytes();
            args[at..at + slot.bytes()].copy_from_slice(&word[..slot.bytes()]);
        }
        let accesses = ready.run(self.grid, &args, &mut memory, options).map_err(|e| e.to_string())?;
        let len = |i: usize| self.tensors[i].as_ref().map_or(0, |t| t.bytes.len());
        let tensors: Result<_, String> =
            (0..places.len()).map(|i| memory.read(places[i], len(i)).map_err(|e| e.to_string())).collect();
        Ok((tensors?, accesses))
    }

    /// The tensors after an evaluation, and the complaints about the program.
    pub(crate) fn evaluated(&self, func: &Func) -> Result<Vec<Vec<u8>>, String> {
        let mut memory = memory::Memory::new();
        let mut places = Vec::new();
        for (i, tensor) in self.tensors.iter().enumerate() {
            let bytes = tensor.as_ref().map_or(vec![], |t| t.bytes.clone());
            places.push((memory.areas.len(), memory.add(&format!("parameter {i}"), bytes)));
        }
        let told = memory.add("the report", report());
        let addresses: Vec<u64> = places.iter().map(|p| p.1).collect();
        let slots = func.slots.iter().map(|slot| self.word(*slot, &addresses, told)).collect();
        let mut machine = Machine::new(func, slots, memory);
        machine.floats = Some(floats::results);
        machine.grid = self.grid;
        for program in self.programs() {
            machine.run(program);
        }
        if machine.ran_out() {
            return Err("too many steps".to_owned());
        }
        match machine.wrong.iter().next() {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(places.iter().map(|(area, _)| machine.memory.areas[*area].bytes.clone()).collect()),
        }
    }

    /// The first element that differs, where every NaN is like another.
    pub(crate) fn difference(&self, found: &[Vec<u8>], wanted: &[Vec<u8>]) -> Option<String> {
        for (i, tensor) in self.tensors.iter().enumerate() {
            let Some(tensor) = tensor else { continue };
            let size = (tensor.elem.bits() / 8).max(1) as usize;
            let (found, wanted) = (&found[i], &wanted[i]);
            let skip = tensor.skip.min(found.len());
            for (at, (a, b)) in found[skip..].chunks(size).zip(wanted[skip..].chunks(size)).enumerate() {
                if a != b && !(is_nan(tensor.elem, a) && is_nan(tensor.elem, b)) {
                    let extents = &tensor.extents;
                    return Some(format!(
                        "element {at} of parameter {i}, {} {extents:?}: {a:x?}, not {b:x?}",
                        tensor.elem
                    ));
                }
            }
        }
        None
    }
}

fn is_nan(elem: Elem, bytes: &[u8]) -> bool {
    let bits = bytes.iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    match elem {
        Elem::F64 => f64::from_bits(bits).is_nan(),
        Elem::F32 | Elem::Tf32 => f32::from_bits(bits as u32).is_nan(),
        Elem::F16 => bits & 0x7fff > 0x7c00,
        Elem::Bf16 => bits & 0x7fff > 0x7f80,
        Elem::E4m3 => bits & 0x7f == 0x7f,
        Elem::E5m2 => bits & 0x7f > 0x7c,
        _ => false,
    }
}
