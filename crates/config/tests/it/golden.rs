//! Compares a text with the file that keeps it; `TRIBUTARY_BLESS=1` writes the file instead.

use std::path::Path;

pub fn assert_same(path: impl AsRef<Path>, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("TRIBUTARY_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{} differs; look at it and run with TRIBUTARY_BLESS=1\n--- actual\n{actual}", path.display());
}
