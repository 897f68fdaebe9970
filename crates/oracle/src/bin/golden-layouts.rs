//! Makes the golden layout file again: `cargo run -p openraid-oracle --bin golden-layouts > layouts.txt`, then compare
//! and move it into place.

#![forbid(unsafe_code)]

use openraid_oracle::survey::{specs, survey};
use openraid_oracle::OracleError;

fn main() -> Result<(), OracleError> {
    print!("{}", include_str!("../../golden/HEADER.txt"));
    for paragraph in survey(&specs())? {
        print!("\n{paragraph}");
    }
    Ok(())
}
