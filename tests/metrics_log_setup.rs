//! Logging is set up once for the whole process, so this test is alone in its program.

use lockward::config::Format;
use lockward::metrics::log;

#[test]
fn logging_is_set_up_once_and_its_level_can_change() {
    assert!(matches!(log::init("loud", Format::Text), Err(log::LogError::Level(level)) if level == "loud"));
    let handle = log::init("off", Format::Json).unwrap();
    assert!(matches!(log::init("info", Format::Text), Err(log::LogError::Twice(_))));
    handle.set_level("error").unwrap();
    assert!(handle.set_level("loud").is_err());
}
