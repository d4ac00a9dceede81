//! The SQL text of constraints, defaults and generated columns, as other engines wrote it, over a batch.
//!
//! The text is Spark's. It is translated node by node and function by function: what is not listed here, or would mean
//! something else in the query engine below, is refused by name, never evaluated approximately. Column names match
//! without regard to case. The session's time zone is UTC.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use chrono::{DateTime, Utc};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::context::ExecutionProps;
use datafusion::functions::expr_fn as functions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, ExprSchemable, Like, Operator, cast, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::DatabricksDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Why a text cannot be evaluated; completes "cannot be evaluated: …".
pub(crate) type Reason = String;

/// An expression ready to run over batches of one schema.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    physical: Arc<dyn PhysicalExpr>,
    columns: Vec<String>,
}

impl Expression {
    /// Translates `text` over `schema`. `now` is what `current_timestamp()` answers; without it the text must be deterministic.
    pub(crate) fn new(text: &str, schema: &Schema, now: Option<DateTime<Utc>>) -> Result<Self, Reason> {
        let parsed = Parser::new(&DatabricksDialect).try_with_sql(text).and_then(|mut parser| {
            let parsed = parser.parse_expr()?;
            parser.expect_token(&datafusion::sql::sqlparser::tokenizer::Token::EOF)?;
            Ok(parsed)
        });
        let parsed = parsed.map_err(|error| error.to_string())?;
        // A constraint is looked at before nulls are refused, so any column may hold one.
        let fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let plain = |error: DataFusionError| error.strip_backtrace();
        let schema = Arc::new(DFSchema::try_from(Schema::new(fields)).map_err(plain)?);
        let translated = Translator { schema: &schema, now }.expression(&parsed)?;
        let mut columns: Vec<String> = translated.column_refs().into_iter().map(|column| column.name.clone()).collect();
        columns.sort_unstable();
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
        let coerced = simplifier.coerce(translated, &schema).and_then(|expression| simplifier.simplify(expression)).map_err(plain)?;
        let physical =
            create_physical_expr(&coerced, &schema, &ExecutionProps::new(), &PhysicalPlanningContext::default()).map_err(plain)?;
        Ok(Self { physical, columns })
    }

    /// The columns it looks at, as the schema spells them.
    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// One value a row.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef, Reason> {
        let value = self.physical.evaluate(batch).and_then(|value| value.into_array(batch.num_rows()));
        value.map_err(|error| error.strip_backtrace())
    }
}

struct Translator<'a> {
    schema: &'a DFSchema,
    now: Option<DateTime<Utc>>,
}

