//! The configuration: TOML file and LOCKWARD_ variables to typed settings, every error with file, key and line.
