//! The `source` block of an envelope, and what flattened rows carry of it.

use crate::json::{Broken, Cursor, Text};
use crate::position::{self, Claim, Position, Snapshot, binlog, parse_lsn};
use crate::template::{Block, Template, Value};

/// The parts of a `source` block that are used, borrowed from the message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source<'a> {
    pub connector: Option<Text<'a>>,
    pub database: Option<Text<'a>>,
    pub schema: Option<Text<'a>>,
    pub table: Option<Text<'a>>,
    /// The `snapshot` mark; `true` and `false` as JSON booleans in old releases.
    pub snapshot: Option<Text<'a>>,
    pub ts_ms: Option<i64>,
    pub ts_us: Option<i64>,
    pub lsn: Option<i64>,
    /// PostgreSQL: the commit before the transaction, and the LSN.
    pub sequence: (Option<u64>, Option<u64>),
    pub file: Option<Text<'a>>,
    pub pos: Option<i64>,
    pub row: Option<i64>,
    pub server_id: Option<i64>,
    pub gtid: Option<Text<'a>>,
    /// A number or text.
    pub tx_id: Option<Text<'a>>,
    pub commit_lsn: Option<Text<'a>>,
    pub change_lsn: Option<Text<'a>>,
    pub event_serial_no: Option<i64>,
}

impl<'a> Block<'a> for Source<'a> {
    type Member = Member;

    fn named(name: &[u8]) -> Member {
        Member::named(name)
    }

    #[inline(always)]
    fn put(&mut self, member: Member, value: Value<'a>) {
        match value {
            Value::Text(text) => self.set(member, Some(text), None),
            Value::Number(raw, integer) => self.set(member, Some(Text { raw, escaped: false }), integer),
            Value::Boolean(set) if member == Member::Snapshot => self.snapshot = Some(if set { TRUE } else { FALSE }),
            Value::Null | Value::Boolean(_) | Value::Other => self.set(member, None, None),
        }
    }

    #[inline(always)]
    fn read(&mut self, member: Member, cursor: &mut Cursor<'a>) -> Result<(), Broken> {
        match member {
            Member::Other if cursor.skip_plain() => return Ok(()),
            Member::Other => return cursor.skip(),
            Member::Sequence => return self.read_sequence(cursor),
            _ => {}
        }
        let start = cursor.at();
        if let Some(integer) = cursor.small_integer() {
            self.set(member, Some(Text { raw: cursor.since(start), escaped: false }), Some(integer));
            return Ok(());
        }
        self.read_any(member, cursor)
    }
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
            _ => Self::Other,
        }
    }
}

const TRUE: Text<'static> = Text { raw: b"true", escaped: false };
const FALSE: Text<'static> = Text { raw: b"false", escaped: false };

impl<'a> Source<'a> {
    /// Reads a block (an object; the caller has looked) into an empty one.
    #[inline]
    pub(crate) fn fill(&mut self, cursor: &mut Cursor<'a>, template: &mut Template<Member>) -> Result<(), Broken> {
        let start = cursor.at();
        if template.read(cursor, self)?.is_none() {
            *self = Self::default();
            *cursor = cursor.back_to(start);
            template.learn(cursor, self)?;
        }
        Ok(())
    }

    /// Takes the next value as one member.
    pub(crate) fn read_any(&mut self, member: Member, cursor: &mut Cursor<'a>) -> Result<(), Broken> {
        match cursor.peek()? {
            b'"' => {
                let text = cursor.text()?;
                self.set(member, Some(text), None);
            }
            b'-' | b'0'..=b'9' => {
                let number = cursor.number()?;
                self.set(member, Some(Text { raw: number.raw, escaped: false }), number.integer);
            }
            b't' | b'f' if member == Member::Snapshot => self.snapshot = Some(if cursor.boolean()? { TRUE } else { FALSE }),
            _ => {
                cursor.skip()?;
                self.set(member, None, None);
            }
        }
        Ok(())
    }

    /// Sets one member: its text, which a number has too, and its value where it is a whole number.
    #[inline(always)]
    fn set(&mut self, member: Member, text: Option<Text<'a>>, number: Option<i64>) {
        match member {
            Member::Other => {}
            Member::Connector => self.connector = text,
            Member::Database => self.database = text,
            Member::Schema => self.schema = text,
            Member::Table => self.table = text,
            Member::Sequence => self.sequence = text.map(|text| sequence(text.raw)).unwrap_or_default(),
            Member::File => self.file = text,
            Member::Gtid => self.gtid = text,
            Member::CommitLsn => self.commit_lsn = text,
            Member::ChangeLsn => self.change_lsn = text,
            Member::Snapshot => self.snapshot = text,
            Member::TxId => self.tx_id = text,
            Member::TsMs => self.ts_ms = number,
            Member::TsUs => self.ts_us = number,
            Member::Lsn => self.lsn = number,
            Member::Pos => self.pos = number,
            Member::Row => self.row = number,
            Member::ServerId => self.server_id = number,
            Member::EventSerialNo => self.event_serial_no = number,
        }
    }

