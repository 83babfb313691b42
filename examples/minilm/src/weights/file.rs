//! Tensors out of a safetensors file, each checked for its shape and element type.

use safetensors::{Dtype, SafeTensors};

use crate::Error;

/// A parsed file: the header, over borrowed bytes.
pub(super) struct File<'a>(SafeTensors<'a>);

impl<'a> File<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        SafeTensors::deserialize(bytes).map(Self).map_err(Error::NotSafetensors)
    }

    /// The elements of one tensor, row-major.
    pub(super) fn read(&mut self, name: &str, expected: &[usize]) -> Result<Vec<f32>, Error> {
        let missing = |_| Error::TensorMissing { name: name.to_owned(), expected: expected.to_owned() };
        let view = self.0.tensor(name).map_err(missing)?;
        if view.shape() != expected {
            let (expected, found) = (expected.to_owned(), view.shape().to_owned());
            return Err(Error::TensorShape { name: name.to_owned(), expected, found });
        }
        if view.dtype() != Dtype::F32 {
            return Err(Error::TensorType { name: name.to_owned(), found: view.dtype() });
        }
        let (elements, _rest) = view.data().as_chunks::<4>();
        Ok(elements.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::{Config, Weights};

    /// Writes the tensors of tiny random weights after `edit` had its way with (name, type, shape, bytes).
    fn written(edit: impl Fn(&mut String, &mut Dtype, &mut Vec<usize>)) -> Vec<u8> {
        let weights = Weights::random(&Config::TINY, 7);
        let tensors: Vec<_> = weights
            .tensors()
            .map(|tensor| {
                let bytes: Vec<u8> = tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect();
                let mut header = (tensor.name.clone(), Dtype::F32, tensor.shape.clone());
                edit(&mut header.0, &mut header.1, &mut header.2);
                (header, bytes)
            })
            .collect();
        let views = tensors.iter().map(|((name, dtype, shape), bytes)| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    #[test]
    fn a_written_file_reads_back_the_same() {
        let bytes = written(|_, _, _| ());
        assert_eq!(Weights::from_safetensors(&bytes, &Config::TINY).unwrap(), Weights::random(&Config::TINY, 7));
    }

    #[test]
    fn an_error_names_the_tensor_and_both_shapes() {
        type Edit<'a> = &'a dyn Fn(&mut String, &mut Dtype, &mut Vec<usize>);
        let cases: [(Edit<'_>, &str); 3] = [
            (
                &|name, _, shape| {
                    if name.ends_with("1.output.dense.weight") {
                        shape.reverse();
                    }
                },
                "`encoder.layer.1.output.dense.weight` has shape [40, 24], the configuration needs [24, 40]",
            ),
            (
                &|name, _, _| *name = name.replace("0.intermediate.dense.bias", "0.other"),
                "no tensor `encoder.layer.0.intermediate.dense.bias` of shape [40]",
            ),
            (
                &|name, dtype, _| {
                    if name == "embeddings.LayerNorm.bias" {
                        *dtype = Dtype::I32;
                    }
                },
                "`embeddings.LayerNorm.bias` has elements of type I32",
            ),
        ];
        for (edit, expected) in cases {
            let error = Weights::from_safetensors(&written(edit), &Config::TINY).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn bytes_of_another_format_are_refused() {
        let error = Weights::from_safetensors(b"not a tensor in sight", &Config::TINY).unwrap_err();
        assert!(matches!(error, Error::NotSafetensors(_)), "{error}");
    }
}
