func.func @same(%a: i32) -> i32 {
  tfrt.return %a : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened>>
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %cond = tfrt.equal.i32 %bad, %one
  %x = tfrt.cond %cond @same @same (%one) : (i32) -> (i32)
  tfrt.return %x : i32
}
