//! Earlier versions of a table, however they are said: each spelling becomes `VERSION AS OF` or `TIMESTAMP AS OF`.
//!
//! | written | meant |
//! |---|---|
//! | `t@v12` | `t VERSION AS OF 12` |
//! | `t@20240501120000000` | `t TIMESTAMP AS OF '2024-05-01T12:00:00.000'` |
//! | `t FOR VERSION AS OF 12`, `t [FOR] SYSTEM_VERSION AS OF 12` | `t VERSION AS OF 12` |
//! | `t FOR TIMESTAMP AS OF '…'`, `t [FOR] SYSTEM_TIME AS OF '…'` | `t TIMESTAMP AS OF '…'` |

use tributary_lake::datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

/// The words of a text with one spelling of earlier versions.
pub(crate) fn told(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let may_travel = |token: &TokenWithSpan| matches!(token.token, Token::AtSign) || is_word(&token.token, "OF");
    if !tokens.iter().any(may_travel) {
        return tokens;
    }
    let mut told: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let Some((point, behind)) = at_point(&tokens, at) {
            told.extend(point);
            at = behind;
        } else if let Some((word, behind)) = as_of(&tokens, at) {
            told.push(word);
            at = behind;
        } else {
            told.push(number(token, &told));
            at += 1;
        }
    }
    told
}

/// The word as it is; a version in quotes behind `VERSION AS OF` as the number that it is.
fn number(token: &TokenWithSpan, before: &[TokenWithSpan]) -> TokenWithSpan {
    let Token::SingleQuotedString(text) = &token.token else { return token.clone() };
    let mut words = before.iter().rev().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_version = ["OF", "AS", "VERSION"].iter().all(|word| words.next().is_some_and(|token| is_word(&token.token, word)));
    if is_version && is_digits(text) {
        TokenWithSpan { token: Token::Number(text.clone(), false), span: token.span }
    } else {
        token.clone()
    }
}

/// What `@v12` or `@20240501120000000` right behind a name says, and where it ends.
fn at_point(tokens: &[TokenWithSpan], at: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let [name, sign, point] = tokens.get(at.checked_sub(1)?..at + 2)? else { return None };
    let adjoin = name.span.end == sign.span.start && sign.span.end == point.span.start;
    if !matches!(name.token, Token::Word(_)) || !matches!(sign.token, Token::AtSign) || !adjoin {
        return None;
    }
    let (word, value) = match &point.token {
        Token::Word(word) if word.quote_style.is_none() => {
            let digits = word.value.strip_prefix(['v', 'V']).filter(|digits| is_digits(digits))?;
            ("VERSION", Token::Number(digits.to_owned(), false))
        }
        Token::Number(digits, false) => ("TIMESTAMP", Token::SingleQuotedString(instant(digits)?)),
        _ => return None,
    };
    let blank = Token::Whitespace(Whitespace::Space);
    let said = [
        blank.clone(),
        Token::make_word(word, None),
        blank.clone(),
        Token::make_word("AS", None),
        blank.clone(),
        Token::make_word("OF", None),
        blank,
        value,
    ];
    let span = Span::new(sign.span.start, point.span.end);
    Some((said.map(|token| TokenWithSpan { token, span }).into(), at + 2))
}

/// `yyyyMMddHHmmssSSS` as an instant.
fn instant(digits: &str) -> Option<String> {
    let part = |range: std::ops::Range<usize>| digits.get(range);
    (digits.len() == 17 && is_digits(digits)).then_some(())?;
    let (day, time) = ((part(0..4)?, part(4..6)?, part(6..8)?), (part(8..10)?, part(10..12)?, part(12..14)?));
    Some(format!("{}-{}-{}T{}:{}:{}.{}", day.0, day.1, day.2, time.0, time.1, time.2, part(14..17)?))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The one word for `[FOR] [SYSTEM_]VERSION`, `[FOR] SYSTEM_TIME` and `[FOR] TIMESTAMP` in front of `AS OF`, and where it ends; none where
/// it is that word already.
fn as_of(tokens: &[TokenWithSpan], at: usize) -> Option<(TokenWithSpan, usize)> {
    let mut words = tokens.iter().enumerate().skip(at).filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let (first_at, first) = words.next().filter(|(first, _)| *first == at)?;
    let has_for = is_word(&first.token, "FOR");
    let (last_at, kind) = if has_for { words.next()? } else { (first_at, first) };
    let meant = match () {
        () if is_word(&kind.token, "SYSTEM_VERSION") => "VERSION",
        () if is_word(&kind.token, "SYSTEM_TIME") => "TIMESTAMP",
        () if has_for && is_word(&kind.token, "VERSION") => "VERSION",
        () if has_for && is_word(&kind.token, "TIMESTAMP") => "TIMESTAMP",
        () => return None,
    };
    let (as_word, of_word) = (words.next()?.1, words.next()?.1);
    let is_point = is_word(&as_word.token, "AS") && is_word(&of_word.token, "OF");
    is_point.then(|| (TokenWithSpan { token: Token::make_word(meant, None), span: kind.span }, last_at + 1))
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use crate::{Point, Read, Text};

    fn read(text: &str) -> Vec<(String, Read)> {
        let text = Text::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        text.uses().iter().map(|used| (used.parts.join("."), used.read.clone())).collect()
    }

    #[test]
    fn every_spelling_of_an_earlier_version_is_read() {
        let version = || Read::At(Point::Version(12));
        for text in [
            "select * from s.t version as of 12",
            "select * from s.t version as of '12'",
            "select * from s.t for version as of 12",
            "select * from s.t SYSTEM_VERSION AS OF 12",
            "select * from s.t for system_version as of 12",
            "select * from s.t@v12",
            "select * from s.`t`@V12 where a = 1",
            "select * from s.t@v12 as x",
        ] {
            assert_eq!(read(text), [("s.t".to_owned(), version())], "{text}");
        }
        let instant = || Read::At(Point::Instant(chrono::DateTime::from_timestamp(1_714_564_800, 0).unwrap()));
        for text in [
            "select * from t timestamp as of '2024-05-01 12:00:00'",
            "select * from t for timestamp as of '2024-05-01T12:00:00Z'",
            "select * from t for system_time as of '2024-05-01 12:00:00'",
            "select * from t system_time as of '2024-05-01 12:00:00'",
            "select * from t@20240501120000000",
        ] {
            assert_eq!(read(text), [("t".to_owned(), instant())], "{text}");
        }
        assert_eq!(read("select * from t@v1 join t@v2 using (a)").len(), 2);
    }

    #[test]
    fn what_only_looks_like_one_is_left() {
        for text in ["select 'a@v1'", "select a as of_a from t", "select version as of_b from t", "select `t@v1` from t"] {
            assert!(read(text).iter().all(|(_, read)| *read == Read::Latest), "{text}");
        }
        for text in ["select * from t @ v1", "select * from t@x1", "select * from t@2024", "select * from t@v"] {
            assert!(Text::parse(text).is_err(), "{text}");
        }
    }
}
