//! The header of a safetensors file, which is JSON.

use super::Info;
use crate::json::{Read, Reader};

/// The tensors of a header, in its order; data about the file itself is skipped.
pub(super) fn tensors(header: &[u8]) -> Read<Vec<Info>> {
    const FORMAT: &str = "its header is not JSON of the format: ";
    let format = |problem: String| format!("{FORMAT}{problem}");
    let (mut tensors, mut unfit) = (Vec::new(), None);
    let mut reader = Reader::new(header);
    let read = reader.object(|reader, name| {
        if name == "__metadata__" {
            return reader.skip(0);
        }
        match tensor(reader, name)? {
            Ok(info) => tensors.push(info),
            Err(problem) => {
                unfit = Some(problem);
                return Err(String::new());
            }
        }
        Ok(())
    });
    match unfit {
        Some(problem) => Err(problem),
        None => read.and_then(|()| reader.end_of("the end of the header")).map_err(format).map(|()| tensors),
    }
}

/// A tensor; or what its members do not fit together in, which is no error of JSON.
fn tensor(reader: &mut Reader<'_>, name: String) -> Read<Read<Info>> {
    let (mut dtype, mut shape, mut bytes) = (None, None, None);
    reader.object(|reader, key| {
        match key.as_str() {
            "dtype" => dtype = Some(reader.string()?),
            "shape" => shape = Some(reader.numbers()?),
            "data_offsets" => bytes = Some(reader.numbers()?),
            _ => reader.skip(0)?,
        }
        Ok(())
    })?;
    let (Some(dtype), Some(shape), Some(bytes)) = (dtype, shape, bytes) else {
        return Ok(Err(format!("tensor `{name}` lacks one of `dtype`, `shape` and `data_offsets`")));
    };
    let [first, end] = bytes[..] else {
        return Ok(Err(format!("`data_offsets` of tensor `{name}` are {} numbers instead of 2", bytes.len())));
    };
    Ok(Ok(Info { name, dtype, shape, bytes: (first, end) }))
}
