//! The metrics: a bounded recorder behind the metrics facade, fed from events only.
