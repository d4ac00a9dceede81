//! Who the process runs as, where its environment does not say: the name that the system has for its user, else the user's number.

use std::path::Path;

/// Of the running process; none where the system does not tell.
pub(crate) fn of_process() -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).ok();
    told(&read("/proc/self/status")?, &read("/etc/passwd").unwrap_or_default())
}

/// What the system says of a process, and of its users.
fn told(status: &str, users: &str) -> Option<String> {
    // real, effective, saved, of files
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let number = numbers.split_whitespace().nth(1).filter(|number| number.bytes().all(|c| c.is_ascii_digit()))?;
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, of) = (fields.next()?, fields.next()?, fields.next()?);
        (of == number && !name.is_empty()).then_some(name)
    });
    Some(name.unwrap_or(number).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_as_the_name_of_its_user_or_as_its_number() {
        let status = "Name:\ttributary\nUid:\t0\t1001\t0\t0\nGid:\t0\t0\t0\t0\n";
        let users = "root:x:0:0:root:/root:/bin/sh\n# a remark\nann:x:1001:1001::/home/ann:/bin/sh\n";
        assert_eq!(told(status, users).as_deref(), Some("ann"));
        assert_eq!(told(status, "root:x:0:0:root:/root:/bin/sh\n:x:1001:1001::/:/bin/sh").as_deref(), Some("1001"));
        assert_eq!(told(status, ""), Some("1001".to_owned()));
        assert_eq!(told("Name:\ttributary\n", users), None);
        assert_eq!(told("Uid:\tnobody knows\n", users), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_running_process_runs_as_somebody() {
        assert!(of_process().is_some_and(|login| !login.is_empty()));
    }
}
