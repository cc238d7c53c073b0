//! Tests of the lease model, line by line of the accounting and of the table.


