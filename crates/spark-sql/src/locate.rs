//! Where in a text a refusal comes from that has no place of its own: of the engine, or of what only types tell.
//!
//! Parts of the text are planned by themselves, larger ones first, and what alone is refused with the same words is looked into. The
//! place is the begin of the smallest such part. Only refused texts pay for it, and no more than [`ATTEMPTS_MAX`] plans.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use tributary_lake::datafusion::sql::sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Spanned,
    Statement as Parsed, TableFactor, TableWithJoins, Visit, Visitor, With,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{boolean, number};
use crate::rewrite::Rewriter;
use crate::{Error, depth, from, text};

/// Plans of parts at most.
const ATTEMPTS_MAX: u64 = 200;
/// Tables of all these plans at most, as far as there are still some of them.
const TABLES_MAX: u64 = 4096;
/// Plans of parts of a text of very many tables.
const ATTEMPTS_LEAST: u64 = 4;

/// Plans parts of a text.
pub(crate) struct Locator<'a> {
    state: &'a SessionState,
    rewriter: &'a Rewriter<'a>,
    levels: usize,
    /// What is looked for.
    refusal: &'a Error,
    left: u64,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(state: &'a SessionState, rewriter: &'a Rewriter<'a>, (levels, tables): (usize, u64), refusal: &'a Error) -> Self {
        let left = (TABLES_MAX / tables.max(1)).clamp(ATTEMPTS_LEAST, ATTEMPTS_MAX);
        Self { state, rewriter, levels, refusal, left }
    }

    /// Where the refusal of a statement comes from.
    pub(crate) fn statement(&mut self, statement: &Parsed) -> Option<Span> {
        match statement {
            Parsed::Query(query) => self.query(query, &[]).or_else(|| some(query.span())),
            Parsed::Explain { statement, .. } => self.statement(statement),
            _ => None,
        }
    }

    /// Whether a query is refused like the whole text.
    fn refuses(&mut self, query: Query) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let statement = Parsed::Query(Box::new(query));
        depth::with_room(self.levels, || match now(text::planned(statement, self.levels, self.rewriter, self.state)) {
            Some(Err(error)) => error.is_like(self.refusal),
            Some(Ok(_)) | None => false,
        })
    }

    fn query(&mut self, query: &Query, around: &[Cte]) -> Option<Span> {
        let mut named = around.to_vec();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            if self.refuses(with_names(&cte.query, &named)) {
                return self.query(&cte.query, &named).or_else(|| some(cte.query.span()));
            }
            named.push(cte.clone());
        }
        self.body(query, &query.body, &named).or_else(|| self.order(query, around))
    }

    fn body(&mut self, query: &Query, body: &SetExpr, named: &[Cte]) -> Option<Span> {
        match body {
            SetExpr::Select(select) => self.select(select, named),
            SetExpr::Query(inner) => self.query(inner, named),
            SetExpr::SetOperation { left, right, .. } => {
                for side in [left, right] {
                    if self.refuses(with_names(&of_body(side.as_ref().clone(), query), named)) {
                        return self.body(query, side, named).or_else(|| some(side.span()));
                    }
                }
                self.column(query, body, named).or_else(|| some(right.span()))
            }
            _ => None,
        }
    }

    /// The column of the second of two selects that does not go with that of the first.
    fn column(&mut self, query: &Query, body: &SetExpr, named: &[Cte]) -> Option<Span> {
        let SetExpr::SetOperation { left, right, op, set_quantifier } = body else { return None };
        let (SetExpr::Select(first), SetExpr::Select(second)) = (left.as_ref(), right.as_ref()) else { return None };
        let one = |select: &Select, item: &SelectItem| {
            let select =
                Select { projection: vec![item.clone()], group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()), ..select.clone() };
            Box::new(SetExpr::Select(Box::new(Select { having: None, ..select })))
        };
        first.projection.iter().zip(&second.projection).find_map(|(of_first, of_second)| {
            let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = of_second else { return None };
            let (left, right) = (one(first, of_first), one(second, of_second));
            let body = SetExpr::SetOperation { left, right, op: *op, set_quantifier: *set_quantifier };
            self.refuses(with_names(&of_body(body, query), named)).then(|| place(expression)).flatten()
        })
    }

    fn select(&mut self, select: &Select, named: &[Cte]) -> Option<Span> {
        for factor in
            select.from.iter().flat_map(|item| std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)))
        {
            if let TableFactor::Derived { subquery, .. } = factor
                && self.refuses(with_names(subquery, named))
            {
                return self.query(subquery, named).or_else(|| some(subquery.span()));
            }
        }
        if self.refuses(selecting(select, one(), named)) {
            return self.joins(select, named).or_else(|| some(select.from.first()?.span()));
        }
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item
                && self.refuses(selecting(select, item.clone(), named))
            {
                return self.expression(expression, select, named);
            }
        }
        let groups = match &select.group_by {
            GroupByExpr::Expressions(groups, _) => groups.as_slice(),
            GroupByExpr::All(_) => &[],
        };
        for expression in select.selection.iter().chain(groups).chain(&select.having).chain(&select.qualify) {
            if self.refuses(selecting(select, SelectItem::UnnamedExpr(expression.clone()), named)) {
                return self.expression(expression, select, named);
            }
        }
        for group in groups {
            let by = GroupByExpr::Expressions(vec![group.clone()], Vec::new());
            if self.refuses(with_names(&query_of(Select { group_by: by, ..bare(select, one()) }), named)) {
                return place(group);
            }
        }
        let filtered = Select { selection: select.selection.clone(), ..bare(select, one()) };
        if let Some(condition) = &select.selection
            && self.refuses(with_names(&query_of(filtered), named))
        {
            return place(condition);
        }
        self.named_in_reason(select)
    }

    /// Conditions of joins.
    fn joins(&mut self, select: &Select, named: &[Cte]) -> Option<Span> {
        let mut loose = select.clone();
        loose.from.iter_mut().flat_map(|item| &mut item.joins).for_each(loosen);
        for (item, join) in select.from.iter().flat_map(|item| item.joins.iter().map(move |join| (item, join))) {
            if let Some(condition) = condition(join) {
                if self.refuses(selecting(&loose, SelectItem::UnnamedExpr(condition.clone()), named)) {
                    return self.expression(&condition, &loose, named);
                }
                let until: Vec<Join> = item.joins.iter().take_while(|other| !std::ptr::eq(*other, join)).chain([join]).cloned().collect();
                let only = TableWithJoins { relation: item.relation.clone(), joins: until };
                if self.refuses(selecting(&Select { from: vec![only], ..select.clone() }, one(), named)) {
                    return place(&condition);
                }
            }
        }
        None
    }

    /// The smallest part of an expression that is refused by itself.
    fn expression(&mut self, expression: &Expr, select: &Select, named: &[Cte]) -> Option<Span> {
        let Parts { expressions, queries } = parts(expression);
        for query in queries {
            if self.refuses(with_names(&query, named)) {
                return self.query(&query, named).or_else(|| some(query.span()));
            }
        }
        for part in expressions {
            if self.refuses(selecting(select, SelectItem::UnnamedExpr(part.clone()), named)) {
                return self.expression(&part, select, named);
            }
        }
        place(expression)
    }

    fn order(&mut self, query: &Query, named: &[Cte]) -> Option<Span> {
        let order_by = query.order_by.as_ref()?;
        let OrderByKind::Expressions(expressions) = &order_by.kind else { return None };
        if let Some(span) = expressions.iter().find_map(|one| self.name_in(&one.expr)) {
            return Some(span);
        }
        let unordered = Query { order_by: None, limit_clause: None, ..query.clone() };
        if self.refuses(with_names(&unordered, named)) {
            return None;
        }
        expressions.iter().find_map(|one| {
            let kind = OrderByKind::Expressions(vec![one.clone()]);
            let ordered = Query { order_by: Some(OrderBy { kind, ..order_by.clone() }), ..unordered.clone() };
            self.refuses(with_names(&ordered, named)).then(|| place(&one.expr)).flatten()
        })
    }

    /// What the words of the refusal name, as a column that is not grouped by.
    fn named_in_reason(&self, select: &Select) -> Option<Span> {
        let items = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => Some(expression),
            _ => None,
        });
        items.chain(&select.having).chain(&select.qualify).find_map(|expression| self.name_in(expression))
    }

    fn name_in(&self, expression: &Expr) -> Option<Span> {
        let name = self.refusal.ungrouped()?;
        names(expression).into_iter().find(|(written, _)| written.eq_ignore_ascii_case(&name)).and_then(|(_, span)| some(span))
    }
}

