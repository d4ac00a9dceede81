//! A pull reader of JSON text: it hands out what is asked for and checks what it skips.
//!
//! Nothing is built in between (no tape, no map), so the cost of a value that no column needs is one pass over its bytes,
//! and a number is always at hand as it was written. What it accepts is RFC 8259, with a byte-order mark in front allowed
//! and a lone surrogate refused only where the text is really needed.

/// How deep objects and arrays may nest.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Why text is not JSON, with the byte position where that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The text ends in the middle.
    Short,
    /// Another character was due.
    Unexpected(usize),
    /// Nested deeper than [`DEPTH_MAX`].
    Deep(usize),
    /// Half of a surrogate pair, which no UTF-8 text can hold.
    LoneSurrogate,
}

impl Broken {
    /// The message for a person.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Short => "json text ends in the middle".to_owned(),
            Self::Unexpected(at) => format!("unexpected character in json at byte {at}"),
            Self::Deep(at) => format!("json nested deeper than {DEPTH_MAX} at byte {at}"),
            Self::LoneSurrogate => "json text with half of a surrogate pair".to_owned(),
        }
    }
}

/// The inside of a JSON string, escapes not yet resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The bytes between the quotes.
    pub raw: &'a [u8],
    /// Whether there is a backslash in them.
    pub escaped: bool,
}

impl<'a> Text<'a> {
    /// The text itself, resolved into `scratch` where it has escapes.
    pub(crate) fn resolve<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Broken>
    where
        'a: 's,
    {
        if !self.escaped {
            return Ok(self.raw);
        }
        scratch.clear();
        unescape(self.raw, scratch)?;
        Ok(scratch)
    }
}

/// A JSON number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number<'a> {
    /// As it was written.
    pub raw: &'a [u8],
    /// Its value where it is a whole number without exponent in the range of `i64`.
    pub integer: Option<i64>,
}

