//! Calls of functions: each is in the allow list as the engine has it, said otherwise, or refused.

use std::collections::BTreeMap;

use tributary_lake::datafusion::sql::sqlparser::ast::{
    CastKind, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, LambdaFunction, NullTreatment, ObjectName, OneOrManyWithParens, OrderByExpr, Spanned, Value, ValueWithSpan,
    WindowType,
};
use tributary_lake::datafusion::sql::sqlparser::tokenizer::Span;

use crate::ast::{boolean, call, case, number, object_name, text};
use crate::functions::{self, Known, Meaning, Rewrite};
use crate::rewrite::Rewriter;
use crate::scope::{Column, Relation, Scope};
use crate::{Error, likeness, literal, misplaced, stars, strings};

/// Functions whose first argument may be a unit of time without quotes, and what they are with it.
const OF_UNITS: &[(&[&str], &str)] =
    &[(&["datediff", "date_diff", "timestampdiff"], "timestampdiff"), (&["dateadd", "date_add", "timestampadd"], "timestampadd")];

impl Rewriter<'_> {
    /// Rewrites a call in place, or tells what stands for it.
    pub(crate) fn function(&self, function: &mut Function, scope: &Scope<'_>) -> Result<Option<Expr>, Error> {
        let span = function.span();
        of_unit(function);
        let Function { name, uses_odbc_syntax, parameters, args, filter, null_treatment, over, within_group } = function;
        let written = written(name);
        let refuse = |what: &str| Err(Error::refused(format!("{what} of `{written}`"), span));
        if *uses_odbc_syntax || !matches!(parameters, FunctionArguments::None) {
            return refuse("this form");
        }
        let meaning = match self.meaning(&written, is_plain(name), span)? {
            Meaning::Unknown => return Err(self.no_function(&written, span)),
            Meaning::Refused(hint) => return Err(Error::refused_with_hint(format!("the function `{written}`"), hint, span)),
            Meaning::Known(known) => known,
        };
        let is_ordered = matches!(written.as_str(), "percentile_cont" | "percentile_disc" | "listagg" | "string_agg");
        if !within_group.is_empty() && !is_ordered {
            return refuse("WITHIN GROUP");
        }
        let ignores_nulls =
            matches!(written.as_str(), "first" | "last" | "any_value" | "first_value" | "last_value" | "nth_value" | "lag" | "lead");
        if null_treatment.is_some() && !ignores_nulls {
            return refuse("IGNORE NULLS");
        }
        // what stars among the arguments stand for is called, by its place
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        let (arguments, plain) = match args {
            FunctionArguments::None => (Vec::new(), true),
            FunctionArguments::Subquery(_) => return refuse("a query as argument"),
            FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
                if !clauses.iter().all(|clause| ignores_nulls && matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_))) {
                    return refuse("a clause in the arguments");
                }
                let plain = duplicate_treatment.is_none() && clauses.is_empty();
                // `count(*)` counts rows
                let is_of_rows = written == "count" && duplicate_treatment.is_none();
                let mut told = Vec::with_capacity(args.len());
                for argument in args.iter_mut() {
                    match stars::argument(argument, scope)?.filter(|_| !is_of_rows) {
                        Some(columns) => {
                            let from = told.len();
                            told.extend(columns.iter().map(|(_, said)| Some(said.clone())));
                            names.extend(columns.into_iter().zip(from..).map(|((name, _), at)| (at, name)));
                        }
                        None => told.push(self.argument(argument, &written, scope)?),
                    }
                }
                if !names.is_empty() {
                    *args = unnamed(told.iter().flatten().cloned().collect());
                }
                (told, plain)
            }
        };
        if let Some(condition) = filter {
            self.all([condition.as_mut()], scope)?;
        }
        for order_by in within_group.iter_mut() {
            self.order_by_one(order_by, scope)?;
        }
        match over {
            Some(WindowType::WindowSpec(window)) => {
                misplaced::is_ordered(&written, &window.order_by, span)?;
                self.window(window, scope)?;
            }
            Some(WindowType::NamedWindow(_)) | None => {}
        }
        let plain = plain && filter.is_none() && over.is_none() && null_treatment.is_none() && within_group.is_empty();
        match meaning {
            Known::Same { name: engine, least, most, of_row } => {
                let ordered = std::mem::take(within_group);
                let is_numbers = strings::takes_numbers(&written) && !arguments.iter().any(Option::is_none);
                let arguments = if is_numbers {
                    let said = |one: Expr| if literal::is_number(&one) { one } else { call(strings::AS_NUMBER, vec![one]) };
                    let said: Vec<Expr> = arguments.into_iter().flatten().map(said).collect();
                    if let FunctionArguments::List(list) = args {
                        list.args = unnamed(said.clone());
                    }
                    said.into_iter().map(Some).collect()
                } else {
                    arguments
                };
                if !(least..=most).contains(&arguments.len()) {
                    return refuse(&format!("the form with {} arguments", arguments.len()));
                }
                if of_row && !plain {
                    return refuse("this form");
                }
                *name = object_name(engine);
                let arguments = with_order(arguments.into_iter().flatten().collect(), ordered)
                    .ok_or_else(|| Error::refused(format!("this WITHIN GROUP of `{written}`"), span))?;
                give(args, arguments);
                // a rank is an INT
                let ranks = matches!(engine, "row_number" | "rank" | "dense_rank" | "ntile") && function.over.is_some();
                Ok(ranks.then(|| own_cast(&CastKind::Cast, Expr::Function(function.clone()), "int")))
            }
            Known::Rewritten(rewrite) => {
                if of_group(rewrite, function, &arguments, &written, span)? {
                    return Ok(None);
                }
                match (plain, arguments.into_iter().collect::<Option<Vec<Expr>>>()) {
                    (true, Some(arguments)) if rewrite == Rewrite::Struct => Ok(Some(of_struct(arguments, &names))),
                    (true, Some(arguments)) => rewritten(rewrite, arguments, &written, span).map(Some),
                    _ => refuse("this form"),
                }
            }
        }
    }

    fn no_function(&self, written: &str, span: Span) -> Error {
        let mut known: Vec<&str> = functions::names().collect();
        known.extend(self.own.iter().flat_map(|own| [own.as_str(), own.rsplit('.').next().unwrap_or(own)]));
        let hint = tributary_fault::nearest(written, known.iter().copied()).map(|name| format!("the nearest known name is `{name}`"));
        Error::Refused { what: format!("the function `{written}`"), hint, span: crate::error::position(span) }
    }

    /// What is wrong with the name of a call, whatever its arguments are.
    pub(crate) fn unknown(&self, function: &Function) -> Option<Error> {
        let (written, span) = (written(&function.name), function.span());
        // what is read as a call and is none
        let is_other = matches!(written.as_str(), "all" | "any" | "some");
        match self.meaning(&written, is_plain(&function.name), span) {
            Ok(Meaning::Unknown) if !is_other => Some(self.no_function(&written, span)),
            _ => None,
        }
    }

    /// What the function of this name, in lower case, is: one of the program's own, the dialect's, or one that people made, which may
    /// be called by its last parts where only one is called so.
    fn meaning<'r>(&'r self, written: &str, is_plain: bool, span: Span) -> Result<Meaning<'r>, Error> {
        let same = |name: &'r str| Meaning::Known(Known::Same { name, least: 0, most: usize::MAX, of_row: false });
        if let Some(own) = self.own.iter().find(|own| own.to_lowercase() == written) {
            return Ok(same(own));
        }
        if is_plain && !matches!(functions::meaning(written), Meaning::Unknown) {
            return Ok(functions::meaning(written));
        }
        let ends = |own: &&String| own.to_lowercase().strip_suffix(written).is_some_and(|before| before.ends_with('.'));
        match self.own.iter().filter(ends).collect::<Vec<_>>().as_slice() {
            [] => Ok(Meaning::Unknown),
            [one] => Ok(same(one)),
            several => {
                let candidates = several.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                Err(Error::Ambiguous { name: written.to_owned(), candidates, span: crate::error::position(span) })
            }
        }
    }

    /// Rewrites an argument; `None` stands for the `*` of `count(*)`.
    fn argument(&self, argument: &mut FunctionArg, function: &str, scope: &Scope<'_>) -> Result<Option<Expr>, Error> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(lambda))) => {
                self.lambda(lambda, scope)?;
                Ok(Some(Expr::Lambda(lambda.clone())))
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => {
                self.expression(expression, scope)?;
                Ok(Some(expression.clone()))
            }
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if function == "count" => Ok(None),
            other => Err(Error::refused(format!("this argument of `{function}`"), other.span())),
        }
    }

    /// A function that is an argument: its own names come before those around it.
    fn lambda(&self, lambda: &mut LambdaFunction, scope: &Scope<'_>) -> Result<(), Error> {
        let names: Vec<String> = match &lambda.params {
            OneOrManyWithParens::One(parameter) => vec![parameter.name.value.clone()],
            OneOrManyWithParens::Many(parameters) => parameters.iter().map(|parameter| parameter.name.value.clone()).collect(),
        };
        let columns = names.iter().map(|name| Column::new(name, None)).collect();
        let inside = Scope {
            relations: vec![Relation { alias: None, names: Vec::new(), columns }],
            outside: scope.of_subquery(),
            ..Scope::default()
        };
        self.expression(&mut lambda.body, &inside).map(drop)
    }
}

