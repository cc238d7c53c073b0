//! Grants whose answers never reach the client: the shell is told, so that nobody waits for a lease that nobody has.

use lockward::event::What;
use lockward::session::Next;

use crate::rig::Rig;

const GRANTED: &str = "*2|$17|granted ttl=30000|+OK|";

fn unheard(rig: &mut Rig) -> usize {
    let grants = rig.session.unheard();
    assert!(grants.iter().all(|event| matches!(event.what, What::Granted(_))));
    grants.len()
}

#[test]
fn a_grant_is_heard_once_its_answer_is_written() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    rig.take_upstream();
    rig.server(GRANTED);
    let answer = rig.take_downstream();
    rig.session.wrote_downstream(answer.len());
    assert_eq!(unheard(&mut rig), 0);
}

#[test]
fn a_grant_behind_bytes_that_were_not_all_written_is_unheard() {
    let mut rig = Rig::enforce();
    rig.sends(&["GET plain", "SET lock:a 1 NX EX 30", "SET lock:b 1 NX EX 30"]);
    rig.take_upstream();
    rig.server("$5|value|");
    rig.server(GRANTED);
    rig.server(GRANTED);
    let answers = rig.take_downstream();
    rig.session.wrote_downstream(answers.len() - 2);
    assert_eq!(unheard(&mut rig), 1);
}

#[test]
fn a_client_lost_before_its_grant_is_waited_for_and_not_written_to() {
    let mut rig = Rig::enforce();
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    rig.take_upstream();
    rig.session.downstream_lost();
    assert!(matches!(
        rig.session.next(),
        Next::Wait {
            read_downstream: false,
            read_upstream: true
        }
    ));
    rig.server(GRANTED);
    assert!(rig.session.to_downstream.is_empty());
    assert_eq!(rig.session.next(), Next::Close);
    assert_eq!(unheard(&mut rig), 1);
}

#[test]
fn a_grant_to_a_silenced_client_counts_as_heard() {
    let mut rig = Rig::enforce();
    rig.sends(&["CLIENT REPLY OFF"]);
    rig.take_upstream();
    rig.server("+OK|");
    rig.sends(&["SET lock:a 1 NX EX 30"]);
    rig.take_upstream();
    rig.server(GRANTED);
    rig.session.downstream_lost();
    assert_eq!(unheard(&mut rig), 0);
}