/// Where the refusal of an expression comes from: the smallest part that `refuses` refuses likewise.
pub(crate) fn in_expression(expression: &Expr, refuses: &mut dyn FnMut(Expr) -> Option<Error>, refusal: &Error) -> Option<Span> {
    let (mut whole, mut left) = (expression.clone(), ATTEMPTS_MAX);
    loop {
        let mut is_like = |part: &Expr| {
            left = left.saturating_sub(1);
            left > 0 && refuses(part.clone()).is_some_and(|error| error.is_like(refusal))
        };
        match parts(&whole).expressions.into_iter().find(|part| is_like(part)) {
            Some(part) => whole = part,
            None => return place(&whole),
        }
    }
}

/// What a future comes to that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Where an expression stands: where it says so, else where the first of its parts does.
fn place(expression: &Expr) -> Option<Span> {
    some(expression.span()).or_else(|| parts(expression).expressions.iter().find_map(place))
}

/// A place that there is.
fn some(span: Span) -> Option<Span> {
    (span.start.line > 0).then_some(span)
}

fn one() -> SelectItem {
    SelectItem::ExprWithAlias { expr: number("1"), alias: Ident::new("one") }
}

/// The FROM of a select with something else selected.
fn bare(select: &Select, item: SelectItem) -> Select {
    Select {
        projection: vec![item],
        distinct: None,
        selection: None,
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        having: None,
        qualify: None,
        ..select.clone()
    }
}

