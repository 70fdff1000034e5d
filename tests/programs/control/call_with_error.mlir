// A call is skipped when an argument is an error.
func.func @loud(%x: i32) -> i32 {
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %x : i32
}

// CHECK-LABEL: --- Running 'skipped':
// CHECK-NEXT: 'skipped' returned <<error: something bad happened>>
func.func @skipped() -> i32 {
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %x = tfrt.call @loud(%bad) : (i32) -> (i32)
  tfrt.return %x : i32
}
