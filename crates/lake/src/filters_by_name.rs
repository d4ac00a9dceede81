//! The engine's filters go down a plan only where names tell columns apart.
//!
//! Its rule finds a column of a filter again by name, on every step down. Where a step has two columns of one name, as most joins
//! have, the filter is put over the other one: rows go that should stay. Filters of the query itself are moved before, on the logical
//! plan, by column; what is given up here is what only the physical plan knows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;

/// How the names of the rule begin.
const RULE: &str = "FilterPushdown";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The engine's rules, those that move filters by name held to plans in which a name is one column.
pub(crate) fn rules() -> Vec<Rule> {
    let held = |rule: Rule| -> Rule { if rule.name().starts_with(RULE) { Arc::new(WhereNamesTell(rule)) } else { rule } };
    PhysicalOptimizer::new().rules.into_iter().map(held).collect()
}

#[derive(Debug)]
struct WhereNamesTell(Rule);

impl PhysicalOptimizerRule for WhereNamesTell {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if names_tell(plan.as_ref()) { self.0.optimize(plan, config) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether no step of a plan has two columns of one name.
fn names_tell(plan: &dyn ExecutionPlan) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::new();
    schema.fields().iter().all(|field| names.insert(field.name().as_str()))
        && plan.children().into_iter().all(|child| names_tell(child.as_ref()))
}
