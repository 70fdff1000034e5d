// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 4,5
func.func @main() -> (i32, i64) {
  %a = tfrt.constant.i32 4
  %b = tfrt.constant.i64 5
  %x = "tfrt_test.copy.with_delay.i32"(%a) : (i32) -> i32
  %y = "tfrt_test.copy.with_delay.i64"(%b) : (i64) -> i64
  tfrt.return %x, %y : i32, i64
}
