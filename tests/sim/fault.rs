//! Faults planted on purpose: each must be caught, or the simulator is blind where it should see.

use crate::server::lua::Patch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Two lines of the release accounting change places: a sibling's release no longer pays first.
    LinesSwapped,
    /// A doubtful payment comes back beside the lease's own debt.
    DebtReturnedTwice,
    /// Closed connections are not marked.
    GoneIgnored,
    /// A plain DEL goes to the server.
    PlainDel,
    /// EXPIRE by somebody who does not hold the lock is done.
    LosersExpire,
    /// A reply goes to the client twice.
    ReplyDoubled,
    /// An acquire is sent again.
    AcquireRetried,
    /// A record follows what a stranger's script leaves.
    StrangersReconcile,
    /// Each session has a contention shield of its own, and so does not hear of the others' releases.
    ShieldsApart,
}

impl Fault {
    pub const ALL: [Fault; 9] = [
        Fault::LinesSwapped,
        Fault::DebtReturnedTwice,
        Fault::GoneIgnored,
        Fault::PlainDel,
        Fault::LosersExpire,
        Fault::ReplyDoubled,
        Fault::AcquireRetried,
        Fault::StrangersReconcile,
        Fault::ShieldsApart,
    ];

    /// What the fault does to a script's text, which has neither comments nor indentation any more.
    pub fn patch(self) -> Option<Patch> {
        let (from, to) = match self {
            Fault::LinesSwapped => (
                "for _, d in ipairs(s.debts) do\nif d.o == w.o then return 'late', d, same end\nend\nif same then return 'pooled' end\n",
                "if same then return 'pooled' end\nfor _, d in ipairs(s.debts) do\nif d.o == w.o then return 'late', d, same end\nend\n",
            ),
            Fault::DebtReturnedTwice => (
                "s.last = s.doubts[#s.doubts]\n",
                "s.last = s.doubts[#s.doubts]\nif s.last and h.owing then\nall[#all + 1] = {n = h.number, due = s.due, c = h.connection, o = h.owner, open = h.connection_open, unpaid = 1}\nend\n",
            ),
            Fault::GoneIgnored => (
                "if #f > 0 then call('HDEL', s.r, unpack(f)) end\nreturn 'marked'\nend\n",
                "return 'marked'\nend\n",
            ),
            Fault::LosersExpire => ("elseif place == 'other' then\n", "elseif place == 'nobody' then\n"),
            Fault::StrangersReconcile => (
                "elseif s.state == 'open' or s.state == 'adrift' and row(s, w) == 'unmanaged' then\nif math.abs(s.at - s.due) > 2 then",
                "elseif s.state == 'open' or s.state == 'adrift' then\nif math.abs(s.at - s.due) > 2 then",
            ),
            Fault::PlainDel | Fault::ReplyDoubled | Fault::AcquireRetried | Fault::ShieldsApart => return None,
        };
        Some(Patch { from, to })
    }
}
