//! Rejects tokens that are nested too deeply: the passes of the macro and the parsers that it uses are recursive, and a stack
//! overflow would terminate the compiler.
//!
//! Nesting occurs in groups and in prefix forms (`- - x`, `if .. else if ..`, `A<A<..>>`): at most one level for each token up to
//! the next `;` or `,`. So an upper bound of the stack use of these tokens is added up along each path into the groups.

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Ident, Punct, Span, TokenStream, TokenTree};
use std::iter::Peekable;

/// The largest cost of a path, in units of about 256 bytes of stack of an optimized macro; an unoptimized one needs about four
/// times as much, and the compiler has 8 MiB. A sum of a thousand terms and a hundred nested parentheses are below the limit.
const MOST: usize = 6000;

/// The largest number of open `<`. Comparisons count too, up to the next operator that cannot occur in types.
const MOST_ANGLES: usize = 32;

/// A group that is being counted.
struct Level {
    tokens: Peekable<IntoIter>,
    /// The cost of the path to the group.
    base: usize,
    /// The cost of the tokens since the last separator in it.
    stretch: usize,
    /// Open `<`.
    angles: usize,
    /// Whether the previous token ends an operand, so that the next operator is binary.
    after_operand: bool,
}

impl Level {
    fn of(tokens: TokenStream, base: usize) -> Level {
        Level { tokens: tokens.into_iter().peekable(), base, stretch: 0, angles: 0, after_operand: false }
    }

    /// The cost of a keyword or name: keywords that precede an expression add a level.
    fn word(&mut self, word: &Ident) -> usize {
        let word = word.to_string();
        self.after_operand = false;
        match word.as_str() {
            "if" | "else" | "let" | "in" | "as" | "mut" | "for" | "while" | "loop" | "unsafe" | "match" => 6,
            "return" | "break" | "move" | "yield" | "async" | "const" | "static" | "dyn" | "impl" | "ref" | "box" => 40,
            _ => {
                self.after_operand = true;
                1
            }
        }
    }

    fn mark(&mut self, mark: &Punct) -> usize {
        let prefix = !std::mem::replace(&mut self.after_operand, false);
        match mark.as_char() {
            '<' => self.angles += 1,
            '>' => self.angles = self.angles.saturating_sub(1),
            ';' | '|' | '.' | '/' | '%' | '^' => self.angles = 0,
            '&' if prefix => self.angles = 0,
            _ => {}
        }
        match mark.as_char() {
            ';' | ',' => {
                self.stretch = 0;
                0
            }
            '|' => 32,
            _ if prefix => 16,
            '=' => 16,
            _ => 3,
        }
    }
}

/// The first place where tokens are nested too deeply.
pub(crate) fn exceeded(tokens: TokenStream) -> Option<Span> {
    let mut open = vec![Level::of(tokens, 0)];
    while let Some(level) = open.last_mut() {
        let Some(token) = level.tokens.next() else {
            open.pop();
            continue;
        };
        level.stretch += match &token {
            TokenTree::Ident(word) => level.word(word),
            TokenTree::Punct(mark) => level.mark(mark),
            TokenTree::Literal(_) => {
                level.after_operand = true;
                1
            }
            TokenTree::Group(g) if g.delimiter() == Delimiter::Brace => 92,
            TokenTree::Group(_) => 56,
        };
        let path = level.base + level.stretch;
        if path > MOST || level.angles > MOST_ANGLES {
            return Some(token.span());
        }
        if let TokenTree::Group(g) = token {
            level.after_operand = true;
            // A statement ends with its block, unless an `else` follows.
            let goes_on = matches!(level.tokens.peek(), Some(TokenTree::Ident(i)) if i == "else");
            if g.delimiter() == Delimiter::Brace {
                level.stretch = if goes_on { level.stretch - 92 } else { 0 };
            }
            open.push(Level::of(g.stream(), path));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::entry;
    use proc_macro2::TokenStream;

    fn tokens(text: &str) -> TokenStream {
        text.parse().unwrap_or_default()
    }

    /// Expands on a third of the compiler's stack.
    fn expanded(text: String) -> String {
        let run = move || {
            let out = entry::kernel(TokenStream::new(), tokens(&text)).to_string();
            entry::device(&TokenStream::new(), tokens(&text));
            entry::constant(&TokenStream::new(), tokens(&text.replacen("fn k(n: i32)", "const K: i32 =", 1)));
            out
        };
        std::thread::Builder::new().stack_size(3 << 20).spawn(run).expect("a thread").join().expect("no panic")
    }

    /// Nesting of any depth and kind is an error and not a stack overflow; nesting just below the limit is expanded.
    #[test]
    fn deep_nesting_is_refused() {
        let kinds: [(&str, &str, &str); 12] = [
            ("- ", "1", ""),
            ("(", "1", ")"),
            ("[1, ", "1", "]"),
            ("{ ; ", "1", "}"),
            ("1 + ", "1", ""),
            ("n < ", "1", ""),
            ("if n > 0 { 1 } else ", "{ 1 }", ""),
            ("|a| ", "1", ""),
            ("return ", "1", ""),
            ("f::<A<", "1", ">>()"),
            ("B<1, ", "1", ">"),
            ("a = ", "1", ""),
        ];
        for (open, middle, close) in kinds {
            for n in [1, 15, 31, 60, 100, 180, 350, 700, 1400, 50_000] {
                let nested = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
                let out = expanded(format!("fn k(n: i32) {{ let v = {nested}; }}"));
                assert!(n < 50_000 || out.contains("nested too deeply"), "{open}, {n} times");
                assert!(n > 15 || !out.contains("nested too deeply"), "{open}, {n} times");
            }
        }
    }

    #[test]
    fn long_sums_and_chains_are_kernels() {
        let sum = "n * 2 + ".repeat(500);
        let chain = "if n > 7 { 1 } else ".repeat(100);
        for value in [format!("{sum} 1"), format!("{chain} {{ 1 }}")] {
            let out = expanded(format!("fn k(y: &mut Tensor<i32, 1>, n: i32) {{ y.set([program_id(0)], {value}); }}"));
            assert!(!out.contains("compile_error"), "{}", &out[..400]);
        }
    }
}
