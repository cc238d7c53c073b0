//! Every text that a client can get from lockward itself and not from the server, in one place. An error begins with
//! a stable code: `LOCKHELD`, `LOCKWARD`, `UPSTREAM`, `NOPERM`.
