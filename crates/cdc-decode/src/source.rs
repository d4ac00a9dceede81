//! The `source` block of an envelope, and what flattened rows carry of it.

use crate::json::{Broken, Cursor, Digits, Text};
use crate::position::{self, Claim, Position, Snapshot, binlog, parse_lsn};
use crate::template::Block;

/// A text that may be null.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Maybe {
    text: Vec<u8>,
    set: bool,
}

impl Maybe {
    /// The text.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&[u8]> {
        self.set.then_some(self.text.as_slice())
    }

    fn set(&mut self, text: Option<&[u8]>) {
        self.text.clear();
        self.set = text.is_some();
        self.text.extend_from_slice(text.unwrap_or_default());
    }
}

/// The parts of a `source` block that are used, kept from one message to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub connector: Maybe,
    pub database: Maybe,
    pub schema: Maybe,
    pub table: Maybe,
    /// The `snapshot` mark; `true` and `false` are JSON booleans in old releases.
    pub snapshot: Maybe,
    pub ts_ms: Option<i64>,
    pub ts_us: Option<i64>,
    pub lsn: Option<i64>,
    /// PostgreSQL: the commit before the transaction, and the LSN.
    pub sequence: (Option<u64>, Option<u64>),
    /// How many digits the two had the last time.
    sequence_digits: (usize, usize),
    pub file: Maybe,
    pub pos: Option<i64>,
    pub row: Option<i64>,
    pub server_id: Option<i64>,
    pub gtid: Maybe,
    /// A number or text.
    pub tx_id: Maybe,
    pub commit_lsn: Maybe,
    pub change_lsn: Maybe,
    pub event_serial_no: Option<i64>,
    /// Oracle: the system change number, text or a number.
    pub scn: Option<u64>,
    /// Oracle: that of the transaction's commit; of several redo threads the greatest.
    pub commit_scn: Option<u64>,
    /// Oracle: which change of its transaction it is.
    pub tx_seq: Option<i64>,
    /// What follows from the connector; see [`Source::settle`].
    kind: Option<position::Kind>,
    full: bool,
    /// The server's identity, `id:base name of its binlog` for MySQL; empty where the connector tells none.
    server: Vec<u8>,
    /// Another number whenever one of the names may have changed: connector, database, schema, table, snapshot mark, server.
    generation: u64,
}

/// A member of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Connector,
    Database,
    Schema,
    Table,
    Snapshot,
    TsMs,
    TsUs,
    Lsn,
    Sequence,
    File,
    Pos,
    Row,
    ServerId,
    Gtid,
    TxId,
    CommitLsn,
    ChangeLsn,
    EventSerialNo,
    Scn,
    CommitScn,
    TxSeq,
    /// One that nothing needs.
    Other,
}

impl Member {
    /// The member of a name.
    pub(crate) fn named(name: &[u8]) -> Self {
        match name {
            b"connector" => Self::Connector,
            b"db" => Self::Database,
            b"schema" => Self::Schema,
            b"table" => Self::Table,
            b"snapshot" => Self::Snapshot,
            b"ts_ms" => Self::TsMs,
            b"ts_us" => Self::TsUs,
            b"lsn" => Self::Lsn,
            b"sequence" => Self::Sequence,
            b"file" => Self::File,
            b"pos" => Self::Pos,
            b"row" => Self::Row,
            b"server_id" => Self::ServerId,
            b"gtid" => Self::Gtid,
            b"txId" => Self::TxId,
            b"commit_lsn" => Self::CommitLsn,
            b"change_lsn" => Self::ChangeLsn,
            b"event_serial_no" => Self::EventSerialNo,
            b"scn" => Self::Scn,
            b"commit_scn" => Self::CommitScn,
            b"txSeq" => Self::TxSeq,
            _ => Self::Other,
        }
    }
}

impl Block for Source {
    type Member = Member;

    fn named(name: &[u8]) -> Member {
        Member::named(name)
    }

    fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    #[inline(always)]
    fn read(&mut self, member: Member, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let number = match member {
            Member::Other if cursor.skip_plain() => return Ok(()),
            Member::TsMs => &mut self.ts_ms,
            Member::TsUs => &mut self.ts_us,
            Member::Lsn => &mut self.lsn,
            Member::Pos => &mut self.pos,
            Member::Row => &mut self.row,
            Member::ServerId => &mut self.server_id,
            Member::EventSerialNo => &mut self.event_serial_no,
            Member::TxSeq => &mut self.tx_seq,
            Member::Sequence => return self.read_sequence(cursor),
            Member::Scn => {
                self.scn = read_scn(cursor)?;
                return Ok(());
            }
            Member::CommitScn => {
                self.commit_scn = read_scn(cursor)?;
                return Ok(());
            }
            Member::TxId => return self.read_tx_id(cursor),
            _ => return self.read_text(member, cursor),
        };
        match cursor.small_integer() {
            Some(integer) => *number = Some(integer),
            None => *number = any_number(cursor)?,
        }
        if member == Member::ServerId {
            self.settle();
        }
        Ok(())
    }

    #[inline(always)]
    fn keep(&mut self, member: Member, digits: Digits<'_>) -> bool {
        match member {
            Member::TsMs => self.ts_ms = digits.signed(),
            Member::TsUs => self.ts_us = digits.signed(),
            Member::Lsn => self.lsn = digits.signed(),
            Member::Pos => self.pos = digits.signed(),
            Member::Row => self.row = digits.signed(),
            Member::TxId => self.tx_id.set(Some(digits.text())),
            Member::Other => {}
            _ => return false,
        }
        true
    }
}

/// A member's value that is not JSON text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told<'a> {
    /// Null, or of a type that no member has.
    Nothing,
    Boolean(bool),
    Whole(i64),
    Text(&'a [u8]),
}

impl Source {
    /// Takes a member's value.
    pub(crate) fn tell(&mut self, member: Member, told: Told<'_>) {
        let whole = match told {
            Told::Whole(number) => Some(number),
            Told::Nothing | Told::Boolean(_) | Told::Text(_) => None,
        };
        let mut digits = itoa::Buffer::new();
        let text = match told {
            Told::Text(text) => Some(text),
            Told::Whole(number) if member == Member::TxId => Some(digits.format(number).as_bytes()),
            Told::Boolean(value) if member == Member::Snapshot => Some(if value { &b"true"[..] } else { b"false" }),
            Told::Nothing | Told::Boolean(_) | Told::Whole(_) => None,
        };
        match member {
            Member::Connector => self.connector.set(text),
            Member::Database => self.database.set(text),
            Member::Schema => self.schema.set(text),
            Member::Table => self.table.set(text),
            Member::Snapshot => self.snapshot.set(text),
            Member::File => self.file.set(text),
            Member::Gtid => self.gtid.set(text),
            Member::TxId => self.tx_id.set(text),
            Member::CommitLsn => self.commit_lsn.set(text),
            Member::ChangeLsn => self.change_lsn.set(text),
            Member::TsMs => self.ts_ms = whole,
            Member::TsUs => self.ts_us = whole,
            Member::Lsn => self.lsn = whole,
            Member::Pos => self.pos = whole,
            Member::Row => self.row = whole,
            Member::ServerId => self.server_id = whole,
            Member::EventSerialNo => self.event_serial_no = whole,
            Member::Scn => self.scn = text.and_then(scn).or(whole.and_then(|number| u64::try_from(number).ok())),
            Member::CommitScn => self.commit_scn = text.and_then(scn).or(whole.and_then(|number| u64::try_from(number).ok())),
            Member::TxSeq => self.tx_seq = whole,
            Member::Sequence => self.sequence = text.map_or((None, None), sequence),
            Member::Other => {}
        }
        if matches!(member, Member::Connector | Member::File | Member::ServerId) {
            self.settle();
        }
    }

