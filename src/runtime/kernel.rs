//! Kernels embedded in the executable: read at the first launch, and prepared for a device at the first launch there.

use super::backend::Code;
use super::device::{Device, Model};
use super::lock;
use super::recent::Recent;
use crate::error::{Error, Location, Result};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use titan_core::analysis::cover::needs;
use titan_core::artifact::{Artifact, ArtifactError, Variant};
use titan_core::ir::{Loc, Need};
use titan_core::text;
use titan_core::verify::{Verified, verify};

/// The target of the variant that every kernel has.
const CPU_TARGET: &str = "cpu";

/// An instance of a kernel as `#[titan::kernel]` embeds it, one per `static`.
pub struct KernelRef {
    name: &'static str,
    artifact: &'static [u8],
    file: &'static str,
    line: u32,
    column: u32,
    loaded: OnceLock<Result<Loaded>>,
}

/// A kernel that has been read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) kernel: Verified,
    /// The smallest grids that cover the outputs.
    pub(crate) needs: Vec<Need>,
    /// The name of the kernel with its instance.
    pub(crate) name: String,
    /// ``kernel `name` ``, for messages.
    pub(crate) title: Arc<str>,
    /// The embedded code, without the text form.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "hip", feature = "emulator")),
        expect(dead_code, reason = "only GPUs run them")
    )]
    pub(crate) variants: Vec<Variant>,
    /// The targets for which the kernel is not compiled, with the reason.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "hip", feature = "emulator")),
        expect(dead_code, reason = "only GPUs are told")
    )]
    pub(crate) refused: Vec<(String, String)>,
    /// The launches whose arguments need no further check.
    pub(crate) recent: Recent,
    /// The prepared code by model, not by device: devices may be dropped, and those of one model run the same code.
    codes: Mutex<Vec<(Model, Arc<Code>)>>,
}

impl KernelRef {
    /// A kernel whose compiled form is `artifact`, and whose name is at `line` and `column` of `file`, both from 1.
    #[must_use]
    pub const fn new(
        name: &'static str,
        artifact: &'static [u8],
        file: &'static str,
        [line, column]: [u32; 2],
    ) -> Self {
        KernelRef { name, artifact, file, line, column, loaded: OnceLock::new() }
    }

    /// The decoded kernel, read at the first call.
    pub(crate) fn loaded(&self) -> Result<&Loaded> {
        self.loaded.get_or_init(|| self.load()).as_ref().map_err(Clone::clone)
    }

    /// The location in the user's file of a location relative to the kernel's first line.
    pub(crate) fn location(&self, loc: Loc) -> Location {
        Location { file: self.file.to_owned(), line: loc.line_of_file(self.line), column: loc.column }
    }

    /// The name with the instance.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The embedded bytes.
    pub(crate) fn code(&self) -> &'static [u8] {
        self.artifact
    }

    /// The number of bytes that are embedded for the kernel.
    pub(crate) fn bytes(&self) -> usize {
        self.artifact.len()
    }

    /// The name with the instance, the location of the kernel, and the embedded artifact.
    pub(crate) fn embedded(&self) -> Result<(String, Location, Artifact)> {
        let broken = |reason| Error::Artifact { kernel: self.name.to_owned(), reason };
        let location = Location { file: self.file.to_owned(), line: self.line, column: self.column };
        Ok((self.name.to_owned(), location, self.artifact().map_err(broken)?))
    }

    fn load(&self) -> Result<Loaded> {
        let broken = |reason: String| Error::Artifact { kernel: self.name.to_owned(), reason };
        let artifact = self.artifact().map_err(broken)?;
        let source = source(&artifact).map_err(broken)?;
        let kernel = text::parse_one(&source).map_err(|errors| broken(first(&errors)))?;
        let kernel = verify(kernel).map_err(|errors| broken(first(&errors)))?;
        let name = kernel.sig.full_name();
        let title = format!("kernel `{name}`").into();
        let needs = needs(&kernel, kernel.partition());
        let Artifact { variants, refused, .. } = artifact;
        let (recent, codes) = (Recent::default(), Mutex::default());
        Ok(Loaded { kernel, needs, name, title, variants, refused, recent, codes })
    }

    /// Decodes the embedded bytes. Bytes that are not an artifact are the text form itself, which tests and tools write by hand.
    fn artifact(&self) -> std::result::Result<Artifact, String> {
        match Artifact::decode(self.artifact) {
            Ok(artifact) => Ok(artifact),
            Err(ArtifactError::NotAnArtifact) => {
                let cpu =
                    Variant { target: CPU_TARGET.to_owned(), payload: self.artifact.to_vec(), ..Variant::default() };
                Ok(Artifact { kernel: self.name.to_owned(), variants: vec![cpu], refused: Vec::new() })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The text form of the kernel, which is the variant for the CPU, and which also has the signature.
fn source(artifact: &Artifact) -> std::result::Result<String, String> {
    let cpu = artifact.variants.iter().find(|v| v.target == CPU_TARGET);
    let cpu = cpu.ok_or_else(|| "it has no variant for the CPU".to_owned())?;
    String::from_utf8(cpu.payload.clone()).map_err(|_| ArtifactError::NotAnArtifact.to_string())
}

/// The message of the first of several errors.
fn first<S>(errors: &[titan_core::diag::Diagnostic<S>]) -> String {
    errors.first().map_or_else(|| "it is broken".to_owned(), titan_core::diag::Diagnostic::text)
}

impl Loaded {
    /// The kernel prepared for a device, at the first call. A failure is not kept: it may be temporary.
    pub(crate) fn code(&self, device: &Device) -> Result<Arc<Code>> {
        let mut codes = lock(&self.codes);
        if let Some((_, code)) = codes.iter().find(|(model, _)| *model == device.model()) {
            return Ok(Arc::clone(code));
        }
        let code = Arc::new(Code::compile(device, self)?);
        codes.push((device.model(), Arc::clone(&code)));
        Ok(code)
    }
}

impl fmt::Debug for KernelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelRef({} at {}:{}, {} bytes)", self.name, self.file, self.line, self.artifact.len())
    }
}