/// What a value begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// The word for it in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "text",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A place in JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of a text.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// At a byte of a text.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The same text, at an earlier byte.
    pub(crate) fn back_to(&self, at: usize) -> Self {
        Self { bytes: self.bytes, at }
    }

    /// The byte position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The bytes from a position up to here.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// The first byte of the next token, without taking it.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, Broken> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.peek_after_blanks(),
        }
    }

    #[cold]
    fn peek_after_blanks(&mut self) -> Result<u8, Broken> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(&byte) => return Ok(byte),
                None => return Err(Broken::Short),
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, byte: u8) -> Result<(), Broken> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(Broken::Unexpected(self.at))
        }
    }

    /// What the next value is.
    #[inline]
    pub(crate) fn kind(&mut self) -> Result<Kind, Broken> {
        Ok(match self.peek()? {
            b'"' => Kind::Text,
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'n' => Kind::Null,
            b't' | b'f' => Kind::Boolean,
            b'-' | b'0'..=b'9' => Kind::Number,
            _ => return Err(Broken::Unexpected(self.at)),
        })
    }

    /// Takes a `null` if the next value is one.
    #[inline]
    pub(crate) fn null(&mut self) -> Result<bool, Broken> {
        if self.peek()? != b'n' {
            return Ok(false);
        }
        self.word(b"null")?;
        Ok(true)
    }

    /// Takes a boolean.
    pub(crate) fn boolean(&mut self) -> Result<bool, Broken> {
        if self.peek()? == b't' {
            self.word(b"true")?;
            Ok(true)
        } else {
            self.word(b"false")?;
            Ok(false)
        }
    }

    #[inline]
    fn word(&mut self, word: &[u8]) -> Result<(), Broken> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            Ok(())
        } else if self.bytes.len() < self.at + word.len() {
            Err(Broken::Short)
        } else {
            Err(Broken::Unexpected(self.at))
        }
    }

    /// Takes a string.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Text<'a>, Broken> {
        self.take(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_length(self.bytes.get(self.at..).unwrap_or_default());
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let raw = self.bytes.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(Broken::Unexpected(self.at)),
                None => return Err(Broken::Short),
            }
        }
    }

    /// Takes one escape and checks its form.
    fn escape(&mut self) -> Result<(), Broken> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).ok_or(Broken::Short)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Broken::Unexpected(self.at));
                }
                self.at += 6;
            }
            Some(_) => return Err(Broken::Unexpected(self.at)),
            None => return Err(Broken::Short),
        }
        Ok(())
    }

    /// Takes a number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number<'a>, Broken> {
        self.peek()?;
        let start = self.at;
        let negative = self.bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let digits = self.at;
        let magnitude = self.magnitude();
        let count = self.at - digits;
        if count == 0 || (count > 1 && self.bytes.get(digits) == Some(&b'0')) {
            return Err(self.short_or_unexpected());
        }
        if let Some(b'.' | b'e' | b'E') = self.bytes.get(self.at) {
            self.fraction()?;
            return Ok(Number { raw: self.since(start), integer: None });
        }
        let raw = self.since(start);
        let integer = if count <= 18 {
            let magnitude = magnitude.cast_signed();
            Some(if negative { -magnitude } else { magnitude })
        } else {
            std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok())
        };
        Ok(Number { raw, integer })
    }

    /// Takes digits, eight at a time, and gives their value, which is right for up to 19 of them.
    #[inline(always)]
    fn magnitude(&mut self) -> u64 {
        let mut magnitude: u64 = 0;
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let (count, value) = eight_digits(u64::from_le_bytes(*chunk));
            magnitude = magnitude.wrapping_mul(TENS[count]).wrapping_add(value);
            self.at += count;
            if count < 8 {
                return magnitude;
            }
        }
        while let Some(byte @ b'0'..=b'9') = self.bytes.get(self.at) {
            magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        magnitude
    }

    /// Takes what may follow a number's whole part.
    fn fraction(&mut self) -> Result<(), Broken> {
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[cold]
    fn short_or_unexpected(&self) -> Broken {
        if self.at == self.bytes.len() { Broken::Short } else { Broken::Unexpected(self.at) }
    }

    fn skip_number(&mut self) -> Result<(), Broken> {
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'-'));
        let first = self.bytes.get(self.at).copied();
        let start = self.at;
        self.digits()?;
        if first == Some(b'0') && self.at > start + 1 {
            return Err(Broken::Unexpected(self.at));
        }
        self.fraction()
    }

    fn digits(&mut self) -> Result<(), Broken> {
        let start = self.at;
        let _ = self.magnitude();
        if self.at > start { Ok(()) } else { Err(self.short_or_unexpected()) }
    }

    /// Takes any value and checks its form.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        match self.peek()? {
            b'"' => self.text().map(drop),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b'n' => self.word(b"null"),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'{' | b'[' => self.skip_nested(1),
            _ => Err(Broken::Unexpected(self.at)),
        }
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken::Deep(self.at));
        }
        if self.peek()? == b'{' {
            let mut members = self.object()?;
            while self.member(&mut members)?.is_some() {
                self.skip_at(depth)?;
            }
        } else {
            let mut elements = self.array()?;
            while self.element(&mut elements)? {
                self.skip_at(depth)?;
            }
        }
        Ok(())
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), Broken> {
        match self.peek()? {
            b'{' | b'[' => self.skip_nested(depth + 1),
            _ => self.skip(),
        }
    }

    /// Takes any value and gives its text.
    pub(crate) fn raw(&mut self) -> Result<&'a [u8], Broken> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(self.since(start))
    }

    /// Enters an object.
    #[inline]
    pub(crate) fn object(&mut self) -> Result<Members, Broken> {
        self.take(b'{')?;
        Ok(Members { first: true })
    }

    /// Takes the next key of an object and its colon; `None` = the object has ended and is left.
    #[inline]
    pub(crate) fn member(&mut self, members: &mut Members) -> Result<Option<Text<'a>>, Broken> {
        if !self.more(b'}', &mut members.first)? {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// Takes a whole number of at most 18 digits that a member or element ends behind. `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn small_integer(&mut self) -> Option<i64> {
        let negative = self.bytes.get(self.at) == Some(&b'-');
        let start = self.at + usize::from(negative);
        let window: &[u8; WINDOW] = self.bytes.get(start..)?.first_chunk()?;
        let [first, second, third] = words(window);
        let (mut count, mut magnitude) = eight_digits(first);
        let mut behind = first >> (8 * count.min(7));
        if count == 8 {
            let (more, value) = eight_digits(second);
            magnitude = magnitude * TENS[more] + value;
            behind = second >> (8 * more.min(7));
            count += more;
            if more == 8 {
                let (more, value) = eight_digits(third);
                if more > 2 {
                    return None;
                }
                magnitude = magnitude * TENS[more] + value;
                behind = third >> (8 * more);
                count += more;
            }
        }
        let leading_zero = first as u8 == b'0' && count != 1;
        if count == 0 || leading_zero || !matches!(behind as u8, b',' | b'}' | b']') {
            return None;
        }
        self.at = start + count;
        let magnitude = magnitude.cast_signed();
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Takes a string without escapes. `None` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn plain_text(&mut self) -> Option<&'a [u8]> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            let word = u64::from_le_bytes(*self.bytes.get(end..)?.first_chunk()?);
            let found = special(word);
            if found == 0 {
                end += 8;
                continue;
            }
            let bit = found.trailing_zeros() & !7;
            if (word >> bit) as u8 != b'"' {
                return None;
            }
            end += (bit / 8) as usize;
            break;
        }
        self.at = end + 1;
        self.bytes.get(start..end)
    }

    /// Takes a string of exactly so many characters, whatever they are. `None` = it is not so long, nothing taken.
    #[inline(always)]
    pub(crate) fn text_of_length<const LENGTH: usize>(&mut self) -> Option<&'a [u8; LENGTH]> {
        let rest = self.bytes.get(self.at..)?;
        if rest.first() != Some(&b'"') || rest.get(LENGTH + 1) != Some(&b'"') {
            return None;
        }
        let text = rest.get(1..)?.first_chunk::<LENGTH>()?;
        self.at += LENGTH + 2;
        Some(text)
    }

    /// Takes a string with none but the short escapes and appends it. `false` = something else, nothing taken, but `out` may
    /// have grown.
    #[inline(always)]
    pub(crate) fn copy_text(&mut self, out: &mut Vec<u8>) -> bool {
        if self.bytes.get(self.at) != Some(&b'"') {
            return false;
        }
        let mut end = self.at + 1;
        loop {
            let Some(chunk) = self.bytes.get(end..).and_then(<[u8]>::first_chunk::<8>) else { return false };
            let word = u64::from_le_bytes(*chunk);
            let found = special(word);
            // Whole chunks are copied, what is too much is cut off again.
            out.extend_from_slice(chunk);
            if found == 0 {
                end += 8;
                continue;
            }
            let bit = found.trailing_zeros() & !7;
            let length = (bit / 8) as usize;
            out.truncate(out.len() - 8 + length);
            end += length;
            match (word >> bit) as u8 {
                b'"' => break,
                b'\\' => {
                    let Some(meant) = self.bytes.get(end + 1).and_then(|letter| short_escape(*letter)) else { return false };
                    out.push(meant);
                    end += 2;
                }
                _ => return false,
            }
        }
        self.at = end + 1;
        true
    }

    /// Takes digits of a number of at most 16 and what is expected behind them, up to eight bytes.
    #[inline(always)]
    pub(crate) fn digits_before(&mut self, behind: &[u8]) -> Option<u64> {
        let window: &[u8; WINDOW] = self.bytes.get(self.at..)?.first_chunk()?;
        let [first, second, _] = words(window);
        let (mut count, mut value) = eight_digits(first);
        if count == 8 {
            let (more, low) = eight_digits(second);
            value = value * TENS[more] + low;
            count += more;
        }
        if !matches!(count, 1..16) || !self.bytes.get(self.at + count..)?.starts_with(behind) {
            return None;
        }
        self.at += count + behind.len();
        Some(value)
    }

    /// Takes what is expected, if it comes.
    #[inline(always)]
    pub(crate) fn literal(&mut self, text: &[u8]) -> bool {
        let here = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if here {
            self.at += text.len();
        }
        here
    }

    /// Takes what is expected, if it comes; for texts of no fixed length that are mostly longer than a word.
    #[inline(always)]
    pub(crate) fn literal_run(&mut self, text: &[u8]) -> bool {
        const BLOCK: usize = 16;
        let Some(here) = self.bytes.get(self.at..self.at + text.len()) else { return false };
        let same = match (here.last_chunk::<BLOCK>(), text.last_chunk::<BLOCK>()) {
            (Some(last), Some(expected)) => {
                let blocks = here.as_chunks::<BLOCK>().0.iter().zip(text.as_chunks::<BLOCK>().0);
                blocks.fold(last == expected, |same, (block, expected)| same & (block == expected))
            }
            _ => here == text,
        };
        self.at += if same { text.len() } else { 0 };
        same
    }

    /// Takes a short number, a string without escapes or `null`. `false` = something else, nothing taken.
    #[inline(always)]
    pub(crate) fn skip_plain(&mut self) -> bool {
        match self.bytes.get(self.at) {
            Some(b'"') => self.plain_text().is_some(),
            Some(b'1'..=b'9') => {
                let mut end = self.at;
                while let Some(chunk) = self.bytes.get(end..).and_then(<[u8]>::first_chunk) {
                    let count = digit_count(u64::from_le_bytes(*chunk));
                    end += count;
                    if count < 8 {
                        break;
                    }
                }
                while let Some(b'0'..=b'9') = self.bytes.get(end) {
                    end += 1;
                }
                let ends = matches!(self.bytes.get(end), Some(b',' | b'}' | b']'));
                if ends {
                    self.at = end;
                }
                ends
            }
            Some(b'n') => self.word(b"null").is_ok(),
            _ => false,
        }
    }

    /// Takes what is expected, byte by byte, if it comes.
    #[inline(always)]
    pub(crate) fn expect(&mut self, token: &Token) -> bool {
        let here = token.is_at(self.bytes, self.at);
        if here {
            self.at += token.bytes.len();
        }
        here
    }

    /// Takes one byte, if it comes at once.
    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) -> bool {
        let here = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(here);
        here
    }

    /// How many bytes from here on are those of another text from `from` on.
    #[inline]
    pub(crate) fn common(&self, other: &[u8], from: usize) -> usize {
        const BLOCK: usize = 16;
        let (mine, theirs) = (self.bytes.get(self.at..).unwrap_or_default(), other.get(from..).unwrap_or_default());
        let blocks = mine.as_chunks::<BLOCK>().0.iter().zip(theirs.as_chunks::<BLOCK>().0);
        let same = BLOCK * blocks.take_while(|(mine, theirs)| mine == theirs).count();
        let (mine, theirs) = (mine.get(same..).unwrap_or_default(), theirs.get(same..).unwrap_or_default());
        match (mine.first_chunk::<BLOCK>(), theirs.first_chunk::<BLOCK>()) {
            (Some(mine), Some(theirs)) => {
                let differing = u128::from_le_bytes(*mine) ^ u128::from_le_bytes(*theirs);
                same + (differing.trailing_zeros() / 8) as usize
            }
            _ => same + mine.iter().zip(theirs).take_while(|(mine, theirs)| mine == theirs).count(),
        }
    }

    /// The same text, so many bytes ahead.
    #[inline(always)]
    pub(crate) fn ahead(&self, bytes: usize) -> Self {
        Self { bytes: self.bytes, at: self.at + bytes }
    }

    /// Goes on by so many bytes that have been looked at.
    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Takes a key and its colon.
    pub(crate) fn key(&mut self) -> Result<Text<'a>, Broken> {
        let key = self.text()?;
        self.take(b':')?;
        Ok(key)
    }

    /// Enters an array.
    pub(crate) fn array(&mut self) -> Result<Elements, Broken> {
        self.take(b'[')?;
        Ok(Elements { first: true })
    }

    /// Whether another element follows; `false` = the array has ended and is left.
    pub(crate) fn element(&mut self, elements: &mut Elements) -> Result<bool, Broken> {
        self.more(b']', &mut elements.first)
    }

    #[inline(always)]
    fn more(&mut self, close: u8, first: &mut bool) -> Result<bool, Broken> {
        let byte = self.peek()?;
        if byte == close {
            // `[1,]` does not come here: after a comma a value is due, and a closing bracket begins none.
            self.at += 1;
            return Ok(false);
        }
        if *first {
            *first = false;
        } else if byte == b',' {
            self.at += 1;
            if self.peek()? == close {
                return Err(Broken::Unexpected(self.at));
            }
        } else {
            return Err(Broken::Unexpected(self.at));
        }
        Ok(true)
    }

    /// Takes a closing brace.
    pub(crate) fn close_object(&mut self) -> Result<(), Broken> {
        self.take(b'}')
    }

    /// That nothing but blanks follows.
    pub(crate) fn end(&mut self) -> Result<(), Broken> {
        match self.peek() {
            Err(_) => Ok(()),
            Ok(_) => Err(Broken::Unexpected(self.at)),
        }
    }
}

