fn main() {
    println!("{}", small::text());
}
