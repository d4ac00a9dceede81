//! Where a change stands in its source, as text whose order is the source's own.
//!
//! | connector | text |
//! |---|---|
//! | postgresql | `epoch/commit LSN/LSN`, 20 digits each |
//! | mysql, mariadb | `epoch/file number/position/row`, 10, 20 and 10 digits |
//! | sqlserver | `epoch/commit LSN/change LSN/serial`, the LSN texts and 10 digits |
//! | oracle | `epoch/commit SCN/SCN/number in the transaction`, 20, 20 and 10 digits; (SCN, 0, 0) for a snapshot row |
//! | any other | `epoch/Kafka offset`, 20 digits |
//!
//! PostgreSQL sends a transaction's changes together, in the order of commits; their LSNs overlap with those of other
//! transactions. `source.sequence` holds the commit before the transaction, so (that commit, LSN) is the order. It may be
//! missing (the first transaction after a start) or stale (after a repeated snapshot); taking the greater of it, the LSN
//! itself and the LSN of the partition's last snapshot changes no order between two transactions and mends both. A
//! snapshot row has (snapshot LSN, 0): after every transaction it contains, before every one it does not.
//!
//! ```text
//!   snapshot at 150        (150, 0)
//!   T1 commits at 200      (150, 120)  began before the snapshot, is not in it
//!   T2 commits at 260      (200, 180) (210, 210)
//! ```

use std::cmp::Ordering;

/// Which kind of place, and so how many parts of what width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Postgres,
    MySql,
    SqlServer,
    Oracle,
    Offset,
}

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub kind: Kind,
    /// Which history of the source, counted from 0; at most 999,999.
    pub epoch: u32,
    /// Most significant first; unused ones are 0. SQL Server's two LSNs of 80 bits and its serial fill all of them.
    pub parts: [u64; 3],
}

const EPOCH_MAX: u32 = 999_999;
const TEN_8: u64 = 100_000_000;

impl Position {
    /// In the source's first history.
    pub(crate) fn new(kind: Kind, parts: [u64; 3]) -> Self {
        Self { kind, epoch: 0, parts }
    }

    /// SQL Server's: two LSNs, each in 64 and 16 bits, and the serial.
    pub(crate) fn sqlserver(commit: (u64, u16), change: (u64, u16), serial: u32) -> Self {
        let parts = [commit.0, u64::from(commit.1) << 48 | change.0 >> 16, change.0 << 48 | u64::from(change.1) << 32 | u64::from(serial)];
        Self::new(Kind::SqlServer, parts)
    }

    /// The same place in another history.
    pub(crate) fn in_epoch(self, epoch: u32) -> Self {
        Self { epoch: epoch.min(EPOCH_MAX), ..self }
    }

