// Quotients are truncated towards zero, as in C; the remainder has the sign of the dividend.
// CHECK-LABEL: --- Running 'quotients':
// CHECK-NEXT: 'quotients' returned -3,-1,-3,1
func.func @quotients() -> (i32, i32, i32, i32) {
  %seven = tfrt.constant.i32 7
  %minus_seven = tfrt.constant.i32 -7
  %two = tfrt.constant.i32 2
  %minus_two = tfrt.constant.i32 -2
  %q0, %r0 = "tfrt.div.i32"(%minus_seven, %two) : (i32, i32) -> (i32, i32)
  %q1, %r1 = "tfrt.div.i32"(%seven, %minus_two) : (i32, i32) -> (i32, i32)
  tfrt.return %q0, %r0, %q1, %r1 : i32, i32, i32, i32
}

// CHECK-LABEL: --- Running 'by_zero':
// CHECK-NEXT: 'by_zero' returned <<error: Divide by zero>>,<<error: Divide by zero>>
func.func @by_zero() -> (i32, i32) {
  %one = tfrt.constant.i32 1
  %zero = tfrt.constant.i32 0
  %q, %r = "tfrt.div.i32"(%one, %zero) : (i32, i32) -> (i32, i32) // expected-error {{Divide by zero}}
  tfrt.return %q, %r : i32, i32
}
