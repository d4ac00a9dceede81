//! The context in which rewritten texts are planned.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::ScalarValue;
use tributary_lake::datafusion::common::config::Dialect;
use tributary_lake::datafusion::error::{DataFusionError, Result};
use tributary_lake::datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use tributary_lake::datafusion::prelude::SessionContext;

use crate::{coalesce, functions, join_order, literal, strings, sum};

/// Gives a context the dialect's meaning of nulls in an order, of numbers and of names, and the functions that rewritten texts
/// call.
pub fn prepare(context: &SessionContext) {
    {
        let state = context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.execution.time_zone = Some("UTC".to_owned());
        let parser = &mut options.sql_parser;
        parser.dialect = Dialect::Databricks;
        parser.enable_ident_normalization = false;
        parser.map_string_types_to_utf8view = false;
        parser.parse_float_as_decimal = true;
        parser.default_null_ordering = "nulls_min".to_owned();
    }
    // Functions that go by a setting took it when the context was made: they are told anew.
    let state = context.state();
    let settings = state.config().options();
    let told = state.scalar_functions().values().filter_map(|function| function.inner().with_updated_config(settings));
    told.for_each(|function| context.register_udf(function));
    functions::register(context);
    literal::register(context);
    join_order::register(context);
    strings::register(context);
    context.register_udf(coalesce::function());
    context.register_udf(CurrentUser::function(None));
    context.register_udf(IsMember::function(&[]));
    context.register_udaf(sum::function());
}

/// Says who runs the texts of a context: what `current_user()` answers. Without it, a text that asks is refused.
pub fn run_as(context: &SessionContext, user: &str) {
    context.register_udf(current_user(user));
}

/// The function that [`run_as`] registers, for contexts that others make.
pub fn current_user(user: &str) -> ScalarUDF {
    CurrentUser::function(Some(user))
}

/// Says of which groups that person is. Without it, `is_account_group_member('g')` is false of every group: nobody is known to be of any.
pub fn run_in_groups(context: &SessionContext, groups: &[String]) {
    context.register_udf(IsMember::function(groups));
}

/// `is_account_group_member(group)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IsMember {
    groups: Vec<String>,
    signature: Signature,
}

impl IsMember {
    fn function(groups: &[String]) -> ScalarUDF {
        let signature = Signature::exact(vec![DataType::Utf8], Volatility::Stable);
        ScalarUDF::from(Self { groups: groups.to_vec(), signature })
    }

    /// Of each group whether the person is of it; null of null.
    fn of(&self, groups: &StringArray) -> BooleanArray {
        groups.iter().map(|group| group.map(|group| self.groups.iter().any(|known| known == group))).collect()
    }
}

impl ScalarUDFImpl for IsMember {
    fn name(&self) -> &str {
        "is_account_group_member"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [group] = given.as_slice() else { return Err(DataFusionError::Internal("one group is asked for".to_owned())) };
        Ok(ColumnarValue::Array(Arc::new(self.of(group.as_string::<i32>()))))
    }
}

/// `current_user()`.
#[derive(Debug)]
struct CurrentUser {
    user: Option<String>,
    signature: Signature,
}

impl CurrentUser {
    fn function(user: Option<&str>) -> ScalarUDF {
        ScalarUDF::from(Self { user: user.map(str::to_owned), signature: Signature::nullary(Volatility::Stable) })
    }
}

impl PartialEq for CurrentUser {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user
    }
}

impl Eq for CurrentUser {}

impl Hash for CurrentUser {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.user.hash(state);
    }
}

impl ScalarUDFImpl for CurrentUser {
    fn name(&self) -> &str {
        "current_user"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        match &self.user {
            Some(_) => Ok(DataType::Utf8),
            None => Err(DataFusionError::Plan("who runs this text is not known".to_owned())),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(self.user.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_of_the_groups_that_were_said_and_of_no_other_in_this_very_spelling() {
        let answers = |groups: &[&str], asked: Option<&str>| {
            let member = IsMember {
                groups: groups.iter().map(|group| (*group).to_owned()).collect(),
                signature: Signature::any(1, Volatility::Stable),
            };
            let groups = [ColumnarValue::Scalar(ScalarValue::Utf8(asked.map(str::to_owned)))];
            let array = ColumnarValue::values_to_arrays(&groups).unwrap().remove(0);
            member.of(array.as_string::<i32>()).iter().next().flatten()
        };
        assert_eq!(answers(&["admins", "staff"], Some("staff")), Some(true));
        assert_eq!(answers(&["admins"], Some("Admins")), Some(false));
        assert_eq!(answers(&[], Some("admins")), Some(false));
        assert_eq!(answers(&["admins"], None), None);
    }
}
