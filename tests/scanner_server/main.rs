//! The request scanner against real servers: for some thousand bad and good inputs, the server answers exactly what the
//! scanner's view of the same bytes leads to expect, reply by reply and byte by byte, the last error line included. A
//! disagreement here is a way to smuggle a request past the lock rules.

mod cases;
mod model;
#[path = "../real_server/mod.rs"]
mod real_server;
mod server;

use cases::Dice;
use lockward::resp::request::{RequestError, RequestScanner, Scanned};
use model::Flavour;
use server::Server;

const CASES: u64 = 3000;

fn agree(server: &Server, flavour: Flavour, authenticated: bool, input: &[u8], what: &str) {
    let Some(expected) = model::expect(flavour, authenticated, input) else {
        return;
    };
    let answer = server.answer_to(input);
    assert!(
        expected.fits(&answer),
        "{what}: {flavour:?} and the scanner disagree\n  input    {}\n  answer   {}\n  expected {expected}",
        input.escape_ascii(),
        answer.escape_ascii(),
    );
}

fn random_inputs(server: &Server, flavour: Flavour, authenticated: bool, seed: u64) {
    for case in 0..CASES {
        let input = cases::input(&mut Dice::new(seed.wrapping_add(case)));
        agree(
            server,
            flavour,
            authenticated,
            &input,
            &format!("seed {seed} case {case}"),
        );
    }
}

fn chosen_inputs(server: &Server, flavour: Flavour, authenticated: bool) {
    for input in cases::chosen() {
        agree(server, flavour, authenticated, &input, "chosen");
    }
}

/// What the scanner refuses, the server ends by itself, without the client closing anything. What a strict scanner
/// refuses and the server at hand does not is left out.
fn refusals_close(server: &Server) {
    for input in cases::refused_by_all() {
        let mut scanner = RequestScanner::new();
        let error = loop {
            match scanner.scan(&input) {
                Err(error) => break error,
                Ok(Scanned::NeedMore) => panic!("not refused: {}", input.escape_ascii()),
                Ok(Scanned::Empty { .. } | Scanned::Request { .. }) => scanner.next(),
            }
        };
        let answer = server.answer_until_closed(&input);
        let expected = error.reply().unwrap_or_default();
        assert_eq!(
            answer.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn redis_frames_requests_as_the_scanner_does() {
    let server = Server::redis(&[]);
    chosen_inputs(&server, Flavour::Redis, true);
    refusals_close(&server);
    random_inputs(&server, Flavour::Redis, true, 7_000);
}

#[test]
fn valkey_frames_requests_as_the_scanner_does() {
    let server = Server::valkey(&[]);
    chosen_inputs(&server, Flavour::Valkey, true);
    refusals_close(&server);
    random_inputs(&server, Flavour::Valkey, true, 9_000_000);
}

#[test]
fn redis_limits_requests_before_auth_as_the_scanner_does() {
    let server = Server::redis(&["--requirepass", "secret"]);
    chosen_inputs(&server, Flavour::Redis, false);
    random_inputs(&server, Flavour::Redis, false, 70_000);
}

#[test]
fn valkey_limits_requests_before_auth_as_the_scanner_does() {
    let server = Server::valkey(&["--requirepass", "secret"]);
    chosen_inputs(&server, Flavour::Valkey, false);
    random_inputs(&server, Flavour::Valkey, false, 90_000_000);
}

#[test]
fn the_random_inputs_reach_every_complaint() {
    let mut seen = std::collections::BTreeMap::<String, u64>::new();
    for case in 0..CASES {
        let input = cases::input(&mut Dice::new(7_000 + case));
        let (requests, error) = model::scan(true, &input);
        let end = error.map_or("none".to_owned(), |error| format!("{error:?}"));
        *seen
            .entry(end.split('(').next().unwrap_or_default().to_owned())
            .or_default() += 1;
        *seen.entry("requests".to_owned()).or_default() += requests as u64;
    }
    for error in [
        RequestError::InvalidMultibulkLength,
        RequestError::InvalidBulkLength,
        RequestError::ExpectedDollar(0),
        RequestError::UnbalancedQuotes,
    ] {
        let name = format!("{error:?}");
        let name = name.split('(').next().unwrap_or_default();
        assert!(
            seen.get(name).is_some_and(|times| *times >= 50),
            "too few of {name}: {seen:?}"
        );
    }
    assert!(
        seen.get("requests").is_some_and(|requests| *requests > CASES),
        "{seen:?}"
    );
}
