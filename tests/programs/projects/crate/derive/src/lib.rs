extern crate proc_macro;

#[proc_macro]
pub fn seven(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    "7".parse().unwrap()
}
