//! Values on the command line.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};

use bytes::Bytes;

use crate::failure::Failure;

/// The bytes of an argument; `-` stands for standard input, read to its end.
pub(super) fn read(argument: OsString) -> Result<Bytes, Failure> {
    if argument == OsStr::new("-") {
        let mut value = Vec::new();
        io::stdin().lock().read_to_end(&mut value)?;
        return Ok(value.into());
    }
    into_bytes(argument)
}

#[cfg(unix)]
fn into_bytes(argument: OsString) -> Result<Bytes, Failure> {
    use std::os::unix::ffi::OsStringExt;
    Ok(argument.into_vec().into())
}

#[cfg(not(unix))]
fn into_bytes(argument: OsString) -> Result<Bytes, Failure> {
    argument
        .into_string()
        .map(|text| text.into_bytes().into())
        .map_err(|_| {
            let text = "the value is not Unicode text; give `-` and write it to standard input";
            Failure::Usage(text.to_owned())
        })
}
