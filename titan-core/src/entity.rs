//! Typed indices into the arenas of a kernel: `u32` newtypes whose `Display` is the text syntax.
//!
//! There are no generational checks: an entity belongs to one kernel, and the verifier rejects invalid ones.

/// Declares an entity: `entity!(Value, "%")` prints as `%7`.
#[macro_export]
#[doc(hidden)]
macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The entity with this index.
            ///
            /// # Panics
            /// For indices above 2³² − 1, which no kernel reaches.
            #[must_use]
            pub fn new(index: usize) -> Self {
                $name(u32::try_from(index).expect("fewer than 2^32 entities"))
            }

            /// The index into the arena.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}
