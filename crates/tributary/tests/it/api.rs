//! The public surface of every library crate, written to `docs/reference/api/` and compared.
//!
//! An item counts when the crate root re-exports it by name; of a type its public fields, variants and methods count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

const CRATES: &[&str] = &[
    "bronze",
    "bundle",
    "cdc-decode",
    "config",
    "fault",
    "gold-agg",
    "lake",
    "maintenance",
    "pipeline-sql",
    "silver-merge",
    "spark-sql",
    "specs",
    "sql-dialect",
    "tributary",
];

#[test]
fn generated_public_api_lists_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bless = std::env::var_os("TRIBUTARY_BLESS").is_some();
    let mut stale = Vec::new();
    for name in CRATES {
        let list = surface(&root.join("crates").join(name).join("src"));
        assert!(!list.is_empty(), "{name} has no public items");
        let path = root.join("docs/reference/api").join(format!("{name}.txt"));
        if bless {
            fs::create_dir_all(path.parent().expect("a folder")).expect("docs/reference/api");
            fs::write(&path, &list).expect("the list is written");
        } else if fs::read_to_string(&path).unwrap_or_default() != list {
            stale.push(*name);
        }
    }
    assert!(stale.is_empty(), "the public surface of {stale:?} has changed: run `just generate` and read the difference");
}

fn surface(source: &Path) -> String {
    let mut files = Vec::new();
    rust_files(source, &mut files);
    let parsed: Vec<syn::File> =
        files.iter().map(|path| syn::parse_file(&fs::read_to_string(path).expect("source")).expect("it compiles")).collect();
    let root = syn::parse_file(&fs::read_to_string(source.join("lib.rs")).expect("lib.rs")).expect("it compiles");
    let mut exported = BTreeSet::new();
    for item in &root.items {
        match item {
            Item::Use(item) if is_public(&item.vis) => names(&item.tree, &mut exported),
            other => exported.extend(public_name(other)),
        }
    }
    let mut lines = BTreeSet::new();
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for item in parsed.iter().flat_map(|file| &file.items) {
        if let Some(name) = public_name(item)
            && exported.contains(&name)
        {
            lines.extend(describe(item));
        }
        if let Item::Impl(item) = item
            && let syn::Type::Path(path) = &*item.self_ty
            && let Some(name) = path.path.segments.last().map(|segment| segment.ident.to_string())
            && exported.contains(&name)
        {
            if let Some((_, path, _)) = &item.trait_ {
                methods.entry(name.clone()).or_default().insert(format!("impl {} for {name}", tokens(path)));
                continue;
            }
            for member in &item.items {
                if let ImplItem::Fn(method) = member
                    && is_public(&method.vis)
                {
                    methods.entry(name.clone()).or_default().insert(format!("{name}: {}", tokens(&method.sig)));
                }
            }
        }
    }
    lines.extend(methods.into_values().flatten());
    lines.into_iter().map(|line| line + "\n").collect()
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn names(tree: &UseTree, into: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => names(&path.tree, into),
        UseTree::Name(name) => {
            into.insert(name.ident.to_string());
        }
        UseTree::Rename(rename) => {
            into.insert(rename.rename.to_string());
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, into)),
        UseTree::Glob(_) => panic!("a crate root re-exports by name"),
    }
}

fn public_name(item: &Item) -> Option<String> {
    let (vis, name) = match item {
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Mod(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    is_public(vis).then(|| name.to_string())
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn describe(item: &Item) -> Vec<String> {
    match item {
        Item::Struct(item) => {
            let name = &item.ident;
            let mut lines = vec![format!("struct {name}{}", tokens(&item.generics))];
            lines.extend(fields(&item.fields).into_iter().map(|field| format!("{name}.{field}")));
            lines
        }
        Item::Enum(item) => {
            let name = &item.ident;
            let mut lines = vec![format!("enum {name}{}", tokens(&item.generics))];
            for variant in &item.variants {
                lines.push(format!("{name}::{}{}", variant.ident, tokens_without_docs(&variant.fields)));
            }
            lines
        }
        Item::Trait(item) => {
            let name = &item.ident;
            let mut lines = vec![format!("trait {name}{}", tokens(&item.generics))];
            for member in &item.items {
                if let TraitItem::Fn(method) = member {
                    lines.push(format!("trait {name}: {}", tokens(&method.sig)));
                }
            }
            lines
        }
        Item::Fn(item) => vec![tokens(&item.sig)],
        Item::Type(item) => vec![format!("type {} = {}", item.ident, tokens(&item.ty))],
        Item::Const(item) => vec![format!("const {}: {}", item.ident, tokens(&item.ty))],
        Item::Mod(item) => vec![format!("mod {}", item.ident)],
        _ => Vec::new(),
    }
}

fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    let text = public.enumerate().map(|(index, field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        format!("{name}: {}", tokens(&field.ty))
    });
    text.collect()
}

fn tokens_without_docs(fields: &Fields) -> String {
    let parts: Vec<String> = fields
        .iter()
        .map(|field| field.ident.as_ref().map_or_else(|| tokens(&field.ty), |name| format!("{name}: {}", tokens(&field.ty))))
        .collect();
    match fields {
        Fields::Unit => String::new(),
        Fields::Named(_) => format!(" {{ {} }}", parts.join(", ")),
        Fields::Unnamed(_) => format!("({})", parts.join(", ")),
    }
}

fn tokens(item: &impl ToTokens) -> String {
    item.to_token_stream().to_string().replace(" :: ", "::").replace(" < ", "<").replace(" > ", ">").replace("& ", "&").replace(" ,", ",")
}
