//! Pages that are made from the code, compared with what is written. `UPDATE=1` rewrites them.

use std::path::Path;

#[test]
fn commands() {
    same("docs/reference/commands.md", &countersign::cli::reference());
}

fn same(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a page stands in a folder")).expect("a folder");
        std::fs::write(&path, made).expect("the page");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(made.lines()).position(|(written, made)| written != made);
    assert!(
        written == made,
        "{page} is not what the code makes (from line {}); run: UPDATE=1 cargo test --test reference",
        differs.unwrap_or_else(|| written.lines().count().min(made.lines().count())) + 1
    );
}
