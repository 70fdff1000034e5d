// CHECK-LABEL: --- Running 'async':
// CHECK-NEXT: 'async' returned <<error: something bad happened asynchronously>>
func.func @async() -> i32 {
  %x = "tfrt_test.report_error_async"() : () -> i32 // expected-error {{something bad happened asynchronously}}
  tfrt.return %x : i32
}

// CHECK-LABEL: --- Running 'concrete':
// CHECK-NEXT: 'concrete' returned 0,<<error: something bad happened asynchronously>>
func.func @concrete() -> (i32, i32) {
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %x = "tfrt_test.report_error_concrete_async"(%zero) : (i32) -> i32
  %y = "tfrt_test.report_error_concrete_async"(%one) : (i32) -> i32 // expected-error {{happened asynchronously}}
  tfrt.return %x, %y : i32, i32
}

// CHECK-LABEL: --- Running 'indirect':
// CHECK-NEXT: 'indirect' returned 0,<<error: something bad happened asynchronously>>
func.func @indirect() -> (i32, i32) {
  %zero = tfrt.constant.i32 0
  %one = tfrt.constant.i32 1
  %x = "tfrt_test.report_error_indirect_async"(%zero) : (i32) -> i32
  %y = "tfrt_test.report_error_indirect_async"(%one) : (i32) -> i32 // expected-error {{happened asynchronously}}
  tfrt.return %x, %y : i32, i32
}