fn selecting(select: &Select, item: SelectItem, named: &[Cte]) -> Query {
    with_names(&query_of(bare(select, item)), named)
}

fn query_of(select: Select) -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

fn of_body(body: SetExpr, like: &Query) -> Query {
    Query { with: None, body: Box::new(body), order_by: None, limit_clause: None, ..like.clone() }
}

/// A query in which these names of WITH can be used.
fn with_names(query: &Query, named: &[Cte]) -> Query {
    let mut query = query.clone();
    if named.is_empty() {
        return query;
    }
    let own = query.with.take();
    let (with_token, recursive) =
        own.as_ref().map_or_else(|| (AttachedToken::empty(), false), |with| (with.with_token.clone(), with.recursive));
    let cte_tables = named.iter().cloned().chain(own.into_iter().flat_map(|with| with.cte_tables)).collect();
    query.with = Some(With { with_token, recursive, cte_tables });
    query
}

/// The condition of a join. What stands on the right of some cannot be named in a select.
fn condition(join: &Join) -> Option<Expr> {
    match from::constraint(&mut join.join_operator.clone())? {
        (JoinConstraint::On(condition), true) => Some(condition.clone()),
        _ => None,
    }
}

/// Makes a join one of all rows with all.
fn loosen(join: &mut Join) {
    if condition(join).is_some() {
        join.join_operator = JoinOperator::Inner(JoinConstraint::On(boolean(true)));
    }
}

/// What an expression is made of.
struct Parts {
    expressions: Vec<Expr>,
    queries: Vec<Query>,
}

/// The expressions and queries that an expression holds, not those within these.
fn parts(expression: &Expr) -> Parts {
    struct Children {
        depth: usize,
        in_query: usize,
        parts: Parts,
    }
    impl Visitor for Children {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if self.depth == 1 && self.in_query == 0 {
                self.parts.queries.push(query.clone());
            }
            self.in_query += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.in_query -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            if self.depth == 1 && self.in_query == 0 {
                self.parts.expressions.push(expression.clone());
            }
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut children = Children { depth: 0, in_query: 0, parts: Parts { expressions: Vec::new(), queries: Vec::new() } };
    let _ = expression.visit(&mut children);
    children.parts
}

/// The last parts of the names that stand in an expression, and where.
fn names(expression: &Expr) -> Vec<(String, Span)> {
    struct Names(Vec<(String, Span)>);
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Identifier(name) => self.0.push((name.value.clone(), name.span)),
                Expr::CompoundIdentifier(parts) => {
                    if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
                        self.0.push((last.value.clone(), first.span));
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    let _ = expression.visit(&mut names);
    names.0
}
