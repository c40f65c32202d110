use std::io::Error;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::thread;

#[test]
fn a_child_is_killed() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn threads_have_children() {
    let ends_well = || Command::new("true").status().unwrap().success();
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(move || (0..10).all(|_| ends_well()))).collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}

#[test]
fn what_fails_before_the_exec() {
    let mut command = Command::new("true");
    unsafe { command.pre_exec(|| Err(Error::from_raw_os_error(7))) };
    assert_eq!(command.status().unwrap_err().raw_os_error(), Some(7));
}

#[test]
fn what_is_not_there() {
    assert_eq!(Command::new("no-such-program").status().unwrap_err().raw_os_error(), Some(2));
}

#[test]
fn fails() {
    panic!("as it must")
}
