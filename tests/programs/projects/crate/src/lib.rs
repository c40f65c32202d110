/// ```
/// assert_eq!(small::text(), "7 built by me");
/// ```
pub fn text() -> String {
    cfg_if::cfg_if! {
        if #[cfg(unix)] { let n = derive::seven!(); } else { let n = 0; }
    }
    format!("{} {}", itoa::Buffer::new().format(n), env!("SAID"))
}
