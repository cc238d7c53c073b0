//! The OpenAPI file against reality: the types that the routes write, the queries that they read, and what each path
//! answers.

#[path = "../admin_backend/mod.rs"]
mod admin_backend;
mod answers;
mod spec;
mod types;
