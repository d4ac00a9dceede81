//! Rows marked as deleted: the deletion vectors of a commit.
//!
//! What must stay true:
//! - A vector holds what the file's vector before it held, and the commit's rows; nothing that is marked is ever live again.
//! - A file of which no row is left is removed.
//! - Small vectors stand in the log; the others of a commit share one file, `deletion_vector_<uuid>.bin` in the table's root.

use delta_kernel::DeltaResult;
use delta_kernel::actions::deletion_vector_writer::{DeletionVector as Serialized, StreamingDeletionVectorWriter};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::log::kernel_error;
use crate::{DataFile, DeletionVector, Error, Result, RowMarks, Table, deletion_vector};

/// Bytes of a vector that still stands in the log: some forty scattered rows. It spares whoever opens the file a request.
const INLINE_BYTES_MAX: usize = 128;

/// In front of a vector in Roaring's portable form.
const MAGIC: u32 = 1_681_511_377;

/// A file whose rows a commit marks.
#[derive(Debug)]
pub(crate) struct Marked {
    /// As the snapshot has it.
    pub file: DataFile,
    /// What it has after the commit; none when no row is left.
    pub vector: Option<DeletionVector>,
}

/// Writes the vectors of a commit.
///
/// # Errors
/// [`Error::Malformed`] for marks of rows that are not live, or of a file whose rows nobody counted; store errors.
pub(crate) async fn write(table: &Table, marks: &[RowMarks]) -> Result<Vec<Marked>> {
    let id = table.lake().new_id();
    let mut in_files = Vec::new();
    let (mut bytes, mut marked) = (Vec::new(), Vec::with_capacity(marks.len()));
    let mut writer = StreamingDeletionVectorWriter::new(&mut bytes);
    for marks in marks {
        let before = match &marks.file.deletion_vector {
            Some(vector) => deletion_vector::rows(table.log(), vector).await?,
            None => RoaringTreemap::new(),
        };
        let rows = united(before, marks).map_err(|reason| Error::Malformed { table: table.name().clone(), reason })?;
        let file = marks.file.clone();
        let vector = match file.stats.rows {
            Some(all) if all == rows.len() => None,
            _ if rows.serialized_size() <= INLINE_BYTES_MAX => Some(inline(&rows)),
            _ => {
                let count = rows.len();
                let kept = rows.clone();
                let written = writer.write_deletion_vector(Rows(rows)).map_err(|error| kernel_error(table.name(), error))?;
                in_files.push((written.offset, kept));
                Some(DeletionVector {
                    storage_type: "u".to_owned(),
                    path_or_inline_dv: z85(id.as_bytes()),
                    offset: Some(written.offset),
                    size_in_bytes: written.size_in_bytes,
                    rows: count,
                })
            }
        };
        marked.push(Marked { file, vector });
    }
    writer.finalize().map_err(|error| kernel_error(table.name(), error))?;
    if !in_files.is_empty() {
        put(table, id, bytes).await?;
        in_files.iter().for_each(|(offset, rows)| table.log().kept.keep_vector(&z85(id.as_bytes()), Some(*offset), rows));
    }
    Ok(marked)
}

async fn put(table: &Table, id: Uuid, bytes: Vec<u8>) -> Result<()> {
    let log = table.log();
    let name = format!("deletion_vector_{id}.bin");
    let action = || format!("writing {name} of table {}", table.name());
    let place = Path::parse(format!("{}/{name}", log.root)).map_err(|error| Error::store(action(), error.into()))?;
    log.store.put(&place, bytes.into()).await.map(drop).map_err(|error| Error::store(action(), error))
}

/// The rows marked before and those marked now.
fn united(before: RoaringTreemap, marks: &RowMarks) -> Result<RoaringTreemap, String> {
    let RowMarks { file, rows } = marks;
    let of_file = |reason: &str| format!("marks of rows of file {} {reason}", file.path);
    let Some(all) = file.stats.rows else { return Err(of_file("whose rows nobody counted")) };
    let mut now = RoaringTreemap::new();
    now.append(rows.iter().copied()).map_err(|_| of_file("that are not ascending"))?;
    match now.max() {
        None => return Err(of_file("that are none")),
        Some(last) if last >= all => return Err(of_file("behind its last one")),
        Some(_) if !now.is_disjoint(&before) => return Err(of_file("that are marked already")),
        Some(_) => {}
    }
    Ok(before | now)
}

