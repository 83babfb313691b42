//! The workspace, as cargo describes it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages of the workspace, and their dependencies.
pub(crate) struct Workspace {
    /// By id.
    pub(crate) packages: BTreeMap<String, Package>,
    members: BTreeSet<String>,
    /// What each needs to be built, tests apart.
    needs: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: String,
    pub(crate) description: String,
    pub(crate) readme: String,
    pub(crate) keywords: usize,
    pub(crate) categories: usize,
    pub(crate) documents_all_features: bool,
    /// Whether it says at all what docs.rs documents.
    pub(crate) is_documented: bool,
    /// Major and minor; zeros if it is not declared.
    pub(crate) rust_version: (u32, u32),
    is_published: bool,
}

impl Workspace {
    /// With all features, on this machine's platform.
    pub(crate) fn load() -> Workspace {
        let host = text(Command::new("rustc").arg("-vV"));
        let host = host.lines().find_map(|l| l.strip_prefix("host: ")).expect("rustc says where it runs").to_owned();
        let metadata = ["metadata", "--format-version", "1", "--all-features", "--filter-platform", &host];
        let all: Value = serde_json::from_str(&text(cargo().args(metadata))).expect("cargo writes JSON");
        let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
        let packages = list(&all["packages"]).iter().map(package).map(|p| (p.id.clone(), p)).collect();
        let members = list(&all["workspace_members"]).iter().map(string).collect();
        let mut needs = BTreeMap::new();
        for node in list(&all["resolve"]["nodes"]) {
            let built = |d: &&Value| list(&d["dep_kinds"]).iter().any(|k| k["kind"] != "dev");
            let ids = list(&node["deps"]).iter().filter(built).map(|d| string(&d["pkg"])).collect();
            needs.insert(string(&node["id"]), ids);
        }
        Workspace { packages, members, needs }
    }

    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|p| p.is_published && self.members.contains(&p.id))
    }

    /// Everything that a package needs to be built, and itself.
    pub(crate) fn brought_by<'a>(&'a self, package: &'a Package) -> Vec<&'a Package> {
        let (mut seen, mut left) = (BTreeSet::new(), vec![package.id.as_str()]);
        while let Some(id) = left.pop() {
            if seen.insert(id) {
                left.extend(self.needs.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        seen.into_iter().filter_map(|id| self.packages.get(id)).collect()
    }
}

/// The manifest of the adapter for candle, a workspace of its own, whose dependencies the other tests do not need.
pub(crate) const ADAPTER: &str = "titan-candle/Cargo.toml";

impl Package {
    /// The adapter, without its dependencies.
    pub(crate) fn adapter() -> Package {
        let metadata = ["metadata", "--format-version", "1", "--no-deps", "--manifest-path", ADAPTER];
        let all: Value = serde_json::from_str(&text(cargo().args(metadata))).expect("cargo writes JSON");
        package(&all["packages"][0])
    }
}

fn string(v: &Value) -> String {
    v.as_str().unwrap_or_default().to_owned()
}

fn package(p: &Value) -> Package {
    let count = |v: &Value| v.as_array().map_or(0, Vec::len);
    let declared = string(&p["rust_version"]);
    let mut numbers = declared.split('.').map(|n| n.parse().unwrap_or(0));
    Package {
        id: string(&p["id"]),
        name: string(&p["name"]),
        version: string(&p["version"]),
        license: string(&p["license"]),
        description: string(&p["description"]),
        readme: string(&p["readme"]),
        keywords: count(&p["keywords"]),
        categories: count(&p["categories"]),
        documents_all_features: p["metadata"]["docs"]["rs"]["all-features"] == true,
        is_documented: p["metadata"]["docs"]["rs"].is_object(),
        rust_version: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        is_published: p["publish"].is_null(),
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository has a root")
}

/// The cargo that runs this test, in the root.
#[expect(clippy::disallowed_methods, reason = "cargo says who it is")]
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.current_dir(root());
    cargo
}

/// What a command writes; it must succeed.
pub(crate) fn text(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
