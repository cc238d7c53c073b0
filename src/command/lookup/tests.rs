//! Tests of finding a row by its name.

use super::*;
use crate::command::row::{Keys, arity_ok};

#[test]
fn every_row_is_found_in_any_case() {
    for place in 0..count() {
        let id = CommandId(place as u16);
        let row = row(id).unwrap();
        let mixed: String = row
            .name
            .chars()
            .enumerate()
            .map(|(at, c)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c })
            .collect();
        for spelling in [row.name.to_string(), row.name.to_ascii_uppercase(), mixed] {
            let (found, its_row) = lookup(spelling.as_bytes());
            assert_eq!(found, id, "{spelling}");
            assert!(std::ptr::eq(its_row.unwrap(), row), "{spelling}");
        }
        assert_eq!(name(id), row.name);
    }
}

#[test]
fn what_is_not_in_the_table_is_other() {
    let long = [b'a'; 100_000];
    for unknown in [
        &b""[..],
        b"se",
        b"sett",
        b"set ",
        b"get\0",
        b"\xff\xfe",
        b"other",
        b"POST",
        b"GET\x80",
        &long,
    ] {
        let (id, row) = lookup(unknown);
        assert_eq!(id, CommandId::OTHER, "{unknown:?}");
        assert!(row.is_none());
    }
    assert_eq!(name(CommandId::OTHER), "other");
    assert!(row(CommandId::OTHER).is_none());
    assert!(row(CommandId(count() as u16)).is_none());
}

#[test]
fn bytes_that_only_look_alike_with_bit_5_set_are_told_apart() {
    // `_` and DEL, `.` and 0x0e differ in bit 5 alone, as letters do.
    for impostor in [&b"sort\x7fro"[..], b"json\x0eset", b"\x13et"] {
        assert_eq!(lookup(impostor).0, CommandId::OTHER, "{impostor:?}");
    }
}

#[test]
fn families_are_sorted_and_every_row_is_sound() {
    for family in FAMILIES {
        assert!(
            family.windows(2).all(|pair| pair[0].name < pair[1].name),
            "{:?}",
            family.first()
        );
    }
    for row in &TABLE {
        assert_eq!(row.name, row.name.to_ascii_lowercase());
        assert!(row.arity != 0 && row.name.len() <= 24, "{}", row.name);
        if let Keys::Range { first, step, .. } = row.keys {
            assert!(first > 0 && step > 0, "{}", row.name);
        }
    }
}

#[test]
fn names_are_found_in_few_steps() {
    let mut longest = 0;
    for row in &TABLE {
        let mut slot = hash(row.name.as_bytes()) & (SLOTS - 1);
        let mut steps = 1;
        while TABLE
            .get(usize::from(INDEX[slot]))
            .is_some_and(|other| other.name != row.name)
        {
            slot = (slot + 1) & (SLOTS - 1);
            steps += 1;
        }
        longest = longest.max(steps);
    }
    assert!(longest <= 6, "{longest}");
}

#[test]
fn the_number_of_arguments_counts_the_name() {
    let get = lookup(b"get").1.unwrap();
    assert!(!arity_ok(get, 0) && !arity_ok(get, 1) && arity_ok(get, 2) && !arity_ok(get, 3));
    let set = lookup(b"set").1.unwrap();
    assert!(!arity_ok(set, 2) && arity_ok(set, 3) && arity_ok(set, 300_000));
}
