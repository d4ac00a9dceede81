//! No result depends on the zone of the process.

use std::process::Command;

#[test]
fn types_do_not_depend_on_the_zone_of_the_process() {
    for zone in ["UTC", "Asia/Kathmandu", "America/St_Johns"] {
        let output =
            Command::new(std::env::current_exe().unwrap()).args(["types::", "--test-threads", "1"]).env("TZ", zone).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{zone}\n{said}");
        let passed: usize = said
            .split("test result: ok. ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        assert!(passed >= 20, "{zone}: only {passed} tests ran\n{said}");
    }
}
