//! Types a cast may name.

use tributary_lake::datafusion::sql::sqlparser::ast::{DataType, ExactNumberInfo, TimezoneInfo};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::Error;

/// Says a type as the engine means it; refuses one that it has not.
pub(crate) fn rewrite(data_type: &mut DataType, span: Span) -> Result<(), Error> {
    match data_type {
        // an instant, in microseconds
        DataType::Timestamp(None, TimezoneInfo::None) => {
            *data_type = DataType::Timestamp(Some(6), TimezoneInfo::WithTimeZone);
            Ok(())
        }
        DataType::TimestampNtz(None) => {
            *data_type = DataType::Timestamp(Some(6), TimezoneInfo::None);
            Ok(())
        }
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
        | DataType::Date => Ok(()),
        DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => match info {
            ExactNumberInfo::PrecisionAndScale(_, _) | ExactNumberInfo::Precision(_) => Ok(()),
            ExactNumberInfo::None => {
                *info = ExactNumberInfo::PrecisionAndScale(10, 0);
                Ok(())
            }
        },
        other => Err(Error::refused(format!("the type {other}"), span)),
    }
}
