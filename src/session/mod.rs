//! One client, in order: the state machine between the two byte streams of one downstream connection. No IO, no clock.
