//! Messages that bring their schema: `{"schema":…,"payload":…}`.
//!
//! The schema block is most of such a message and nearly always the one of the message before, so it is compared as bytes
//! and parsed only when it differs.

use crate::connect::Schema;
use crate::json::{Broken, Cursor, Kind};
use crate::layout::Layout;

/// One version of a schema block.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Everything up to the payload, where the schema comes first; else empty.
    prefix: Vec<u8>,
    /// The block's own text.
    raw: Vec<u8>,
    /// The block.
    pub schema: Schema,
    /// Where the fields of its rows go.
    pub layout: Layout,
}

/// The versions met, the last used tried first.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    last: usize,
}

/// More versions than this are not kept.
const MOST: usize = 32;

/// What a message turned out to be.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Without schema; the value begins at this byte.
    Bare {
        at: usize,
        /// Whether it is the whole message.
        whole: bool,
    },
    /// With the schema of this plan.
    Wrapped {
        plan: usize,
        at: usize,
        /// Whether the wrapper's closing bracket follows and has not been looked at.
        closing: bool,
    },
    /// With a schema not met before; to be laid out and kept by [`Plans::keep`].
    New(Box<NewPlan>),
    /// A null payload.
    Null,
}

/// A schema block that has just been read.
#[derive(Debug)]
pub(crate) struct NewPlan {
    pub schema: Schema,
    prefix: Vec<u8>,
    raw: Vec<u8>,
    at: usize,
}

impl NewPlan {
    /// Where the payload begins.
    pub(crate) fn payload_at(&self) -> usize {
        self.at
    }
}

impl Plans {
    /// Looks at a message without taking its payload.
    #[inline]
    pub(crate) fn open(&mut self, bytes: &[u8]) -> Result<Opened, Broken> {
        if let Some(found) = self.known(bytes) {
            return Ok(found);
        }
        let mut cursor = Cursor::new(bytes);
        match cursor.kind()? {
            Kind::Null => {
                cursor.skip()?;
                cursor.end()?;
                Ok(Opened::Null)
            }
            Kind::Object if looks_wrapped(bytes, cursor.at()) => self.parse(bytes),
            _ => Ok(Opened::Bare { at: cursor.at(), whole: true }),
        }
    }

    #[inline]
    fn known(&mut self, bytes: &[u8]) -> Option<Opened> {
        let matches = |plan: &Plan| !plan.prefix.is_empty() && bytes.starts_with(&plan.prefix);
        let plan = if self.plans.get(self.last).is_some_and(matches) { self.last } else { self.plans.iter().position(matches)? };
        self.last = plan;
        let at = self.plans.get(plan)?.prefix.len();
        if bytes.get(at) == Some(&b'n') {
            return None;
        }
        Some(Opened::Wrapped { plan, at, closing: true })
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Opened, Broken> {
        let mut cursor = Cursor::new(bytes);
        let start = {
            cursor.kind()?;
            cursor.at()
        };
        let (mut schema, mut payload, mut others) = (None, None, false);
        let mut members = cursor.object()?;
        while let Some(key) = cursor.member(&mut members)? {
            let kind = cursor.kind()?;
            let at = cursor.at();
            match key.raw {
                b"schema" => schema = Some((kind, at, cursor.raw()?)),
                b"payload" => {
                    payload = Some((kind, at));
                    cursor.skip()?;
                }
                _ => {
                    others = true;
                    cursor.skip()?;
                }
            }
        }
        cursor.end()?;
        let bare = Ok(Opened::Bare { at: start, whole: true });
        let (Some((schema_kind, schema_at, raw)), Some((payload_kind, at)), false) = (schema, payload, others) else { return bare };
        if !matches!(schema_kind, Kind::Object | Kind::Null) {
            return bare;
        }
        if payload_kind == Kind::Null {
            return Ok(Opened::Null);
        }
        if schema_kind == Kind::Null {
            return Ok(Opened::Bare { at, whole: false });
        }
        if let Some(plan) = self.plans.iter().position(|plan| plan.raw == raw) {
            self.last = plan;
            return Ok(Opened::Wrapped { plan, at, closing: false });
        }
        let read = Schema::read(&mut Cursor::new(raw))?;
        if read.kind.is_empty() {
            return bare;
        }
        let prefix = if schema_at < at { bytes.get(..at).unwrap_or_default().to_vec() } else { Vec::new() };
        Ok(Opened::New(Box::new(NewPlan { schema: read, prefix, raw: raw.to_vec(), at })))
    }

    /// Keeps a schema block with its layout; the next [`Plans::open`] of the message finds it.
    pub(crate) fn keep(&mut self, new: NewPlan, layout: Layout) {
        if self.plans.len() >= MOST {
            self.plans.remove(0);
        }
        self.plans.push(Plan { prefix: new.prefix, raw: new.raw, schema: new.schema, layout });
        self.last = self.plans.len() - 1;
    }

    /// A plan by the index that [`Plans::open`] gave.
    #[inline]
    pub(crate) fn get(&self, plan: usize) -> Option<&Plan> {
        self.plans.get(plan)
    }

    /// The plan used last.
    pub(crate) fn latest(&self) -> Option<&Plan> {
        self.plans.get(self.last)
    }
}

/// Whether the first key is `schema` or `payload`.
fn looks_wrapped(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at + 1..).unwrap_or_default().trim_ascii_start();
    rest.starts_with(b"\"schema\"") || rest.starts_with(b"\"payload\"")
}