    /// Order inside one history; places of different kinds are not comparable.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        (self.kind == other.kind).then(|| (self.epoch, self.parts).cmp(&(other.epoch, other.parts)))
    }

    /// The order of the texts.
    pub(crate) fn text_order(&self, other: &Self) -> Ordering {
        self.compare(other).unwrap_or_else(|| {
            let text = |position: &Self| {
                let mut text = Vec::new();
                position.write(&mut text);
                text
            };
            text(self).cmp(&text(other))
        })
    }

    /// The text.
    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.epoch == 0 {
            out.extend_from_slice(b"000000/");
        } else {
            digits::<6>(u64::from(self.epoch), out);
            out.push(b'/');
        }
        let [first, second, third] = self.parts;
        match self.kind {
            Kind::Postgres => {
                let mut text = [b'/'; 41];
                let commit = twenty_digits(first);
                text[..20].copy_from_slice(&commit);
                text[21..].copy_from_slice(&if second == first { commit } else { twenty_digits(second) });
                out.extend_from_slice(&text);
            }
            Kind::MySql => {
                digits::<10>(first, out);
                out.push(b'/');
                digits::<20>(second, out);
                out.push(b'/');
                digits::<10>(third, out);
            }
            Kind::SqlServer => {
                lsn_text(first, second >> 48, out);
                out.push(b'/');
                lsn_text(second << 16 | third >> 48, third >> 32 & 0xffff, out);
                out.push(b'/');
                digits::<10>(third & 0xffff_ffff, out);
            }
            Kind::Oracle => {
                digits::<20>(first, out);
                out.push(b'/');
                digits::<20>(second, out);
                out.push(b'/');
                digits::<10>(third, out);
            }
            Kind::Offset => digits::<20>(first, out),
        }
    }

    /// Reads the text back; `None` = none of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        let epoch: u32 = parts.first()?.parse().ok()?;
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let position = match (lengths.as_slice(), parts.as_slice()) {
            ([6, 20, 20], [_, commit, lsn]) => Self::new(Kind::Postgres, [number(commit)?, number(lsn)?, 0]),
            ([6, 10, 20, 10], [_, file, pos, row]) => Self::new(Kind::MySql, [number(file)?, number(pos)?, number(row)?]),
            ([6, 22, 22, 10], [_, commit, change, serial]) => {
                Self::sqlserver(parse_lsn(commit.as_bytes())?, parse_lsn(change.as_bytes())?, serial.parse().ok()?)
            }
            ([6, 20, 20, 10], [_, commit, scn, number_in]) => Self::new(Kind::Oracle, [number(commit)?, number(scn)?, number(number_in)?]),
            ([6, 20], [_, offset]) => Self::new(Kind::Offset, [number(offset)?, 0, 0]),
            _ => return None,
        };
        Some(position.in_epoch(epoch))
    }
}

/// A number in so many digits, zeros in front; a wider one is shown as nines.
#[inline]
fn digits<const WIDTH: usize>(value: u64, out: &mut Vec<u8>) {
    let text: [u8; 24] = {
        let mut text = [0; 24];
        let (high, low) = (value / TEN_8, value % TEN_8);
        text[16..].copy_from_slice(&eight_digits(low));
        text[8..16].copy_from_slice(&eight_digits(high % TEN_8));
        text[..8].copy_from_slice(&eight_digits(high / TEN_8));
        text
    };
    let (front, field) = text.split_at(24 - WIDTH);
    if front.iter().all(|digit| *digit == b'0') {
        out.extend_from_slice(field);
    } else {
        out.extend_from_slice(&[b'9'; WIDTH]);
    }
}

/// A number in 20 digits, zeros in front.
#[inline(always)]
fn twenty_digits(value: u64) -> [u8; 20] {
    let mut text = [b'0'; 20];
    let (high, low) = (value / TEN_8, value % TEN_8);
    text[12..].copy_from_slice(&eight_digits(low));
    text[4..12].copy_from_slice(&eight_digits(high % TEN_8));
    if high >= TEN_8 {
        let [.., thousands, hundreds, tens, ones] = eight_digits(high / TEN_8);
        text[..4].copy_from_slice(&[thousands, hundreds, tens, ones]);
    }
    text
}

/// A number below 100,000,000 in eight digits, all of them at once: halves, then quarters, then digits.
#[inline(always)]
fn eight_digits(value: u64) -> [u8; 8] {
    let halves = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds | ((halves - 100 * hundreds) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((quarters - 10 * tens) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

fn lsn_text(high: u64, low: u64, out: &mut Vec<u8>) {
    let text = format!("{:08x}:{:08x}:{:04x}", high >> 32, high & 0xffff_ffff, low & 0xffff);
    out.extend_from_slice(text.as_bytes());
}

/// SQL Server's `00000027:00000ac0:0002`, in 64 and 16 bits.
pub(crate) fn parse_lsn(text: &[u8]) -> Option<(u64, u16)> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parts = text.split(':');
    let mut next = |width: usize| parts.next().filter(|part| part.len() == width).and_then(|part| u64::from_str_radix(part, 16).ok());
    let high = next(8)? << 32 | next(8)?;
    let low = u16::try_from(next(4)?).ok()?;
    parts.next().is_none().then_some((high, low))
}

/// The number at the end of a binlog file's name and the name before it.
pub(crate) fn binlog(file: &[u8]) -> Option<(&[u8], u64)> {
    let digits = file.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (base, number) = file.split_at(file.len() - digits);
    let base = base.strip_suffix(b".").unwrap_or(base);
    Some((base, std::str::from_utf8(number).ok()?.parse().ok()?))
}

/// What a change says about its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The place; `None` = it says none.
    pub position: Option<Position>,
    /// The kind of places its connector has.
    pub kind: Kind,
    /// What kind of snapshot row it is, if it is one.
    pub snapshot: Snapshot,
    /// When it happened at the source, µs since the epoch.
    pub ts_us: Option<i64>,
}

/// Whether a change is a row read by a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// A change of the stream.
    No,
    /// A row of a snapshot that precedes the stream.
    Initial,
    /// A row of a snapshot taken while the stream flows.
    Incremental,
}

