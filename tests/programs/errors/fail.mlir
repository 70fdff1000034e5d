// CHECK-LABEL: --- Running 'fails':
// CHECK-NEXT: 'fails' returned <<error: something bad happened>>
func.func @fails() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{runtime error: something bad happened}}
  tfrt.return %x : i32
}

// An error goes on to whatever needs it, and is told once.
// CHECK-LABEL: --- Running 'goes_on':
// CHECK-NEXT: 'goes_on' returned <<error: something bad happened>>,1
func.func @goes_on() -> (i32, i32) {
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %one = tfrt.constant.i32 1
  %y = tfrt.add.i32 %x, %one
  %z = tfrt.add.i32 %y, %x
  tfrt.return %z, %one : i32, i32
}
