use std::os::unix::process::CommandExt;
use std::process::Command;
fn main() {
    let all: Vec<_> = (0..4)
        .map(|i| std::thread::spawn(move || {
            Command::new("sh").args(["-c", &format!("exit {}", i)]).status().unwrap().code()
        }))
        .collect();
    for one in all {
        println!("{:?}", one.join().unwrap());
    }
    println!("{:?}", Command::new("no-such-program").status().map_err(|e| e.kind()));
    std::thread::spawn(|| {
        let error = Command::new("sh").args(["-c", "echo replaced; exit 8"]).exec();
        println!("{error}");
    }).join().unwrap();
}
