//! Random queries over three tables: `orders(id, customer, status, amount, price, day)`, `customers(id, region, tier)` and
//! `items(order_id, sku, qty)`. What of equal rows comes first is never left open, so that each has one answer.

/// A query, and the operators in it.
#[derive(Debug, Clone)]
pub struct Query {
    pub text: String,
    pub operators: Vec<&'static str>,
    /// Columns whose numbers may differ by rounding.
    pub rounded: Vec<String>,
}

/// Choices made of random bytes; the first of each is the simplest.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    fn of(&mut self, many: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or_default()) % many
    }

    fn among<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.of(all.len())]
    }
}

/// Rows to select from, with the columns of them that may be named.
struct Source {
    from: String,
    condition: Option<String>,
    /// Columns to group, partition and order by.
    names: Vec<&'static str>,
    /// Whole numbers.
    numbers: Vec<&'static str>,
    /// A column of floating numbers.
    float: Option<&'static str>,
    /// Columns that tell every row apart.
    unique: Vec<&'static str>,
    operators: Vec<&'static str>,
}

const CONDITIONS: [&str; 5] =
    ["o.amount > 0", "o.status <> 'new'", "o.day IS NOT NULL", "o.amount % 2 = 0 OR o.status = 'paid'", "o.customer IN (1, 2)"];

fn source(choices: &mut Choices<'_>) -> Source {
    let orders = "silver.orders o";
    let mut source = Source {
        from: orders.to_owned(),
        condition: None,
        names: vec!["o.customer", "o.status", "o.day"],
        numbers: vec!["o.amount", "o.id"],
        float: Some("o.price"),
        unique: vec!["o.id"],
        operators: vec![],
    };
    let mut join = |from: &str, names: &[&'static str], operators: &[&'static str]| {
        source.from = format!("{orders} {from}");
        source.names.extend(names);
        source.operators.extend(operators);
    };
    match choices.of(17) {
        0 | 1 => {}
        2 | 3 => join("JOIN silver.customers c ON o.customer = c.id", &["c.region", "c.tier"], &["inner join"]),
        4 => join("LEFT JOIN silver.customers c ON o.customer = c.id", &["c.region", "c.tier"], &["left join"]),
        5 => join("RIGHT JOIN silver.customers c ON o.customer = c.id", &["c.region", "c.id"], &["right join"]),
        6 => join("FULL JOIN silver.customers c ON o.customer = c.id AND c.tier > 0", &["c.region", "c.id"], &["full join"]),
        7 => join(
            "JOIN silver.customers c ON o.customer = c.id LEFT JOIN silver.items i ON i.order_id = o.id AND i.qty > 0",
            &["c.region", "i.sku"],
            &["inner join", "left join", "three inputs"],
        ),
        8 | 15 => join("JOIN silver.orders p ON o.customer = p.customer AND o.id < p.id", &["p.status", "p.id"], &["self join"]),
        9 => {
            source.condition = Some(
                choices
                    .among(&[
                        "EXISTS (SELECT 1 FROM silver.customers c WHERE c.id = o.customer AND c.tier > 0)",
                        "o.id IN (SELECT order_id FROM silver.items)",
                    ])
                    .to_owned(),
            );
            source.operators.push("semi join");
        }
        10..=12 => {
            let (operator, condition) = choices.among(&[
                ("anti join", "NOT EXISTS (SELECT 1 FROM silver.items i WHERE i.order_id = o.id AND i.qty > 1)"),
                ("not in", "o.day NOT IN (SELECT c.tier FROM silver.customers c WHERE c.region <> 'north')"),
                ("mark join", "(o.amount > 2 OR EXISTS (SELECT 1 FROM silver.items i WHERE i.order_id = o.id AND i.qty > 1))"),
            ]);
            source.condition = Some(condition.to_owned());
            source.operators.push(operator);
        }
        13 => {
            source.from = "(SELECT id, customer, status, amount, price, day FROM silver.orders UNION ALL \
                           SELECT order_id + 100 AS id, qty AS customer, sku AS status, qty AS amount, CAST(qty AS DOUBLE) AS price, \
                           order_id AS day FROM silver.items) o"
                .to_owned();
            source.operators.push("union");
            source.unique = vec![];
        }
        _ => {
            source.from = "recent o LEFT JOIN totals t ON o.customer = t.customer".to_owned();
            source.names.push("t.customer");
            source.operators.extend(["with", "nested aggregate", "left join"]);
        }
    }
    if source.operators.iter().any(|operator| matches!(*operator, "inner join" | "left join" | "right join" | "full join" | "self join")) {
        source.unique = vec![];
    }
    if choices.of(3) == 1 {
        let condition = choices.among(&CONDITIONS);
        source.condition = Some(source.condition.map_or_else(|| condition.to_owned(), |known| format!("{known} AND ({condition})")));
        source.operators.push("filter");
    }
    source
}