fn inline(rows: &RoaringTreemap) -> DeletionVector {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    // Writing to memory does not fail.
    let _ = rows.serialize_into(&mut bytes);
    DeletionVector {
        storage_type: "i".to_owned(),
        path_or_inline_dv: z85(&bytes),
        offset: None,
        size_in_bytes: i32::try_from(bytes.len()).unwrap_or(i32::MAX),
        rows: rows.len(),
    }
}

/// A vector as the kernel's writer takes it.
struct Rows(RoaringTreemap);

impl Serialized for Rows {
    type IndexIterator = roaring::treemap::IntoIter;

    fn into_iter(self) -> Self::IndexIterator {
        self.0.into_iter()
    }

    fn cardinality(&self) -> u64 {
        self.0.len()
    }

    fn serialize(self) -> DeltaResult<bytes::Bytes> {
        let mut bytes = Vec::with_capacity(self.0.serialized_size());
        self.0.serialize_into(&mut bytes).map_err(|error| delta_kernel::Error::generic(error.to_string()))?;
        Ok(bytes.into())
    }
}

/// Bytes as the log spells them: base 85, filled up with zeros to words of four bytes.
fn z85(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for chunk in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        text.extend([85_u32.pow(4), 85_u32.pow(3), 85_u32.pow(2), 85, 1].map(|place| char::from(DIGITS[(word / place % 85) as usize])));
    }
    text
}

/// Statistics of a file once rows of it are marked: their bounds hold, but may be those of marked rows.
pub(crate) fn with_loose_bounds(stats: &str) -> String {
    const KEY: &str = "\"tightBounds\"";
    let end = stats.rfind('}').unwrap_or(stats.len());
    match top_level(stats, KEY) {
        Some(at) => {
            let colon = stats[at + KEY.len()..].find(':').map_or(end, |colon| at + KEY.len() + colon + 1);
            let after = stats[colon..].find([',', '}']).map_or(end, |after| colon + after);
            format!("{}false{}", &stats[..colon], &stats[after..])
        }
        None => {
            let is_empty = stats[..end].trim_end().ends_with('{');
            format!("{}{}{KEY}:false{}", &stats[..end], if is_empty { "" } else { "," }, &stats[end..])
        }
    }
}

/// Where a key of the outermost object begins. The text is not read and written again: numbers would lose digits.
fn top_level(json: &str, key: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for (at, byte) in json.bytes().enumerate() {
        if in_text {
            (in_text, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        match byte {
            b'"' if depth == 1 && json[at..].starts_with(key) && json[at + key.len()..].trim_start().starts_with(':') => return Some(at),
            b'"' => in_text = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_become_loose_and_nothing_else_of_the_text_changes() {
        let cases = [
            (r#"{"numRecords":3,"tightBounds":true}"#, r#"{"numRecords":3,"tightBounds":false}"#),
            (r#"{"tightBounds" : true, "maxValues":{"a":1.50}}"#, r#"{"tightBounds" :false, "maxValues":{"a":1.50}}"#),
            (
                r#"{"numRecords":3,"minValues":{"d":12345678901234567890.10}}"#,
                r#"{"numRecords":3,"minValues":{"d":12345678901234567890.10},"tightBounds":false}"#,
            ),
            (r#"{"minValues":{"tightBounds":true,"t":"\"}{"}}"#, r#"{"minValues":{"tightBounds":true,"t":"\"}{"},"tightBounds":false}"#),
            (r#"{"minValues":{"t":"\\"},"tightBounds":true}"#, r#"{"minValues":{"t":"\\"},"tightBounds":false}"#),
            ("{}", r#"{"tightBounds":false}"#),
        ];
        for (stats, loose) in cases {
            assert_eq!(with_loose_bounds(stats), loose);
            assert_eq!(with_loose_bounds(loose).replace(": ", ":"), loose.replace(": ", ":"));
        }
    }

    #[test]
    fn bytes_are_spelt_as_the_protocol_says() {
        // The example of the protocol, without its prefix.
        let id = Uuid::parse_str("d2c639aa-8816-431a-aaf6-d3fe2512ff61").unwrap();
        assert_eq!(z85(id.as_bytes()), "^-aqEH.-t@S}K{vb[*k^");
        // The example of the base's own specification.
        assert_eq!(z85(&[0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]), "HelloWorld");
    }
}