/// A name as it is looked up: in lower case, without quotes.
pub(crate) fn written(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone()));
    parts.collect::<Vec<_>>().join(".").to_lowercase()
}

/// `datediff(day, a, b)`: the unit is no column.
fn of_unit(function: &mut Function) {
    let written = written(&function.name);
    let Some((_, calls)) = OF_UNITS.iter().find(|(names, _)| names.contains(&written.as_str())) else { return };
    let FunctionArguments::List(FunctionArgumentList { args, .. }) = &mut function.args else { return };
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(unit @ Expr::Identifier(_))), _, _] = args.as_mut_slice() {
        *unit = text(&unit.to_string());
        function.name = object_name(calls);
    }
}

/// Puts other arguments in the place of those that are there.
fn give(args: &mut FunctionArguments, arguments: Vec<Expr>) {
    match args {
        FunctionArguments::List(list) if list.args.len() == arguments.len() => {}
        FunctionArguments::List(list)
            if list.args.iter().all(|argument| matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(_)))) =>
        {
            list.args = unnamed(arguments);
        }
        FunctionArguments::List(_) => {}
        _ => {
            *args =
                FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args: unnamed(arguments), clauses: Vec::new() });
        }
    }
}

fn unnamed(arguments: Vec<Expr>) -> Vec<FunctionArg> {
    arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect()
}