/// A key in JSON text without blanks, with its quotes, its colon and what stands before it, made for being compared quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    bytes: Vec<u8>,
    /// Its first 16 bytes, zeros behind it.
    words: [u64; 2],
    /// The bits of `words` that count.
    masks: [u64; 2],
}

const WORDS: usize = 3;
const WINDOW: usize = WORDS * 8;
/// The bytes of a token that two words hold.
const HEAD: usize = 16;

impl Token {
    /// The token of a key whose inside, escapes included, is this: quotes and colon added, and in front what comes before it,
    /// an opening brace or a comma.
    pub(crate) fn of_key(first: bool, raw: &[u8]) -> Self {
        Self::new([if first { b"{\"" } else { b",\"" }, raw, b"\":"].concat())
    }

    fn new(bytes: Vec<u8>) -> Self {
        let mut window = [0; WINDOW];
        let mut mask = [0; WINDOW];
        for (at, byte) in bytes.iter().enumerate().take(HEAD) {
            window[at] = *byte;
            mask[at] = 0xff;
        }
        let ([first, second, _], [first_mask, second_mask, _]) = (words(&window), words(&mask));
        Self { words: [first, second], masks: [first_mask, second_mask], bytes }
    }

    #[inline(always)]
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let Some(window) = text.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>) else { return self.is_at_end(text, at) };
        let here = words(window);
        let mut differing = 0;
        for ((here, mask), word) in here.iter().zip(&self.masks).zip(&self.words) {
            differing |= (here & mask) ^ word;
        }
        differing == 0 && (self.bytes.len() <= HEAD || self.is_at_end(text, at))
    }

    fn is_at_end(&self, text: &[u8], at: usize) -> bool {
        text.get(at..).is_some_and(|rest| rest.starts_with(&self.bytes))
    }
}

