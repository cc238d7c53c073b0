//! The HTTP side: metrics, health, one lock, release by force.