/// Arguments with what they are ordered by, and whether it falls.
fn with_order(mut arguments: Vec<Expr>, ordered: Vec<OrderByExpr>) -> Option<Vec<Expr>> {
    match ordered.as_slice() {
        [] => Some(arguments),
        [one] => {
            if arguments.len() == 1 {
                arguments.push(text(""));
            }
            arguments.push(one.expr.clone());
            arguments.push(boolean(one.options.asc == Some(false)));
            Some(arguments)
        }
        _ => None,
    }
}

/// Rewrites an aggregate in place, which keeps its FILTER, DISTINCT and OVER; tells whether it was one.
fn of_group(rewrite: Rewrite, function: &mut Function, arguments: &[Option<Expr>], written: &str, span: Span) -> Result<bool, Error> {
    let wrong = || Error::refused(format!("the form of `{written}` with {} arguments", arguments.len()), span);
    let given: Vec<Expr> = arguments.iter().flatten().cloned().collect();
    let list = match &mut function.args {
        FunctionArguments::List(list) => list,
        _ => return if rewrite.is_of_group() { Err(wrong()) } else { Ok(false) },
    };
    let all_there = || given.iter().map(|one| Expr::IsNotNull(Box::new(one.clone()))).reduce(crate::ast::and);
    match (rewrite, given.as_slice()) {
        (Rewrite::Count, [] | [_]) if arguments.len() == 1 => {}
        (Rewrite::Count, [_, _, ..]) => {
            // rows of which nothing is null
            let Some(there) = all_there() else { return Err(wrong()) };
            let counted = if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
                let named = given.iter().enumerate().flat_map(|(at, one)| [text(&format!("c{at}")), one.clone()]).collect();
                call("named_struct", named)
            } else {
                number("1")
            };
            list.args = unnamed(vec![case(there, counted, None)]);
        }
        (Rewrite::CountIf, [condition]) => list.args = unnamed(vec![case(condition.clone(), number("1"), None)]),
        (Rewrite::CountDistinct, [_]) => list.duplicate_treatment = Some(DuplicateTreatment::Distinct),
        (Rewrite::Edge(_), [_]) => {}
        (Rewrite::Edge(_), [one, Expr::Value(ValueWithSpan { value: Value::Boolean(ignores), .. })]) => {
            list.args = unnamed(vec![one.clone()]);
            if *ignores {
                function.null_treatment = Some(NullTreatment::IgnoreNulls);
            }
        }
        (Rewrite::WithinGroup, [share]) => match function.within_group.as_slice() {
            [OrderByExpr { expr, options, .. }] => {
                let falls = options.asc == Some(false);
                if written == "percentile_cont" {
                    let share = if falls { call("minus", vec![number("1"), share.clone()]) } else { share.clone() };
                    list.args = unnamed(vec![expr.clone(), share]);
                } else {
                    list.args = unnamed(vec![expr.clone(), share.clone(), boolean(falls)]);
                }
                function.within_group = Vec::new();
            }
            _ => return Err(Error::refused(format!("`{written}` without one WITHIN GROUP (ORDER BY …)"), span)),
        },
        (rewrite, _) if rewrite.is_of_group() => return Err(wrong()),
        _ => return Ok(false),
    }
    function.name = object_name(match rewrite {
        Rewrite::Edge(engine) => engine,
        Rewrite::WithinGroup if written == "percentile_cont" => "percentile",
        Rewrite::WithinGroup => "percentile_disc",
        _ => "count",
    });
    Ok(true)
}

