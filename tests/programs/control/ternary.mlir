// CHECK-LABEL: --- Running 'values':
// CHECK-NEXT: 'values' returned 1,2
func.func @values() -> (i32, i32) {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %x = tfrt.ternary %yes, %one, %two : (i1, i32, i32) -> i32
  %y = tfrt.ternary %no, %one, %two : (i1, i32, i32) -> i32
  tfrt.return %x, %y : i32, i32
}

// An error that is not chosen is no error of the result.
// CHECK-LABEL: --- Running 'an_error_aside':
// CHECK-NEXT: 'an_error_aside' returned 1,<<error: something bad happened>>
func.func @an_error_aside() -> (i32, i32) {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %one = tfrt.constant.i32 1
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %x = tfrt.ternary %yes, %one, %bad : (i1, i32, i32) -> i32
  %y = tfrt.ternary %no, %one, %bad : (i1, i32, i32) -> i32
  tfrt.return %x, %y : i32, i32
}

// The value that is chosen goes on while the other one and its own are still to come.
// CHECK-LABEL: --- Running 'early':
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 3
func.func @early() {
  %c0 = tfrt.new.chain
  %yes = tfrt.constant.i1 true
  %one = tfrt.constant.i32 1
  %three = tfrt.constant.i32 3
  %late = "tfrt_test.async_copy.i32"(%three) : (i32) -> i32
  %x = tfrt.ternary %yes, %one, %late : (i1, i32, i32) -> i32
  %c1 = tfrt.print.i32 %x, %c0
  %c2 = tfrt.print.i32 %late, %c0
  tfrt.return
}

// The condition may come later, too.
// CHECK-LABEL: --- Running 'late_condition':
// CHECK-NEXT: 'late_condition' returned 1
func.func @late_condition() -> i32 {
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %late = "tfrt_test.async_copy.i32"(%one) : (i32) -> i32
  %cond = tfrt.equal.i32 %late, %one
  %x = tfrt.ternary %cond, %one, %two : (i1, i32, i32) -> i32
  tfrt.return %x : i32
}
