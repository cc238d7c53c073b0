//! SYNC, PSYNC, REPLCONF: a stream of raw bytes only once the server has agreed, and REPLCONF's silent options.

use crate::rig::Rig;

#[test]
fn nothing_is_a_request_any_more_once_the_server_has_agreed() {
    for (line, reply) in [
        ("PSYNC ? -1", "+FULLRESYNC 8371b4fb1155b71f4a04d3e1bc3e18c4a990aeeb 0|"),
        ("SYNC", "$10|REDIS0011x"),
        ("SYNC", "|"),
    ] {
        let mut rig = Rig::enforce();
        rig.passes(line, reply);
        rig.server("\0\0 not RESP at all *3| >2|");
        rig.heard("\0\0 not RESP at all *3| >2|");
        rig.sends(&["REPLCONF ACK 100", "DEL lock:a"]);
        rig.server_got(&["REPLCONF ACK 100", "DEL lock:a"]);
    }
}

#[test]
fn a_refused_sync_is_no_way_around_the_rules() {
    let mut rig = Rig::enforce();
    rig.sends(&["SYNC", "DEL lock:a"]);
    rig.server_got(&["SYNC"]);
    rig.server("-NOPERM no|");
    let sent = String::from_utf8_lossy(&rig.take_upstream()).into_owned();
    assert!(sent.contains("EVALSHA"), "{sent}");
}

#[test]
fn replconf_without_an_answer() {
    for (line, asked) in [
        ("REPLCONF ACK 1", "REPLCONF"),
        ("replconf getack *", "replconf"),
        ("REPLCONF listening-port 1 ack 5", "REPLCONF listening-port 1"),
    ] {
        let mut rig = Rig::plain();
        rig.sends(&[line, "PING"]);
        rig.server_got(&[asked, "PING"]);
        rig.server("+OK|+PONG|");
        rig.heard("+PONG|");
        rig.is_in_step();

        rig.sends(&[line, "PING"]);
        rig.server("-NOPERM no|+PONG|");
        rig.heard("-NOPERM no|+PONG|");
    }
}

#[test]
fn replconf_with_an_answer() {
    let mut rig = Rig::plain();
    rig.passes("REPLCONF", "+OK|");
    rig.passes("REPLCONF ACK", "-ERR syntax error|");
    rig.passes("REPLCONF capa eof capa psync2", "+OK|");
    rig.passes("REPLCONF capa ack", "+OK|");
    rig.is_in_step();
}

#[test]
fn inside_a_transaction_its_element_is_missing_as_it_is_on_the_server() {
    let mut rig = Rig::plain();
    rig.sends(&["MULTI", "REPLCONF ACK 1", "ECHO a", "EXEC"]);
    rig.server("+OK|+QUEUED|+QUEUED|*2|+OK|$1|a|");
    rig.heard("+OK|+QUEUED|+QUEUED|*2|$1|a|");
    rig.is_in_step();
}

#[test]
fn raw_bytes_obey_the_limits_too() {
    let mut rig = Rig::plain();
    rig.passes("PSYNC ? -1", "+CONTINUE|");
    rig.server_bytes(&vec![b'x'; lockward::session::BUFFER_LIMIT]);
    let lockward::session::Next::Wait { read_upstream, .. } = rig.session.next() else {
        panic!("it goes on");
    };
    assert!(!read_upstream);
}
