//! The pages of the book for a browser. In the repository, the book's pages link to those in `docs/`, which are outside of the folder that
//! mdBook reads. So all are copied into one folder, and the pages of `docs/` become the last part of the book.

use crate::cargo::root;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the repository's files are in the copy.
const REPOSITORY: &str = "repository";

/// The pages outside of `docs`, and the folder that pages link to as a whole.
const LINKED: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples"];

/// Makes `target/book/html`.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn make() -> io::Result<bool> {
    let out = crate::tools::target()?.join("book");
    let source = out.join("source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    let pages = source.join("src");
    copy(&root().join("book/src"), &pages)?;
    for name in ["book.toml", "book.css"] {
        fs::copy(root().join("book").join(name), source.join(name))?;
    }
    for name in LINKED.iter().copied().chain(["docs"]) {
        copy(&root().join(name), &pages.join(REPOSITORY).join(name))?;
    }
    for page in markdown(&root().join("book/src"))? {
        let relative = page.strip_prefix(root().join("book/src")).unwrap_or(&page).to_path_buf();
        let depth = relative.components().count() - 1;
        let text = fs::read_to_string(&page)?;
        copy_targets(&text, &page, &pages.join(REPOSITORY))?;
        fs::write(pages.join(&relative), linked(&text, depth))?;
    }
    for name in LINKED.iter().copied().filter(|name| name.ends_with(".md")).chain(["docs"]) {
        for page in markdown(&root().join(name))? {
            let text = fs::read_to_string(&page)?;
            copy_targets(&text, &page, &pages.join(REPOSITORY))?;
            let relative = page.strip_prefix(root()).unwrap_or(&page).to_path_buf();
            let up = "../".repeat(relative.components().count() - 1);
            let text = text.replace(&format!("]({up}book/src/"), &format!("](../{up}"));
            fs::write(pages.join(REPOSITORY).join(&relative), text)?;
        }
    }
    let summary = pages.join("SUMMARY.md");
    let mut text = fs::read_to_string(&summary)?;
    text.push_str(&reference()?);
    fs::write(&summary, text)?;
    let html = out.join("html");
    let status = Command::new("mdbook").arg("build").arg(&source).arg("--dest-dir").arg(&html).status();
    match status {
        Ok(status) => {
            println!("{}", html.join("index.html").display());
            Ok(status.success())
        }
        Err(error) => Err(io::Error::other(format!(
            "`mdbook` cannot be run: {error}; install it, such as by `cargo install mdbook`, and try again"
        ))),
    }
}

/// The text of a page with its links out of the book's folder led into the copy.
fn linked(text: &str, depth: usize) -> String {
    let out = format!("]({}", "../".repeat(depth + 2));
    text.replace(&out, &format!("]({}{REPOSITORY}/", "../".repeat(depth)))
}

/// Copies the files of the repository to which a page links, but for other pages.
fn copy_targets(text: &str, page: &Path, to: &Path) -> io::Result<()> {
    let root = root().canonicalize()?;
    for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
        let Ok(file) = page.parent().unwrap_or(page).join(link).canonicalize() else { continue };
        let Ok(relative) = file.strip_prefix(&root) else { continue };
        if file.is_file() && file.extension().is_none_or(|e| e != "md") && !to.join(relative).exists() {
            copy(&file, &to.join(relative))?;
        }
    }
    Ok(())
}

/// The part of the summary with the pages of `docs/` and of the errors.
fn reference() -> io::Result<String> {
    let mut text = "\n# Reference\n\n".to_owned();
    let docs = root().join("docs");
    for page in markdown(&docs)? {
        let relative = page.strip_prefix(root()).unwrap_or(&page).to_string_lossy().into_owned();
        let errors = page.parent().is_some_and(|folder| folder != docs);
        let indent = if errors && !relative.ends_with("README.md") { "  " } else { "" };
        text.push_str(&format!("{indent}- [{}]({REPOSITORY}/{relative})\n", title(&page)?));
    }
    for page in LINKED.iter().filter(|name| name.ends_with(".md")) {
        text.push_str(&format!("- [{}]({REPOSITORY}/{page})\n", title(&root().join(page))?));
    }
    Ok(text)
}

/// The first heading of a page, without its markup.
fn title(page: &Path) -> io::Result<String> {
    let text = fs::read_to_string(page)?;
    let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Untitled");
    Ok(heading.replace(['[', ']', '`'], ""))
}

/// The pages of a folder and of those in it, in order: a folder's own pages first, and its `README.md` before them. Of a page, itself.
pub(super) fn markdown(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if folder.is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<io::Result<_>>()?;
    entries.sort_by_key(|path| (path.is_dir(), !path.ends_with("README.md"), path.clone()));
    let mut pages = Vec::new();
    for path in entries {
        if path.is_dir() {
            pages.extend(markdown(&path)?);
        } else if path.extension().is_some_and(|e| e == "md") && !path.ends_with("SUMMARY.md") {
            pages.push(path);
        }
    }
    Ok(pages)
}

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
