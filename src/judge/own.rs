//! A team's own rules: from a folder, with a charter, and out of the log.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bounds::{OWN_PATTERNS_MAX, OWN_RULES_BYTES_MAX, RULE_FILE_BYTES_MAX, RULES_MAX};
use super::engine::{CelJudge, SHIPPED};
use super::load::{self, LoadError, MOMENTS};
use crate::protocol::charter::{Charter, line_of_rule};
use crate::protocol::name::nearest;
use crate::protocol::rule::{Judge, Moment, OwnRule, Rulebook};

/// Makes judges by CEL. Teams without rules of their own share one.
#[derive(Debug)]
pub struct CelRulebook {
    shipped: Arc<CelJudge>,
}

impl Default for CelRulebook {
    fn default() -> Self {
        Self { shipped: Arc::new(CelJudge::shipped()) }
    }
}

impl Rulebook for CelRulebook {
    fn judge(&self, own: &[OwnRule]) -> Arc<dyn Judge> {
        if own.is_empty() { self.shipped.clone() } else { Arc::new(CelJudge::from_log(own)) }
    }
}

/// Every rule file of a team's own folder, in the order of their ids, as they stand there.
///
/// What isn't a rule file there is refused, but for Markdown and hidden files: a rule in a folder with a
/// slip in its name would otherwise be a rule that nobody is ever asked.
pub fn read_folder(path: &Path) -> Result<Vec<OwnRule>, Vec<LoadError>> {
    let mut rules = Vec::new();
    let mut errors = Vec::new();
    for (entry, name) in entries(path).map_err(|error| vec![error])? {
        match MOMENTS.iter().find(|(moment, _)| *moment == name) {
            Some((moment, _)) if entry.is_dir() => match entries(&entry) {
                Ok(files) => {
                    for (file, name) in files.iter().filter(|(file, name)| !ignored(file, name)) {
                        if rules.len() + errors.len() >= RULES_MAX {
                            errors.push(load::unreadable(path, format!("more than {RULES_MAX} rules")));
                            return Err(errors);
                        }
                        match text(file, name) {
                            Ok((stem, text)) => rules.push(OwnRule { id: format!("{moment}/{stem}"), text }),
                            Err(error) => errors.push(error),
                        }
                    }
                }
                Err(error) => errors.push(error),
            },
            _ if ignored(&entry, &name) => {}
            _ => errors.push(LoadError {
                nearest: nearest(&name, MOMENTS.iter().map(|(moment, _)| *moment)).map(Into::into),
                ..load::unreadable(&entry, "rules stand in the folders propose, approve, confirm and text")
            }),
        }
    }
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    if errors.is_empty() {
        return Ok(rules);
    }
    // What else is wrong is told with it.
    errors.extend(CelJudge::load(&rules).err().unwrap_or_default());
    Err(errors)
}

/// Everything that is wrong with the rules that come with a charter, and with what it says of rules.
/// `text` is the charter's, `file` what errors call it.
pub fn check(file: &str, text: &str, charter: &Charter, own: &[OwnRule]) -> Result<(), Vec<LoadError>> {
    let at = |key: &str, what: String, nearest: Option<&str>| LoadError {
        file: file.to_owned(),
        place: Some((line_of_rule(text, key), 1)),
        text: what,
        nearest: nearest.map(Into::into),
    };
    let mut errors = Vec::new();
    match (&charter.rules.folder, own.first()) {
        (Some(folder), None) => {
            let what = format!("no rule came with it from its folder {folder:?}");
            errors.push(at("folder", what, None));
        }
        (None, Some(first)) => {
            errors.push(load::unreadable(
                &PathBuf::from(format!("{}.toml", first.id)),
                "the charter names no folder that it could have come from: [rules] folder = \"rules\"",
            ));
        }
        _ => {}
    }
    let ids: Vec<&str> =
        SHIPPED.iter().map(|(id, _)| *id).chain(own.iter().map(|rule| rule.id.as_str())).collect();
    for id in charter.rules.modes.keys().filter(|id| !ids.contains(&id.as_str())) {
        errors.push(at(id, format!("there is no rule {id:?}"), nearest(id, ids.iter().copied())));
    }
    // A set that is too large isn't compiled to find out what else is wrong.
    let too_large = check_set(own);
    if !too_large.is_empty() {
        errors.extend(too_large);
    } else if let Err(more) = CelJudge::load(own) {
        errors.extend(more);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The moment and the name in an id.
pub(super) fn parts(id: &str) -> Option<(Moment, &str)> {
    let (folder, stem) = id.split_once('/')?;
    let (_, moment) = MOMENTS.iter().find(|(name, _)| *name == folder)?;
    Some((*moment, stem))
}

/// What is wrong with a set of own rules as a whole: its size, and ids that are taken.
pub(super) fn check_set(own: &[OwnRule]) -> Vec<LoadError> {
    let mut errors = Vec::new();
    let refuse =
        |id: &str, text: String| LoadError { file: format!("{id}.toml"), place: None, text, nearest: None };
    let bytes: usize = own.iter().map(|rule| rule.text.len()).sum();
    if own.len() > RULES_MAX || bytes > OWN_RULES_BYTES_MAX {
        let text = format!("more than {RULES_MAX} rules or {OWN_RULES_BYTES_MAX} bytes of rules");
        errors.extend(own.first().map(|first| refuse(&first.id, text)));
    }
    let patterns: usize = own.iter().map(|rule| rule.text.matches(".matches(").count()).sum();
    if patterns > OWN_PATTERNS_MAX {
        let text = format!("{patterns} patterns in all rules together; {OWN_PATTERNS_MAX} are allowed");
        errors.extend(own.first().map(|first| refuse(&first.id, text)));
    }
    let mut seen = BTreeSet::new();
    for rule in own {
        if SHIPPED.iter().any(|(id, _)| *id == rule.id) {
            let text = format!("{} is a shipped rule; the charter's [rules] can switch it off", rule.id);
            errors.push(refuse(&rule.id, text));
        } else if !seen.insert(&rule.id) {
            errors.push(refuse(&rule.id, format!("{} is there twice", rule.id)));
        }
    }
    errors
}

fn ignored(path: &Path, name: &str) -> bool {
    name.starts_with('.') || (path.is_file() && name.ends_with(".md"))
}

/// What stands in a folder, in the order of names.
fn entries(path: &Path) -> Result<Vec<(PathBuf, String)>, LoadError> {
    let cant = |fault: std::io::Error| load::unreadable(path, format!("this folder can't be read: {fault}"));
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(cant)? {
        let entry = entry.map_err(cant)?;
        entries.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
    }
    entries.sort();
    Ok(entries)
}

/// A rule file's name without its ending, and its text.
pub(super) fn text<'a>(path: &Path, name: &'a str) -> Result<(&'a str, String), LoadError> {
    let Some(stem) = name.strip_suffix(".toml") else {
        return Err(load::unreadable(path, "a rule file's name ends in .toml"));
    };
    // A pipe would never end.
    if !path.is_file() {
        return Err(load::unreadable(path, "this is no file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        // One byte more than is allowed, so that the reader sees that it is too long.
        .and_then(|file| file.take(RULE_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|fault| load::unreadable(path, format!("this file can't be read: {fault}")))?;
    let text = String::from_utf8(bytes).map_err(|_| load::unreadable(path, "this file is not UTF-8"))?;
    Ok((stem, text))
}
