//! Tensor maps. CUDA Driver API, "Tensor Map Object Managment".

use super::abi::within;
use super::host::{List, Out, Pointer};
use crate::code::{Code, Done};
use crate::say;
use titan_nv::tma::{Element, Fill, L2Promotion, MAX_RANK, Swizzle, TensorMap};

/// The compute capability, times ten, from which on devices have tensor maps.
const SINCE: u32 = 90;

/// The numbers that the driver accepts beyond those for which TITAN has maps: packed and rounded types, swizzles of larger units,
/// interleaved layouts.
const TYPES: u32 = 16;
const SWIZZLES: u32 = 7;
const INTERLEAVES: u32 = 3;

fn refuse<T>(why: &str) -> Done<T> {
    say(&format!("cuTensorMapEncodeTiled: {why}"));
    Err(Code::INVALID_VALUE)
}

/// The choice for a number below `known`; numbers that the driver accepts but this library does not are not supported.
fn choice<T>(what: &str, number: u32, known: u32, found: Option<T>) -> Done<T> {
    match found {
        Some(found) => Ok(found),
        None if number < known => {
            say(&format!("cuTensorMapEncodeTiled: {what} {number} is not emulated"));
            Err(Code::NOT_SUPPORTED)
        }
        None => refuse(&format!("there is no {what} {number}")),
    }
}

/// Reads the first elements of an array.
fn read<T: Copy>(name: &str, list: &List<T>, to: &mut [T]) -> Done {
    if list.is_null() && !to.is_empty() {
        return refuse(&format!("{name} is null"));
    }
    for (i, place) in to.iter_mut().enumerate() {
        *place = list.get(i)?;
    }
    Ok(())
}

within! {
    fn cuTensorMapEncodeTiled(
        map: Out<[u8; 128]>,
        element: u32,
        rank: u32,
        address: Pointer,
        extents: List<u64>,
        strides: List<u64>,
        box_extents: List<u32>,
        element_strides: List<u32>,
        interleave: u32,
        swizzle: u32,
        promotion: u32,
        fill: u32,
    ) = |session, context| {
        let device = i32::try_from(session.device_of(context)?).map_err(|_| Code::INVALID_DEVICE)?;
        if session.device(device)?.fitted.board.capability < SINCE {
            return refuse("the device has no tensor maps, which begin with compute capability 9.0");
        }
        if map.is_null() || !map.is_aligned(64) {
            return refuse("the place of the map is null, or not aligned to 64 bytes");
        }
        if address.raw().is_null() {
            return refuse("globalAddress is null");
        }
        let dims = rank as usize;
        if dims == 0 || dims > MAX_RANK {
            return refuse(&format!("a tensor map has 1 to 5 dimensions, not {rank}"));
        }
        let element = choice("element type", element, TYPES, Element::from_number(element))?;
        let mut new = TensorMap::tiled(element, address.address(), &[], &[], &[]);
        new.rank = u8::try_from(rank).unwrap_or(u8::MAX);
        read("globalDim", &extents, &mut new.extents[..dims])?;
        read("globalStrides", &strides, &mut new.strides[..dims - 1])?;
        read("boxDim", &box_extents, &mut new.box_extents[..dims])?;
        read("elementStrides", &element_strides, &mut new.element_strides[..dims])?;
        let layout = (interleave == 0).then_some(());
        choice("interleave", interleave, INTERLEAVES, layout)?;
        new.swizzle = choice("swizzle", swizzle, SWIZZLES, Swizzle::from_number(swizzle))?;
        new.l2 = choice("L2 promotion", promotion, 0, L2Promotion::from_number(promotion))?;
        new.fill = choice("fill", fill, 0, Fill::from_number(fill))?;
        if let Err(why) = new.check() {
            return refuse(&why.to_string());
        }
        map.set(new.to_bytes())
    }
}
