// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: something bad happened>>
func.func @main() -> i32 {
  %count = tfrt.constant.i32 3
  %x = tfrt.constant.i32 1
  %last = tfrt.repeat.i32 %count, %x : i32 {
    %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
    tfrt.return %bad : i32
  }
  tfrt.return %last : i32
}
