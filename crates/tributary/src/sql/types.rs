//! Types a cast may name.

use tributary_lake::datafusion::sql::sqlparser::ast::{DataType, ExactNumberInfo, TimezoneInfo};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use super::Error;

/// Refuses a type that the engine reads otherwise, or not at all.
pub(super) fn check(data_type: &DataType, span: Span) -> Result<(), Error> {
    match data_type {
        DataType::Boolean
        | DataType::TinyInt(None)
        | DataType::SmallInt(None)
        | DataType::Int(None)
        | DataType::Integer(None)
        | DataType::BigInt(None)
        | DataType::Float(ExactNumberInfo::None)
        | DataType::Real
        | DataType::Double(ExactNumberInfo::None)
        | DataType::String(None)
        | DataType::Date
        | DataType::Timestamp(None, TimezoneInfo::None) => Ok(()),
        DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => match info {
            ExactNumberInfo::PrecisionAndScale(_, _) | ExactNumberInfo::Precision(_) => Ok(()),
            ExactNumberInfo::None => {
                let hint = format!("say precision and scale: {data_type}(10, 0) is what the dialect means by it");
                Err(Error::refused_with_hint(format!("the type {data_type}"), hint, span))
            }
        },
        other => Err(Error::refused(format!("the type {other}"), span)),
    }
}
