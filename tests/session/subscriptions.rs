//! SUBSCRIBE and its sisters: one acknowledgement for each channel or a single error, in both versions of the protocol,
//! and messages that answer nobody.

use crate::rig::Rig;

const HELLO: &str = "%1|$5|proto|:3|";

fn resp3() -> Rig {
    let mut rig = Rig::plain();
    rig.passes("HELLO 3", HELLO);
    rig
}

/// An acknowledgement as RESP2 (`*`) or RESP3 (`>`) writes it.
fn ack(kind: char, word: &str, channel: &str, total: u32) -> String {
    format!("{kind}3|${}|{word}|${}|{channel}|:{total}|", word.len(), channel.len())
}

#[test]
fn two_channels_two_acknowledgements_one_command() {
    for kind in ['*', '>'] {
        let mut rig = if kind == '*' { Rig::plain() } else { resp3() };
        rig.settled();
        rig.sends(&["SUBSCRIBE a b", "PING"]);
        rig.server(&ack(kind, "subscribe", "a", 1));
        assert!(rig.settled().is_empty());
        rig.server(&ack(kind, "subscribe", "b", 2));
        assert_eq!(rig.settled(), [("subscribe", false)]);
        let pong = if kind == '*' { "*2|$4|pong|$0||" } else { "+PONG|" };
        rig.server(pong);
        assert_eq!(rig.settled(), [("ping", false)]);
    }
}

#[test]
fn unsubscribe_without_arguments_is_acknowledged_for_each_channel_there_was() {
    for (kind, mut rig) in [('*', Rig::plain()), ('>', resp3())] {
        rig.settled();
        rig.sends(&[
            "SUBSCRIBE a b c",
            "UNSUBSCRIBE b",
            "UNSUBSCRIBE",
            "UNSUBSCRIBE",
            "ECHO x",
        ]);
        let acks: String = [("subscribe", "a", 1), ("subscribe", "b", 2), ("subscribe", "c", 3)]
            .into_iter()
            .chain([
                ("unsubscribe", "b", 2),
                ("unsubscribe", "c", 1),
                ("unsubscribe", "a", 0),
            ])
            .map(|(word, channel, total)| ack(kind, word, channel, total))
            .collect();
        rig.server(&acks);
        assert_eq!(rig.settled().len(), 3);
        // With nothing subscribed there is still one.
        rig.server(&format!("{kind}3|$11|unsubscribe|$-1|:0|"));
        assert_eq!(rig.settled().len(), 1);
        rig.server("$1|x|");
        assert_eq!(rig.settled(), [("echo", false)]);
        rig.is_in_step();
    }
}

#[test]
fn patterns_and_channels_share_a_count_and_shard_channels_have_their_own() {
    let mut rig = Rig::plain();
    rig.sends(&["SUBSCRIBE a b", "PSUBSCRIBE p*", "SSUBSCRIBE s"]);
    rig.server(&ack('*', "subscribe", "a", 1));
    rig.server(&ack('*', "subscribe", "b", 2));
    rig.server(&ack('*', "psubscribe", "p*", 3));
    rig.server(&ack('*', "ssubscribe", "s", 1));
    assert_eq!(rig.settled().len(), 3);
    rig.sends(&["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"]);
    rig.server(&ack('*', "unsubscribe", "a", 2));
    rig.server(&ack('*', "unsubscribe", "b", 1));
    rig.server(&ack('*', "punsubscribe", "p*", 0));
    rig.server(&ack('*', "sunsubscribe", "s", 0));
    assert_eq!(rig.settled().len(), 3);
    rig.is_in_step();
}

#[test]
fn a_refused_subscription_is_one_error() {
    let mut rig = Rig::plain();
    rig.sends(&["SUBSCRIBE a b c", "PING"]);
    rig.server("-NOPERM this user has no permissions to access one of the channels|+PONG|");
    assert_eq!(rig.settled(), [("subscribe", true), ("ping", false)]);
    rig.is_in_step();
}

#[test]
fn messages_come_between_and_answer_nobody() {
    for (kind, mut rig) in [('*', Rig::plain()), ('>', resp3())] {
        rig.settled();
        let message = format!("{kind}3|$7|message|$1|a|$2|hi|");
        let pattern = format!("{kind}4|$8|pmessage|$1|*|$1|a|$2|hi|");
        let shard = format!("{kind}3|$8|smessage|$1|s|$2|hi|");
        rig.sends(&["SUBSCRIBE a b"]);
        let all = [
            ack(kind, "subscribe", "a", 1),
            message.clone(),
            ack(kind, "subscribe", "b", 2),
            message,
            pattern,
            shard,
        ]
        .concat();
        rig.take_upstream();
        rig.take_downstream();
        rig.server(&all);
        rig.heard(&all);
        assert_eq!(rig.settled(), [("subscribe", false)]);
    }
}

#[test]
fn an_array_that_looks_like_a_message_is_an_answer_to_who_is_not_subscribed() {
    let mut rig = Rig::plain();
    rig.passes("LRANGE l 0 -1", "*3|$7|message|$1|a|$2|hi|");
    rig.passes("LRANGE l 0 -1", "*3|$9|subscribe|$1|a|:1|");
    assert_eq!(rig.settled().len(), 2);
    rig.is_in_step();
}

