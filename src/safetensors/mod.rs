//! Tensors of safetensors files, with the element types that the file gives them.
//!
//! A file is 8 bytes with the length of its header, the header, which is JSON, and the bytes of all tensors. Everything that the header says
//! is checked before a tensor is read, so that a file from elsewhere can do nothing but be refused. The bytes are borrowed, from a memory map
//! for example, and each tensor is copied once, to the memory of its device. Deliberately absent: writing files, and files in several parts.

mod header;

use crate::runtime::{Device, DynTensor};
use crate::{ElemType, Error, Result};
use std::fmt;

/// The element types of safetensors that TITAN has, and their names in a header.
const NAMES: [(&str, ElemType); 15] = [
    ("F64", ElemType::F64),
    ("F32", ElemType::F32),
    ("F16", ElemType::F16),
    ("BF16", ElemType::Bf16),
    ("F8_E4M3", ElemType::E4m3),
    ("F8_E5M2", ElemType::E5m2),
    ("I64", ElemType::I64),
    ("I32", ElemType::I32),
    ("I16", ElemType::I16),
    ("I8", ElemType::I8),
    ("U64", ElemType::U64),
    ("U32", ElemType::U32),
    ("U16", ElemType::U16),
    ("U8", ElemType::U8),
    ("BOOL", ElemType::Bool),
];

/// The names for messages.
pub(crate) const DTYPES: &str = "F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U64, U32, U16, U8, BOOL";

/// The help for files whose header does not describe its data.
const DAMAGED: &str = "the file is damaged, incomplete or not a safetensors file: obtain it again, or write it again with the `safetensors` library";

/// A safetensors file in memory.
///
/// ```
/// use titan::prelude::*;
/// use titan::safetensors::SafeTensors;
///
/// # fn main() -> titan::Result<()> {
/// let header = br#"{"scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}      "#;
/// let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// file.extend_from_slice(header);
/// file.extend([0.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()));
///
/// let file = SafeTensors::parse(&file)?;
/// let scale = file.load(&Device::cpu(), "scale")?;
/// assert_eq!((scale.elem(), scale.shape()), (titan::ElemType::F32, &[2][..]));
/// assert_eq!(scale.into_tensor::<f32, 1>()?.to_vec()?, [0.5, -2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SafeTensors<'a> {
    /// By name.
    tensors: Vec<Info>,
    data: &'a [u8],
}

/// The description of a tensor in a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its element type as the file names it, such as `BF16`.
    pub dtype: String,
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its first byte, and the one after its last, from the end of the header.
    bytes: (usize, usize),
}

impl Info {
    /// The element type; `None` if TITAN does not have it.
    #[must_use]
    pub fn elem(&self) -> Option<ElemType> {
        NAMES.iter().find(|(name, _)| *name == self.dtype).map(|(_, elem)| *elem)
    }
}