    #[cold]
    fn read_text(&mut self, member: Member, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let text = match member {
            Member::Connector => &mut self.connector,
            Member::Database => &mut self.database,
            Member::Schema => &mut self.schema,
            Member::Table => &mut self.table,
            Member::Snapshot => &mut self.snapshot,
            Member::File => &mut self.file,
            Member::Gtid => &mut self.gtid,
            Member::CommitLsn => &mut self.commit_lsn,
            Member::ChangeLsn => &mut self.change_lsn,
            _ => return cursor.skip(),
        };
        let mut scratch = Vec::new();
        if let (Some(same), Some(new)) = (text.get(), cursor.clone().plain_text())
            && same == new
        {
            cursor.skip()?;
            return Ok(());
        }
        self.generation += u64::from(!matches!(member, Member::Gtid | Member::CommitLsn | Member::ChangeLsn));
        match cursor.peek()? {
            b'"' => text.set(Some(cursor.text()?.resolve(&mut scratch)?)),
            b't' | b'f' if member == Member::Snapshot => text.set(Some(if cursor.boolean()? { b"true" } else { b"false" })),
            _ => {
                cursor.skip()?;
                text.set(None);
            }
        }
        if matches!(member, Member::Connector | Member::File) {
            self.settle();
        }
        Ok(())
    }

    fn read_tx_id(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let mut scratch = Vec::new();
        match cursor.peek()? {
            b'"' => self.tx_id.set(Some(cursor.text()?.resolve(&mut scratch)?)),
            b'-' | b'0'..=b'9' => self.tx_id.set(Some(cursor.raw()?)),
            _ => {
                cursor.skip()?;
                self.tx_id.set(None);
            }
        }
        Ok(())
    }

    /// PostgreSQL's sequence, mostly `"[\"224784376\",\"224784376\"]"`.
    #[inline]
    fn read_sequence(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let start = cursor.at();
        if let Some((commit, lsn)) = self.pair(cursor) {
            self.sequence = (Some(commit), Some(lsn));
            return Ok(());
        }
        *cursor = cursor.back_to(start);
        self.sequence_of_any_form(cursor)
    }

