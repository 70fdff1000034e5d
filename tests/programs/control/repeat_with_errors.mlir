// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened asynchronously>>
func.func @main() -> i32 {
  %count = tfrt.constant.i32 3
  %x = tfrt.constant.i32 1
  %last = tfrt.repeat.i32 %count, %x : i32 {
    %bad = "tfrt_test.report_error_concrete_async"(%x) : (i32) -> i32 // expected-error {{something bad happened}}
    tfrt.return %bad : i32
  }
  tfrt.return %last : i32
}