impl Translator<'_> {
    fn expression(&self, node: &ast::Expr) -> Result<Expr, Reason> {
        use ast::Expr as Sql;
        Ok(match node {
            Sql::Nested(inner) => self.expression(inner)?,
            Sql::Identifier(name) => self.column(std::slice::from_ref(name))?,
            Sql::CompoundIdentifier(names) => self.column(names)?,
            Sql::Value(value) => literal(&value.value)?,
            Sql::TypedString(typed) => {
                let text = typed.value.value.clone().into_string().ok_or("a typed literal needs a text")?;
                lit(parse_literal(&text, &data_type(&typed.data_type)?)?)
            }
            Sql::IsNull(inner) => self.expression(inner)?.is_null(),
            Sql::IsNotNull(inner) => self.expression(inner)?.is_not_null(),
            Sql::IsTrue(inner) => self.expression(inner)?.is_true(),
            Sql::IsNotTrue(inner) => self.expression(inner)?.is_not_true(),
            Sql::IsFalse(inner) => self.expression(inner)?.is_false(),
            Sql::IsNotFalse(inner) => self.expression(inner)?.is_not_false(),
            Sql::IsDistinctFrom(left, right) => self.compared(left, Operator::IsDistinctFrom, right)?,
            Sql::IsNotDistinctFrom(left, right) => self.compared(left, Operator::IsNotDistinctFrom, right)?,
            Sql::UnaryOp { op: ast::UnaryOperator::Not, expr } => !self.expression(expr)?,
            Sql::UnaryOp { op: ast::UnaryOperator::Minus, expr } => Expr::Negative(Box::new(self.expression(expr)?)),
            Sql::UnaryOp { op: ast::UnaryOperator::Plus, expr } => self.expression(expr)?,
            Sql::BinaryOp { left, op, right } => self.binary(left, op, right)?,
            Sql::Between { expr, negated, low, high } => {
                let (value, low) = self.alike(self.expression(expr)?, self.expression(low)?)?;
                let (value, high) = self.alike(value, self.expression(high)?)?;
                Expr::Between(Between::new(Box::new(value), *negated, Box::new(low), Box::new(high)))
            }
            Sql::InList { expr, list, negated } => {
                let value = self.expression(expr)?;
                let list =
                    list.iter().map(|item| Ok(self.alike(value.clone(), self.expression(item)?)?.1)).collect::<Result<_, Reason>>()?;
                Expr::InList(InList::new(Box::new(value), list, *negated))
            }
            Sql::Like { negated, any: false, expr, pattern, escape_char: None } => {
                Expr::Like(Like::new(*negated, Box::new(self.text(expr)?), Box::new(self.text(pattern)?), None, false))
            }
            Sql::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                Expr::Like(Like::new(*negated, Box::new(self.text(expr)?), Box::new(self.text(pattern)?), None, true))
            }
            Sql::RLike { negated, expr, pattern, .. } => {
                let operator = if *negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
                operation(self.text(expr)?, operator, self.text(pattern)?)
            }
            Sql::Case { operand, conditions, else_result, .. } => self.case(operand.as_deref(), conditions, else_result.as_deref())?,
            Sql::Cast { kind: ast::CastKind::Cast | ast::CastKind::DoubleColon, expr, data_type: to, array: false, format: None } => {
                self.cast(self.expression(expr)?, &data_type(to)?)?
            }
            Sql::Extract { field, expr, .. } => self.date_part(&field.to_string(), self.expression(expr)?)?,
            Sql::Ceil { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                functions::ceil(self.expression(expr)?)
            }
            Sql::Floor { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                functions::floor(self.expression(expr)?)
            }
            Sql::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                self.substring(expr, from, substring_for.as_deref())?
            }
            Sql::Trim { trim_where: None, trim_what: None, expr, trim_characters: None } => functions::trim(vec![self.text(expr)?]),
            Sql::Function(function) => self.function(function)?,
            other => return Err(format!("`{other}` is not supported")),
        })
    }

    fn column(&self, names: &[ast::Ident]) -> Result<Expr, Reason> {
        let (first, rest) = names.split_first().ok_or("an empty name")?;
        let found = find(self.schema.fields().iter().map(|field| field.as_ref()), &first.value)?;
        let mut expression = Expr::Column(Column::new_unqualified(found.name()));
        let mut data_type = found.data_type();
        for name in rest {
            let DataType::Struct(fields) = data_type else { return Err(format!("`{}` is not a struct", first.value)) };
            let field = find(fields.iter().map(|field| field.as_ref()), &name.value)?;
            expression = functions::get_field(expression, field.name().as_str());
            data_type = field.data_type();
        }
        Ok(expression)
    }

    fn type_of(&self, expression: &Expr) -> Result<DataType, Reason> {
        expression.get_type(self.schema).map_err(|error| error.strip_backtrace())
    }

    fn text(&self, node: &ast::Expr) -> Result<Expr, Reason> {
        let expression = self.expression(node)?;
        match self.type_of(&expression)? {
            DataType::Utf8 | DataType::Null => Ok(expression),
            other => Err(format!("`{node}` is a {other}, not a text")),
        }
    }

    /// Both sides as values of one kind. A text literal becomes the other side's type, as Spark has it; a text column and a
    /// number are not compared, since engines do not agree how.
    fn alike(&self, left: Expr, right: Expr) -> Result<(Expr, Expr), Reason> {
        let (left_type, right_type) = (self.type_of(&left)?, self.type_of(&right)?);
        let is_text = |data_type: &DataType| *data_type == DataType::Utf8;
        if is_text(&left_type) == is_text(&right_type) || left_type.is_null() || right_type.is_null() {
            return Ok((left, right));
        }
        match (&left, &right) {
            (Expr::Literal(ScalarValue::Utf8(Some(text)), _), _) => Ok((lit(parse_literal(text, &right_type)?), right)),
            (_, Expr::Literal(ScalarValue::Utf8(Some(text)), _)) => {
                let literal = lit(parse_literal(text, &left_type)?);
                Ok((left, literal))
            }
            _ => Err(format!("a {left_type} is compared with a {right_type}")),
        }
    }

    fn compared(&self, left: &ast::Expr, operator: Operator, right: &ast::Expr) -> Result<Expr, Reason> {
        let (left, right) = self.alike(self.expression(left)?, self.expression(right)?)?;
        Ok(operation(left, operator, right))
    }

    fn binary(&self, left: &ast::Expr, operator: &ast::BinaryOperator, right: &ast::Expr) -> Result<Expr, Reason> {
        use ast::BinaryOperator as Sql;
        let operator = match operator {
            Sql::Eq => return self.compared(left, Operator::Eq, right),
            Sql::NotEq => return self.compared(left, Operator::NotEq, right),
            Sql::Lt => return self.compared(left, Operator::Lt, right),
            Sql::LtEq => return self.compared(left, Operator::LtEq, right),
            Sql::Gt => return self.compared(left, Operator::Gt, right),
            Sql::GtEq => return self.compared(left, Operator::GtEq, right),
            Sql::Spaceship => return self.compared(left, Operator::IsNotDistinctFrom, right),
            Sql::StringConcat => return Ok(operation(self.text(left)?, Operator::StringConcat, self.text(right)?)),
            Sql::And => Operator::And,
            Sql::Or => Operator::Or,
            Sql::Plus => Operator::Plus,
            Sql::Minus => Operator::Minus,
            Sql::Multiply => Operator::Multiply,
            Sql::Divide => return self.quotient(left, right),
            Sql::Modulo => Operator::Modulo,
            other => return Err(format!("operator `{other}` is not supported")),
        };
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        for side in [&left, &right] {
            if operator != Operator::And
                && operator != Operator::Or
                && !matches!(self.type_of(side)?, DataType::Null)
                && !self.type_of(side)?.is_numeric()
            {
                return Err(format!("operator `{operator}` is supported for numbers only"));
            }
        }
        Ok(operation(left, operator, right))
    }

    /// `/` of whole numbers is a fraction in Spark.
    fn quotient(&self, left: &ast::Expr, right: &ast::Expr) -> Result<Expr, Reason> {
        let side = |node| {
            let expression = self.expression(node)?;
            match self.type_of(&expression)? {
                DataType::Decimal128(_, _) => Err("division of decimals is not supported".to_owned()),
                data_type if data_type.is_numeric() => Ok(cast(expression, DataType::Float64)),
                other => Err(format!("a {other} is divided")),
            }
        };
        Ok(operation(side(left)?, Operator::Divide, side(right)?))
    }

    fn case(&self, operand: Option<&ast::Expr>, conditions: &[ast::CaseWhen], otherwise: Option<&ast::Expr>) -> Result<Expr, Reason> {
        let pairs = conditions
            .iter()
            .map(|when| {
                let condition = match operand {
                    Some(operand) => self.compared(operand, Operator::Eq, &when.condition)?,
                    None => self.expression(&when.condition)?,
                };
                Ok((Box::new(condition), Box::new(self.expression(&when.result)?)))
            })
            .collect::<Result<_, Reason>>()?;
        let otherwise = otherwise.map(|node| self.expression(node).map(Box::new)).transpose()?;
        Ok(Expr::Case(Case::new(None, pairs, otherwise)))
    }

    fn cast(&self, expression: Expr, to: &DataType) -> Result<Expr, Reason> {
        let from = self.type_of(&expression)?;
        if *to == DataType::Utf8 && (from.is_floating() || matches!(from, DataType::Timestamp(_, _) | DataType::Binary) || from.is_nested())
        {
            return Err(format!("a cast of {from} to text is not supported"));
        }
        Ok(cast(expression, to.clone()))
    }

    fn date_part(&self, part: &str, from: Expr) -> Result<Expr, Reason> {
        let part = match part.to_ascii_lowercase().as_str() {
            "year" | "years" => "year",
            "quarter" => "quarter",
            "month" | "months" => "month",
            "week" | "weekofyear" => "week",
            "day" | "days" | "dayofmonth" => "day",
            "dayofyear" | "doy" => "doy",
            "hour" | "hours" => "hour",
            "minute" | "minutes" => "minute",
            "second" | "seconds" => "second",
            "dayofweek" => return Ok(functions::date_part(lit("dow"), self.instant(from)?) + lit(1)),
            other => return Err(format!("part `{other}` of a time is not supported")),
        };
        Ok(functions::date_part(lit(part), self.instant(from)?))
    }

    /// A date or time; a text is not taken for one.
    fn instant(&self, expression: Expr) -> Result<Expr, Reason> {
        match self.type_of(&expression)? {
            DataType::Date32 | DataType::Timestamp(_, _) | DataType::Null => Ok(expression),
            other => Err(format!("a {other} is not a time")),
        }
    }

    fn substring(&self, text: &ast::Expr, from: &ast::Expr, length: Option<&ast::Expr>) -> Result<Expr, Reason> {
        let count = |node: &ast::Expr| match self.expression(node)? {
            Expr::Literal(ScalarValue::Int64(Some(count)), _) => Ok(count),
            _ => Err("substring takes literal positions only".to_owned()),
        };
        let from = count(from)?;
        if from < 1 {
            return Err("substring counts from 1".to_owned());
        }
        match length.map(count).transpose()? {
            None => Ok(functions::substr(self.text(text)?, lit(from))),
            Some(length) if length >= 0 => Ok(functions::substring(self.text(text)?, lit(from), lit(length))),
            Some(_) => Err("substring takes no negative length".to_owned()),
        }
    }

    fn function(&self, function: &ast::Function) -> Result<Expr, Reason> {
        let name = function.name.to_string().to_ascii_lowercase();
        let plain =
            function.filter.is_none() && function.over.is_none() && function.within_group.is_empty() && function.null_treatment.is_none();
        if !plain {
            return Err(format!("`{name}` with clauses is not supported"));
        }
        let nodes = arguments(function)?;
        if let ("substring" | "substr", [text, from, rest @ ..]) = (name.as_str(), nodes.as_slice()) {
            return self.substring(text, from, rest.first().copied());
        }
        let arguments = nodes.iter().map(|node| self.expression(node)).collect::<Result<Vec<_>, _>>()?;
        let texts = || {
            arguments.iter().try_for_each(|argument| match self.type_of(argument)? {
                DataType::Utf8 | DataType::Null => Ok(()),
                other => Err(format!("`{name}` is supported for texts, not for a {other}")),
            })
        };
        Ok(match (name.as_str(), arguments.as_slice()) {
            ("abs", [value]) => functions::abs(value.clone()),
            ("ceil" | "ceiling", [value]) => functions::ceil(value.clone()),
            ("floor", [value]) => functions::floor(value.clone()),
            ("isnan", [value]) => functions::isnan(value.clone()),
            ("isnull", [value]) => value.clone().is_null(),
            ("isnotnull", [value]) => value.clone().is_not_null(),
            ("coalesce", [_, ..]) | ("ifnull" | "nvl", [_, _]) => functions::coalesce(arguments),
            ("nullif", [value, other]) => functions::nullif(value.clone(), other.clone()),
            ("if", [condition, yes, no]) => {
                Expr::Case(Case::new(None, vec![(Box::new(condition.clone()), Box::new(yes.clone()))], Some(Box::new(no.clone()))))
            }
            ("greatest", [_, _, ..]) => functions::greatest(arguments),
            ("least", [_, _, ..]) => functions::least(arguments),
            ("lower" | "lcase", [value]) => texts().map(|()| functions::lower(value.clone()))?,
            ("upper" | "ucase", [value]) => texts().map(|()| functions::upper(value.clone()))?,
            ("trim", [value]) => texts().map(|()| functions::trim(vec![value.clone()]))?,
            ("ltrim", [value]) => texts().map(|()| functions::ltrim(vec![value.clone()]))?,
            ("rtrim", [value]) => texts().map(|()| functions::rtrim(vec![value.clone()]))?,
            ("length" | "len" | "char_length" | "character_length", [value]) => {
                texts().map(|()| functions::character_length(value.clone()))?
            }
            ("startswith", [value, part]) => texts().map(|()| functions::starts_with(value.clone(), part.clone()))?,
            ("endswith", [value, part]) => texts().map(|()| functions::ends_with(value.clone(), part.clone()))?,
            ("contains", [value, part]) => texts().map(|()| functions::contains(value.clone(), part.clone()))?,
            ("replace", [value, from, to]) => texts().map(|()| functions::replace(value.clone(), from.clone(), to.clone()))?,
            ("concat", [first, rest @ ..]) => {
                texts()?;
                rest.iter().cloned().fold(first.clone(), |left, right| operation(left, Operator::StringConcat, right))
            }
            ("regexp_like", [value, pattern]) => texts().map(|()| operation(value.clone(), Operator::RegexMatch, pattern.clone()))?,
            (
                "year" | "quarter" | "month" | "day" | "dayofmonth" | "dayofweek" | "dayofyear" | "weekofyear" | "hour" | "minute"
                | "second",
                [value],
            ) => self.date_part(&name, value.clone())?,
            ("date" | "to_date", [value]) => self.cast(value.clone(), &DataType::Date32)?,
            ("date_trunc", [unit, value]) => functions::date_trunc(lit(truncation(unit)?), self.timestamp(value)?),
            ("trunc", [value, unit]) => cast(functions::date_trunc(lit(truncation(unit)?), self.timestamp(value)?), DataType::Date32),
            ("date_format", [value, format]) => functions::to_char(self.instant(value.clone())?, lit(chrono_format(format)?)),
            ("current_timestamp" | "now", []) => {
                lit(ScalarValue::TimestampMicrosecond(Some(self.now(&name)?.timestamp_micros()), Some("UTC".into())))
            }
            ("current_date" | "curdate", []) => {
                let days = self.now(&name)?.timestamp().div_euclid(86_400);
                lit(ScalarValue::Date32(i32::try_from(days).ok()))
            }
            _ => return Err(format!("function `{name}` with {} arguments is not supported", nodes.len())),
        })
    }

    fn now(&self, name: &str) -> Result<DateTime<Utc>, Reason> {
        self.now.ok_or_else(|| format!("`{name}` is not deterministic"))
    }

    fn timestamp(&self, value: &Expr) -> Result<Expr, Reason> {
        let value = self.instant(value.clone())?;
        Ok(match self.type_of(&value)? {
            DataType::Date32 => cast(value, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            _ => value,
        })
    }
}

