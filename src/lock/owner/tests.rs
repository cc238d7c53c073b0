//! The text of owners: by example, and that it is injective, as a property.

use proptest::prelude::*;

use super::*;

fn connection(number: u64) -> ConnectionId {
    ConnectionId {
        instance: "ab12ab12ab12ab12".into(),
        number,
    }
}

fn who<'a>(connection: &'a ConnectionId, name: &'a [u8]) -> Identity<'a> {
    Identity {
        connection,
        address: Some("10.0.0.7".parse().unwrap()),
        process: Some("4711-88"),
        client_name: name,
        user: b"app",
    }
}

fn text(parts: &[OwnerPart], who: &Identity<'_>) -> (String, Bound) {
    let derived = derive(parts, who);
    (derived.owner.to_string(), derived.bound)
}

#[test]
fn each_part_has_its_text_and_its_bound() {
    let c = connection(7);
    let me = who(&c, b"w 1");
    for (parts, expected, bound) in [
        (&[OwnerPart::Any][..], "any", Bound::Free),
        (&[OwnerPart::Address], "address=10.0.0.7", Bound::Free),
        (
            &[OwnerPart::User, OwnerPart::ClientName],
            "user=app,client-name=w%201",
            Bound::Free,
        ),
        (
            &[OwnerPart::ClientName, OwnerPart::User],
            "client-name=w%201,user=app",
            Bound::Free,
        ),
        (
            &[OwnerPart::Connection],
            "connection=ab12ab12ab12ab12-7",
            Bound::Connection,
        ),
        (&[OwnerPart::Process], "process=4711-88", Bound::Process),
        (
            &[OwnerPart::Process, OwnerPart::Connection],
            "process=4711-88,connection=ab12ab12ab12ab12-7",
            Bound::Connection,
        ),
    ] {
        assert_eq!(text(parts, &me), (expected.to_owned(), bound));
    }
}

#[test]
fn who_has_no_name_or_no_process_is_the_connection() {
    let c = connection(7);
    let me = Identity {
        process: None,
        client_name: b"",
        ..who(&c, b"")
    };
    let expected = ("connection=ab12ab12ab12ab12-7".to_owned(), Bound::Connection);
    assert_eq!(text(&[OwnerPart::ClientName], &me), expected);
    assert_eq!(text(&[OwnerPart::Process], &me), expected);
    assert_eq!(
        text(&[OwnerPart::Process, OwnerPart::ClientName, OwnerPart::Connection], &me),
        expected
    );
}

#[test]
fn a_mapped_address_is_the_ipv4_address_and_a_unix_socket_is_local() {
    let c = connection(1);
    let mapped = Identity {
        address: Some("::ffff:10.0.0.7".parse().unwrap()),
        ..who(&c, b"")
    };
    assert_eq!(text(&[OwnerPart::Address], &mapped).0, "address=10.0.0.7");
    let six = Identity {
        address: Some("2001:db8::7".parse().unwrap()),
        ..who(&c, b"")
    };
    assert_eq!(text(&[OwnerPart::Address], &six).0, "address=2001:db8::7");
    let local = Identity {
        address: None,
        ..who(&c, b"")
    };
    assert_eq!(
        text(&[OwnerPart::Address], &local),
        ("address=local".to_owned(), Bound::Free)
    );
}

#[test]
fn a_name_cannot_pass_for_another_part() {
    let c = connection(1);
    let liar = who(&c, b"x,user=root;%\xff\r\n~");
    assert_eq!(
        text(&[OwnerPart::ClientName], &liar).0,
        "client-name=x%2Cuser%3Droot%3B%25%FF%0D%0A%7E"
    );
}

#[test]
fn a_very_long_name_is_shortened_but_stays_its_own() {
    let c = connection(1);
    let (a, b) = (vec![b'a'; 1 << 20], vec![b'a'; (1 << 20) + 1]);
    let a = text(&[OwnerPart::ClientName], &who(&c, &a)).0;
    let b = text(&[OwnerPart::ClientName], &who(&c, &b)).0;
    assert!(a.len() < 100 && a != b, "{a} {b}");
}

/// Values that are close to each other, near the length limit and full of the characters with a meaning.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        "[a%,;=~ ]{0,4}".prop_map(String::into_bytes),
        "[a%]{120,140}".prop_map(String::into_bytes),
    ]
}

fn parts() -> impl Strategy<Value = Vec<OwnerPart>> {
    let all = vec![
        OwnerPart::Connection,
        OwnerPart::Process,
        OwnerPart::Address,
        OwnerPart::ClientName,
        OwnerPart::User,
        OwnerPart::Any,
    ];
    (0..=all.len())
        .prop_flat_map(move |n| prop::sample::subsequence(all.clone(), n))
        .prop_shuffle()
}

type Facts = (u64, Option<IpAddr>, Option<String>, Vec<u8>, Vec<u8>);

fn facts() -> impl Strategy<Value = Facts> {
    let ip = prop_oneof![
        Just("10.0.0.1".parse::<IpAddr>().unwrap()),
        Just("::ffff:10.0.0.1".parse().unwrap()),
        Just("::a00:1".parse().unwrap()),
        Just("10.0.0.2".parse().unwrap()),
    ];
    (
        0..3_u64,
        prop::option::of(ip),
        prop::option::of("[ab=,]{0,2}"),
        value(),
        value(),
    )
}

/// What a rule sees of somebody, written without any text tricks.
fn seen(parts: &[OwnerPart], facts: &Facts) -> Vec<(OwnerPart, Vec<u8>)> {
    let connection = (OwnerPart::Connection, facts.0.to_string().into_bytes());
    let mut seen: Vec<(OwnerPart, Vec<u8>)> = Vec::new();
    for part in parts {
        let one = match part {
            OwnerPart::Connection => connection.clone(),
            OwnerPart::Process => match &facts.2 {
                Some(process) => (*part, process.clone().into_bytes()),
                None => connection.clone(),
            },
            OwnerPart::Address => (*part, format!("{:?}", facts.1.map(|ip| ip.to_canonical())).into_bytes()),
            OwnerPart::ClientName if facts.3.is_empty() => connection.clone(),
            OwnerPart::ClientName => (*part, facts.3.clone()),
            OwnerPart::User => (*part, facts.4.clone()),
            OwnerPart::Any => continue,
        };
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

fn derived(parts: &[OwnerPart], facts: &Facts) -> Derived {
    let connection = connection(facts.0);
    let (address, process) = (facts.1, facts.2.as_deref());
    let who = Identity {
        connection: &connection,
        address,
        process,
        client_name: &facts.3,
        user: &facts.4,
    };
    derive(parts, &who)
}

proptest! {
    #[test]
    fn owners_are_equal_exactly_if_the_rule_sees_the_same(parts in parts(), a in facts(), b in facts()) {
        let same = seen(&parts, &a) == seen(&parts, &b);
        prop_assert_eq!(derived(&parts, &a).owner == derived(&parts, &b).owner, same);
    }

    #[test]
    fn an_owner_is_printable_and_bounded(parts in parts(), facts in facts()) {
        let Derived { owner, bound } = derived(&parts, &facts);
        prop_assert!(owner.bytes().all(|b| b.is_ascii_graphic() && b != b';'), "{}", owner);
        prop_assert!(owner.len() < 900);
        prop_assert_eq!(bound == Bound::Connection, owner.contains("connection="));
    }
}