/// What to do when positions run backwards and no change of server explains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backwards {
    Stop,
    NewEpoch,
    Accept,
}

/// What one partition of a topic has shown so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    /// The last row's.
    last: Option<Position>,
    /// The greatest of the present epoch.
    greatest: Option<Position>,
    /// The latest time of a change.
    latest_us: Option<i64>,
    /// PostgreSQL: LSN of the last snapshot.
    floor: u64,
    /// The server the last change came from, where the connector says.
    server: Option<Vec<u8>>,
    epoch: u32,
    /// When the present epoch began; what is older belongs to the one before.
    epoch_from_us: Option<i64>,
}

/// A change's place, decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub position: Position,
    /// Whether it lies before one already seen, as after a restart of the connector.
    pub repeated: bool,
}

impl Track {
    /// Where a table left off.
    pub(crate) fn resumed(position: &str, server: Option<&str>, ts_us: Option<i64>) -> Self {
        let last = Position::parse(position);
        // A snapshot row in last place tells the snapshot's LSN; after it nothing needs it any more.
        let floor = last.filter(|last| last.kind == Kind::Postgres && last.parts[1] == 0).map_or(0, |last| last.parts[0]);
        Self {
            last,
            greatest: last,
            latest_us: ts_us,
            floor,
            server: server.map(|server| server.as_bytes().to_vec()),
            epoch: last.map_or(0, |last| last.epoch),
            epoch_from_us: None,
        }
    }

    /// The last row's place.
    pub(crate) fn last(&self) -> Option<Position> {
        self.last
    }

