//! Feeds for the recorded tables.

use tributary_specs::{
    Column, CsvOptions, DataType, Decode, Encoding, FileFormat, FileSource, SchemaPolicy, Source, SourceFeed, TableName,
};

/// A feed of one topic.
pub fn feed(decode: Decode, columns: Vec<Column>) -> SourceFeed {
    let source = FileSource {
        path: "in".to_owned(),
        format: FileFormat::KafkaJsonl,
        glob: None,
        topics: Vec::new(),
        csv: CsvOptions::default(),
        settle_seconds: 0,
        mirrors: false,
        with_metadata: false,
    };
    let mut feed = SourceFeed::new("feed", TableName::new("bronze", "feed"), Source::Files(source));
    feed.decode = decode;
    feed.columns = columns;
    feed.schema_policy = SchemaPolicy::Widen;
    feed
}

/// A column, `name type [encoding]`.
pub fn column(text: &str) -> Column {
    let mut parts = text.split(' ');
    let (name, data_type) = (parts.next().unwrap(), parts.next().unwrap());
    let mut column = Column::new(name, data_type.parse::<DataType>().unwrap());
    if let Some(encoding) = parts.next() {
        column.encoding = Some(match encoding {
            "millis" => Encoding::Millis,
            "micros" => Encoding::Micros,
            "nanos" => Encoding::Nanos,
            "iso" => Encoding::Iso,
            "text" => Encoding::Text,
            "unscaled" => Encoding::Unscaled,
            "unsigned" => Encoding::Unsigned,
            "base64" => Encoding::Base64,
            "base64_url" => Encoding::Base64Url,
            "hex" => Encoding::Hex,
            "bits" => Encoding::Bits,
            other => panic!("no encoding {other}"),
        });
    }
    column
}

/// Columns, one a line.
pub fn columns(text: &str) -> Vec<Column> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(column).collect()
}

/// What a capture's connector was set to, as far as bare JSON depends on it.
pub struct Mode {
    decimal: &'static str,
    micros: &'static str,
    millis: &'static str,
    time: &'static str,
    time_millis: &'static str,
    bytes: &'static str,
    hstore: &'static str,
    unsigned: &'static str,
}

impl Mode {
    pub fn of(capture: &str) -> Self {
        let adaptive = Self {
            decimal: "unscaled",
            micros: "micros",
            millis: "millis",
            time: "micros",
            time_millis: "micros",
            bytes: "base64",
            hstore: "string",
            unsigned: "unsigned",
        };
        if capture.contains("isostring") {
            let hstore = "map<string,string>";
            Self {
                decimal: "text",
                micros: "iso",
                millis: "iso",
                time: "iso",
                time_millis: "iso",
                bytes: "hex",
                hstore,
                unsigned: "unscaled",
            }
        } else if capture.contains("connect") {
            Self { decimal: "double", micros: "millis", time: "millis", time_millis: "millis", bytes: "base64_url", ..adaptive }
        } else {
            adaptive
        }
    }

    fn decimal(&self, precision: u8, scale: u8) -> String {
        match self.decimal {
            "double" => "double".to_owned(),
            encoding => format!("decimal({precision},{scale}) {encoding}"),
        }
    }

    fn numeric(&self) -> &'static str {
        match self.decimal {
            "double" => "double",
            "text" => "string",
            _ => "string unscaled",
        }
    }
}

/// What a person would declare for a table of a capture whose messages have no schema.
pub fn declared(capture: &str, table: &str) -> Vec<Column> {
    let mode = Mode::of(capture);
    if capture == "postgres-big-workload" {
        return columns(match table {
            "orders" => {
                "order_id long\ncustomer_id long\nsku string\nwarehouse integer\nqty integer\namount decimal(12,2) unscaled\nstatus string\n\
                 placed_at timestamp\nupdated_at timestamp\nship_day date\nnotes string"
            }
            "customers" => {
                "id long\nexternal_id string\nname string\nemail string\ntier string\nbalance string unscaled\ncredit_limit decimal(12,2) unscaled\n\
                 signup_at timestamp\nbirth_date date\ntags array<string>\nprefs string\nlast_ip string\nactive boolean"
            }
            "inventory" => {
                "sku string\nwarehouse integer\nqty integer\nreserved integer\nunit_cost decimal(12,4) unscaled\ncounted_at timestamp_ntz micros"
            }
            other => panic!("no table {other}"),
        });
    }
    let Mode { micros, millis, time, time_millis, bytes, hstore, unsigned, .. } = mode;
    columns(&match table {
        "customers" => format!(
            "id long\nexternal_id string\nname string\ntier string\nis_active boolean\ncredit_limit {}\nbalance {}\nscore double\nrating float\n\
             birth_date date\nsignup_at timestamp\nlast_seen timestamp_ntz {micros}\ncontact_from long {time}\ncontact_tz string\n\
             visit_length {}\ntags array<string>\nattributes {hstore}\npreferences string\nlast_ip string\nage_band string\n\
             avatar binary {bytes}\nbio string",
            mode.decimal(12, 2),
            mode.numeric(),
            if capture.contains("isostring") { "string" } else { "long" },
        ),
        "orders" => format!(
            "order_id integer\ncustomer_id long\nstatus string\nquantity long\nunit_price {}\nweight_kg {}\nchannel string\nplaced_at timestamp\n\
             ship_day date\neta timestamp_ntz {millis}\ngift boolean\ndetails string\nnotes string\ndiscount_pct {}\npicked_at timestamp",
            mode.decimal(12, 2),
            // The source makes it text half way.
            if mode.decimal == "unscaled" { "string unscaled" } else { "string" },
            mode.decimal(5, 2),
        ),
        "order_items" => format!("order_id integer\nline_no short\nsku string\nqty integer\nprice {}", mode.decimal(10, 4)),
        "inventory" => format!(
            "sku string\nwarehouse integer\nproduct string\nqty long\nqty_total decimal(20,0) {unsigned}\nsmall_u string\nflag short\nmed integer\n\
             unit_cost {}\nratio {}\nweight double\ntemp float\nstate string\nlabels string\nbits binary bits\none_bit boolean\nattrs string\n\
             photo binary {bytes}\nraw_code binary {bytes}\ndescr string\nmade_on date\nchecked_at timestamp_ntz {micros}\n\
             checked_s timestamp_ntz {millis}\nloaded_at timestamp\nupdated_at timestamp\nopen_from long {time_millis}\nspan long {time}\nvintage integer",
            mode.decimal(12, 2),
            mode.decimal(30, 10),
        ),
        "stock_moves" => format!(
            "id decimal(20,0) {unsigned}\nsku string\nwarehouse integer\ndelta integer\nreason string\nmoved_at timestamp_ntz {millis}"
        ),
        "settings" => {
            "id integer\ncolour string\nsize integer\nratio decimal(6,3) unscaled\nactive boolean\nsince date\nnote string\nlevel integer"
                .to_owned()
        }
        "audit_log" => "at timestamp\nwho string\nwhat string".to_owned(),
        other => panic!("no table {other}"),
    })
}
