//! Headers of a record: owned by whoever read it, lent to the decoder.

use tributary_cdc_decode::Header;

/// The headers as the decoder reads them, in their order.
pub(crate) fn lent(owned: &[(String, Vec<u8>)]) -> Vec<Header<'_>> {
    owned.iter().map(|(key, value)| Header { key, value: Some(value) }).collect()
}