fn operation(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

fn find<'a>(fields: impl Iterator<Item = &'a Field> + Clone, name: &str) -> Result<&'a Field, Reason> {
    fields
        .clone()
        .find(|field| field.name() == name)
        .or_else(|| fields.clone().find(|field| field.name().eq_ignore_ascii_case(name)))
        .ok_or_else(|| format!("there is no column `{name}`"))
}

fn arguments(function: &ast::Function) -> Result<Vec<&ast::Expr>, Reason> {
    let list = match &function.args {
        ast::FunctionArguments::None => return Ok(Vec::new()),
        ast::FunctionArguments::List(list) if list.duplicate_treatment.is_none() && list.clauses.is_empty() => &list.args,
        _ => return Err(format!("the arguments of `{}` are not supported", function.name)),
    };
    list.iter()
        .map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(node)) => Ok(node),
            other => Err(format!("argument `{other}` is not supported")),
        })
        .collect()
}

fn literal(value: &ast::Value) -> Result<Expr, Reason> {
    Ok(match value {
        ast::Value::Null => lit(ScalarValue::Null),
        ast::Value::Boolean(value) => lit(*value),
        ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => lit(text.clone()),
        ast::Value::Number(text, _) => number(text)?,
        other => return Err(format!("literal `{other}` is not supported")),
    })
}

