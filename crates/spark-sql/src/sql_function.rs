//! Functions that people make of an expression: `CREATE FUNCTION … RETURN expr`.
//!
//! A call is the expression with the arguments in place of the parameters; where an argument answers otherwise each time it is asked
//! (`rand()`), the expression is evaluated over its value instead, so that it is asked once.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use tributary_lake::arrow::datatypes::{DataType as Arrow, Field, Schema};
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{DFSchema, ScalarValue};
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tributary_lake::datafusion::optimizer::simplify_expressions::ExprSimplifier;
use tributary_lake::datafusion::physical_expr::PhysicalExpr;
use tributary_specs::DataType;

use crate::convert::{exists, word};
use crate::growth::Growth;
use crate::statement::Parameter;
use crate::text::expression;
use crate::{Error, functions, type_name};

/// Every name of the dialect's functions that is executed.
pub fn names() -> impl Iterator<Item = &'static str> {
    functions::names()
}

/// A function as it was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFunction {
    /// Catalogue, schema and function.
    pub names: [String; 3],
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The type of its result; none = that of the expression.
    pub returns: Option<DataType>,
    /// The expression.
    pub body: String,
    /// Where the expression stood when it was declared.
    pub body_span: Option<(u64, u64)>,
}

impl SqlFunction {
    /// Its full name, by which texts find it.
    pub fn full_name(&self) -> String {
        self.names.join(".")
    }

    /// The function for the engine. `own` are the names of functions that its expression may call, registered in `state`.
    ///
    /// # Errors
    /// As [`expression`], with places of the text that declared it; a circle of functions cannot be, for a function calls only what is
    /// there before it.
    pub fn to_udf(&self, state: &SessionState, own: &[String]) -> Result<ScalarUDF, Error> {
        let field = |parameter: &Parameter| Field::new(&parameter.name, parameter.data_type.to_arrow(), true);
        let schema = Schema::new(self.parameters.iter().map(field).collect::<Vec<_>>());
        let qualified = DFSchema::try_from(schema.clone()).map_err(Error::plan)?;
        let body = expression(state, &self.text(), None, &qualified, own)?;
        let simplify = SimplifyContext::builder()
            .with_schema(Arc::new(qualified.clone()))
            .with_config_options(Arc::clone(state.config_options()))
            .with_query_execution_start_time(state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(simplify);
        let body = simplifier.coerce(body, &qualified).map_err(Error::plan)?;
        let volatility = volatility(&body).map_err(Error::plan)?;
        let returns = body.get_type(&qualified).map_err(Error::plan)?;
        let simple = simplifier.simplify(body.clone()).map_err(Error::plan)?;
        let physical = state.create_physical_expr(simple, &qualified).map_err(Error::plan)?;
        let parameters: Vec<String> = self.parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let growth = Growth::of(&body, &parameters).map_err(Error::plan)?;
        let takes = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(ScalarUDF::from(Inlined {
            name: self.full_name(),
            text: self.text(),
            schema: Arc::new(schema),
            takes,
            body,
            physical,
            returns,
            growth,
            signature: Signature::user_defined(volatility),
        }))
    }

    /// The expression, cast to what is returned, at the place it stood.
    fn text(&self) -> String {
        let (before, after) = match &self.returns {
            Some(returns) => ("CAST((", format!("\n) AS {})", type_name(returns))),
            None => ("", String::new()),
        };
        let (line, column) = self.body_span.unwrap_or((1, 1));
        let (lines, blanks) = (usize::try_from(line).unwrap_or(1) - 1, usize::try_from(column).unwrap_or(1) - 1);
        let head = match lines {
            0 => format!("{}{before}", " ".repeat(blanks.saturating_sub(before.len()))),
            lines => format!("{}{before}\n{}", "\n".repeat(lines - 1), " ".repeat(blanks)),
        };
        format!("{head}{}{after}", self.body)
    }
}

/// How often an expression answers alike.
fn volatility(body: &Expr) -> QueryResult<Volatility> {
    let mut found = Volatility::Immutable;
    body.apply(|inside| {
        if let Expr::ScalarFunction(call) = inside {
            found = match (found, call.func.signature().volatility) {
                (Volatility::Volatile, _) | (_, Volatility::Volatile) => Volatility::Volatile,
                (Volatility::Stable, _) | (_, Volatility::Stable) => Volatility::Stable,
                _ => Volatility::Immutable,
            };
        }
        if matches!(inside, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::AggregateFunction(_)) {
            return Err(DataFusionError::Plan("a function is of one row: it asks no table and no group".to_owned()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The function as the engine calls it.
#[derive(Debug)]
struct Inlined {
    name: String,
    text: String,
    schema: Arc<Schema>,
    takes: Vec<Arrow>,
    body: Expr,
    physical: Arc<dyn PhysicalExpr>,
    returns: Arrow,
    growth: Growth,
    signature: Signature,
}

/// What a call of a function that people made comes to; none of another function.
pub(crate) fn growth(function: &ScalarUDF) -> Option<&Growth> {
    inlined(function).map(|inlined| &inlined.growth)
}

/// The types that such a function takes, with as many arguments as there are.
pub(crate) fn takes(function: &ScalarUDF) -> Option<&[Arrow]> {
    inlined(function).map(|inlined| inlined.takes.as_slice())
}

fn inlined(function: &ScalarUDF) -> Option<&Inlined> {
    let function: &dyn Any = function.inner().as_ref();
    function.downcast_ref()
}

impl PartialEq for Inlined {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text && self.takes == other.takes
    }
}

impl Eq for Inlined {}

impl Hash for Inlined {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.text.hash(state);
    }
}

impl ScalarUDFImpl for Inlined {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[Arrow]) -> QueryResult<Arrow> {
        Ok(self.returns.clone())
    }

    fn coerce_types(&self, given: &[Arrow]) -> QueryResult<Vec<Arrow>> {
        if given.len() != self.takes.len() {
            let reason = format!("the function `{}` takes {} arguments, not {}", self.name, self.takes.len(), given.len());
            return Err(DataFusionError::Plan(reason));
        }
        for (at, (given, takes)) in given.iter().zip(&self.takes).enumerate() {
            if !exists(given, takes) {
                let (given, takes) = (word(given).to_uppercase(), word(takes).to_uppercase());
                let reason =
                    format!("argument {} of `{}` is {given} where {takes} is taken, which it cannot be cast to", at + 1, self.name);
                return Err(DataFusionError::Plan(reason));
            }
        }
        Ok(self.takes.clone())
    }

    fn simplify(&self, arguments: Vec<Expr>, _: &SimplifyContext) -> QueryResult<ExprSimplifyResult> {
        if arguments.iter().any(Expr::is_volatile) || arguments.len() != self.schema.fields().len() {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        let replaced = self.body.clone().transform(|inside| match &inside {
            Expr::Column(column) => match self.schema.index_of(&column.name) {
                Ok(at) => Ok(Transformed::yes(arguments[at].clone())),
                Err(_) => Ok(Transformed::no(inside)),
            },
            _ => Ok(Transformed::no(inside)),
        });
        Ok(ExprSimplifyResult::Simplified(replaced?.data))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { arguments.number_rows };
        let columns = arguments.args.iter().map(|argument| argument.to_array(rows)).collect::<QueryResult<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let answer = self.physical.evaluate(&batch)?;
        match (constant, answer) {
            (true, ColumnarValue::Array(array)) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            (_, answer) => Ok(answer),
        }
    }
}