/// What stands for a call of a function of one row that the engine has not, or has with another meaning.
fn rewritten(rewrite: Rewrite, arguments: Vec<Expr>, function: &str, span: Span) -> Result<Expr, Error> {
    let wrong = |count: usize| Error::refused(format!("the form of `{function}` with {count} arguments"), span);
    match rewrite {
        Rewrite::If => {
            let [condition, yes, no] = take(arguments).map_err(wrong)?;
            Ok(case(condition, yes, Some(no)))
        }
        Rewrite::Nvl2 => {
            let [of, there, missing] = take(arguments).map_err(wrong)?;
            Ok(case(Expr::IsNotNull(Box::new(of)), there, Some(missing)))
        }
        Rewrite::IsNull => {
            let [of] = take(arguments).map_err(wrong)?;
            Ok(Expr::IsNull(Box::new(of)))
        }
        Rewrite::IsNotNull => {
            let [of] = take(arguments).map_err(wrong)?;
            Ok(Expr::IsNotNull(Box::new(of)))
        }
        Rewrite::EqualNull => {
            let [left, right] = take(arguments).map_err(wrong)?;
            Ok(Expr::IsNotDistinctFrom(Box::new(left), Box::new(right)))
        }
        Rewrite::CurrentUser => {
            let [] = take(arguments).map_err(wrong)?;
            Ok(call("current_user", Vec::new()))
        }
        Rewrite::Cast => {
            let [of] = take(arguments).map_err(wrong)?;
            let name = if function == "decimal" { "decimal(10,0)" } else { function };
            Ok(call("cast", vec![of, text(name)]))
        }
        Rewrite::Struct => Ok(of_struct(arguments, &BTreeMap::new())),
        Rewrite::Like | Rewrite::ILike => {
            let [of, pattern] = take(arguments).map_err(wrong)?;
            Ok(likeness::like(of, likeness::pattern(pattern, None, span)?, rewrite == Rewrite::ILike, false))
        }
        Rewrite::Rows => {
            let hint = "it gives rows: call it alone in a select list, or in LATERAL VIEW";
            Err(Error::refused_with_hint(format!("`{function}` inside an expression"), hint, span))
        }
        Rewrite::Count | Rewrite::CountIf | Rewrite::CountDistinct | Rewrite::Edge(_) | Rewrite::WithinGroup => Err(wrong(arguments.len())),
    }
}

/// A struct of values, which are called by their places or as these names say.
fn of_struct(values: Vec<Expr>, names: &BTreeMap<usize, String>) -> Expr {
    let name = |at: usize| names.get(&at).cloned().unwrap_or_else(|| format!("col{}", at + 1));
    call("named_struct", values.into_iter().enumerate().flat_map(|(at, one)| [text(&name(at)), one]).collect())
}

/// Whether a name has one part.
fn is_plain(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [one] if one.as_ident().is_some())
}

fn take<const N: usize>(arguments: Vec<Expr>) -> Result<[Expr; N], usize> {
    arguments.try_into().map_err(|arguments: Vec<Expr>| arguments.len())
}

/// A cast that is written here, for types that the engine's casts do not reach.
pub(crate) fn own_cast(kind: &CastKind, of: Expr, name: &str) -> Expr {
    call(if matches!(kind, CastKind::TryCast | CastKind::SafeCast) { "try_cast" } else { "cast" }, vec![of, text(name)])
}