#[inline(always)]
fn words(window: &[u8; WINDOW]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, chunk) in words.iter_mut().zip(window.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

/// Where in an object the cursor is.
#[derive(Debug)]
pub(crate) struct Members {
    first: bool,
}

impl Members {
    /// Behind a first member.
    pub(crate) fn inside() -> Self {
        Self { first: false }
    }
}

/// Where in an array the cursor is.
#[derive(Debug)]
pub(crate) struct Elements {
    first: bool,
}

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many of eight characters are digits up to the first that is none.
#[inline(always)]
fn digit_count(word: u64) -> usize {
    let values = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 reaches the high bit; a carry out of it only disturbs bytes behind the first such.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & HIGH;
    (others.trailing_zeros() / 8) as usize
}

/// How many of eight characters are digits up to the first that is none, and their value.
#[inline(always)]
fn eight_digits(word: u64) -> (usize, u64) {
    let count = digit_count(word);
    // The digits moved to the end, zeros in front; with none of them nothing is left.
    let values = (word ^ 0x3030_3030_3030_3030).checked_shl(64 - 8 * u32::try_from(count).unwrap_or(0)).unwrap_or(0);
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (count, low.wrapping_add(high) >> 32)
}

/// How many bytes from the start are neither quote, backslash nor control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    for chunk in bytes.as_chunks::<8>().0 {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return length + (found.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + bytes[length..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

/// Marks in eight bytes, lowest first; the first mark is at a quote, backslash or control character, and none is before it.
/// Only marks above it may be echoes of a borrow.
#[inline(always)]
fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let slash = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote) | (slash.wrapping_sub(ONES) & !slash) | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGH
}