    /// Decides a change's place. Call [`Track::accept`] once its row stands.
    ///
    /// A connector that restarts sends older changes again, at the places and with the source times they had: a place
    /// before the greatest is a repetition unless the change is *later* than every one seen. Then the source's positions
    /// themselves have begun anew: a new epoch when the server is another one, else as `policy` says.
    ///
    /// # Errors
    /// The greatest place and the one found.
    pub(crate) fn place(&self, claim: &Claim, server: &[u8], offset: i64, policy: Backwards) -> Result<Placed, (Position, Position)> {
        if let (Some(position), Snapshot::No, Some(greatest)) = (claim.position, claim.snapshot, &self.greatest) {
            // The usual case: a change of the stream, further on than all before it.
            let position = self.lifted(position, Snapshot::No).in_epoch(self.epoch);
            let older = self.epoch > 0 && claim.ts_us.zip(self.epoch_from_us).is_some_and(|(ts, from)| ts < from);
            if !older && position.kind == greatest.kind && position.parts >= greatest.parts {
                return Ok(Placed { position, repeated: false });
            }
        }
        let here = Position::new(Kind::Offset, [u64::try_from(offset).unwrap_or(0), 0, 0]);
        let claimed = claim.position.map(|position| self.lifted(position, claim.snapshot).in_epoch(self.epoch));
        let borrowed = || self.last.unwrap_or_else(|| first(claim.kind, here));
        let position = match (claimed, claim.snapshot) {
            (Some(claimed), Snapshot::No | Snapshot::Initial) => claimed,
            (Some(claimed), Snapshot::Incremental) => {
                // Its own place is what the connector had read by then; never before what its partition has shown.
                return Ok(Placed { position: later(self.last, claimed), repeated: false });
            }
            (None, _) => return Ok(Placed { position: borrowed(), repeated: false }),
        };
        let Some(greatest) = self.greatest else { return Ok(Placed { position, repeated: false }) };
        let older = claim.ts_us.zip(self.epoch_from_us).is_some_and(|(ts, from)| ts < from);
        if older && self.epoch > 0 {
            return Ok(Placed { position: position.in_epoch(self.epoch - 1), repeated: true });
        }
        if matches!(position.compare(&greatest), Some(Ordering::Greater | Ordering::Equal)) {
            return Ok(Placed { position, repeated: false });
        }
        let later = claim.ts_us.zip(self.latest_us).is_some_and(|(ts, latest)| ts > latest);
        let same_kind = position.kind == greatest.kind;
        if !later && same_kind {
            return Ok(Placed { position, repeated: true });
        }
        let fresh = Placed { position: position.in_epoch(self.epoch.saturating_add(1)), repeated: false };
        if !same_kind || self.is_other(server) {
            return Ok(fresh);
        }
        match policy {
            Backwards::NewEpoch => Ok(fresh),
            Backwards::Accept => Ok(Placed { position, repeated: true }),
            Backwards::Stop => Err((greatest, position)),
        }
    }

    /// PostgreSQL: not before the partition's last snapshot.
    fn lifted(&self, mut position: Position, snapshot: Snapshot) -> Position {
        if position.kind == Kind::Postgres && snapshot == Snapshot::No {
            let [commit, lsn, _] = position.parts;
            position.parts[0] = commit.max(lsn).max(self.floor);
        }
        position
    }

    /// Whether a server is known and not the one before. `id:base name`, the id 0 where the connector does not know it.
    fn is_other(&self, server: &[u8]) -> bool {
        let Some(known) = &self.server else { return false };
        let parts = |server: &[u8]| {
            let at = server.iter().position(|byte| *byte == b':').unwrap_or(0);
            (server[..at].to_vec(), server[at..].to_vec())
        };
        let ((id, base), (known_id, known_base)) = (parts(server), parts(known));
        !server.is_empty() && (base != known_base || (id != known_id && id != b"0" && known_id != b"0"))
    }

    /// Remembers a change whose row stands.
    #[inline]
    pub(crate) fn accept(&mut self, placed: &Placed, claim: &Claim, server: &[u8]) {
        let position = placed.position;
        if position.epoch > self.epoch {
            self.epoch = position.epoch;
            self.epoch_from_us = claim.ts_us;
            self.greatest = None;
            self.latest_us = None;
            self.floor = 0;
        }
        self.last = Some(position);
        if position.epoch < self.epoch {
            return;
        }
        self.greatest = Some(match self.greatest {
            Some(greatest) if greatest.compare(&position) == Some(Ordering::Greater) => greatest,
            _ => position,
        });
        if claim.snapshot == Snapshot::Initial && position.kind == Kind::Postgres {
            self.floor = self.floor.max(position.parts[0]);
        }
        if claim.snapshot != Snapshot::Incremental {
            self.latest_us = self.latest_us.max(claim.ts_us);
        }
        if !server.is_empty() && !placed.repeated && self.server.as_deref() != Some(server) {
            self.server = Some(server.to_vec());
        }
    }
}

fn later(last: Option<Position>, claimed: Position) -> Position {
    match last {
        Some(last) if last.compare(&claimed) != Some(Ordering::Less) => last,
        _ => claimed,
    }
}

