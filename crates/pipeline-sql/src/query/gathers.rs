//! Clauses that make one row of several.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, NamedWindowExpr, Query as Tree, Select, SetExpr, SetOperator, Visit, Visitor, WindowSpec, WindowType,
};

/// A clause that makes one row of several, or of the order of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gathers {
    /// As it is written.
    pub(crate) clause: &'static str,
    /// Whether its rows follow from groups of rows, so that a streaming table can be kept equal to it.
    pub(crate) by_groups: bool,
}

impl Gathers {
    const fn by_groups(clause: &'static str) -> Self {
        Self { clause, by_groups: true }
    }

    const fn by_all(clause: &'static str) -> Self {
        Self { clause, by_groups: false }
    }

    /// The first clause of a query that no stream of rows can have.
    pub(super) fn of_query(tree: &Tree) -> Option<Self> {
        let Tree { body, order_by, limit_clause, fetch, .. } = tree;
        let of_rows = match (order_by.is_some(), limit_clause.is_some() || fetch.is_some()) {
            (true, _) => Some(Self::by_all("ORDER BY")),
            (_, true) => Some(Self::by_all("LIMIT")),
            _ => None,
        };
        of_rows.or_else(|| match &**body {
            SetExpr::Select(select) => Self::of_select(select),
            SetExpr::Query(inner) => Self::of_query(inner),
            SetExpr::SetOperation { op: SetOperator::Union, .. } => Some(Self::by_groups("UNION")),
            SetExpr::SetOperation { op: SetOperator::Intersect, .. } => Some(Self::by_all("INTERSECT")),
            SetExpr::SetOperation { .. } => Some(Self::by_all("EXCEPT")),
            _ => Some(Self::by_all("VALUES")),
        })
    }

    fn of_select(select: &Select) -> Option<Self> {
        let groups = match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(by, with) => !by.is_empty() || !with.is_empty(),
        };
        let windows = || {
            let mut windows = Windows { select, found: None };
            let _ = select.projection.visit(&mut windows);
            let _ = select.qualify.visit(&mut windows);
            windows.found
        };
        match select {
            Select { qualify: Some(_), .. } if windows() != Some(true) => Some(Self::by_all("QUALIFY without PARTITION BY")),
            Select { qualify: Some(_), .. } => Some(Self::by_groups("QUALIFY")),
            _ if groups => Some(Self::by_groups("GROUP BY")),
            Select { having: Some(_), .. } => Some(Self::by_all("HAVING without GROUP BY")),
            Select { distinct: Some(Distinct::Distinct), .. } => Some(Self::by_groups("DISTINCT")),
            Select { distinct: Some(Distinct::On(_)), .. } => Some(Self::by_all("DISTINCT ON")),
            _ => match windows() {
                Some(true) => Some(Self::by_groups("OVER")),
                Some(false) => Some(Self::by_all("OVER without PARTITION BY")),
                None => None,
            },
        }
    }
}

/// Looks for windows of a SELECT: whether each is of the rows that agree in something.
struct Windows<'s> {
    select: &'s Select,
    found: Option<bool>,
}

impl Windows<'_> {
    fn is_parted(&self, window: &WindowType) -> bool {
        match window {
            WindowType::WindowSpec(spec) => self.is_spec_parted(spec),
            WindowType::NamedWindow(name) => self.is_name_parted(&name.value, self.select.named_window.len()),
        }
    }

    fn is_spec_parted(&self, spec: &WindowSpec) -> bool {
        let of_name = |name: &sqlparser::ast::Ident| self.is_name_parted(&name.value, self.select.named_window.len());
        !spec.partition_by.is_empty() || spec.window_name.as_ref().is_some_and(of_name)
    }

    /// `steps`: names that may stand for each other at most.
    fn is_name_parted(&self, name: &str, steps: usize) -> bool {
        let named = self.select.named_window.iter().find(|named| named.0.value.eq_ignore_ascii_case(name));
        match named.map(|named| &named.1) {
            Some(NamedWindowExpr::WindowSpec(spec)) if spec.partition_by.is_empty() && steps > 0 => {
                spec.window_name.as_ref().is_some_and(|name| self.is_name_parted(&name.value, steps - 1))
            }
            Some(NamedWindowExpr::WindowSpec(spec)) => !spec.partition_by.is_empty(),
            Some(NamedWindowExpr::NamedWindow(name)) if steps > 0 => self.is_name_parted(&name.value, steps - 1),
            _ => false,
        }
    }
}

impl Visitor for Windows<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && let Some(window) = &function.over
        {
            self.found = Some(self.found.unwrap_or(true) && self.is_parted(window));
        }
        ControlFlow::Continue(())
    }
}