/// What an escape of one letter means.
#[inline(always)]
fn short_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        _ => return None,
    })
}

/// Resolves the escapes of a string whose form has been checked.
fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let (byte, length) = match tail.get(1) {
            Some(b'u') => {
                let (letter, length) = unicode(tail)?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail.get(length..).unwrap_or_default();
                continue;
            }
            Some(&letter) => (short_escape(letter).unwrap_or(letter), 2),
            None => return Err(Broken::Short),
        };
        out.push(byte);
        rest = tail.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The character of a `\uXXXX` at the start, or of a pair of them, and the bytes it takes.
fn unicode(bytes: &[u8]) -> Result<(char, usize), Broken> {
    let first = unit(bytes)?;
    if let Some(letter) = char::from_u32(first) {
        return Ok((letter, 6));
    }
    let second = match bytes.get(6..) {
        Some(tail) if tail.starts_with(b"\\u") => unit(tail)?,
        _ => return Err(Broken::LoneSurrogate),
    };
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return Err(Broken::LoneSurrogate);
    }
    let point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(point).map(|letter| (letter, 12)).ok_or(Broken::LoneSurrogate)
}

fn unit(bytes: &[u8]) -> Result<u32, Broken> {
    let digits = bytes.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(Broken::Short)?;
    u32::from_str_radix(digits, 16).map_err(|_| Broken::Short)
}