/// Whole numbers are longs, numbers with a point exact decimals, numbers with an exponent doubles.
fn number(text: &str) -> Result<Expr, Reason> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(lit(whole));
    }
    let refused = || format!("number `{text}` is not supported");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    if digits.chars().all(|digit| digit.is_ascii_digit()) && digits.len() <= 38 {
        let unscaled = digits.parse::<i128>().map_err(|_| refused())?;
        let precision = u8::try_from(digits.len().max(1)).map_err(|_| refused())?;
        let scale = i8::try_from(fraction.len()).map_err(|_| refused())?;
        return Ok(lit(ScalarValue::Decimal128(Some(unscaled), precision, scale)));
    }
    text.parse::<f64>().map(lit).map_err(|_| refused())
}

fn parse_literal(text: &str, to: &DataType) -> Result<ScalarValue, Reason> {
    ScalarValue::Utf8(Some(text.to_owned())).cast_to(to).map_err(|_| format!("the literal '{text}' is not a {to}"))
}

fn data_type(sql: &ast::DataType) -> Result<DataType, Reason> {
    use ast::DataType as Sql;
    let number = |value: u64| u8::try_from(value).map_err(|_| format!("type `{sql}` is not supported"));
    Ok(match sql {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(None) => DataType::Int8,
        Sql::SmallInt(None) => DataType::Int16,
        Sql::Int(None) | Sql::Integer(None) => DataType::Int32,
        Sql::BigInt(None) => DataType::Int64,
        Sql::Float(ast::ExactNumberInfo::None) | Sql::Real => DataType::Float32,
        Sql::Double(ast::ExactNumberInfo::None) | Sql::DoublePrecision => DataType::Float64,
        Sql::String(None) | Sql::Varchar(None) | Sql::Text => DataType::Utf8,
        Sql::Date => DataType::Date32,
        Sql::Timestamp(None, ast::TimezoneInfo::None) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Sql::Decimal(info) | Sql::Numeric(info) | Sql::Dec(info) => match info {
            ast::ExactNumberInfo::None => DataType::Decimal128(10, 0),
            ast::ExactNumberInfo::Precision(precision) => DataType::Decimal128(number(*precision)?, 0),
            ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                DataType::Decimal128(number(*precision)?, i8::try_from(*scale).map_err(|_| format!("type `{sql}` is not supported"))?)
            }
        },
        other if other.to_string().eq_ignore_ascii_case("long") => DataType::Int64,
        other if other.to_string().eq_ignore_ascii_case("timestamp_ntz") => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => return Err(format!("type `{other}` is not supported")),
    })
}