impl<'a> SafeTensors<'a> {
    /// Reads the header of a file, whose bytes are borrowed.
    ///
    /// # Errors
    /// If the file is malformed (T1104): a header that is incomplete or not the JSON of safetensors, a name that occurs twice; data of a tensor
    /// outside of the file, of another size than its shape has, at a place that is not a multiple of its element's size, or shared with
    /// another tensor; bytes that belong to no tensor. Element types that TITAN does not have are no error before such a tensor is loaded.
    pub fn parse(file: &'a [u8]) -> Result<Self> {
        let (length, rest) = file.split_first_chunk::<8>().ok_or_else(|| {
            malformed(format!("it has {} bytes, but the length of the header alone has 8", file.len()))
        })?;
        let length = u64::from_le_bytes(*length);
        let header = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n));
        let (header, data) = header.ok_or_else(|| {
            malformed(format!("its header has {length} bytes, but only {} follow in the file", rest.len()))
        })?;
        let mut tensors = header::tensors(header).map_err(malformed)?;
        tensors.iter().try_for_each(|t| has_its_size(t, data.len()))?;
        are_all_of_the_data(&mut tensors, data.len())?;
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(twice) = tensors.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(malformed(format!("there are two tensors `{}`", twice[0].name)));
        }
        Ok(SafeTensors { tensors, data })
    }

    /// The tensors, by name.
    #[must_use]
    pub fn tensors(&self) -> &[Info] {
        &self.tensors
    }

    /// The description of a tensor; `None` if there is none of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Info> {
        let at = self.tensors.binary_search_by(|t| t.name.as_str().cmp(name)).ok()?;
        self.tensors.get(at)
    }

    /// A tensor in the memory of a device, with the element type and shape of the file. Its bytes are copied once.
    ///
    /// # Errors
    /// If the file has no tensor of this name (T1106), or TITAN does not have its element type (T1105); the errors of
    /// [`DynTensor::from_bytes`].
    pub fn load(&self, device: &Device, name: &str) -> Result<DynTensor> {
        let Some(info) = self.get(name) else { return Err(self.no_such(name)) };
        let Some(elem) = info.elem() else {
            return Err(Error::SafetensorsElement { tensor: info.name.clone(), dtype: info.dtype.clone() });
        };
        let (first, end) = info.bytes;
        DynTensor::from_bytes(device, elem, &info.shape, &self.data[first..end])
    }

    fn no_such(&self, name: &str) -> Error {
        /// The number of names that a message shows.
        const SHOWN: usize = 8;
        // Those with the same last part first: a prefix such as `model.` is often different.
        let last = name.rsplit('.').next().unwrap_or(name);
        let (alike, others): (Vec<&Info>, Vec<&Info>) =
            self.tensors.iter().partition(|t| t.name.rsplit('.').next() == Some(last));
        let mut present: Vec<String> =
            alike.into_iter().chain(others).take(SHOWN).map(|t| format!("`{}`", t.name)).collect();
        if self.tensors.len() > SHOWN {
            present.push(format!("and {} more, which `tensors()` lists", self.tensors.len() - SHOWN));
        }
        let present = if present.is_empty() { "no tensors".to_owned() } else { present.join(", ") };
        Error::SafetensorsName { tensor: name.to_owned(), present }
    }
}

impl fmt::Debug for SafeTensors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafeTensors({} tensors, {} bytes)", self.tensors.len(), self.data.len())
    }
}

fn malformed(problem: String) -> Error {
    Error::SafetensorsFile { problem, help: DAMAGED }
}

/// Checks that the data of a tensor lies in the file, and is as large as its shape and element type say.
fn has_its_size(tensor: &Info, file: usize) -> Result<()> {
    let Info { name, dtype, shape, bytes: (first, end), .. } = tensor;
    if first > end || *end > file {
        let problem =
            format!("tensor `{name}` has data from byte {first} to byte {end}, but the file has {file} bytes of data");
        return Err(malformed(problem));
    }
    let Some(elem) = tensor.elem() else { return Ok(()) };
    let bytes = shape.iter().try_fold(elem.bits() as usize / 8, |n, extent| n.checked_mul(*extent));
    if bytes != Some(end - first) && !(shape.contains(&0) && first == end) {
        let expected = bytes.map_or_else(|| "more than memory can have".to_owned(), |n| format!("{n}"));
        let problem = format!(
            "tensor `{name}` of shape {shape:?} and type `{dtype}` has {} bytes of data, but needs {expected}",
            end - first
        );
        return Err(malformed(problem));
    }
    let size = elem.bits() as usize / 8;
    if first % size != 0 {
        let problem = format!(
            "the data of tensor `{name}` begins at byte {first}, which is not a multiple of the {size} bytes of a `{dtype}`"
        );
        let help = "write the file again with the `safetensors` library, which orders tensors so that all are aligned";
        return Err(Error::SafetensorsFile { problem, help });
    }
    Ok(())
}

/// Checks that the tensors share no bytes, and that every byte belongs to one, as the format demands.
fn are_all_of_the_data(tensors: &mut [Info], file: usize) -> Result<()> {
    tensors.sort_by_key(|t| t.bytes);
    let mut end = 0;
    for Info { name, bytes, .. } in tensors.iter() {
        if bytes.0 < end {
            return Err(malformed(format!(
                "tensor `{name}` begins at byte {}, in the data of another tensor",
                bytes.0
            )));
        }
        if bytes.0 > end {
            return Err(malformed(format!("bytes {end} to {} before tensor `{name}` belong to no tensor", bytes.0)));
        }
        end = bytes.1;
    }
    if end < file {
        return Err(malformed(format!("{} bytes at the end belong to no tensor", file - end)));
    }
    Ok(())
}