/// Writes a text as a JSON string, quotes included.
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted(bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(bytes);
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_another_parser_writes_is_accepted(value in value()) {
            prop_assert!(accepted(value.to_string().as_bytes()));
        }

        #[test]
        fn a_token_is_found_where_its_every_byte_stands(key in "[a-c]{0,30}", at in any::<prop::sample::Index>(), behind in "[ -~]{0,40}") {
            let token = Token::of_key(false, key.as_bytes());
            let text = format!(",\"{key}\":{behind}");
            prop_assert!(Cursor::new(text.as_bytes()).expect(&token));
            let mut other = text.into_bytes();
            other[at.index(token.bytes.len())] ^= 1;
            prop_assert!(!Cursor::new(&other).expect(&token));
        }

        #[test]
        fn a_text_survives_being_written_and_read(text in any::<String>()) {
            for json in [serde_json::to_string(&text).unwrap().into_bytes(), { let mut out = Vec::new(); write_text(text.as_bytes(), &mut out); out }] {
                let mut scratch = Vec::new();
                let read = Cursor::new(&json).text().unwrap();
                prop_assert_eq!(read.resolve(&mut scratch).unwrap(), text.as_bytes());
            }
        }

        #[test]
        fn damaged_text_is_judged_as_another_parser_judges_it(value in value(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
            let mut bytes = value.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = with & 0x7f;
            // Ours does not look at surrogates and magnitudes of what it skips; those texts are left out.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            prop_assume!(!text.contains("\\u") && !text.contains(['e', 'E']) && text.len() == bytes.len());
            prop_assert_eq!(accepted(&bytes), serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok(), "{}", text);
        }

        #[test]
        fn digits_are_counted_and_valued(text in "[0-9]{0,8}[^0-9]{8}") {
            let word = u64::from_le_bytes(*text.as_bytes().first_chunk().unwrap());
            let digits: String = text.chars().take_while(char::is_ascii_digit).take(8).collect();
            prop_assert_eq!(eight_digits(word), (digits.len(), digits.parse().unwrap_or(0)));
        }

        #[test]
        fn a_number_has_its_value(number in any::<i64>(), tail in "[,}\\] ]{0,9}") {
            let text = format!("{number}{tail}");
            prop_assert_eq!(Cursor::new(text.as_bytes()).number().unwrap().integer, Some(number));
        }

        #[test]
        fn the_fast_scan_finds_the_first_special_byte(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(31), Just(32), Just(128)], 0..40)) {
            let slow = bytes.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            prop_assert_eq!(plain_length(&bytes), slow);
        }
    }

    #[test]
    fn numbers_are_read_as_the_grammar_says() {
        for good in ["0", "-0", "10", "1.5", "-1.5e+10", "1E5", "123456789012345678901234567890", "0.0001e-400"] {
            assert!(accepted(good.as_bytes()), "{good}");
        }
        for bad in ["01", "-", "+1", ".5", "1.", "1e", "1e+", "--1", "0x1", "1 2", "NaN", "Infinity"] {
            assert!(!accepted(bad.as_bytes()), "{bad}");
        }
        let integer = |text: &str| Cursor::new(text.as_bytes()).number().unwrap().integer;
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775808"), None);
        assert_eq!(integer("1.0"), None);
    }

    #[test]
    fn a_million_brackets_are_refused_without_harm() {
        let deep = vec![b'['; 1_000_000];
        assert_eq!(Cursor::new(&deep).skip(), Err(Broken::Deep(DEPTH_MAX)));
    }

    #[test]
    fn trailing_commas_and_missing_commas_are_refused() {
        for bad in
            ["[1,]", "{\"a\":1,}", "[1 2]", "{\"a\":1 \"b\":2}", "[,1]", "{,}", "{\"a\"}", "{1:2}", "[1", "{\"a\":", "\"a", "tru", "nul"]
        {
            assert!(!accepted(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_no_text() {
        let mut scratch = Vec::new();
        for bad in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\ud83dx""#] {
            assert_eq!(Cursor::new(bad.as_bytes()).text().unwrap().resolve(&mut scratch), Err(Broken::LoneSurrogate), "{bad}");
        }
        assert_eq!(Cursor::new(br#""\ud83d\ude00""#).text().unwrap().resolve(&mut scratch).unwrap(), "😀".as_bytes());
    }
}
