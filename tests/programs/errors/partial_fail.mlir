// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,<<error: something bad happened>>
func.func @main() -> (i32, i32) {
  %x, %y = "tfrt_test.partial_fail"() : () -> (i32, i32) // expected-error {{something bad happened}}
  tfrt.return %x, %y : i32, i32
}
