//! What a client asks for about its own connection: `CLIENT …`, `HELLO`, `AUTH`, `SELECT`. These only say what was
//! asked, in slices of the request; the session applies it once the server has said yes. Where the number of arguments
//! is one that the server refuses they say so, too; the values are the server's to judge.

use crate::resp::number::integer;
use crate::resp::{Args, is_word};

/// What a `CLIENT …` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCall<'a> {
    /// `SETNAME name`; an empty name takes the name away.
    SetName(&'a [u8]),
    /// `REPLY ON`: answered with `+OK`, also while replies are off.
    ReplyOn,
    /// `REPLY OFF`: no answer, and none from here on.
    ReplyOff,
    /// `REPLY SKIP`: no answer, and none to the next command.
    ReplySkip,
    /// `TRACKING …`, on or off.
    Tracking,
    /// `MAINT_NOTIFICATIONS …`, with any arguments: asks to be led to another server when this one moves.
    MaintNotifications,
    /// Everything else, wrong numbers of arguments included: one request, one reply.
    Other,
}

impl<'a> ClientCall<'a> {
    /// Reads a `CLIENT` request. The names count in any case.
    pub fn read(args: Args<'a>) -> ClientCall<'a> {
        let Some(subcommand) = args.get(1) else {
            return ClientCall::Other;
        };
        let is = |name: &str| is_word(subcommand, name.as_bytes());
        match (args.len(), args.get(2)) {
            (3, Some(name)) if is("setname") => ClientCall::SetName(name),
            (3, Some(switch)) if is("reply") => Self::reply(switch),
            (3.., _) if is("tracking") => ClientCall::Tracking,
            _ if is("maint_notifications") => ClientCall::MaintNotifications,
            _ => ClientCall::Other,
        }
    }

    fn reply(switch: &[u8]) -> ClientCall<'a> {
        if is_word(switch, b"on") {
            ClientCall::ReplyOn
        } else if is_word(switch, b"off") {
            ClientCall::ReplyOff
        } else if is_word(switch, b"skip") {
            ClientCall::ReplySkip
        } else {
            ClientCall::Other
        }
    }
}

/// What a `HELLO [version [AUTH user password] [SETNAME name]]` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The protocol version, 2 or 3; `None`: as it is (or a version that the server refuses).
    pub version: Option<u8>,
    /// The ACL user and the password of the last `AUTH`.
    pub login: Option<(&'a [u8], &'a [u8])>,
    /// The name of the last `SETNAME`.
    pub name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    /// Reads a `HELLO` request. What it does not know it steps over: whether that was right the server's answer says.
    ///
    /// An answer that is an error does not mean that nothing was done: Redis 7.0 works through the options one by one,
    /// so `HELLO 3 AUTH u p SETNAME 'a b'` logs in as `u` before it refuses the name. Valkey 9.1 checks first (both
    /// measured).
    pub fn read(args: Args<'a>) -> Hello<'a> {
        let version = match args.get(1).and_then(integer) {
            Some(2) => Some(2),
            Some(3) => Some(3),
            _ => None,
        };
        let mut hello = Hello {
            version,
            ..Hello::default()
        };
        let mut at = 2;
        while let Some(option) = args.get(at) {
            match (args.get(at + 1), args.get(at + 2)) {
                (Some(user), Some(password)) if is_word(option, b"auth") => {
                    hello.login = Some((user, password));
                    at += 3;
                }
                (Some(name), _) if is_word(option, b"setname") => {
                    hello.name = Some(name);
                    at += 2;
                }
                _ => at += 1,
            }
        }
        hello
    }
}

/// The ACL user and the password of an `AUTH` request; the user is `default` if only a password is given. `None`: the
/// server refuses it.
pub fn auth_login(args: Args<'_>) -> Option<(&[u8], &[u8])> {
    match args.len() {
        2 => Some((b"default", args.get(1)?)),
        3 => Some((args.get(1)?, args.get(2)?)),
        _ => None,
    }
}

/// The database number of a `SELECT` request. `None`: the server refuses it.
pub fn selected(args: Args<'_>) -> Option<u32> {
    let number = args.get(1).filter(|_| args.len() == 2)?;
    integer(number).and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests;
