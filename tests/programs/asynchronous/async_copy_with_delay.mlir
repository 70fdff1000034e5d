// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 4
func.func @main() -> i32 {
  %a = tfrt.constant.i32 4
  %x = "tfrt_test.async_copy.with_delay.i32"(%a) : (i32) -> i32
  tfrt.return %x : i32
}