impl Source {
    fn text(&self) -> String {
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
        format!("FROM {}{condition}", self.from)
    }
}

const WITH: &str = "WITH recent AS (SELECT * FROM silver.orders WHERE day IS NULL OR day > 0), \
                    totals AS (SELECT customer, sum(amount) AS total, count(*) AS n FROM silver.orders GROUP BY customer) ";

/// The query that bytes say.
pub fn query(bytes: &[u8]) -> Query {
    let mut choices = Choices { bytes: bytes.iter() };
    let shape = choices.of(18);
    let source = source(&mut choices);
    let mut operators = source.operators.clone();
    let mut rounded = Vec::new();
    let with = if source.from.starts_with("recent") { WITH } else { "" };
    let group = choices.among(&source.names);
    let other = choices.among(&source.names);
    let text = match shape {
        0 | 1 => {
            operators.push("projection");
            let number = choices.among(&source.numbers);
            format!("SELECT {group} AS a, {other} AS b, {number} * 2 + 1 AS n, {} AS m {}", source.numbers[1], source.text())
        }
        2..=4 => grouped(&mut choices, &source, group, other, &mut operators, &mut rounded),
        5..=7 => summed(&mut choices, &source, &[group, other], &mut operators, &mut rounded),
        8 => {
            operators.push("distinct");
            format!("SELECT DISTINCT {group} AS a, {other} AS b {}", source.text())
        }
        9 | 10 => windowed(&mut choices, &source, group, &mut operators),
        11 => {
            operators.extend(["nested aggregate", "having"]);
            format!(
                "SELECT a, count(*) AS n, max(total) AS greatest, sum(total) AS total FROM \
                 (SELECT {group} AS a, {other} AS b, sum({}) AS total {} GROUP BY {group}, {other} HAVING count(*) > 1) s GROUP BY a",
                source.numbers[0],
                source.text()
            )
        }
        12 => {
            operators.extend(["window", "filter on window"]);
            let order = if source.unique.is_empty() { "o.amount, o.id, o.status, o.day, o.price" } else { "o.amount DESC, o.id" };
            format!(
                "SELECT a, amount, id FROM (SELECT {group} AS a, o.amount, o.id, row_number() OVER (PARTITION BY {group} ORDER BY {order}) AS place {}) s \
                 WHERE place = 1",
                source.text()
            )
        }
        13 => {
            operators.extend(["nested aggregate", "scalar subquery"]);
            format!("SELECT {group} AS a, o.id AS id, (SELECT count(*) FROM silver.items x WHERE x.order_id = o.id) AS n {}", source.text())
        }
        14 | 16 | 17 => {
            operators.push("all rows");
            summed(&mut choices, &source, &[], &mut operators, &mut rounded)
        }
        _ => {
            operators.extend(["except", "distinct"]);
            format!("SELECT {group} AS a {} EXCEPT SELECT {group} AS a {} AND 1 = 1", source.text(), with_condition(&source))
        }
    };
    Query { text: format!("{with}{text}"), operators, rounded }
}

/// The source once more, held to another condition.
fn with_condition(source: &Source) -> String {
    let condition = source.condition.as_ref().map(|condition| format!("({condition}) AND ")).unwrap_or_default();
    format!("FROM {} WHERE {condition}o.amount > 1", source.from)
}

fn grouped(
    choices: &mut Choices<'_>,
    source: &Source,
    group: &str,
    other: &str,
    operators: &mut Vec<&'static str>,
    rounded: &mut Vec<String>,
) -> String {
    operators.push("group by");
    let number = source.numbers[0];
    let mut columns = Vec::new();
    for at in 0..choices.of(3) + 4 {
        let (operator, column) = match choices.of(14) {
            0 => ("sum", format!("sum({number})")),
            1 => ("count", format!("count({number})")),
            2 => ("min", format!("min({number})")),
            3 => ("max", format!("max({other})")),
            4 => ("avg", format!("avg({number})")),
            5 => ("count distinct", format!("count(DISTINCT {other})")),
            6 => ("stddev", format!("stddev({number})")),
            7 => ("variance", format!("var_pop({number})")),
            8 => ("first by order", format!("max_by({number}, {number} * 1000 + coalesce(o.id, 0))")),
            11 => ("last by order", format!("min_by({number}, {number} * 1000 + coalesce(o.id, 0))")),
            9 | 13 => ("percentile", format!("percentile({number}, 0.5)")),
            10 => ("floating sum", source.float.map_or("sum(1.5)".to_owned(), |float| format!("sum({float})"))),
            _ => ("sum", format!("sum(CASE WHEN {number} > 0 THEN 1 ELSE 0 END)")),
        };
        operators.push(operator);
        if matches!(operator, "avg" | "stddev" | "variance" | "floating sum" | "percentile") {
            rounded.push(format!("v{at}"));
        }
        columns.push(format!("{column} AS v{at}"));
    }
    let having = if choices.of(4) == 1 {
        operators.push("having");
        " HAVING count(*) > 1"
    } else {
        ""
    };
    let columns = columns.join(", ");
    match choices.of(8) {
        0..=3 => format!("SELECT {group} AS a, {columns} {} GROUP BY {group}{having}", source.text()),
        4..=6 => format!("SELECT {group} AS a, {other} AS b, {columns} {} GROUP BY {group}, {other}{having}", source.text()),
        _ => format!("SELECT {columns} {} GROUP BY {group}{having}", source.text()),
    }
}

