//! The demo's play on a real server. The proxy's column is played by a second bare server here, so the verdict must be
//! that the bug is still there: the demo may not praise what it has not seen. With the proxy it is tested end to end
//! by `lockward demo` itself.

use lockward::cli::demo::{Endpoint, run};
use lockward::server::EmbeddedServer;

#[test]
fn a_bare_server_in_place_of_the_proxy_does_not_pass() {
    let first = EmbeddedServer::start(None).expect("a server (scripts/get-server gets one)");
    let second = EmbeddedServer::start(None).expect("a server");
    let endpoints = [&first, &second].map(|server| Endpoint::Unix(server.socket().to_owned()));
    let mut out = Vec::new();
    let gone = run(&endpoints[0], &endpoints[1], &mut out).expect("both servers answer");
    let text = String::from_utf8(out).expect("plain text");
    assert!(!gone, "{text}");
    assert!(text.contains("1    B's lock is gone"), "{text}");
    assert!(text.contains("Verdict: NOT as it should be"), "{text}");
}