    /// PostgreSQL's sequence, mostly `"[\"224784376\",\"224784376\"]"`.
    #[inline]
    fn read_sequence(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Broken> {
        let start = cursor.at();
        let usual = cursor.literal(br#""[\""#).then(|| {
            let commit = cursor.digits_before(br#"\",\""#)?;
            Some((commit, cursor.digits_before(br#"\"]""#)?))
        });
        if let Some(Some((commit, lsn))) = usual {
            self.sequence = (Some(commit), Some(lsn));
            return Ok(());
        }
        *cursor = cursor.back_to(start);
        self.sequence = match cursor.peek()? {
            b'"' => sequence(cursor.text()?.raw),
            _ => {
                cursor.skip()?;
                (None, None)
            }
        };
        Ok(())
    }

    /// When the change happened at the source, µs since the epoch.
    pub(crate) fn ts_micros(&self) -> Option<i64> {
        self.ts_us.or_else(|| self.ts_ms.and_then(|ms| ms.checked_mul(1000)))
    }

    /// Whether its before-images are complete whatever the table's settings.
    pub(crate) fn sends_full_rows(&self) -> bool {
        self.connector.is_some_and(|connector| matches!(connector.raw, b"mysql" | b"mariadb" | b"sqlserver"))
    }

    fn snapshot_kind(&self) -> Snapshot {
        match self.snapshot.map(|mark| mark.raw) {
            None | Some(b"false" | b"") => Snapshot::No,
            Some(b"incremental") => Snapshot::Incremental,
            Some(_) => Snapshot::Initial,
        }
    }

    /// What it says about the change's place. `read` = the operation is a snapshot read, for sources without the mark.
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
            position::Kind::Offset => Some(Position::new(kind, [u128::try_from(offset).unwrap_or(0), 0, 0])),
        };
        Claim { position, kind, snapshot, ts_us: self.ts_micros() }
    }

    fn position_kind(&self) -> position::Kind {
        match self.connector.map(|connector| connector.raw) {
            Some(b"postgresql") => position::Kind::Postgres,
            Some(b"mysql" | b"mariadb") => position::Kind::MySql,
            Some(b"sqlserver") => position::Kind::SqlServer,
            Some(_) => position::Kind::Offset,
            None if self.lsn.is_some() => position::Kind::Postgres,
            None if self.file.is_some() => position::Kind::MySql,
            None if self.commit_lsn.is_some() => position::Kind::SqlServer,
            None => position::Kind::Offset,
        }
    }

    fn postgres(&self, snapshot: Snapshot) -> Option<Position> {
        let lsn = self.lsn.and_then(|lsn| u64::try_from(lsn).ok()).or(self.sequence.1)?;
        let commit = self.sequence.0.unwrap_or(0).max(lsn);
        let parts = match snapshot {
            Snapshot::Initial => [lsn.into(), 0, 0],
            Snapshot::No | Snapshot::Incremental => [commit.into(), lsn.into(), 0],
        };
        Some(Position::new(position::Kind::Postgres, parts))
    }

    fn mysql(&self) -> Option<Position> {
        let (_, number) = binlog(self.file?.raw)?;
        let number_of = |value: Option<i64>| u128::try_from(value.unwrap_or(0)).unwrap_or(0);
        Some(Position::new(position::Kind::MySql, [u128::from(number), number_of(self.pos), number_of(self.row)]))
    }

    fn sqlserver(&self) -> Option<Position> {
        let commit = parse_lsn(self.commit_lsn?.raw)?;
        let change = match self.change_lsn {
            Some(change) => parse_lsn(change.raw)?,
            None => 0,
        };
        let serial = u128::try_from(self.event_serial_no.unwrap_or(0)).unwrap_or(0);
        Some(Position::new(position::Kind::SqlServer, [commit, change, serial]))
    }

    /// The server's identity, `id:base name of its binlog` for MySQL; empty where the connector tells none.
    pub(crate) fn write_server(&self, out: &mut Vec<u8>) {
        out.clear();
        if self.position_kind() != position::Kind::MySql {
            return;
        }
        let Some((base, _)) = self.file.and_then(|file| binlog(file.raw)) else { return };
        out.extend_from_slice(itoa::Buffer::new().format(self.server_id.unwrap_or(0)).as_bytes());
        out.push(b':');
        out.extend_from_slice(base);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_of_a_sequence_is_read_whatever_is_missing() {
        assert_eq!(sequence(br#"[\"169761184\",\"169762152\"]"#), (Some(169_761_184), Some(169_762_152)));
        assert_eq!(sequence(br#"[null,\"169711976\"]"#), (None, Some(169_711_976)));
        assert_eq!(sequence(b"[null,null]"), (None, None));
        assert_eq!(sequence(b""), (None, None));
    }

    #[test]
    fn members_are_found_in_any_order() {
        let mut order = Template::default();
        for text in [
            &br#"{"connector":"postgresql","lsn":5,"db":"d"}"#[..],
            br#"{"db":"d","connector":"postgresql","lsn":5}"#,
            br#"{"lsn":5, "x":[1,{}], "db" : "d","connector":"postgresql"}"#,
        ] {
            let mut source = Source::default();
            source.fill(&mut Cursor::new(text), &mut order).unwrap();
            assert_eq!((source.lsn, source.database.map(|text| text.raw)), (Some(5), Some(&b"d"[..])));
        }
    }
}