/// Where nothing has been seen yet: before everything, or the offset where places are offsets.
fn first(kind: Kind, here: Position) -> Position {
    match kind {
        Kind::Offset => here,
        Kind::Postgres | Kind::MySql | Kind::SqlServer | Kind::Oracle => Position::new(kind, [0; 3]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(position: &Position) -> String {
        let mut out = Vec::new();
        position.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn postgres(commit: u64, lsn: u64) -> Option<Position> {
        Some(Position::new(Kind::Postgres, [commit, lsn, 0]))
    }

    fn mysql(file: u64, pos: u64) -> Option<Position> {
        Some(Position::new(Kind::MySql, [file, pos, 0]))
    }

    fn step(
        track: &mut Track,
        position: Option<Position>,
        snapshot: Snapshot,
        ts: i64,
        server: &str,
    ) -> Result<String, (Position, Position)> {
        let kind = position.map_or(Kind::Postgres, |position| position.kind);
        let claim = Claim { position, kind, snapshot, ts_us: Some(ts) };
        let placed = track.place(&claim, server.as_bytes(), 0, Backwards::Stop)?;
        track.accept(&placed, &claim, server.as_bytes());
        Ok(text(&placed.position))
    }

    #[test]
    fn a_transaction_that_was_open_during_the_snapshot_sorts_after_it() {
        let mut track = Track::default();
        let snapshot = step(&mut track, postgres(0, 0).map(|p| Position { parts: [150, 0, 0], ..p }), Snapshot::Initial, 1, "").unwrap();
        let open = step(&mut track, postgres(0, 120), Snapshot::No, 2, "").unwrap();
        let next = step(&mut track, postgres(200, 180), Snapshot::No, 3, "").unwrap();
        let same = step(&mut track, postgres(200, 210), Snapshot::No, 3, "").unwrap();
        let mut sorted = vec![same.clone(), open.clone(), next.clone(), snapshot.clone()];
        sorted.sort();
        assert_eq!(sorted, [snapshot, open, next, same]);
    }

    #[test]
    fn a_restart_that_repeats_older_changes_goes_on_and_gives_them_their_old_places() {
        let mut track = Track::default();
        let first: Vec<_> =
            (1..5).map(|n| step(&mut track, postgres(n * 100, n * 100), Snapshot::No, i64::try_from(n).unwrap(), "").unwrap()).collect();
        let again: Vec<_> =
            (2..6).map(|n| step(&mut track, postgres(n * 100, n * 100), Snapshot::No, i64::try_from(n).unwrap(), "").unwrap()).collect();
        assert_eq!(first[1..], again[..3]);
        assert!(again[3] > again[2]);
    }

    #[test]
    fn a_later_change_at_an_earlier_place_stops_the_feed() {
        let mut track = Track::default();
        step(&mut track, postgres(500, 500), Snapshot::No, 10, "").unwrap();
        assert!(step(&mut track, postgres(20, 20), Snapshot::No, 11, "").is_err());
        assert!(step(&mut track, postgres(20, 20), Snapshot::Initial, 11, "").is_err());
    }

    #[test]
    fn another_server_begins_an_epoch_and_stragglers_stay_in_theirs() {
        let mut track = Track::default();
        let old = step(&mut track, mysql(900, 4), Snapshot::No, 10, "1:bin").unwrap();
        let new = step(&mut track, mysql(3, 4), Snapshot::No, 20, "2:bin").unwrap();
        assert_eq!(new, "000001/0000000003/00000000000000000004/0000000000");
        let straggler = step(&mut track, mysql(900, 2), Snapshot::No, 9, "1:bin").unwrap();
        assert!(straggler < old && old < new);
        let next = step(&mut track, mysql(3, 5), Snapshot::No, 21, "2:bin").unwrap();
        assert!(next > new);
    }

    #[test]
    fn a_new_server_is_recognised_after_a_restart_of_ours() {
        let mut track = Track::resumed("000000/0000000900/00000000000000000004/0000000000", Some("1:bin"), Some(10));
        assert_eq!(step(&mut track, mysql(3, 4), Snapshot::No, 20, "2:bin").unwrap(), "000001/0000000003/00000000000000000004/0000000000");
        let mut track = Track::resumed("000000/0000000900/00000000000000000004/0000000000", Some("1:bin"), Some(10));
        assert!(step(&mut track, mysql(3, 4), Snapshot::No, 20, "1:bin").is_err());
    }

    #[test]
    fn a_snapshot_row_without_server_id_is_no_other_server() {
        let mut track = Track::default();
        step(&mut track, mysql(1, 100), Snapshot::Initial, 10, "0:bin").unwrap();
        step(&mut track, mysql(1, 200), Snapshot::No, 11, "7:bin").unwrap();
        assert!(step(&mut track, mysql(1, 150), Snapshot::No, 12, "0:bin").is_err());
    }

    #[test]
    fn an_incremental_snapshot_row_takes_the_last_place_of_its_partition_also_after_a_restart() {
        let mut track = Track::default();
        let last = step(&mut track, postgres(100, 100), Snapshot::No, 1, "").unwrap();
        assert_eq!(step(&mut track, None, Snapshot::Incremental, 9, "").unwrap(), last);
        let mut track = Track::resumed(&last, None, Some(1));
        assert_eq!(step(&mut track, None, Snapshot::Incremental, 9, "").unwrap(), last);
        assert_eq!(step(&mut track, postgres(100, 90), Snapshot::Incremental, 9, "").unwrap(), last);
        assert!(step(&mut track, postgres(130, 130), Snapshot::Incremental, 9, "").unwrap() > last);
    }

    #[test]
    fn the_epoch_stops_at_its_last_number() {
        let mut track = Track::resumed("999999/0000000900/00000000000000000004/0000000000", Some("1:bin"), Some(10));
        assert!(step(&mut track, mysql(3, 4), Snapshot::No, 20, "2:bin").unwrap().starts_with("999999/"));
    }

    #[test]
    fn a_number_too_wide_for_its_field_is_shown_as_nines() {
        let mut out = Vec::new();
        digits::<10>(9_999_999_999, &mut out);
        digits::<10>(10_000_000_000, &mut out);
        digits::<20>(u64::MAX, &mut out);
        digits::<6>(42, &mut out);
        assert_eq!(out, b"9999999999999999999918446744073709551615000042");
    }

    #[test]
    fn server_texts_and_binlog_names_are_read() {
        assert_eq!(parse_lsn(b"00000027:00000ac0:0002"), Some((0x27 << 32 | 0xac0, 2)));
        assert_eq!(parse_lsn(b"00000027:00000ac0"), None);
        assert_eq!(binlog(b"mysql-bin.000012"), Some((&b"mysql-bin"[..], 12)));
        assert_eq!(binlog(b"binlog.1000000"), Some((&b"binlog"[..], 1_000_000)));
        assert_eq!(binlog(b"binlog"), None);
    }

    proptest! {
        #[test]
        fn the_texts_sort_as_the_places_do(a in any::<(u32, u64, u64)>(), b in any::<(u32, u64, u64)>()) {
            for kind in [Kind::Postgres, Kind::MySql, Kind::SqlServer, Kind::Oracle, Kind::Offset] {
                let make = |(epoch, first, second): (u32, u64, u64)| {
                    let position = match kind {
                        Kind::Postgres => Position::new(kind, [first, second, 0]),
                        Kind::MySql => Position::new(kind, [first % 10_000_000_000, second, second % 10_000_000_000]),
                        Kind::Oracle => Position::new(kind, [first, second, second % 10_000_000_000]),
                        Kind::SqlServer => Position::sqlserver((first, second as u16), (second, first as u16), epoch),
                        Kind::Offset => Position::new(kind, [first, 0, 0]),
                    };
                    position.in_epoch(epoch % 1_000_000)
                };
                let (a, b) = (make(a), make(b));
                prop_assert_eq!(a.compare(&b), Some(text(&a).cmp(&text(&b))));
                prop_assert_eq!(Position::parse(&text(&a)), Some(a));
            }
        }
    }
}
