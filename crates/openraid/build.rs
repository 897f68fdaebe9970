//! A program for tests has a fixed address: in a guest each page that the dynamic linker would relocate takes a tenth of a millisecond.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