#[test]
fn reset_leaves_the_subscribed_mode() {
    let mut rig = Rig::plain();
    rig.sends(&["SUBSCRIBE a", "PSUBSCRIBE b", "SSUBSCRIBE c", "RESET"]);
    rig.server(&ack('*', "subscribe", "a", 1));
    rig.server(&ack('*', "psubscribe", "b", 2));
    rig.server(&ack('*', "ssubscribe", "c", 1));
    rig.server("*3|$7|message|$1|a|$2|hi|+RESET|");
    assert_eq!(rig.settled().len(), 4);
    rig.take_upstream();
    rig.take_downstream();
    // Not a message any more.
    rig.passes("LRANGE l 0 -1", "*3|$7|message|$1|a|$2|hi|");
    assert_eq!(rig.settled().len(), 1);
    rig.is_in_step();
}

#[test]
fn subscribing_inside_a_transaction() {
    for (kind, mut rig) in [('*', Rig::plain()), ('>', resp3())] {
        rig.take_downstream();
        rig.sends(&["MULTI", "SUBSCRIBE a b", "INCR n", "EXEC"]);
        rig.server("+OK|+QUEUED|+QUEUED|");
        rig.settled();
        let array = [
            "*2|",
            &ack(kind, "subscribe", "a", 1),
            &ack(kind, "subscribe", "b", 2),
            ":5|",
        ]
        .concat();
        rig.server(&array);
        rig.heard(&["+OK|+QUEUED|+QUEUED|", &array].concat());
        assert_eq!(rig.settled(), [("exec", false)]);
        // It is subscribed now.
        rig.sends(&["UNSUBSCRIBE"]);
        rig.server(&ack(kind, "unsubscribe", "a", 1));
        assert!(rig.settled().is_empty());
        rig.server(&ack(kind, "unsubscribe", "b", 0));
        assert_eq!(rig.settled(), [("unsubscribe", false)]);
        rig.is_in_step();
    }
}

#[test]
fn redis_7_puts_a_message_between_the_elements_of_exec() {
    // SUBSCRIBE ch, then MULTI, PUBLISH ch x, ECHO b, EXEC, measured on 7.0.15.
    let mut rig = resp3();
    rig.sends(&["SUBSCRIBE ch", "MULTI", "PUBLISH ch x", "ECHO b", "EXEC", "PING"]);
    rig.server(&ack('>', "subscribe", "ch", 1));
    rig.server("+OK|+QUEUED|+QUEUED|");
    rig.settled();
    rig.server("*2|>3|$7|message|$2|ch|$1|x|:1|");
    assert!(rig.settled().is_empty(), "ECHO's answer is still to come");
    rig.server("$1|b|");
    assert_eq!(rig.settled(), [("exec", false)]);
    rig.server("+PONG|");
    assert_eq!(rig.settled(), [("ping", false)]);
}

#[test]
fn a_scripts_answer_inside_exec_cannot_pass_for_an_acknowledgement() {
    let mut rig = Rig::enforce();
    rig.sends(&["MULTI", "SUBSCRIBE a", "EVAL script 0", "UNSUBSCRIBE a", "EXEC"]);
    rig.server("+OK|+QUEUED|+QUEUED|+QUEUED|*3|");
    rig.server(&ack('*', "subscribe", "a", 1));
    rig.server(&ack('*', "psubscribe", "x", 9));
    rig.server(&ack('*', "unsubscribe", "a", 0));
    rig.take_upstream();
    rig.take_downstream();
    // Whoever is not subscribed gets no lock command through as it is.
    rig.sends(&["DEL lock:x"]);
    let sent = String::from_utf8_lossy(&rig.take_upstream()).into_owned();
    assert!(sent.contains("EVALSHA"), "{sent}");
}

#[test]
fn a_subscribed_client_of_resp2_hears_from_the_server_what_it_may_not_do() {
    let mut rig = Rig::enforce();
    rig.passes("SUBSCRIBE a", &ack('*', "subscribe", "a", 1));
    rig.passes("DEL lock:x", "-ERR Can't execute 'del': not allowed in this context|");
}

#[test]
fn a_lock_command_behind_a_subscription_waits_for_the_acknowledgement() {
    let mut rig = Rig::enforce();
    rig.sends(&["SUBSCRIBE a", "DEL lock:x"]);
    rig.server_got(&["SUBSCRIBE a"]);
    rig.server(&ack('*', "subscribe", "a", 1));
    rig.server_got(&["DEL lock:x"]);
}

#[test]
fn acknowledgements_in_any_pieces() {
    for pieces in 1..9 {
        let mut rig = Rig::plain().in_pieces_of(pieces);
        rig.sends(&["SUBSCRIBE a b", "UNSUBSCRIBE", "ECHO x"]);
        let all = [
            ack('*', "subscribe", "a", 1),
            ack('*', "subscribe", "b", 2),
            "*3|$7|message|$1|a|$2|hi|".to_owned(),
            ack('*', "unsubscribe", "a", 1),
            ack('*', "unsubscribe", "b", 0),
            "$1|x|".to_owned(),
        ]
        .concat();
        rig.server(&all);
        rig.heard(&all);
        assert_eq!(rig.settled().len(), 3);
    }
}