fn text_literal(expression: &Expr) -> Result<&str, Reason> {
    match expression {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Ok(text),
        _ => Err("a unit or format must be a literal text".to_owned()),
    }
}

fn truncation(unit: &Expr) -> Result<&'static str, Reason> {
    match text_literal(unit)?.to_ascii_lowercase().as_str() {
        "year" | "yyyy" | "yy" => Ok("year"),
        "quarter" => Ok("quarter"),
        "month" | "mon" | "mm" => Ok("month"),
        "week" => Ok("week"),
        "day" | "dd" => Ok("day"),
        "hour" => Ok("hour"),
        "minute" => Ok("minute"),
        "second" => Ok("second"),
        other => Err(format!("unit `{other}` is not supported")),
    }
}

/// `yyyy-MM-dd HH:mm:ss` and parts of it.
fn chrono_format(format: &Expr) -> Result<String, Reason> {
    let mut rest = text_literal(format)?;
    let mut chrono = String::new();
    'next: while let Some(character) = rest.chars().next() {
        for (letters, specifier) in [("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("ss", "%S")] {
            if let Some(after) = rest.strip_prefix(letters) {
                if after.starts_with(&letters[..1]) {
                    break;
                }
                chrono.push_str(specifier);
                rest = after;
                continue 'next;
            }
        }
        if !"-_/:. ".contains(character) {
            return Err(format!("format `{}` is not supported", text_literal(format)?));
        }
        chrono.push(character);
        rest = &rest[character.len_utf8()..];
    }
    Ok(chrono)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        AsArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray, StructArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::Int32Type;

    /// One row: Amount 12.50, Qty 5, Name "Ada", At 2026-02-06T12:34:56Z, Day 2026-02-06, Who.Given "Ada", Nothing null.
    fn row() -> RecordBatch {
        let who = StructArray::from(vec![(
            Arc::new(Field::new("Given", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec!["Ada"])) as ArrayRef,
        )]);
        RecordBatch::try_from_iter_with_nullable([
            ("Amount", Arc::new(Decimal128Array::from(vec![1250]).with_precision_and_scale(10, 2).unwrap()) as ArrayRef, true),
            ("Qty", Arc::new(Int32Array::from(vec![5])), true),
            ("Name", Arc::new(StringArray::from(vec!["Ada"])), true),
            ("At", Arc::new(TimestampMicrosecondArray::from(vec![1_770_381_296_000_000]).with_timezone("UTC")), true),
            ("Day", Arc::new(Date32Array::from(vec![20_490])), true),
            ("Who", Arc::new(who), true),
            ("Nothing", Arc::new(Int32Array::from(vec![None])), true),
            ("x y", Arc::new(Float64Array::from(vec![0.5])), true),
        ])
        .unwrap()
    }

    fn value(text: &str) -> Result<ScalarValue, Reason> {
        let batch = row();
        let array = Expression::new(text, &batch.schema(), None)?.evaluate(&batch)?;
        ScalarValue::try_from_array(&array, 0).map_err(|error| error.to_string())
    }

    #[test]
    fn predicates_mean_what_spark_means() {
        for text in [
            "amount > 12.49 AND AMOUNT < 12.51",
            "amount = '12.50'",
            "`x y` = 0.5",
            "qty / 2 = 2.5",
            "qty % 2 = 1",
            "name LIKE 'A%'",
            "name RLIKE '^A.a$'",
            "name in ('Eve', \"Ada\")",
            "qty BETWEEN 1 AND 5",
            "nothing <=> NULL",
            "nothing IS NULL",
            "coalesce(nothing, 7) = 7",
            "who.given = 'Ada'",
            "CASE WHEN qty > 3 THEN true ELSE false END",
            "CASE qty WHEN 5 THEN true END",
            "day = '2026-02-06'",
            "at >= TIMESTAMP '2026-02-06 12:34:56'",
            "year(at) = 2026 AND month(day) = 2 AND hour(at) = 12",
            "dayofweek(day) = 6",
            "date(at) = day",
            "length(name) = 3",
            "concat(name, '!') = 'Ada!'",
            "concat(name, cast(nothing as string)) IS NULL",
            "substring(name, 2, 1) = 'd'",
            "substr(name, 2) = 'da'",
            "date_format(at, 'yyyy-MM') = '2026-02'",
            "trunc(day, 'MM') = '2026-02-01'",
            "date_trunc('HOUR', at) = '2026-02-06 12:00:00'",
            "CAST(qty AS DECIMAL(10,2)) = 5.00",
            "amount >= '0.00'::decimal(18, 2)",
            "NOT (qty < 0) OR -qty > 0",
            "qty == 5",
        ] {
            assert_eq!(value(text), Ok(ScalarValue::Boolean(Some(true))), "{text}");
        }
        assert!(value("nothing > 1").unwrap().is_null());
    }

    #[test]
    fn what_would_mean_something_else_is_refused_by_name() {
        for (text, named) in [
            ("date_format(at, 'EEEE')", "EEEE"),
            ("date_format(at, 'MMM')", "MMM"),
            ("substring(name, 0, 2)", "counts from 1"),
            ("element_at(array(1), 1)", "array"),
            ("pmod(qty, 2) = 1", "pmod"),
            ("cast(at as string)", "cast"),
            ("amount / 3", "division of decimals"),
            ("name > qty", "compared"),
            ("missing = 1", "missing"),
            ("current_timestamp() > at", "not deterministic"),
            ("(SELECT 1)", "SELECT"),
            ("qty = 1; drop", ""),
            ("rand() > 0", "rand"),
        ] {
            let reason = value(text).unwrap_err();
            assert!(reason.contains(named), "{text}: {reason}");
        }
    }

    #[test]
    fn the_time_of_a_default_comes_from_the_door() {
        let now = DateTime::from_timestamp(86_400 * 2 + 5, 0).unwrap();
        let batch = row();
        let array = Expression::new("current_date()", &batch.schema(), Some(now)).unwrap().evaluate(&batch).unwrap();
        assert_eq!(array.as_primitive::<arrow::datatypes::Date32Type>().value(0), 2);
        let array = Expression::new("qty", &batch.schema(), None).unwrap().evaluate(&batch).unwrap();
        assert_eq!(array.as_primitive::<Int32Type>().value(0), 5);
    }
}
