//! The command line of the decoder, without a library: few options, each with one value at most.

use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
Generates tokens with a Llama-shaped decoder, every step a TITAN kernel.

    decoder [OPTIONS]

  --weights FILE     a safetensors file with the names of a Llama; without it, weights are made from a seed
  --head-dim N       the width of a head, which the file does not say: 64 or 128 (default 64)
  --rope-base X      the base of the rotary embedding (default 10000)
  --positions N      the longest sequence (default 1024)
  --tiny             of the two decoders whose weights are made, the tiny one
  --w4               weights of 4 bits in the layers
  --bf16             bf16 in the place of f16
  --prompt 1,2,3     a prompt, as numbers of tokens; may be repeated (default: four prompts of different lengths)
  --steps N          tokens to generate for each prompt (default 32)
  --device NAME      cpu, cuda:0, emulator:sm_80, .. (default: the best one)
  --check            compare every token with an independent implementation in f64
";

/// The options.
#[derive(Debug)]
pub struct Options {
    /// A file of weights.
    pub weights: Option<PathBuf>,
    /// The width of a head in that file.
    pub head_dim: usize,
    /// The base of the rotary embedding of that file.
    pub rope_base: f64,
    /// The longest sequence with that file.
    pub positions: usize,
    /// Whether the tiny decoder is made.
    pub tiny: bool,
    /// Whether the layers have weights of 4 bits.
    pub w4: bool,
    /// Whether the element type is bf16.
    pub bf16: bool,
    /// Prompts; none for the default ones.
    pub prompts: Vec<Vec<i32>>,
    /// Tokens for each prompt.
    pub steps: usize,
    /// The name of a device.
    pub device: Option<String>,
    /// Whether tokens are compared.
    pub check: bool,
    /// Whether only the help is printed.
    pub help: bool,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// If an option is unknown, or its value is missing or no number.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            weights: None,
            head_dim: 64,
            rope_base: 10_000.0,
            positions: 1024,
            tiny: false,
            w4: false,
            bf16: false,
            prompts: Vec::new(),
            steps: 32,
            device: None,
            check: false,
            help: false,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--weights" => options.weights = Some(value()?.into()),
                "--head-dim" => options.head_dim = number(&arg, &value()?)?,
                "--rope-base" => options.rope_base = number(&arg, &value()?)?,
                "--positions" => options.positions = number(&arg, &value()?)?,
                "--tiny" => options.tiny = true,
                "--w4" => options.w4 = true,
                "--bf16" => options.bf16 = true,
                "--prompt" => {
                    let tokens =
                        value()?.split(',').map(|token| number(&arg, token.trim())).collect::<Result<_, _>>()?;
                    options.prompts.push(tokens);
                }
                "--steps" => options.steps = number(&arg, &value()?)?,
                "--device" => options.device = Some(value()?),
                "--check" => options.check = true,
                "--help" | "-h" => options.help = true,
                other => return Err(format!("there is no option `{other}`; `--help` lists them")),
            }
        }
        Ok(options)
    }
}

fn number<N: std::str::FromStr>(option: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("`{option}` needs numbers, and `{text}` is none"))
}
