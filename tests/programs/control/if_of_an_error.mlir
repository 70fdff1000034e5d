// Neither region runs.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened>>
func.func @main() -> i32 {
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %one = tfrt.constant.i32 1
  %cond = tfrt.equal.i32 %bad, %one
  %x = tfrt.if %cond, %one : (i32) -> (i32) {
    tfrt.return %one : i32
  } else {
    tfrt.return %one : i32
  }
  tfrt.return %x : i32
}