    /// A sequence of two numbers of as many digits as the last time.
    #[inline(always)]
    fn pair(&self, cursor: &mut Cursor<'_>) -> Option<(u64, u64)> {
        let (commit_digits, lsn_digits) = self.sequence_digits;
        if !cursor.literal(br#""[\""#) {
            return None;
        }
        let commit = cursor.digits(commit_digits)?;
        if !cursor.literal(br#"\",\""#) {
            return None;
        }
        let lsn = cursor.digits(lsn_digits)?;
        cursor.literal(br#"\"]""#).then(|| (commit.value(), lsn.value()))
    }

    #[cold]
    fn sequence_of_any_form(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        self.sequence = match cursor.peek()? {
            b'"' => sequence(cursor.text()?.raw),
            _ => {
                cursor.skip()?;
                (None, None)
            }
        };
        let digits = |number: Option<u64>| number.map_or(0, |number| number.checked_ilog10().map_or(1, |log| log as usize + 1));
        self.sequence_digits = (digits(self.sequence.0), digits(self.sequence.1));
        Ok(())
    }

    /// Draws the conclusions from who the source is.
    fn settle(&mut self) {
        self.generation += 1;
        self.kind = match self.connector.get() {
            Some(b"postgresql") => Some(position::Kind::Postgres),
            Some(b"mysql" | b"mariadb") => Some(position::Kind::MySql),
            Some(b"sqlserver") => Some(position::Kind::SqlServer),
            Some(b"oracle") => Some(position::Kind::Oracle),
            Some(_) => Some(position::Kind::Offset),
            None => None,
        };
        self.full = matches!(self.connector.get(), Some(b"mysql" | b"mariadb" | b"sqlserver"));
        self.server.clear();
        if self.position_kind() == position::Kind::MySql
            && let Some((base, _)) = self.file.get().and_then(binlog)
        {
            self.server.extend_from_slice(itoa::Buffer::new().format(self.server_id.unwrap_or(0)).as_bytes());
            self.server.push(b':');
            self.server.extend_from_slice(base);
        }
    }

    /// The server's identity, empty where it is not known.
    #[inline(always)]
    pub(crate) fn server(&self) -> &[u8] {
        &self.server
    }

    /// Becomes another block.
    pub(crate) fn replace(&mut self, other: Self) {
        *self = Self { generation: self.generation + 1, ..other };
    }

    /// Equal numbers mean equal names: connector, database, schema, table, snapshot mark, server.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// When the change happened at the source, µs since the epoch.
    #[inline(always)]
    pub(crate) fn ts_micros(&self) -> Option<i64> {
        self.ts_us.or_else(|| self.ts_ms.and_then(|ms| ms.checked_mul(1000)))
    }

    /// Whether its before-images are complete whatever the table's settings.
    #[inline(always)]
    pub(crate) fn sends_full_rows(&self) -> bool {
        self.full
    }

    fn snapshot_kind(&self) -> Snapshot {
        match self.snapshot.get() {
            None | Some(b"false" | b"") => Snapshot::No,
            Some(b"incremental") => Snapshot::Incremental,
            Some(_) => Snapshot::Initial,
        }
    }

    /// What it says about the change's place. `read` = the operation is a snapshot read, for sources without the mark.
    #[inline]
    pub(crate) fn claim(&self, offset: i64, read: bool) -> Claim {
        let snapshot = match self.snapshot_kind() {
            Snapshot::No if read => Snapshot::Initial,
            other => other,
        };
        let kind = self.position_kind();
        let position = match kind {
            position::Kind::Postgres => self.postgres(snapshot),
            position::Kind::MySql => self.mysql(),
            position::Kind::SqlServer => self.sqlserver(),
            position::Kind::Oracle => self.oracle(snapshot),
            position::Kind::Offset => Some(Position::new(kind, [u64::try_from(offset).unwrap_or(0), 0, 0])),
        };
        Claim { position, kind, snapshot, ts_us: self.ts_micros() }
    }

    fn position_kind(&self) -> position::Kind {
        match self.kind {
            Some(kind) => kind,
            None if self.lsn.is_some() => position::Kind::Postgres,
            None if self.file.get().is_some() => position::Kind::MySql,
            None if self.commit_lsn.get().is_some() => position::Kind::SqlServer,
            None if self.scn.is_some() => position::Kind::Oracle,
            None => position::Kind::Offset,
        }
    }

    #[inline]
    fn postgres(&self, snapshot: Snapshot) -> Option<Position> {
        let lsn = self.lsn.and_then(|lsn| u64::try_from(lsn).ok()).or(self.sequence.1)?;
        let parts = match snapshot {
            Snapshot::Initial => [lsn, 0, 0],
            Snapshot::No | Snapshot::Incremental => [self.sequence.0.unwrap_or(0).max(lsn), lsn, 0],
        };
        Some(Position::new(position::Kind::Postgres, parts))
    }

    fn mysql(&self) -> Option<Position> {
        let (_, number) = binlog(self.file.get()?)?;
        let number_of = |value: Option<i64>| u64::try_from(value.unwrap_or(0)).unwrap_or(0);
        Some(Position::new(position::Kind::MySql, [number, number_of(self.pos), number_of(self.row)]))
    }

    fn oracle(&self, snapshot: Snapshot) -> Option<Position> {
        let scn = self.scn?;
        let parts = match snapshot {
            Snapshot::Initial => [scn, 0, 0],
            Snapshot::No | Snapshot::Incremental => {
                [self.commit_scn.unwrap_or(scn), scn, u64::try_from(self.tx_seq.unwrap_or(0)).unwrap_or(0)]
            }
        };
        Some(Position::new(position::Kind::Oracle, parts))
    }

    fn sqlserver(&self) -> Option<Position> {
        let commit = parse_lsn(self.commit_lsn.get()?)?;
        let change = match self.change_lsn.get() {
            Some(change) => parse_lsn(change)?,
            None => (0, 0),
        };
        Some(Position::sqlserver(commit, change, u32::try_from(self.event_serial_no.unwrap_or(0)).unwrap_or(0)))
    }
}

/// Oracle's change numbers: one, or a list of those of the redo threads with more behind a colon; the greatest.
fn scn(text: &[u8]) -> Option<u64> {
    let number = |part: &[u8]| std::str::from_utf8(part.split(|byte| *byte == b':').next()?).ok()?.trim().parse().ok();
    text.split(|byte| *byte == b',').filter_map(number).max()
}

fn read_scn(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Broken> {
    match cursor.peek()? {
        b'"' => Ok(scn(cursor.text()?.raw)),
        b'0'..=b'9' => Ok(scn(cursor.number()?.raw)),
        _ => {
            cursor.skip()?;
            Ok(None)
        }
    }
}

/// A whole number, or nothing for any other value.
#[cold]
fn any_number(cursor: &mut Cursor<'_>) -> Result<Option<i64>, Broken> {
    if matches!(cursor.peek()?, b'-' | b'0'..=b'9') {
        return Ok(cursor.number()?.integer);
    }
    cursor.skip()?;
    Ok(None)
}

/// PostgreSQL's pair of the last commit and the change, as JSON text inside JSON text: `[\"123\",\"456\"]`.
fn sequence(raw: &[u8]) -> (Option<u64>, Option<u64>) {
    let mut numbers = [None, None];
    let mut place = 0;
    let mut value: Option<u64> = None;
    for byte in raw {
        match byte {
            b'0'..=b'9' => value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(u64::from(byte - b'0'))),
            b',' => {
                numbers[place] = value.take();
                place = 1;
            }
            _ => {}
        }
    }
    numbers[place] = value;
    (numbers[0], numbers[1])
}

/// A transaction's id in the block of transaction metadata.
pub(crate) fn transaction_id<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Broken> {
    let mut id = None;
    let mut members = cursor.object()?;
    while let Some(key) = cursor.member(&mut members)? {
        if key.raw == b"id" && cursor.peek()? == b'"' {
            id = Some(cursor.text()?);
        } else {
            cursor.skip()?;
        }
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    #[test]
    fn the_pair_of_a_sequence_is_read_whatever_is_missing() {
        assert_eq!(sequence(br#"[\"169761184\",\"169762152\"]"#), (Some(169_761_184), Some(169_762_152)));
        assert_eq!(sequence(br#"[null,\"169711976\"]"#), (None, Some(169_711_976)));
        assert_eq!(sequence(b"[null,null]"), (None, None));
        assert_eq!(sequence(b""), (None, None));
        for text in [&br#""[\"169761184\",\"169762152\"]""#[..], br#""[ \"169761184\" , \"169762152\" ]""#] {
            let mut source = Source::default();
            let text = [text, br#","more":"and more, so that there is text behind it"}"#].concat();
            for _ in 0..2 {
                source.read_sequence(&mut Cursor::new(&text)).unwrap();
                assert_eq!(std::mem::take(&mut source.sequence), (Some(169_761_184), Some(169_762_152)));
            }
        }
    }

    #[test]
    fn members_are_found_in_any_order_and_absent_ones_are_forgotten() {
        let (mut template, mut source) = (Template::default(), Source::default());
        for (text, gtid) in [
            (&br#"{"connector":"mysql","pos":5,"db":"d","gtid":"g"}"#[..], true),
            (br#"{"db":"d","connector":"mysql","pos":5}"#, false),
            (br#"{"pos":5, "x":[1,{}], "db" : "d","connector":"mysql"}"#, false),
            (br#"{"connector":"mysql","pos":5,"db":"d","gtid":"g"}"#, true),
        ] {
            template.read(&mut Cursor::new(text), &mut source).unwrap();
            assert_eq!((source.pos, source.database.get(), source.gtid.get().is_some()), (Some(5), Some(&b"d"[..]), gtid));
            assert!(source.sends_full_rows());
        }
    }

    #[test]
    fn a_server_is_known_by_its_id_and_the_name_of_its_binlog() {
        let (mut template, mut source) = (Template::default(), Source::default());
        for (text, server) in [
            (r#"{"connector":"mysql","server_id":7,"file":"bin.000003"}"#, "7:bin"),
            (r#"{"connector":"mysql","server_id":8,"file":"bin.000003"}"#, "8:bin"),
            (r#"{"connector":"postgresql","server_id":8,"file":"bin.000003"}"#, ""),
        ] {
            template.read(&mut Cursor::new(text.as_bytes()), &mut source).unwrap();
            assert_eq!(source.server(), server.as_bytes());
        }
    }
}
