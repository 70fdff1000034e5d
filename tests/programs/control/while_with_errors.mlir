func.func @failing(%i: i32) -> (i32, i1) {
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %go = tfrt.equal.i32 %bad, %i
  tfrt.return %i, %go : i32, i1
}

// An error of the condition ends the loop with errors.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened>>
func.func @main() -> i32 {
  %go = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %0 = tfrt.while %go @failing(%zero) : (i32) -> (i32) parallel_iterations(1)
  tfrt.return %0 : i32
}
