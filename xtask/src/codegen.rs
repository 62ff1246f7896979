//! `cargo xtask codegen`: the code of the protobuf contracts, made without `protoc`.

use std::fs;
use std::path::Path;

use prost::Message;

use crate::process::run as run_command;
use crate::workspace::root;
use crate::{Result, report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail if a file differs from what would be written
    #[arg(long)]
    check: bool,
}

/// A package of protobuf files and the crate that holds them: its sources are in `proto/`, the
/// code and the descriptor for server reflection go to `src/generated/`.
struct Contract {
    krate: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// The messages that hold values or tokens: their crate writes `Debug` for them by hand, so
    /// that none is ever printed.
    secret: &'static [&'static str],
}

const CONTRACTS: &[Contract] = &[Contract {
    krate: "crates/caching-remote",
    package: "xihan.caching.v1",
    files: &["xihan/caching/v1/store.proto"],
    secret: &[
        "GetResponse",
        "SetRequest",
        "TryAddRequest",
        "GetOrAddRequest",
        "GetOrAddResponse",
        "TryReplaceRequest",
        "TryRemoveRequest",
        "TryExtendRequest",
        "TryLeaseRequest",
        "WaitForLeaseRequest",
        "TryRelayRequest",
        "ReleaseRequest",
        "IncrementResponse",
    ],
}];

/// Writes every generated file, or compares it with what stands there.
pub(crate) fn run(arguments: &Arguments) -> Result {
    if arguments.check {
        return check();
    }
    for contract in CONTRACTS {
        let target = root().join(contract.krate).join("src/generated");
        fs::create_dir_all(&target)?;
        for (name, content) in contract.generate()? {
            fs::write(target.join(name), content)?;
        }
    }
    Ok(())
}

/// Fails if a generated file is not what its contract gives.
pub(crate) fn check() -> Result {
    let mut problems = Vec::new();
    for contract in CONTRACTS {
        for (name, content) in contract.generate()? {
            let path = format!("{}/src/generated/{name}", contract.krate);
            if fs::read(root().join(&path)).ok().as_ref() != Some(&content) {
                problems.push(format!("{path} is out of date; run `cargo xtask codegen`"));
            }
        }
    }
    report("codegen", &problems)
}

impl Contract {
    /// The name and the content of each file.
    fn generate(&self) -> Result<[(String, Vec<u8>); 2]> {
        let include = root().join(self.krate).join("proto");
        let mut compiler = protox::Compiler::new([&include])?;
        compiler.include_imports(true).include_source_info(true);
        compiler.open_files(self.files)?;
        let described = compiler.file_descriptor_set();
        let folder = tempfile::tempdir()?;
        let full_name = |message| format!(".{}.{message}", self.package);
        tonic_prost_build::configure()
            .bytes(".")
            .skip_debug(self.secret.iter().map(full_name))
            .generate_default_stubs(false)
            .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
            .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
            .out_dir(folder.path())
            .compile_fds(described)?;
        let name = format!("{}.rs", self.package);
        let code = formatted(&folder.path().join(&name))?;
        compiler.include_source_info(false);
        let descriptor = compiler.file_descriptor_set().encode_to_vec();
        Ok([(name, code), (format!("{}.bin", self.package), descriptor)])
    }
}

fn formatted(path: &Path) -> Result<Vec<u8>> {
    let mut rustfmt = std::process::Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).arg(path);
    run_command(&mut rustfmt)?;
    Ok(fs::read(path)?)
}
