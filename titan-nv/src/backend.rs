//! NVIDIA's GPUs as back ends of the compiler's driver.

use crate::lower::{EmitError, emit};
use crate::machine::Machine;
use crate::target::target;
use titan_core::driver::{Backend, Code};
use titan_core::lane::Func;
use titan_core::plan::LowerError;
use titan_core::target::Target;

impl Backend for Machine {
    fn target(&self) -> Target {
        target(self)
    }

    fn generates_code(&self) -> bool {
        true
    }

    fn emit(&self, func: &Func, source: Option<(&str, u32)>) -> Result<Code, LowerError> {
        let ptx = emit(func, self, source).map_err(|error| refused(func, error))?;
        let version = format!("{}.{}", ptx.version / 10, ptx.version % 10);
        let mut config = vec![("entry".to_owned(), ptx.entry), ("ptx".to_owned(), version)];
        config.extend(ptx.maker.map(|maker| ("maps".to_owned(), maker)));
        Ok(Code { payload: ptx.text.into_bytes(), config })
    }
}

fn refused(func: &Func, error: EmitError) -> LowerError {
    let whole = |message: String| LowerError::of_kernel(&func.name, message);
    match error {
        EmitError::Operation { kernel, target, op, why, loc } => {
            LowerError::no_instruction(&kernel, loc, target, &op, &why)
        }
        EmitError::Limit { target, why, .. } => whole(format!("{target} {why}")),
        EmitError::FileName { .. } | EmitError::Lane(_) | EmitError::Defect { .. } => whole(error.to_string()),
    }
}
