//! Which requests may keep the server waiting, so that no answer means nothing yet. Does not say whether one does: that
//! depends on the data, and inside MULTI none does.

use crate::resp::{Args, is_word};

use super::role::Role;
use super::row::Row;

/// Whether the answer to this request may come only when something else happens: true of the commands with
/// [`Role::Blocking`], of `XREAD`, `XREADGROUP` and `TS.READ` only with `BLOCK`. A stream or group that is called
/// `block` is taken for the option.
pub fn may_wait(row: &Row, args: Args<'_>) -> bool {
    if row.role != Role::Blocking {
        return false;
    }
    match row.name {
        "xread" | "xreadgroup" | "ts.read" => args.iter().skip(1).any(|word| is_word(word, b"block")),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::may_wait;
    use crate::command::lookup::lookup;
    use crate::command::sample::Sample;

    #[test]
    fn reads_of_streams_wait_only_with_block() {
        let cases = [
            ("BLPOP a 0", true),
            ("BZMPOP 0 1 a MIN", true),
            ("WAIT 1 0", true),
            ("WAITAOF 1 0 0", true),
            ("XREAD BLOCK 0 STREAMS a $", true),
            ("XREADGROUP GROUP g c COUNT 1 block 5 STREAMS a >", true),
            ("XREAD COUNT 5 STREAMS a 0", false),
            ("XREADGROUP GROUP g c STREAMS a >", false),
            ("GET block", false),
            ("LPOP a", false),
        ];
        for (line, wanted) in cases {
            let sample = Sample::line(line);
            let row = lookup(sample.args().get(0).unwrap()).1.unwrap();
            assert_eq!(may_wait(row, sample.args()), wanted, "{line}");
        }
    }
}