/// Groups whose totals are sums, counts and what follows from them, with more or less of what says how many rows are left; without
/// columns to group by, the one group of all rows.
fn summed(
    choices: &mut Choices<'_>,
    source: &Source,
    groups: &[&str],
    operators: &mut Vec<&'static str>,
    rounded: &mut Vec<String>,
) -> String {
    if !groups.is_empty() {
        operators.push("group by");
    }
    let number = source.numbers[0];
    let (counts_rows, counts_values) = (choices.of(4) != 1, choices.of(3) != 1);
    if counts_rows && !counts_values {
        operators.push("uncounted sum");
    }
    let mut columns: Vec<String> = Vec::new();
    let mut column = |operator: &'static str, text: String| {
        operators.push(operator);
        columns.push(text);
    };
    column("sum", format!("sum({number}) AS total"));
    if counts_rows {
        column("count", "count(*) AS n".to_owned());
    }
    if counts_values {
        column("count", format!("count({number}) AS known"));
    }
    for at in 0..choices.of(3) {
        match choices.of(9) {
            0 => {
                rounded.push(format!("mean{at}"));
                column("avg", format!("avg({number}) AS mean{at}"));
            }
            1 => column("min", format!("min({number}) AS least{at}")),
            2 => column("max", format!("max({}) AS greatest{at}", groups.last().unwrap_or(&"o.day"))),
            3 => column("sum", format!("sum(CAST({number} AS DECIMAL(12, 2)) / 4) AS quarters{at}")),
            5 => column("count distinct", format!("count(DISTINCT {}) AS kinds{at}", groups.last().unwrap_or(&"o.status"))),
            7 => column("count distinct", format!("count(DISTINCT {number}) FILTER (WHERE o.id > 2) AS kinds{at}")),
            4 | 6 => column("filtered count", format!("count(*) FILTER (WHERE {number} > 0) AS positive{at}")),
            _ => column("sum", format!("sum(o.day) * 2 AS twice{at}, sum(o.day) AS days{at}")),
        }
    }
    let having = if choices.of(6) == 1 {
        operators.push("having");
        " HAVING sum(o.amount) > 1"
    } else {
        ""
    };
    let groups = if choices.of(2) == 0 { &groups[..groups.len().min(1)] } else { groups };
    let names: Vec<String> = groups.iter().enumerate().map(|(at, group)| format!("{group} AS g{at}, ")).collect();
    let by = if groups.is_empty() { String::new() } else { format!(" GROUP BY {}", groups.join(", ")) };
    format!("SELECT {}{} {}{by}{having}", names.concat(), columns.join(", "), source.text())
}

fn by_customer(totals: &str, operators: Vec<&'static str>) -> Query {
    let text = format!("SELECT customer, {totals}, count(*) AS n FROM silver.orders GROUP BY customer");
    Query { text, operators, rounded: Vec::new() }
}

/// A query of groups with sums over orders alone, in which every group can be told by deltas.
pub fn sums() -> Query {
    by_customer("sum(amount) AS total, count(amount) AS known", vec!["group by", "sum", "count"])
}

/// The same where amounts are not counted.
pub fn uncounted() -> Query {
    by_customer("sum(amount) AS total", vec!["group by", "sum", "uncounted sum"])
}

/// How many different amounts.
pub fn distinct() -> Query {
    by_customer("count(DISTINCT amount) AS kinds", vec!["group by", "count distinct"])
}

fn windowed(choices: &mut Choices<'_>, source: &Source, group: &str, operators: &mut Vec<&'static str>) -> String {
    operators.push("window");
    let order = if source.unique.is_empty() { "o.amount, o.id, o.status, o.day, o.price" } else { "o.id" };
    let column = match choices.of(4) {
        0 => format!("rank() OVER (PARTITION BY {group} ORDER BY o.amount)"),
        1 => format!("sum(o.amount) OVER (PARTITION BY {group})"),
        2 => format!("sum(o.amount) OVER (PARTITION BY {group} ORDER BY {order})"),
        _ => format!("count(*) OVER (PARTITION BY {group})"),
    };
    format!("SELECT {group} AS a, o.id AS id, {column} AS w {}", source.text())
}
