func.func @load(%one: i32) -> i32 {
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  tfrt.return %bad : i32
}

// The first call's error is the result of all.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened>>,<<error: something bad happened>>
func.func @main() -> (i32, i32) {
  %one = tfrt.constant.i32 1
  %a = tfrt.once @load(%one) : (i32) -> (i32)
  %b = tfrt.once @load(%one) : (i32) -> (i32)
  tfrt.return %a, %b : i32, i32
}
