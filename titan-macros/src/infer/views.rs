//! Views of tensors: their axes, and whether they can be stored to.

use super::method::Call;
use super::{ITy, Infer, TensorTy};
use crate::method::Method;
use titan_core::diag::Code;
use titan_core::ir::Access;

impl Infer<'_> {
    pub(super) fn view(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        let axis = self.generic_const(call, 0);
        if self.takes(call, 1) {
            if method == Method::Index {
                self.index_expr(&call.args[0]);
            } else {
                match self.expr(&call.args[0]) {
                    ITy::Range | ITy::Unknown | ITy::Never => {}
                    other => self.wrong_kind(&ITy::Range, &other, call.args[0].span),
                }
            }
        }
        let Some(axis) = axis else { return ITy::Unknown };
        if !(0..i64::from(t.rank)).contains(&axis) {
            self.cx.error(Code::BadAxis, call.span(), format!("a tensor of rank {} has no axis {axis}", t.rank));
            return ITy::Unknown;
        }
        let reads = self.made_by(t, call);
        if method == Method::Slice {
            return ITy::Tensor(TensorTy { reads, ..t });
        }
        if t.rank == 1 {
            let title = format!("{} has no axis left after `index`", self.describe(&ITy::Tensor(t)));
            self.cx.error_help(Code::UnknownOp, call.span(), title, "`x.get([i])` reads one element");
            return ITy::Unknown;
        }
        ITy::Tensor(TensorTy { rank: t.rank - 1, reads, ..t })
    }

    /// `segment(off, e)`
    pub(super) fn segment(&mut self, t: TensorTy, call: &Call<'_>) -> ITy {
        if self.takes(call, 2) {
            self.offsets(&call.args[0]);
            self.index_expr(&call.args[1]);
        }
        let reads = self.made_by(t, call);
        ITy::Tensor(TensorTy { reads, ..t })
    }

    /// The method that made a read-only view of an output.
    fn made_by(&mut self, t: TensorTy, call: &Call<'_>) -> Option<&'static str> {
        let name = call.name.to_string();
        let (reads, writes) = match name.trim_end_matches("_mut") {
            "index" => ("index", "index_mut"),
            "slice" => ("slice", "slice_mut"),
            _ => ("segment", "segment_mut"),
        };
        if name != writes {
            return t.reads.or((t.access == Access::Mut).then_some(reads));
        }
        match (t.reads, t.access) {
            (Some(made_by), _) => self.read_only(made_by, call),
            (None, Access::In) => {
                let title = format!("`{writes}` needs an output, but this tensor is an input");
                let help = format!("use `{reads}` to read it, or make the parameter an output: `&mut Tensor<..>`");
                self.cx.error_help(Code::ReadView, call.span(), title, help);
            }
            (None, Access::Mut) => {}
        }
        None
    }
}
