//! `coalesce` of strings beside other values: the engine knows no common type of them, and refuses to plan what `together` would bring
//! together.

use tributary_lake::arrow::datatypes::{DataType, FieldRef};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::functions::core::coalesce::CoalesceFunc;
use tributary_lake::datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use tributary_lake::datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::functions::common;
use crate::together::meeting;
use crate::value::canonical;

/// The function in place of the engine's.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(Coalesce { inner: CoalesceFunc::new() })
}

/// The engine's function, over values of the dialect's common type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce {
    inner: CoalesceFunc,
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        common(types)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn simplify(&self, arguments: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(arguments, info)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(arguments)
    }

    fn conditional_arguments<'a>(&self, arguments: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(arguments)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let known: Vec<DataType> = types.iter().map(canonical).collect();
        match meeting(&known)? {
            Some(to) => Ok(vec![to; types.len()]),
            None => self.inner.coerce_types(types),
        }
    }
}
