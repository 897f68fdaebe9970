//! Enums whose values have words, for tables and for the files of saved runs.

/// Defines an enum, the list of its values, and their words.
macro_rules! worded {
    ($(#[$about:meta])* $kind:ident $($(#[$doc:meta])* $name:ident = $words:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $kind {
            $($(#[$doc])* $name,)*
        }
        impl $kind {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The value with these words.
            #[must_use]
            pub fn from_words(words: &str) -> Option<Self> {
                match words {
                    $($words => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $words,)* })
            }
        }
    };
}
pub(super) use worded;
