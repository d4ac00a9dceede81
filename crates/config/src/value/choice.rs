//! Settings that are one of a few words.

use super::{Kind, NotOfKind, Parse, quoted};

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal ),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $( $(#[$variant_meta])* $variant ),+ }

        impl $name {
            /// The word a person writes.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word ),+ }
            }
        }

        impl Parse for $name {
            const KIND: Kind = Kind::Choice(&[$($word),+]);

            fn parse(text: &str) -> Result<Self, NotOfKind> {
                match text.trim().to_lowercase().as_str() {
                    $( $word => Ok(Self::$variant), )+
                    _ => Err(NotOfKind),
                }
            }

            fn show(&self) -> String {
                quoted(self.word())
            }
        }
    };
}

choice! {
    /// Which layers run.
    Layer {
        /// Sources to bronze.
        Bronze = "bronze",
        /// Bronze to silver.
        Silver = "silver",
        /// Silver to gold.
        Gold = "gold",
        /// All, in phases.
        All = "all",
    }
}

choice! {
    /// How a run says what it is doing.
    LogFormat {
        /// Progress bars on a terminal, JSON lines otherwise.
        Auto = "auto",
        /// Progress bars.
        Progress = "progress",
        /// Lines for people.
        Text = "text",
        /// A JSON object a line.
        Json = "json",
    }
}

choice! {
    /// How rows are printed.
    Output {
        /// Drawn as a table.
        Table = "table",
        /// A JSON object a line.
        Json = "json",
        /// Comma-separated values with a header.
        Csv = "csv",
    }
}

choice! {
    /// What to do when the source no longer has what comes after the stored position.
    OnGap {
        /// Stop and name the missing range.
        Stop = "stop",
        /// Go on from the earliest record that is left.
        Earliest = "earliest",
        /// Go on from the end.
        Latest = "latest",
    }
}
