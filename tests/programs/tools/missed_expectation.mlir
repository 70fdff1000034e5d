// STATUS: 1
// One error that no comment expects, and another text than the expected one.
// CHECK: 'main' returned <<error: something bad happened>>,<<error: Divide by zero>>
func.func @main() -> (i32, i32) {
  %x = "tfrt_test.fail"() : () -> i32
  %zero = "tfrt.constant.i32"() {value = 0 : i32} : () -> i32
  %q, %r = "tfrt.div.i32"(%zero, %zero) : (i32, i32) -> (i32, i32) // expected-error {{another text}}
  "tfrt.return"(%x, %q) : (i32, i32) -> ()
}
