//! A connection for looking at a server, one question at a time, for `lockward check`. Unlike the connection that serves
//! it goes on where the server refuses something, does not connect again, and runs no script.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::timeout;

use super::wire::{Fault, Link, error_text};
use crate::config::{Place, Secret, Server};
use crate::proxy::tls::Certificates;
use crate::resp::encode;

/// An open connection. Which user it is, is decided by [`Look::login`].
pub struct Look {
    link: Link,
    limit: Duration,
}

impl Look {
    /// Connects, within `connect_limit`. No answer may take longer than `limit`.
    ///
    /// # Errors
    ///
    /// What went wrong, in words.
    pub async fn connect(
        place: &Place,
        tls: bool,
        certificates: &Certificates,
        connect_limit: Duration,
        limit: Duration,
    ) -> Result<Look, String> {
        let link = Link::connect(place, tls, certificates, connect_limit).await;
        link.map(|link| Look { link, limit }).map_err(|fault| fault.to_string())
    }

    /// Logs in as the user of `upstream.url`. `Some`: the server's own refusal, be it of the login or of anybody who has
    /// none.
    ///
    /// # Errors
    ///
    /// What became of the connection, in words.
    pub async fn login(&mut self, server: &Server) -> Result<Option<String>, String> {
        let reply = match (server.password.as_ref().map(Secret::reveal), &server.user) {
            (Some(password), Some(user)) => self.ask(&["AUTH", user, password]).await?,
            (Some(password), None) => self.ask(&["AUTH", password]).await?,
            (None, _) => self.ask(&["PING"]).await?,
        };
        // Without the right to PING somebody may still be logged in, and so on a server that answers no PING now.
        let let_in = ["NOPERM", "LOADING", "BUSY", "MASTERDOWN"];
        Ok(error_text(&reply).filter(|text| !let_in.iter().any(|code| text.starts_with(code))))
    }

    /// Asks, and returns the whole reply, an error reply too.
    ///
    /// # Errors
    ///
    /// What became of the connection, in words. It is of no use then.
    pub async fn ask<Word: AsRef<[u8]>>(&mut self, words: &[Word]) -> Result<Bytes, String> {
        let mut request = BytesMut::new();
        encode::command(&mut request, words.iter().map(AsRef::as_ref));
        let replies = timeout(self.limit, self.link.ask(&request, 1)).await;
        let mut replies = replies
            .unwrap_or(Err(Fault::Stalled(self.limit)))
            .map_err(|fault| fault.to_string())?;
        replies.pop().ok_or_else(|| Fault::Closed.to_string())
    }
}
